package customresourcedefinition

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/internal/object"
)

// convertor brings CRDs into a version, for the handlers and the field
// manager. Its zero value leaves them as they are.
type convertor struct{ version schema.GroupVersion }

var _ runtime.ObjectConvertor = convertor{}

// ConvertToVersion returns a CRD, or a list of CRDs, in the version of target. It
// returns other objects unchanged. Objects of that version are not copied.
func (convertor) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	gvk, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{in.GetObjectKind().GroupVersionKind()})
	if !ok {
		return nil, runtime.NewNotRegisteredErrForTarget("definitions", nil, target)
	}
	return convertor{gvk.GroupVersion()}.any(in)
}

// Convert implements runtime.ObjectConvertor, for out of type *[object.Object].
func (c convertor) Convert(in, out, target any) error {
	from, ok := in.(*object.Object)
	into, fits := out.(*object.Object)
	if !ok || !fits {
		return fmt.Errorf("a CRD cannot be converted from %T to %T", in, out)
	}
	gv, ok := target.(runtime.GroupVersioner)
	if !ok {
		gv = into.GroupVersionKind().GroupVersion()
	}
	o, err := c.ConvertToVersion(from, gv)
	if err == nil {
		*into = *o.(*object.Object)
	}
	return err
}

// ConvertFieldLabel knows the fields that selectors may name.
func (convertor) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return runtime.DefaultMetaV1FieldSelectorConversion(label, value)
}

func (c convertor) any(in runtime.Object) (runtime.Object, error) {
	switch x := in.(type) {
	case *object.Object:
		return c.object(x)
	case *object.List:
		return c.list(x)
	}
	return in, nil
}

func (c convertor) object(o *object.Object) (*object.Object, error) {
	if c.version.Empty() || o.APIVersion() == c.version.String() || o.APIVersion() == "" {
		return o, nil
	}
	if c.version != stable && c.version != beta {
		return nil, runtime.NewNotRegisteredErrForKind("definitions", c.version.WithKind(kind))
	}
	r, _, err := read(o.JSON(), nil, lenient)
	if err != nil {
		return nil, err
	}
	return r.object(c.version)
}

func (c convertor) list(l *object.List) (*object.List, error) {
	if c.version.Empty() || c.version == stable {
		return l, nil
	}
	out := &object.List{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta, Items: make([]object.Object, len(l.Items))}
	out.SetGroupVersionKind(c.version.WithKind(kind + "List"))
	for i := range l.Items {
		o, err := c.object(&l.Items[i])
		if err != nil {
			return nil, err
		}
		out.Items[i] = *o
	}
	return out, nil
}

// defaulter sets defaults in a CRD, and drops unknown fields, after server-side apply
// and strategic merge patches. It records the dropped fields.
type defaulter struct{}

// Default implements runtime.ObjectDefaulter.
func (defaulter) Default(in runtime.Object) {
	o, ok := in.(*object.Object)
	if !ok {
		return
	}
	found := outcome{result: o.JSON()}
	r, gvk, err := read(found.result, nil, strict)
	if err == nil {
		found.unknown = r.complaints
		scheme.Default(r.typed)
		var full *object.Object
		if full, err = r.object(gvk.GroupVersion()); err == nil {
			*o = *full
		}
	}
	if found.err = err; err == nil && len(found.unknown) == 0 {
		return
	}
	n := notesOf(o)
	n.patch = found
	o.SetStamp(&n)
}

// serializer writes CRDs in the version that clients request. The decoder converts
// CRDs of requests to v1.
type serializer struct {
	runtime.NegotiatedSerializer
	version schema.GroupVersion
}

// EncoderForVersion implements runtime.NegotiatedSerializer.
func (s serializer) EncoderForVersion(e runtime.Encoder, gv runtime.GroupVersioner) runtime.Encoder {
	return encoder{s.NegotiatedSerializer.EncoderForVersion(e, gv), convertor{s.version}}
}

type encoder struct {
	runtime.Encoder
	convertor convertor
}

// Encode implements runtime.Encoder.
func (e encoder) Encode(obj runtime.Object, w io.Writer) error {
	if c, ok := obj.(runtime.CacheableObject); ok {
		return c.CacheEncode(e.Identifier(), e.encode, w)
	}
	return e.encode(obj, w)
}

func (e encoder) encode(obj runtime.Object, w io.Writer) error {
	obj, err := e.convertor.any(obj)
	if err != nil {
		return err
	}
	return e.Encoder.Encode(obj, w)
}

// Identifier implements runtime.Encoder.
func (e encoder) Identifier() runtime.Identifier {
	return e.Encoder.Identifier() + runtime.Identifier(" of "+e.convertor.version.String())
}

func newObject() runtime.Object { return object.New(stable.WithKind(kind)) }

func newList() runtime.Object {
	l := &object.List{}
	l.SetGroupVersionKind(stable.WithKind(kind + "List"))
	return l
}
