package server_test

import (
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/espalier-dev/espalier/server"
)

// A get that begins a web socket runs a command, so that it needs the right to create.
func TestCommandsNeedTheRightToCreate(t *testing.T) {
	t.Parallel()
	r := start(t, func(o *server.Options) { o.Kinds = server.KindsAll })
	for group, verbs := range map[string][]string{"readers": {"get"}, "debuggers": {"get", "create"}} {
		r.grant(t, group, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/exec", "pods/attach", "pods/portforward", "pods/proxy"}, Verbs: verbs})
	}
	for part, want := range map[string]int{"exec": http.StatusForbidden, "attach": http.StatusForbidden, "portforward": http.StatusForbidden, "proxy": http.StatusNotFound} {
		path := r.url + "/api/v1/namespaces/default/pods/p/" + part
		if code, body := get(t, r.member(t, "readers"), path); code != want || want == http.StatusForbidden && !strings.Contains(body, `cannot create resource \"pods/`+part+`\"`) {
			t.Errorf("%s with the right to get: %d %s", part, code, body)
		}
		if code, body := get(t, r.member(t, "debuggers"), path); code != http.StatusNotFound {
			t.Errorf("%s with both rights: %d %s", part, code, body)
		}
	}
}
