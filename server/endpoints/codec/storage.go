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
type storage struct{ form Form }

// Storage returns what objects are written to etcd with, and read from it. An
// object is written as it is, with a newline at the end as upstream writes it:
// an update that changes nothing is known by its bytes.
func Storage(f Form) runtime.Codec { return storage{f} }

// Identifier implements runtime.Encoder.
func (s storage) Identifier() runtime.Identifier {
	return runtime.Identifier("storage of " + s.form.Kind().String())
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
		return nil, nil, fmt.Errorf("what is stored cannot be read into an object of type %T", into)
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
	if form, ok := s.form.(Rereading); ok && target != nil && target.Stamp() != nil {
		if o, ok := form.FromWritten(data, target.Stamp()); ok {
			return o, nil
		}
	}
	return s.form.FromStorage(data)
}
