package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/internal/object"
)

// listChunk is how many objects of a list with selectors are read and converted
// at a time, if the caller does not ask for pages of more.
const listChunk = 500

// converting is a storage whose objects are all in one version, whatever they are
// stored in.
type converting struct {
	storage.Interface // in the versions as stored
	backend           *Backend
	spec              *Spec

	filteredOnce sync.Once
	filtered     storage.Interface // see filteredWatches
	filteredErr  error
}

var _ storage.Interface = (*converting)(nil)

// apiVersion returns what objects of a version have as apiVersion.
func (s *Spec) apiVersion(version string) string {
	if s.Resource.Group == "" {
		return version
	}
	return s.Resource.Group + "/" + version
}

// convert brings objects into a version, with at most one call. Those that are in
// it already come back as they are.
func (s *Spec) convert(ctx context.Context, objs []*object.Object, version string) ([]*object.Object, error) {
	wanted := s.apiVersion(version)
	var other []*object.Object
	for _, o := range objs {
		if o.APIVersion() != wanted {
			other = append(other, o)
		}
	}
	if len(other) == 0 {
		return objs, nil
	}
	converted, err := s.Convert(ctx, other, version)
	if err != nil {
		return nil, err
	}
	if len(converted) != len(other) {
		return nil, fmt.Errorf("conversion of %s to %s returned %d objects for %d", s.Resource, version, len(converted), len(other))
	}
	result := make([]*object.Object, len(objs))
	for i, o := range objs {
		if o.APIVersion() != wanted {
			o, converted = converted[0], converted[1:]
		}
		result[i] = o
	}
	return result, nil
}

// one is convert for a single object, as the interfaces of storage pass it. The
// zero object, which stands for one that does not exist, is in every version.
func (s *Spec) one(ctx context.Context, in runtime.Object, version string) (*object.Object, error) {
	o, ok := in.(*object.Object)
	if !ok {
		return nil, fmt.Errorf("conversion of %s: %T is not an object", s.Resource, in)
	}
	if o.APIVersion() == "" {
		return o, nil
	}
	converted, err := s.convert(ctx, []*object.Object{o}, version)
	if err != nil {
		return nil, err
	}
	return converted[0], nil
}

// answer returns what a read of stored would give, without its resource version:
// it goes through the codec, which may fill in what the schema has as defaults.
func (c *converting) answer(ctx context.Context, stored runtime.Object) (*object.Object, error) {
	data, err := runtime.Encode(c.spec.Codec, stored)
	if err != nil {
		return nil, err
	}
	read, _, err := c.spec.Codec.Decode(data, nil, c.spec.NewFunc())
	if err != nil {
		return nil, err
	}
	return c.spec.one(ctx, read, c.spec.Version)
}

// set makes out the object that has been converted before, with the resource
// version that etcd has given it since.
func (c *converting) set(out runtime.Object, converted *object.Object) error {
	o, ok := out.(*object.Object)
	if !ok {
		return fmt.Errorf("conversion of %s: %T is not an object", c.spec.Resource, out)
	}
	version := o.GetResourceVersion()
	*o = *converted.DeepCopy()
	o.SetResourceVersion(version)
	return nil
}

// unconvertedError is the error for stored objects that cannot be converted. Its text
// is that of the conversion: the objects themselves may be as they should be.
type unconvertedError struct {
	cause error
	also  error // what storage takes it for, if not nil
}

// Error implements error.
func (e *unconvertedError) Error() string { return e.cause.Error() }

// Unwrap implements errors.
func (e *unconvertedError) Unwrap() []error {
	if e.also == nil {
		return []error{e.cause}
	}
	return []error{e.cause, e.also}
}

// Status implements errors.APIStatus.
func (e *unconvertedError) Status() metav1.Status { return *statusOf(e.cause) }

// unreadable is the error for a stored object that cannot be converted. It counts as
// corrupt, so that an operator whose converter is gone for good can delete the
// object. A caller that has run out of time, or is told to come back, learns nothing
// about the object.
func unreadable(ctx context.Context, key string, err error) error {
	switch {
	case ctx.Err() != nil:
		return storage.NewTimeoutError(key, err.Error())
	case apierrors.IsTooManyRequests(err):
		return &unconvertedError{cause: err}
	}
	return &unconvertedError{err, storage.NewCorruptObjError(key, err)}
}

