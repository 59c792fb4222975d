package codec_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/endpoints/codec"
)

var widget = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// decoder is the smallest decoder of custom resources.
type decoder struct {
	schema *espalier.Schema
	shape  string
}

func newDecoder(t testing.TB, replicas int) *decoder {
	t.Helper()
	s, err := espalier.Compile(fmt.Appendf(nil, `{"type":"object","properties":{"spec":{"type":"object","properties":{
		"text":{"type":"string"},"replicas":{"type":"integer","default":%d},"any":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}`, replicas), espalier.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &decoder{s, fmt.Sprint(replicas)}
}

func (f *decoder) Kind() schema.GroupVersionKind { return widget }

func (f *decoder) Identifier() string { return f.shape }

func (f *decoder) FromRequest(data []byte, _ *schema.GroupVersionKind, strict bool) (*object.Object, schema.GroupVersionKind, []error, error) {
	gvk, err := codec.Meta(data, nil)
	if err != nil {
		return nil, gvk, nil, err
	}
	var report espalier.Report
	result, err := f.schema.Normalize(data, espalier.NormalizeOptions{Report: &report})
	if err != nil {
		return nil, gvk, nil, err
	}
	o, err := object.FromJSON(result.Bytes)
	if err != nil {
		return nil, gvk, nil, err
	}
	o.SetStamp(f)
	var complaints []error
	for _, c := range report.Changes {
		switch {
		case strict && c.What == espalier.Pruned:
			complaints = append(complaints, fmt.Errorf("unknown field %q", c.Path))
		case strict && c.What == espalier.Duplicated:
			complaints = append(complaints, fmt.Errorf("duplicate field %q", c.Path))
		}
	}
	return o, gvk, complaints, nil
}

func (f *decoder) FromStorage(data []byte) (*object.Object, error) {
	result, err := f.schema.Normalize(data, espalier.NormalizeOptions{Source: espalier.Storage})
	if err != nil {
		return nil, err
	}
	o, err := object.FromJSON(result.Bytes)
	if err == nil {
		o.SetStamp(f)
	}
	return o, err
}

func (f *decoder) Renormalize(o *object.Object) *object.Object {
	if o.Stamp() == any(f) {
		return o
	}
	renormalized, err := f.FromStorage(o.JSON())
	if err != nil {
		return o
	}
	return renormalized
}

func info(t testing.TB, f codec.Decoder, mediaType string) (runtime.NegotiatedSerializer, runtime.SerializerInfo) {
	t.Helper()
	s := codec.Serializer(f)
	i, ok := runtime.SerializerInfoForMediaType(s.SupportedMediaTypes(), mediaType)
	if !ok {
		t.Fatalf("no %s", mediaType)
	}
	return s, i
}

func encode(t testing.TB, e runtime.Encoder, obj runtime.Object) string {
	t.Helper()
	data, err := runtime.Encode(e, obj)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// upstream returns the serializer that upstream has for custom resources.
func upstream(options json.SerializerOptions) *json.Serializer {
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, unstructuredscheme.NewUnstructuredCreator(), unstructuredscheme.NewUnstructuredObjectTyper(), options)
}

var bodies = []string{
	`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":1,"name":"a"},"spec":{"replicas":3}}`,
	`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","labels":{"z":"1","b":"<&>"}},"spec":{"text":"ü\u2028\"<","replicas":5, "any":{"x":1.0,"y":[1e3,true,null],"n":{}}}}`,
	"{\n \"kind\": \"Widget\", \"apiVersion\": \"example.com/v1\", \"metadata\": {\"name\": \"b\", \"namespace\":\"n\"}, \"spec\": {\"replicas\": 9, \"any\": {}}\n}",
}

func TestBytesAreUpstreams(t *testing.T) {
	f := newDecoder(t, 3)
	list, theirList := &object.List{}, &unstructured.UnstructuredList{}
	for _, l := range []runtime.Object{list, theirList} {
		l.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "WidgetList"})
		if err := (storage.APIObjectVersioner{}).UpdateList(l, 12, "next", nil); err != nil {
			t.Fatal(err)
		}
	}
	compare := func(ours, theirs runtime.Object) {
		t.Helper()
		jsonSerializer, jsonInfo := info(t, f, runtime.ContentTypeJSON)
		yamlSerializer, yamlInfo := info(t, f, runtime.ContentTypeYAML)
		for _, c := range []struct{ ours, theirs runtime.Encoder }{
			{jsonSerializer.EncoderForVersion(jsonInfo.Serializer, widget.GroupVersion()), upstream(json.SerializerOptions{StreamingCollectionsEncoding: true})},
			{jsonSerializer.EncoderForVersion(jsonInfo.PrettySerializer, widget.GroupVersion()), upstream(json.SerializerOptions{Pretty: true})},
			{jsonInfo.StreamSerializer.Serializer, upstream(json.SerializerOptions{})},
			{yamlSerializer.EncoderForVersion(yamlInfo.Serializer, widget.GroupVersion()), upstream(json.SerializerOptions{Yaml: true})},
		} {
			if got, want := encode(t, c.ours, ours), encode(t, c.theirs, theirs); got != want {
				t.Errorf("got  %swant %s", got, want)
			}
		}
	}
	compare(list, theirList)
	_, decoders := info(t, f, runtime.ContentTypeJSON)
	for _, body := range bodies {
		o, u := &object.Object{}, &unstructured.Unstructured{}
		if _, _, err := decoders.Serializer.Decode([]byte(body), nil, o); err != nil {
			t.Fatal(err)
		}
		if _, _, err := upstream(json.SerializerOptions{}).Decode([]byte(body), nil, u); err != nil {
			t.Fatal(err)
		}
		compare(o, u)
		o.SetResourceVersion("77")
		u.SetResourceVersion("77")
		compare(o, u)
		list.Items, theirList.Items = append(list.Items, *o), append(theirList.Items, *u)
		compare(list, theirList)

		raw := encode(t, decoders.Serializer, o)
		event := &metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: []byte(raw)}}
		if got, want := encode(t, decoders.StreamSerializer.Serializer, event), encode(t, upstream(json.SerializerOptions{}), event); got != want {
			t.Errorf("got  %swant %s", got, want)
		}
		if got, want := encode(t, codec.Storage(f), o), encode(t, unstructured.UnstructuredJSONScheme, u); got != want {
			t.Errorf("stored as %swant %s", got, want)
		}
	}
}

