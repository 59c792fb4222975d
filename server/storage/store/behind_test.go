package store_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// swollen gives an object about 512 KB, others for every i.
func swollen(i int) func(*object.Object) {
	return func(o *object.Object) {
		o.SetAnnotations(map[string]string{"i": fmt.Sprint(i), "fill": strings.Repeat("x", 512<<10)})
	}
}

// heap is what is alive, in MB.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc >> 20)
}

// A watcher that does not read must not pin more than its limit, nor must the
// history of the watch cache grow with the size of objects.
func TestWatcherThatDoesNotReadPinsLittle(t *testing.T) {
	const writes = 500 // 250 MB
	st := open1(t, open(t), spec("v1"))
	rv := create(t, st, gadget("v1", "large", 0)).GetResourceVersion()
	before := heap()
	w, err := st.Watch(t.Context(), prefix, storage.ListOptions{ResourceVersion: rv, Recursive: true, Predicate: predicate()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for i := range writes {
		update(t, st, "large", swollen(i))
	}
	if grown := heap() - before; grown > 160 {
		t.Errorf("%d writes of 512 KB pin %d MB", writes, grown)
	} else {
		t.Logf("%d MB", grown)
	}
}

// limited is a storage with objects of 512 KB whose watchers may be 4 MB behind,
// and 16 MB together.
func limited(t *testing.T, cached bool) storage.Interface {
	t.Helper()
	s := spec("v1")
	s.Cached = cached
	return open1(t, open(t, func(c *store.Config) { c.MaxBehind, c.MaxBehindSum = 4<<20, 16<<20 }), s)
}

func watchFrom(t *testing.T, st storage.Interface, rv string) watch.Interface {
	t.Helper()
	w, err := st.Watch(t.Context(), prefix, storage.ListOptions{ResourceVersion: rv, Recursive: true, Predicate: predicate()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// read returns what a watch still has, up to a number of events, and whether it
// has ended.
func read(t *testing.T, w watch.Interface, most int) (events []*object.Object, ended bool) {
	t.Helper()
	for len(events) < most {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				return events, true
			}
			if e.Type == watch.Error {
				t.Fatal(e.Object)
			}
			if e.Type != watch.Bookmark {
				events = append(events, bare(e.Object).(*object.Object))
			}
		case <-time.After(time.Minute):
			t.Fatalf("the watch neither goes on nor ends after %d events", len(events))
		}
	}
	return events, false
}

// A watch that is too far behind delivers what it has kept and ends; a client
// that goes on from there misses nothing.
func TestWatchTooFarBehindEnds(t *testing.T) {
	for name, cached := range map[string]bool{"cached": true, "uncached": false} {
		t.Run(name, func(t *testing.T) {
			const writes = 60 // 30 MB
			st := limited(t, cached)
			rv := create(t, st, gadget("v1", "large", 0)).GetResourceVersion()
			w := watchFrom(t, st, rv)
			for i := range writes {
				update(t, st, "large", swollen(i))
			}
			seen := 0
			for watches := 1; seen < writes; watches++ {
				events, ended := read(t, w, writes-seen)
				if len(events) == 0 {
					t.Fatal("a watch ends before it has begun")
				}
				if watches == 1 && (!ended || len(events) > 25) {
					t.Errorf("a watcher that did not read gets %d events at once, ended: %v", len(events), ended)
				}
				for _, o := range events {
					if got := o.GetAnnotations()["i"]; got != fmt.Sprint(seen) {
						t.Fatalf("write %s in place of %d", got, seen)
					}
					seen++
				}
				w = watchFrom(t, st, events[len(events)-1].GetResourceVersion())
			}
		})
	}
}

// What a watch begins with may be more than it may be behind.
func TestWatchBeginsWithMoreThanItMayBeBehind(t *testing.T) {
	for name, cached := range map[string]bool{"cached": true, "uncached": false} {
		t.Run(name, func(t *testing.T) {
			const objects = 40 // 20 MB
			st := limited(t, cached)
			for i := range objects {
				o := gadget("v1", fmt.Sprint("large-", i), i)
				swollen(i)(o)
				create(t, st, o)
			}
			w := watchFrom(t, st, "0")
			time.Sleep(500 * time.Millisecond)
			if events, ended := read(t, w, objects); ended {
				t.Errorf("the watch ends after %d of %d objects", len(events), objects)
			}
		})
	}
}

// All watchers together may be behind by a limit. What they share counts once.
func TestWatchersTogether(t *testing.T) {
	const watchers = 20
	st := limited(t, true)
	rv := create(t, st, gadget("v1", "large", 0)).GetResourceVersion()
	var same []watch.Interface
	for range watchers {
		same = append(same, watchFrom(t, st, rv))
	}
	for i := range 6 { // 3 MB, 60 MB if each counts for itself
		update(t, st, "large", swollen(i))
	}
	for i, w := range same {
		if events, ended := read(t, w, 6); ended {
			t.Errorf("watch %d ends after %d events", i, len(events))
		}
	}
}
