package codec

import (
	"bytes"
	"fmt"
	"io"
	"sync/atomic"
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/server/object"
)

// storage implements runtime.Codec.
type storage struct {
	form Form
	echo *echo
}

// Storage returns what objects are written to etcd with, and read from it. An
// object is written as it is, with a newline at the end as upstream writes it:
// an update that changes nothing is known by its bytes.
func Storage(f Form) runtime.Codec { return storage{f, new(echo)} }

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
	err := withBuffer(func(b []byte) ([]byte, error) {
		b = append(o.AppendJSON(b), '\n')
		_, err := w.Write(b)
		return b, err
	})
	if b, ok := w.(*bytes.Buffer); ok && err == nil {
		if n, ok := s.form.(Normal); ok && n.IsNormal(o) {
			s.echo.remember(b.Bytes(), o.Stamp())
		}
	}
	return err
}

// Decode implements runtime.Decoder. The object keeps data.
func (s storage) Decode(data []byte, _ *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	target, ok := into.(*object.Object)
	if into != nil && !ok {
		return nil, nil, fmt.Errorf("what is stored cannot be read into an object of type %T", into)
	}
	o, err := s.read(data)
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

// read returns the object of stored bytes.
func (s storage) read(data []byte) (*object.Object, error) {
	stored := bytes.TrimRight(data, "\n")
	stamp := s.echo.recall(data)
	if stamp == nil {
		return s.form.FromStorage(stored)
	}
	o, err := object.FromJSON(stored)
	if err == nil {
		o.SetStamp(stamp)
	}
	return o, err
}

// Normal is a [Form] that knows objects that reading from storage would leave as
// they are, but for their stamp.
type Normal interface {
	IsNormal(o *object.Object) bool
}

// echo remembers what has been encoded a moment ago. Who writes an object to
// etcd reads the very bytes back, from memory, for the answer: they need not be
// normalized once more. Bytes are known by their address, at which nothing else
// can be while they are remembered.
type echo struct{ places [32]atomic.Pointer[note] }

type note struct {
	first *byte
	size  int
	stamp any
}

// maxEcho bounds the memory that is held by what is never read back.
const maxEcho = 64 << 10

func (e *echo) place(data []byte) *atomic.Pointer[note] {
	address := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	return &e.places[address>>7%uintptr(len(e.places))]
}

func (e *echo) remember(data []byte, stamp any) {
	if len(data) > 0 && len(data) <= maxEcho {
		e.place(data).Store(&note{&data[0], len(data), stamp})
	}
}

// recall returns the stamp of bytes that are remembered, and forgets them.
func (e *echo) recall(data []byte) any {
	if len(data) == 0 {
		return nil
	}
	place := e.place(data)
	n := place.Load()
	if n == nil || n.first != &data[0] || n.size != len(data) {
		return nil
	}
	place.CompareAndSwap(n, nil)
	return n.stamp
}
