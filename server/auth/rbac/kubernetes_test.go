package rbac_test

import (
	"maps"
	"os"
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server/auth/rbac"
)

// allVersions returns the resource versions of roles and bindings of all kinds.
func (e *env) allVersions() map[string]string {
	e.t.Helper()
	versions := e.versions()
	roles, err := e.admin.RbacV1().Roles("").List(e.ctx, metav1.ListOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	bindings, err := e.admin.RbacV1().RoleBindings("").List(e.ctx, metav1.ListOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	for _, r := range roles.Items {
		versions["role "+r.Namespace+"/"+r.Name] = r.ResourceVersion
	}
	for _, b := range bindings.Items {
		versions["binding "+b.Namespace+"/"+b.Name] = b.ResourceVersion
	}
	return versions
}

// A new server has what the file has and nothing else; the second start changes nothing.
func TestKubernetesDefaults(t *testing.T) {
	e := start(t)
	before := e.allVersions()
	if err := rbac.EnsureKubernetesDefaults(e.ctx, e.admin); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("kubernetes.json")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	document := regexp.MustCompile(`(?m)^\{"apiVersion":"[^"]*","kind":"\w*?(Role|RoleBinding)","metadata":\{"name":"([^"]*)"(?:,"namespace":"([^"]*)")?`)
	for _, m := range document.FindAllStringSubmatch(string(text), -1) {
		kind, name := map[string]string{"Role": "role ", "RoleBinding": "binding "}[m[1]], m[2]
		if m[3] != "" {
			name = m[3] + "/" + name
		}
		want[kind+name] = true
	}
	if len(want) != 141 {
		t.Errorf("the file has %d objects; kube-apiserver v1.37.1 has 141", len(want))
	}
	first := e.allVersions()
	for name := range want {
		if first[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	for name := range first {
		if !want[name] && before[name] == "" {
			t.Errorf("%s is not in the file", name)
		}
	}
	if err := rbac.EnsureKubernetesDefaults(e.ctx, e.admin); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(first, e.allVersions()) {
		t.Error("the second start has written something")
	}
	node, err := e.admin.RbacV1().ClusterRoles().Get(e.ctx, "system:node", metav1.GetOptions{})
	if err != nil || len(node.Rules) < 10 || node.Labels["kubernetes.io/bootstrapping"] != "rbac-defaults" {
		t.Errorf("system:node: %v (%v)", node, err)
	}
}
