package authentication

import (
	"net/http"
	"net/url"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func TestHealthIsForEverybody(t *testing.T) {
	somebody := &user.DefaultInfo{Name: "alice", Groups: []string{user.AllAuthenticated}}
	for _, test := range []struct {
		name string
		a    authorizer.AttributesRecord
		in   bool
	}{
		{"health", authorizer.AttributesRecord{User: somebody, Verb: "get", Path: "/livez"}, true},
		{"the head of health", authorizer.AttributesRecord{User: somebody, Verb: "head", Path: "/readyz"}, true},
		{"writing health", authorizer.AttributesRecord{User: somebody, Verb: "post", Path: "/livez"}, false},
		{"below health", authorizer.AttributesRecord{User: somebody, Verb: "get", Path: "/readyz/etcd"}, false},
		{"a resource with a path of health", authorizer.AttributesRecord{User: somebody, Verb: "get", Path: "/livez", ResourceRequest: true}, false},
		{"metrics", authorizer.AttributesRecord{User: somebody, Verb: "get", Path: "/metrics"}, false},
		{"nobody", authorizer.AttributesRecord{Verb: "get", ResourceRequest: true}, false},
	} {
		decision, _, err := Health().Authorize(t.Context(), test.a)
		if err != nil || decision != authorizer.DecisionAllow && decision != authorizer.DecisionNoOpinion {
			t.Error(test.name, decision, err)
		}
		if in := decision == authorizer.DecisionAllow; in != test.in {
			t.Errorf("%s: let in is %v", test.name, in)
		}
	}
}

func TestAnonymousForHealthAlone(t *testing.T) {
	for path, in := range map[string]bool{
		"/livez": true, "/readyz": true, "/healthz": true,
		"/": false, "/livez/": false, "/readyz/etcd": false, "/metrics": false, "/version": false, "/apis": false, "/openapi/v2": false,
	} {
		_, ok, err := anonymousForHealth().AuthenticateRequest((&http.Request{URL: &url.URL{Path: path}}).WithContext(t.Context()))
		if ok != in || err != nil {
			t.Errorf("%s: %v %v", path, ok, err)
		}
	}
}