func TestLargeListIsCompressed(t *testing.T) {
	f := newDecoder(t, 3)
	s, i := info(t, f, runtime.ContentTypeJSON)
	list := &object.List{}
	for n := range 2000 {
		o, err := f.FromStorage(fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w%d"},"spec":{"text":%q}}`, n, strings.Repeat("x", 200)))
		if err != nil {
			t.Fatal(err)
		}
		list.Items = append(list.Items, *o)
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	responsewriters.SerializeObject(i.MediaType, s.EncoderForVersion(i.Serializer, widget.GroupVersion()), w, r, 200, list)
	if got := w.Header().Get("Content-Encoding"); got != "gzip" {
		t.Fatalf("Content-Encoding is %q", got)
	}
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if want := string(list.AppendJSON(nil)) + "\n"; string(text) != want {
		t.Errorf("%d bytes instead of %d", len(text), len(want))
	}
}

// failing is a connection that breaks after some bytes.
type failing struct{ left int }

var errBroken = errors.New("broken")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestErrorsOfTheConnectionAreReturned(t *testing.T) {
	f := newDecoder(t, 3)
	_, i := info(t, f, runtime.ContentTypeJSON)
	list := &object.List{Items: make([]object.Object, 50_000)}
	for _, left := range []int{0, 1, 70_000} {
		if err := i.Serializer.Encode(list, &failing{left}); !errors.Is(err, errBroken) {
			t.Errorf("after %d bytes: %v", left, err)
		}
	}
	if err := i.Serializer.Encode(&object.Object{}, &failing{}); !errors.Is(err, errBroken) {
		t.Errorf("an object: %v", err)
	}
	_, inYAML := info(t, f, runtime.ContentTypeYAML)
	for name, e := range map[string]runtime.Encoder{"YAML": inYAML.Serializer, "with indentation": i.PrettySerializer} {
		if err := e.Encode(&object.Object{}, &failing{}); !errors.Is(err, errBroken) {
			t.Errorf("an object, %s: %v", name, err)
		}
		if err := e.Encode(&object.List{}, &failing{}); !errors.Is(err, errBroken) {
			t.Errorf("a list, %s: %v", name, err)
		}
	}
}

func TestOldShapesAreBroughtUpToDate(t *testing.T) {
	before, after := newDecoder(t, 3), newDecoder(t, 4)
	o, err := before.FromStorage([]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":1,"name":"a"},"spec":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	o.SetMember("spec", []byte("{}"))
	_, i := info(t, after, runtime.ContentTypeJSON)
	want := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":1,"name":"a"},"spec":{"replicas":4}}`
	if got := encode(t, i.Serializer, o); got != want+"\n" {
		t.Errorf("got %s", got)
	}
	if got := encode(t, i.Serializer, &object.List{Items: []object.Object{*o}}); got != `{"items":[`+want+"]}\n" {
		t.Errorf("got %s", got)
	}
	_, j := info(t, before, runtime.ContentTypeJSON)
	if i.Serializer.Identifier() == j.Serializer.Identifier() {
		t.Error("watchers with different shapes would share what is encoded")
	}
	bookmark := object.New(widget)
	bookmark.SetMember("spec", []byte("{}"))
	bookmark.SetResourceVersion("9")
	if got := encode(t, i.Serializer, bookmark); got != `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"resourceVersion":"9"},"spec":{}}`+"\n" {
		t.Errorf("a bookmark is %s", got)
	}
	codec.Defaulter(after).Default(o)
	if got := string(o.JSON()); got != want {
		t.Errorf("defaulted: %s", got)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{}}}
	codec.Defaulter(after).Default(u)
	if got, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); got != 4 {
		t.Errorf("defaulted: %v", u.Object)
	}
}

// shared is an object whose encodings are kept, as those in watch caches are.
type shared struct {
	*object.Object
	kept map[runtime.Identifier][]byte
}

func (s *shared) DeepCopyObject() runtime.Object { return s }

func (s *shared) GetObject() runtime.Object { return s.Object }

func (s *shared) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	if s.kept[id] == nil {
		var b bytes.Buffer
		if err := encode(s.Object, &b); err != nil {
			return err
		}
		s.kept[id] = b.Bytes()
	}
	_, err := w.Write(s.kept[id])
	return err
}

