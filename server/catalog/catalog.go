package catalog

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/storage"
)

// Key is the prefix of CRDs in storage, below the server's prefix.
const Key = "/apiextensions.k8s.io/customresourcedefinitions"

// Catalog is the index of all CRDs. It is safe for concurrent use.
type Catalog struct {
	storage storage.Interface
	index   index
	unread  unreadables

	// telling is held while a change is made and passed to subscribers, so that a new
	// subscriber gets every change once.
	telling     sync.Mutex
	subscribers []func(old, updated *Entry)

	revision revision
	synced   chan struct{}
	syncOnce sync.Once
	asked    atomic.Int64 // when etcd was last asked how far it is
	catching attempts
}

// New returns an empty catalog of the CRDs in storage, whose objects
// are *object.Object. Run fills it.
func New(crdStorage storage.Interface) *Catalog {
	return &Catalog{
		storage: crdStorage,
		index:   index{groups: map[string]*group{}},
		synced:  make(chan struct{}),
	}
}

// Synced is closed when the catalog has seen all CRDs for the first time.
func (c *Catalog) Synced() <-chan struct{} { return c.synced }

// HasSynced reports whether the catalog has seen all CRDs once.
func (c *Catalog) HasSynced() bool {
	select {
	case <-c.synced:
		return true
	default:
		return false
	}
}

// Get returns the CRD called name, that is plural.group, or nil.
func (c *Catalog) Get(name string) *Entry { return c.index.get(name) }

// Resource returns the CRD of a resource, or nil if there is none. The name of a CRD
// does not show where the plural ends and the group begins, so both are compared.
func (c *Catalog) Resource(group, plural string) *Entry {
	e := c.index.get(plural + "." + group)
	if e == nil || e.Group != group || e.Names.Plural != plural {
		return nil
	}
	return e
}

// Len returns the number of CRDs.
func (c *Catalog) Len() int { return int(c.index.count.Load()) }

// All ranges over the CRDs, sorted by group and name. What changes
// meanwhile may or may not be seen.
func (c *Catalog) All() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, group := range c.index.groupNames() {
			g := c.index.group(group)
			if g == nil {
				continue
			}
			for _, e := range g.list() {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Group returns the CRDs of a group, sorted by name.
func (c *Catalog) Group(group string) []*Entry {
	if g := c.index.group(group); g != nil {
		return slices.Clone(g.list())
	}
	return nil
}

// Groups returns the groups that have CRDs, sorted.
func (c *Catalog) Groups() []string { return slices.Clone(c.index.groupNames()) }

// View calls f with the names of a group as they are at one moment. Changes to
// the group wait meanwhile: f must be short.
func (c *Catalog) View(group string, f func(Claims)) {
	g := c.index.group(group)
	if g == nil {
		f(Claims{})
		return
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	f(Claims{g})
}

// Subscribe calls f for every change, one call at a time, in order, each exactly once.
// Before it returns, it calls f for all existing CRDs. old is nil for a new CRD, and
// updated is nil for a deleted one. A CRD that was deleted and created again makes two
// calls. The change is visible when f is called. f must not block, nor subscribe.
func (c *Catalog) Subscribe(f func(old, updated *Entry)) {
	c.telling.Lock()
	defer c.telling.Unlock()
	for e := range c.All() {
		f(nil, e)
	}
	c.subscribers = append(c.subscribers, f)
}

// put makes a change and calls subscribers. It ignores changes that are older than the
// entry.
func (c *Catalog) put(e *Entry) {
	c.telling.Lock()
	defer c.telling.Unlock()
	c.unread.forget(e.Name, e.Revision)
	old := c.index.get(e.Name)
	switch {
	case old == nil:
	case old.Loan != nil && old.Loan.Key == "":
		return // the name of what is built in is refused; this is from before
	case old.Loan == nil && old.Revision >= e.Revision:
		return
	}
	if old != nil && (old.UID != e.UID || old.Loan != nil) {
		c.change(old, nil)
		old = nil
	}
	c.change(old, e)
}

// remove removes a CRD that was deleted at a revision.
func (c *Catalog) remove(name string, at uint64) {
	c.telling.Lock()
	defer c.telling.Unlock()
	c.unread.forget(name, at)
	if old := c.index.get(name); old != nil && old.Loan == nil && old.Revision <= at {
		c.change(old, nil)
	}
}

func (c *Catalog) change(old, updated *Entry) {
	c.index.replace(old, updated)
	for _, f := range c.subscribers {
		f(old, updated)
	}
}

// Revision is the last revision of etcd that the catalog has caught up with.
func (c *Catalog) Revision() uint64 { return c.revision.get() }

// WaitFor returns when the catalog has caught up with a revision, or with the
// context's error.
func (c *Catalog) WaitFor(ctx context.Context, revision uint64) error {
	const patience = 50 * time.Millisecond
	for {
		reached := c.revision.wait(revision)
		if reached == nil {
			return nil
		}
		timer := time.NewTimer(patience)
		select {
		case <-reached:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
			// The revision may be of another key: then etcd sends nothing unless progress
			// is requested.
			c.askProgress(ctx, patience)
		}
		timer.Stop()
	}
}

// askProgress requests a progress notification of the watch, for all waiting calls.
func (c *Catalog) askProgress(ctx context.Context, atMostEvery time.Duration) {
	now, last := time.Now().UnixNano(), c.asked.Load()
	if now-last < int64(atMostEvery) || !c.asked.CompareAndSwap(last, now) {
		return
	}
	// If it fails, the next waiting call tries again.
	_ = c.storage.RequestWatchProgress(ownStream(ctx))
}

// revision is a number that grows, and can be waited for.
type revision struct {
	mu      sync.Mutex
	current uint64
	changed chan struct{} // closed when current grows; nil if no call waits
}

func (r *revision) get() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

func (r *revision) advance(to uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if to <= r.current {
		return
	}
	r.current = to
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// wait returns nil if the revision is reached, otherwise a channel that is closed when
// the revision has grown.
func (r *revision) wait(target uint64) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current >= target {
		return nil
	}
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}
