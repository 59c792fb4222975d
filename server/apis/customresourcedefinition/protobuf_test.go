package customresourcedefinition

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/endpoints/codec"
)

// wire is what generated clients read and write with.
var wire = func() *protobuf.Serializer {
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return protobuf.NewSerializer(scheme, scheme)
}()

func toWire(tb testing.TB, obj runtime.Object) []byte {
	tb.Helper()
	data, err := runtime.Encode(wire, obj)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func fromWire[T runtime.Object](tb testing.TB, data string) T {
	tb.Helper()
	obj, _, err := wire.Decode([]byte(data), nil, nil)
	if err != nil {
		tb.Fatalf("%v: %.200q", err, data)
	}
	out, ok := obj.(T)
	if !ok {
		tb.Fatalf("a %T: %+v", obj, obj)
	}
	return out
}

// send is do for requests and answers that are both protobuf.
func (s *testServer) send(tb testing.TB, method, path string, body runtime.Object) answer {
	tb.Helper()
	var data []byte
	if body != nil {
		data = toWire(tb, body)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, s.url+path, bytes.NewReader(data))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Content-Type", runtime.ContentTypeProtobuf)
	req.Header.Set("Accept", runtime.ContentTypeProtobuf)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	if got := resp.Header.Get("Content-Type"); got != runtime.ContentTypeProtobuf {
		tb.Errorf("%s %s answers with %s: %s", method, path, got, text)
	}
	return answer{resp.StatusCode, string(text), resp.Header.Values("Warning")}
}

func TestProtobufOverHTTP(t *testing.T) {
	s := serve(t)
	sentIn := fromWire[*v1.CustomResourceDefinition](t, string(asProtobuf(t, widgets)))
	a := s.send(t, "POST", "v1/"+plural, sentIn)
	if a.code != http.StatusCreated {
		t.Fatalf("%d: %s", a.code, a.body)
	}
	x := fromWire[*v1.CustomResourceDefinition](t, a.body)
	if stored := s.stored(t, x.Name); !equality.Semantic.DeepEqual(x, stored) || x.Generation != 1 || x.Spec.Names.ListKind != "WidgetList" {
		t.Errorf("created:\n%+v\nstored:\n%+v", x, stored)
	}
	a = s.send(t, "POST", "v1/"+plural, sentIn)
	if got := fromWire[*metav1.Status](t, a.body); a.code != http.StatusConflict || got.Reason != metav1.StatusReasonAlreadyExists {
		t.Errorf("%d %+v", a.code, got)
	}
	broken := sentIn.DeepCopy()
	broken.Name = "other.example.com"
	a = s.send(t, "POST", "v1/"+plural, broken)
	if got := fromWire[*metav1.Status](t, a.body); a.code != http.StatusUnprocessableEntity || !strings.Contains(got.Message, "metadata.name: Invalid value") {
		t.Errorf("%d %+v", a.code, got)
	}
	path := "v1/" + plural + "/" + x.Name
	x.Spec.Names.ShortNames = []string{"a", "b"}
	a = s.send(t, "PUT", path, x)
	if got := fromWire[*v1.CustomResourceDefinition](t, a.body); a.code != http.StatusOK || got.Generation != 2 || len(got.Spec.Names.ShortNames) != 2 {
		t.Errorf("%d %+v", a.code, got)
	}
	x = fromWire[*v1.CustomResourceDefinition](t, a.body)
	x.Status.Conditions = []v1.CustomResourceDefinitionCondition{{Type: "Test", Status: v1.ConditionTrue}}
	a = s.send(t, "PUT", path+"/status", x)
	if got := fromWire[*v1.CustomResourceDefinition](t, a.body); a.code != http.StatusOK || len(got.Status.Conditions) != 1 || got.Generation != 2 {
		t.Errorf("%d %+v", a.code, got)
	}
	old := fromWire[*v1beta1.CustomResourceDefinition](t, s.send(t, "GET", "v1beta1/"+plural+"/"+x.Name, nil).body)
	if old.Spec.Version != "v1" || old.Spec.Validation == nil {
		t.Errorf("in v1beta1 %+v", old)
	}
	s.created(t, gadgets)
	a = s.send(t, "GET", "v1/"+plural+"?limit=1", nil)
	if got := fromWire[*v1.CustomResourceDefinitionList](t, a.body); len(got.Items) != 1 || got.Continue == "" || got.ResourceVersion == "" || *got.RemainingItemCount != 1 || got.Items[0].Name != "gadgets.example.com" {
		t.Errorf("%+v", got)
	}
	// It is written in pieces, and is the message that its Go value would be.
	a = s.send(t, "GET", "v1/"+plural, nil)
	if again := toWire(t, fromWire[*v1.CustomResourceDefinitionList](t, a.body)); string(again) != a.body {
		t.Errorf("%d bytes, and not the %d of its Go value", len(a.body), len(again))
	}
	if got := fromWire[*v1beta1.CustomResourceDefinitionList](t, s.send(t, "GET", "v1beta1/"+plural, nil).body); len(got.Items) != 2 || got.Items[1].Name != x.Name {
		t.Errorf("%+v", got)
	}
	a = s.send(t, "DELETE", path, &metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, Preconditions: metav1.NewUIDPreconditions("x")})
	if got := fromWire[*metav1.Status](t, a.body); a.code != http.StatusConflict {
		t.Errorf("%d %+v", a.code, got)
	}
	if a = s.send(t, "DELETE", path, nil); a.code != http.StatusOK || fromWire[*v1.CustomResourceDefinition](t, a.body).DeletionTimestamp == nil {
		t.Errorf("%d %q", a.code, a.body)
	}
	if got := s.do(t, "GET", path, "application/json;as=Table;v=v1;g=meta.k8s.io,"+runtime.ContentTypeProtobuf, nil); !strings.HasPrefix(got.body, `{"kind":"Table"`) {
		t.Errorf("%.100s", got.body)
	}
	if got := s.do(t, "GET", path, runtime.ContentTypeProtobuf+";as=PartialObjectMetadata;v=v1;g=meta.k8s.io", nil); got.code != http.StatusOK || !strings.HasPrefix(got.body, "k8s\x00") {
		t.Errorf("%.100s", got.body)
	}
}

