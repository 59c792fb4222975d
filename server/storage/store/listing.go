package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.opentelemetry.io/otel/attribute"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher/delegator"
	"k8s.io/apiserver/pkg/storage/cacher/metrics"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/tracing"

	"github.com/espalier-dev/espalier/internal/object"
)

const (
	// freshTimeout is how long a list waits until the watch has brought a revision, and
	// freshRetry after how many seconds its client is told to ask again: k8s.io/apiserver's.
	freshTimeout = 3 * time.Second
	freshRetry   = 1
	// slowList is how long a list may take before it is logged.
	slowList = 500 * time.Millisecond
)

// errNotListed is for lists that the lister leaves to the cacher or to etcd.
var errNotListed = errors.New("the watch cache does not have the state that is asked for")

// list serves a list from the cache. What the lister cannot serve, the cacher or etcd does,
// with the same answer.
func (l *onDemandCacher) list(ctx context.Context, a *active, key string, opts storage.ListOptions, list runtime.Object) error {
	if s := sortOf(ctx); s != nil {
		return l.sorted(ctx, a, key, s, opts, list)
	}
	if !l.listable(a, opts) {
		return a.GetList(ctx, key, opts, list)
	}
	ctx, span := tracing.Start(ctx, "List from the watch cache", attribute.String("audit-id", audit.GetAuditIDTruncated(ctx)), attribute.Stringer("type", l.spec.Resource))
	defer span.End(slowList)
	err := l.fromLister(ctx, a, key, opts, list)
	if errors.Is(err, errNotListed) {
		span.AddEvent("Left to the cacher or to etcd")
		if opts.Predicate.Limit > 0 || l.isDestroyed() {
			return l.direct.GetList(ctx, key, opts, list) // at the cost of the page
		}
		return a.GetList(ctx, key, opts, list)
	}
	return err
}

// listable reports whether a list is one for the lister.
func (l *onDemandCacher) listable(a *active, opts storage.ListOptions) bool {
	if !opts.Recursive || !a.cacher.Ready() || !delegator.ConsistentReadSupported() {
		return false
	}
	switch opts.ResourceVersionMatch {
	case "", metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan:
	default:
		return false
	}
	sharded := opts.Predicate.ShardSelector != nil && !opts.Predicate.ShardSelector.Empty()
	return !sharded && a.lister.filled()
}

func (l *onDemandCacher) isDestroyed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.destroyed
}

func (l *lister) filled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.contents != nil
}

// fromLister finds the state that is asked for, as the cacher's delegator does, and lists it.
func (l *onDemandCacher) fromLister(ctx context.Context, a *active, key string, opts storage.ListOptions, list runtime.Object) error {
	if _, _, err := storage.ValidateListOptions(l.spec.ResourcePrefix, l.Versioner(), opts); err != nil {
		return err
	}
	prefix, err := storage.PrepareKey(l.spec.ResourcePrefix, key, true)
	if err != nil {
		return err
	}
	revision, err := l.Versioner().ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return err
	}
	begin, consistent := prefix, opts.ResourceVersionMatch == "" && opts.ResourceVersion == ""
	exact := isExact(opts)
	if continued(opts) && opts.ResourceVersionMatch == "" {
		from, at, err := storage.DecodeContinue(opts.Predicate.Continue, prefix)
		if err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
		}
		// A negative revision is for a list that goes on with the newest state.
		begin, consistent, exact = from, at < 0, at > 0
		revision = uint64(max(at, 0))
	}
	switch {
	case exact:
		v, err := l.exact(ctx, a, revision)
		if err != nil {
			return err
		}
		return l.answer(a, v, prefix, begin, opts, list)
	case consistent:
		return l.consistent(ctx, a, key, prefix, begin, opts, list)
	}
	v, err := a.lister.fresh(ctx, a.feed, revision)
	if err != nil {
		return err
	}
	return l.answer(a, v, prefix, begin, opts, list)
}

// exact returns the state of a revision.
func (l *onDemandCacher) exact(ctx context.Context, a *active, revision uint64) (*view, error) {
	if revision < uint64(max(a.CompactRevision(), 0)) {
		return nil, errNotListed // etcd says that it is too old
	}
	if _, err := a.lister.fresh(ctx, a.feed, revision); err != nil {
		return nil, err
	}
	if v := a.lister.past(revision); v != nil {
		return v, nil
	}
	return nil, errNotListed
}

