package rbac_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/server/auth/rbac"
)

// versions returns the resource versions of all cluster roles and bindings.
func (e *env) versions() map[string]string {
	e.t.Helper()
	roles, err := e.admin.RbacV1().ClusterRoles().List(e.ctx, metav1.ListOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	bindings, err := e.admin.RbacV1().ClusterRoleBindings().List(e.ctx, metav1.ListOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	versions := map[string]string{}
	for _, r := range roles.Items {
		versions["role "+r.Name] = r.ResourceVersion
	}
	for _, b := range bindings.Items {
		versions["binding "+b.Name] = b.ResourceVersion
	}
	return versions
}

func TestDefaults(t *testing.T) {
	e := start(t)
	ensureBySeveral(e)
	first := e.versions()
	for _, name := range []string{
		"role admin", "role edit", "role view", "role system:aggregate-to-view", "role cluster-admin", "role system:discovery",
		"role system:basic-user", "binding cluster-admin", "binding system:public-info-viewer", "binding system:service-account-issuer-discovery",
	} {
		if first[name] == "" {
			t.Errorf("%s is not there", name)
		}
	}
	if err := rbac.EnsureDefaults(e.ctx, e.admin); err != nil {
		t.Fatal(err)
	}
	for name, version := range e.versions() {
		if first[name] != version {
			t.Errorf("%s was written again without need", name)
		}
	}
	role, err := e.admin.RbacV1().ClusterRoles().Get(e.ctx, "view", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if role.Labels["kubernetes.io/bootstrapping"] != "rbac-defaults" || role.Annotations[rbacv1.AutoUpdateAnnotationKey] != "true" ||
		role.Labels["rbac.authorization.k8s.io/aggregate-to-edit"] != "true" {
		t.Errorf("view: %v, %v", role.Labels, role.Annotations)
	}
}

// ensureBySeveral is what replicas do that start at the same time.
func ensureBySeveral(e *env) {
	e.t.Helper()
	errs := make(chan error)
	for range 4 {
		go func() { errs <- rbac.EnsureDefaults(e.ctx, e.admin) }()
	}
	for range 4 {
		if err := <-errs; err != nil {
			e.t.Error(err)
		}
	}
}

func TestDefaultsAreMendedAndAdditionsKept(t *testing.T) {
	e := start(t)
	ensureBySeveral(e)
	roles, bindings := e.admin.RbacV1().ClusterRoles(), e.admin.RbacV1().ClusterRoleBindings()
	extra := rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/extra"}}
	patch := func(name, body string) {
		t.Helper()
		if _, err := roles.Patch(e.ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch("system:discovery", `{"rules":[{"verbs":["get"],"nonResourceURLs":["/extra"]}],"metadata":{"labels":{"mine":"yes"}}}`)
	patch("system:monitoring", `{"rules":[],"metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}}}`)
	if err := roles.Delete(e.ctx, "system:basic-user", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := bindings.Patch(e.ctx, "system:discovery", types.MergePatchType, []byte(`{"subjects":[{"kind":"User","name":"ann","apiGroup":"rbac.authorization.k8s.io"}]}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	ensureBySeveral(e)

	discovery, err := roles.Get(e.ctx, "system:discovery", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rules := fmt.Sprintf("%q", discovery.Rules)
	if !strings.Contains(rules, fmt.Sprintf("%q", extra)) || !strings.Contains(rules, "/openapi/*") || discovery.Labels["mine"] != "yes" {
		t.Errorf("system:discovery: %s, %v", rules, discovery.Labels)
	}
	monitoring, err := roles.Get(e.ctx, "system:monitoring", metav1.GetOptions{})
	if err != nil || len(monitoring.Rules) > 0 {
		t.Errorf("what was annotated was changed: %v (%v)", monitoring.Rules, err)
	}
	if _, err := roles.Get(e.ctx, "system:basic-user", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	binding, err := bindings.Get(e.ctx, "system:discovery", metav1.GetOptions{})
	if err != nil || len(binding.Subjects) != 2 {
		t.Errorf("subjects: %v (%v)", binding.Subjects, err)
	}
}

func TestEnsureDefaultsEndsWithItsContext(t *testing.T) {
	e := start(t)
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	stranger := e.as("nobody") // may write nothing
	if err := rbac.EnsureDefaults(ctx, stranger); err == nil {
		t.Error("no error")
	}
}

// aggregate starts what two replicas do, and returns how to wait for the rules of
// a role.
func (e *env) aggregate() {
	e.t.Helper()
	done := make(chan error)
	ctx, cancel := context.WithCancel(e.ctx)
	for range 2 {
		go func() { done <- rbac.Aggregate(ctx, e.informers, e.admin) }()
	}
	e.t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				e.t.Error(err)
			}
		}
	})
}

// resourcesOf returns the resources that a role has rules about.
func (e *env) resourcesOf(name string) []string {
	r, err := e.admin.RbacV1().ClusterRoles().Get(e.ctx, name, metav1.GetOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	for _, rule := range r.Rules {
		all = append(all, rule.Resources...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (e *env) eventuallyHave(resource string, want bool, roles ...string) {
	e.t.Helper()
	for _, name := range roles {
		e.eventually(func() string {
			if got := e.resourcesOf(name); slices.Contains(got, resource) != want {
				return fmt.Sprintf("%s has %q, want %s: %v", name, got, resource, want)
			}
			return ""
		})
	}
}

func TestAggregate(t *testing.T) {
	e := start(t)
	ensureBySeveral(e)
	e.aggregate()
	e.eventuallyHave("configmaps", true, "view", "edit", "admin")
	e.eventuallyHave("serviceaccounts/token", true, "edit", "admin")
	e.eventuallyHave("rolebindings", true, "admin")
	for name, without := range map[string]string{"view": "secrets", "edit": "rolebindings"} {
		if got := e.resourcesOf(name); slices.Contains(got, without) {
			t.Errorf("%s has %q", name, got)
		}
	}

	// New tenants have the same rules from the beginning.
	given, err := rbac.Defaults(false)
	if err != nil {
		t.Fatal(err)
	}
	aggregated := 0
	for _, o := range given {
		role, ok := o.(*rbacv1.ClusterRole)
		if !ok || role.AggregationRule == nil {
			continue
		}
		aggregated++
		e.eventually(func() string {
			now, err := e.admin.RbacV1().ClusterRoles().Get(e.ctx, role.Name, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			if !equality.Semantic.DeepEqual(now.Rules, role.Rules) {
				return fmt.Sprintf("%s is %v, given was %v", role.Name, now.Rules, role.Rules)
			}
			return ""
		})
	}
	if aggregated < 3 {
		t.Errorf("%d aggregated roles are given", aggregated)
	}

	// What authors of CRDs do.
	own := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "crontabs-view", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"stable.example.com"}, Resources: []string{"crontabs"}}},
	}
	if _, err := e.admin.RbacV1().ClusterRoles().Create(e.ctx, own, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.eventuallyHave("crontabs", true, "view", "edit", "admin")

	// Defaults do not undo it.
	if err := rbac.EnsureDefaults(e.ctx, e.admin); err != nil {
		t.Fatal(err)
	}
	e.eventuallyHave("crontabs", true, "view", "edit", "admin")

	// A client changes an aggregated role, and the controller restores it.
	if _, err := e.admin.RbacV1().ClusterRoles().Patch(e.ctx, "view", types.MergePatchType, []byte(`{"rules":[]}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	e.eventuallyHave("configmaps", true, "view")

	if _, err := e.admin.RbacV1().ClusterRoles().Patch(e.ctx, own.Name, types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	e.eventuallyHave("crontabs", false, "view", "edit", "admin")
}

// A role that selects nothing has no rules, whatever was written into it.
func TestAggregateNothing(t *testing.T) {
	e := start(t)
	e.aggregate()
	r := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "empty"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
			{MatchLabels: map[string]string{"nobody": "has"}},
		}},
	}
	if _, err := e.admin.RbacV1().ClusterRoles().Create(e.ctx, r, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.eventuallyHave("secrets", false, "empty")
}
