package codec_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/endpoints/codec"
)

// typedDecoder is a decoder whose objects have Go types.
type typedDecoder struct {
	*decoder
	types *runtime.Scheme
}

func (f typedDecoder) Types() *runtime.Scheme { return f.types }

// Kinds of the group of widgets with other Go types.
var (
	plain = widget.GroupVersion().WithKind("Plain") // its type has no protobuf encoding
	deep  = widget.GroupVersion().WithKind("Deep")  // its type contains itself
)

// refused is an object that newTypedDecoder does not read from requests.
const refused = "refused"

// FromRequest implements codec.Decoder.
func (f typedDecoder) FromRequest(data []byte, defaults *schema.GroupVersionKind, strict bool) (*object.Object, schema.GroupVersionKind, []error, error) {
	if bytes.Contains(data, []byte(refused)) {
		return nil, schema.GroupVersionKind{}, nil, errors.New(refused)
	}
	return f.decoder.FromRequest(data, defaults, strict)
}

func newTypedDecoder(t testing.TB, replicas int) typedDecoder {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(widget, &metav1.PartialObjectMetadata{})
	scheme.AddKnownTypeWithName(widget.GroupVersion().WithKind("WidgetList"), &metav1.PartialObjectMetadataList{})
	scheme.AddKnownTypeWithName(plain, &metav1.Table{})
	scheme.AddKnownTypeWithName(deep, &apiextensions.CustomResourceDefinition{})
	return typedDecoder{newDecoder(t, replicas), scheme}
}

// typedWidget is a widget as a value of its Go type.
func typedWidget(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, Labels: map[string]string{"a": strings.Repeat("b", 3000)}},
	}
}

