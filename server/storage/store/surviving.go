package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/espalier-dev/espalier/internal/object"
)

// surviving is etcd3's storage without the objects that cannot be decoded. Lists and
// watches serve all others; requests for one of them get an unreadableError.
//
// To a watch, an object that becomes undecodable is deleted, and one that becomes
// readable is added: lists lack it meanwhile, and what a client has from a watch must
// be what a list would give it. An error instead, as upstream sends it, would
// end the watch again and again without telling the client which object is wrong, and
// the list after it would lack the object, too. Nothing else follows from the event:
// the garbage collector asks for an owner before it deletes what refers to it, and a
// request for an unreadable owner does not say that there is none.
//
// Objects that cannot be decrypted, and all of a resource with Spec.Complete, are not
// left out: lists and watches that meet one fail, as upstream's do.
type surviving struct {
	storage.Interface
	backend *Backend
	reading *reading
}

// maxCauses is how many objects the error of a list names. Upstream names as many.
const maxCauses = 100

// GetList implements storage.Interface.
func (s *surviving) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	l := &listing{}
	if !opts.Predicate.Empty() {
		opts.Predicate.GetAttrs = named(opts.Predicate.GetAttrs)
	}
	err := s.Interface.GetList(context.WithValue(ctx, listingKey{}, l), key, opts, list)
	if err != nil && l.fatal == 0 {
		return err
	}
	if about, err := meta.ListAccessor(list); err == nil {
		dropUncounted(about, opts.Predicate.Limit)
	}
	if len(l.missing) == 0 && !s.backend.unreadable.any() {
		return nil
	}
	if err == nil && whole(opts) {
		s.backend.unreadable.only(s.reading.spec.Resource, s.backend.Key(key), l.missing)
	}
	if len(l.missing) == 0 {
		return nil
	}
	found := make([]Unreadable, len(l.missing))
	for i, e := range l.missing {
		found[i] = e.Unreadable
		if opts.ResourceVersionMatch != metav1.ResourceVersionMatchExact { // not the past
			s.backend.unreadable.note(&e.Unreadable)
		}
	}
	switch report := reportOf(ctx); {
	case l.fatal > 0:
		return s.refusal(l)
	case report != nil:
		report.Unreadable = append(report.Unreadable, found...)
	case ctx.Value(quietKey{}) == nil:
		warn(ctx, found)
	}
	return dropNameless(list)
}

// whole reports whether a list has all objects below its key as they are now.
func whole(opts storage.ListOptions) bool {
	return opts.Recursive && opts.Predicate.Limit == 0 && opts.Predicate.Continue == "" && opts.ResourceVersionMatch != metav1.ResourceVersionMatchExact
}

// refusal is the error for a list with objects that it must not leave out. The reason,
// the beginning of the text, the details and causes are upstream's.
func (s *surviving) refusal(l *listing) error {
	var causes []metav1.StatusCause
	var first *unreadableError
	for _, e := range l.missing {
		if !e.Fatal {
			continue
		}
		if first == nil {
			first = e
		}
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse, Field: e.Key, Message: e.Error()})
	}
	message := fmt.Sprintf("failed to read one or more %s from the storage: %s", s.reading.spec.Resource, first.Error())
	if len(causes) > 1 {
		message += fmt.Sprintf(" (and %d more)", len(causes)-1)
	}
	if len(causes) >= maxCauses {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeTooMany, Message: "too many errors, the list is truncated"})
	}
	return &etcdError{metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError, Message: message,
		Details: &metav1.StatusDetails{Group: s.reading.spec.Resource.Group, Kind: s.reading.spec.Resource.Resource, Name: "list", Causes: causes},
	}, first}
}

// named has selectors not select what has no name.
func named(attrs storage.AttrFunc) storage.AttrFunc {
	return func(obj runtime.Object) (labels.Set, fields.Set, error) {
		if m, err := meta.Accessor(obj); err != nil || m.GetName() == "" {
			return nil, nil, errMissing
		}
		return attrs(obj)
	}
}

var errMissing = errors.New("the object cannot be read")

// dropNameless takes the objects without a name out of a list.
func dropNameless(list runtime.Object) error {
	if l, ok := list.(*object.List); ok {
		kept := l.Items[:0]
		for i := range l.Items {
			if l.Items[i].GetName() != "" {
				kept = append(kept, l.Items[i])
			}
		}
		clear(l.Items[len(kept):])
		l.Items = kept
		return nil
	}
	pointer, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	items := reflect.ValueOf(pointer).Elem()
	kept := 0
	for i := range items.Len() {
		m, err := meta.Accessor(items.Index(i).Addr().Interface())
		if err != nil {
			return err
		}
		if m.GetName() != "" {
			items.Index(kept).Set(items.Index(i))
			kept++
		}
	}
	for i := kept; i < items.Len(); i++ {
		items.Index(i).SetZero()
	}
	items.SetLen(kept)
	return nil
}

// quietKey marks the context of a list whose caller writes the warning itself.
type quietKey struct{}

// feedingKey marks the context of a watch that fills a cache.
type feedingKey struct{}

