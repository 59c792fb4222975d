package scenarios

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// A CRD that has objects is not deleted by mistake: the answer says how many there are, and what can be done.
func TestProtectedCRD(t *testing.T) {
	g, client := newGrove(t), etcdClient(t)
	k := newKubectl(t, g.server)
	for i := range 3 {
		g.plant(of("trees", "default"), fmt.Sprintf("tree-%d", i))
	}
	refused := []string{
		`Error from server (Conflict): Operation cannot be fulfilled on customresourcedefinitions.apiextensions.k8s.io "trees.grove.example.com": there are 3 instances`,
		"kubectl delete trees.grove.example.com --all --all-namespaces",
		"kubectl annotate crd trees.grove.example.com espalier.dev/allow-deletion=true",
	}
	k.fails(refused, "delete", "crd", trees)
	k.fails(refused, "delete", "crd", trees, "--dry-run=server")
	k.fails(refused, "delete", "crd", trees, "--cascade=foreground")
	k.fails(refused, "delete", "crd", "--all")
	k.fails([]string{"NotFound"}, "get", "crd", forests) // had none, and went with --all
	protectedCollection(g)
	if strings.Contains(string(get(t, g.conn, crdsPath+"/"+trees)), "deletionTimestamp") {
		t.Error("it is marked all the same")
	}
	if n := g.count(client, "trees", "default"); n != 3 {
		t.Errorf("%d of 3 objects are left", n)
	}

	// Nothing but "true" is a yes.
	k.ok("annotate", "crd", trees, "espalier.dev/allow-deletion=yes")
	k.fails(refused, "delete", "crd", trees)
	k.ok("annotate", "crd", trees, "--overwrite", "espalier.dev/allow-deletion=true")
	k.says([]string{`customresourcedefinition.apiextensions.k8s.io "trees.grove.example.com" deleted (server dry run)`}, "delete", "crd", trees, "--dry-run=server")
	if n := g.count(client, "trees", "default"); n != 3 {
		t.Errorf("a dry run has left %d of 3 objects", n)
	}
	k.says([]string{`customresourcedefinition.apiextensions.k8s.io "trees.grove.example.com" deleted`}, "delete", "crd", trees, "--timeout=30s")
	if n := g.count(client, "trees", "default"); n != 0 {
		t.Errorf("%d objects are left", n)
	}

	// The first piece of advice works, too.
	g.define("trees", "Tree", "Namespaced")
	g.plant(of("trees", "default"), "single")
	k.fails([]string{"there is 1 instance,"}, "delete", "crd", trees)
	k.ok("delete", trees, "--all", "--all-namespaces")
	k.says([]string{`"trees.grove.example.com" deleted`}, "delete", "crd", trees, "--timeout=30s")
}

// protectedCollection deletes all CRDs at once: those that have objects stay, and the answer says so.
func protectedCollection(g *grove) {
	g.Helper()
	for _, query := range []string{"?dryRun=All", ""} {
		status, _, answer, err := g.conn.Do(g.Context(), http.MethodDelete, crdsPath+query, nil)
		if err != nil || status != http.StatusConflict || !strings.Contains(string(answer), "there are 3 instances") || !strings.Contains(string(answer), `"reason":"HasInstances"`) {
			g.Errorf("DELETE %s%s: %d, %v: %s", crdsPath, query, status, err, answer)
		}
	}
}

// A flag turns the protection off.
func TestUnprotectedCRD(t *testing.T) {
	g, client := newGrove(t, "--protect-instances=false"), etcdClient(t)
	g.plant(of("trees", "default"), "tree")
	newKubectl(t, g.server).says([]string{`"trees.grove.example.com" deleted`}, "delete", "crd", trees, "--timeout=30s")
	if n := g.count(client, "trees", "default"); n != 0 {
		t.Errorf("%d objects are left", n)
	}
}

// Upstream's server deletes a CRD with all its objects on request. Ours does so only if it is told to.
func TestCRDsWithObjectsAreProtected(t *testing.T) {
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			prefix := prefix()
			c := dial(t, serve(t, kind, prefix))
			post(t, c, crdsPath, reeds("", "", `{"type":"object"}`))
			grow(t, c)
			const path = crdsPath + "/reeds.pond.example.com"
			objects, crds := prefix+"/pond.example.com/reeds/", prefix+"/apiextensions.k8s.io/customresourcedefinitions/"
			if kind == launch.Upstream {
				expect(t, c, http.StatusOK, http.MethodDelete, path, "")
			} else {
				expect(t, c, http.StatusConflict, http.MethodDelete, path, "")
				if len(stored(t, objects)) != 1 || len(stored(t, crds)) != 1 {
					t.Error("something has been deleted")
				}
				patch(t, c, path, `[{"op":"add","path":"/metadata/annotations","value":{"espalier.dev/allow-deletion":"true"}}]`)
				expect(t, c, http.StatusOK, http.MethodDelete, path, "")
			}
			eventually(t, 30*time.Second, "the CRD and its objects are gone", func() bool {
				return len(stored(t, objects)) == 0 && len(stored(t, crds)) == 0
			})
		})
	}
}