func TestEncodingsAreShared(t *testing.T) {
	f := newDecoder(t, 3)
	o, err := f.FromStorage([]byte(bodies[0]))
	if err != nil {
		t.Fatal(err)
	}
	s := &shared{o, map[runtime.Identifier][]byte{}}
	for range 2 {
		n, i := info(t, f, runtime.ContentTypeJSON)
		for _, e := range []runtime.Encoder{i.Serializer, n.EncoderForVersion(i.Serializer, widget.GroupVersion()), codec.Storage(f)} {
			if got := encode(t, e, s); got != bodies[0]+"\n" {
				t.Errorf("got %s", got)
			}
		}
	}
	if len(s.kept) != 2 {
		t.Errorf("%d encodings for responses and storage", len(s.kept))
	}
}

func TestOtherTypes(t *testing.T) {
	f := newDecoder(t, 3)
	s, i := info(t, f, runtime.ContentTypeJSON)
	e := s.EncoderForVersion(i.Serializer, widget.GroupVersion())
	status := &metav1.Status{Status: "Failure", Code: 404, Message: "<none>"}
	if got, want := encode(t, e, status), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"\u003cnone\u003e","code":404}`+"\n"; got != want {
		t.Errorf("got %s", got)
	}
	if status.Kind != "" {
		t.Error("the status has been changed")
	}
	if got := encode(t, e, &metav1.PartialObjectMetadata{}); !strings.Contains(got, `"apiVersion":"meta.k8s.io/v1"`) {
		t.Errorf("got %s", got)
	}
	options := &metav1.DeleteOptions{}
	if _, _, err := s.DecoderToVersion(i.Serializer, widget.GroupVersion()).Decode([]byte(`{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":5}`), nil, options); err != nil || *options.GracePeriodSeconds != 5 {
		t.Errorf("%v: %v", options, err)
	}
	obj, gvk, err := i.Serializer.Decode([]byte(`{"kind":"DeleteOptions","apiVersion":"v1"}`), nil, nil)
	if _, ok := obj.(*metav1.DeleteOptions); !ok || gvk.Kind != "DeleteOptions" {
		t.Errorf("%T: %v", obj, err)
	}
	obj, _, err = i.Serializer.Decode([]byte(bodies[0]), nil, nil)
	if o, ok := obj.(*object.Object); !ok || o.GetName() != "a" {
		t.Errorf("%T: %v", obj, err)
	}
	event := &metav1.WatchEvent{Type: "ERROR", Object: runtime.RawExtension{Object: status}}
	if got, want := encode(t, i.StreamSerializer.Serializer, event), encode(t, upstream(json.SerializerOptions{}), event); got != want {
		t.Errorf("got %s", got)
	}
}

func TestObjectsHaveNoProtobufEncoding(t *testing.T) {
	f := newDecoder(t, 3)
	s, i := info(t, f, runtime.ContentTypeProtobuf)
	e := s.EncoderForVersion(i.Serializer, widget.GroupVersion())
	const want = "object *unstructured.Unstructured does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message"
	if err := e.Encode(object.New(widget), io.Discard); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	data := encode(t, e, &metav1.Status{Status: "Success"})
	if !strings.HasPrefix(data, "k8s\x00") {
		t.Errorf("a status is %q", data)
	}
	for _, body := range []string{data, "", "{}", "k8s\x00"} {
		if _, _, err := s.DecoderToVersion(i.Serializer, widget.GroupVersion()).Decode([]byte(body), nil, object.New(widget)); err == nil {
			t.Errorf("%q has been read", body)
		}
	}
	// Whatever a client wants to be told about unknown fields, there is something to read its body with.
	for _, r := range []runtime.Serializer{i.Serializer, i.StrictSerializer} {
		body := "k8s\x00\n\x18\n\x0eexample.com/v1\x12\x06Widget\x12\x00"
		if _, gvk, err := s.DecoderToVersion(r, widget.GroupVersion()).Decode([]byte(body), nil, object.New(widget)); err == nil || err.Error() != want || *gvk != widget {
			t.Errorf("%v: %v", gvk, err)
		}
	}
	for _, i := range codec.Standard(s) {
		if i.MediaType == runtime.ContentTypeProtobuf {
			t.Error("protobuf is offered for objects")
		}
	}
	if len(codec.Standard(s)) != 2 {
		t.Error("JSON and YAML are not offered")
	}
}