// Watch implements storage.Interface. A cache, and a reader with a Report, get what
// cannot be read as a *missing, and find out by themselves whether they had the object before. For other watches etcd3
// finds out: to a selector that selects everything else, an object that becomes
// unreadable is one that is not selected any more.
func (s *surviving) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	if opts.Predicate.Empty() && (ctx.Value(feedingKey{}) != nil || reportOf(ctx) != nil) {
		return s.Interface.Watch(ctx, key, opts)
	}
	p := &opts.Predicate
	attrs := p.GetAttrs
	if (p.Label == nil || p.Label.Empty()) && (p.Field == nil || p.Field.Empty()) {
		p.Label = anything{labels.Everything()}
		attrs = func(runtime.Object) (labels.Set, fields.Set, error) { return nil, nil, nil }
	}
	p.GetAttrs = func(obj runtime.Object) (labels.Set, fields.Set, error) {
		if m, ok := obj.(*missing); ok {
			go s.examine(m.unread.Key)
			return nil, nil, errMissing
		}
		if obj == nil { // the value was empty
			return nil, nil, errMissing
		}
		return attrs(obj)
	}
	return s.Interface.Watch(ctx, key, opts)
}

// anything is a selector that selects everything, and is not taken for none.
type anything struct{ labels.Selector }

// Empty implements labels.Selector.
func (anything) Empty() bool { return false }

// Matches implements labels.Selector.
func (anything) Matches(labels.Labels) bool { return true }

// examine finds out whether an object that a watch could not read is still there, and
// notes it. The watch does not tell whether it was the object before or after.
func (s *surviving) examine(key string) {
	ctx, cancel := context.WithTimeout(context.Background(), statusTimeout)
	defer cancel()
	now, err := s.backend.client.KV.Get(ctx, key)
	if err != nil {
		return
	}
	r := s.reading
	if len(now.Kvs) == 0 {
		r.found.forget(r.spec.Resource, key)
		return
	}
	kv := now.Kvs[0]
	data, _, err := r.TransformFromStorage(ctx, kv.Value, value.DefaultContext(key))
	if err == nil {
		_ = r.Decode(data, r.spec.NewFunc(), kv.ModRevision) // notes or forgets it
	}
}

// Delete implements storage.Interface.
func (s *surviving) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	err := s.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts)
	if err == nil || storage.IsNotFound(err) {
		s.backend.unreadable.forget(s.reading.spec.Resource, s.backend.Key(key))
	}
	return err
}

// fed returns an event as a watch cache takes it. An object that cannot be read, or
// could not be when it was deleted, is a deletion: if the cache had the object before,
// it tells its watches so, and otherwise nothing. ok is false if there is nothing for
// the cache.
func (s *Spec) fed(found *unreadables, folder string, event watch.Event) (_ watch.Event, ok bool) {
	if event.Type == watch.Bookmark || event.Type == watch.Error {
		return event, true
	}
	obj := event.Object
	if timed, ok := obj.(storage.WatchEventWithRecordTime); ok {
		obj = timed.Unwrap()
	}
	m, unread := obj.(*missing)
	switch {
	case obj == nil: // deleted when its value was empty: no cache has had it
		return event, false
	case !unread:
		if found.any() {
			if key, err := s.KeyFunc(obj); err == nil {
				found.forget(s.Resource, folder+key)
			}
		}
		return event, true
	}
	found.follow(event.Type, m)
	gone := s.NewFunc()
	if o, err := meta.Accessor(gone); err == nil {
		o.SetNamespace(m.Namespace)
		o.SetName(m.Name)
		o.SetResourceVersion(m.ResourceVersion)
	}
	return watch.Event{Type: watch.Deleted, Object: gone}, true
}

// follow returns what the feed of a cache does with the events of a watch.
func (f *feed) follow(stream int) func(watch.Event) (watch.Event, bool) {
	return func(event watch.Event) (watch.Event, bool) {
		event, ok := f.spec.fed(&f.backend.unreadable, f.backend.Key(""), forgotten(event))
		if !ok {
			go f.backend.recheck(f.spec) // no event says which object has gone
			return event, false
		}
		f.lister.apply(stream, event)
		return event, true
	}
}

// recheck forgets unreadable objects that have gone.
func (b *Backend) recheck(s *Spec) {
	ctx, cancel := context.WithTimeout(context.Background(), statusTimeout)
	defer cancel()
	_, _ = b.Unreadable(ctx, s.Resource, s.ResourcePrefix) // what is not found out now is found out later
}

// incomplete is a list from a cache, which lacks what cannot be read. If the cache
// has etcd answer, the list is not warned about twice.
func (l *onDemandCacher) incomplete(ctx context.Context, a *active, key string, opts storage.ListOptions, list runtime.Object) error {
	if err := l.list(context.WithValue(ctx, quietKey{}, true), a, key, opts, list); err != nil {
		return err
	}
	warn(ctx, l.backend.unreadable.below(l.spec.Resource, l.backend.Key(key)))
	return nil
}

// refused is the error that keeps a cache from being filled, if that is an object which
// must not be left out. The cache itself would ask clients to come back, and does not
// say which object it is. Consistent lists are answered by etcd: an operator who has
// just removed the object is to see that.
func (l *onDemandCacher) refused(a *active) error {
	if refusal := a.feed.refusal.Load(); refusal != nil && !a.cacher.Ready() {
		return refusal
	}
	return nil
}

// warnOf warns a watch that begins with all objects of those that it lacks.
func (l *onDemandCacher) warnOf(ctx context.Context, key string, opts storage.ListOptions) {
	if opts.SendInitialEvents != nil && *opts.SendInitialEvents && l.backend.unreadable.any() {
		warn(ctx, l.backend.unreadable.below(l.spec.Resource, l.backend.Key(key)))
	}
}
