package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/metadata"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"

	"github.com/espalier-dev/espalier/internal/object"
)

// directWatches is how many watches of a resource may bypass its cache at a time,
// because they go on from before the cache was filled. etcd has that past for some
// minutes; a cache that has just been created has not. More clients than that
// are told to list again, which the cache is good at.
const directWatches = 100

// fillTimeout is how long a call waits for a cache that has just been created.
// After that, clients are told to come back, as k8s.io/apiserver does at once.
const fillTimeout = 10 * time.Second

// onDemandCacher is a storage with a watch cache that exists only while it is used.
//
// A single consistent list, or get from a cache, does not create one: something
// that sweeps over all resources, as the deletion of a namespace does, would
// leave ten thousand of them behind. The second within the idle time does.
type onDemandCacher struct {
	direct  storage.Interface
	backend *Backend
	spec    *Spec
	ended   <-chan struct{} // closed when the storage is destroyed
	stopped chan struct{}   // closed when, after that, the cache has stopped

	mu        sync.Mutex // held for moments only, never while a cache fills or stops
	active    *active    // nil while there is no cache
	lastRead  time.Time  // of those that a cache would have served
	bypassing int        // watches that go to etcd themselves
	destroyed bool
}

// active is a watch cache in use. What is below failed is guarded by onDemandCacher.mu.
type active struct {
	*cacher.CacheDelegator
	cacher *cacher.Cacher
	feed   *feed
	lister *lister
	failed context.Context // is done if the cache could not be filled

	users    int // calls under way and open watches
	lastUsed time.Time
	timer    *time.Timer
	progress *time.Timer
}

var _ storage.Interface = (*onDemandCacher)(nil)

// acquire returns the cache, created if there is none. The caller must release it.
func (l *onDemandCacher) acquire() (*active, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.destroyed {
		return nil, l.spec.replaced()
	}
	if l.active == nil {
		a, err := l.create()
		if err != nil {
			return nil, err
		}
		l.active = a
	}
	l.active.users++
	l.active.lastUsed = time.Now()
	return l.active, nil
}

// existing returns the cache if there is one, for calls that do without. The
// caller must release it.
func (l *onDemandCacher) existing() *active {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active != nil {
		l.active.users++
	}
	return l.active
}

// release ends a use.
func (l *onDemandCacher) release(a *active) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.users--
}

// touch ends a use that counts: the cache stays for another idle time.
func (l *onDemandCacher) touch(a *active) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.users--
	a.lastUsed = time.Now()
}

// again reports whether there has been such a read within the idle time, or
// there is a cache.
func (l *onDemandCacher) again() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	recent := !l.lastRead.IsZero() && now.Sub(l.lastRead) < l.backend.config.Idle
	l.lastRead = now
	return l.active != nil || recent && !l.destroyed
}

// create starts a cache. It does not wait until it is filled.
func (l *onDemandCacher) create() (*active, error) {
	failed, fail := context.WithCancel(context.Background())
	f := &feed{
		Interface: l.direct, backend: l.backend, spec: l.spec, lister: newLister(l.spec, l.direct.Versioner()),
		fail: fail, gone: l.ended, stream: fmt.Sprint(l.backend.caches.Add(1)), window: l.backend.config.EventsHistoryWindow,
	}
	c, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage:             f,
		Versioner:           l.direct.Versioner(),
		GroupResource:       l.spec.Resource,
		EventsHistoryWindow: l.backend.config.EventsHistoryWindow,
		ResourcePrefix:      l.spec.ResourcePrefix,
		KeyFunc:             f.lister.key,
		GetAttrsFunc:        f.lister.attributes,
		IndexerFuncs:        l.spec.Triggers,
		Indexers:            l.spec.Indexers,
		NewFunc:             l.spec.NewFunc,
		NewListFunc:         l.spec.NewListFunc,
		Codec:               l.spec.Codec,
	})
	if err != nil {
		fail()
		return nil, fmt.Errorf("watch cache of %s: %w", l.spec.Resource, err)
	}
	a := &active{CacheDelegator: cacher.NewCacheDelegator(c, l.direct), cacher: c, feed: f, lister: f.lister, failed: failed}
	a.timer = time.AfterFunc(l.backend.config.Idle, func() { l.expire(a) })
	a.progress = time.AfterFunc(never, func() { l.keepCurrent(a) })
	a.progress.Reset(l.backend.progressPeriod())
	return a, nil
}

// expire drops the cache if it has not been used for the idle time. There is no
// timer to reset at every use: it fires, looks, and sleeps for the rest.
func (l *onDemandCacher) expire(a *active) {
	l.mu.Lock()
	if l.active != a {
		l.mu.Unlock()
		return
	}
	rest := l.backend.config.Idle
	if a.users == 0 {
		rest -= time.Since(a.lastUsed)
	}
	if rest > 0 {
		a.timer.Reset(rest)
		l.mu.Unlock()
		return
	}
	l.active, l.lastRead = nil, time.Time{}
	l.mu.Unlock()
	a.stop()
}

