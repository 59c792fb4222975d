package garbagecollector

import (
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// patience is how long the work on one object may take.
	patience = time.Minute
	// slowness is how long the work on one object may take before another worker takes
	// the place of the waiting one, up to maxRelief of them.
	slowness  = time.Second
	maxRelief = 200
	// busyDelay is when an object is tried again whose kind makes trouble.
	busyDelay = 200 * time.Millisecond
)

// health keeps a kind whose requests fail, maybe after a long time, from taking
// up all workers: it has one of them until it has recovered.
type health struct {
	mu    sync.Mutex
	kinds map[schema.GroupResource]*condition
}

type condition struct{ busy, failed int }

// enter reports whether an object of the kind may be worked on now.
func (h *health) enter(kind schema.GroupResource) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.kinds[kind]
	if c == nil {
		c = &condition{}
		if h.kinds == nil {
			h.kinds = map[schema.GroupResource]*condition{}
		}
		h.kinds[kind] = c
	}
	if c.failed > 0 && c.busy > 0 {
		return false
	}
	c.busy++
	return true
}

// slow says that something takes long, which is trouble as well.
func (h *health) slow(kind schema.GroupResource) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kinds[kind].failed++
}

// leave says how it went. Kinds without trouble and without work are forgotten.
func (h *health) leave(kind schema.GroupResource, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.kinds[kind]
	c.busy--
	switch {
	case err == nil:
		c.failed = 0
	case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
		c.failed++
	}
	if c.busy == 0 && c.failed == 0 {
		delete(h.kinds, kind)
	}
}
