package scenarios

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionreview "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// A hook is a webhook: a server with TLS that would take a client's certificate, and that remembers how it was called.
type hook struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*admissionreview.AdmissionRequest
	calls    int
	leaks    []string            // credentials that it was sent
	pause    func(*http.Request) // before it answers a review
}

// hooked starts a hook that answers as it is told.
func hooked(t *testing.T, answer http.HandlerFunc) *hook {
	t.Helper()
	h := &hook{}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.look(r)
		answer(w, r)
	}))
	h.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

// look notes what a caller should have kept for itself.
func (h *hook) look(r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	for name, values := range r.Header {
		if containsAny(strings.ToLower(name), "authorization", "cookie", "token", "x-remote", "impersonate") {
			h.leaks = append(h.leaks, fmt.Sprint(name, values))
		}
	}
	if n := len(r.TLS.PeerCertificates); n > 0 {
		h.leaks = append(h.leaks, fmt.Sprintf("%d certificates", n))
	}
}

// discreet demands that the hook was called, and was sent no credential.
func (h *hook) discreet(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls == 0 || len(h.leaks) > 0 {
		t.Errorf("a webhook was called %d times, with %q", h.calls, h.leaks)
	}
}

// A hook that is sent credentials notices.
func TestHooksNoticeCredentials(t *testing.T) {
	s := common(t)
	config := rest.CopyConfig(s.Config) // has a certificate
	h := hooked(t, func(http.ResponseWriter, *http.Request) {})
	config.Host, config.CAData = h.URL, certificateOf(h.Server)
	req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL, nil))
	req.Header.Set("Authorization", "Bearer x")
	resp := must[*http.Response](t)(must[*http.Client](t)(rest.HTTPClientFor(config)).Do(req))
	_ = resp.Body.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.leaks) != 2 {
		t.Errorf("the hook has seen %q", h.leaks)
	}
}

// reviews returns the requests that the hook has been asked about.
func (h *hook) reviews() []*admissionreview.AdmissionRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*admissionreview.AdmissionRequest(nil), h.requests...)
}

// admitting starts a hook that reads reviews and lets respond fill in the answer, which is yes otherwise.
func admitting(t *testing.T, respond func(*admissionreview.AdmissionRequest, *admissionreview.AdmissionResponse)) *hook {
	t.Helper()
	var h *hook
	h = hooked(t, func(w http.ResponseWriter, r *http.Request) {
		var review admissionreview.AdmissionReview
		data, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(data, &review)
		}
		if err != nil || review.Request == nil {
			t.Errorf("a webhook is sent %.200q: %v", data, err)
			return
		}
		h.mu.Lock()
		h.requests = append(h.requests, review.Request)
		h.mu.Unlock()
		if h.pause != nil {
			h.pause(r)
		}
		review.Response = &admissionreview.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if respond != nil {
			respond(review.Request, review.Response)
		}
		review.Request = nil
		w.Header().Set("Content-Type", jsonType)
		_ = json.NewEncoder(w).Encode(review)
	})
	return h
}

// patching answers with a JSON patch.
func patching(patch string) func(*admissionreview.AdmissionRequest, *admissionreview.AdmissionResponse) {
	return func(_ *admissionreview.AdmissionRequest, response *admissionreview.AdmissionResponse) {
		response.PatchType, response.Patch = new(admissionreview.PatchTypeJSONPatch), []byte(patch)
	}
}

// boatRules are about boats and their subresources.
func boatRules(resources ...string) []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule: admissionv1.Rule{APIGroups: []string{boatKind.Group}, APIVersions: []string{"v1"}, Resources: resources}}}
}

// tagged selects objects with the label case=name.
func tagged(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"case": name}}
}