// destroy stops the cache, if there is one, and with it all watches. It does not wait
// for the cache, which may still have events to dispatch, but closes stopped then: the
// acknowledgement of a change of a CRD waits for destroy.
func (l *onDemandCacher) destroy() {
	l.mu.Lock()
	a, again := l.active, l.destroyed
	l.active, l.destroyed = nil, true
	l.mu.Unlock()
	switch {
	case again:
	case a == nil:
		close(l.stopped)
	default:
		a.timer.Stop()
		go func() {
			defer close(l.stopped)
			a.stop()
		}()
	}
}

// progressPeriod is how old the revision of an idle cache may become. etcd forgets
// revisions after CompactionInterval: within that, what a cache gives out as its
// revision can still be read and watched from.
func (b *Backend) progressPeriod() time.Duration {
	const most = 2 * time.Minute
	if half := b.config.CompactionInterval / 2; half > 0 {
		return min(half, most)
	}
	return most
}

// never is longer than any timer.
const never = time.Duration(math.MaxInt64)

// keepCurrent asks etcd how far the watch of the cache is, again and again while the
// cache is used. A cache of objects that do not change would stay at the revision of
// the last change, which etcd compacts: the consistency check of k8s.io/apiserver
// reads at that revision, and so do clients that resume. It costs a timer, and a
// message of a few bytes each time.
func (l *onDemandCacher) keepCurrent(a *active) {
	ctx, cancel := context.WithTimeout(a.feed.own(context.Background()), statusTimeout)
	defer cancel()
	_ = a.feed.Interface.RequestWatchProgress(ctx) //nolint:staticcheck // deprecated, and part of the interface; the next one will do
	a.lister.expire()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active == a {
		a.progress.Reset(l.backend.progressPeriod())
	}
}

// stop stops the cache. The feed ends first, while the cache still dispatches: in
// k8s.io/apiserver the reflector waits without end for its event to be taken if
// dispatching stops before it, and Stop waits for the reflector.
func (a *active) stop() {
	a.progress.Stop()
	a.feed.end()
	a.CacheDelegator.Stop()
	a.cacher.Stop()
}

// await returns when the cache is filled, could not be, or takes too long. What
// follows finds out which.
func (a *active) await(ctx context.Context) {
	if a.cacher.Ready() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	defer context.AfterFunc(a.failed, cancel)()
	_ = a.cacher.Wait(ctx) // what follows sees that the cache is not ready, and says why
}

// Watch implements storage.Interface.
func (l *onDemandCacher) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	a, err := l.acquire()
	if err != nil {
		return nil, err
	}
	a.await(ctx)
	if l.bypass(a, opts) {
		l.touch(a)
		w, err := l.direct.Watch(ctx, key, opts)
		if err == nil {
			w = l.backend.limits.buffered(w, source{of: l.backend, live: always, current: l.spec.Current, ended: l.ended, deliver: l.spec.delivery(ctx)})
		}
		return counted(ctx, w, err, l.bypassed)
	}
	if err := l.refused(a); err != nil {
		l.touch(a)
		return nil, err
	}
	from := source{
		shared: &a.feed.shared, of: l.backend, live: later(l.direct.Versioner(), a.feed.shared.latest.Load()),
		current: l.spec.Current, ended: l.ended, deliver: l.spec.delivery(ctx),
	}
	var w watch.Interface
	if of := l.valueWatch(ctx, a, key, opts); of != nil {
		w = of
	} else {
		w, err = a.Watch(ctx, key, opts)
	}
	if err == nil {
		l.warnOf(ctx, key, opts)
		w = l.backend.limits.buffered(w, from)
	}
	return counted(ctx, w, err, func() { l.touch(a) })
}

// later reports of an event whether it is later than a revision. Bookmarks that
// end the initial events have that revision at least.
func later(versioner storage.Versioner, revision uint64) func(watch.Event) bool {
	return func(e watch.Event) bool {
		of, err := versioner.ObjectResourceVersion(e.Object)
		return err == nil && of > revision
	}
}

func always(watch.Event) bool { return true }

// bypass reports whether a watch begins before the cache does, and takes one of
// the places for such watches.
func (l *onDemandCacher) bypass(a *active, opts storage.ListOptions) bool {
	from, err := l.direct.Versioner().ParseResourceVersion(opts.ResourceVersion)
	if err != nil || from == 0 || from >= a.feed.filledAt.Load() || opts.SendInitialEvents != nil && *opts.SendInitialEvents {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bypassing >= directWatches || l.destroyed {
		return false
	}
	l.bypassing++
	return true
}

// bypassed gives the place back.
func (l *onDemandCacher) bypassed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bypassing--
}

