package codec

import (
	"bytes"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/internal/object"
)

// storage implements runtime.Codec.
type storage struct{ decoder Decoder }

// Storage returns the codec of values in etcd. It writes an object unchanged, with a
// newline at the end like upstream: an update that changes nothing is recognized by
// its bytes.
func Storage(f Decoder) runtime.Codec { return storage{f} }

// Identifier implements runtime.Encoder.
func (s storage) Identifier() runtime.Identifier {
	return runtime.Identifier("storage of " + s.decoder.Kind().String())
}

// Encode implements runtime.Encoder.
func (s storage) Encode(obj runtime.Object, w io.Writer) error {
	if c, ok := obj.(runtime.CacheableObject); ok {
		return c.CacheEncode(s.Identifier(), s.Encode, w)
	}
	o, ok := obj.(*object.Object)
	if !ok {
		return fmt.Errorf("an object of type %T cannot be stored", obj)
	}
	return withBuffer(func(b []byte) ([]byte, error) {
		b = append(o.AppendJSON(b), '\n')
		_, err := w.Write(b)
		return b, err
	})
}

// Decode implements runtime.Decoder. The object keeps data. If into has a stamp, it is the schema by which the
// object was normalized that was encoded to data: etcd3 decodes what it has just written.
func (s storage) Decode(data []byte, _ *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	target, ok := into.(*object.Object)
	if into != nil && !ok {
		return nil, nil, fmt.Errorf("a stored value cannot be decoded into an object of type %T", into)
	}
	o, err := s.read(bytes.TrimRight(data, "\n"), target)
	if err != nil {
		return nil, nil, err
	}
	gvk := o.GroupVersionKind()
	if target == nil {
		return o, &gvk, nil
	}
	*target = *o
	return target, &gvk, nil
}

func (s storage) read(data []byte, target *object.Object) (*object.Object, error) {
	if decoder, ok := s.decoder.(Rereading); ok && target != nil && target.Stamp() != nil {
		if o, ok := decoder.FromWritten(data, target.Stamp()); ok {
			return o, nil
		}
	}
	return s.decoder.FromStorage(data)
}
