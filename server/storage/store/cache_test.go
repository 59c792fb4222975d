package store_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// caches counts the watch caches that run, by their goroutines. Tests that ask
// are not parallel.
func caches() int {
	buf := make([]byte, 16<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), "(*Cacher).dispatchEvents")
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

func TestCacheComesAndGoes(t *testing.T) {
	b := open(t, func(c *store.Config) { c.Idle = 300 * time.Millisecond })
	st := open1(t, b, spec("v1"))
	before := caches()
	rv := create(t, st, gadget("v1", "a", 1)).GetResourceVersion()
	get(t, st, "a", "")
	list(t, st, "")
	if n := caches() - before; n != 0 {
		t.Fatalf("%d caches after a single list", n)
	}
	list(t, st, "")
	if n := caches() - before; n != 1 {
		t.Fatalf("%d caches after the second list", n)
	}
	eventually(t, "the cache stays", func() bool { return caches() == before })

	// An open watch keeps the cache; its end lets it go.
	ctx, cancel := context.WithCancel(t.Context())
	w, err := st.Watch(ctx, prefix, storage.ListOptions{ResourceVersion: rv, Recursive: true, Predicate: predicate()})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	if n := caches() - before; n != 1 {
		t.Fatalf("%d caches under a watch", n)
	}
	update(t, st, "a", setValue(2))
	if e := next(t, w); e.Type != watch.Modified {
		t.Errorf("event: %v", e)
	}
	cancel() // without a call of Stop
	eventually(t, "the cache stays after its last watch", func() bool { return caches() == before })
	w.Stop()
	w.Stop()
	if got := get(t, st, "a", "0"); string(got.Member("spec")) != `{"value":2}` {
		t.Errorf("read %s", got.JSON())
	}
}

// TestWatchFromBeforeTheCache is what a client does that has listed while there was
// no cache, or comes back after it was dropped.
func TestWatchFromBeforeTheCache(t *testing.T) {
	t.Parallel()
	st := open1(t, open(t), spec("v1"))
	rv := create(t, st, gadget("v1", "a", 1)).GetResourceVersion()
	create(t, st, gadget("v1", "b", 1))
	list(t, st, "0")
	w, err := st.Watch(t.Context(), prefix, storage.ListOptions{ResourceVersion: rv, Recursive: true, Predicate: predicate("parity=1")})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	create(t, st, gadget("v1", "c", 1))
	for _, name := range []string{"b", "c"} {
		if e := next(t, w); e.Type != watch.Added || e.Object.(*object.Object).GetName() != name {
			t.Fatalf("event: %v", e)
		}
	}
}