// counted returns a watch, if there is one, that calls done when it ends.
func counted(ctx context.Context, w watch.Interface, err error, done func()) (watch.Interface, error) {
	if err != nil {
		done()
		return nil, err
	}
	used := &usedWatch{Interface: w, done: sync.OnceFunc(done)}
	used.forget = context.AfterFunc(ctx, used.done) // all storages end a watch with its context
	return used, nil
}

// usedWatch is a watch that counts until it is stopped.
type usedWatch struct {
	watch.Interface
	done   func()
	forget func() bool
}

// Stop implements watch.Interface.
func (w *usedWatch) Stop() {
	w.Interface.Stop()
	w.forget()
	w.done()
}

// GetList implements storage.Interface.
func (l *onDemandCacher) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	sorted := sortOf(ctx) != nil
	if !sorted && !l.listWantsCache(opts) {
		return l.direct.GetList(ctx, key, opts, list)
	}
	a, err := l.acquire()
	if err != nil {
		return err
	}
	defer l.touch(a)
	a.await(ctx)
	if err := l.refused(a); err != nil {
		if opts.ResourceVersion == "" && opts.ResourceVersionMatch == "" && !sorted {
			return l.direct.GetList(ctx, key, opts, list)
		}
		return err
	}
	if l.backend.unreadable.any() {
		return l.incomplete(ctx, a, key, opts, list)
	}
	return l.list(ctx, a, key, opts, list)
}

// listWantsCache follows the rules of the cacher's delegator, which sends what
// asks for an exact revision to etcd unless it has a snapshot: a new cache has none.
func (l *onDemandCacher) listWantsCache(opts storage.ListOptions) bool {
	current := opts.ResourceVersion == "" || opts.ResourceVersion == "0"
	switch {
	case opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact,
		opts.Predicate.Continue != "",
		opts.ResourceVersionMatch == "" && opts.Predicate.Limit > 0 && !current:
		a := l.existing()
		if a == nil {
			return false
		}
		l.release(a)
		return true
	case opts.ResourceVersion == "" && opts.ResourceVersionMatch == "":
		return l.again()
	default:
		l.mu.Lock()
		defer l.mu.Unlock()
		return !l.destroyed
	}
}

// Get implements storage.Interface.
func (l *onDemandCacher) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	if opts.ResourceVersion == "" || !l.again() || l.backend.unreadable.has(l.spec.Resource, l.backend.Key(key)) {
		return l.direct.Get(ctx, key, opts, out)
	}
	a, err := l.acquire()
	if err != nil {
		return l.direct.Get(ctx, key, opts, out)
	}
	defer l.touch(a)
	return a.Get(ctx, key, opts, out) // goes to etcd itself while the cache fills
}

// GuaranteedUpdate implements storage.Interface. What the cache has, if there is
// one, saves a read.
func (l *onDemandCacher) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, try storage.UpdateFunc, cached runtime.Object,
) error {
	stamping := func(in runtime.Object, meta storage.ResponseMeta) (runtime.Object, *uint64, error) {
		updated, ttl, err := try(in, meta)
		if err == nil {
			stamp(out, updated)
		}
		return updated, ttl, err
	}
	a := l.existing()
	if a == nil {
		return l.direct.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, stamping, cached)
	}
	defer l.release(a)
	return a.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, stamping, cached)
}

// stamp tells the decoder of out, which is given what obj is encoded to, by which schema obj was normalized.
func stamp(out, obj runtime.Object) {
	into, ok := out.(*object.Object)
	from, given := obj.(*object.Object)
	if ok && given {
		into.SetStamp(from.Normal())
	}
}

// Delete implements storage.Interface.
func (l *onDemandCacher) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	a := l.existing()
	if a == nil {
		return l.direct.Delete(ctx, key, out, preconditions, validate, cached, opts)
	}
	defer l.release(a)
	return a.Delete(ctx, key, out, preconditions, validate, cached, opts)
}

// Create implements storage.Interface.
func (l *onDemandCacher) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	stamp(out, obj)
	return l.direct.Create(ctx, key, obj, out, ttl)
}

// Versioner implements storage.Interface.
func (l *onDemandCacher) Versioner() storage.Versioner { return l.direct.Versioner() }

// Stats implements storage.Interface.
func (l *onDemandCacher) Stats(ctx context.Context) (storage.Stats, error) {
	return l.direct.Stats(ctx)
}

// ReadinessCheck implements storage.Interface. There is nothing to wait for: a
// cache that is missing or being filled delays only requests that need it.
func (l *onDemandCacher) ReadinessCheck() error { return nil }

