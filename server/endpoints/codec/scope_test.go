package codec_test

import (
	"io"
	"net/url"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/endpoints/codec"
)

func TestSharedScope(t *testing.T) {
	options := &metav1.DeleteOptions{}
	query := url.Values{"gracePeriodSeconds": {"7"}}
	if err := codec.SharedParameters().DecodeParameters(query, metav1.SchemeGroupVersion, options); err != nil || *options.GracePeriodSeconds != 7 {
		t.Errorf("%v: %v", options, err)
	}
	typer := codec.SharedTyper(widget)
	gvks, _, err := typer.ObjectKinds(&object.Object{})
	if err != nil || len(gvks) != 1 || gvks[0] != widget {
		t.Errorf("an object without a kind: %v, %v", gvks, err)
	}
	if gvks, _, err = typer.ObjectKinds(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Other"}}); err != nil || gvks[0] != (schema.GroupVersionKind{Version: "v1", Kind: "Other"}) {
		t.Errorf("a map: %v, %v", gvks, err)
	}
	if _, _, err := typer.ObjectKinds(object.New(schema.GroupVersionKind{Kind: "Widget"})); !runtime.IsMissingVersion(err) {
		t.Errorf("an object without a version: %v", err)
	}
	if !typer.Recognizes(widget) || !typer.Recognizes(metav1.SchemeGroupVersion.WithKind("GetOptions")) || typer.Recognizes(widget.GroupVersion().WithKind("GetOptions")) {
		t.Error("kinds are not recognized")
	}
}

// Webhooks may return objects that the schema does not complete.
func TestWhatIsNotDefaulted(t *testing.T) {
	d := codec.Defaulter(newDecoder(t, 3))
	other := object.New(widget.GroupVersion().WithKind("Other"))
	other.SetMember("spec", []byte("{}"))
	before := string(other.JSON())
	if d.Default(other); string(other.JSON()) != before {
		t.Errorf("another kind became %s", other.JSON())
	}
	for name, spec := range map[string]any{"a channel": make(chan int), "no object": "x"} {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": spec}}
		if d.Default(u); u.Object["metadata"] != spec {
			t.Errorf("%s became %v", name, u.Object)
		}
	}
}

// Only what is written for programs may be written around the bytes of the object.
func TestEventsForReaders(t *testing.T) {
	_, inJSON := info(t, newDecoder(t, 3), runtime.ContentTypeJSON)
	_, inYAML := info(t, newDecoder(t, 3), runtime.ContentTypeYAML)
	raw := []byte(bodies[0] + "\n")
	for _, event := range []*metav1.WatchEvent{
		{Type: "ADDED", Object: runtime.RawExtension{Raw: raw}},
		{Type: "ADDED"},
		{Type: "ERROR", Object: runtime.RawExtension{Raw: raw, Object: &metav1.Status{Message: "m"}}},
	} {
		for _, c := range []struct {
			ours    runtime.Encoder
			options json.SerializerOptions
		}{
			{inJSON.Serializer, json.SerializerOptions{}},
			{inJSON.PrettySerializer, json.SerializerOptions{Pretty: true}},
			{inYAML.Serializer, json.SerializerOptions{Yaml: true}},
		} {
			if got, want := encode(t, c.ours, event), encode(t, upstream(c.options), event); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		}
	}
}

// unregistered is a type that no scheme knows.
type unregistered struct{ metav1.Status }

func (u *unregistered) DeepCopyObject() runtime.Object { return u }

func TestTypesThatNoSchemeKnows(t *testing.T) {
	s, i := info(t, newDecoder(t, 3), runtime.ContentTypeJSON)
	e := s.EncoderForVersion(i.Serializer, widget.GroupVersion())
	if err := e.Encode(&unregistered{}, io.Discard); !runtime.IsNotRegisteredError(err) {
		t.Errorf("without a kind: %v", err)
	}
	named := &unregistered{metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v9", Kind: "Named"}}}
	if got := encode(t, e, named); got != `{"kind":"Named","apiVersion":"v9","metadata":{}}`+"\n" {
		t.Errorf("with a kind: %s", got)
	}
	if e.Identifier() != i.Serializer.Identifier() {
		t.Errorf("the identifier is %s", e.Identifier())
	}
	if !i.StrictSerializer.(interface{ IsStrict() bool }).IsStrict() || i.Serializer.(interface{ IsStrict() bool }).IsStrict() {
		t.Error("the strict serializer is another one")
	}
	_, binary := info(t, newDecoder(t, 3), runtime.ContentTypeProtobuf)
	options := &metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, Preconditions: metav1.NewUIDPreconditions("u")}
	into := &metav1.DeleteOptions{}
	if _, _, err := binary.Serializer.Decode([]byte(encode(t, binary.Serializer, options)), nil, into); err != nil || string(*into.Preconditions.UID) != "u" {
		t.Errorf("%v: %v", into, err)
	}
}
