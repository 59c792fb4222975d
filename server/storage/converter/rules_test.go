package converter_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	webhookutil "k8s.io/apiserver/pkg/util/webhook"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/converter"
)

// byRules returns the converter of gadgets with conversion rules. Their CRD names a webhook, too.
func byRules(t *testing.T, rules string) *converter.Converter {
	t.Helper()
	schema := func(field string) string {
		return `"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"` + field + `":{"type":"string"}}}}}}`
	}
	d, err := crd.Parse(fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.example.com","annotations":{"conversion.espalier.dev/rules":%q}},
		"spec":{"group":"example.com","names":{"kind":"Gadget","plural":"gadgets"},"scope":"Namespaced",
		"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://127.0.0.1:1"},"conversionReviewVersions":["v1"]}},
		"versions":[{"name":"v1","served":true,"storage":true,%s},{"name":"v2","served":true,"storage":false,%s}]}}`, rules, schema("size"), schema("length")))
	if err != nil {
		t.Fatal(err)
	}
	c, err := factory(t, webhookutil.NewDefaultServiceResolver()).For(d, func(o *object.Object) (*object.Object, error) { return o, nil })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Conversion rules take precedence over the strategy, and objects come back in the order in which they were given.
func TestRules(t *testing.T) {
	c := byRules(t, `conversions: [{between: [v1, v2], rules: [{move: {from: spec.size, to: spec.length}}]}]`)
	given := func(name string) string {
		return `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"` + name + `","namespace":"ns"},"spec":{"size":"` + name + `"}}`
	}
	const none = `{"apiVersion":"example.com/v1","kind":"Gadget"}`
	var objs []*object.Object
	var wanted []string
	for i := range 250 {
		text := given(fmt.Sprint("o", i))
		if i%7 == 3 {
			text = none
		}
		o, err := object.FromJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		objs = append(objs, o)
		wanted = append(wanted, strings.NewReplacer("example.com/v1", "example.com/v2", "size", "length").Replace(text))
	}
	out, err := c.Convert(t.Context(), objs, "v2")
	if err != nil || len(out) != len(objs) {
		t.Fatal(len(out), err)
	}
	for i, o := range out {
		if got := string(o.JSON()); got != wanted[i] && got != strings.Replace(wanted[i], `"Gadget"}`, `"Gadget","metadata":{}}`, 1) {
			t.Errorf("object %d is %s, not %s", i, got, wanted[i])
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, n := range []int{1, len(objs)} {
		if _, err := c.Convert(over, objs[:n], "v2"); err == nil {
			t.Errorf("%d objects are converted for a client that is gone", n)
		}
	}
	wrong, err := object.FromJSON([]byte(`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a","annotations":7},"spec":{}}`))
	if err == nil {
		if _, err := c.Convert(t.Context(), []*object.Object{wrong}, "v2"); err == nil {
			t.Error("annotations that are a number are converted")
		}
	}
}

// With wrong rules an object in its own version can be read, and others say what is wrong.
func TestWrongRules(t *testing.T) {
	c := byRules(t, `conversions: [{between: [v1, v2], rules: [{move: {from: spec.siz, to: spec.length}}]}]`)
	if out, err := c.Convert(t.Context(), []*object.Object{gadget(t, "v2", "a")}, "v2"); err != nil || len(out) != 1 {
		t.Error(out, err)
	}
	_, err := c.Convert(t.Context(), []*object.Object{gadget(t, "v1", "a")}, "v2")
	if err == nil || !strings.Contains(err.Error(), "the conversion rules of CRD gadgets.example.com are invalid: ") || !strings.Contains(err.Error(), "spec.siz") ||
		!strings.HasSuffix(err.Error(), "; correct the annotation conversion.espalier.dev/rules of the CRD") {
		t.Error(err)
	}
}

// Which status codes are an answer.
func TestStatusCodes(t *testing.T) {
	t.Parallel()
	for code, wanted := range map[int]bool{200: true, 201: true, 206: true, 207: false, 226: false, 404: false} {
		s := serve(t, func(w http.ResponseWriter, req *http.Request, r *review) {
			w.WriteHeader(code)
			text(good)(w, req, r)
		})
		if _, err := s.converter(t, `["v1"]`).Convert(t.Context(), gadgets(t, 1), "v2"); (err == nil) != wanted || err != nil && !strings.Contains(err.Error(), fmt.Sprint("the webhook answered ", code, " ")) {
			t.Errorf("%d: %v", code, err)
		}
	}
}

// An object that has nothing but its kind is converted without the webhook.
func TestEmptyObjectNeedsNoWebhook(t *testing.T) {
	t.Parallel()
	s := serve(t, text(good))
	empty, err := object.FromJSON([]byte(`{"apiVersion":"example.com/v1","kind":"Gadget"}`))
	if err != nil {
		t.Fatal(err)
	}
	for calls, objs := range [][]*object.Object{{empty}, gadgets(t, 1)} {
		out, err := s.converter(t, `["v1"]`).Convert(t.Context(), objs, "v2")
		if err != nil || len(out) != 1 || int(s.calls.Load()) != calls || out[0].APIVersion() != "example.com/v2" {
			t.Errorf("%s after %d calls: %v, %v", objs[0].JSON(), s.calls.Load(), out, err)
		}
	}
}

// An answer that ends too early is named with its webhook.
func TestAnswerThatBreaksOff(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ *review) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte("{"))
	})
	_, err := s.converter(t, `["v1"]`).Convert(t.Context(), gadgets(t, 1), "v2")
	if want := fmt.Sprintf(`Post "%s/convert?timeout=30s": reading the answer: unexpected EOF`, s.URL); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}
