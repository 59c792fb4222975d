package store_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// What a destroyed storage keeps for its watchers is dropped: it was read by a schema
// that has been replaced. What was handed over before can still be taken, in order.
func TestDestroyedStorageDropsWhatItKeeps(t *testing.T) {
	const events, handed = 300, 16
	for name, change := range map[string]func(*store.Spec){
		"cached":   func(*store.Spec) {},
		"uncached": func(s *store.Spec) { s.Cached = false },
	} {
		t.Run(name, func(t *testing.T) {
			s := spec("v1")
			change(&s)
			st, destroy, err := open(t).Storage(s)
			if err != nil {
				t.Fatal(err)
			}
			first := create(t, st, gadget("v1", "first", 0)).GetResourceVersion()
			opts := storage.ListOptions{ResourceVersion: first, Recursive: true, Predicate: predicate()}
			idle, err := st.Watch(t.Context(), prefix, opts)
			if err != nil {
				t.Fatal(err)
			}
			busy, err := st.Watch(t.Context(), prefix, opts)
			if err != nil {
				t.Fatal(err)
			}
			for i := range events {
				create(t, st, gadget("v1", fmt.Sprintf("g%03d", i), i))
			}
			for range events {
				next(t, busy)
			}
			time.Sleep(100 * time.Millisecond) // the other watch has them, too
			destroy()
			i := 0
			for e := range idle.ResultChan() {
				if got, want := bare(e.Object).(*object.Object).GetName(), fmt.Sprintf("g%03d", i); got != want {
					t.Fatalf("event %d is of %s", i, got)
				}
				i++
			}
			if i > handed+1 { // and one that is being handed over
				t.Errorf("%d events after the storage was destroyed", i)
			}
			if _, err := st.Watch(t.Context(), prefix, opts); err == nil {
				t.Error("a destroyed storage accepts a watch")
			}
		})
	}
}

// A storage is destroyed while its cache dispatches slowly and has a queue: that neither
// waits for the cache, nor does the cache keep its backend from closing. The library's
// reflector waits without end for room in the queue if dispatching stops before it.
func TestDestroyedUnderABurst(t *testing.T) {
	const rounds, events = 6, 400
	for round := range rounds {
		c := store.Config{Config: storagebackend.Config{Prefix: etcdtest.Prefix(t)}}
		c.Transport.ServerList = []string{etcdtest.Endpoint(t)}
		b, err := store.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		var slow atomic.Bool
		dispatching, proceed := make(chan struct{}, events), make(chan struct{})
		s := spec("v1")
		s.Triggers = storage.IndexerFuncs{"metadata.name": func(obj kruntime.Object) string {
			if slow.Load() {
				dispatching <- struct{}{}
				<-proceed
			}
			return bare(obj).(*object.Object).GetName()
		}}
		st, destroy, err := b.Storage(s)
		if err != nil {
			t.Fatal(err)
		}
		create(t, st, gadget("v1", "first", 0))
		if _, err := st.Watch(t.Context(), prefix, storage.ListOptions{ResourceVersion: "0", Recursive: true, Predicate: predicate()}); err != nil {
			t.Fatal(err)
		}
		stored, err := b.Client().Get(t.Context(), b.Key(key("first")))
		if err != nil || len(stored.Kvs) != 1 {
			t.Fatal(err, stored)
		}
		slow.Store(true)
		for i := range events / 100 {
			var puts []clientv3.Op
			for j := range 100 {
				name := fmt.Sprintf("g%d-%02d", i, j)
				puts = append(puts, clientv3.OpPut(b.Key(key(name)), strings.ReplaceAll(string(stored.Kvs[0].Value), `"first"`, `"`+name+`"`)))
			}
			if _, err := b.Client().Txn(t.Context()).Then(puts...).Commit(); err != nil {
				t.Fatal(err)
			}
		}
		<-dispatching
		time.Sleep(50 * time.Millisecond) // the queue is full
		destroyed := in(destroy)
		if !within(2*time.Second, destroyed) {
			t.Errorf("round %d: the end of a storage waits for its cache", round)
		}
		time.Sleep(20 * time.Millisecond) // the cache is being stopped
		close(proceed)
		if !within(5*time.Second, destroyed) || !within(5*time.Second, in(func() { err = b.Close() })) {
			t.Fatalf("round %d: the cache does not stop", round)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// in calls a function in a goroutine, and says when it has returned.
func in(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

// within reports whether something is done in a time.
func within(d time.Duration, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}