// widgetOf is the same widget as an object.
func widgetOf(t testing.TB, f codec.Decoder, typed *metav1.PartialObjectMetadata) *object.Object {
	t.Helper()
	o, err := f.FromStorage(fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":1,"labels":{"a":%q},"name":%q}}`, typed.Labels["a"], typed.Name))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// inProtobuf is what the serializer of the library writes.
func inProtobuf(t testing.TB, f typedDecoder, obj runtime.Object) []byte {
	t.Helper()
	return []byte(encode(t, protobuf.NewSerializer(f.types, f.types), obj))
}

func TestTypedObjectsInProtobuf(t *testing.T) {
	f := newTypedDecoder(t, 3)
	s, i := info(t, f, runtime.ContentTypeProtobuf)
	if len(codec.Standard(s)) != 3 {
		t.Error("protobuf is not offered for objects that have it")
	}
	typed := typedWidget("a")
	o := widgetOf(t, f, typed)
	want := inProtobuf(t, f, typed)
	if got := encode(t, s.EncoderForVersion(i.Serializer, widget.GroupVersion()), o); got != string(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for _, r := range []runtime.Serializer{i.Serializer, i.StrictSerializer} {
		into := &object.Object{}
		for _, into := range []runtime.Object{nil, into} {
			got, gvk, err := r.Decode(want, nil, into)
			if err != nil {
				t.Fatal(err)
			}
			read, ok := got.(*object.Object)
			if !ok || read.GetName() != "a" || read.GetLabels()["a"] != typed.Labels["a"] || read.Stamp() != any(f.decoder) || *gvk != widget {
				t.Errorf("%v: %T %v", gvk, got, got)
			}
			if into != nil && got != into {
				t.Error("the object is another one than that to decode into")
			}
		}
	}
	status := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Message: "m"}
	data := []byte(encode(t, i.Serializer, status))
	if got, gvk, err := i.Serializer.Decode(data, nil, nil); err != nil || gvk.Kind != "Status" || got.(*metav1.Status).Message != "m" {
		t.Errorf("a status: %v, %v", got, err)
	}
	into := &metav1.Status{}
	if got, _, err := i.Serializer.Decode(data, nil, into); err != nil || got != runtime.Object(into) || into.Message != "m" {
		t.Errorf("into a status: %v, %v", got, err)
	}
	// What the body does not say comes from the URL.
	unnamed := bytes.Replace(want, []byte("\n\x18\n\x0eexample.com/v1\x12\x06Widget"), []byte("\n\x00"), 1)
	if len(unnamed) == len(want) {
		t.Fatal("the envelope has another form")
	}
	if got, gvk, err := i.Serializer.Decode(unnamed, &widget, nil); err != nil || *gvk != widget || got.(*object.Object).GetName() != "a" {
		t.Errorf("without a kind: %v, %v, %v", got, gvk, err)
	}
}

func TestErrorsOfTypedObjects(t *testing.T) {
	f := newTypedDecoder(t, 3)
	_, i := info(t, f, runtime.ContentTypeProtobuf)
	broken := typedWidget("a")
	broken.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsV1: &metav1.FieldsV1{Raw: []byte("{")}}}
	schema := &apiextensions.JSONSchemaProps{}
	for range 10_001 {
		schema = &apiextensions.JSONSchemaProps{Not: schema}
	}
	nested := &apiextensions.CustomResourceDefinition{Spec: apiextensions.CustomResourceDefinitionSpec{Versions: []apiextensions.CustomResourceDefinitionVersion{
		{Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: schema}},
	}}}
	nested.SetGroupVersionKind(deep)
	truncated := inProtobuf(t, f, typedWidget("a"))
	unknown := bytes.Replace(truncated, []byte("Widget"), []byte("Gadget"), 1)
	truncated = truncated[:len(truncated)-9]
	for _, c := range []struct {
		name, kind string
		data       []byte
		want       string
	}{
		{"no protobuf", "", []byte("{}"), "provided data does not appear to be a protobuf message"},
		{"an end that is missing", "", truncated, "unexpected EOF"},
		{"an unknown kind", "Gadget", unknown, `no kind "Gadget" is registered for version "example.com/v1"`},
		{"deep", "Deep", inProtobuf(t, f, nested), "the protobuf message is too large for how deeply it is nested"},
		{"managed fields that are not JSON", "Widget", inProtobuf(t, f, broken), "json: error calling MarshalJSON"},
		{"an object that is refused", "Widget", inProtobuf(t, f, typedWidget(refused)), refused},
	} {
		into := &object.Object{}
		got, gvk, err := i.Serializer.Decode(c.data, nil, into)
		if got != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
		if c.kind != "" && (gvk == nil || gvk.Kind != c.kind) {
			t.Errorf("%s: the kind is %v", c.name, gvk)
		}
	}

	gadget := object.New(widget.GroupVersion().WithKind("Gadget"))
	list := &object.List{Items: []object.Object{*widgetOf(t, f, typedWidget("a")), *gadget}}
	for _, obj := range []runtime.Object{gadget, list} {
		if err := i.Serializer.Encode(obj, io.Discard); !runtime.IsNotRegisteredError(err) {
			t.Errorf("%T of an unknown kind: %v", obj, err)
		}
	}
	wrong := object.New(deep)
	wrong.SetMember("spec", []byte(`{"group":1}`))
	list = &object.List{Items: []object.Object{*wrong}}
	for _, obj := range []runtime.Object{wrong, list} {
		if err := i.Serializer.Encode(obj, io.Discard); err == nil {
			t.Errorf("%T with a group that is a number has been encoded", obj)
		}
	}
	const none = "object *unstructured.UnstructuredList does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message"
	list = &object.List{Items: []object.Object{*object.New(plain)}}
	if err := i.Serializer.Encode(list, io.Discard); message(err) != none {
		t.Errorf("a list of objects without protobuf: %v", err)
	}
	_, untyped := info(t, f.decoder, runtime.ContentTypeProtobuf)
	if err := untyped.Serializer.Encode(list, io.Discard); message(err) != none {
		t.Errorf("a list of custom resources: %v", err)
	}
}

// pieces keeps what is written in one call each.
type pieces [][]byte

func (p *pieces) Write(b []byte) (int, error) {
	*p = append(*p, bytes.Clone(b))
	return len(b), nil
}

func TestTypedListsInProtobuf(t *testing.T) {
	f := newTypedDecoder(t, 3)
	s, i := info(t, f, runtime.ContentTypeProtobuf)
	e := s.EncoderForVersion(i.Serializer, widget.GroupVersion())
	ours := &object.List{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "WidgetList"}, ListMeta: metav1.ListMeta{ResourceVersion: "12", Continue: "next"}}
	theirs := &metav1.PartialObjectMetadataList{TypeMeta: ours.TypeMeta, ListMeta: ours.ListMeta}
	for n := range 51 {
		if n <= 2 || n == 50 {
			if got, want := encode(t, e, ours), inProtobuf(t, f, theirs); got != string(want) {
				t.Fatalf("%d items:\ngot  %q\nwant %q", n, got, want)
			}
		}
		typed := typedWidget(fmt.Sprint("w", n))
		ours.Items, theirs.Items = append(ours.Items, *widgetOf(t, f, typed)), append(theirs.Items, *typed)
	}
	var p pieces
	if err := e.Encode(ours, &p); err != nil {
		t.Fatal(err)
	}
	// The first piece is short, so that the response is known for a stream.
	if len(p) != 4 || len(p[0]) != 4 || !bytes.Equal(slices.Concat(p...), inProtobuf(t, f, theirs)) {
		t.Errorf("%d pieces", len(p))
	}
	for _, n := range []int{1, 2} {
		if len(p[n]) < 64<<10 || len(p[n]) > 68<<10 {
			t.Errorf("piece %d has %d bytes", n, len(p[n]))
		}
	}
	for _, left := range []int{0, 4, 70_000, 140_000} {
		if err := e.Encode(ours, &failing{left}); !errors.Is(err, errBroken) {
			t.Errorf("after %d bytes: %v", left, err)
		}
	}
}

