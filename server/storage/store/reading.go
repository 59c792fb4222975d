package store

import (
	"context"
	"errors"
	"fmt"
	"path"
	"reflect"
	"strings"
	"sync"

	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/espalier-dev/espalier/internal/object"
)

// A reading is how etcd3 reads the values of one resource. etcd3 knows no list or
// watch that lacks an object: one value that it cannot read is the end of both. So
// it is given something for each value, and what stands for an unreadable object is
// taken out again by surviving:
//
//	                    value, key                value
//	etcd ──▶ etcd3 ──▶ transformer ──▶ etcd3 ──▶ decoder (get, update, delete) ──▶ object, or error
//	                        │                    decoder (list) ────────────────▶ object, or one without a name
//	                        └─── key, error ───▶ codec (watch) ─────────────────▶ object, or *missing
//
// Lists and watches fail instead if the object must not be left out: see fatal.
//
// Only the transformer learns the key. Lists are read one value after the other, with a
// context that has a place for the key. In all other cases there is no context
// where a value is decoded, and the key is found by the address of the value.
type reading struct {
	spec      *Spec
	found     *unreadables
	folder    string // what the keys of the resource begin with, without a slash at the end
	codec     runtime.Codec
	versioner storage.Versioner
	decrypt   value.Transformer
	kind      string       // of objects without Go type; empty if there is none
	goType    reflect.Type // of objects

	mu      sync.Mutex
	origins map[*byte]origin // of values that have been decrypted and not yet decoded
}

// origin is where a value comes from, and why it could not be decrypted.
type origin struct {
	key string
	err error
	// reported says that the reader has a Report, and so knows what it lacks.
	reported bool
}

func newReading(b *Backend, s *Spec, codec runtime.Codec, decrypt value.Transformer, versioner storage.Versioner) *reading {
	empty := s.NewFunc()
	r := &reading{
		spec: s, found: &b.unreadable, folder: path.Join("/", b.config.Prefix, s.ResourcePrefix),
		codec: codec, versioner: versioner, decrypt: decrypt, goType: reflect.TypeOf(empty), origins: map[*byte]origin{},
	}
	if o, ok := empty.(*object.Object); ok {
		r.kind = o.Kind()
	}
	return r
}

// listing is what is known about a list that is being read.
type listing struct {
	origin  // of the value that is being read
	missing []*unreadableError
	fatal   int // of missing: those that the list must not leave out
}

type listingKey struct{}

