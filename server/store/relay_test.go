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

// A watcher that takes nothing for a while gets everything, in order, also what
// came before the watch ended.
func TestRelayKeepsWhatIsNotTaken(t *testing.T) {
	inner := watch.NewFakeWithChanSize(1, false)
	r := relayed(inner)
	const n = 5000
	for i := range n {
		select {
		case <-time.After(10 * time.Second):
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

func TestRelayStops(t *testing.T) {
	inner := watch.NewFakeWithChanSize(1, false)
	r := relayed(inner)
	inner.Action(watch.Modified, event(0).Object)
	r.Stop()
	r.Stop()
	deadline := time.After(10 * time.Second)
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
			q.push(event(next))
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
