package identity

import (
	"net/http"
	"net/url"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func TestOnlyMembersAreLetIn(t *testing.T) {
	policy := Only("masters")
	member := &user.DefaultInfo{Name: "alice", Groups: []string{"others", "masters"}}
	other := &user.DefaultInfo{Name: "masters", Groups: []string{"others", user.AllAuthenticated}}
	for _, test := range []struct {
		name string
		a    authorizer.AttributesRecord
		in   bool
	}{
		{"member, resource", authorizer.AttributesRecord{User: member, Verb: "delete", ResourceRequest: true, Path: "/apis/x"}, true},
		{"member, path", authorizer.AttributesRecord{User: member, Verb: "get", Path: "/metrics"}, true},
		{"other, resource", authorizer.AttributesRecord{User: other, Verb: "get", ResourceRequest: true}, false},
		{"other, metrics", authorizer.AttributesRecord{User: other, Verb: "get", Path: "/metrics"}, false},
		{"other, impersonation", authorizer.AttributesRecord{User: other, Verb: "impersonate", ResourceRequest: true}, false},
		{"other, health", authorizer.AttributesRecord{User: other, Verb: "get", Path: "/livez"}, true},
		{"other, writing health", authorizer.AttributesRecord{User: other, Verb: "post", Path: "/livez"}, false},
		{"other, below health", authorizer.AttributesRecord{User: other, Verb: "get", Path: "/readyz/etcd"}, false},
		{"other, a resource with a path of health", authorizer.AttributesRecord{User: other, Verb: "get", Path: "/livez", ResourceRequest: true}, false},
		{"nobody", authorizer.AttributesRecord{Verb: "get", ResourceRequest: true}, false},
	} {
		decision, reason, err := policy.Authorize(t.Context(), test.a)
		if err != nil {
			t.Error(test.name, err)
		}
		if in := decision == authorizer.DecisionAllow; in != test.in {
			t.Errorf("%s: let in is %v", test.name, in)
		}
		if !test.in && reason != `only members of the group "masters" are let in` {
			t.Errorf("%s: reason %q", test.name, reason)
		}
	}
}

func TestAnonymousForHealthAlone(t *testing.T) {
	for path, in := range map[string]bool{
		"/livez": true, "/readyz": true, "/healthz": true,
		"/": false, "/livez/": false, "/readyz/etcd": false, "/metrics": false, "/version": false, "/apis": false, "/openapi/v2": false,
	} {
		_, ok, err := Anonymous().AuthenticateRequest((&http.Request{URL: &url.URL{Path: path}}).WithContext(t.Context()))
		if ok != in || err != nil {
			t.Errorf("%s: %v %v", path, ok, err)
		}
	}
}
