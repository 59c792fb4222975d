package store_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// valueWatches counts the watches that go by an index, by their goroutines.
func valueWatches() int {
	buf := make([]byte, 16<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), "store.(*valueWatch).run(")
}

// TestValueWatches watches by indexes and without a cache while objects change, and move between the
// values. Both get the same events, in the same order.
func TestValueWatches(t *testing.T) {
	b := open(t)
	bare, indexed := spec("v1"), spec("v1")
	bare.Cached = false
	indexed.Indexes = []store.Index{{Label: "parity"}, {Field: "metadata.name"}}
	direct, cached := open1(t, b, bare), open1(t, b, indexed)
	h := &historian{}
	random := rand.New(rand.NewPCG(11, 3))
	for range 60 {
		if err := h.write(t.Context(), cached, random); err != nil {
			t.Fatal(err)
		}
	}
	list(t, cached, "")
	list(t, cached, "")
	var done atomic.Bool
	var writer, readers sync.WaitGroup
	writer.Go(func() {
		for !done.Load() {
			if err := h.write(t.Context(), cached, random); err != nil {
				t.Error(err)
				return
			}
		}
	})
	type pair struct {
		what          string
		direct, cache watch.Interface
	}
	var pairs []pair
	selectors := []string{"parity=1", "parity in (0)", "field:metadata.name=n07", "field:metadata.name=n07,metadata.namespace=nt"}
	for n := range 24 {
		selector, of := selectors[n%len(selectors)], prefix
		if n%3 == 0 {
			of += "/nt"
		}
		l := &object.List{}
		if err := cached.GetList(t.Context(), of, storage.ListOptions{Recursive: true, Predicate: predicate(selector)}, l); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(n%5) * 10 * time.Millisecond) // there are changes in between
		opts := storage.ListOptions{Recursive: true, Predicate: predicate(selector), ResourceVersion: l.ResourceVersion}
		p := pair{what: fmt.Sprintf("%s %s after %s", of, selector, l.ResourceVersion)}
		var err error
		if p.direct, err = direct.Watch(t.Context(), of, opts); err != nil {
			t.Fatal(err)
		}
		if p.cache, err = cached.Watch(t.Context(), of, opts); err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, p)
	}
	eventually(t, "not all watches go by an index", func() bool { return valueWatches() == len(pairs) })
	time.Sleep(500 * time.Millisecond)
	done.Store(true)
	writer.Wait()
	last := int64(0)
	for _, value := range []int{1, 0} { // every watch has an event at the end
		if err := h.put(t.Context(), cached, "nt", "n07", value); err != nil {
			t.Fatal(err)
		}
		last = h.events[len(h.events)-1].revision
	}
	for _, p := range pairs {
		readers.Go(func() {
			want, got := eventsUntil(t, p.direct, last), eventsUntil(t, p.cache, last)
			if !slices.Equal(got, want) {
				t.Errorf("%s: %d events %.300v, want %d %.300v", p.what, len(got), got, len(want), want)
			}
			p.direct.Stop()
			p.cache.Stop()
		})
	}
	readers.Wait()
	eventually(t, "watches that were stopped go on", func() bool { return valueWatches() == 0 })
}

func eventsUntil(t *testing.T, w watch.Interface, last int64) (all []string) {
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				t.Error("a watch has ended")
				return all
			}
			o, ok := bare(e.Object).(*object.Object)
			if !ok {
				t.Errorf("%s %v", e.Type, e.Object)
				return all
			}
			if e.Type != watch.Bookmark {
				all = append(all, fmt.Sprintf("%s %s/%s %s", e.Type, o.GetNamespace(), o.GetName(), o.GetResourceVersion()))
			}
			if o.GetResourceVersion() == fmt.Sprint(last) {
				return all
			}
		case <-time.After(time.Minute):
			t.Errorf("after %d events there is no other", len(all))
			return all
		}
	}
}

// TestValueWatchBegins: a watch that begins with objects has those of the index, and a bookmark after them.
func TestValueWatchBegins(t *testing.T) {
	b := open(t)
	s := spec("v1")
	s.Indexes = []store.Index{{Label: "parity"}}
	st := open1(t, b, s)
	for i := range 20 {
		create(t, st, gadget("v1", fmt.Sprintf("n%02d", i), i))
	}
	list(t, st, "")
	list(t, st, "")
	yes := true
	for _, listing := range []*bool{&yes, nil} {
		opts := storage.ListOptions{Recursive: true, Predicate: predicate("parity=1"), SendInitialEvents: listing}
		if listing != nil {
			opts.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
			opts.Predicate.AllowWatchBookmarks = true
		}
		w, err := st.Watch(t.Context(), prefix, opts)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the watch does not go by the index", func() bool { return valueWatches() == 1 })
		for i := 1; i < 20; i += 2 {
			if e := next(t, w); e.Type != watch.Added || e.Object.(*object.Object).GetName() != fmt.Sprintf("n%02d", i) {
				t.Fatalf("event %d: %v", i, e)
			}
		}
		if listing != nil {
			e := <-w.ResultChan()
			mark := bare(e.Object).(*object.Object)
			if e.Type != watch.Bookmark || mark.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" || mark.GetResourceVersion() == "" {
				t.Errorf("after the objects comes %v", e)
			}
		}
		moved := update(t, st, "n03", func(o *object.Object) { o.SetLabels(map[string]string{"parity": "0"}) })
		if e := next(t, w); e.Type != watch.Deleted || e.Object.(*object.Object).GetResourceVersion() != moved.GetResourceVersion() {
			t.Errorf("an object that is not selected any more: %v", e)
		}
		update(t, st, "n03", func(o *object.Object) { o.SetLabels(map[string]string{"parity": "1"}) })
		if e := next(t, w); e.Type != watch.Added {
			t.Errorf("an object that is selected again: %v", e)
		}
		w.Stop()
		eventually(t, "the watch goes on", func() bool { return valueWatches() == 0 })
	}
}
