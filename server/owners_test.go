package server_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/espalier-dev/espalier/server"
)

// uidIn finds the UID of an object.
func uidIn(t *testing.T, text string) string {
	t.Helper()
	m := regexp.MustCompile(`"uid":"([^"]+)"`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no UID in %s", text)
	}
	return m[1]
}

// TestOwnerReferencesNeedRights has custom resources, CRDs and built-in objects as
// owners and as what is owned.
func TestOwnerReferencesNeedRights(t *testing.T) {
	t.Parallel()
	r := start(t)
	define(t, r.dynamic(t))
	admin, editor, full := r.member(t, "system:masters"), r.member(t, "editors"), r.member(t, "full")
	edit := rbacv1.PolicyRule{Verbs: []string{"create", "get", "update", "patch"}, APIGroups: []string{"", "example.com"}, Resources: []string{"configmaps", "webs", "webs/status"}}
	r.grant(t, "editors", rbacv1.PolicyRule{Verbs: []string{"update"}, APIGroups: []string{"example.com"}, Resources: []string{"webs/finalizers"}}, edit)
	r.grant(t, "full", rbacv1.PolicyRule{Verbs: []string{"delete"}, APIGroups: []string{"", "example.com"}, Resources: []string{"configmaps", "webs"}},
		rbacv1.PolicyRule{Verbs: []string{"update"}, APIGroups: []string{"*"}, Resources: []string{"*/finalizers"}}, edit)
	const webs, maps = "/apis/example.com/v1/namespaces/default/webs", "/api/v1/namespaces/default/configmaps"
	try := func(client *http.Client, method, path, body string, code int, text string) string {
		t.Helper()
		media := "application/json"
		if method == http.MethodPatch {
			media = "application/merge-patch+json"
		}
		got, answer := send(t, client, method, r.url+path, media, body)
		if got != code || !strings.Contains(answer, text) {
			t.Errorf("%s %s %s: %d, not %d with %q: %s", method, path, body, got, code, text, answer)
		}
		return answer
	}
	object := func(version, kind, name, refs string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"ownerReferences":[%s]}}`, version, kind, name, refs)
	}
	ref := func(version, kind, name, uid, rest string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q%s}`, version, kind, name, uid, rest)
	}
	const blocking = `,"blockOwnerDeletion":true`
	web := uidIn(t, try(admin, "POST", webs, object("example.com/v1", "Web", "owner", ""), 201, ""))
	data := uidIn(t, try(admin, "POST", maps, object("v1", "ConfigMap", "owner", ""), 201, ""))
	crd := uidIn(t, try(admin, "GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/webs.example.com", "", 200, ""))

	// A creator may set owners, but may block only those that they may finalize.
	const noFinalizers = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: "
	try(editor, "POST", maps, object("v1", "ConfigMap", "a", ref("v1", "ConfigMap", "owner", data, "")), 201, "")
	try(editor, "POST", maps, object("v1", "ConfigMap", "b", ref("v1", "ConfigMap", "owner", data, blocking)), 403, noFinalizers)
	try(editor, "POST", webs, object("example.com/v1", "Web", "b", ref("v1", "ConfigMap", "owner", data, blocking)), 403, noFinalizers)
	try(editor, "POST", maps, object("v1", "ConfigMap", "c", ref("example.com/v1", "Web", "owner", web, blocking)), 201, "")
	try(editor, "POST", webs, object("example.com/v1", "Web", "c", ref("example.com/v1", "Web", "owner", web, blocking)), 201, "")
	try(editor, "POST", webs, object("example.com/v1", "Web", "d", ref("apiextensions.k8s.io/v1", "CustomResourceDefinition", "webs.example.com", crd, blocking)), 403, noFinalizers)
	try(editor, "POST", maps, object("v1", "ConfigMap", "d", ref("example.com/v9", "Web", "owner", web, blocking)), 403, "cannot find RESTMapping for APIVersion example.com/v9 Kind Web: ")
	try(full, "POST", maps, object("v1", "ConfigMap", "e", ref("v1", "ConfigMap", "owner", data, blocking)), 201, "")

	// A user who changes owners must be able to delete the object.
	const noDelete = "cannot set an ownerRef on a resource you can't delete: "
	gone := `{"metadata":{"ownerReferences":[` + ref("v1", "Secret", "gone", "00000000-0000-0000-0000-000000000000", "") + `]}}`
	for _, path := range []string{maps + "/owner", webs + "/owner"} {
		try(editor, "PATCH", path, gone, 403, noDelete)
		try(editor, "PATCH", path, `{"metadata":{"labels":{"a":"b"}}}`, 200, "")
	}
	try(editor, "PATCH", maps+"/a", `{"metadata":{"ownerReferences":null}}`, 403, noDelete)
	try(editor, "PATCH", maps+"/a", `{"data":{"a":"b"}}`, 200, "")
	try(full, "PATCH", maps+"/a", `{"metadata":{"ownerReferences":[`+ref("v1", "ConfigMap", "owner", data, blocking)+`]}}`, 200, "")
	try(full, "PATCH", webs+"/c", `{"metadata":{"ownerReferences":null}}`, 200, "")
}

// TestOwnerReferencesWithoutThePlugin is what kube-apiserver does by default.
func TestOwnerReferencesWithoutThePlugin(t *testing.T) {
	t.Parallel()
	r := start(t, func(o *server.Options) { o.Admission.DisablePlugins = []string{"OwnerReferencesPermissionEnforcement"} })
	r.grant(t, "editors", rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"configmaps"}})
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"s","uid":"1","blockOwnerDeletion":true}]}}`
	if code, text := send(t, r.member(t, "editors"), "POST", r.url+"/api/v1/namespaces/default/configmaps", "application/json", body); code != 201 {
		t.Errorf("%d %s", code, text)
	}
}