// TransformFromStorage implements value.Transformer. That a value cannot be decrypted
// is for the decoder to say. It is an error here if that may pass.
func (r *reading) TransformFromStorage(ctx context.Context, data []byte, of value.Context) ([]byte, bool, error) {
	plain, stale, err := r.decrypt.TransformFromStorage(ctx, data, of)
	switch {
	case err != nil && passing(ctx, err):
		return nil, stale, err
	case err == nil && len(plain) == 0:
		err = errEmpty
	case err != nil:
		err = &undecryptedError{err}
	}
	from := origin{keyOf(of), err, reportOf(ctx) != nil}
	if l, ok := ctx.Value(listingKey{}).(*listing); ok {
		l.origin = from
		return plain, stale, nil
	}
	if err != nil {
		plain = make([]byte, 1) // something that has an address
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.origins[&plain[0]] = from
	return plain, stale, nil
}

// TransformToStorage implements value.Transformer.
func (r *reading) TransformToStorage(ctx context.Context, data []byte, of value.Context) ([]byte, error) {
	return r.decrypt.TransformToStorage(ctx, data, of)
}

// keyOf returns the key that a value belongs to. That is a string of etcd3's, which
// AuthenticatedData would copy.
func keyOf(of value.Context) string {
	if v := reflect.ValueOf(of); v.Kind() == reflect.String {
		return v.String()
	}
	return string(of.AuthenticatedData())
}

var errEmpty = errors.New("the value is empty")

// undecryptedError is that no key decrypts a value.
type undecryptedError struct{ cause error }

// Error implements error.
func (e *undecryptedError) Error() string { return "decryption failed: " + e.cause.Error() }

// Unwrap returns why.
func (e *undecryptedError) Unwrap() error { return e.cause }

// fatal reports whether a list or watch must fail because of an object that cannot be
// read, and must not leave it out. A value that no key decrypts may be as it should be:
// then it is this replica that lacks a key, and its clients would be told that
// objects are deleted which all other replicas serve.
func (r *reading) fatal(err error) bool {
	var undecrypted *undecryptedError
	return r.spec.Complete || errors.As(err, &undecrypted)
}

// passing reports whether an error says nothing about a value: the request has
// ended, or a key management service did not answer. Objects that are left out for
// such a reason would look as if they had been deleted.
func passing(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	var remote interface{ GRPCStatus() *status.Status }
	var unconverted *unconvertedError
	return errors.As(err, &remote) || errors.As(err, &unconverted)
}

// take returns where a value comes from. Values that have not been read from etcd
// have no origin.
func (r *reading) take(value []byte) (from origin) {
	if len(value) == 0 {
		return from
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	from, ok := r.origins[&value[0]]
	if ok {
		delete(r.origins, &value[0])
	}
	return from
}

// decode reads a value into an object, or into a new one if into is nil. A decoder
// that panics on a value must not end the process, which would meet it again.
func (r *reading) decode(data []byte, from origin, into runtime.Object) (obj runtime.Object, err error) {
	if from.err != nil {
		return nil, from.err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoding panicked: %v", p)
		}
	}()
	obj, kind, err := r.codec.Decode(data, nil, into)
	if err != nil {
		return nil, err
	}
	if reflect.TypeOf(obj) != r.goType || into != nil && obj != into {
		return nil, fmt.Errorf("it is a %v", kind)
	}
	return obj, r.check(obj, from.key)
}

// check reports an object whose name is not that of its key. A client that asks for the
// key would get another object, and a cache, which has objects by their names, one of two
// (kubernetes#135115).
func (r *reading) check(obj runtime.Object, key string) error {
	if o, ok := obj.(*object.Object); ok && r.kind != "" && o.Kind() != r.kind {
		return fmt.Errorf("it is of kind %q, not %q", o.Kind(), r.kind)
	}
	namespace, name, ok := r.split(key)
	if !ok {
		return nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if m.GetName() != name || m.GetNamespace() != namespace {
		return fmt.Errorf("metadata.namespace is %q and metadata.name is %q, which differ from the key", cut(m.GetNamespace()), cut(m.GetName()))
	}
	return nil
}

// split returns the names in a key of the resource.
func (r *reading) split(key string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(key, r.folder)
	if !ok || rest == "" || rest[0] != '/' {
		return "", "", false
	}
	if r.spec.InTenants {
		if _, rest, ok = strings.Cut(rest[1:], "/"); !ok {
			return "", "", false
		}
		rest = "/" + rest
	}
	namespace, name, namespaced := strings.Cut(rest[1:], "/")
	if !namespaced {
		return "", namespace, true
	}
	return namespace, name, true
}

// unreadable is the error for a value that cannot be read.
func (r *reading) unreadable(key string, revision int64, err error) *unreadableError {
	namespace, name, _ := r.split(key)
	var undecrypted *undecryptedError
	return &unreadableError{Unreadable{
		Resource: r.spec.Resource, Version: r.spec.Version, Key: key, Namespace: namespace, Name: name, Revision: revision, Reason: err.Error(),
		Fatal: r.fatal(err),
	}, err, errors.As(err, &undecrypted)}
}

// Decode implements etcd3.Decoder.
func (r *reading) Decode(data []byte, into runtime.Object, revision int64) error {
	from := r.take(data)
	obj, err := r.decode(data, from, into)
	if err != nil {
		if from.key == "" || passing(context.Background(), err) {
			return err
		}
		unreadable := r.unreadable(from.key, revision, err)
		r.found.note(&unreadable.Unreadable)
		return unreadable
	}
	r.found.forget(r.spec.Resource, from.key)
	return r.versioner.UpdateObject(obj, uint64(revision))
}

var _ etcd3.Decoder = (*reading)(nil)

// DecodeListItem implements etcd3.Decoder. An object that cannot be read comes back
// without a name, which no other object lacks.
func (r *reading) DecodeListItem(ctx context.Context, data []byte, revision uint64, newItem func() runtime.Object) (runtime.Object, error) {
	l, ok := ctx.Value(listingKey{}).(*listing)
	if !ok {
		return nil, errors.New("a list is read without a place for what cannot be read")
	}
	obj, err := r.decode(data, l.origin, newItem())
	if err != nil {
		if passing(ctx, err) {
			return nil, err
		}
		unreadable := r.unreadable(l.key, int64(revision), err)
		l.missing = append(l.missing, unreadable)
		if unreadable.Fatal && !l.reported {
			if l.fatal++; l.fatal >= maxCauses {
				return nil, unreadable // reading on would add nothing
			}
		}
		return newItem(), nil
	}
	return obj, r.versioner.UpdateObject(obj, revision)
}

// watched is the codec that etcd3's watches decode with.
type watched struct {
	runtime.Codec
	r *reading
}

// Decode implements runtime.Decoder. What cannot be read is a *missing, or the error
// that ends the watch.
func (w watched) Decode(data []byte, _ *schema.GroupVersionKind, _ runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	from := w.r.take(data)
	obj, err := w.r.decode(data, from, nil)
	switch {
	case err == nil:
		return obj, nil, nil
	case passing(context.Background(), err) || from.key == "":
		return nil, nil, err
	}
	unreadable := w.r.unreadable(from.key, 0, err)
	if unreadable.Fatal && !from.reported {
		return nil, nil, unreadable
	}
	m := &missing{unread: unreadable}
	m.Namespace, m.Name = unreadable.Namespace, unreadable.Name
	return m, nil, nil
}

// missing stands for an object in an event that cannot be read.
type missing struct {
	metav1.PartialObjectMetadata // the names of the key, and the revision of the event
	unread                       *unreadableError
}

// DeepCopyObject implements runtime.Object.
func (m *missing) DeepCopyObject() runtime.Object {
	return &missing{PartialObjectMetadata: *m.PartialObjectMetadata.DeepCopy(), unread: m.unread}
}

// at returns what is missing, with the revision of the event.
func (m *missing) at() Unreadable {
	one := m.unread.Unreadable
	if revision, err := (storage.APIObjectVersioner{}).ObjectResourceVersion(m); err == nil {
		one.Revision = int64(revision)
	}
	return one
}
