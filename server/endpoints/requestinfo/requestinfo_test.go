package requestinfo

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestResolver(t *testing.T) {
	for _, test := range []struct{ method, target, want string }{
		{"GET", "/api/v1/namespaces/a/configmaps/b", "get /v1 configmaps a/b"},
		{"GET", "/api/v1/namespaces/a/configmaps/b/", "get /v1 configmaps a/b"},
		{"GET", "/apis/g/v1/namespaces/a/foos/b/status", "get g/v1 foos/status a/b"},
		{"GET", "/apis/g/v1/foos?watch=1&fieldSelector=metadata.name%3Db", "watch g/v1 foos /b"},
		{"GET", "/apis/g/v1/watch/foos", "watch g/v1 foos /"},
		{"GET", "/apis/g/v1/namespaces/%2e%2e/foos", "list g/v1 foos ../"},
		{"GET", "/apis/cert-manager.io/v1/namespaces/a/challenges.acme/b", "get cert-manager.io/v1 challenges.acme a/b"},
		{"GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aadmin", "get rbac.authorization.k8s.io/v1 clusterroles /system:admin"},
		{"DELETE", "/apis/g/v1/foos", "deletecollection g/v1 foos /"},
		{"OPTIONS", "/apis/g/v1/foos", " g/v1 foos /"},

		// What could be read in two ways is a path, and not a resource's.
		{"GET", "/apis/g/v1//foos", "get path /apis/g/v1//foos"},
		{"GET", "/apis/g/v1/namespaces//foos/b", "get path /apis/g/v1/namespaces//foos/b"},
		{"GET", "//apis/g/v1/foos", "get path //apis/g/v1/foos"},
		{"GET", "/apis/g/v1/foos//", "get path /apis/g/v1/foos//"},
		{"GET", "/apis/g/v1/foos/b%2Fstatus", "get path /apis/g/v1/foos/b/status"},
		{"GET", "/apis/g/v1/foos%2fb", "get path /apis/g/v1/foos/b"},
		{"GET", "/apis/g/v1/foos/b/status/x", "get path /apis/g/v1/foos/b/status/x"},
		{"GET", "/api/v1/namespaces/a/status/x", "get path /api/v1/namespaces/a/status/x"},
		{"GET", "/apis/g/v1/watch", "get path /apis/g/v1/watch"},
		{"GET", "/apis/g/v1/proxy/foos/b", "get path /apis/g/v1/proxy/foos/b"},

		// What is below proxy belongs to what is behind it.
		{"GET", "/api/v1/namespaces/a/services/b/proxy/x/y", "get /v1 services/proxy a/b"},
		{"GET", "/api/v1/namespaces/a/services/b/proxy", "get /v1 services/proxy a/b"},

		// Documents have one name. Rules for what is below a root are about its slash.
		{"GET", "/apis/", "get path /apis/"},
		{"PUT", "/openapi/", "put path /openapi/"},
		{"GET", "/apis/g/v1/", "get path /apis/g/v1"},
		{"GET", "/openapi/v3/", "get path /openapi/v3"},
		{"GET", "/version/", "get path /version/"},
		{"PROXY", "/apis/g/v1", "proxy path /apis/g/v1"},
		{"GET", "/", "get path /"},
	} {
		info, err := Resolver{}.NewRequestInfo(httptest.NewRequest(test.method, test.target, nil))
		if err != nil {
			t.Errorf("%s %s: %v", test.method, test.target, err)
			continue
		}
		got := info.Verb + " path " + info.Path
		if info.IsResourceRequest {
			if path, _, _ := strings.Cut(test.target, "?"); info.Path != path && !strings.Contains(path, "%") {
				t.Errorf("%s: the audit log and webhooks get the path %s", test.target, info.Path)
			}
			got = fmt.Sprintf("%s %s/%s %s %s/%s", info.Verb, info.APIGroup, info.APIVersion,
				strings.TrimSuffix(info.Resource+"/"+info.Subresource, "/"), info.Namespace, info.Name)
		}
		if got != test.want {
			t.Errorf("%s %s: %s, want %s", test.method, test.target, got, test.want)
		}
	}
}

func TestCheck(t *testing.T) {
	const foos = "/apis/g/v1/namespaces/a/foos"
	for _, test := range []struct{ method, target, want string }{
		{"GET", foos, ""},
		{"POST", foos, ""},
		{"POST", foos + "/b/token", ""},
		{"POST", foos + "/b", `create is not supported on resources of kind "foos.g"`},
		{"PUT", foos, `update is not supported on resources of kind "foos.g"`},
		{"PATCH", foos, `patch is not supported on resources of kind "foos.g"`},
		{"DELETE", foos, ""},
		{"DELETE", foos + "/b", ""},
		{"PUT", foos + "/b", ""},
		{"PATCH", foos + "/b", ""},
		{"GET", "/apis/g/v1/watch/foos", ""},
		{"POST", "/apis/g/v1/watch/foos", `watch is not supported on resources of kind "foos.g"`},
		{"HEAD", "/apis/g/v1/watch/foos", ""},
		{"GET", "/apis/g/v1/namespaces/%2e%2e/foos", `Namespace parameter invalid: "..": may not be '..'`},
		{"GET", "/apis/g/v1/namespaces/%2e/foos/b", `Namespace parameter invalid: ".": may not be '.'`},
		{"GET", "/apis/g/v1/namespaces/a%25b/foos/b", `Namespace parameter invalid: "a%b": may not contain '%'`},
		{"GET", "/apis/g/v1/watch/namespaces/a/foos/..", `Name parameter invalid: "..": may not be '..'`},
	} {
		info, err := Resolver{}.NewRequestInfo(httptest.NewRequest(test.method, test.target, nil))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := Check(info, test.method); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s %s: %q, want %q", test.method, test.target, got, test.want)
		}
	}
}

func TestInScope(t *testing.T) {
	for _, test := range []struct {
		method, target      string
		namespaced, cluster bool
	}{
		{http.MethodGet, "/apis/g/v1/namespaces/a/foos/b", true, false},
		{http.MethodGet, "/apis/g/v1/foos/b", false, true},
		{http.MethodGet, "/apis/g/v1/foos", true, true},
		{http.MethodGet, "/apis/g/v1/watch/foos", true, true},
		{http.MethodPost, "/apis/g/v1/foos", false, true},
		{http.MethodDelete, "/apis/g/v1/foos", false, true},
	} {
		info, err := Resolver{}.NewRequestInfo(httptest.NewRequest(test.method, test.target, nil))
		if err != nil {
			t.Fatal(err)
		}
		if InScope(info, true) != test.namespaced || InScope(info, false) != test.cluster {
			t.Errorf("%s %s: namespaced %t, cluster-scoped %t", test.method, test.target, InScope(info, true), InScope(info, false))
		}
	}
}

func TestSegments(t *testing.T) {
	for path, want := range map[string]int{"/": 0, "": 0, "/apis": 1, "/apis/": 1, "/apis//": 0, "//apis": 0, "/apis//v1": 0, "/apis/g/v1": 3} {
		if got := Segments(path); len(got) != want {
			t.Errorf("%q: %q", path, got)
		}
	}
}