// asProtobuf returns a CRD as a generated client sends it.
func asProtobuf(tb testing.TB, text string) []byte {
	tb.Helper()
	typed, _, err := lenient.Decode(asJSON(tb, text), nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return toWire(tb, typed)
}

func TestWatchInProtobuf(t *testing.T) {
	s := serve(t)
	x := s.created(t, widgets)
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"v1/"+plural+"?watch=1&resourceVersion="+x.ResourceVersion, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", runtime.ContentTypeProtobuf)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != runtime.ContentTypeProtobuf+";stream=watch" {
		t.Errorf("the stream is %s", got)
	}
	s.created(t, gadgets)
	if a := s.do(t, "DELETE", "v1/"+plural+"/"+x.Name, "", nil); a.code != http.StatusOK {
		t.Fatal(a.body)
	}
	for _, want := range []struct {
		what watch.EventType
		name string
	}{{watch.Added, "gadgets.example.com"}, {watch.Modified, "widgets.example.com"}} {
		var size uint32
		if err := binary.Read(resp.Body, binary.BigEndian, &size); err != nil {
			t.Fatal(err)
		}
		frame := make([]byte, size)
		if _, err := io.ReadFull(resp.Body, frame); err != nil {
			t.Fatal(err)
		}
		event := &metav1.WatchEvent{}
		if err := event.Unmarshal(frame); err != nil {
			t.Fatal(err)
		}
		got := fromWire[*v1.CustomResourceDefinition](t, string(event.Object.Raw))
		if event.Type != string(want.what) || got.Name != want.name || got.ResourceVersion == "" {
			t.Errorf("%s %+v", event.Type, got)
		}
	}
}

