package endpoints

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-base/metrics/legacyregistry"
)

// oracle answers with the question.
type oracle struct {
	readOnly
	answer any
	err    error
	got    *string
}

func (oracle) New() runtime.Object { return &authenticationv1.TokenReview{} }

func (o oracle) Answer(ctx context.Context, name string, body runtime.Object, query url.Values) (any, error) {
	*o.got = request.NamespaceValue(ctx) + "/" + name + "?" + query.Encode() + " " + body.(*authenticationv1.TokenReview).Spec.Token
	return o.answer, o.err
}

// heard keeps warnings.
type heard []string

func (h *heard) AddWarning(_, text string) { *h = append(*h, text) }

// kept keeps audit events.
type kept []*auditapi.Event

func (k *kept) ProcessEvents(events ...*auditapi.Event) bool {
	*k = append(*k, events...)
	return true
}

// A subresource that answers questions reads the body as other creations do: it warns of unknown
// fields, and has the question in the audit log.
func TestAnswers(t *testing.T) {
	version := authenticationv1.SchemeGroupVersion
	const question = `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","spec":{"token":"why"}}`
	for _, test := range []struct {
		name, kind, body string
		limit            int64
		read             error // of the body
		answer           any
		err              error
		code             int
		got, says, warns string
	}{
		{name: "question", body: question, answer: map[string]int{"a": 42}, code: 200, got: "n/p?q=1 why", says: `{"a":42}`},
		{name: "YAML", kind: "application/yaml", body: "spec: {token: why}", answer: 42, code: 200, got: "n/p?q=1 why", says: "42"},
		{name: "without a kind", body: `{"spec":{"token":"why"}}`, answer: 42, code: 200, got: "n/p?q=1 why", says: "42"},
		{name: "unknown field", body: `{"spec":{"token":"why","x":1}}`, answer: 42, code: 200, got: "n/p?q=1 why", says: "42", warns: `unknown field "spec.x"`},
		{name: "no answer", body: question, err: apierrors.NewConflict(authenticationv1.Resource("tokenreviews"), "p", errors.New("busy")), code: 409, got: "n/p?q=1 why", says: "busy"},
		{name: "answer without JSON", body: question, answer: func() {}, code: 500, got: "n/p?q=1 why", says: "unsupported type"},
		{name: "as long as is allowed", body: question, limit: int64(len(question)), answer: 42, code: 200, got: "n/p?q=1 why", says: "42"},
		{name: "too long", body: question, limit: int64(len(question)) - 1, code: 413, says: "limit is 8"},
		{name: "too long by default", body: question + strings.Repeat(" ", DefaultMaxRequestBodyBytes), code: 413, says: "limit is 3145728"},
		{name: "long", body: question + strings.Repeat(" ", DefaultMaxRequestBodyBytes-len(question)), answer: 42, code: 200, got: "n/p?q=1 why", says: "42"},
		{name: "broken off", body: question, read: io.ErrUnexpectedEOF, code: 400, says: "failed to read the body of the request: unexpected EOF"},
		{name: "another media type", kind: "text/plain", body: question, code: 415, says: "the body of the request was in an unknown format"},
		{name: "malformed", body: `{"spec":`, code: 400, says: "unexpected end of JSON input"},
		{name: "another version", body: `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1beta1","spec":{}}`, code: 400,
			says: "the API version in the data (authentication.k8s.io/v1beta1) does not match the expected API version (authentication.k8s.io/v1)"},
	} {
		var got string
		e := &Endpoint{
			Scope: &handlers.RequestScope{
				Serializer: codecs(), Kind: version.WithKind("TokenReview"), Resource: version.WithResource("tokenreviews"), HubGroupVersion: version,
				MetaGroupVersion: version, MaxRequestBodyBytes: test.limit,
			},
			Storage: oracle{answer: test.answer, err: test.err, got: &got},
		}
		info := &request.RequestInfo{IsResourceRequest: true, Verb: "create", APIGroup: version.Group, APIVersion: version.Version, Resource: "tokenreviews", Subresource: "why", Namespace: "n", Name: "p"}
		var body io.Reader = strings.NewReader(test.body)
		if test.read != nil {
			body = io.MultiReader(body, iotest.ErrReader(test.read))
		}
		warnings, events := heard{}, kept{}
		ctx := audit.WithAuditContext(warning.WithWarningRecorder(request.WithRequestInfo(t.Context(), info), &warnings))
		if err := audit.AuditContextFrom(ctx).Init(audit.RequestAuditConfig{Level: auditapi.LevelRequestResponse}, &events); err != nil {
			t.Fatal(err)
		}
		req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/?q=1", body)
		req.Header.Set("Content-Type", test.kind)
		w := httptest.NewRecorder()
		Serve(w, req, info, e)
		if w.Code != test.code || got != test.got || !strings.Contains(w.Body.String(), test.says) || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d, asked %q, %v %s", test.name, w.Code, got, w.Header(), w.Body)
		}
		if strings.Join(warnings, "|") != test.warns {
			t.Errorf("%s: warns of %q", test.name, warnings)
		}
		audit.AuditContextFrom(ctx).ProcessEventStage(ctx, auditapi.StageResponseComplete)
		if object := events[0].RequestObject; (object != nil) != (got != "") || object != nil && !strings.Contains(string(object.Raw), `"token":"why"`) {
			t.Errorf("%s: audited is %v", test.name, object)
		}
	}
}

// codecs are those of Kubernetes' types. They read JSON and YAML strictly.
func codecs() runtime.NegotiatedSerializer {
	return serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).WithoutConversion()
}

// What is audited as a whole is not written row by row.
func TestRowsAreAudited(t *testing.T) {
	for level, wanted := range map[auditapi.Level]bool{auditapi.LevelRequestResponse: false, auditapi.LevelRequest: true, auditapi.LevelNone: true} {
		ctx := audit.WithAuditContext(t.Context())
		if err := audit.AuditContextFrom(ctx).Init(audit.RequestAuditConfig{Level: level}, nil); err != nil {
			t.Fatal(err)
		}
		req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		req.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		if got := (&Endpoint{Scope: scopeOfAll()}).rowsFor(shelf{}, req) != nil; got != wanted {
			t.Errorf("%s: row by row is %t", level, got)
		}
	}
}

// Requests are counted by their verb, resource and scope.
func TestRequestsAreCounted(t *testing.T) {
	metrics.Register()
	info := &request.RequestInfo{IsResourceRequest: true, Verb: "create", APIGroup: "counted.example.com", APIVersion: "v7", Resource: "tokenreviews", Subresource: "token", Namespace: "n", Name: "p"}
	var got string
	e := &Endpoint{Scope: &handlers.RequestScope{Serializer: codecs()}, Storage: oracle{got: &got}}
	Serve(httptest.NewRecorder(), httptest.NewRequestWithContext(request.WithRequestInfo(t.Context(), info), http.MethodPost, "/", nil), info, e)
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "apiserver_request_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["group"] != info.APIGroup {
				continue
			}
			for name, want := range map[string]string{"verb": "POST", "version": "v7", "resource": "tokenreviews", "subresource": "token", "scope": "resource", "component": "apiserver"} {
				if labels[name] != want {
					t.Errorf("%s is %q, want %q", name, labels[name], want)
				}
			}
			return
		}
	}
	t.Error("the request is not counted")
}
