package store_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// newest reads the etcd's newest revision.
func newest(t *testing.T, b *store.Backend) int64 {
	t.Helper()
	answer, err := b.Client().Get(t.Context(), "/", clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return answer.Header.Revision
}

// A part that was moved shows revisions with its offset in answers of every kind, and takes them back.
func TestRevisionsOfMovedPart(t *testing.T) {
	const offset = 1_000_000
	whole := open(t)
	guard := etcdtest.Prefix(t) + "-part"
	if _, err := whole.Client().Put(t.Context(), guard, "here/2"); err != nil {
		t.Fatal(err)
	}
	since := newest(t, whole) + offset
	within := whole.Within(store.Part{Prefix: guard, Guard: guard, Holder: "here/2", Revisions: store.Revisions{Offset: offset, Since: since}})
	st, etcd := open1(t, within, spec("v1")), within.Client()
	rv := func(o *object.Object) int64 {
		n, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	events, err := st.Watch(t.Context(), prefix+"/", storage.ListOptions{ResourceVersion: fmt.Sprint(since), Predicate: storage.Everything, Recursive: true})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	create(t, st, gadget("v1", "a", 1))
	a := get(t, st, "a", "")
	if raw := newest(t, whole) + offset; rv(a) != raw {
		t.Errorf("created at %d, not %d", rv(a), raw)
	}
	update(t, st, "a", func(o *object.Object) { o.SetLabels(map[string]string{"parity": "odd"}) })
	b := get(t, st, "a", "")
	if rv(b) <= rv(a) {
		t.Errorf("%d after %d", rv(b), rv(a))
	}
	remove(t, st, "a")
	for _, want := range []struct {
		kind     watch.EventType
		revision int64
	}{{watch.Added, rv(a)}, {watch.Modified, rv(b)}, {watch.Deleted, rv(b) + 1}} {
		if e := next(t, events); e.Type != want.kind || rv(e.Object.(*object.Object)) != want.revision {
			t.Errorf("%v of %v, want %v", e.Type, e.Object, want)
		}
	}
	// What is from before is gone.
	for _, before := range []int64{1, since - 1} {
		if _, err := etcd.Get(t.Context(), guard+"/x", clientv3.WithRev(before)); !errors.Is(err, rpctypes.ErrCompacted) {
			t.Errorf("a read at %d: %v", before, err)
		}
		answer := <-etcd.Watch(t.Context(), guard+"/x", clientv3.WithRev(before+1))
		if err := answer.Err(); !errors.Is(err, rpctypes.ErrCompacted) {
			t.Errorf("a watch from %d: %v", before+1, err)
		}
		w, err := st.Watch(t.Context(), prefix+"/", storage.ListOptions{ResourceVersion: fmt.Sprint(before), Predicate: storage.Everything, Recursive: true})
		if err == nil {
			e := <-w.ResultChan()
			err = apierrors.FromObject(e.Object)
		}
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			t.Errorf("a watch of objects from %d: %v", before, err)
		}
	}
	// Conditions of a key that is there, and of one that is not.
	put, err := etcd.Put(t.Context(), guard+"/x", "1")
	if err != nil {
		t.Fatal(err)
	}
	now := put.Header.Revision
	x, y := guard+"/x", guard+"/y"
	for _, c := range []struct {
		key, result string
		revision    int64
		want        bool
	}{
		{x, "=", now, true}, {x, "=", now - offset, false}, {x, "=", 0, false}, {x, "=", 5, false}, {x, "!=", 5, true}, {x, "!=", now, false},
		{x, "<", now + 1, true}, {x, "<", now, false}, {x, "<", 1, false}, {x, ">", 0, true}, {x, ">", 5, true}, {x, ">", now, false}, {x, ">", now - 1, true},
		{y, "=", 0, true}, {y, "=", 5, false}, {y, "=", now, false}, {y, "<", 1, true}, {y, "<", now, true}, {y, ">", 0, false}, {y, ">", 5, false}, {y, "!=", 0, false}, {y, "!=", 5, true},
	} {
		for _, of := range []clientv3.Cmp{clientv3.ModRevision(c.key), clientv3.CreateRevision(c.key)} {
			answer, err := etcd.Txn(t.Context()).If(clientv3.Compare(of, c.result, c.revision)).Then(clientv3.OpGet(x)).Else(clientv3.OpGet(x)).Commit()
			if err != nil || answer.Succeeded != c.want {
				t.Errorf("%v: %v, %v", c, answer, err)
				continue
			}
			if kv := answer.Responses[0].GetResponseRange().Kvs[0]; kv.ModRevision != now || answer.Header.Revision < now {
				t.Errorf("read at %d, not %d", kv.ModRevision, now)
			}
		}
	}
	if found, err := etcd.Get(t.Context(), x, clientv3.WithMinModRev(now+1)); err != nil || len(found.Kvs) != 0 {
		t.Errorf("%v, %v", found, err)
	}
	if found, err := etcd.Get(t.Context(), x, clientv3.WithMinModRev(now), clientv3.WithRev(now)); err != nil || len(found.Kvs) != 1 {
		t.Errorf("%v, %v", found, err)
	}
	// A lock of before the move does not pass.
	create(t, st, gadget("v1", "b", 1))
	old := fmt.Sprint(since - 1)
	err = st.GuaranteedUpdate(t.Context(), key("b"), &object.Object{}, false, nil, func(in kruntime.Object, meta storage.ResponseMeta) (kruntime.Object, *uint64, error) {
		if o := in.(*object.Object); o.GetResourceVersion() == old {
			t.Error("an object has a revision of before the move")
		}
		return nil, nil, storage.NewResourceVersionConflictsError(key("b"), int64(meta.ResourceVersion)) //nolint:gosec // not negative
	}, nil)
	if err == nil {
		t.Error("the update passed")
	}
}

// A watch tells of nothing that happened after the guard had gone, whatever fills or empties the part then.
func TestWatchEndsWithGuard(t *testing.T) {
	whole, _, _, guard := part(t)
	lost := make(chan struct{}, 10)
	within := whole.Within(store.Part{Prefix: guard, Guard: guard, Holder: "here", Lost: func() { lost <- struct{}{} }})
	first, err := within.Client().Put(t.Context(), guard+"/a/1", "x")
	if err != nil {
		t.Fatal(err)
	}
	emptied := within.Client().Watch(t.Context(), guard+"/a/", clientv3.WithPrefix(), clientv3.WithRev(first.Header.Revision))
	filled := within.Client().Watch(t.Context(), guard+"/b/", clientv3.WithPrefix(), clientv3.WithRev(first.Header.Revision), clientv3.WithProgressNotify())
	if answer := <-emptied; len(answer.Events) != 1 || answer.Header.Revision != first.Header.Revision {
		t.Fatalf("%+v", answer)
	}
	if _, err := within.Client().Put(t.Context(), guard+"/b/0", "x"); err != nil {
		t.Fatal(err)
	}
	if answer := <-filled; len(answer.Events) != 1 {
		t.Fatalf("%+v", answer)
	}
	// The part goes, and returns for another holder.
	for _, write := range []clientv3.Op{
		clientv3.OpDelete(guard), clientv3.OpDelete(guard+"/a/", clientv3.WithPrefix()), clientv3.OpPut(guard+"/b/1", "other"), clientv3.OpPut(guard, "here/2"),
	} {
		if _, err := whole.Client().Do(t.Context(), write); err != nil {
			t.Fatal(err)
		}
	}
	for name, events := range map[string]clientv3.WatchChan{"emptied": emptied, "filled": filled} {
		select {
		case answer, ok := <-events:
			if ok {
				t.Errorf("%s: told of %+v", name, answer)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the watch goes on", name)
		}
	}
	select {
	case <-lost:
	default:
		t.Error("nobody was told that the guard is gone")
	}
	if _, err := within.Client().Put(t.Context(), guard+"/a/2", ""); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a write of the former holder: %v", err)
	}
	if _, err := within.Client().Get(t.Context(), guard+"/a/2"); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a read of the former holder: %v", err)
	}
	if _, err := within.Client().GetStream(t.Context(), guard+"/a/", clientv3.WithPrefix()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a stream of the former holder: %v", err)
	}
	// Clients ask for the revisions that they have seen elsewhere: what the part was emptied to is no state of theirs.
	if _, err := within.Client().GetStream(t.Context(), guard+"/a/", clientv3.WithPrefix(), clientv3.WithRev(newest(t, whole))); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a stream of the former holder at a revision after its time: %v", err)
	}
	if pieces, err := within.Client().GetStream(t.Context(), guard+"/a/", clientv3.WithPrefix(), clientv3.WithRev(first.Header.Revision)); err != nil {
		t.Errorf("a stream of the former holder at a revision of its time: %v", err)
	} else if piece := <-pieces; piece.Err() != nil || len(piece.Kvs) != 1 {
		t.Errorf("a stream of the former holder at a revision of its time: %v", piece)
	}
}
