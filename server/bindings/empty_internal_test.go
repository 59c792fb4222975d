package bindings

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/tenants"
)

// A replica that was stopped after it had read what is bound deletes nothing of a later binding of the same resource.
func TestEmptyIsOfOneBinding(t *testing.T) {
	etcd, prefix := etcdtest.Client(t)
	b := &Binder{Options: Options{Prefix: prefix, Tenant: tenants.Tenant{UID: "one"}}, etcd: etcd}
	note := tenants.Bound{Resource: schema.GroupResource{Group: "example.com", Resource: "webs"}}
	key, folder := tenants.BoundKey(prefix, "one", note.Resource), tenants.Prefix(prefix, "one")+"/example.com/webs/"
	bind := func() (revision int64) {
		t.Helper()
		answer, err := etcd.Txn(t.Context()).Then(clientv3.OpPut(key, "{}"), clientv3.OpPut(folder+"a", "")).Commit()
		if err != nil {
			t.Fatal(err)
		}
		return answer.Header.Revision
	}
	left := func() int64 {
		t.Helper()
		found, err := etcd.Get(t.Context(), folder, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		return found.Count
	}
	note.Revision = bind()
	latest := bind()
	if done, err := b.empty(t.Context(), folder, note); done || err != nil || left() != 1 {
		t.Errorf("of a former binding: %v, %v, %d objects are left", done, err, left())
	}
	note.Revision = latest
	if done, err := b.empty(t.Context(), folder, note); !done || err != nil || left() != 0 {
		t.Errorf("%v, %v, %d objects are left", done, err, left())
	}
}
