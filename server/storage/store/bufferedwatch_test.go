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

// Over the limit of all watches, a tenant whose many watches each keep little loses some of them, and another one
// with a watch that keeps more than each of these loses nothing.
func TestRelieveIsFairBetweenTenants(t *testing.T) {
	l := newLimits(64<<20, 10<<20)
	one, many := &Backend{}, &Backend{}
	fair := watch.NewRaceFreeFake()
	victim := l.buffered(fair, source{of: one, live: always})
	for range 3 {
		fair.Modify(&sized{size: 1 << 20})
	}
	var flood []*bufferedWatch
	for range 40 {
		inner := watch.NewRaceFreeFake()
		flood = append(flood, l.buffered(inner, source{of: many, live: always}).(*bufferedWatch))
		for range 4 { // one is handed over
			inner.Modify(&sized{size: 100 << 10})
		}
		time.Sleep(relieveEvery / 20)
	}
	inner := watch.NewRaceFreeFake()
	flood = append(flood, l.buffered(inner, source{of: many, live: always}).(*bufferedWatch))
	cut := func() (n int) {
		for _, w := range flood {
			select {
			case <-w.done:
				n++
			default:
			}
		}
		return n
	}
	for deadline := time.Now().Add(time.Minute); cut() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no watch of the tenant with many is cut")
		}
		inner.Modify(&sized{size: 100 << 10})
	}
	select {
	case <-victim.(*bufferedWatch).done:
		t.Error("the watch of the other tenant is cut")
	default:
	}
	for _, w := range flood {
		w.Stop()
	}
	victim.Stop()
}

// TestShare: what some parts leave of a limit, the others have.
func TestShare(t *testing.T) {
	for _, test := range []struct {
		totals []int64
		share  int64
	}{
		{[]int64{200}, 100}, {[]int64{200, 10}, 90}, {[]int64{10, 200, 80}, 45}, {[]int64{60, 60, 60, 60}, 25}, {[]int64{1, 2, 3, 500}, 94},
	} {
		var parts []*part
		for _, total := range test.totals {
			parts = append(parts, &part{total: total})
		}
		if share := shareOf(parts, 100); share != test.share {
			t.Errorf("of %v each may keep %d, not %d", test.totals, share, test.share)
		}
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
