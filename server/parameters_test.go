package server_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// grant gives a group rights everywhere, and waits until alice has them in it.
func (r *running) grant(t *testing.T, group string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	client := r.typed(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: group + "-"}, Rules: rules}
	role, err := client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: group}},
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	last := rules[len(rules)-1]
	review := fmt.Sprintf(`{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"verb":%q,"group":%q,"resource":%q}}}`,
		last.Verbs[0], last.APIGroups[0], last.Resources[0])
	member := r.member(t, group)
	eventually(t, func() bool {
		_, text := send(t, member, http.MethodPost, r.url+"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/json", review)
		return strings.Contains(text, `"allowed":true`)
	})
}

func (r *running) typed(t *testing.T) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(r.config(t))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come to that")
		}
	}
}

// parameterPolicy is a policy of one of the two kinds, and its binding.
type parameterPolicy struct{ kind, policies, bindings, policy, binding string }

var parameterPolicies = []parameterPolicy{{
	"ValidatingAdmissionPolicy", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
	`"validations":[{"expression":"true"}]`, `,"validationActions":["Deny"]`,
}, {
	"MutatingAdmissionPolicy", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
	`"reinvocationPolicy":"Never","mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Object{}"}}]`, "",
}}

func (p parameterPolicy) object(name, version, kind string) string {
	param := ""
	if kind != "" {
		param = fmt.Sprintf(`"paramKind":{"apiVersion":%q,"kind":%q},`, version, kind)
	}
	return fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":%q,"metadata":{"name":%q},"spec":{%s`+
		`"matchConstraints":{"resourceRules":[{"apiGroups":["none.dev"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["nothing"]}]},%s}}`, p.kind, name, param, p.policy)
}

func (p parameterPolicy) bound(name, policy, ref string) string {
	if ref != "" {
		ref = fmt.Sprintf(`,"paramRef":{%s,"parameterNotFoundAction":"Deny"}`, ref)
	}
	return fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"%sBinding","metadata":{"name":%q},"spec":{"policyName":%q%s%s}}`, p.kind, name, policy, ref, p.binding)
}

// TestParametersOfPoliciesAreAuthorized writes policies and bindings in all ways as a
// user who may read ConfigMaps but not Secrets.
func TestParametersOfPoliciesAreAuthorized(t *testing.T) {
	t.Parallel()
	r := start(t)
	define(t, r.dynamic(t))
	admin, author := r.member(t, "system:masters"), r.member(t, "authors")
	r.grant(t, "authors",
		rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"*"}},
		rbacv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}},
		rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"example.com"}, Resources: []string{"webs"}})
	const base = "/apis/admissionregistration.k8s.io/v1/"
	for _, p := range parameterPolicies {
		try := func(client *http.Client, method, path, media, body string, code int, text string) {
			t.Helper()
			if media == "" {
				media = "application/json"
			}
			if got, answer := send(t, client, method, r.url+base+path, media, body); got != code || !strings.Contains(answer, text) {
				t.Errorf("%s %s: %d, not %d with %q: %s", method, path, got, code, text, answer)
			}
		}
		const merge, jsonPatch, apply = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
		at := func(name string) string { return p.policies + "/" + name }
		bindingAt := func(name string) string { return p.bindings + "/" + name }
		refusal := `must have \"get\" permission on all objects of the referenced paramKind (kind=Secret, apiVersion=v1)`
		try(author, "POST", p.policies, "", p.object("a", "v1", "Secret"), 422, `spec.paramKind: Forbidden: user \u0026{alice  [authors system:authenticated]`)
		try(author, "POST", p.policies, "", p.object("a", "v1", "Secret"), 422, refusal)
		try(author, "PATCH", at("a")+"?fieldManager=m", apply, p.object("a", "v1", "Secret"), 422, refusal)
		try(author, "POST", p.policies, "", p.object("a", "v1", "ConfigMap"), 201, "")
		try(author, "POST", p.policies, "", p.object("bare", "", ""), 201, "")
		try(author, "PATCH", at("bare"), merge, `{"spec":{"paramKind":{"apiVersion":"v1","kind":"Secret"}}}`, 422, refusal)
		try(author, "PATCH", at("a"), jsonPatch, `[{"op":"replace","path":"/spec/paramKind/kind","value":"Secret"}]`, 422, refusal)
		try(author, "PATCH", at("a")+"?fieldManager=m&force=true", apply, p.object("a", "v1", "Secret"), 422, refusal)
		try(author, "PUT", at("a"), "", strings.Replace(p.object("a", "v1", "Secret"), `"metadata":{`, `"metadata":{"resourceVersion":"1",`, 1), 409, "")
		try(admin, "PATCH", at("a"), merge, `{"spec":{"paramKind":{"kind":"Secret"}}}`, 200, "")
		try(author, "PATCH", at("a"), merge, `{"metadata":{"labels":{"a":"b"}}}`, 200, "") // as in Kubernetes: it was authorized when it was set
		// Kinds that are not served: only a right for the whole group will do.
		unknown := `must have \"get\" permission on all objects of the referenced paramKind (kind=Later`
		try(author, "POST", p.policies, "", p.object("b", "v1", "Later"), 422, unknown)
		try(author, "POST", p.policies, "", p.object("b", "example.com/v1", "Later"), 422, unknown)
		try(author, "POST", p.policies, "", p.object("b", "example.com/v0", "Web"), 422, "paramKind (kind=Web, apiVersion=example.com/v0)")
		try(author, "POST", p.policies, "", p.object("b", "example.com/v1", "Web"), 201, "")

		ref := `user \u0026{alice  [authors system:authenticated]`
		named, selected := `"name":"s","namespace":"default"`, `"selector":{},"namespace":"default"`
		try(author, "POST", p.bindings, "", p.bound("x", "a", named), 422, ref)
		try(author, "POST", p.bindings, "", p.bound("x", "a", named), 422, `does not have \"get\" permission on the object referenced by paramRef`)
		try(author, "POST", p.bindings, "", p.bound("x", "a", selected), 422, `does not have \"list\" permission on the object referenced by paramRef`)
		try(author, "PATCH", bindingAt("x")+"?fieldManager=m", apply, p.bound("x", "a", named), 422, "spec.paramRef: Forbidden")
		try(author, "POST", p.bindings, "", p.bound("x", "absent", named), 422, `unable to get policy absent to determine minimum required permissions`)
		try(author, "POST", p.bindings, "", p.bound("x", "b", named), 201, "")
		try(author, "POST", p.bindings, "", p.bound("z", "b", selected), 422, `\"list\" permission`)
		try(author, "PATCH", bindingAt("x"), merge, `{"spec":{"paramRef":{"name":null,"selector":{}}}}`, 422, `\"list\" permission`)
		try(author, "POST", p.bindings, "", p.bound("y", "bare", ""), 201, "")
		try(author, "PATCH", bindingAt("y"), merge, `{"spec":{"paramRef":{"name":"s","namespace":"default","parameterNotFoundAction":"Deny"}}}`, 422, "spec.paramRef: Forbidden")
		try(admin, "POST", p.policies, "", p.object("c", "later.dev/v1", "Later"), 201, "")
		try(author, "POST", p.bindings, "", p.bound("z", "c", named), 422, `unable to resolve paramKind \u0026{later.dev/v1 Later} to determine minimum required permissions`)
		try(admin, "POST", p.bindings, "", p.bound("z", "c", named), 201, "")
	}
}

// send makes a request with a body.
func send(t *testing.T, client *http.Client, method, url, media, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", media)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
