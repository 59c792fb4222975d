package chain

import (
	"context"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
)

// settings counts what is configured for the plugins.
type settings struct {
	sources  []*source
	complete atomic.Bool // all sources have been read once
}

// source counts the objects of one resource.
type source struct {
	count        atomic.Int64
	some         chan struct{} // has an element if an object has come
	registration cache.ResourceEventHandlerRegistration
}

// watch counts the objects of an informer from now on.
func (s *settings) watch(informer cache.SharedIndexInformer) (*source, error) {
	w := &source{some: make(chan struct{}, 1)}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) {
			w.count.Add(1)
			select {
			case w.some <- struct{}{}:
			default:
			}
		},
		DeleteFunc: func(any) { w.count.Add(-1) },
	})
	w.registration = registration
	s.sources = append(s.sources, w)
	return w, err
}

// none reports that nothing is configured. It is false until all sources are read.
func (s *settings) none() bool {
	if !s.complete.Load() && !s.read() {
		return false
	}
	for _, w := range s.sources {
		if w.count.Load() != 0 {
			return false
		}
	}
	return true
}

// read reports whether all sources have been read once.
func (s *settings) read() bool {
	for _, w := range s.sources {
		if !w.registration.HasSynced() {
			return false
		}
	}
	s.complete.Store(true)
	return true
}

// wait returns when there is an object, or with the context.
func (w *source) wait(ctx context.Context) error {
	for w.count.Load() == 0 {
		select {
		case <-w.some:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
