package converter

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/webhook"
)

// A call is counted with its CRD, its versions and its outcome.
func TestCallsAreCounted(t *testing.T) {
	// The name of the CRD is this test's own: others count as well.
	client, err := rest.NewRESTClient(&url.URL{Scheme: "https", Host: "example.com"}, "", rest.ClientContentConfig{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := newHook("counted.example.com", []string{"v9"}, client)
	if h.client != http.DefaultClient || h.url != "https://example.com/" {
		t.Errorf("%v, %s", h.client, h.url)
	}
	own := &http.Client{}
	if client.Client = own; newHook("a", nil, client).client != own {
		t.Error("the webhook is called by another client")
	}
	in := []*object.Object{fromJSON(t, `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a"}}`)}
	if out, err := h.translate(t.Context(), in, v2); out != nil || err == nil || !strings.HasSuffix(err.Error(), "failed: no supported conversion review versions") {
		t.Errorf("%v, %v", out, err)
	}
	observe(t.Context(), "counted.example.com", "v1", "v2", 3_000_000_000, "")
	for succeeded, seconds := range map[string]float64{"false": 0, "true": 3} {
		h, err := testutil.GetHistogramMetricCount(durations.WithLabelValues("counted.example.com", "v1", "v2", succeeded))
		if err != nil || h != 1 {
			t.Errorf("succeeded %s: %d calls, %v", succeeded, h, err)
		}
		sum, err := testutil.GetHistogramMetricValue(durations.WithLabelValues("counted.example.com", "v1", "v2", succeeded))
		if err != nil || sum < seconds || sum > seconds+1 {
			t.Errorf("succeeded %s: %v seconds, %v", succeeded, sum, err)
		}
	}
	if n, err := testutil.GetCounterMetricValue(requests.WithLabelValues("failure", string(callFailed))); err != nil || n < 1 {
		t.Errorf("%v failures, %v", n, err)
	}
	if n, err := testutil.GetCounterMetricValue(requests.WithLabelValues("success", "")); err != nil || n < 1 {
		t.Errorf("%v calls, %v", n, err)
	}
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	for _, name := range []string{"apiserver_conversion_webhook_request_total", "apiserver_conversion_webhook_duration_seconds", "apiserver_crd_conversion_webhook_duration_seconds"} {
		if !strings.Contains(strings.Join(names, " "), name) {
			t.Errorf("%s is not shown", name)
		}
	}
}

// Only an object that has nothing but its kind is converted without the webhook.
func TestEmptyObjects(t *testing.T) {
	for text, want := range map[string]bool{
		`{"apiVersion":"example.com/v1","kind":"Gadget"}`:                                          true,
		`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{}}`:                            true,
		`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a"}}`:                  false,
		`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"uid":"u"}}`:                   false,
		`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{},"spec":{}}`:                  false,
		`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a"},"spec":{"a":"b"}}`: false,
	} {
		if got := empty(fromJSON(t, text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// What answers may have in sum grows with what is sent, and shrinks with what has come back.
func TestBudgetOfAnswers(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		data, err := io.ReadAll(req.Body)
		var r struct {
			Request struct{ UID string }
		}
		if err := errors.Join(err, json.Unmarshal(data, &r)); err != nil {
			t.Error(err)
		}
		text := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"` + r.Request.UID + `","result":{"status":"Success"},"convertedObjects":[{"apiVersion":"example.com/v2","kind":"Gadget","metadata":{"name":"a"}}]}}`
		_, _ = io.WriteString(w, text+strings.Repeat(" ", 1000-len(text)))
	}))
	defer server.Close()
	client, err := webhook.New(webhook.Options{AllowedNetworks: webhook.Everywhere})
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFactory(webhookutil.NewDefaultServiceResolver(), client)
	if err != nil {
		t.Fatal(err)
	}
	h, err := f.webhookFor("gadgets.example.com", &crd.Conversion{ReviewVersions: []string{"v1"}, Webhook: &crd.Webhook{
		URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	objs := []*object.Object{fromJSON(t, `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a"},"text":"`+strings.Repeat("x", 1000)+`"}`)}
	ctx, release := webhook.Hold(t.Context())
	defer release()
	l := &list{}
	if _, p := h.converted(ctx, objs, schema.GroupVersion{Group: "example.com", Version: "v2"}, l); p.err != nil {
		t.Error(p.err)
	}
	grown := l.budget + 1000 // it has sent more than 1,000 bytes and less than 2,000, and got 1,000
	if grown <= 4000 || grown >= 8000 {
		t.Errorf("%d bytes are left", l.budget)
	}
	if _, p := h.converted(ctx, objs, schema.GroupVersion{Group: "example.com", Version: "v2"}, &list{budget: 500 - grown}); p.err == nil || !strings.Contains(p.err.Error(), "is longer than") {
		t.Errorf("more than is left: %v", p.err)
	}
}
