package scenarios

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespaces are deleted with all that is in them, and say what keeps them.
func TestNamespacesAreDeleted(t *testing.T) {
	g := newGrove(t)
	t.Run("with a dead webhook", func(t *testing.T) { t.Parallel(); g.in(t).namespaceWithDeadWebhook() })
	t.Run("with a finalizer", func(t *testing.T) { t.Parallel(); g.in(t).namespaceWithFinalizer() })
	t.Run("with many kinds", func(t *testing.T) { t.Parallel(); g.in(t).namespaceWithManyKinds() })
	t.Run("or not at all", func(t *testing.T) { t.Parallel(); g.in(t).immortalNamespaces() })
}

// A kind whose conversion webhook is dead keeps the namespace, which says so, but nothing else that is in it.
func (g *grove) namespaceWithDeadWebhook() {
	client, k := etcdClient(g.T), newKubectl(g.T, g.server)
	g.namespace("cursed")
	g.namespace("safe")
	g.curse("curses", "https://127.0.0.1:1/", func() {
		for i := range 3 {
			g.plant(of("curses", "cursed"), fmt.Sprintf("curse-%d", i))
		}
	})
	for i := range 5 {
		g.plant(of("trees", "cursed"), fmt.Sprintf("tree-%d", i))
		g.plant(of("configmaps", "cursed"), fmt.Sprintf("chart-%d", i))
	}
	safe := g.plant(of("trees", "safe"), "tree")
	k.says([]string{`namespace "cursed" deleted`}, "delete", "namespace", "cursed", "--wait=false")
	eventually(g.T, soon, "objects of other kinds are gone", func() bool {
		return g.count(client, "trees", "cursed") == 0 && g.count(client, "configmaps", "cursed") == 0
	})
	eventually(g.T, soon, "the namespace says what is in the way", func() bool {
		c := k.conditions("cursed")
		return c["phase"] == "Terminating" &&
			strings.HasPrefix(c["NamespaceDeletionContentFailure"], "True ContentDeletionFailed Failed to delete all resource types, 1 remaining: curses.grove.example.com: ") &&
			c["NamespaceContentRemaining"] == "True SomeResourcesRemain Some resources are remaining: curses.grove.example.com has 3 resource instances"
	})
	k.says([]string{"phase: Terminating", "type: NamespaceDeletionContentFailure", "curses.grove.example.com"}, "get", "ns", "cursed", "-o", "yaml")
	k.fails([]string{`configmaps "late" is forbidden: unable to create new content in namespace cursed because it is being terminated`}, "create", "configmap", "late", "-n", "cursed")
	if n := g.count(client, "curses", "cursed"); n != 3 {
		g.Errorf("%d objects are left of those that could not be read", n)
	}
	g.lift("curses")
	k.says(nil, "wait", "--for=delete", "ns/cursed", "--timeout=50s")
	if n := g.count(client, "curses", "cursed"); n != 0 {
		g.Errorf("the namespace has gone before %d of its objects", n)
	}
	g.stand(safe)
}

// An object with a finalizer keeps its namespace, which says so, until a client takes the finalizer away.
func (g *grove) namespaceWithFinalizer() {
	client, k := etcdClient(g.T), newKubectl(g.T, g.server)
	g.namespace("held")
	kept := g.sow(of("trees", "held"), metav1.ObjectMeta{Name: "kept", Finalizers: []string{"grove.example.com/wait"}})
	g.plant(of("trees", "held"), "free")
	k.ok("delete", "namespace", "held", "--wait=false")
	want := map[string]string{
		"phase":                           "Terminating",
		"NamespaceDeletionContentFailure": "False ContentDeleted All content successfully deleted, may be waiting on finalization",
		"NamespaceContentRemaining":       "True SomeResourcesRemain Some resources are remaining: trees.grove.example.com has 1 resource instances",
		"NamespaceFinalizersRemaining":    "True SomeFinalizersRemain Some content in the namespace has finalizers remaining: grove.example.com/wait in 1 resource instances",
	}
	eventually(g.T, soon, "the namespace says what is in the way", func() bool {
		c := k.conditions("held")
		for name, text := range want {
			if c[name] != text {
				return false
			}
		}
		return true
	})
	if n := g.count(client, "trees", "held"); n != 1 {
		g.Errorf("%d objects are left, and one has a finalizer", n)
	}
	g.merge(kept.path, `{"metadata":{"finalizers":null}}`)
	k.says(nil, "wait", "--for=delete", "ns/held", "--timeout=50s")
}

// A namespace is deleted within seconds, however many kinds there are.
func (g *grove) namespaceWithManyKinds() {
	const kinds = 100
	client, k := etcdClient(g.T), newKubectl(g.T, g.server)
	g.namespace("doomed")
	for i := range kinds {
		post(g.T, g.conn, crdsPath, groveCRD(fmt.Sprintf("kind%d", i), fmt.Sprintf("Kind%d", i), "Namespaced"))
	}
	eventually(g.T, soon, "all kinds are established", func() bool {
		return strings.Count(string(get(g.T, g.conn, crdsPath)), `"status":"True","type":"Established"`) >= kinds+2
	})
	for _, plural := range []string{"kind0", "kind50", "kind99", "trees", "configmaps"} {
		for i := range 20 {
			g.plant(of(plural, "doomed"), fmt.Sprintf("one-%d", i))
		}
	}
	began := time.Now()
	k.says([]string{`namespace "doomed" deleted`}, "delete", "namespace", "doomed", "--timeout=50s")
	took := time.Since(began)
	g.Logf("a namespace among %d kinds, 5 of them with objects in it, was deleted in %.1f s", kinds+2, took.Seconds())
	if took > 20*time.Second {
		g.Errorf("it took %v", took)
	}
	for _, plural := range []string{"kind0", "kind50", "kind99", "trees", "configmaps"} {
		if n := g.count(client, plural, "doomed"); n != 0 {
			g.Errorf("%d objects of %s are left", n, plural)
		}
	}
	// The same name can be used again, and is empty.
	g.namespace("doomed")
	if c := k.conditions("doomed"); c["phase"] != "Active" || len(c) != 1 {
		g.Errorf("a new namespace has %v", c)
	}
}

// Some namespaces are always there, and all at once cannot be deleted.
func (g *grove) immortalNamespaces() {
	k := newKubectl(g.T, g.server)
	for _, name := range []string{"default", "kube-system", "kube-public"} {
		k.fails([]string{fmt.Sprintf(`Error from server (Forbidden): namespaces %q is forbidden: this namespace may not be deleted`, name)}, "delete", "namespace", name)
		if c := k.conditions(name); c["phase"] != "Active" {
			g.Errorf("%s is %v", name, c)
		}
	}
	status, _, answer, err := g.conn.Do(g.Context(), http.MethodDelete, "/api/v1/namespaces", nil)
	if err != nil || status != http.StatusMethodNotAllowed {
		g.Errorf("namespaces as a collection: %d, %v: %.300s", status, err, answer)
	}
}
