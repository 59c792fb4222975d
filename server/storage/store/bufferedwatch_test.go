package store

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func event(i int) watch.Event {
	return watch.Event{Type: watch.Modified, Object: &metav1.Status{Message: fmt.Sprint(i)}}
}

func buffered(w watch.Interface) watch.Interface {
	return newLimits(0, 0).buffered(w, source{live: always})
}

// A watcher that takes nothing for a while gets everything, in order, also what
// came before the watch ended.
func TestBufferedWatchKeepsWhatIsNotTaken(t *testing.T) {
	inner := watch.NewFakeWithChanSize(1, false)
	r := buffered(inner)
	const n = 5000
	for i := range n {
		select {
		case <-time.After(time.Minute):
			t.Fatalf("event %d is not taken", i)
		default:
			inner.Action(watch.Modified, event(i).Object)
		}
	}
	inner.Stop()
	i := 0
	for e := range r.ResultChan() {
		if got := e.Object.(*metav1.Status).Message; got != fmt.Sprint(i) {
			t.Fatalf("event %s in place of %d", got, i)
		}
		i++
	}
	if i != n {
		t.Errorf("%d events, want %d", i, n)
	}
}

func TestBufferedWatchStops(t *testing.T) {
	inner := watch.NewFakeWithChanSize(1, false)
	r := buffered(inner)
	inner.Action(watch.Modified, event(0).Object)
	r.Stop()
	r.Stop()
	deadline := time.After(time.Minute)
	for {
		select {
		case _, ok := <-r.ResultChan():
			if !ok {
				return
			}
		case <-deadline:
			t.Fatal("the channel stays open")
		}
	}
}

func TestQueueForgetsWhatIsTaken(t *testing.T) {
	var q queue
	next, taken := 0, 0
	for round := range 1000 {
		for range round % 7 {
			q.push(kept{Event: event(next), size: 1})
			next++
		}
		for range round % 5 {
			if q.len() == 0 {
				break
			}
			if got := q.first().Object.(*metav1.Status).Message; got != fmt.Sprint(taken) {
				t.Fatalf("event %s in place of %d", got, taken)
			}
			q.pop()
			taken++
		}
	}
	if q.len() != next-taken || len(q.events) > 3*q.len()+200 {
		t.Errorf("%d events of %d, in a slice of %d", q.len(), next-taken, len(q.events))
	}
}

// sized is an object that tells its size.
type sized struct {
	metav1.Status
	size int
}

func (s *sized) Size() int { return s.size }

// Over the limit of all watches, those are cut that keep most.
func TestRelieveCutsTheFurthestBehind(t *testing.T) {
	l := newLimits(64<<20, 10<<20)
	much, little := watch.NewRaceFreeFake(), watch.NewRaceFreeFake()
	furthest, near := l.buffered(much, source{live: always}), l.buffered(little, source{live: always})
	little.Modify(&sized{size: 1 << 20})
	for range 20 {
		time.Sleep(10 * time.Millisecond) // relieve does not look all the time
		much.Modify(&sized{size: 1 << 20})
	}
	taken := 0
	for range furthest.ResultChan() {
		taken++
	}
	if taken > 1 {
		t.Errorf("the watch that is cut still delivers %d events", taken)
	}
	select {
	case _, ok := <-near.ResultChan():
		if !ok {
			t.Error("the other watch is cut, too")
		}
	case <-time.After(time.Minute):
		t.Error("no event")
	}
	near.Stop()
	for deadline := time.Now().Add(time.Minute); l.sum.Load() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are behind after all watches have ended", l.sum.Load())
		}
	}
}

// Watchers of a cache keep the same events; those of different caches do not.
func TestSharedEventsCountOnce(t *testing.T) {
	l := newLimits(0, 0)
	var one, other shared
	for _, of := range []*shared{&one, &one, &one, &other, nil, nil} {
		r := &bufferedWatch{limits: l, shared: of}
		r.bytes.Store(10)
		r.events.Store(1)
		l.add(r)
	}
	one.passed.Store(12)
	other.passed.Store(10)
	if got, want := l.lag(), (lag{bytes: 12 + 10 + 10 + 10, maxBytes: 10, events: 6, maxEvents: 1}); got != want {
		t.Errorf("got %+v, not %+v", got, want)
	}
}

func TestBufferedWatchAllocatesNothingForSizes(t *testing.T) {
	var s sizer
	o := &sized{size: 100}
	if n := testing.AllocsPerRun(100, func() { s.of(o) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
