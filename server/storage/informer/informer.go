package informer

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

// An informer is the objects of one kind. Its fields are guarded by the feed's lock.
type informer struct {
	feed     *Feed
	kind     Kind
	indexer  cache.Indexer
	handlers []*registration
	wanted   atomic.Bool   // without the lock: handlers, which are called with it, may ask
	revision int64         // up to which it has seen all changes; 0 before the first load
	loaded   chan struct{} // closed when revision is not 0
}

var _ cache.SharedIndexInformer = (*informer)(nil)

func newInformer(f *Feed, k Kind) *informer {
	return &informer{
		feed: f, kind: k, loaded: make(chan struct{}),
		indexer: cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
	}
}

// registration is a handler.
type registration struct {
	of      *informer
	handler cache.ResourceEventHandler
	synced  chan struct{} // closed when the handler has got what there was
}

// HasSynced implements cache.ResourceEventHandlerRegistration.
func (r *registration) HasSynced() bool { return isClosed(r.synced) }

// HasSyncedChecker implements cache.ResourceEventHandlerRegistration.
func (r *registration) HasSyncedChecker() cache.DoneChecker {
	return done{r.of.kind.Resource.String(), r.synced}
}

// done implements cache.DoneChecker.
type done struct {
	name    string
	channel chan struct{}
}

// Name implements cache.DoneChecker.
func (d done) Name() string { return d.name }

// Done implements cache.DoneChecker.
func (d done) Done() <-chan struct{} { return d.channel }

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// AddEventHandler implements cache.SharedInformer.
func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	r := &registration{of: i, handler: h, synced: make(chan struct{})}
	i.want()
	i.feed.mu.Lock()
	defer i.feed.mu.Unlock()
	i.handlers = append(i.handlers, r)
	if i.revision > 0 {
		for _, o := range i.indexer.List() {
			h.OnAdd(o, true)
		}
		close(r.synced)
	}
	return r, nil
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer. Nothing is repeated.
func (i *informer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// AddEventHandlerWithOptions implements cache.SharedInformer. Nothing is repeated.
func (i *informer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// RemoveEventHandler implements cache.SharedInformer.
func (i *informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	i.feed.mu.Lock()
	defer i.feed.mu.Unlock()
	for k, r := range i.handlers {
		if r == handle {
			i.handlers = append(i.handlers[:k:k], i.handlers[k+1:]...)
		}
	}
	return nil
}

// want has the kind read, if it is not yet.
func (i *informer) want() {
	if !i.wanted.Load() && i.wanted.CompareAndSwap(false, true) {
		i.feed.nudge()
	}
}

// GetStore implements cache.SharedInformer.
func (i *informer) GetStore() cache.Store { return i.GetIndexer() }

// GetIndexer implements cache.SharedIndexInformer.
func (i *informer) GetIndexer() cache.Indexer {
	i.want()
	return i.indexer
}

// AddIndexers implements cache.SharedIndexInformer.
func (i *informer) AddIndexers(indexers cache.Indexers) error { return i.indexer.AddIndexers(indexers) }

// GetController implements cache.SharedInformer.
func (i *informer) GetController() cache.Controller { return i }

// Run implements cache.SharedInformer. The feed runs by itself.
func (i *informer) Run(<-chan struct{}) {}

// RunWithContext implements cache.SharedInformer.
func (i *informer) RunWithContext(context.Context) {}

// HasSynced implements cache.SharedInformer.
func (i *informer) HasSynced() bool {
	i.want()
	return isClosed(i.loaded)
}

// HasSyncedChecker implements cache.SharedInformer.
func (i *informer) HasSyncedChecker() cache.DoneChecker {
	i.want()
	return done{i.kind.Resource.String(), i.loaded}
}

// LastSyncResourceVersion implements cache.SharedInformer.
func (i *informer) LastSyncResourceVersion() string {
	i.feed.mu.Lock()
	defer i.feed.mu.Unlock()
	return strconv.FormatInt(i.revision, 10)
}

// SetWatchErrorHandler implements cache.SharedInformer.
func (i *informer) SetWatchErrorHandler(cache.WatchErrorHandler) error { return nil }

// SetWatchErrorHandlerWithContext implements cache.SharedInformer.
func (i *informer) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return nil
}

// SetTransform implements cache.SharedInformer.
func (i *informer) SetTransform(cache.TransformFunc) error {
	return errors.New("informers of a tenant do not transform objects")
}

// IsStopped implements cache.SharedInformer.
func (i *informer) IsStopped() bool { return i.feed.ended.Load() }

// set adds or replaces an object. The caller holds the feed's lock.
func (i *informer) set(o any) {
	old, found, _ := i.indexer.Get(o) // the key function does not fail for objects
	if !found {
		_ = i.indexer.Add(o)
		for _, r := range i.handlers {
			r.handler.OnAdd(o, i.revision == 0)
		}
		return
	}
	if version(old) == version(o) {
		return
	}
	_ = i.indexer.Update(o)
	for _, r := range i.handlers {
		r.handler.OnUpdate(old, o)
	}
}

// remove removes an object by its key. The caller holds the feed's lock.
func (i *informer) remove(key string) {
	old, found, _ := i.indexer.GetByKey(key)
	if !found {
		return
	}
	_ = i.indexer.Delete(old)
	for _, r := range i.handlers {
		r.handler.OnDelete(old)
	}
}

// replace makes objects all that there is, at a revision. The caller holds the feed's lock.
func (i *informer) replace(objects []any, revision int64) {
	there := make(map[string]bool, len(objects))
	for _, o := range objects {
		if key, err := cache.MetaNamespaceKeyFunc(o); err == nil {
			there[key] = true
		}
	}
	for _, key := range i.indexer.ListKeys() {
		if !there[key] {
			i.remove(key)
		}
	}
	for _, o := range objects {
		i.set(o)
	}
	first := i.revision == 0
	i.revision = revision
	if !first {
		return
	}
	close(i.loaded)
	for _, r := range i.handlers {
		if !isClosed(r.synced) {
			close(r.synced)
		}
	}
}

func version(o any) string {
	m, err := meta.Accessor(o)
	if err != nil {
		return ""
	}
	return m.GetResourceVersion()
}