func TestListsInPieces(t *testing.T) {
	f := newDecoder(t, 3)
	_, i := info(t, f, runtime.ContentTypeJSON)
	list := &object.List{}
	for n := range 50 {
		list.Items = append(list.Items, *widgetOf(t, f, typedWidget(fmt.Sprint("w", n))))
	}
	var p pieces
	if err := i.Serializer.Encode(list, &p); err != nil {
		t.Fatal(err)
	}
	if len(p) != 4 || string(p[0]) != "{" || string(slices.Concat(p...)) != string(list.AppendJSON(nil))+"\n" {
		t.Errorf("%d pieces", len(p))
	}
	for _, n := range []int{1, 2} {
		if len(p[n]) < 64<<10 || len(p[n]) > 68<<10 {
			t.Errorf("piece %d has %d bytes", n, len(p[n]))
		}
	}
}

// Watchers share encodings by these names: no two serializers may have the same one.
func TestIdentifiersDiffer(t *testing.T) {
	seen := map[runtime.Identifier]string{}
	add := func(what string, e runtime.Encoder) {
		t.Helper()
		id := e.Identifier()
		if seen[id] != "" {
			t.Errorf("%s has the identifier of %s: %s", what, seen[id], id)
		}
		seen[id] = what
	}
	gadget := otherKind{newDecoder(t, 3)}
	for name, f := range map[string]codec.Decoder{"widgets": newDecoder(t, 3), "new widgets": newDecoder(t, 4), "gadgets": gadget} {
		_, inJSON := info(t, f, runtime.ContentTypeJSON)
		_, inYAML := info(t, f, runtime.ContentTypeYAML)
		add(name+" in JSON", inJSON.Serializer)
		add(name+" with indentation", inJSON.PrettySerializer)
		add(name+" in YAML", inYAML.Serializer)
	}
	add("stored widgets", codec.Storage(newDecoder(t, 3)))
	add("stored gadgets", codec.Storage(gadget))
	for name, replicas := range map[string]int{"typed widgets": 3, "new typed widgets": 4} {
		_, i := info(t, newTypedDecoder(t, replicas), runtime.ContentTypeProtobuf)
		add(name, i.Serializer)
		if id := string(i.Serializer.Identifier()); !strings.Contains(id, widget.String()) {
			t.Errorf("%s has the identifier %s, without its kind", name, id)
		}
	}
	_, i := info(t, newDecoder(t, 3), runtime.ContentTypeProtobuf)
	add("untyped", i.Serializer)
	add("events", i.StreamSerializer.Serializer)

	typed := newTypedDecoder(t, 3)
	_, i = info(t, typed, runtime.ContentTypeProtobuf)
	kept := &shared{widgetOf(t, typed, typedWidget("a")), map[runtime.Identifier][]byte{}}
	for range 2 {
		if got := encode(t, i.Serializer, kept); got != string(inProtobuf(t, typed, typedWidget("a"))) {
			t.Errorf("got %q", got)
		}
	}
	if len(kept.kept) != 1 || kept.kept[i.Serializer.Identifier()] == nil {
		t.Errorf("%d encodings are kept", len(kept.kept))
	}
}

// otherKind is a decoder of another kind with the same schema.
type otherKind struct{ *decoder }

func (otherKind) Kind() schema.GroupVersionKind { return widget.GroupVersion().WithKind("Gadget") }

// relabelling is a decoder whose schema has changed since objects were read.
type relabelling struct{ typedDecoder }

func (f relabelling) Renormalize(o *object.Object) *object.Object {
	o = o.DeepCopy()
	o.SetLabels(map[string]string{"now": "current"})
	return o
}

func TestTypedObjectsAreBroughtUpToDate(t *testing.T) {
	f := relabelling{newTypedDecoder(t, 3)}
	_, i := info(t, f, runtime.ContentTypeProtobuf)
	want := typedWidget("a")
	o := widgetOf(t, f, want)
	want.Labels = map[string]string{"now": "current"}
	if got := encode(t, i.Serializer, o); got != string(inProtobuf(t, f.typedDecoder, want)) {
		t.Errorf("got %q", got)
	}
	bookmark := typedWidget("")
	if got := encode(t, i.Serializer, widgetOf(t, f, bookmark)); got != string(inProtobuf(t, f.typedDecoder, bookmark)) {
		t.Errorf("a bookmark is %q", got)
	}
}
