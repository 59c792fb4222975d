package store_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/server/object"
	"github.com/espalier-dev/espalier/server/store"
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
