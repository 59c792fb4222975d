package converter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/webhook"
)

var v2 = schema.GroupVersion{Group: "example.com", Version: "v2"}

func fromJSON(t *testing.T, text string) *object.Object {
	t.Helper()
	o, err := object.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// What is wrong with an answer is said with the words of Kubernetes, and counted as its kind.
func TestAnswers(t *testing.T) {
	bare := fromJSON(t, `{"apiVersion":"example.com/v1","kind":"Gadget"}`)
	odd := fromJSON(t, `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"annotations":{"-":"b"},"labels":{"a":"-"}}}`)
	of := func(objects string) string {
		return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"u","result":{"status":"Success"},"convertedObjects":[` + objects + `]}}`
	}
	gadget := func(rest string) string { return `{"apiVersion":"example.com/v2","kind":"Gadget"` + rest + `}` }
	const written = `{"apiVersion":"example.com/v2","kind":"Gadget","metadata":{}}`
	for _, test := range []struct {
		version, answer string
		original        *object.Object
		failure         failure
		want            string
	}{
		{"v1", of(gadget(`,"metadata":{}`)), bare, "", written},
		{"v1", of(gadget(`,"metadata":{"labels":null,"annotations":null}`)), bare, "", written},
		{"v1beta1", strings.ReplaceAll(of(gadget(`,"metadata":{}`)), `"uid":"u",`, ""), bare, "", written},
		{"v1beta1", strings.ReplaceAll(of(gadget(`,"metadata":{}`)), `"kind":"ConversionReview"`, `"kind":"Other"`), bare, "", written},
		{"v1", strings.ReplaceAll(of(""), `"uid":"u",`, ""), bare, malformedResponse, `expected response.uid="u", got ""`},
		{"v1", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":7}`, bare, malformedResponse, `expected response.uid="u", got ""`},
		{"v1beta1", `{"response":7}`, bare, malformedResponse, "response.result.status was '', not 'Success'"},
		{"v1beta1", `{"response":{"result":{"status":7,"message":7}}}`, bare, malformedResponse, "response.result.status was '', not 'Success'"},
		{"v1beta1", `{"response":{"result":{"status":"Success"},"convertedObjects":{"a":1}}}`, bare, partialResponse, "0 objects, expected 1"},
		{"v1beta1", `{"response":{"result":{"status":"Success"}}}`, bare, partialResponse, "0 objects, expected 1"},
		{"v1", of(gadget("")), bare, invalidObject, "invalid metadata: missing metadata in converted object"},
		{"v1", of(gadget(`,"metadata":7`)), bare, invalidObject, "invalid metadata: invalid metadata of type int64 in converted object"},
		{"v1", of(`{"apiVersion":"example.com/v2"}`), bare, invalidObject, "invalid object: Object 'Kind' is missing"},
		{"v1", of(`{"apiVersion":"a/b/c","kind":"Gadget"}`), bare, invalidObject, "invalid object: unexpected GroupVersion string: a/b/c"},
		{"v1", of(gadget(`,"metadata":{"annotations":7}`)), bare, invalidObject, "invalid metadata: invalid metadata.annotations of type int64 in converted object"},
		{"v1", of(gadget(`,"metadata":{"annotations":{"-":"b"}}`)), bare, invalidObject, `invalid metadata: metadata.annotation: Invalid value: "-": `},
		// What was so before is not the webhook's fault.
		{"v1", of(gadget(`,"metadata":{"annotations":{"-":"b"},"labels":{"a":"-"}}`)), odd, "", `{"apiVersion":"example.com/v2","kind":"Gadget","metadata":{"annotations":{"-":"b"},"labels":{"a":"-"}}}`},
		{"v1", of(gadget(`,"metadata":{}`)), odd, "", written},
		{"v1beta1", `7`, bare, callFailed, "couldn't get version/kind; json parse error: number is not an object"},
	} {
		out, p := read([]byte(test.answer), test.version, "u", v2, []*object.Object{test.original})
		got := ""
		if p.err != nil {
			got = p.err.Error()
		} else if len(out) == 1 {
			got = string(out[0].JSON())
		}
		if p.failure != test.failure || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s\n%s: %s\nwant %s: %s", test.answer, p.failure, got, test.failure, test.want)
		}
	}
}

