package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
)

// A plan shows names and values of objects: it needs a right of its own, which neither the right to
// read CRDs nor that to change them implies.
func TestPlanNeedsARight(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "audit.log")
	r := start(t, func(o *server.Options) {
		o.RequirePlan = true
		o.Audit.LogOptions.Path = log
		o.Audit.PolicyFile = certtest.File(t, "policy.yaml", []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Request\n  resources: [{group: apiextensions.k8s.io}]\n"))
	})
	client := r.dynamic(t)
	define(t, client)
	if _, err := client.Resource(webs).Namespace("default").Create(t.Context(), web("shop", "shop.example.com"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	group := []string{"apiextensions.k8s.io"}
	r.grant(t, "writers", rbacv1.PolicyRule{APIGroups: group, Resources: []string{"customresourcedefinitions", "customresourcedefinitions/status"}, Verbs: []string{"*"}})
	planning := rbacv1.PolicyRule{APIGroups: group, Resources: []string{"customresourcedefinitions/plan"}, Verbs: []string{"create"}}
	r.grant(t, "strangers", planning)
	r.grant(t, "planners", planning, rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"webs"}, Verbs: []string{"list"}})

	now := webDefinition()
	versions := now.Object["spec"].(map[string]any)["versions"].([]any)
	versions[0].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}
	body, err := now.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	url := r.url + "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/webs.example.com"
	plan := func(group string) (int, string) {
		return send(t, r.member(t, group), http.MethodPost, url+"/plan", "application/json", string(body))
	}
	if code, text := plan("writers"); code != http.StatusForbidden || strings.Contains(text, "shop") {
		t.Errorf("%d %s", code, text)
	}
	if code, text := plan("strangers"); code != http.StatusForbidden || !strings.Contains(text, "needs the right to list webs.example.com") {
		t.Errorf("%d %s", code, text)
	}
	if code, text := plan("planners"); code != http.StatusOK || !strings.Contains(text, `"examples":["default/shop"]`) {
		t.Errorf("%d %s", code, text)
	}
	if code, text := plan("system:masters"); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
	if code, text := get(t, r.member(t, "planners"), url); code != http.StatusForbidden {
		t.Errorf("%d %s", code, text)
	}
	if _, text := get(t, r.member(t, "system:masters"), r.url+"/apis/apiextensions.k8s.io/v1"); !strings.Contains(text, `"name":"customresourcedefinitions/plan"`) {
		t.Error(text)
	}
	if code, text := send(t, r.member(t, "writers"), http.MethodPatch, url, "application/merge-patch+json", string(body)); code != http.StatusConflict || !strings.Contains(text, "PlanRequired") {
		t.Errorf("%d %s", code, text)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if strings.Contains(line, `"subresource":"plan"`) && strings.Contains(line, `"code":200`) && strings.Contains(line, `"requestObject":{`) && strings.Contains(line, `"verb":"create"`) {
			return
		}
	}
	t.Errorf("the audit log has no plan: %s", text)
}