// TestWatchFromACompactedDeletion: etcd still has the deletion, and no longer what was
// deleted. Such a watch cannot go on, and its client has to be told so that it lists.
// The test is not parallel: it compacts what others may watch.
func TestWatchFromACompactedDeletion(t *testing.T) {
	b := open(t)
	uncached := spec("v1")
	uncached.Cached = false
	st := open1(t, b, uncached)
	rv := create(t, st, gadget("v1", "a", 1)).GetResourceVersion()
	if err := st.Delete(t.Context(), key("a"), &object.Object{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	created, err := strconv.ParseInt(rv, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Client().Compact(t.Context(), created+1); err != nil {
		t.Fatal(err)
	}
	w, err := st.Watch(t.Context(), prefix, storage.ListOptions{ResourceVersion: rv, Recursive: true, Predicate: predicate()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	e := next(t, w)
	status, ok := e.Object.(*metav1.Status)
	if e.Type != watch.Error || !ok || status.Code != http.StatusGone || status.Reason != metav1.StatusReasonExpired {
		t.Errorf("event: %v", e)
	}
}

func TestDestroy(t *testing.T) {
	before := caches()
	b := open(t, func(c *store.Config) { c.CompactionInterval = time.Hour })
	for _, cached := range []bool{true, false} {
		s := spec("v1")
		s.Cached = cached
		st, destroy, err := b.Storage(s)
		if err != nil {
			t.Fatal(err)
		}
		past := create(t, st, gadget("v1", fmt.Sprint("a", cached), 1)).GetResourceVersion()
		create(t, st, gadget("v1", fmt.Sprint("b", cached), 1))
		var watches []watch.Interface
		for _, rv := range []string{"0", past} {
			w, err := st.Watch(t.Context(), prefix, storage.ListOptions{ResourceVersion: rv, Recursive: true, Predicate: predicate()})
			if err != nil {
				t.Fatal(err)
			}
			watches = append(watches, w)
		}
		destroy()
		destroy()
		eventually(t, "the cache runs on", func() bool { return caches() == before })
		for _, w := range watches {
			for range w.ResultChan() { //nolint:revive // ends, or the test hangs
			}
			w.Stop()
		}
		if _, err := st.Watch(t.Context(), prefix, storage.ListOptions{ResourceVersion: "0", Recursive: true, Predicate: predicate()}); err == nil {
			t.Error("a watch of a destroyed storage")
		}
		n := len(list(t, st, "0").Items)
		create(t, st, gadget("v1", fmt.Sprint("late", cached), 1)) // requests under way go on
		if got := len(list(t, st, "0").Items); got != n+1 {
			t.Errorf("%d objects after %d and one more", got, n)
		}
	}
}

// TestRecreationUnderLoad has reads, writes and short watches while the cache is
// dropped and created over and over.
func TestRecreationUnderLoad(t *testing.T) {
	b := open(t, func(c *store.Config) { c.Idle = 20 * time.Millisecond })
	st := open1(t, b, spec("v1"))
	for i := range 4 {
		create(t, st, gadget("v1", fmt.Sprint("o", i), 0))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	var reads, writes, watches atomic.Int64
	worker := func(pause time.Duration, work func(i int) error) {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := work(i); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
				time.Sleep(pause)
			}
		})
	}
	worker(30*time.Millisecond, func(int) error { // pauses longer than the idle time
		l := &object.List{}
		err := st.GetList(ctx, prefix, storage.ListOptions{ResourceVersion: "0", Recursive: true, Predicate: predicate()}, l)
		if err == nil && len(l.Items) != 4 {
			t.Errorf("%d objects", len(l.Items))
		}
		reads.Add(1)
		return err
	})
	worker(7*time.Millisecond, func(i int) error {
		reads.Add(1)
		return st.Get(ctx, key(fmt.Sprint("o", i%4)), storage.GetOptions{ResourceVersion: "0"}, &object.Object{})
	})
	worker(5*time.Millisecond, func(i int) error {
		writes.Add(1)
		return st.GuaranteedUpdate(ctx, key(fmt.Sprint("o", i%4)), &object.Object{}, false, nil, func(in kruntime.Object, _ storage.ResponseMeta) (kruntime.Object, *uint64, error) {
			o := in.(*object.Object).DeepCopy()
			setValue(i + 1)(o)
			return o, nil, nil
		}, nil)
	})
	for range 3 {
		worker(45*time.Millisecond, func(int) error {
			w, err := st.Watch(ctx, prefix, storage.ListOptions{ResourceVersion: "0", Recursive: true, Predicate: predicate()})
			if err != nil {
				return err
			}
			defer w.Stop()
			for range 5 { // the four objects, and a change
				select {
				case e, ok := <-w.ResultChan():
					if !ok {
						return fmt.Errorf("a watch has ended by itself")
					}
					if e.Type == watch.Error {
						return fmt.Errorf("%v", e.Object)
					}
				case <-ctx.Done():
					return nil
				}
			}
			watches.Add(1)
			return nil
		})
	}
	wg.Wait()
	t.Logf("%d reads, %d writes, %d watches", reads.Load(), writes.Load(), watches.Load())
	if watches.Load() == 0 || writes.Load() == 0 {
		t.Error("nothing has been tested")
	}
}

// TestWatchersLoseNothing has watchers that do what clients do: one that the cache
// has given up on, because it did not keep up, goes on from the last version it saw.
func TestWatchersLoseNothing(t *testing.T) {
	const watchers, writers, each = 50, 8, 60
	st := open1(t, open(t), spec("v1"))
	list(t, st, "0") // the cache is there before the watchers are
	rv := create(t, st, gadget("v1", "first", 0)).GetResourceVersion()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	var resumed atomic.Int64
	for range watchers {
		wg.Go(func() {
			seen, last := map[string]bool{}, rv
			for ; len(seen) < writers*each && ctx.Err() == nil; resumed.Add(1) {
				last = follow(ctx, t, st, last, writers*each, seen)
			}
			if len(seen) < writers*each {
				t.Errorf("%d of %d events", len(seen), writers*each)
			}
		})
	}
	for i := range writers {
		wg.Go(func() {
			for j := range each {
				o := gadget("v1", fmt.Sprintf("w%d-%d", i, j), j)
				if err := st.Create(ctx, key(o.GetName()), o, nil, 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d watches for %d watchers", resumed.Load(), watchers)
}

// follow watches until it has seen all, or the watch ends, and returns how far it
// has come.
func follow(ctx context.Context, t *testing.T, st storage.Interface, from string, all int, seen map[string]bool) string {
	w, err := st.Watch(ctx, prefix, storage.ListOptions{ResourceVersion: from, Recursive: true, Predicate: predicate()})
	if err != nil {
		t.Error(err)
		return from
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		o, ok := bare(e.Object).(*object.Object)
		if !ok || e.Type != watch.Added {
			t.Errorf("event: %v", e)
			return from
		}
		before, err := strconv.Atoi(from)
		if err != nil {
			t.Error(err)
		}
		if now, err := strconv.Atoi(o.GetResourceVersion()); err != nil || now <= before || seen[o.GetName()] {
			t.Errorf("%s at %d after %d (%v)", o.GetName(), now, before, err)
		}
		seen[o.GetName()], from = true, o.GetResourceVersion()
		if len(seen) == all {
			break
		}
	}
	return from
}

func TestWatchList(t *testing.T) {
	t.Parallel()
	st := open1(t, open(t), spec("v1"))
	create(t, st, gadget("v1", "a", 1))
	yes := true
	p := predicate()
	p.AllowWatchBookmarks = true
	w, err := st.Watch(t.Context(), prefix, storage.ListOptions{Recursive: true, Predicate: p, SendInitialEvents: &yes, ResourceVersionMatch: "NotOlderThan"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if e := <-w.ResultChan(); e.Type != watch.Added {
		t.Fatalf("first event: %v", e)
	}
	if e := <-w.ResultChan(); e.Type != watch.Bookmark {
		t.Fatalf("second event: %v", e)
	}
}