// RequestWatchProgress implements storage.Interface.
func (l *onDemandCacher) RequestWatchProgress(ctx context.Context) error {
	return l.direct.RequestWatchProgress(ctx) //nolint:staticcheck // deprecated, and part of the interface
}

// GetCurrentResourceVersion implements storage.Interface.
func (l *onDemandCacher) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	return l.direct.GetCurrentResourceVersion(ctx)
}

// EnableResourceSizeEstimation implements storage.Interface.
func (l *onDemandCacher) EnableResourceSizeEstimation(keys storage.KeysFunc) error {
	return l.direct.EnableResourceSizeEstimation(keys)
}

// CompactRevision implements storage.Interface.
func (l *onDemandCacher) CompactRevision() int64 { return l.direct.CompactRevision() }

// feed is the storage as one watch cache sees it.
type feed struct {
	storage.Interface
	backend  *Backend
	spec     *Spec
	lister   *lister
	fail     func()          // is called when the cache cannot be filled
	gone     <-chan struct{} // closed when the storage is destroyed
	stream   string          // not shared with other caches
	filledAt atomic.Uint64   // the revision that the cache begins with
	window   time.Duration   // how long the cache keeps events, if they are not large
	shared   shared
	progress progress
	pause    atomic.Int64 // before it is filled again, as a Duration
	// refusal is why the cache could not be filled the last time, if that is an object
	// which must not be left out.
	refusal atomic.Pointer[etcdError]

	mu    sync.Mutex
	ended bool
	watch *paced // the last one
}

// end has the cache get no more events, and returns when its reflector has stored
// those that it has taken.
func (f *feed) end() {
	f.mu.Lock()
	f.ended = true
	w := f.watch
	f.mu.Unlock()
	if w != nil {
		w.end()
		<-w.done
	}
}

// own keeps the watch of this cache, and its requests for progress, off the gRPC
// stream of others. etcd answers such a request when all watches of the stream
// have caught up, and tells all of them.
func (f *feed) own(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "espalier-cache", f.stream)
}

// refillPause is how long a cache waits before it tries again to convert all objects,
// after the first failure; twice as long after each further one, up to refillMax.
// Lists meanwhile get the objects, or the error, from etcd and the converter.
const (
	refillPause = 2 * time.Second
	refillMax   = 30 * time.Second
)

// GetList implements storage.Interface. The cacher calls it again every second if it
// fails: without a pause, a converter that is broken or whose answers are too large
// would be called with all objects for as long as the cache is there.
func (f *feed) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if pause := time.Duration(f.pause.Load()); pause > 0 {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := f.Interface.GetList(ctx, key, opts, list)
	refusal, _ := errors.AsType[*etcdError](err)
	if refusal != nil && refusal.status.Reason != metav1.StatusReasonStoreReadError {
		refusal = nil
	}
	f.refusal.Store(refusal)
	if err != nil {
		// etcd has no part in this: what it cannot do now, it can do a second later.
		if _, ok := errors.AsType[*unconvertedError](err); ok {
			f.pause.Store(int64(min(max(2*time.Duration(f.pause.Load()), refillPause), refillMax)))
		}
		f.fail()
		return err
	}
	f.pause.Store(0)
	if l, ok := list.(metav1.ListInterface); ok {
		if revision, err := f.Versioner().ParseResourceVersion(l.GetResourceVersion()); err == nil {
			f.filledAt.Store(revision)
			f.shared.latest.Store(revision)
		}
	}
	f.lister.fill(continued(opts), list)
	return nil
}

// Watch implements storage.Interface.
func (f *feed) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	w, err := f.Interface.Watch(context.WithValue(f.own(ctx), feedingKey{}, true), key, opts)
	if err != nil {
		f.fail()
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		w.Stop()
		return nil, f.spec.replaced()
	}
	f.watch = newPaced(w, &f.shared, f.window, f.Versioner(), f.follow(f.lister.watched(opts.ResourceVersion)))
	return f.watch, nil
}

// RequestWatchProgress implements storage.Interface.
func (f *feed) RequestWatchProgress(ctx context.Context) error {
	return f.Interface.RequestWatchProgress(f.own(ctx)) //nolint:staticcheck // deprecated, and what the cacher calls
}

// EnableResourceSizeEstimation implements storage.Interface. It does nothing: the
// estimator can be enabled once in the life of a storage, keeps a number per key,
// and its numbers are not used here.
func (f *feed) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }

// IsWatchListSemanticsUnSupported makes the cache fill itself with a list: one call
// of the converter for all objects, and an error is seen where it occurs.
func (f *feed) IsWatchListSemanticsUnSupported() bool { return true }
