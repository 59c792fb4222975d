package codec

import (
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/object"
)

// serializer reads and writes one media type.
type serializer struct {
	decoder  Decoder
	options  json.SerializerOptions
	ordinary *json.Serializer // for everything but objects of the resource
	name     string           // for the identifier
}

func newSerializer(f Decoder, options json.SerializerOptions) *serializer {
	ordinary := json.NewSerializerWithOptions(json.DefaultMetaFactory, known, known, options)
	return &serializer{decoder: f, options: options, ordinary: ordinary, name: string(ordinary.Identifier()) + " " + f.Kind().String()}
}

// Identifier implements runtime.Encoder. Watchers share what has been encoded
// under the same identifier.
func (s *serializer) Identifier() runtime.Identifier { return identifier(s.name, s.decoder) }

// identifier distinguishes the schemas of a decoder.
func identifier(name string, f Decoder) runtime.Identifier {
	if f, ok := f.(interface{ Identifier() string }); ok {
		name += " " + f.Identifier()
	}
	return runtime.Identifier(name)
}

// IsStrict reports whether unknown and duplicate fields are errors.
func (s *serializer) IsStrict() bool { return s.options.Strict }

// Encode implements runtime.Encoder.
func (s *serializer) Encode(obj runtime.Object, w io.Writer) error {
	if c, ok := obj.(runtime.CacheableObject); ok {
		return c.CacheEncode(s.Identifier(), s.encode, w)
	}
	return s.encode(obj, w)
}

func (s *serializer) encode(obj runtime.Object, w io.Writer) error {
	switch obj := obj.(type) {
	case *object.Object:
		return s.writeObject(w, obj)
	case *object.List:
		return s.writeList(w, obj)
	case *metav1.WatchEvent:
		if obj.Object.Object == nil && obj.Object.Raw != nil && !s.options.Yaml && !s.options.Pretty {
			return writeEvent(w, obj)
		}
	}
	return s.ordinary.Encode(obj, w)
}

// Decode implements runtime.Decoder. The [Decoder] reads objects of the resource; the
// ordinary serializer reads others, such as the options of a request.
func (s *serializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	target, ours := into.(*object.Object)
	if into != nil && !ours {
		return s.ordinary.Decode(data, defaults, into)
	}
	body := data
	if s.options.Yaml {
		converted, err := yaml.YAMLToJSON(data)
		if err != nil {
			return nil, nil, err
		}
		body = converted
	}
	if into == nil {
		if gvk, err := Meta(body, defaults); err == nil && known.Recognizes(gvk) {
			return s.ordinary.Decode(data, defaults, nil)
		}
	}
	o, gvk, complaints, err := s.decoder.FromRequest(body, defaults, s.options.Strict)
	if err != nil {
		gvk, err = s.unkind(data, gvk, defaults, err)
		return nil, &gvk, err
	}
	if target != nil {
		*target = *o
		o = target
	}
	if complaints = s.complaints(data, complaints); len(complaints) > 0 {
		return o, &gvk, runtime.NewStrictDecodingError(complaints)
	}
	return o, &gvk, nil
}

// unkind returns upstream's error for a body without a kind. Upstream has two decoders.
// The strict one quotes the body as it was sent. The other one quotes the JSON that was
// made of it, and returns the kind that was expected.
func (s *serializer) unkind(data []byte, gvk schema.GroupVersionKind, defaults *schema.GroupVersionKind, err error) (schema.GroupVersionKind, error) {
	switch {
	case !runtime.IsMissingKind(err):
		return gvk, err
	case s.options.Strict:
		return gvk, runtime.NewMissingKindErr(string(data))
	default:
		return withDefaults(gvk, defaults), err
	}
}

// complaints puts duplicate keys of YAML first. They are lost in JSON, so the
// body is read once more.
func (s *serializer) complaints(data []byte, complaints []error) []error {
	if !s.options.Strict || !s.options.Yaml {
		return complaints
	}
	if _, err := yaml.YAMLToJSONStrict(data); err != nil {
		return append([]error{err}, complaints...)
	}
	return complaints
}

// naming is an encoder that gives types of the library their names, which their
// Go values lack.
type naming struct{ inner runtime.Encoder }

// Identifier implements runtime.Encoder.
func (n naming) Identifier() runtime.Identifier { return n.inner.Identifier() }

// Encode implements runtime.Encoder.
func (n naming) Encode(obj runtime.Object, w io.Writer) error {
	if c, ok := obj.(runtime.CacheableObject); ok {
		return c.CacheEncode(n.Identifier(), n.encode, w)
	}
	return n.encode(obj, w)
}

func (n naming) encode(obj runtime.Object, w io.Writer) error {
	switch obj.(type) {
	case *object.Object, *object.List, *metav1.WatchEvent, *runtime.Unknown, runtime.Unstructured:
		return n.inner.Encode(obj, w)
	}
	kind := obj.GetObjectKind()
	if old := kind.GroupVersionKind(); old.Empty() {
		gvks, _, err := known.ObjectKinds(obj)
		if err != nil {
			return err
		}
		defer kind.SetGroupVersionKind(old)
		kind.SetGroupVersionKind(gvks[0])
	}
	return n.inner.Encode(obj, w)
}
