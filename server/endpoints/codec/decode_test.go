package codec_test

import (
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/endpoints/codec"
)

func TestStrictErrors(t *testing.T) {
	f := newDecoder(t, 3)
	for _, c := range []struct{ mediaType, body, want string }{
		{runtime.ContentTypeJSON, bodies[0], ""},
		{runtime.ContentTypeJSON, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"a":1,"text":"b","text":"c"}}`, `strict decoding error: unknown field "spec.a", duplicate field "spec.text"`},
		{runtime.ContentTypeYAML, "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  text: b\n", ""},
		{runtime.ContentTypeYAML, "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  a: 1\n", `strict decoding error: unknown field "spec.a"`},
		{
			runtime.ContentTypeYAML, "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  text: b\n  text: c\n  a: 1\n",
			"strict decoding error: yaml: unmarshal errors:\n  line 7: key \"text\" already set in map, unknown field \"spec.a\"",
		},
	} {
		s, i := info(t, f, c.mediaType)
		o := &object.Object{}
		got, gvk, err := s.DecoderToVersion(i.StrictSerializer, widget.GroupVersion()).Decode([]byte(c.body), &widget, o)
		if got != runtime.Object(o) || o.GetName() != "a" || *gvk != widget {
			t.Errorf("%s: no object: %v, %v", c.body, gvk, err)
		}
		if text := message(err); text != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.body, text, c.want)
		}
		if _, ok := runtime.AsStrictDecodingError(err); err != nil && !ok {
			t.Errorf("%s: the error is %T", c.body, err)
		}
		if _, _, err := i.Serializer.Decode([]byte(c.body), &widget, &object.Object{}); err != nil {
			t.Errorf("%s: not strict: %v", c.body, err)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestErrorsAreUpstreams compares the errors for bodies that are no objects.
func TestErrorsAreUpstreams(t *testing.T) {
	f := newDecoder(t, 3)
	for _, body := range []string{
		``, `{`, `nope`, `[]`, `"x"`, `1`, `null`, `{}`, `{"apiVersion":"example.com/v1"}`, `{"kind":1}`, `{"kind":"Widget","apiVersion":1}`, `{"kind":"Widget","apiVersion":"a/b/c"}`,
		`{"kind":"Widget","KIND":1}`, `{"Kind":"Widget"}`, `{"kind":null}`, `{"kind":""}`, `{"kind":"Widget","APIVERSION":"a/b/c"}`, `{"kind":"Widget","kind":1}`, `{"kind":1,"kind":"Widget"}`, `{"apiVersion":1,"kind":"Widget","apiVersion":"example.com/v1"}`, "a: b", "a: [", "\tx", "kind: 1", "a: &a [1]\nb: *c\n", "a: b: c",
	} {
		for _, mediaType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML} {
			_, i := info(t, f, mediaType)
			for _, strict := range []bool{false, true} {
				decoder := i.Serializer
				if strict {
					decoder = i.StrictSerializer
				}
				options := json.SerializerOptions{Yaml: mediaType == runtime.ContentTypeYAML, Strict: strict}
				_, gotKind, got := decoder.Decode([]byte(body), &widget, object.New(widget))
				_, wantKind, want := upstream(options).Decode([]byte(body), &widget, &unstructured.Unstructured{})
				if message(got) != message(want) {
					t.Errorf("%s, strict %v, %q:\ngot  %v\nwant %v", mediaType, strict, body, got, want)
				}
				if named := wantKind != nil && wantKind.Kind != ""; named != (gotKind != nil && gotKind.Kind != "") {
					t.Errorf("%s, strict %v, %q: the kind is %v, want %v", mediaType, strict, body, gotKind, wantKind)
				}
			}
		}
	}
}

func TestMeta(t *testing.T) {
	defaults := &schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}
	for _, c := range []struct {
		body string
		want schema.GroupVersionKind
		err  string
	}{
		{`{"kind":"L","apiVersion":"h/v2"}`, schema.GroupVersionKind{Group: "h", Version: "v2", Kind: "L"}, ""},
		{`{"kind":"L","apiVersion":"v2"}`, schema.GroupVersionKind{Version: "v2", Kind: "L"}, ""},
		{`{"kind":"L"}`, schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "L"}, ""},
		{`{}`, *defaults, ""},
		{`{"kind":"L","a":1e999}`, schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "L"}, ""},
		{`{"apiVersion":"g/"}`, *defaults, ""},
		{`{"apiVersion":"h/"}`, schema.GroupVersionKind{Group: "h", Kind: "K"}, ""},
		{`{"kind":{}}`, schema.GroupVersionKind{}, "couldn't get version/kind; json parse error: "},
		{`{"apiVersion":"a/b/c"}`, schema.GroupVersionKind{}, "unexpected GroupVersion string: a/b/c"},
	} {
		got, err := codec.Meta([]byte(c.body), defaults)
		if got != c.want || !strings.HasPrefix(message(err), c.err) || (err != nil) != (c.err != "") {
			t.Errorf("%s: %v, %v", c.body, got, err)
		}
	}
	if _, err := codec.Meta([]byte(`{"a":1}`), nil); message(err) != `Object 'Kind' is missing in '{"a":1}'` {
		t.Errorf("got %v", err)
	}
}

// TestPatchCodec does what the handler of JSON patches does.
func TestPatchCodec(t *testing.T) {
	s, i := info(t, newDecoder(t, 3), runtime.ContentTypeJSON)
	c := runtime.NewCodec(s.EncoderForVersion(i.Serializer, widget.GroupVersion()), s.DecoderToVersion(i.StrictSerializer, widget.GroupVersion()))
	o := &object.Object{}
	if err := runtime.DecodeInto(c, []byte(bodies[2]), o); err != nil {
		t.Fatal(err)
	}
	patched := strings.Replace(encode(t, c, o), `"replicas":9`, `"replicas":10`, 1)
	if err := runtime.DecodeInto(c, []byte(patched), o); err != nil || string(o.Lookup("spec", "replicas")) != "10" {
		t.Errorf("%s: %v", o.JSON(), err)
	}
}

func TestStorage(t *testing.T) {
	f := newDecoder(t, 3)
	c := codec.Storage(f)
	if err := runtime.CheckCodec(c, object.New(widget)); err != nil {
		t.Error(err)
	}
	if err := runtime.CheckCodec(c, &object.Object{}, widget); err != nil {
		t.Error(err)
	}
	stored := []byte(bodies[0] + "\n")
	o := &object.Object{}
	if got, gvk, err := c.Decode(stored, nil, o); err != nil || got != runtime.Object(o) || *gvk != widget {
		t.Fatalf("%v, %v", gvk, err)
	}
	if &o.JSON()[0] != &stored[0] {
		t.Error("canonical bytes have been copied")
	}
	o.SetResourceVersion("5")
	o.SetResourceVersion("")
	if got := encode(t, c, o); got != string(stored) {
		t.Errorf("stored as %s", got)
	}
	if _, _, err := c.Decode([]byte("nope"), nil, o); err == nil {
		t.Error("something that is no object has been read")
	}
	if _, _, err := c.Decode(stored, nil, &metav1.Status{}); err == nil {
		t.Error("an object has been read into a status")
	}
	if _, err := runtime.Encode(c, &metav1.Status{}); err == nil {
		t.Error("a status has been stored")
	}
}

// rereading is a decoder that knows what a schema has normalized.
type rereading struct {
	*decoder
	schema any // the one that it has normalized by
	asked  int
}

func (f *rereading) FromWritten(data []byte, schema any) (*object.Object, bool) {
	if f.asked++; schema != f.schema {
		return nil, false
	}
	o, err := object.FromJSON(data)
	return o, err == nil
}

// What has just been written by the current schema is not normalized again.
func TestStorageRereads(t *testing.T) {
	const written = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{}}`
	const normalized = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":1,"name":"a"},"spec":{"replicas":3}}`
	for _, c := range []struct {
		name  string
		stamp any
		want  string
		asked int
	}{
		{"the current schema", "current", written, 1},
		{"another schema", "other", normalized, 1},
		{"no schema", nil, normalized, 0},
	} {
		f := &rereading{decoder: newDecoder(t, 3), schema: "current"}
		into := &object.Object{}
		into.SetStamp(c.stamp)
		if _, _, err := codec.Storage(f).Decode([]byte(written), nil, into); err != nil {
			t.Fatal(err)
		}
		if got := string(into.JSON()); got != c.want || f.asked != c.asked {
			t.Errorf("%s: %s, asked %d times", c.name, got, f.asked)
		}
	}
	f := &rereading{decoder: newDecoder(t, 3), schema: "current"}
	if o, gvk, err := codec.Storage(f).Decode([]byte(written), nil, nil); err != nil || *gvk != widget || string(o.(*object.Object).JSON()) != normalized {
		t.Errorf("into nothing: %v, %v, %v", o, gvk, err)
	}
}

func TestScope(t *testing.T) {
	options := &metav1.ListOptions{}
	query := url.Values{"limit": {"5"}, "labelSelector": {"a=b"}}
	if err := codec.Parameters(widget.GroupVersion()).DecodeParameters(query, widget.GroupVersion(), options); err != nil || options.Limit != 5 || options.LabelSelector != "a=b" {
		t.Errorf("%v: %v", options, err)
	}
	typer := codec.Typer(widget)
	for _, c := range []struct {
		obj  runtime.Object
		want string
	}{
		{&object.Object{}, "Widget"},
		{object.New(widget), "Widget"},
		{object.New(widget.GroupVersion().WithKind("Other")), "Other"},
		{&object.List{}, "WidgetList"},
		{&metav1.ListOptions{}, "ListOptions"},
	} {
		gvks, _, err := typer.ObjectKinds(c.obj)
		if err != nil || len(gvks) == 0 || gvks[0].Kind != c.want {
			t.Errorf("%T: %v, %v", c.obj, gvks, err)
		}
	}
	if _, _, err := typer.ObjectKinds(&metav1.Table{}); !runtime.IsNotRegisteredError(err) {
		t.Errorf("a table: %v", err)
	}
	for _, known := range []schema.GroupVersionKind{widget, widget.GroupVersion().WithKind("ListOptions")} {
		if !typer.Recognizes(known) {
			t.Errorf("%v is not recognized", known)
		}
	}
	if typer.Recognizes(schema.GroupVersionKind{Kind: "x"}) {
		t.Error("a kind of another group is recognized")
	}
	o, err := codec.Creater().New(widget)
	if err != nil || o.GetObjectKind().GroupVersionKind() != widget {
		t.Errorf("%v: %v", o, err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, body := range append(bodies, "kind: Widget\nspec: {a: &x [1,2], b: *x}\n", "a: 1\na: 2\n", "{", "\x00", "? a", "- b", "!!binary x", "kind: Widget\n<<: {a: b}\n") {
		f.Add([]byte(body))
	}
	decoder := newDecoder(f, 3)
	_, jsonInfo := info(f, decoder, runtime.ContentTypeJSON)
	_, yamlInfo := info(f, decoder, runtime.ContentTypeYAML)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, s := range []runtime.Serializer{jsonInfo.StrictSerializer, jsonInfo.Serializer, yamlInfo.StrictSerializer} {
			o := &object.Object{}
			got, _, err := s.Decode(body, &widget, o)
			if _, strict := runtime.AsStrictDecodingError(err); err != nil && !strict {
				continue
			}
			if got != runtime.Object(o) {
				t.Fatalf("decoded into %T", got)
			}
			again := &object.Object{}
			if _, _, err := jsonInfo.Serializer.Decode([]byte(encode(t, jsonInfo.Serializer, o)), nil, again); err != nil {
				t.Fatalf("%s cannot be read: %v", o.JSON(), err)
			}
			if string(again.JSON()) != string(o.JSON()) {
				t.Fatalf("%s reads as %s", o.JSON(), again.JSON())
			}
		}
	})
}
