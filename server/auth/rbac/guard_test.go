package rbac_test

import (
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	rbacapply "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/kubernetes"
)

func rule(verb, group, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names}
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func role(name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func clusterBinding(name, role, user string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "User", Name: user}},
	}
}

func binding(name, kind, role, user string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{Kind: kind, Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "User", Name: user}},
	}
}

// grant gives a user rules everywhere.
func (e *env) grant(user string, rules ...rbacv1.PolicyRule) {
	e.t.Helper()
	name := "of-" + user
	_, err := e.admin.RbacV1().ClusterRoles().Create(e.ctx, clusterRole(name, rules...), metav1.CreateOptions{})
	if err == nil {
		_, err = e.admin.RbacV1().ClusterRoleBindings().Create(e.ctx, clusterBinding(name, name, user), metav1.CreateOptions{})
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// eventuallyCan waits until the index has what was written. The last rule that
// was granted is a sign that all were.
func (e *env) eventuallyCan(client *kubernetes.Clientset, want bool, verb, group, resource, namespace string) {
	e.t.Helper()
	e.eventually(func() string {
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(e.ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: group, Resource: resource, Namespace: namespace,
			}},
		}, metav1.CreateOptions{})
		switch {
		case err != nil:
			return err.Error()
		case answer.Status.Allowed != want:
			return fmt.Sprintf("%s %s in %q: %+v", verb, resource, namespace, answer.Status)
		}
		return ""
	})
}

func expectForbidden(t *testing.T, err error, text string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || err.Error() != text {
		t.Errorf("%v\nwant\n%s", err, text)
	}
}

func expectNone(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// plain is what writers of roles and bindings may do, without the verbs that
// allow to grant more.
func plain() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, resource := range []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"} {
		rules = append(rules, rbacv1.PolicyRule{
			Verbs: []string{"create", "update", "patch", "get", "delete"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{resource},
		})
	}
	return append(rules, rule("create", "authorization.k8s.io", "selfsubjectaccessreviews"), rule("get", "", "configmaps"))
}

const notHeld = `user "ann" (groups=["team"]) is attempting to grant RBAC permissions not currently held:` + "\n"

func TestRolesAreNotWidened(t *testing.T) {
	e := start(t)
	e.grant("ann", plain()...)
	ann := e.as("ann", "team")
	e.eventuallyCan(ann, true, "get", "", "configmaps", "")
	roles := ann.RbacV1().Roles("a")

	_, err := roles.Create(e.ctx, role("reader", rule("get", "", "configmaps")), metav1.CreateOptions{})
	expectNone(t, err)
	wide := role("wide", rbacv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}},
		rule("use", "x", "y", "z"))
	_, err = roles.Create(e.ctx, wide, metav1.CreateOptions{})
	const missing = `{APIGroups:[""], Resources:["configmaps"], Verbs:["list"]}` + "\n" +
		`{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}` + "\n" +
		`{APIGroups:["x"], Resources:["y"], ResourceNames:["z"], Verbs:["use"]}`
	expectForbidden(t, err, `roles.rbac.authorization.k8s.io "wide" is forbidden: `+notHeld+missing)
	_, err = roles.Update(e.ctx, wide, metav1.UpdateOptions{}) // a PUT that creates
	expectForbidden(t, err, `roles.rbac.authorization.k8s.io "wide" is forbidden: `+notHeld+missing)
	_, err = roles.Patch(e.ctx, "reader", types.JSONPatchType, []byte(`[{"op":"replace","path":"/rules/0/verbs","value":["*"]}]`), metav1.PatchOptions{})
	expectForbidden(t, err, `roles.rbac.authorization.k8s.io "reader" is forbidden: `+notHeld+`{APIGroups:[""], Resources:["configmaps"], Verbs:["*"]}`)
	_, err = roles.Apply(e.ctx, rbacapply.Role("new", "a").WithRules(rbacapply.PolicyRule().WithVerbs("get").WithAPIGroups("").WithResources("secrets")),
		metav1.ApplyOptions{FieldManager: "test"})
	expectForbidden(t, err, `roles.rbac.authorization.k8s.io "new" is forbidden: `+notHeld+`{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`)
	_, err = ann.RbacV1().ClusterRoles().Create(e.ctx, clusterRole("paths", rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}), metav1.CreateOptions{})
	expectForbidden(t, err, `clusterroles.rbac.authorization.k8s.io "paths" is forbidden: `+notHeld+`{NonResourceURLs:["/metrics"], Verbs:["get"]}`)
	// Without a change of the rules, what is there already is not held either.
	_, err = e.admin.RbacV1().Roles("a").Create(e.ctx, wide, metav1.CreateOptions{})
	expectNone(t, err)
	_, err = roles.Patch(e.ctx, "wide", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	expectForbidden(t, err, `roles.rbac.authorization.k8s.io "wide" is forbidden: `+notHeld+missing)
	_, err = roles.Patch(e.ctx, "wide", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/f"]}}`), metav1.PatchOptions{})
	expectNone(t, err)
}

func TestEscalate(t *testing.T) {
	e := start(t)
	e.grant("ann", append(plain(), rule("escalate", rbacv1.GroupName, "roles"), rule("escalate", rbacv1.GroupName, "clusterroles", "one"))...)
	ann := e.as("ann")
	e.eventuallyCan(ann, true, "escalate", rbacv1.GroupName, "roles", "")
	_, err := ann.RbacV1().Roles("a").Create(e.ctx, role("wide", rule("*", "*", "*")), metav1.CreateOptions{})
	expectNone(t, err)
	// The name of what is created is not known when it is asked for, but that of
	// what is changed is.
	if _, err = ann.RbacV1().ClusterRoles().Create(e.ctx, clusterRole("one", rule("*", "*", "*")), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Error(err)
	}
	_, err = ann.RbacV1().ClusterRoles().Update(e.ctx, clusterRole("one", rule("*", "*", "*")), metav1.UpdateOptions{})
	expectNone(t, err)
}

func TestAggregationNeedsEverything(t *testing.T) {
	e := start(t)
	e.grant("ann", plain()...)
	e.grant("boss", rule("*", "*", "*"), rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}})
	ann, boss := e.as("ann"), e.as("boss")
	e.eventuallyCan(ann, true, "get", "", "configmaps", "")
	e.eventuallyCan(boss, true, "get", "", "configmaps", "")
	r := clusterRole("all")
	r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}}}
	const text = `clusterroles.rbac.authorization.k8s.io "all" is forbidden: must have cluster-admin privileges to use the aggregationRule`
	_, err := ann.RbacV1().ClusterRoles().Create(e.ctx, r, metav1.CreateOptions{})
	expectForbidden(t, err, text)
	_, err = boss.RbacV1().ClusterRoles().Create(e.ctx, r, metav1.CreateOptions{})
	expectNone(t, err)
	_, err = ann.RbacV1().ClusterRoles().Update(e.ctx, clusterRole("all"), metav1.UpdateOptions{})
	expectForbidden(t, err, text)
}