func TestProtobufIsWhatTheGoTypesWrite(t *testing.T) {
	for _, c := range []struct{ text, version string }{{widgets, "v1"}, {unions, "v1"}, {gadgets, "v1beta1"}} {
		s := serializer{codec.Serializer(NewDecoder(c.version)), NewDecoder(c.version).version}
		info, _ := runtime.SerializerInfoForMediaType(s.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
		if len(codec.Standard(s)) != 3 {
			t.Error("protobuf is not offered")
		}
		encoder := s.EncoderForVersion(info.Serializer, nil)
		fromJSON := sent(t, c.text)
		for _, reader := range []runtime.Serializer{info.Serializer, info.StrictSerializer} {
			obj, gvk, err := reader.Decode(asProtobuf(t, c.text), nil, &object.Object{})
			if err != nil || gvk.Version != c.version {
				t.Fatal(gvk, err)
			}
			if got := obj.(*object.Object); c.text != unions && string(got.JSON()) != string(fromJSON.JSON()) {
				t.Errorf("from protobuf:\n%s\nfrom JSON:\n%s", got.JSON(), fromJSON.JSON())
			}
		}
		inVersion, err := convertor{s.version}.object(fromJSON)
		if err != nil {
			t.Fatal(err)
		}
		typed, _, err := lenient.Decode(inVersion.JSON(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := runtime.Encode(encoder, fromJSON); err != nil || !bytes.Equal(got, toWire(t, typed)) {
			t.Errorf("an object: %v\n%q\n%q", err, got, toWire(t, typed))
		}
		list := &object.List{Items: []object.Object{*fromJSON, *fromJSON}}
		list.SetGroupVersionKind(stable.WithKind(kind + "List"))
		list.ResourceVersion, list.Continue = "7", "next"
		theirs, err := scheme.New(s.version.WithKind(kind + "List"))
		if err != nil {
			t.Fatal(err)
		}
		items := reflect.ValueOf(theirs).Elem().FieldByName("Items")
		items.Set(reflect.Append(items, reflect.ValueOf(typed).Elem(), reflect.ValueOf(typed).Elem()))
		reflect.ValueOf(theirs).Elem().FieldByName("ListMeta").Set(reflect.ValueOf(list.ListMeta))
		theirs.GetObjectKind().SetGroupVersionKind(s.version.WithKind(kind + "List"))
		if got, err := runtime.Encode(encoder, list); err != nil || !bytes.Equal(got, toWire(t, theirs)) {
			t.Errorf("a list: %v\n%q\n%q", err, got, toWire(t, theirs))
		}
	}
}

// nested returns a CRD with a schema of so many levels, and a text at
// the bottom.
func nested(tb testing.TB, levels, text int) []byte {
	tb.Helper()
	inner, err := (&v1.JSONSchemaProps{Description: strings.Repeat("x", text)}).Marshal()
	if err != nil {
		tb.Fatal(err)
	}
	wrap := func(field byte, data []byte) []byte {
		return append(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field)<<3|2), uint64(len(data))), data...)
	}
	// Put together from the inside would take quadratic time.
	var headers [][]byte
	size := len(inner)
	for range levels {
		header := binary.AppendUvarint([]byte{0xe2, 1}, uint64(size)) // not
		headers, size = append(headers, header), size+len(header)
	}
	data := make([]byte, 0, size)
	for i := range headers {
		data = append(data, headers[len(headers)-1-i]...)
	}
	data = append(data, inner...)
	raw := wrap(2, wrap(7, wrap(4, wrap(1, data)))) // spec.versions[0].schema.openAPIV3Schema
	unknown := &runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: stable.String(), Kind: kind}, Raw: raw}
	return toWire(tb, unknown)
}

func TestHostileProtobufIsRefusedInTime(t *testing.T) {
	s := serve(t)
	path := "v1/" + plural
	for name, c := range map[string]struct {
		body []byte
		want string
	}{
		"deep":           {nested(t, 500_000, 0), "too large for how deeply it is nested"},
		"deep and large": {nested(t, 5_000, 1<<20), "too large for how deeply it is nested"},
		"empty":          {nil, "empty data"},
		"no envelope":    {[]byte("{}"), "does not appear to be a protobuf message"},
		"cut off":        {asProtobuf(t, widgets)[:100], "unexpected EOF"},
		"a list":         {toWire(t, &v1.CustomResourceDefinitionList{TypeMeta: metav1.TypeMeta{APIVersion: stable.String(), Kind: kind + "List"}}), "CustomResourceDefinitionList"},
		"another kind":   {toWire(t, &runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"}}), `no kind "Widget" is registered`},
		"not JSON": {toWire(t, &v1.CustomResourceDefinition{TypeMeta: metav1.TypeMeta{APIVersion: stable.String(), Kind: kind}, Spec: v1.CustomResourceDefinitionSpec{
			Versions: []v1.CustomResourceDefinitionVersion{{Schema: &v1.CustomResourceValidation{OpenAPIV3Schema: &v1.JSONSchemaProps{Default: &v1.JSON{Raw: []byte("{")}}}}},
		}}), "unexpected end of JSON input"},
	} {
		body := c.body
		if body == nil {
			body = []byte{}
		}
		if a := s.do(t, "POST", path, runtime.ContentTypeProtobuf, body); a.code != http.StatusBadRequest || !strings.Contains(a.message(), c.want) {
			t.Errorf("%s: %d %.300s", name, a.code, a.body)
		}
	}
}

func FuzzFromProtobuf(f *testing.F) {
	for _, text := range []string{widgets, gadgets, unions} {
		f.Add(asProtobuf(f, text))
	}
	s := codec.Serializer(NewDecoder("v1"))
	info, _ := runtime.SerializerInfoForMediaType(s.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		obj, _, err := info.StrictSerializer.Decode(data, nil, &object.Object{})
		if err != nil {
			return
		}
		if _, err := runtime.Encode(info.Serializer, obj); err != nil {
			t.Fatalf("%v: %s", err, obj.(*object.Object).JSON())
		}
	})
}
