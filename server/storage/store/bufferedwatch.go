package store

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// maxEvents is how many events a watcher may be behind, whatever their size.
	maxEvents = 16 << 10
	// maxHanded is how many bytes of events are handed to the watcher ahead of
	// what it has taken. They are not counted as behind.
	maxHanded = 256 << 10
	// The watcher of large events is looked at again after such times.
	minPause, maxPause = time.Millisecond, 256 * time.Millisecond
	// Events that are held back are looked at again after that.
	heldPause = 20 * time.Millisecond
)

// bufferedWatch takes the events of a watch at once and keeps those that the client has
// not taken yet. The watch cache itself buffers some ten events for a watcher, and ends
// the watches of slower clients: a burst of writes would end most of them.
//
// A watcher may be behind by a number of bytes (Config.MaxBehind). Then the watch
// takes no more events: what is kept is still delivered, and the watch ends.
// Clients go on from the last event they got, as after every end of a watch. Of
// the events that a watch begins with, no more are taken than may be kept, and
// the watch goes on as fast as its watcher reads: there may be any number of them.
//
// When its storage is destroyed, what is kept is dropped: it was read by a schema or
// a conversion that has been replaced. The watcher may still take what was handed to
// it before. It cannot be taken back: the watcher would get a later event instead.
//
// It costs a goroutine and, per event, 48 bytes while the event is kept.
type bufferedWatch struct {
	inner  watch.Interface
	out    chan watch.Event
	stop   func()
	done   chan struct{}
	cut    chan struct{} // closed, by limits, to drop what is kept
	limits *limits
	shared *shared // with the watchers of the same cache; nil if there are none
	of     *Backend
	// live reports whether an event is later than the beginning of the watch.
	live func(watch.Event) bool
	// current is that of Spec; nil if events are never held back.
	current func() bool
	// ended is closed when the storage is destroyed.
	ended <-chan struct{}
	// seen is called with every event, and returns what is passed on; may be nil.
	seen func(watch.Event) watch.Event
	// deliver is what Spec.Deliver has returned.
	deliver func(runtime.Object) runtime.Object

	// What is behind; run writes, limits reads.
	bytes, events atomic.Int64
	since         atomic.Int64 // the position before the oldest event
	reported      int64        // what limits.sum has of bytes
	cutting       bool         // guarded by limits.mu

	size   sizer
	handed handed
	pause  time.Duration
}

// source says what a bufferedWatch takes its events from.
type source struct {
	shared  *shared
	of      *Backend
	live    func(watch.Event) bool
	current func() bool
	ended   <-chan struct{}
	seen    func(watch.Event) watch.Event
	deliver func(runtime.Object) runtime.Object
}

// buffered returns the watch with a bufferedWatch behind it.
func (l *limits) buffered(w watch.Interface, from source) watch.Interface {
	r := &bufferedWatch{
		inner: w, out: make(chan watch.Event, handedEvents), done: make(chan struct{}), cut: make(chan struct{}),
		limits: l, shared: from.shared, of: from.of, live: from.live, current: from.current, ended: from.ended, seen: from.seen, deliver: from.deliver,
	}
	r.stop = sync.OnceFunc(func() {
		close(r.done)
		w.Stop()
	})
	l.add(r)
	go r.run()
	return r
}

// Stop implements watch.Interface.
func (r *bufferedWatch) Stop() { r.stop() }

// ResultChan implements watch.Interface.
func (r *bufferedWatch) ResultChan() <-chan watch.Event { return r.out }

// run passes events on until the watch is stopped, its storage is destroyed, or it
// has ended and all of its events are taken.
func (r *bufferedWatch) run() {
	defer close(r.out)
	defer r.limits.remove(r)
	var behind queue
	in := r.inner.ResultChan()
	for in != nil || behind.len() > 0 {
		if r.over() {
			r.stop()
			return
		}
		from := in
		if in != nil && (behind.bytes >= r.limits.perWatch || behind.len() >= maxEvents) {
			from = nil
			if r.live(behind.last().Event) {
				r.inner.Stop()
				in = nil
				watchesEnded.WithLabelValues("behind").Inc()
			}
		}
		to, again := r.target(&behind)
		var next kept
		if to != nil {
			next = behind.first()
		}
		select {
		case event, ok := <-from:
			if !ok {
				in = nil
				continue
			}
			if event = forgotten(event); r.seen != nil {
				event = r.seen(event)
			}
			behind.push(r.keep(event))
			r.report(&behind)
		case to <- next.Event:
			r.handed.add(next.size)
			behind.pop()
			r.pause = 0
			r.report(&behind)
		case <-again:
		case <-r.ended: // the next round ends
		case <-r.cut:
			r.stop()
			watchesEnded.WithLabelValues("memory").Inc()
			return
		case <-r.done:
			return
		}
	}
}