func TestOnlyOwnRightsAreBound(t *testing.T) {
	e := start(t)
	e.grant("ann", plain()...)
	ann := e.as("ann", "team")
	for _, r := range []*rbacv1.ClusterRole{clusterRole("reader", rule("get", "", "configmaps")), clusterRole("secret", rule("get", "", "secrets"))} {
		_, err := e.admin.RbacV1().ClusterRoles().Create(e.ctx, r, metav1.CreateOptions{})
		expectNone(t, err)
	}
	_, err := e.admin.RbacV1().Roles("a").Create(e.ctx, role("secret", rule("list", "", "secrets")), metav1.CreateOptions{})
	expectNone(t, err)
	e.eventuallyCan(ann, true, "get", "", "configmaps", "")

	_, err = ann.RbacV1().ClusterRoleBindings().Create(e.ctx, clusterBinding("mine", "reader", "bob"), metav1.CreateOptions{})
	expectNone(t, err)
	const get = `{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`
	_, err = ann.RbacV1().ClusterRoleBindings().Create(e.ctx, clusterBinding("b", "secret", "ann"), metav1.CreateOptions{})
	expectForbidden(t, err, `clusterrolebindings.rbac.authorization.k8s.io "b" is forbidden: `+notHeld+get)
	_, err = ann.RbacV1().RoleBindings("a").Create(e.ctx, binding("b", "ClusterRole", "secret", "ann"), metav1.CreateOptions{})
	expectForbidden(t, err, `rolebindings.rbac.authorization.k8s.io "b" is forbidden: `+notHeld+get)
	_, err = ann.RbacV1().RoleBindings("a").Create(e.ctx, binding("b", "Role", "secret", "ann"), metav1.CreateOptions{})
	expectForbidden(t, err, `rolebindings.rbac.authorization.k8s.io "b" is forbidden: `+notHeld+`{APIGroups:[""], Resources:["secrets"], Verbs:["list"]}`)
	_, err = ann.RbacV1().RoleBindings("a").Create(e.ctx, binding("b", "ClusterRole", "none", "ann"), metav1.CreateOptions{})
	if !apierrors.IsNotFound(err) || err.Error() != `clusterroles.rbac.authorization.k8s.io "none" not found` {
		t.Error(err)
	}
	_, err = ann.RbacV1().RoleBindings("b").Create(e.ctx, binding("b", "Role", "secret", "ann"), metav1.CreateOptions{})
	if !apierrors.IsNotFound(err) {
		t.Error("a role of another namespace:", err)
	}

	// A role that has been widened a moment ago is not bound by what it was.
	_, err = e.admin.RbacV1().ClusterRoles().Update(e.ctx, clusterRole("reader", rule("get", "", "secrets")), metav1.UpdateOptions{})
	expectNone(t, err)
	_, err = ann.RbacV1().RoleBindings("a").Create(e.ctx, binding("b", "ClusterRole", "reader", "ann"), metav1.CreateOptions{})
	expectForbidden(t, err, `rolebindings.rbac.authorization.k8s.io "b" is forbidden: `+notHeld+get)
	// Neither is a subject added to an old binding of it.
	_, err = ann.RbacV1().ClusterRoleBindings().Patch(e.ctx, "mine", types.JSONPatchType, []byte(`[{"op":"add","path":"/subjects/-","value":{"kind":"User","name":"ann"}}]`), metav1.PatchOptions{})
	expectForbidden(t, err, `clusterrolebindings.rbac.authorization.k8s.io "mine" is forbidden: `+notHeld+get)
}

