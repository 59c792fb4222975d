package scenarios

import (
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// unsafely are the options of a deletion without reading. kubectl has no flag for them.
const unsafely = `{"apiVersion":"v1","kind":"DeleteOptions","ignoreStoreReadErrorWithClusterBreakingPotential":true}`

// removal is what kubectl is given to delete an object without reading it, with unsafely as its input.
func removal(resource, namespace, name string) []string {
	return []string{"delete", "-f", "-", "--raw", of(resource, namespace) + "/" + name}
}

// removes deletes an object without reading it.
func (k *kubectl) removes(resource, namespace, name string) {
	k.t.Helper()
	if out, code := k.feed(unsafely, removal(resource, namespace, name)...); code != 0 || !strings.Contains(out, `"status":"Success"`) {
		k.t.Errorf("kubectl delete --raw: exit code %d\n%s", code, out)
	}
}

// spoil writes a value into etcd that no API server can read, and returns its key.
func (g *grove) spoil(client *clientv3.Client, resource, namespace, name string) string {
	g.Helper()
	folder := g.prefix + "/" + groveGroup + "/" + resource + "/"
	if resource == "configmaps" {
		folder = g.prefix + "/configmaps/"
	}
	key := folder + namespace + "/" + name
	if _, err := client.Put(g.Context(), key, "spoilt"); err != nil {
		g.Fatal(err)
	}
	return key
}

// An object that cannot be read is left out of lists, with a warning, and kubectl deletes it if it is told to. Upstream refuses the list.
func TestUnreadableObject(t *testing.T) {
	g, client := newGrove(t), etcdClient(t)
	k := newKubectl(t, g.server)
	for _, resource := range []string{"trees", "configmaps"} {
		g.plant(of(resource, "default"), "oak")
		key := g.spoil(client, resource, "default", "bad")
		name := map[string]string{"trees": trees, "configmaps": "configmaps"}[resource]
		for range 3 { // from etcd, then from a cache
			out := k.ok("get", name)
			contains(t, []string{"get", name}, out, []string{"oak", "Warning: 1 of " + name + " cannot be read from etcd and are left out: default/bad ("})
		}
		k.fails([]string{"Error from server (StorageReadError): " + key + " in etcd, of revision ", "echo '" + unsafely + "' | kubectl delete -f - --raw '/api"}, "get", name, "bad")
		k.fails([]string{"StorageReadError", key}, "delete", name, "bad")
		k.fails([]string{"StorageReadError", key}, "label", name, "bad", "a=b")
		if out, code := k.feed(unsafely, removal(resource, "default", "oak")...); code == 0 || !strings.Contains(out, "the object is decodable from storage") {
			t.Errorf("an object that can be read: exit code %d\n%s", code, out)
		}
		k.removes(resource, "default", "bad")
		if out := k.ok("get", name); strings.Contains(out, "Warning") {
			t.Errorf("after deletion: %s", out)
		}
	}
}

// What cannot be read keeps its namespace, and nothing else in it; the status says which object it is.
func TestUnreadableObjectInNamespace(t *testing.T) {
	g, client := newGrove(t), etcdClient(t)
	k := newKubectl(t, g.server)
	g.namespace("glade")
	g.plant(of("trees", "glade"), "oak")
	g.plant(of("configmaps", "glade"), "oak")
	keys := []string{g.spoil(client, "trees", "glade", "bad"), g.spoil(client, "configmaps", "glade", "bad")}
	k.ok("delete", "namespace", "glade", "--wait=false")
	eventually(t, soon, "the status names the objects", func() bool {
		says := k.conditions("glade")["NamespaceDeletionContentFailure"]
		return strings.Contains(says, keys[0]) && strings.Contains(says, keys[1]) && strings.Contains(says, unsafely)
	})
	for _, resource := range []string{"trees", "configmaps"} {
		if n := g.count(client, resource, "glade"); n != 1 {
			t.Errorf("%d %s are left", n, resource)
		}
	}
	k.removes("trees", "glade", "bad")
	k.removes("configmaps", "glade", "bad")
	eventually(t, soon, "the namespace has gone", func() bool { _, code := k.do("get", "namespace", "glade"); return code != 0 })
}

// What cannot be read keeps its CRD, and no other object of it; the status says which object it is.
func TestUnreadableObjectOfCRD(t *testing.T) {
	g, client := newGrove(t), etcdClient(t)
	k := newKubectl(t, g.server)
	g.plant(of("trees", "default"), "oak")
	key := g.spoil(client, "trees", "default", "bad")
	k.ok("annotate", "crd", trees, "espalier.dev/allow-deletion=true")
	k.ok("delete", "crd", trees, "--wait=false")
	eventually(t, soon, "the status names the object", func() bool {
		out := k.ok("get", "crd", trees, "-o", `jsonpath={.status.conditions[?(@.type=="Terminating")].message}`)
		return strings.Contains(out, "1 objects cannot be read: "+key) && strings.Contains(out, unsafely)
	})
	if n := g.count(client, "trees", "default"); n != 1 {
		t.Errorf("%d objects are left", n)
	}
	k.removes("trees", "default", "bad")
	eventually(t, soon, "the CRD has gone", func() bool { _, code := k.do("get", "crd", trees); return code != 0 })
}

// An owner that cannot be read is not one that does not exist: its dependents stay.
func TestUnreadableOwner(t *testing.T) {
	g, client := newGrove(t), etcdClient(t)
	k := newKubectl(t, g.server)
	owner := g.plant(of("trees", "default"), "owner")
	g.plant(of("trees", "default"), "dependent", owner.ties())
	g.spoil(client, "trees", "default", "owner")
	// The collector works through what has changed in order: a later orphan goes.
	gone := g.plant(of("trees", "default"), "gone")
	g.plant(of("trees", "default"), "later", gone.ties())
	k.ok("delete", trees, "gone")
	eventually(t, soon, "the collector has collected", func() bool { return g.count(client, "trees", "default") == 2 })
	k.says([]string{"dependent"}, "get", trees, "dependent")
}
