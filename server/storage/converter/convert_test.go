package converter_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/converter"
	"github.com/espalier-dev/espalier/server/webhook"
)

// gadgetCRD returns the CRD of gadgets with a conversion.
func gadgetCRD(t testing.TB, conversion string) *crd.CRD {
	t.Helper()
	d, err := crd.Parse([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.example.com"},"spec":{"group":"example.com",
		"names":{"kind":"Gadget","plural":"gadgets"},"scope":"Namespaced","conversion":` + conversion + `,
		"versions":[{"name":"v1","served":true,"storage":true},{"name":"v2","served":true,"storage":false}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func factory(t testing.TB, services webhookutil.ServiceResolver) *converter.Factory {
	t.Helper()
	client, err := webhook.New(webhook.Options{AllowedNetworks: webhook.Everywhere})
	if err != nil {
		t.Fatal(err)
	}
	f, err := converter.NewFactory(services, client)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// pruned marks what has been pruned.
func pruned(o *object.Object) (*object.Object, error) {
	o = o.DeepCopy()
	o.SetMember("pruned", []byte("true"))
	return o, nil
}

func gadget(t testing.TB, version, name string) *object.Object {
	t.Helper()
	o, err := object.FromJSON(fmt.Appendf(nil, `{"apiVersion":"example.com/%s","kind":"Gadget","metadata":{"generation":7,"labels":{"a":"b"},"name":%q,"namespace":"ns","resourceVersion":"12","uid":"u-%s"},"spec":{"f":0.5,"i":9007199254740993}}`, version, name, name))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// review is a ConversionReview as a webhook sees it.
type review struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Request    struct {
		UID               string            `json:"uid"`
		DesiredAPIVersion string            `json:"desiredAPIVersion"`
		Objects           []json.RawMessage `json:"objects"`
	} `json:"request"`
}

// server is a webhook that answers as told. Its answers have CONVERTED replaced by
// the objects, with the apiVersion asked for, and UID by that of the request.
type server struct {
	*httptest.Server
	calls atomic.Int64
	last  atomic.Pointer[review]
}

func serve(t testing.TB, answer func(w http.ResponseWriter, req *http.Request, r *review)) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.calls.Add(1)
		body, err := io.ReadAll(req.Body)
		r := &review{}
		if err := errors.Join(err, json.Unmarshal(body, r)); err != nil {
			t.Errorf("%v in %s", err, body)
		}
		s.last.Store(r)
		answer(w, req, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// text answers with a text.
func text(template string) func(http.ResponseWriter, *http.Request, *review) {
	return func(w http.ResponseWriter, _ *http.Request, r *review) {
		var converted []string
		for _, raw := range r.Request.Objects {
			converted = append(converted, strings.Replace(string(raw), `"example.com/v1"`, `"`+r.Request.DesiredAPIVersion+`"`, 1))
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, strings.NewReplacer("CONVERTED", strings.Join(converted, ","), "UID", r.Request.UID, "VERSION", r.APIVersion).Replace(template))
	}
}

const good = `{"apiVersion":"VERSION","kind":"ConversionReview","response":{"uid":"UID","result":{"status":"Success"},"convertedObjects":[CONVERTED]}}`

func (s *server) bundle() string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func (s *server) converter(t testing.TB, versions string) *converter.Converter {
	t.Helper()
	c, err := factory(t, webhookutil.NewDefaultServiceResolver()).For(gadgetCRD(t, fmt.Sprintf(
		`{"strategy":"Webhook","webhook":{"clientConfig":{"url":%q,"caBundle":%q},"conversionReviewVersions":%s}}`, s.URL+"/convert", s.bundle(), versions)), pruned)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNone(t *testing.T) {
	t.Parallel()
	c, err := factory(t, webhookutil.NewDefaultServiceResolver()).For(gadgetCRD(t, `{"strategy":"None"}`), pruned)
	if err != nil {
		t.Fatal(err)
	}
	in := gadget(t, "v1", "a")
	in.SetSource([]byte("what was stored in v1"))
	before := string(in.JSON())
	already := gadget(t, "v2", "b")
	out, err := c.Convert(t.Context(), []*object.Object{in, already}, "v2")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(strings.Replace(before, "example.com/v1", "example.com/v2", 1), `"spec"`, `"pruned":true,"spec"`, 1)
	if got := string(out[0].JSON()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if out[0].Source() != nil {
		t.Errorf("it was stored as %s", out[0].Source())
	}
	if out[1] != already {
		t.Error("an object in the version asked for has been converted")
	}
	if string(in.JSON()) != before {
		t.Error("the input has changed")
	}
	for version, objs := range map[string][]*object.Object{
		"v9 request to convert CR to an invalid group/version: example.com/v9":                         {in},
		"v2 request to convert CR from an invalid group/version: example.com/v0":                       {gadget(t, "v0", "a")},
		"v2 request to convert CR list failed, list index 1 has invalid group/version: example.com/v0": {in, gadget(t, "v0", "a")},
	} {
		version, want, _ := strings.Cut(version, " ")
		if _, err := c.Convert(t.Context(), objs, version); err == nil || err.Error() != want {
			t.Errorf("%v\nis not %s", err, want)
		}
	}
	if _, err := factory(t, webhookutil.NewDefaultServiceResolver()).For(gadgetCRD(t, `{"strategy":"Magic"}`), pruned); err == nil ||
		err.Error() != `unknown conversion strategy "Magic" for CRD gadgets.example.com` {
		t.Error(err)
	}
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	for versions, used := range map[string]string{`["v1"]`: "v1", `["v1beta1","v1"]`: "v1beta1", `["v2","v1","v1beta1"]`: "v1"} {
		s := serve(t, text(good))
		c := s.converter(t, versions)
		objs := []*object.Object{gadget(t, "v1", "a"), gadget(t, "v2", "b"), gadget(t, "v1", "c")}
		out, err := c.Convert(t.Context(), objs, "v2")
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range out {
			if o.APIVersion() != "example.com/v2" || o.GetName() != objs[i].GetName() || o.GetResourceVersion() != "12" || o.GetGeneration() != 7 {
				t.Errorf("%d: %s", i, o.JSON())
			}
			if i != 1 && string(o.Member("spec")) != `{"f":0.5,"i":9007199254740993}` {
				t.Errorf("%d: %s", i, o.JSON())
			}
		}
		if out[1] != objs[1] {
			t.Error("an object in the version asked for has been sent")
		}
		r := s.last.Load()
		if s.calls.Load() != 1 || r.APIVersion != "apiextensions.k8s.io/"+used || r.Kind != "ConversionReview" || len(r.Request.Objects) != 2 || r.Request.DesiredAPIVersion != "example.com/v2" {
			t.Errorf("%d calls; %+v", s.calls.Load(), r)
		}
		if string(r.Request.Objects[0]) != string(objs[0].JSON()) {
			t.Errorf("sent %s", r.Request.Objects[0])
		}
		if out, err = c.Convert(t.Context(), objs[1:2], "v2"); err != nil || out[0] != objs[1] || s.calls.Load() != 1 {
			t.Errorf("nothing to convert: %v, %d calls", err, s.calls.Load())
		}
	}
}

// TestMetadata says what a webhook can change: labels and annotations.
func TestMetadata(t *testing.T) {
	t.Parallel()
	s := serve(t, text(`{"apiVersion":"VERSION","kind":"ConversionReview","response":{"uid":"UID","result":{"status":"Success"},"convertedObjects":[
		{ "z":1, "spec":{"b":1,"a":1.0}, "metadata":{"uid":"u-a","name":"a","namespace":"ns","generation":99,"resourceVersion":"99","labels":{"new":"l"},"annotations":{"x":"y"}}, "kind":"Gadget","apiVersion":"example.com/v2"}]}}`))
	out, err := s.converter(t, `["v1"]`).Convert(t.Context(), []*object.Object{gadget(t, "v1", "a")}, "v2")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"example.com/v2","kind":"Gadget","metadata":{"annotations":{"x":"y"},"generation":7,"labels":{"new":"l"},"name":"a","namespace":"ns","resourceVersion":"12","uid":"u-a"},"pruned":true,"spec":{"a":1,"b":1},"z":1}`
	if got := string(out[0].JSON()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// frame is an answer with one object.
func frame(object string) string { return strings.Replace(good, "CONVERTED", object, 1) }

func TestBadAnswers(t *testing.T) {
	t.Parallel()
	const gvk = "conversion webhook for example.com/v1, Kind=Gadget "
	converted := func(metadata string) string {
		return frame(`{"apiVersion":"example.com/v2","kind":"Gadget","metadata":` + metadata + `}`)
	}
	for answer, want := range map[string]string{
		strings.Replace(good, "UID", "other", 1):                                                 gvk + `failed: expected response.uid="UID", got "other"`,
		strings.Replace(good, "VERSION", "apiextensions.k8s.io/v1beta1", 1):                      gvk + `failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1beta1, Kind=ConversionReview`,
		strings.Replace(good, `"Success"`, `"Failure"`, 1):                                       gvk + `failed: response.result.status was 'Failure', not 'Success'`,
		strings.Replace(good, `"Success"`, `"Failure","message":"no and no"`, 1):                 gvk + `failed: no and no`,
		strings.Replace(good, `"result":{"status":"Success"},`, "", 1):                           gvk + `failed: response.result.status was '', not 'Success'`,
		`{"apiVersion":"VERSION","kind":"ConversionReview"}`:                                     gvk + `failed: no response provided`,
		strings.Replace(good, "CONVERTED", "", 1):                                                gvk + `returned 0 objects, expected 1`,
		strings.Replace(good, "[CONVERTED]", "null", 1):                                          gvk + `returned 0 objects, expected 1`,
		strings.Replace(good, "CONVERTED", "CONVERTED,CONVERTED", 1):                             gvk + `returned 2 objects, expected 1`,
		strings.ReplaceAll(good, "CONVERTED", `{"kind":"Gadget","apiVersion":"example.com/v1"}`): gvk + `returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v1)`,
		frame(`{"kind":"Widget","apiVersion":"example.com/v2"}`):                                 gvk + `returned invalid object at index 0: invalid kind (expected Gadget, received Widget)`,
		frame(`{"kind":"Gadget","apiVersion":"example.com/v2"}`):                                 gvk + `returned invalid object: must have the same name: a != `,
		converted(`{"name":"b","namespace":"ns","uid":"u-a"}`):                                   gvk + `returned invalid object: must have the same name: a != b`,
		converted(`{"name":"a","namespace":"other","uid":"u-a"}`):                                gvk + `returned invalid object: must have the same namespace: ns != other`,
		converted(`{"name":"a","namespace":"ns","uid":"u-b"}`):                                   gvk + `returned invalid object: must have the same UID: u-a != u-b`,
		converted(`{"name":"a","namespace":"ns","uid":"u-a","labels":7}`):                        gvk + `returned invalid metadata: invalid metadata.labels of type int64 in converted object`,
		converted(`{"name":"a","namespace":"ns","uid":"u-a","labels":{"a":{}}}`):                 gvk + `returned invalid metadata: metadata.labels[a] must be a string, but is map[string]interface {} in converted object`,
		converted(`{"name":"a","namespace":"ns","uid":"u-a","labels":{"a":"-"}}`):                gvk + `returned invalid metadata: metadata.labels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters`,
		frame(`7`):      gvk + `returned invalid object: json: cannot unmarshal number into Go value`,
		`[]`:            gvk + `failed: couldn't get version/kind; json parse error`,
		`garbage`:       gvk + `failed: couldn't get version/kind; json parse error`,
		``:              gvk + `failed: couldn't get version/kind; json parse error`,
		frame(`{"a":1`): gvk + `failed: couldn't get version/kind; json parse error`,
	} {
		s := serve(t, text(answer))
		_, err := s.converter(t, `["v1"]`).Convert(t.Context(), []*object.Object{gadget(t, "v1", "a")}, "v2")
		if want := strings.Replace(want, "UID\"", s.last.Load().Request.UID+"\"", 1); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\n%v\nis not %s", answer, err, want)
		}
	}
	two := []*object.Object{gadget(t, "v1", "a"), gadget(t, "v1", "b")}
	s := serve(t, text(frame(`{"kind":"Gadget","apiVersion":"example.com/v2","metadata":{"name":"a","namespace":"ns","uid":"u-a"}},{"kind":"Gadget","apiVersion":"example.com/v2"}`)))
	if _, err := s.converter(t, `["v1"]`).Convert(t.Context(), two, "v2"); err == nil || err.Error() != gvk+"returned invalid converted object at index 1: must have the same name: b != " {
		t.Error(err)
	}
	if _, err := s.converter(t, `["v7"]`).Convert(t.Context(), two, "v2"); err == nil || !strings.HasSuffix(err.Error(), "no supported conversion review versions") {
		t.Error(err)
	}
}

func TestRedirect(t *testing.T) {
	t.Parallel()
	elsewhere := serve(t, text(good))
	s := serve(t, func(w http.ResponseWriter, req *http.Request, _ *review) {
		http.Redirect(w, req, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	_, err := s.converter(t, `["v1"]`).Convert(t.Context(), []*object.Object{gadget(t, "v1", "a")}, "v2")
	if err == nil || !strings.Contains(err.Error(), "307") || elsewhere.calls.Load() != 0 {
		t.Errorf("%v; %d calls elsewhere", err, elsewhere.calls.Load())
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ *review) {
		http.Error(w, "overloaded", http.StatusInternalServerError)
	})
	_, err := s.converter(t, `["v1"]`).Convert(t.Context(), []*object.Object{gadget(t, "v1", "a")}, "v2")
	// It says which webhook it was. What the webhook said is for the log: it may be no
	// webhook at all.
	want := fmt.Sprintf(`conversion webhook for example.com/v1, Kind=Gadget failed: Post "%s/convert?timeout=30s": the webhook answered 500 Internal Server Error`, s.URL)
	if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "overloaded") {
		t.Error(err)
	}
	if status, ok := err.(apierrors.APIStatus); !ok || status.Status().Code != http.StatusInternalServerError || status.Status().Message != err.Error() { //nolint:errorlint // as the handlers of errors look for it
		t.Errorf("no status: %v", err)
	}
}

// Clients of upstream find client-go's sentence in the error.
func TestClientError(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ *review) {
		http.Error(w, "secret", http.StatusUnprocessableEntity)
	})
	_, err := s.converter(t, `["v1"]`).Convert(t.Context(), []*object.Object{gadget(t, "v1", "a")}, "v2")
	const want = "the webhook answered 422 Unprocessable Entity: the server rejected our request due to an error in our request: "
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ http.ResponseWriter, req *http.Request, _ *review) {
		select {
		case <-req.Context().Done():
		case <-time.After(20 * time.Second):
		}
	})
	slow, quick := s.converter(t, `["v1"]`), serve(t, text(good)).converter(t, `["v1"]`)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	done := make(chan error)
	go func() {
		_, err := slow.Convert(ctx, []*object.Object{gadget(t, "v1", "a")}, "v2")
		done <- err
	}()
	if _, err := quick.Convert(t.Context(), []*object.Object{gadget(t, "v1", "a")}, "v2"); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

func TestTooLong(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ *review) {
		block := []byte(strings.Repeat(" ", 1<<20))
		for range 20 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	_, err := s.converter(t, `["v1"]`).Convert(t.Context(), []*object.Object{gadget(t, "v1", "a")}, "v2")
	if err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Error(err)
	}
}

func TestUntrusted(t *testing.T) {
	t.Parallel()
	s, other := serve(t, text(good)), httptest.NewUnstartedServer(nil)
	defer other.Close()
	c, err := factory(t, webhookutil.NewDefaultServiceResolver()).For(gadgetCRD(t, fmt.Sprintf(
		`{"strategy":"Webhook","webhook":{"clientConfig":{"url":%q},"conversionReviewVersions":["v1"]}}`, s.URL)), pruned)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Convert(t.Context(), []*object.Object{gadget(t, "v1", "a")}, "v2"); err == nil || s.calls.Load() != 0 {
		t.Errorf("%v; %d calls", err, s.calls.Load())
	}
}

// resolver finds every service at one address.
type resolver struct{ url *url.URL }

func (r resolver) ResolveEndpoint(string, string, int32) (*url.URL, error) { return r.url, nil }

// TestService finds the service, and then does not trust it: its certificate is for another name.
func TestService(t *testing.T) {
	t.Parallel()
	s := serve(t, text(good))
	address, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := factory(t, resolver{address}).For(gadgetCRD(t, fmt.Sprintf(
		`{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"name":"converter","namespace":"ns","path":"/p","port":8443},"caBundle":%q},"conversionReviewVersions":["v1"]}}`, s.bundle())), pruned)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Convert(t.Context(), []*object.Object{gadget(t, "v1", "a")}, "v2")
	if err == nil || !strings.Contains(err.Error(), `Post "https://converter.ns.svc:8443/p?timeout=30s": tls: failed to verify certificate`) || !strings.Contains(err.Error(), "converter.ns.svc") {
		t.Error(err)
	}
}

// gadgets returns small objects.
func gadgets(t testing.TB, n int) []*object.Object {
	t.Helper()
	objs := make([]*object.Object, n)
	for i := range objs {
		objs[i] = gadget(t, "v1", fmt.Sprint("o", i))
	}
	return objs
}

// padded answers with objects that are as much longer.
func padded(bytes int) func(http.ResponseWriter, *http.Request, *review) {
	padding := `"padding":"` + strings.Repeat("x", bytes) + `",`
	return func(w http.ResponseWriter, req *http.Request, r *review) {
		for i, raw := range r.Request.Objects {
			r.Request.Objects[i] = json.RawMessage(strings.Replace(string(raw), `"spec":{`, `"spec":{`+padding, 1))
		}
		text(good)(w, req, r)
	}
}

// The answers to one list are bounded in sum, however many objects it has.
func TestTooLongInSum(t *testing.T) {
	t.Parallel()
	s := serve(t, padded(1<<20))
	_, err := s.converter(t, `["v1"]`).Convert(t.Context(), gadgets(t, 20), "v2")
	if err == nil || !strings.Contains(err.Error(), "is longer than 16") {
		t.Errorf("20 answers of 1 MiB: %v", err)
	}
	if _, err := s.converter(t, `["v1"]`).Convert(t.Context(), gadgets(t, 10), "v2"); err != nil {
		t.Errorf("10 answers of 1 MiB: %v", err)
	}
	// Each call is small, and all together are not.
	s = serve(t, padded(16<<10))
	_, err = s.converter(t, `["v1"]`).Convert(t.Context(), gadgets(t, 1500), "v2")
	if err == nil || !strings.Contains(err.Error(), "is longer than") || s.calls.Load() < 2 {
		t.Errorf("1500 answers of 16 KiB after %d calls: %v", s.calls.Load(), err)
	}
}

// A long list is converted by several calls.
func TestLongList(t *testing.T) {
	t.Parallel()
	s := serve(t, text(good))
	objs := gadgets(t, 1234)
	out, err := s.converter(t, `["v1"]`).Convert(t.Context(), objs, "v2")
	if err != nil || len(out) != len(objs) || s.calls.Load() != 3 {
		t.Fatalf("%d objects of %d after %d calls: %v", len(out), len(objs), s.calls.Load(), err)
	}
	for i, o := range out {
		if o.GetName() != objs[i].GetName() || o.APIVersion() != "example.com/v2" {
			t.Fatalf("object %d is %s", i, o.JSON())
		}
	}
}

// A webhook's words come back on one line, and not all of them.
func TestLongMessage(t *testing.T) {
	t.Parallel()
	s := serve(t, text(`{"apiVersion":"VERSION","kind":"ConversionReview","response":{"uid":"UID","result":{"status":"Failed","message":"no\n\u001b[31m`+strings.Repeat("é", 1<<20)+`"}}}`))
	_, err := s.converter(t, `["v1"]`).Convert(t.Context(), gadgets(t, 1), "v2")
	if err == nil || len(err.Error()) > 4<<10 || strings.ContainsAny(err.Error(), "\n\x1b") || !strings.Contains(err.Error(), "failed: no  [31mé") {
		t.Errorf("%.200v", err)
	}
}
