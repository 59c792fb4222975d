package store

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// maxBehind is how many events a watcher may be behind before its watch is
// ended. An event is a pointer to an object that all watchers share.
const maxBehind = 16 << 10

// relay takes the events of a watch cache at once and keeps those that their
// watcher has not taken yet. The cache itself has room for some ten events of a
// watcher, and ends the watches of those who are not fast enough: a burst of
// writes would end most of them.
type relay struct {
	inner watch.Interface
	out   chan watch.Event
	stop  func()
	done  chan struct{}
}

func relayed(w watch.Interface) watch.Interface {
	r := &relay{inner: w, out: make(chan watch.Event, 16), done: make(chan struct{})}
	r.stop = sync.OnceFunc(func() {
		close(r.done)
		w.Stop()
	})
	go r.run()
	return r
}

// Stop implements watch.Interface.
func (r *relay) Stop() { r.stop() }

// ResultChan implements watch.Interface.
func (r *relay) ResultChan() <-chan watch.Event { return r.out }

// run passes events on until the watch is stopped, or has ended and all of its
// events are taken.
func (r *relay) run() {
	defer close(r.out)
	var behind queue
	in := r.inner.ResultChan()
	for in != nil || behind.len() > 0 {
		from, to, next := in, r.out, watch.Event{}
		switch n := behind.len(); {
		case n == 0:
			to = nil
		case n >= maxBehind:
			from = nil // the cache is going to end it
			fallthrough
		default:
			next = behind.first()
		}
		select {
		case event, ok := <-from:
			if !ok {
				in = nil
				continue
			}
			behind.push(event)
		case to <- next:
			behind.pop()
		case <-r.done:
			return
		}
	}
}

// queue is a list of events that are taken in the order in which they came.
type queue struct {
	events []watch.Event
	head   int
}

func (q *queue) len() int { return len(q.events) - q.head }

func (q *queue) first() watch.Event { return q.events[q.head] }

func (q *queue) push(e watch.Event) {
	if q.head > 64 && q.head*2 > len(q.events) {
		n := copy(q.events, q.events[q.head:])
		clear(q.events[n:])
		q.events, q.head = q.events[:n], 0
	}
	q.events = append(q.events, e)
}

func (q *queue) pop() {
	q.events[q.head] = watch.Event{} // the object may be the last of its kind
	q.head++
	if q.head == len(q.events) {
		q.events, q.head = q.events[:0], 0
		if cap(q.events) > 1024 {
			q.events = nil
		}
	}
}
