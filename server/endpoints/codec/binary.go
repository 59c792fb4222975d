package codec

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-dev/espalier/internal/object"
)

// protobufInfo returns the media type protobuf. It has no strict reading, as
// fields that a message does not know are part of the format; but without an
// entry for it the handlers would call nil.
func protobufInfo(f Decoder) runtime.SerializerInfo {
	ordinary := protobuf.NewSerializerWithOptions(known, known, protobuf.SerializerOptions{StreamingCollectionsEncoding: true})
	var s runtime.Serializer = untyped{ordinary}
	if t, ok := f.(Typed); ok {
		s = &typed{decoder: t, ordinary: ordinary, types: protobuf.NewSerializer(t.Types(), t.Types())}
	}
	return runtime.SerializerInfo{
		MediaType:        runtime.ContentTypeProtobuf,
		MediaTypeType:    "application",
		MediaTypeSubType: "vnd.kubernetes.protobuf",
		Serializer:       s,
		StrictSerializer: s,
		StreamSerializer: &runtime.StreamSerializerInfo{
			// It writes watch events, around what Serializer has written.
			Serializer: untyped{protobuf.NewRawSerializer(known, known)},
			Framer:     protobuf.LengthDelimitedFramer,
		},
	}
}

// untyped is a protobuf serializer that says of objects what upstream says of
// them: that they have no protobuf encoding.
type untyped struct{ runtime.Serializer }

// Encode implements runtime.Encoder.
func (u untyped) Encode(obj runtime.Object, w io.Writer) error {
	switch obj.(type) {
	case *object.Object:
		obj = &unstructured.Unstructured{}
	case *object.List:
		obj = &unstructured.UnstructuredList{}
	}
	return u.Serializer.Encode(obj, w)
}

// Decode implements runtime.Decoder.
func (u untyped) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if _, ok := into.(*object.Object); !ok {
		return u.Serializer.Decode(data, defaults, into)
	}
	// What is wrong with the data comes before what is wrong with the type.
	_, gvk, err := u.Serializer.Decode(data, defaults, &runtime.Unknown{})
	if err == nil {
		err = u.Encode(into, io.Discard)
	}
	return nil, gvk, err
}

// Identifier implements runtime.Encoder.
func (u untyped) Identifier() runtime.Identifier {
	return "objects without " + u.Serializer.Identifier()
}

// typed is a protobuf serializer for objects that have Go types.
type typed struct {
	decoder  Typed
	ordinary *protobuf.Serializer // for everything but objects of the resource
	types    *protobuf.Serializer // for the Go types of the resource
}

// Identifier implements runtime.Encoder.
func (t *typed) Identifier() runtime.Identifier {
	return identifier("protobuf "+t.decoder.Kind().String(), t.decoder)
}

// Encode implements runtime.Encoder.
func (t *typed) Encode(obj runtime.Object, w io.Writer) error {
	if c, ok := obj.(runtime.CacheableObject); ok {
		return c.CacheEncode(t.Identifier(), t.encode, w)
	}
	return t.encode(obj, w)
}

func (t *typed) encode(obj runtime.Object, w io.Writer) error {
	switch obj := obj.(type) {
	case *object.Object:
		value, err := t.value(obj)
		if err != nil {
			return err
		}
		return t.ordinary.Encode(value, w)
	case *object.List:
		return t.writeList(obj, w)
	}
	return t.ordinary.Encode(obj, w)
}

