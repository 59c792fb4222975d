package endpoints

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// refusing is a connection that takes no more after some writes.
type refusing struct {
	*httptest.ResponseRecorder
	after int
}

var errRefused = errors.New("refused")

func (r *refusing) Write(p []byte) (int, error) {
	if r.after == 0 {
		return 0, errRefused
	}
	r.after--
	return r.ResponseRecorder.Write(p)
}

// A handler that writes after its request is over is stopped, and what it has written is
// not taken for the whole.
func TestWritingEndsWithTheRequest(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	write := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		w.WriteHeader(http.StatusTeapot)
		for range 2 {
			if _, err := w.Write([]byte("x")); err != nil {
				return
			}
		}
	}
	for _, test := range []struct {
		name    string
		ctx     context.Context
		handler http.HandlerFunc
		after   int
		code    int
		body    string
		aborted bool
	}{
		{"in time", t.Context(), write, 9, http.StatusAccepted, "xx", false},
		{"without a code", t.Context(), func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("y")) }, 9, http.StatusOK, "y", false},
		{"without a body", t.Context(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, 9, http.StatusNoContent, "", false},
		{"without a body, late", late, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, 9, http.StatusNoContent, "", false},
		{"late", late, write, 9, http.StatusGatewayTimeout, "request did not complete within the allotted timeout", false},
		{"canceled", canceled, write, 9, http.StatusOK, "", true},
		{"refused later", t.Context(), write, 1, http.StatusAccepted, "x", true},
		{"refused at once", t.Context(), write, 0, http.StatusAccepted, "", true},
	} {
		w := &refusing{httptest.NewRecorder(), test.after}
		w.Header().Set("Content-Encoding", "gzip")
		var aborted any
		func() {
			defer func() { aborted = recover() }()
			untilEnd(test.handler)(w, httptest.NewRequestWithContext(test.ctx, http.MethodGet, "/", nil))
		}()
		if test.aborted != (aborted == any(http.ErrAbortHandler)) || w.Code != test.code {
			t.Errorf("%s: %d %v", test.name, w.Code, aborted)
		}
		if got := w.Body.String(); got != test.body && (test.name != "late" || !strings.Contains(got, test.body)) {
			t.Errorf("%s: %s", test.name, got)
		}
		if encoded := w.Header().Get("Content-Encoding") != ""; encoded == (test.name == "late") {
			t.Errorf("%s: encoded is %t", test.name, encoded)
		}
	}
}

// A request that is over while the answer is written ends its connection.
func TestWritingEndsInBetween(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	w := &endingWriter{ResponseWriter: httptest.NewRecorder(), ctx: t.Context()}
	if n, err := w.Write([]byte("abc")); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	w.ctx = ctx
	defer func() {
		if recover() != any(http.ErrAbortHandler) {
			t.Error("goes on")
		}
	}()
	_, _ = w.Write([]byte("d"))
}

// connection is a subresource that would be connected to.
type connection struct {
	readOnly
	commands bool
	err      error
	got      *string
}

func (connection) Verbs() []string  { return []string{"get", "create"} }
func (c connection) Commands() bool { return c.commands }
func (c connection) Connect(ctx context.Context, name string, query url.Values) error {
	*c.got = request.NamespaceValue(ctx) + "/" + name + "?" + query.Encode()
	return c.err
}

// A client that gets a connection for running commands needs the right to create it, too.
func TestConnections(t *testing.T) {
	none := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "p", errors.New("no nodes"))
	const to = "n/p?command=ls"
	for _, test := range []struct {
		name, verb string
		commands   bool
		decision   authorizer.Decision
		failed     error // of the authorizer
		err        error
		code       int
		got, says  string
	}{
		{"create", "create", true, authorizer.DecisionDeny, nil, nil, 204, to, ""},
		{"get", "get", false, authorizer.DecisionDeny, nil, nil, 204, to, ""},
		{"get and run", "get", true, authorizer.DecisionAllow, errors.New("an opinion"), none, 409, to, "no nodes"},
		{"get and run, forbidden", "get", true, authorizer.DecisionNoOpinion, nil, nil, 403, "", `cannot create resource \"pods/exec\"`},
		{"get and run, unknown", "get", true, authorizer.DecisionNoOpinion, errors.New("no rules"), nil, 500, "", "no rules"},
	} {
		var got string
		authorize := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetVerb() != "create" || a.GetUser().GetName() != "alice" || a.GetSubresource() != "exec" {
				t.Errorf("%s: asked for %+v", test.name, a)
			}
			return test.decision, "", test.failed
		})
		e := &Endpoint{Scope: &handlers.RequestScope{Authorizer: authorize}, Storage: connection{commands: test.commands, err: test.err, got: &got}}
		info := &request.RequestInfo{IsResourceRequest: true, Verb: test.verb, APIVersion: "v1", Resource: "pods", Subresource: "exec", Namespace: "n", Name: "p"}
		req := httptest.NewRequest(http.MethodGet, "/?command=ls", nil)
		ctx := request.WithUser(request.WithRequestInfo(req.Context(), info), &user.DefaultInfo{Name: "alice"})
		w := httptest.NewRecorder()
		Serve(w, req.WithContext(ctx), info, e)
		if w.Code != test.code || got != test.got || !strings.Contains(w.Body.String(), test.says) {
			t.Errorf("%s: %d, connects to %q, %s", test.name, w.Code, got, w.Body)
		}
	}
	if (&Endpoint{Scope: &handlers.RequestScope{}, Storage: connection{}}).Handler("delete") != nil {
		t.Error("a verb is served that does not connect")
	}
}

func TestWithinNamesWhatIsRead(t *testing.T) {
	ctx := Within(t.Context(), schema.GroupResource{Group: "g", Resource: "r"}, "n")
	info, ok := request.RequestInfoFrom(ctx)
	if !ok || info.APIGroup != "g" || info.Resource != "r" || request.NamespaceValue(ctx) != "n" {
		t.Errorf("%+v", info)
	}
}