// mutating registers a hook for boats that have the label case=name.
func mutating(t *testing.T, s *launch.Server, name string, h *hook, change ...func(*admissionv1.MutatingWebhook)) {
	t.Helper()
	w := admissionv1.MutatingWebhook{
		Name: name + ".example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: new(h.URL), CABundle: certificateOf(h.Server)},
		Rules: boatRules("boats", "boats/status"), ObjectSelector: tagged(name), SideEffects: new(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}
	for _, f := range change {
		f(&w)
	}
	must[*admissionv1.MutatingWebhookConfiguration](t)(typedClient(t, s.Config).AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(),
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: named(name), Webhooks: []admissionv1.MutatingWebhook{w}}, metav1.CreateOptions{}))
}

// validating registers a hook that may not change boats that have the label case=name.
func validating(t *testing.T, s *launch.Server, name string, h *hook, change ...func(*admissionv1.ValidatingWebhook)) {
	t.Helper()
	w := admissionv1.ValidatingWebhook{
		Name: name + ".example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: new(h.URL), CABundle: certificateOf(h.Server)},
		Rules: boatRules("boats", "boats/status"), ObjectSelector: tagged(name), SideEffects: new(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}
	for _, f := range change {
		f(&w)
	}
	must[*admissionv1.ValidatingWebhookConfiguration](t)(typedClient(t, s.Config).AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(),
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: named(name), Webhooks: []admissionv1.ValidatingWebhook{w}}, metav1.CreateOptions{}))
}

// A caller sends requests and reads the answers, warnings too.
type caller struct {
	t      *testing.T
	client *http.Client
	base   string
}

func newCaller(t *testing.T, config *rest.Config) *caller {
	t.Helper()
	return &caller{t, must[*http.Client](t)(rest.HTTPClientFor(config)), config.Host}
}

// in returns the caller for a subtest.
func (c *caller) in(t *testing.T) *caller { return &caller{t, c.client, c.base} }

// An answer is what a server said, and how long that took.
type answer struct {
	t        *testing.T
	what     string
	code     int
	body     string
	warnings []string
	took     time.Duration
}

// call sends a request; contentType is that of the body.
func (c *caller) call(method, path, contentType, body string) answer {
	c.t.Helper()
	a, err := c.try(method, path, contentType, body)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// try is call for goroutines, which must not end the test.
func (c *caller) try(method, path, contentType, body string) (answer, error) {
	a := answer{t: c.t, what: method + " " + path}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), 2*soon)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	req.Header.Set("Accept", jsonType)
	if body != "" {
		req.Header.Set("Content-Type", contentType)
	}
	began := time.Now()
	resp, err := c.client.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	a.code, a.body, a.warnings, a.took = resp.StatusCode, string(data), resp.Header.Values("Warning"), time.Since(began)
	return a, err
}

// is demands a status, and words in the answer.
func (a answer) is(code int, words ...string) answer {
	a.t.Helper()
	if a.code != code {
		a.t.Errorf("%s: %d, not %d: %.600s", a.what, a.code, code, a.body)
	}
	for _, word := range words {
		if !strings.Contains(a.body, word) {
			a.t.Errorf("%s: no %q in %.600s", a.what, word, a.body)
		}
	}
	return a
}

// warns demands a warning that has a text.
func (a answer) warns(text string) answer {
	a.t.Helper()
	if !strings.Contains(strings.Join(a.warnings, "\n"), strings.ReplaceAll(text, `"`, `\"`)) {
		a.t.Errorf("%s: no warning %s, but %q", a.what, text, a.warnings)
	}
	return a
}

// object is the answer as a map.
func (a answer) object() (o map[string]any) {
	a.t.Helper()
	decode(a.t, []byte(a.body), &o)
	return o
}

// taggedBoat is a boat that is the business of the hook name.
func taggedBoat(name, tag, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{"name":%q,"namespace":"default","labels":{"case":%q}},"spec":%s}`, name, tag, spec)
}

// engaged waits until the server has heard of a webhook or a policy.
func (c *caller) engaged(what string, ok func() bool) {
	c.t.Helper()
	eventually(c.t, soon, what+" is in force", ok)
}
