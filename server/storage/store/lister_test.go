package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/internal/object"
)

func filledLister(indexes []Index, n int) *lister {
	l := newLister(&Spec{Indexes: indexes}, storage.APIObjectVersioner{})
	l.contents, l.revision, l.changed = newContents(indexes), 1, 1
	for i := range n {
		l.contents.set(&entry{key: fmt.Sprintf("/g/r/%06d", i), labels: labels.Set{"team": fmt.Sprint(i % 100)}})
	}
	return l
}

func (l *lister) pinNow() {
	l.mu.Lock()
	v := l.current()
	l.mu.Unlock()
	l.keep(v)
}

// TestPinnedTreesAreBounded: new objects replace none, but the nodes of the trees between which they come. A
// state that is pinned keeps those.
func TestPinnedTreesAreBounded(t *testing.T) {
	t.Parallel()
	const n, states = 60_000, 40
	l := filledLister([]Index{{Label: "team"}, {Field: "spec.to"}}, n)
	random := rand.New(rand.NewPCG(1, 1))
	for range states {
		l.pinNow()
		l.mu.Lock()
		for range 1500 {
			l.change(&entry{key: fmt.Sprintf("/g/r/%06d-%d", random.IntN(n), l.revision), labels: labels.Set{"team": "0"}}, false, l.revision+1)
		}
		l.mu.Unlock()
	}
	// Each state has about 3 MB of nodes that the next one has not.
	if len(l.pins) < 10 || len(l.pins) > 30 {
		t.Errorf("%d of %d states are pinned", len(l.pins), states)
	}
}

// TestPinsInUseStay: a list whose pages are being read keeps what it is read from, whatever others begin to read.
func TestPinsInUseStay(t *testing.T) {
	t.Parallel()
	l := filledLister(nil, 100)
	l.pinNow()
	first := l.revision
	for i := range 3 * maxPins {
		l.mu.Lock()
		l.change(&entry{key: fmt.Sprintf("/g/r/new-%d", i)}, false, l.revision+1)
		l.mu.Unlock()
		l.pinNow()
		if v := l.past(first); v == nil || v.tree.Len() != 100 {
			t.Fatalf("the state of the first list is gone after %d others", i+1)
		}
		time.Sleep(time.Microsecond) // times of use differ
	}
	if len(l.pins) != maxPins {
		t.Errorf("%d states are pinned", len(l.pins))
	}
}

// TestPartOfATransactionIsNotPinned: several objects may change in one revision. What there was between them
// is not what there was at that revision.
func TestPartOfATransactionIsNotPinned(t *testing.T) {
	t.Parallel()
	l := filledLister(nil, 10)
	l.mu.Lock()
	l.change(&entry{key: "/g/r/a"}, false, 7)
	between := l.current()
	l.change(&entry{key: "/g/r/b"}, false, 7)
	l.mu.Unlock()
	l.keep(between)
	l.mu.Lock()
	l.change(&entry{key: "/g/r/c"}, false, 8)
	l.mu.Unlock()
	if v := l.past(7); v != nil {
		t.Errorf("at revision 7 there are %d objects", v.tree.Len())
	}
}

// TestForgedRevisionDelaysNobody: a client that asks for a revision of the far future does not slow down
// how the others learn of the newest one.
func TestForgedRevisionDelaysNobody(t *testing.T) {
	t.Parallel()
	f := &feed{backend: &Backend{}}
	f.progress.busy = true // no request is sent
	if again := f.askProgress(5); again < progressPause {
		t.Errorf("before any revision was read, a list asks again after %v", again)
	}
	f.backend.barrier.newest.Store(100)
	for range 5 {
		f.progress.at = time.Time{}
		f.askProgress(1 << 62)
	}
	f.backend.barrier.newest.Store(101)
	if f.askProgress(101); f.progress.pause != progressPause {
		t.Errorf("a list that waits for a new revision asks again after %v", f.progress.pause)
	}
}

