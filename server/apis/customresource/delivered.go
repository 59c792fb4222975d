package customresource

import (
	"context"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// watchingKey is the context key of a request's watching.
type watchingKey struct{}

// deliver makes a watch encode each event with the schema that is current at that
// moment.
func (f *Decoder) deliver(ctx context.Context) func(runtime.Object) runtime.Object {
	w, ok := ctx.Value(watchingKey{}).(*watching)
	if !ok {
		return nil
	}
	to := &delivery{decoder: f, to: w}
	return func(obj runtime.Object) runtime.Object { return &delivered{obj, to} }
}

// delivery is what the events of one watch have in common.
type delivery struct {
	decoder *Decoder
	to      *watching
}

// delivered is the object of an event on its way to one watch. The watch cache shares
// encodings among its watches, under an identifier that the library's encoder takes once
// in the life of a watch. The schema may change in that time, so it is added here.
//
// It costs an allocation of 24 bytes per event and watch.
type delivered struct {
	runtime.Object
	*delivery
}

var (
	_ runtime.CacheableObject   = (*delivered)(nil)
	_ metav1.ObjectMetaAccessor = (*delivered)(nil)
)

// CacheEncode implements runtime.CacheableObject. The handler of a watch has written the
// event when it returns.
func (d *delivered) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	s := d.to.encode(d.decoder)
	defer d.to.encoded()
	if shared, ok := d.Object.(runtime.CacheableObject); ok {
		return shared.CacheEncode(s.encodingID(id), encode, w)
	}
	return encode(d.Object, w)
}

// GetObject implements runtime.CacheableObject.
func (d *delivered) GetObject() runtime.Object {
	if shared, ok := d.Object.(runtime.CacheableObject); ok {
		return shared.GetObject()
	}
	return d.DeepCopyObject()
}

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (d *delivered) GetObjectMeta() metav1.Object {
	m, err := meta.Accessor(d.Object)
	if err != nil {
		return nil
	}
	return m
}
