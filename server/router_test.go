package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/endpoints/requestinfo"
)

// named answers with its name and the query it gets.
func named(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = w.Write([]byte(strings.TrimSuffix(name+" "+req.URL.RawQuery, " ")))
	})
}

// coreOnly has the built-in resources of the group without a name.
type coreOnly struct{}

func (coreOnly) Serves(group, _ string) bool { return group == "" }

func (coreOnly) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	named("builtin").ServeHTTP(w, req)
}

func ask(t *testing.T, r *router, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	info, err := requestinfo.Resolver{}.NewRequestInfo(req)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r.builtInFirst(http.HandlerFunc(r.group)).ServeHTTP(w, req.WithContext(request.WithRequestInfo(req.Context(), info)))
	return w
}

func TestRouter(t *testing.T) {
	r := &router{
		validation: "Strict",
		builtin:    coreOnly{}, discovery: named("discovery"), definitions: named("definitions"), custom: named("custom"),
	}
	const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	for _, test := range []struct{ method, target, want string }{
		{"GET", "/apis/", "discovery"},
		{"GET", "/api/v1", "discovery"},
		{"GET", "/api/v1/namespaces", "builtin"},
		{"POST", "/api/v1/namespaces/default/configmaps", "builtin fieldValidation=Strict"},
		{"GET", "/apis/example.com", "discovery"},
		{"GET", "/apis/example.com/v1", "discovery"},
		{"GET", "/apis/apiextensions.k8s.io/v1", "discovery"},
		{"GET", "/apis/example.com/v1/webs", "custom"},
		{"POST", "/apis/example.com/v1/namespaces/default/webs", "custom"}, // which has its own way
		{"GET", crds, "definitions"},
		{"POST", crds, "definitions fieldValidation=Strict"},
		{"PUT", crds + "/x?dryRun=All", "definitions dryRun=All&fieldValidation=Strict"},
		{"PATCH", crds + "/x?fieldValidation=Ignore", "definitions fieldValidation=Ignore"},
		{"DELETE", crds + "/x", "definitions"},
	} {
		if got := ask(t, r, test.method, test.target).Body.String(); got != test.want {
			t.Errorf("%s %s: %s", test.method, test.target, got)
		}
	}
}

func TestBeforeDefinitionsAreRead(t *testing.T) {
	k := &knowledge{index: catalog.New(nil)}
	r := &router{
		builtin: coreOnly{}, discovery: k.discoverable(named("discovery")),
		definitions: k.read(named("definitions")), custom: k.known(named("custom")),
	}
	if w := ask(t, r, "GET", "/api/v1/namespaces"); w.Code != http.StatusOK {
		t.Errorf("built-in resources wait: %d", w.Code)
	}
	for _, target := range []string{"/apis/example.com/v1/webs", "/apis/example.com", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"} {
		w := ask(t, r, "GET", target)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), errUnread.Error()) {
			t.Errorf("%s: %d %v %s", target, w.Code, w.Header(), w.Body)
		}
	}
}