func TestFaulty(t *testing.T) {
	for _, test := range []struct {
		at    stage
		i, of int
		want  string
	}{
		{decoding, 0, 1, "invalid object: e"},
		{identifying, 0, 1, "invalid object at index 0: e"},
		{comparing, 0, 1, "invalid object: e"},
		{restoring, 0, 1, "invalid metadata: e"},
		{decoding, 1, 2, "invalid converted object at index 1: e"},
		{identifying, 1, 2, "invalid converted object at index 1: e"},
		{restoring, 1, 2, "invalid metadata in object at index 1: e"},
	} {
		if got := faulty(test.at, test.i, test.of, errors.New("e")).Error(); got != test.want {
			t.Errorf("%v: %s", test, got)
		}
	}
}

// The error is a status: 500, or 429 if the webhook has too many calls already.
func TestErrors(t *testing.T) {
	gvk := v2.WithKind("Gadget")
	for f, verb := range map[failure]string{callFailed: "failed:", malformedResponse: "failed:", partialResponse: "returned", invalidObject: "returned"} {
		cause := errors.New("e")
		err := failed(gvk, problem{f, cause})
		if err.Error() != "conversion webhook for example.com/v2, Kind=Gadget "+verb+" e" || !errors.Is(err, cause) {
			t.Errorf("%s: %v", f, err)
		}
	}
	long := strings.Repeat("x", 4*messageLimit)
	const start = "conversion webhook for example.com/v2, Kind=Gadget returned "
	if got := failed(gvk, problem{invalidObject, errors.New(long)}).Error(); got != webhook.Clean(start+long, 2*messageLimit) {
		t.Errorf("%d bytes of a long error", len(got))
	}
	for _, test := range []struct {
		cause  error
		code   int32
		reason metav1.StatusReason
		after  int32
	}{
		{errors.New("e"), http.StatusInternalServerError, metav1.StatusReasonInternalError, 0},
		{fmt.Errorf("e: %w", webhook.ErrBusy), http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, 1},
	} {
		s := (&callError{"text", test.cause}).Status()
		after := int32(0)
		if s.Details != nil {
			after = s.Details.RetryAfterSeconds
		}
		if s.Status != "Failure" || s.Code != test.code || s.Reason != test.reason || s.Message != "text" || after != test.after {
			t.Errorf("%+v", s)
		}
	}
}

// A webhook needs an address, and an object that cannot be pruned is an error.
func TestConvertersThatFail(t *testing.T) {
	client, err := webhook.New(webhook.Options{AllowedNetworks: webhook.Everywhere})
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFactory(webhookutil.NewDefaultServiceResolver(), client)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.webhookFor("gadgets.example.com", &crd.Conversion{}); err == nil || err.Error() != "conversion of gadgets.example.com: there is no webhook.clientConfig" {
		t.Error(err)
	}
	// Blanks are no certificates, and anything else has to be some.
	for bundle, good := range map[string]bool{"": true, " \n": true, "x": false, "xy": false} {
		from := &crd.Webhook{URL: ptr.To("https://example.com/" + url.PathEscape(bundle)), CABundle: []byte(bundle)}
		if h, err := f.webhookFor("gadgets.example.com", &crd.Conversion{Webhook: from, ReviewVersions: []string{"v1"}}); (err == nil) != good || (h != nil) != good {
			t.Errorf("CABundle %q: %v, %v", bundle, h, err)
		}
	}
	c := &Converter{resource: resource{group: "example.com", versions: map[string]bool{"example.com/v1": true, "example.com/v2": true}}, translate: rename}
	c.prune = func(*object.Object) (*object.Object, error) { return nil, errors.New("not pruned") }
	in := []*object.Object{fromJSON(t, `{"apiVersion":"example.com/v1","kind":"Gadget"}`)}
	if out, err := c.Convert(t.Context(), in, "v2"); out != nil || err == nil || err.Error() != "not pruned" {
		t.Error(out, err)
	}
	c.translate = func(context.Context, []*object.Object, schema.GroupVersion) ([]*object.Object, error) {
		return nil, errors.New("not translated")
	}
	if out, err := c.Convert(t.Context(), in, "v2"); out != nil || err == nil || err.Error() != "not translated" {
		t.Error(out, err)
	}
}