// Get implements storage.Interface.
func (c *converting) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	if err := c.Interface.Get(ctx, key, opts, out); err != nil {
		return err
	}
	converted, err := c.spec.one(ctx, out, c.spec.Version)
	if err != nil {
		return unreadable(ctx, key, err)
	}
	if converted == out {
		return nil
	}
	return c.set(out, converted)
}

// GetList implements storage.Interface.
func (c *converting) GetList(ctx context.Context, key string, opts storage.ListOptions, out runtime.Object) error {
	list, ok := out.(*object.List)
	if !ok {
		return fmt.Errorf("conversion of %s: %T is not a list of objects", c.spec.Resource, out)
	}
	if opts.Predicate.Empty() || !opts.Recursive {
		if err := c.page(ctx, key, opts, list); err != nil {
			return err
		}
		if !opts.Predicate.Empty() {
			list.Items = matching(list.Items, &opts.Predicate)
		}
		return nil
	}
	return c.filteredList(ctx, key, opts, list)
}

// page reads a list, or a page of one, without selectors, and converts all of it
// at once.
func (c *converting) page(ctx context.Context, key string, opts storage.ListOptions, list *object.List) error {
	everything := storage.Everything
	everything.Limit, everything.Continue = opts.Predicate.Limit, opts.Predicate.Continue
	opts.Predicate = everything
	if err := c.Interface.GetList(ctx, key, opts, list); err != nil {
		return err
	}
	objs := make([]*object.Object, len(list.Items))
	for i := range list.Items {
		objs[i] = &list.Items[i]
	}
	converted, err := c.spec.convert(ctx, objs, c.spec.Version)
	if err != nil {
		return &unconvertedError{cause: err}
	}
	for i, o := range converted {
		if o != objs[i] {
			list.Items[i] = *o
		}
	}
	return nil
}

// matching keeps the objects that a predicate selects.
func matching(items []object.Object, p *storage.SelectionPredicate) []object.Object {
	kept := items[:0]
	for i := range items {
		if ok, err := p.Matches(&items[i]); ok && err == nil {
			kept = append(kept, items[i])
		}
	}
	clear(items[len(kept):])
	return kept
}

// filteredList applies selectors after conversion: what they select by may be
// elsewhere in the version that is stored.
func (c *converting) filteredList(ctx context.Context, key string, opts storage.ListOptions, list *object.List) error {
	limit := opts.Predicate.Limit
	selected := []object.Object{}
	for {
		chunk := opts
		chunk.Predicate.Limit = max(limit, listChunk)
		page, ok := c.spec.NewListFunc().(*object.List)
		if !ok {
			return fmt.Errorf("conversion of %s: lists of another type", c.spec.Resource)
		}
		if err := c.page(ctx, key, chunk, page); err != nil {
			return err
		}
		list.ListMeta = page.ListMeta
		list.RemainingItemCount = nil // it is unknown how many of them are selected
		selected = append(selected, matching(page.Items, &opts.Predicate)...)
		if limit > 0 && int64(len(selected)) >= limit {
			list.Items = selected[:limit:limit]
			if int64(len(selected)) == limit {
				return nil // the token of the page goes on where this list ends
			}
			return c.continueAfterLast(key, list)
		}
		if page.Continue == "" {
			list.Items = selected
			return nil
		}
		// The token has the revision: what follows is of the same moment.
		opts.Predicate.Continue, opts.ResourceVersion, opts.ResourceVersionMatch = page.Continue, "", ""
	}
}

// continueAfterLast sets the token with which a list goes on after its last object.
func (c *converting) continueAfterLast(key string, list *object.List) error {
	if c.spec.KeyFunc == nil {
		return errors.New("storage of " + c.spec.Resource.String() + ": lists in pages need a function for keys")
	}
	last, err := c.spec.KeyFunc(&list.Items[len(list.Items)-1])
	if err != nil {
		return err
	}
	revision, err := c.Versioner().ParseResourceVersion(list.ResourceVersion)
	if err != nil {
		return err
	}
	list.Continue, err = storage.EncodeContinue(last+"\x00", strings.TrimSuffix(key, "/")+"/", int64(revision))
	return err
}