// over reports whether the storage is destroyed. A select that is ready to hand an
// event over, too, would choose that as often.
func (r *bufferedWatch) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// target returns where the next event goes to. While this process does not know the
// schema as others do, that is nowhere; so it is while much is handed to the
// watcher that it has not taken: only large events come to that. There is a time to
// look again.
func (r *bufferedWatch) target(behind *queue) (to chan<- watch.Event, again <-chan time.Time) {
	if behind.len() == 0 {
		return nil, nil
	}
	if r.current != nil && !r.current() {
		return nil, time.After(heldPause)
	}
	if r.handed.bytes < maxHanded || r.handed.settle(len(r.out)) < maxHanded {
		return r.out, nil
	}
	r.pause = min(max(2*r.pause, minPause), maxPause)
	return nil, time.After(r.pause)
}

// keep measures an event, and makes it what the watcher gets.
func (r *bufferedWatch) keep(event watch.Event) kept {
	k := kept{Event: event, size: r.size.of(event.Object)}
	if r.deliver != nil {
		switch event.Type {
		case watch.Added, watch.Modified, watch.Deleted:
			k.Object = r.deliver(event.Object)
		}
	}
	if r.shared != nil {
		k.position = r.shared.passed.Load() - k.size
	}
	return k
}

// report tells how much is behind: exactly to the reader's Report, in steps to the sum
// that all watches share.
func (r *bufferedWatch) report(behind *queue) {
	r.bytes.Store(behind.bytes)
	r.events.Store(int64(behind.len()))
	if behind.len() > 0 {
		r.since.Store(behind.first().position)
	}
	if d := behind.bytes - r.reported; d >= reportStep || d <= -reportStep || behind.bytes == 0 && r.reported != 0 {
		r.reported = behind.bytes
		if r.limits.sum.Add(d) > r.limits.total && d > 0 {
			r.limits.relieve()
		}
	}
}

// span is how many bytes the cache has passed on since the oldest event that is
// behind: all that the watchers of a cache keep is within the longest of them.
func (r *bufferedWatch) span() int64 {
	bytes := r.bytes.Load()
	if bytes == 0 || r.shared == nil {
		return bytes
	}
	return max(bytes, r.shared.passed.Load()-r.since.Load())
}

// handedEvents is how many events are handed to a watcher ahead of what it has
// taken. The handler flushes when it has taken all of them.
const handedEvents = 16

// handed knows the sizes of the events in the channel of a bufferedWatch.
type handed struct {
	sizes       [handedEvents + 1]int64
	first, size int // in sizes
	bytes       int64
}

// add is for an event that has just been sent.
func (h *handed) add(size int64) {
	if h.size == len(h.sizes) {
		h.settle(h.size - 1) // there is no room for more in the channel
	}
	h.sizes[(h.first+h.size)%len(h.sizes)] = size
	h.size++
	h.bytes += size
}

// settle forgets all but the last n, and returns the sum of their sizes.
func (h *handed) settle(n int) int64 {
	for ; h.size > n; h.size-- {
		h.bytes -= h.sizes[h.first]
		h.first = (h.first + 1) % len(h.sizes)
	}
	return h.bytes
}

// kept is an event that its watcher has not taken.
type kept struct {
	watch.Event
	size     int64
	position int64 // what the cache had passed on before it, in bytes
}

// queue is a list of events that are taken in the order in which they came.
type queue struct {
	events []kept
	head   int
	bytes  int64 // of all events in it
}

func (q *queue) len() int { return len(q.events) - q.head }

func (q *queue) first() kept { return q.events[q.head] }

func (q *queue) last() kept { return q.events[len(q.events)-1] }

func (q *queue) push(e kept) {
	if q.head > 64 && q.head*2 > len(q.events) {
		n := copy(q.events, q.events[q.head:])
		clear(q.events[n:])
		q.events, q.head = q.events[:n], 0
	}
	q.events = append(q.events, e)
	q.bytes += e.size
}

func (q *queue) pop() {
	q.bytes -= q.events[q.head].size
	q.events[q.head] = kept{} // the object may be the last of its kind
	q.head++
	if q.head == len(q.events) {
		q.events, q.head = q.events[:0], 0
		if cap(q.events) > 1024 {
			q.events = nil
		}
	}
}
