package catalog

import (
	"context"
	"sync"
	"time"
)

// catchUpTime is the timeout of one attempt to catch up.
const catchUpTime = time.Second

// CatchUp returns when the catalog shows everything that was in etcd when the call
// began. Callers use it before they answer that a resource does not exist. Concurrent
// calls share a read of etcd, and there is one read at a time.
func (c *Catalog) CatchUp(ctx context.Context) error {
	a := c.catching.join(c.catchUp)
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Catalog) catchUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), catchUpTime)
	defer cancel()
	revision, err := c.storage.GetCurrentResourceVersion(ctx)
	if err != nil {
		return err
	}
	if c.revision.wait(revision) == nil {
		return nil
	}
	// Most revisions are of other keys: etcd sends nothing but progress, which is
	// requested at once.
	_ = c.storage.RequestWatchProgress(ownStream(ctx))
	return c.WaitFor(ctx, revision)
}

// attempts are the current read and the next one. A call that comes during a read
// waits for the next one: the current read may be older than the call.
type attempts struct {
	mu            sync.Mutex
	running, next *attempt
}

type attempt struct {
	done chan struct{}
	err  error
}

// join returns an attempt that has not begun before the call.
func (a *attempts) join(do func() error) *attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running == nil {
		a.running = &attempt{done: make(chan struct{})}
		go a.run(a.running, do)
		return a.running
	}
	if a.next == nil {
		a.next = &attempt{done: make(chan struct{})}
	}
	return a.next
}

func (a *attempts) run(current *attempt, do func() error) {
	for current != nil {
		current.err = do()
		close(current.done)
		a.mu.Lock()
		a.running, a.next = a.next, nil
		current = a.running
		a.mu.Unlock()
	}
}
