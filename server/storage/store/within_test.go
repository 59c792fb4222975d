package store_test

import (
	"errors"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// part is a part of etcd, its storage, and its guard.
func part(t *testing.T) (whole, within *store.Backend, st storage.Interface, guard string) {
	t.Helper()
	whole = open(t)
	guard = etcdtest.Prefix(t) + "-part"
	if _, err := whole.Client().Put(t.Context(), guard, "here"); err != nil {
		t.Fatal(err)
	}
	within = whole.Within(store.Part{Prefix: guard, Guard: guard, Holder: "here"})
	return whole, within, open1(t, within, spec("v1")), guard
}

// A part has keys of its own, and works like the whole.
func TestWithin(t *testing.T) {
	whole, within, st, guard := part(t)
	other := open1(t, whole, spec("v1"))
	create(t, st, gadget("v1", "a", 1))
	create(t, other, gadget("v1", "a", 2))
	update(t, st, "a", func(o *object.Object) { o.SetLabels(map[string]string{"parity": "part"}) })
	if o := get(t, other, "a", ""); o.GetLabels()["parity"] == "part" {
		t.Error("a write of a part has changed an object of the whole")
	}
	if n := len(list(t, st, "").Items); n != 1 {
		t.Errorf("the part has %d objects", n)
	}
	found, err := whole.Client().Get(t.Context(), guard+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || found.Count != 1 || within.Key("x") != guard+"/x" {
		t.Errorf("%d keys in the part, %v, %s", found.Count, err, within.Key("x"))
	}
	remove(t, st, "a")
	if err := within.Close(); err != nil {
		t.Error(err)
	}
	if get(t, other, "a", "") == nil {
		t.Error("the whole ended with its part")
	}
}

// Without its guard, a part takes no writes of any kind, and answers no reads that must not be stale.
func TestGuard(t *testing.T) {
	whole, within, st, guard := part(t)
	create(t, st, gadget("v1", "a", 1))
	if _, err := whole.Client().Delete(t.Context(), guard); err != nil {
		t.Fatal(err)
	}
	before, err := whole.Client().Get(t.Context(), guard, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	etcd := within.Client()
	for what, write := range map[string]func() error{
		"create": func() error {
			return st.Create(t.Context(), key("b"), gadget("v1", "b", 1), &object.Object{}, 0)
		},
		"update": func() error {
			return st.GuaranteedUpdate(t.Context(), key("a"), &object.Object{}, false, nil, func(in kruntime.Object, _ storage.ResponseMeta) (kruntime.Object, *uint64, error) {
				return gadget("v1", "a", 3), nil, nil
			}, nil)
		},
		"delete": func() error {
			return st.Delete(t.Context(), key("a"), &object.Object{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
		},
		"put":          func() error { _, err := etcd.Put(t.Context(), guard+"/x", ""); return err },
		"delete range": func() error { _, err := etcd.Delete(t.Context(), guard+"/", clientv3.WithPrefix()); return err },
		"transaction": func() error {
			_, err := etcd.Txn(t.Context()).If(clientv3.Compare(clientv3.Version(guard+"/x"), "=", 0)).
				Then(clientv3.OpPut(guard+"/x", ""), clientv3.OpPut(guard+"/y", "")).Else(clientv3.OpGet(guard + "/x")).Commit()
			return err
		},
		"operation": func() error { _, err := etcd.Do(t.Context(), clientv3.OpPut(guard+"/x", "")); return err },
		"nested": func() error {
			_, err := etcd.Do(t.Context(), clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut(guard+"/x", "")}, nil))
			return err
		},
	} {
		if err := write(); !errors.Is(err, store.ErrClosed) || !apierrors.IsServiceUnavailable(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := st.Get(t.Context(), key("a"), storage.GetOptions{}, &object.Object{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a read without the guard: %v", err)
	}
	after, err := whole.Client().Get(t.Context(), guard, clientv3.WithPrefix())
	if err != nil || after.Count != before.Count || after.Kvs[0].ModRevision != before.Kvs[0].ModRevision {
		t.Errorf("something was written: %v, %v", after, err)
	}
}

// A condition of a transaction that does not hold is told apart from the guard.
func TestGuardedConditions(t *testing.T) {
	_, within, st, guard := part(t)
	create(t, st, gadget("v1", "a", 1))
	if err := st.Create(t.Context(), key("a"), gadget("v1", "a", 1), &object.Object{}, 0); !apierrors.IsAlreadyExists(err) && !storage.IsExist(err) {
		t.Errorf("create twice: %v", err)
	}
	etcd := within.Client()
	answer, err := etcd.Txn(t.Context()).If(clientv3.Compare(clientv3.Version(guard+"/x"), ">", 0)).
		Then(clientv3.OpPut(guard+"/x", "")).Else(clientv3.OpGet(guard+"/x"), clientv3.OpGet(guard+"/y")).Commit()
	if err != nil || answer.Succeeded || len(answer.Responses) != 2 {
		t.Errorf("%+v, %v", answer, err)
	}
	put, err := etcd.Put(t.Context(), guard+"/x", "1")
	if err != nil || put.Header.Revision == 0 {
		t.Errorf("%+v, %v", put, err)
	}
	deleted, err := etcd.Delete(t.Context(), guard+"/x")
	if err != nil || deleted.Deleted != 1 {
		t.Errorf("%+v, %v", deleted, err)
	}
}