// consistent lists what was written before the request. If the watch does not bring that in
// time, etcd is asked.
func (l *onDemandCacher) consistent(ctx context.Context, a *active, key, prefix, begin string, opts storage.ListOptions, list runtime.Object) error {
	revision, err := l.backend.barrier.revision(ctx, l.backend, l.spec.Resource)
	if err != nil {
		return err
	}
	success, fallback := "true", "false"
	v, err := a.lister.fresh(ctx, a.feed, revision)
	switch {
	case err == nil:
		err = l.answer(a, v, prefix, begin, opts, list)
	case storage.IsTooLargeResourceVersion(err) && utilfeature.DefaultFeatureGate.Enabled(features.ConsistentListFromCacheSkipTimeoutFallback):
		fallback = "skipped"
		err = apierrors.NewTooManyRequests(err.Error(), freshRetry)
	case storage.IsTooLargeResourceVersion(err):
		fallback = "true"
		err = l.direct.GetList(ctx, key, opts, list)
	}
	if err != nil {
		success = "false"
	}
	metrics.ConsistentReadTotal.WithLabelValues(l.spec.Resource.Group, l.spec.Resource.Resource, success, fallback).Add(1)
	return err
}

// fresh waits until there are all changes up to a revision, and returns what there is.
func (l *lister) fresh(ctx context.Context, f *feed, revision uint64) (*view, error) {
	var began time.Time
	for {
		l.mu.Lock()
		if l.contents == nil {
			l.mu.Unlock()
			return nil, errNotListed
		}
		if now := l.revision; now >= revision {
			v := l.current()
			l.mu.Unlock()
			if !began.IsZero() {
				metrics.WatchCacheReadWait.WithContext(ctx).WithLabelValues(l.spec.Resource.Group, l.spec.Resource.Resource).Observe(time.Since(began).Seconds())
			}
			return v, nil
		}
		if l.advanced == nil {
			l.advanced = make(chan struct{})
		}
		advanced, now := l.advanced, l.revision
		l.mu.Unlock()
		if began.IsZero() {
			began = time.Now()
		}
		left := freshTimeout - time.Since(began)
		if left <= 0 {
			return nil, storage.NewTooLargeResourceVersionError(revision, now, freshRetry)
		}
		select {
		case <-advanced:
		case <-time.After(min(left, f.askProgress(revision))):
		case <-f.gone:
			return nil, errNotListed // nothing more comes
		case <-ctx.Done():
			return nil, explainRead(ctx.Err())
		}
	}
}

// answer makes the list of a state.
func (l *onDemandCacher) answer(a *active, v *view, prefix, begin string, opts storage.ListOptions, list runtime.Object) error {
	limit := opts.Predicate.Limit
	if opts.ResourceVersion == "0" {
		limit = 0 // as in k8s.io/apiserver: such a list has all objects
	}
	end := clientv3.GetPrefixRangeEnd(prefix)
	found, visited, index, more := v.selected(begin, end, limit, &opts.Predicate)
	items := int64(0)
	if more && opts.Predicate.Empty() {
		items = int64(v.count(begin, end))
	}
	if err := setItems(list, found); err != nil {
		return err
	}
	last := ""
	if len(found) > 0 {
		last = found[len(found)-1].key
	}
	next, remaining, err := storage.PrepareContinueToken(last, prefix, int64(v.revision), items, more, opts)
	if err != nil {
		return err
	}
	if more {
		a.lister.keep(v)
	}
	metrics.RecordListCacheMetrics(l.spec.Resource, index, visited, len(found))
	return l.Versioner().UpdateList(list, v.revision, next, remaining)
}

// selected returns the objects in a range that a predicate selects, and reports whether there
// are objects after them. The range has the first key, and not the end.
func (v *view) selected(begin, end string, limit int64, p *storage.SelectionPredicate) (found []*entry, visited int, index string, more bool) {
	all := p.Empty()
	if all {
		size := v.count(begin, end)
		if limit > 0 {
			size = min(size, int(limit))
		}
		found = make([]*entry, 0, size)
	}
	candidates, index := v.candidates(begin, end, p)
	for e := range candidates {
		if limit > 0 && int64(len(found)) >= limit {
			return found, visited, index, true
		}
		visited++
		if all || p.MatchesObjectAttributes(e.labels, e.fields) {
			found = append(found, e)
		}
	}
	return found, visited, index, false
}

// setItems copies the objects into a list.
func setItems(list runtime.Object, found []*entry) error {
	if l, ok := list.(*object.List); ok {
		l.Items = make([]object.Object, len(found))
		for i, e := range found {
			o, ok := e.object.(*object.Object)
			if !ok {
				return fmt.Errorf("the watch cache has a %T in a list of objects", e.object)
			}
			l.Items[i] = *o
		}
		return nil
	}
	pointer, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	items := reflect.ValueOf(pointer).Elem()
	made := reflect.MakeSlice(items.Type(), len(found), len(found))
	for i, e := range found {
		made.Index(i).Set(reflect.ValueOf(e.object).Elem())
	}
	items.Set(made)
	return nil
}