// value returns an object as a value of its Go type.
func (t *typed) value(o *object.Object) (runtime.Object, error) {
	value, err := t.decoder.Types().New(o.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	return value, kjson.UnmarshalCaseSensitivePreserveInts(current(t.decoder, o).JSON(), value)
}

// The fields of all lists of the API, and their wire type.
const (
	listMetadata = 1<<3 | 2
	listItems    = 2<<3 | 2
)

// The fields of the envelope around all messages.
const (
	unknownKind = 1<<3 | 2
	unknownRaw  = 2<<3 | 2
)

// writeList writes a list with only one item decoded into a Go value at a time: Go
// values are many times as large as their bytes. Protobuf puts lengths first, so each
// item is decoded twice, once to measure it. The whole message in memory would be as
// large as all items, and its envelope as large again.
func (t *typed) writeList(l *object.List, w io.Writer) error {
	metadata, err := l.ListMeta.Marshal()
	if err != nil {
		return err
	}
	opening := appendField(nil, listMetadata, metadata)
	size := len(opening)
	for i := range l.Items {
		item, err := t.message(&l.Items[i])
		if err != nil {
			return err
		}
		if item == nil {
			return untyped{t.ordinary}.Encode(l, w)
		}
		n := item.Size()
		size += len(binary.AppendUvarint([]byte{listItems}, uint64(n))) + n
	}
	head, tail, err := t.envelope(l.TypeMeta, size)
	if err != nil {
		return err
	}
	if _, err := w.Write(head[:4]); err != nil { // so that the stream is known for one
		return err
	}
	return withBuffer(func(b []byte) ([]byte, error) {
		b = append(append(b, head[4:]...), opening...)
		for i := range l.Items {
			item, err := t.message(&l.Items[i])
			if err != nil {
				return b, err
			}
			data, err := item.Marshal()
			if err != nil {
				return b, err
			}
			if b = appendField(b, listItems, data); len(b) < pieceSize {
				continue
			}
			if _, err := w.Write(b); err != nil {
				return b, err
			}
			b = b[:0]
		}
		_, err := w.Write(append(b, tail...))
		return b, err
	})
}

// protobufMessage is a value that has a protobuf encoding.
type protobufMessage interface {
	Size() int
	Marshal() ([]byte, error)
}

// message returns an object as a value that has a protobuf encoding; nil if its type
// has none.
func (t *typed) message(o *object.Object) (protobufMessage, error) {
	value, err := t.value(o)
	if err != nil {
		return nil, err
	}
	m, _ := value.(protobufMessage)
	return m, nil
}

// envelope returns what stands before and after a message of a size.
func (t *typed) envelope(kind metav1.TypeMeta, size int) (head, tail []byte, err error) {
	unknown := &runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: kind.APIVersion, Kind: kind.Kind}, Raw: []byte{}}
	var b bytes.Buffer
	if err := t.ordinary.Encode(unknown, &b); err != nil {
		return nil, nil, err
	}
	name, err := unknown.TypeMeta.Marshal()
	if err != nil {
		return nil, nil, err
	}
	// The message, which is empty, is a tag and a length after the name.
	head, tail, ok := bytes.Cut(b.Bytes(), appendField(appendField(nil, unknownKind, name), unknownRaw, nil))
	if !ok {
		return nil, nil, errors.New("the protobuf envelope of lists has another form")
	}
	head = append(appendField(bytes.Clone(head), unknownKind, name), unknownRaw)
	return binary.AppendUvarint(head, uint64(size)), tail, nil
}

func appendField(dst []byte, tag byte, data []byte) []byte {
	dst = binary.AppendUvarint(append(dst, tag), uint64(len(data)))
	return append(dst, data...)
}

var errCostly = errors.New("the protobuf message is too large for how deeply it is nested")

// Decode implements runtime.Decoder. An object becomes JSON, and then it is
// read as any JSON is: with the same bounds, defaults and errors.
func (t *typed) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	target, ours := into.(*object.Object)
	if into != nil && !ours {
		return t.ordinary.Decode(data, defaults, into)
	}
	envelope := &runtime.Unknown{}
	_, gvk, err := t.ordinary.Decode(data, defaults, envelope)
	if err != nil {
		return nil, gvk, err
	}
	if into == nil && known.Recognizes(*gvk) {
		return t.ordinary.Decode(data, defaults, nil)
	}
	if message, err := t.decoder.Types().New(*gvk); err == nil && !layoutOf(reflect.TypeOf(message)).checkNesting(envelope.Raw) {
		return nil, gvk, errCostly
	}
	value, gvk, err := t.types.Decode(data, defaults, nil)
	if err != nil {
		return nil, gvk, err
	}
	body, err := json.Marshal(value)
	if err != nil {
		return nil, gvk, err
	}
	o, named, _, err := t.decoder.FromRequest(body, gvk, false)
	if err != nil {
		return nil, gvk, err
	}
	if target != nil {
		*target = *o
		o = target
	}
	return o, &named, nil
}