func TestBind(t *testing.T) {
	e := start(t)
	e.grant("ann", append(plain(), rule("bind", rbacv1.GroupName, "clusterroles", "secret"), rule("bind", rbacv1.GroupName, "roles"))...)
	ann := e.as("ann")
	for _, name := range []string{"secret", "other"} {
		_, err := e.admin.RbacV1().ClusterRoles().Create(e.ctx, clusterRole(name, rule("get", "", "secrets")), metav1.CreateOptions{})
		expectNone(t, err)
	}
	e.eventuallyCan(ann, true, "bind", rbacv1.GroupName, "roles", "")
	_, err := ann.RbacV1().RoleBindings("a").Create(e.ctx, binding("b", "ClusterRole", "secret", "ann"), metav1.CreateOptions{})
	expectNone(t, err)
	_, err = ann.RbacV1().ClusterRoleBindings().Create(e.ctx, clusterBinding("b", "secret", "bob"), metav1.CreateOptions{})
	expectNone(t, err)
	if _, err = ann.RbacV1().RoleBindings("a").Create(e.ctx, binding("c", "ClusterRole", "other", "ann"), metav1.CreateOptions{}); err != nil {
		// In the namespace a, ann has the same rights by now, or will have.
		e.eventuallyCan(ann, true, "get", "", "secrets", "a")
		_, err = ann.RbacV1().RoleBindings("a").Create(e.ctx, binding("c", "ClusterRole", "other", "ann"), metav1.CreateOptions{})
		expectNone(t, err)
	}
	if _, err = ann.RbacV1().RoleBindings("b").Create(e.ctx, binding("c", "ClusterRole", "other", "ann"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Error("rights in one namespace were given away in another:", err)
	}
}

// What is written is what requests are decided by, a moment later.
func TestAuthorization(t *testing.T) {
	e := start(t)
	ensureBySeveral(e)
	e.aggregate()
	e.eventuallyHave("configmaps", true, "view")
	bob := e.as("bob", "system:authenticated")
	configMaps := func(namespace string) error {
		_, err := bob.CoreV1().ConfigMaps(namespace).List(e.ctx, metav1.ListOptions{})
		return err
	}
	expectForbidden(t, configMaps("a"), `configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" in the namespace "a"`)
	_, err := e.admin.RbacV1().RoleBindings("a").Create(e.ctx, binding("viewers", "ClusterRole", "view", "bob"), metav1.CreateOptions{})
	expectNone(t, err)
	e.eventuallyCan(bob, true, "list", "", "configmaps", "a")
	expectNone(t, configMaps("a"))
	if err := configMaps("b"); !apierrors.IsForbidden(err) {
		t.Error(err)
	}
	expectNone(t, e.admin.RbacV1().RoleBindings("a").Delete(e.ctx, "viewers", metav1.DeleteOptions{}))
	e.eventuallyCan(bob, false, "list", "", "configmaps", "a")

	_, err = e.admin.RbacV1().RoleBindings("a").Create(e.ctx, binding("lost", "ClusterRole", "lost", "bob"), metav1.CreateOptions{})
	expectNone(t, err)
	e.eventually(func() string {
		const want = `configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" in the namespace "a": rbac: RBAC: clusterrole.rbac.authorization.k8s.io "lost" not found`
		if err := configMaps("a"); err == nil || err.Error() != want {
			return fmt.Sprintf("%v, want %s", err, want)
		}
		return ""
	})
	rules, err := bob.AuthorizationV1().SelfSubjectRulesReviews().Create(e.ctx, &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "a"}}, metav1.CreateOptions{})
	if err != nil || len(rules.Status.ResourceRules) != 2 || len(rules.Status.NonResourceRules) != 2 ||
		rules.Status.EvaluationError != `clusterrole.rbac.authorization.k8s.io "lost" not found` {
		t.Errorf("%+v, %v", rules, err)
	}
}