// Create implements storage.Interface.
func (c *converting) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	stored, err := c.spec.one(ctx, obj, c.spec.StorageVersion)
	if err != nil {
		return err
	}
	if version, err := c.Versioner().ObjectResourceVersion(stored); err == nil && version != 0 {
		return storage.ErrResourceVersionSetOnCreate
	}
	var answer *object.Object
	if out != nil && c.spec.Version != c.spec.StorageVersion {
		if answer, err = c.answer(ctx, stored); err != nil {
			return err
		}
	}
	if err := c.Interface.Create(ctx, key, stored, out, ttl); err != nil || answer == nil {
		return err
	}
	return c.set(out, answer)
}

// GuaranteedUpdate implements storage.Interface.
func (c *converting) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, try storage.UpdateFunc, cached runtime.Object,
) error {
	same := c.spec.Version == c.spec.StorageVersion
	if !same {
		// The bytes of what is cached are in another version than those that etcd3
		// compares with, to find out that there is nothing to write.
		cached = nil
	}
	var answer *object.Object
	convertingTry := func(in runtime.Object, meta storage.ResponseMeta) (runtime.Object, *uint64, error) {
		current, err := c.spec.one(ctx, in, c.spec.Version)
		if err != nil {
			return nil, nil, err
		}
		var before []byte
		if current != in {
			before = bytes.Clone(current.JSON())
		}
		updated, ttl, err := try(current, meta)
		if err != nil {
			return nil, nil, err
		}
		result, stored, err := c.toStore(ctx, in, before, updated)
		answer = result
		return stored, ttl, err
	}
	if err := c.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, convertingTry, cached); err != nil || answer == nil {
		return err
	}
	return c.set(out, answer)
}

// toStore returns what is written for updated, and the answer if that must be
// converted. in is what is stored, and before its bytes in our version, if that is
// another.
func (c *converting) toStore(ctx context.Context, in runtime.Object, before []byte, updated runtime.Object) (answer *object.Object, stored runtime.Object, err error) {
	o, ok := updated.(*object.Object)
	if !ok {
		return nil, nil, fmt.Errorf("conversion of %s: %T is not an object", c.spec.Resource, updated)
	}
	if old, ok := in.(*object.Object); ok && before != nil && old.APIVersion() == c.spec.apiVersion(c.spec.StorageVersion) && bytes.Equal(before, o.JSON()) {
		// Nothing has changed: what is stored stays, even if the way to our
		// version and back would not give the same bytes.
		return o.DeepCopy(), old, nil
	}
	converted, err := c.spec.one(ctx, o, c.spec.StorageVersion)
	if err != nil {
		return nil, nil, err
	}
	if c.spec.Version != c.spec.StorageVersion {
		answer, err = c.answer(ctx, converted)
	}
	return answer, converted, err
}

// Delete implements storage.Interface.
func (c *converting) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	if opts.ExpectTransformOrDecodeError {
		return c.deleteUnreadable(ctx, key, out, preconditions, validate, opts)
	}
	var last *object.Object
	convertingValidate := func(ctx context.Context, obj runtime.Object) error {
		converted, err := c.spec.one(ctx, obj, c.spec.Version)
		if err != nil {
			return err
		}
		last = converted
		return validate(ctx, converted)
	}
	if err := c.Interface.Delete(ctx, key, out, preconditions, convertingValidate, cached, opts); err != nil {
		return err
	}
	return c.set(out, last)
}

// deleteUnreadable deletes an object that cannot be decoded, or cannot be
// converted. One that can be read is not deleted.
func (c *converting) deleteUnreadable(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, opts storage.DeleteOptions,
) error {
	refused := c.Interface.Delete(ctx, key, out, preconditions, validate, nil, opts)
	if !storage.IsInvalidObj(refused) {
		return refused
	}
	unconverted := func(ctx context.Context, obj runtime.Object) error {
		if _, err := c.spec.one(ctx, obj, c.spec.Version); err == nil || ctx.Err() != nil {
			return refused
		}
		return validate(ctx, nil)
	}
	return c.Interface.Delete(ctx, key, out, preconditions, unconverted, nil, storage.DeleteOptions{})
}
