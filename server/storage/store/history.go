package store

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// historyBytes is how many bytes of events a watch cache keeps, in order to let
// watches go on where they were. It keeps at least 100 events, and at most twice
// the bytes, since it doubles the number of events that it has room for.
const historyBytes = 64 << 20

// paced is a watch that makes its cache keep historyBytes at most.
//
// The cache keeps the events of a window of time, 75 s at least, whatever their
// size: one writer of objects of 1 MB fills gigabytes. It goes by the times that
// events carry. A paced watch dates events so that historyBytes of them take at
// least the window: while they come more slowly than that, the times are true.
//
// It costs a goroutine per cache, and an allocation per event while they come
// faster.
type paced struct {
	inner  watch.Interface
	out    chan watch.Event
	done   chan struct{} // closed when the cache takes no more events
	stop   func()
	ended  chan struct{} // closed when the cache gets no more events
	end    func()
	shared *shared
	window time.Duration
	rv     func(runtime.Object) (uint64, error)
	// taken returns an event as the cache takes it, if there is one.
	taken func(watch.Event) (watch.Event, bool)
	date  time.Time // of the last event
	size  sizer
}

func newPaced(w watch.Interface, s *shared, window time.Duration, versioner storage.Versioner, taken func(watch.Event) (watch.Event, bool)) *paced {
	p := &paced{
		inner: w, out: make(chan watch.Event, 100), done: make(chan struct{}), ended: make(chan struct{}),
		shared: s, window: window, rv: versioner.ObjectResourceVersion, taken: taken,
	}
	p.stop = sync.OnceFunc(func() {
		close(p.done)
		w.Stop()
	})
	p.end = sync.OnceFunc(func() {
		close(p.ended)
		w.Stop()
	})
	go p.run()
	return p
}

// Stop implements watch.Interface. The reflector of the cache calls it when it has
// stored the last event that it takes.
func (p *paced) Stop() { p.stop() }

// ResultChan implements watch.Interface.
func (p *paced) ResultChan() <-chan watch.Event { return p.out }

func (p *paced) run() {
	defer close(p.out)
	for p.pass() {
	}
	select {
	case <-p.ended: // without the events that the cache has not taken
		for len(p.out) > 0 {
			select {
			case <-p.out:
			default:
			}
		}
	default:
	}
}

// pass passes one event on, and reports whether there may be another.
func (p *paced) pass() bool {
	var event watch.Event
	ok := false
	select {
	case event, ok = <-p.inner.ResultChan():
	case <-p.ended:
	}
	if !ok {
		return false
	}
	if event, ok = p.taken(event); !ok {
		return true
	}
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		event.Object = p.dated(event.Object)
	}
	select {
	case p.out <- event:
		return true
	case <-p.done:
	case <-p.ended:
	}
	return false
}

// dated counts an object and gives it a later time than now, if too many bytes
// have come.
func (p *paced) dated(obj runtime.Object) runtime.Object {
	inner := obj
	if timed, ok := obj.(storage.WatchEventWithRecordTime); ok {
		inner = timed.Unwrap()
	}
	size := p.size.of(inner)
	p.shared.passed.Add(size)
	if revision, err := p.rv(inner); err == nil {
		p.shared.latest.Store(revision)
	}
	p.date = p.date.Add(time.Duration(float64(p.window) * float64(size) / historyBytes))
	if now := time.Now(); !p.date.After(now) {
		p.date = now
		return obj
	}
	return &datedObject{Object: inner, date: p.date}
}

// datedObject is an object on its way into a watch cache, which unwraps it.
type datedObject struct {
	runtime.Object
	date time.Time
}

var _ storage.WatchEventWithRecordTime = (*datedObject)(nil)

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (d *datedObject) GetObjectMeta() metav1.Object {
	m, err := meta.Accessor(d.Object)
	if err != nil {
		return nil
	}
	return m
}

// DeepCopyObject implements runtime.Object.
func (d *datedObject) DeepCopyObject() runtime.Object {
	return &datedObject{Object: d.Object.DeepCopyObject(), date: d.date}
}

// RecordTime implements storage.WatchEventWithRecordTime.
func (d *datedObject) RecordTime() time.Time { return d.date }

// Unwrap implements storage.WatchEventWithRecordTime.
func (d *datedObject) Unwrap() runtime.Object { return d.Object }
