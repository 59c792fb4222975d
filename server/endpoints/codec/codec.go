package codec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/espalier-dev/espalier/internal/object"
)

// A Decoder decodes the objects of one version of one resource. It is safe for
// concurrent use.
//
// If the schema of a Decoder can change, or another Decoder has the same kind, it
// should also have a method Identifier() string that differs between the schemas:
// responses to watches are cached by it.
type Decoder interface {
	// Kind is the kind of the objects.
	Kind() schema.GroupVersionKind
	// FromRequest reads the JSON of a request body (YAML has been turned into
	// JSON before). strict asks for unknown and duplicate fields, returned as
	// texts of upstream's strict errors: `unknown field "spec.a"`, `duplicate
	// field "spec.b"`. defaults fills in a missing apiVersion and kind. gvk is
	// what the body says it is, after defaults, also if err != nil, where
	// known.
	FromRequest(data []byte, defaults *schema.GroupVersionKind, strict bool) (o *object.Object, gvk schema.GroupVersionKind, strictErrs []error, err error)
	// FromStorage reads what etcd holds, in whatever version it was stored; the
	// result is in that version.
	FromStorage(data []byte) (*object.Object, error)
	// Renormalize returns o itself if the current schema has normalized it, otherwise
	// a normalized copy.
	Renormalize(o *object.Object) *object.Object
}

// Rereading is a Decoder that can skip normalizing what it has normalized before.
type Rereading interface {
	Decoder
	// FromWritten decodes what was encoded from an object that a schema has normalized. It reports false if
	// that is not the current schema.
	FromWritten(data []byte, schema any) (*object.Object, bool)
}

// Typed is a Decoder whose objects also have Go types, and through these a protobuf
// encoding. The encoding omits fields that the Go types do not have.
type Typed interface {
	Decoder
	// Types has the Go types of all versions that objects may be in.
	Types() *runtime.Scheme
}

// known holds the types that are not objects of a resource.
var known = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	return scheme
}()

// negotiated implements runtime.NegotiatedSerializer.
type negotiated struct{ mediaTypes []runtime.SerializerInfo }

// Serializer returns the serializer of requests and responses. Objects have a protobuf
// encoding if the decoder is [Typed]; statuses and metadata always have one.
func Serializer(f Decoder) runtime.NegotiatedSerializer {
	return &negotiated{mediaTypes: []runtime.SerializerInfo{
		{
			MediaType:        runtime.ContentTypeJSON,
			MediaTypeType:    "application",
			MediaTypeSubType: "json",
			EncodesAsText:    true,
			Serializer:       newSerializer(f, json.SerializerOptions{StreamingCollectionsEncoding: true}),
			PrettySerializer: newSerializer(f, json.SerializerOptions{Pretty: true}),
			StrictSerializer: newSerializer(f, json.SerializerOptions{Strict: true, StreamingCollectionsEncoding: true}),
			StreamSerializer: &runtime.StreamSerializerInfo{
				EncodesAsText: true,
				Serializer:    newSerializer(f, json.SerializerOptions{}),
				Framer:        json.Framer,
			},
		},
		{
			MediaType:        runtime.ContentTypeYAML,
			MediaTypeType:    "application",
			MediaTypeSubType: "yaml",
			EncodesAsText:    true,
			Serializer:       newSerializer(f, json.SerializerOptions{Yaml: true}),
			StrictSerializer: newSerializer(f, json.SerializerOptions{Yaml: true, Strict: true}),
		},
		protobufInfo(f),
	}}
}

// Standard returns the media types of a serializer that objects can be written in:
// without protobuf, unless they have Go types. It is the value for
// RequestScope.StandardSerializers.
func Standard(s runtime.NegotiatedSerializer) []runtime.SerializerInfo {
	var standard []runtime.SerializerInfo
	for _, info := range s.SupportedMediaTypes() {
		if _, ok := info.Serializer.(untyped); !ok {
			standard = append(standard, info)
		}
	}
	return standard
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (n *negotiated) SupportedMediaTypes() []runtime.SerializerInfo { return n.mediaTypes }

// EncoderForVersion implements runtime.NegotiatedSerializer. Objects already have the
// version of their decoder.
func (n *negotiated) EncoderForVersion(encoder runtime.Encoder, _ runtime.GroupVersioner) runtime.Encoder {
	return naming{encoder}
}

// DecoderToVersion implements runtime.NegotiatedSerializer. What the decoders
// here return needs no conversion.
func (n *negotiated) DecoderToVersion(decoder runtime.Decoder, _ runtime.GroupVersioner) runtime.Decoder {
	return decoder
}