// TestEventsReachTheWatchesThatSelectThem: a change costs what the watches of its values cost.
func TestEventsReachTheWatchesThatSelectThem(t *testing.T) {
	t.Parallel()
	l := filledLister([]Index{{Label: "team"}, {Field: "spec.to"}}, 1000)
	l.audience.begin(1)
	var watches []*valueWatch
	for i := range 1000 {
		w := &valueWatch{lister: l, index: i % 2, value: fmt.Sprint(i / 2), prefix: "/g/r/", wake: make(chan struct{}, 1)}
		w.predicate = storage.SelectionPredicate{Label: labels.SelectorFromSet(labels.Set{"team": w.value}), Field: fields.Everything()}
		if w.index == 1 {
			w.predicate.Label, w.predicate.Field = labels.Everything(), fields.OneTermEqualSelector("spec.to", w.value)
		}
		l.audience.join(w)
		watches = append(watches, w)
	}
	change := func(e *entry, deleted bool) (got string) {
		l.mu.Lock()
		l.change(e, deleted, l.revision+1)
		l.mu.Unlock()
		for _, w := range watches {
			for ; w.behind.len() > 0; w.behind.pop() {
				got += fmt.Sprintf("%s %s to %s of %d; ", w.behind.first().Type, w.behind.first().Object.(*sharedObject).GetObjectMeta().GetName(), w.value, w.index)
			}
			select {
			case <-w.wake:
			default:
			}
		}
		return got
	}
	at := func(name, team, to string) *entry {
		o := object.New(schema.GroupVersionKind{Version: "v1", Kind: "Gadget"})
		o.SetName(name)
		return &entry{key: "/g/r/" + name, object: o, labels: labels.Set{"team": team}, fields: fields.Set{"spec.to": to}}
	}
	for _, step := range []struct {
		e       *entry
		deleted bool
		want    string
	}{
		{at("a", "7", "9"), false, "ADDED a to 7 of 0; ADDED a to 9 of 1; "},
		{at("a", "7", "10"), false, "MODIFIED a to 7 of 0; DELETED a to 9 of 1; ADDED a to 10 of 1; "},
		{at("a", "none", "10"), false, "DELETED a to 7 of 0; MODIFIED a to 10 of 1; "},
		{at("b", "none", "none"), false, ""},
		{at("b", "", ""), true, ""},
		{at("a", "", ""), true, "DELETED a to 10 of 1; "},
	} {
		if got := change(step.e, step.deleted); got != step.want {
			t.Errorf("%s: %s, want %s", step.e.key, got, step.want)
		}
	}
	for range 3 * pastChanges {
		change(at("c", "none", "none"), false)
	}
	if n := len(l.audience.changes); n != pastChanges || l.audience.since != l.revision-pastChanges {
		t.Errorf("%d changes since %d at %d", n, l.audience.since, l.revision)
	}
	for _, w := range watches {
		w.leave()
	}
	if len(l.audience.watches[0])+len(l.audience.watches[1]) != 0 {
		t.Error("values without watches are kept")
	}
}

// TestSharedObjects: the watches that get an event share its encodings, and cannot change what others get.
func TestSharedObjects(t *testing.T) {
	t.Parallel()
	o := object.New(schema.GroupVersionKind{Version: "v1", Kind: "Gadget"})
	o.SetName("a")
	s := &sharedObject{Object: o}
	var calls atomic.Int64
	encode := func(obj runtime.Object, w io.Writer) error {
		calls.Add(1)
		obj.(*object.Object).SetName("changed")
		_, err := io.WriteString(w, "text")
		return err
	}
	failing := errors.New("no")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for _, id := range []runtime.Identifier{"json", "yaml"} {
				var b bytes.Buffer
				if err := s.CacheEncode(id, encode, &b); err != nil || b.String() != "text" {
					t.Errorf("%s: %q, %v", id, b.String(), err)
				}
			}
			if err := s.CacheEncode("broken", func(runtime.Object, io.Writer) error { return failing }, io.Discard); !errors.Is(err, failing) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if calls.Load() != 2 || o.GetName() != "a" || s.GetObjectMeta().GetName() != "a" {
		t.Errorf("%d encodings of %s", calls.Load(), o.GetName())
	}
}

// TestListEndsWithItsStorage: a list that waits for a revision does not wait for a storage that is destroyed.
func TestListEndsWithItsStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := filledLister(nil, 10)
		gone := make(chan struct{})
		f := &feed{backend: &Backend{}, gone: gone}
		f.progress.busy = true // no request is sent
		began := time.Now()
		time.AfterFunc(10*time.Millisecond, func() { close(gone) })
		if _, err := l.fresh(t.Context(), f, 100); !errors.Is(err, errNotListed) || time.Since(began) != 10*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		began = time.Now()
		f.gone = nil
		if _, err := l.fresh(t.Context(), f, 100); !storage.IsTooLargeResourceVersion(err) || time.Since(began) != freshTimeout {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
