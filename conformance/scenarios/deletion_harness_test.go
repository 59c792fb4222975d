package scenarios

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

const (
	groveGroup = "grove.example.com"
	// trees have a namespace, forests have none.
	trees   = "trees." + groveGroup
	forests = "forests." + groveGroup
)

// A grove is a server with objects that own each other.
type grove struct {
	*testing.T
	server *launch.Server
	conn   *wire.Conn
	prefix string // in etcd
}

// newGrove starts a server that has trees and forests.
func newGrove(t *testing.T, flags ...string) *grove {
	t.Helper()
	needsDiscovery(t)
	prefix := prefix()
	g := joinGrove(t, prefix, serve(t, against, prefix, flags...))
	g.define("trees", "Tree", "Namespaced")
	g.define("forests", "Forest", "Cluster")
	return g
}

// joinGrove is for a further server over the same etcd.
func joinGrove(t *testing.T, prefix string, s *launch.Server) *grove {
	t.Helper()
	return &grove{t, s, dial(t, s), prefix}
}

// in returns the grove for a subtest.
func (g *grove) in(t *testing.T) *grove { return joinGrove(t, g.prefix, g.server) }

// groveCRD is a CRD without a schema, with two versions; the first is the storage version.
func groveCRD(plural, kind, scope string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.%[4]s"},
"spec":{"group":%[4]q,"scope":%[3]q,"names":{"plural":%[1]q,"kind":%[2]q},"versions":[
{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},
{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`,
		plural, kind, scope, groveGroup)
}

func (g *grove) define(plural, kind, scope string) {
	g.Helper()
	post(g.T, g.conn, crdsPath, groveCRD(plural, kind, scope))
	eventually(g.T, soon, plural+" are established", func() bool {
		return strings.Contains(string(get(g.T, g.conn, crdsPath+"/"+plural+"."+groveGroup)), `"status":"True","type":"Established"`)
	})
}

// namespace makes a namespace.
func (g *grove) namespace(name string) {
	g.Helper()
	post(g.T, g.conn, "/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
}

// of returns the path of a collection: of a custom resource, or of config maps.
func of(plural, namespace string) string {
	switch {
	case plural == "configmaps":
		return "/api/v1/namespaces/" + namespace + "/configmaps"
	case namespace == "":
		return "/apis/" + groveGroup + "/v1/" + plural
	}
	return "/apis/" + groveGroup + "/v1/namespaces/" + namespace + "/" + plural
}

// A plant is an object that is or has been there.
type plant struct {
	path             string
	apiVersion, kind string
	name, uid        string
}

// A tie is an owner reference.
type tie = metav1.OwnerReference

// holds is a reference to p that makes it wait for the dependent, ties is one that does not.
func (p plant) holds() tie { return p.tie(true) }
func (p plant) ties() tie  { return p.tie(false) }

func (p plant) tie(blocking bool) tie {
	return tie{APIVersion: p.apiVersion, Kind: p.kind, Name: p.name, UID: types.UID(p.uid), BlockOwnerDeletion: &blocking}
}

// plant makes an object with owners.
func (g *grove) plant(collection, name string, owners ...tie) plant {
	g.Helper()
	return g.sow(collection, metav1.ObjectMeta{Name: name, OwnerReferences: owners})
}

var groveKinds = map[string]string{"trees": "Tree", "forests": "Forest", "curses": "Curse", "hexes": "Hex", "jinxes": "Jinx", "configmaps": "ConfigMap"}

// sow makes an object with metadata.
func (g *grove) sow(collection string, meta metav1.ObjectMeta) plant {
	g.Helper()
	version := "v1"
	if strings.HasPrefix(collection, "/apis/") {
		version = groveGroup + "/v1"
	}
	plural := collection[strings.LastIndex(collection, "/")+1:]
	kind := groveKinds[plural]
	if kind == "" {
		kind = "Kind" + strings.TrimPrefix(plural, "kind")
	}
	body := encode(g.T, map[string]any{"apiVersion": version, "kind": kind, "metadata": meta})
	answer, err := g.conn.Expect(g.Context(), http.StatusCreated, http.MethodPost, collection, []byte(body))
	if err != nil {
		g.Fatal(err)
	}
	var made metav1.PartialObjectMetadata
	decode(g.T, answer, &made)
	return plant{path: collection + "/" + meta.Name, apiVersion: version, kind: kind, name: meta.Name, uid: string(made.UID)}
}

// look returns an object's metadata, or nil if it does not exist, or has another UID.
func (g *grove) look(p plant) *metav1.ObjectMeta {
	g.Helper()
	status, _, answer, err := g.conn.Do(g.Context(), http.MethodGet, p.path, nil)
	if err != nil || status != http.StatusOK && status != http.StatusNotFound {
		g.Fatalf("GET %s: %d, %v: %.500s", p.path, status, err, answer)
	}
	var o metav1.PartialObjectMetadata
	decode(g.T, answer, &o)
	if status == http.StatusNotFound || string(o.UID) != p.uid {
		return nil
	}
	return &o.ObjectMeta
}

// fell deletes an object.
func (g *grove) fell(p plant, policy metav1.DeletionPropagation) {
	g.Helper()
	expect(g.T, g.conn, http.StatusOK, http.MethodDelete, p.path, fmt.Sprintf(`{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":%q}`, policy))
}

// merge changes an object.
func (g *grove) merge(path, body string) {
	g.Helper()
	status, _, answer, err := g.conn.Do(g.Context(), http.MethodPatch, path, []byte(body), wire.Header{Name: "Content-Type", Value: "application/merge-patch+json"})
	if err != nil || status != http.StatusOK {
		g.Fatalf("PATCH %s: %d, %v: %.500s", path, status, err, answer)
	}
}

// gone waits until objects are gone.
func (g *grove) gone(plants ...plant) {
	g.Helper()
	for _, p := range plants {
		eventually(g.T, soon, p.path+" is gone", func() bool { return g.look(p) == nil })
	}
}

// stand checks that objects are there and are not being deleted.
func (g *grove) stand(plants ...plant) {
	g.Helper()
	for _, p := range plants {
		if o := g.look(p); o == nil || o.DeletionTimestamp != nil {
			g.Errorf("%s is gone, or is going: %+v", p.path, o)
		}
	}
}

// passes waits until the collector has had time for all that has happened until now: it has collected two generations of what came later.
func (g *grove) passes() {
	g.Helper()
	name := strings.ToLower(fmt.Sprintf("marker-%d", time.Now().UnixNano()))
	collection := of("configmaps", "default")
	parent := g.plant(collection, name)
	child := g.plant(collection, name+"-child", parent.ties())
	grandchild := g.plant(collection, name+"-grandchild", child.ties())
	g.fell(parent, metav1.DeletePropagationBackground)
	g.gone(parent, child, grandchild)
}

// count returns how many objects etcd has of a resource in a namespace.
func (g *grove) count(client *clientv3.Client, resource, namespace string) int64 {
	g.Helper()
	folder := g.prefix + "/" + groveGroup + "/" + resource + "/" + namespace + "/"
	if resource == "configmaps" {
		folder = g.prefix + "/configmaps/" + namespace + "/"
	}
	found, err := client.Get(g.Context(), folder, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		g.Fatal(err)
	}
	return found.Count
}

// multiply puts copies of a stored tree into etcd until there are n, each with a name and a uid of its own. It has the name "seed", and
// copies have names as long.
func (g *grove) multiply(client *clientv3.Client, seed plant, namespace string, n int) {
	g.Helper()
	folder := g.prefix + "/" + groveGroup + "/trees/" + namespace + "/"
	found, err := client.Get(g.Context(), folder+seed.name)
	if err != nil || len(found.Kvs) != 1 {
		g.Fatal(found, err)
	}
	stored := string(found.Kvs[0].Value)
	const batch, writers = 100, 4 // etcd takes 128 changes at a time
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for from := 1 + w*batch; from < n; from += writers * batch {
				var puts []clientv3.Op
				for i := from; i < min(from+batch, n); i++ {
					name := fmt.Sprintf("copy-%06d", i)
					uid := fmt.Sprintf("%s%012d", seed.uid[:len(seed.uid)-12], i)
					copied := strings.NewReplacer(`"name":"`+seed.name+`"`, `"name":"`+name+`"`, seed.uid, uid).Replace(stored)
					puts = append(puts, clientv3.OpPut(folder+name, copied))
				}
				if _, err := client.Txn(g.Context()).Then(puts...).Commit(); err != nil {
					g.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if g.Failed() {
		g.FailNow()
	}
}

// conditions are what a namespace says about its deletion, by type, as kubectl shows it.
func (k *kubectl) conditions(namespace string) map[string]string {
	k.t.Helper()
	out, code := k.do("get", "ns", namespace, "-o", "json")
	if code != 0 {
		return nil
	}
	var ns struct {
		Status struct {
			Phase      string
			Conditions []struct{ Type, Status, Reason, Message string }
		}
	}
	if err := json.Unmarshal([]byte(out), &ns); err != nil {
		k.t.Fatalf("%v: %s", err, out)
	}
	all := map[string]string{"phase": ns.Status.Phase}
	for _, c := range ns.Status.Conditions {
		all[c.Type] = c.Status + " " + c.Reason + " " + c.Message
	}
	return all
}
