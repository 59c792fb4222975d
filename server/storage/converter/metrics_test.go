package converter

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"

	"github.com/espalier-dev/espalier/internal/object"
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
