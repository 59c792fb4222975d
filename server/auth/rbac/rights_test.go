package rbac

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/tools/cache"
)

var (
	ann     = &user.DefaultInfo{Name: "ann", Groups: []string{"team"}}
	getMaps = rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}
)

// holding is an authorizer in which ann has rules everywhere.
func holding(rules ...rbacv1.PolicyRule) *Authorizer {
	a := &Authorizer{index: newIndex()}
	a.index.setObject(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: rules})
	a.index.setObject(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"},
		Subjects:   []rbacv1.Subject{{Kind: "User", Name: "ann"}},
	})
	return a
}

// A request without a user gets no rights, whatever is bound.
func TestNoUserHasNoRights(t *testing.T) {
	a := holding(everything...)
	decision, reason, err := a.Authorize(t.Context(), authorizer.AttributesRecord{Verb: "get", ResourceRequest: true})
	if decision != authorizer.DecisionNoOpinion || reason != "" || err != nil {
		t.Errorf("%v, %q, %v", decision, reason, err)
	}
}

// Roles have no conditions: the answer with conditions is the plain one, and no conditions
// can make it another.
func TestRolesHaveNoConditions(t *testing.T) {
	a := holding(getMaps)
	asked := authorizer.AttributesRecord{User: ann, Verb: "get", Resource: "configmaps", ResourceRequest: true}
	if d := a.ConditionsAwareAuthorize(t.Context(), asked); !d.IsAllow() {
		t.Errorf("what is granted: %v", d)
	}
	asked.Verb = "list"
	d := a.ConditionsAwareAuthorize(t.Context(), asked)
	if d.IsAllow() || !d.IsNoOpinion() {
		t.Errorf("what is not granted: %v", d)
	}
	decision, reason, err := a.EvaluateConditions(t.Context(), d, nil)
	if decision != authorizer.DecisionDeny || reason != "" || !errors.Is(err, authorizer.ErrorConditionEvaluationNotSupported) {
		t.Errorf("conditions: %v, %q, %v", decision, reason, err)
	}
}

// A request waits for the lists for a while, and is not allowed without them.
func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := holding(everything...)
		first := never{make(chan struct{})}
		a.loads = []cache.DoneChecker{first, never{make(chan struct{})}}
		close(first.done)
		begin := time.Now()
		decision, reason, err := a.Authorize(t.Context(), authorizer.AttributesRecord{User: ann, Verb: "get", ResourceRequest: true})
		if decision != authorizer.DecisionNoOpinion || reason != notLoaded || err != nil || time.Since(begin) != 5*time.Second {
			t.Errorf("%v, %q, %v after %v", decision, reason, err, time.Since(begin))
		}
		resources, others, incomplete, err := a.RulesFor(t.Context(), ann, "")
		if len(resources)+len(others) > 0 || incomplete || err == nil || err.Error() != notLoaded {
			t.Errorf("%v, %v, %t, %v", resources, others, incomplete, err)
		}
	})
}

// Rules about resources and about paths are apart, and a rule of both is in both lists.
func TestRulesFor(t *testing.T) {
	named := rbacv1.PolicyRule{Verbs: []string{"use"}, APIGroups: []string{"x"}, Resources: []string{"y"}, ResourceNames: []string{"z"}}
	paths := rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}
	both := rbacv1.PolicyRule{Verbs: []string{"*"}, Resources: []string{"q"}, NonResourceURLs: []string{"/q"}}
	resources, others, incomplete, err := holding(named, paths, both).RulesFor(t.Context(), ann, "")
	if incomplete || err != nil {
		t.Error(incomplete, err)
	}
	if want := []authorizer.ResourceRuleInfo{
		&authorizer.DefaultResourceRuleInfo{Verbs: []string{"use"}, APIGroups: []string{"x"}, Resources: []string{"y"}, ResourceNames: []string{"z"}},
		&authorizer.DefaultResourceRuleInfo{Verbs: []string{"*"}, Resources: []string{"q"}},
	}; !reflect.DeepEqual(resources, want) {
		t.Errorf("%v", resources)
	}
	if want := []authorizer.NonResourceRuleInfo{
		&authorizer.DefaultNonResourceRuleInfo{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}},
		&authorizer.DefaultNonResourceRuleInfo{Verbs: []string{"*"}, NonResourceURLs: []string{"/q"}},
	}; !reflect.DeepEqual(others, want) {
		t.Errorf("%v", others)
	}
}

// A RoleBinding without a namespace, which no client can write, is none of the cluster.
func TestRoleBindingWithoutANamespace(t *testing.T) {
	a := holding()
	a.index.setObject(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Rules: everything})
	a.index.setObject(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "b2"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "all"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "ann"}},
	})
	if decision, _, _ := a.Authorize(t.Context(), authorizer.AttributesRecord{User: ann, Verb: "get"}); decision != authorizer.DecisionNoOpinion {
		t.Error(decision)
	}
	// What has no name is not deleted: it would be a role or binding without a name.
	for _, remove := range []func(any){a.index.deleteRoleObject, a.index.deleteClusterRoleObject, a.index.deleteBindingObject} {
		remove("neither object nor tombstone")
	}
	if len(a.index.roles) != 2 || len(a.index.bindings) != 1 {
		t.Errorf("%d roles, %d bindings", len(a.index.roles), len(a.index.bindings))
	}
}

// A rule for a subresource has a slash between the two.
func TestIsPair(t *testing.T) {
	for _, test := range []struct {
		s    string
		want bool
	}{{"pods/log", true}, {"podsxlog", false}, {"pods/logs", false}, {"podz/log", false}, {"pods/lot", false}, {"/pods/log", false}, {"pods", false}, {"", false}} {
		if got := isPair(test.s, "pods", "log"); got != test.want {
			t.Errorf("%q: %t", test.s, got)
		}
	}
}

// Of several bindings of a role, the reason names the first one by name.
func TestReasonNamesTheFirstBinding(t *testing.T) {
	a := holding(everything...)
	for _, name := range []string{"c", "a", "d"} {
		a.index.setObject(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "ann"}},
		})
	}
	_, reason, _ := a.Authorize(t.Context(), authorizer.AttributesRecord{User: ann, Verb: "get", ResourceRequest: true})
	if want := `RBAC: allowed by ClusterRoleBinding "a" of ClusterRole "r" to User "ann"`; reason != want {
		t.Errorf("%s", reason)
	}
}

// As many permissions as can be compared are, and not one more.
func TestMostPermissions(t *testing.T) {
	verbs := make([]string, maxPermissions+1)
	for i := range verbs {
		verbs[i] = fmt.Sprint("v", i)
	}
	wanted := func(n int) []rbacv1.PolicyRule {
		half := n / 2
		return []rbacv1.PolicyRule{
			{Verbs: verbs[:half], APIGroups: []string{""}, Resources: []string{"a"}},
			{Verbs: verbs[:n-half], APIGroups: []string{""}, Resources: []string{"b"}},
		}
	}
	// The first rule covers all, so that the comparison is short.
	owned := make([]rbacv1.PolicyRule, maxComparisons/maxPermissions+1)
	owned[0] = rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}
	const short = "the rules are more permissions than can be compared (%d with %d rules): use fewer and shorter rules"
	for _, test := range []struct {
		n, owned int
		want     string
	}{
		{maxPermissions, 1, ""},
		{maxPermissions + 1, 1, fmt.Sprintf(short, maxPermissions+1, 1)},
		{maxPermissions, len(owned) - 1, ""},
		{maxPermissions, len(owned), fmt.Sprintf(short, maxPermissions, len(owned))},
	} {
		missing, err := missingRights(owned[:test.owned], wanted(test.n))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if len(missing) > 0 || got != test.want {
			t.Errorf("%d permissions, %d rules: %d missing, %s", test.n, test.owned, len(missing), got)
		}
	}
}

// Messages name each permission once, and only so many.
func TestDescribeRules(t *testing.T) {
	of := func(verb, resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{""}, Resources: []string{resource}}
	}
	named := of("get", "a")
	named.ResourceNames = []string{"n"}
	two := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"", "apps"}, Resources: []string{"a"}}
	many := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"a", "b"}}
	path := rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/"}}
	first := of("list", "b")
	got := describeRules([]rbacv1.PolicyRule{first, named, named, of("get", "b"), two, two, many, path, path})
	const want = `{APIGroups:["" "apps"], Resources:["a"], Verbs:["get"]}
{APIGroups:[""], Resources:["a" "b"], Verbs:["get"]}
{APIGroups:[""], Resources:["a"], ResourceNames:["n"], Verbs:["get"]}
{APIGroups:[""], Resources:["b"], Verbs:["list" "get"]}
{NonResourceURLs:["/"], Verbs:["get"]}`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(first.Verbs) != 1 {
		t.Errorf("the caller's rule has become %v", first)
	}
	var rules []rbacv1.PolicyRule
	for i := range maxLines {
		rules = append(rules, of("get", fmt.Sprintf("r%03d", i)))
	}
	if lines := strings.Split(describeRules(rules), "\n"); len(lines) != maxLines || !strings.Contains(lines[maxLines-1], "r499") {
		t.Errorf("%d lines, the last one is %s", len(lines), lines[len(lines)-1])
	}
	rules = append(rules, of("get", "s"))
	if lines := strings.Split(describeRules(rules), "\n"); len(lines) != maxLines+1 || lines[maxLines] != "and 1 more" {
		t.Errorf("%d lines, the last one is %s", len(lines), lines[len(lines)-1])
	}
}

// decides is an authorizer that allows one verb, or fails.
type decides struct {
	allowed string
	err     error
	asked   []authorizer.Attributes
}

func (d *decides) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	d.asked = append(d.asked, a)
	if a.GetVerb() == d.allowed {
		return authorizer.DecisionAllow, "", d.err
	}
	return authorizer.DecisionNoOpinion, "", d.err
}

func annIn(t *testing.T, namespace string) context.Context {
	ctx := genericapirequest.WithUser(t.Context(), ann)
	if namespace != "" {
		ctx = genericapirequest.WithNamespace(ctx, namespace)
	}
	return ctx
}

// The verbs escalate and bind are asked for with the name and the namespace of the request.
func TestGuardAsksForItsVerbs(t *testing.T) {
	d := &decides{allowed: "escalate"}
	g := &guard{held: holding(), authz: d}
	wide := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "wide"}, Rules: everything}
	if err := g.checkRole(annIn(t, "a"), write{resource: "roles", name: "wide", obj: wide}); err != nil {
		t.Error(err)
	}
	want := authorizer.AttributesRecord{
		User: ann, Verb: "escalate", APIGroup: rbacv1.GroupName, APIVersion: "*", Resource: "roles", Name: "wide", Namespace: "a", ResourceRequest: true,
	}
	if !reflect.DeepEqual(d.asked, []authorizer.Attributes{want}) {
		t.Errorf("asked %+v", d.asked)
	}
	// An authorizer that fails allows nothing, whatever else it says.
	d.err = errors.New("no answer")
	if err := g.checkRole(annIn(t, "a"), write{resource: "roles", name: "wide", obj: wide}); !apierrors.IsForbidden(err) {
		t.Errorf("after a failure: %v", err)
	}
	d.allowed, d.err, d.asked = "bind", nil, nil
	of := func(group, kind string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, RoleRef: rbacv1.RoleRef{APIGroup: group, Kind: kind, Name: "x"}}
	}
	for kind, resource := range map[string]string{"Role": "roles", "ClusterRole": "clusterroles"} {
		d.asked = nil
		if err := g.checkBinding(annIn(t, "a"), write{resource: "rolebindings", obj: of(rbacv1.GroupName, kind)}); err != nil {
			t.Error(kind, err)
		}
		want.Verb, want.Resource, want.Name = "bind", resource, "x"
		if !reflect.DeepEqual(d.asked, []authorizer.Attributes{want}) {
			t.Errorf("asked %+v", d.asked)
		}
	}
	for _, test := range []struct {
		ctx  context.Context
		obj  runtime.Object
		want string
	}{
		{annIn(t, "a"), of(rbacv1.GroupName, "Other"), `unsupported role reference kind: "Other"`},
		{annIn(t, "a"), of("example.com", "Role"), "Internal error occurred: no roles are served that could be bound"},
		{annIn(t, "a"), of("example.com", "ClusterRole"), "Internal error occurred: no roles are served that could be bound"},
		{annIn(t, ""), of(rbacv1.GroupName, "ClusterRole"), "namespace is required"},
		{genericapirequest.WithNamespace(annIn(t, ""), ""), of(rbacv1.GroupName, "ClusterRole"), "namespace is required"},
		{genericapirequest.WithNamespace(t.Context(), "a"), of(rbacv1.GroupName, "ClusterRole"), "Internal error occurred: no roles are served that could be bound"},
		{annIn(t, ""), &rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: "example.com", Kind: "Role", Name: "x"}}, `unsupported role reference kind: "Role"`},
	} {
		if err := g.checkBinding(test.ctx, write{resource: "rolebindings", obj: test.obj}); err == nil || err.Error() != test.want {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}

// What ann may grant is what she has. A kind of object that is unknown grants everything.
func TestGuardConfirms(t *testing.T) {
	const notHeld = `user "ann" (groups=["team"]) is attempting to grant RBAC permissions `
	g := &guard{held: holding(getMaps), authz: &decides{}}
	if err := g.confirm(annIn(t, ""), []rbacv1.PolicyRule{getMaps}); err != nil {
		t.Error(err)
	}
	text := func(err error) string { return fmt.Sprint(err) }
	if got := text(g.confirm(t.Context(), []rbacv1.PolicyRule{getMaps})); got != "no user on context" {
		t.Error(got)
	}
	list := rbacv1.PolicyRule{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}
	const lists = "not currently held:\n" + `{APIGroups:[""], Resources:["configmaps"], Verbs:["list"]}`
	if got := text(g.confirm(annIn(t, ""), []rbacv1.PolicyRule{getMaps, list})); got != notHeld+lists {
		t.Error(got)
	}
	many := make([]string, 400)
	huge := []rbacv1.PolicyRule{{Verbs: many, APIGroups: many, Resources: many}}
	if got := text(g.confirm(annIn(t, ""), huge)); !strings.HasPrefix(got, notHeld+"that cannot be checked: the rules are more permissions") {
		t.Error(got)
	}
	g.held.index.setObject(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "lost", Namespace: "a"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "lost"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "team"}},
	})
	if got := text(g.confirm(annIn(t, "a"), []rbacv1.PolicyRule{list})); got != notHeld+lists+`; resolution errors: [role.rbac.authorization.k8s.io "lost" not found]` {
		t.Error(got)
	}
	if err := g.checkRole(annIn(t, ""), write{resource: "roles", obj: &rbacv1.RoleBinding{}}); !apierrors.IsForbidden(err) {
		t.Errorf("an unknown kind: %v", err)
	}
	bare := &rbacv1.ClusterRole{AggregationRule: &rbacv1.AggregationRule{}}
	if err := g.checkRole(annIn(t, ""), write{resource: "clusterroles", obj: bare}); err != nil {
		t.Errorf("an aggregation rule that selects nothing: %v", err)
	}
}

// Only the group system:masters is not checked.
func TestTrusted(t *testing.T) {
	for _, test := range []struct {
		ctx  context.Context
		want bool
	}{
		{t.Context(), false},
		{annIn(t, ""), false},
		{genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "ann", Groups: []string{"team", "system:masters"}}), true},
		{genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "system:masters"}), false},
	} {
		if got := trusted(test.ctx); got != test.want {
			t.Errorf("%v: %t", test.ctx, got)
		}
	}
}

// The garbage collector changes owners and finalizers; an update that changes anything else
// is checked.
func TestOnlyForCollection(t *testing.T) {
	old := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "r", Labels: map[string]string{"a": "b"}}, Rules: []rbacv1.PolicyRule{getMaps}}
	for name, test := range map[string]struct {
		change func(r *rbacv1.Role)
		want   bool
	}{
		"nothing":        {func(*rbacv1.Role) {}, true},
		"owners":         {func(r *rbacv1.Role) { r.OwnerReferences = []metav1.OwnerReference{{Name: "o"}} }, true},
		"finalizers":     {func(r *rbacv1.Role) { r.Finalizers = []string{"f"} }, true},
		"managed fields": {func(r *rbacv1.Role) { r.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}} }, true},
		"self link":      {func(r *rbacv1.Role) { r.SelfLink = "s" }, true},
		"kind":           {func(r *rbacv1.Role) { r.Kind = "Role" }, true},
		"labels":         {func(r *rbacv1.Role) { r.Labels = nil }, false},
		"rules":          {func(r *rbacv1.Role) { r.Rules = everything; r.Finalizers = []string{"f"} }, false},
	} {
		obj := old.DeepCopy()
		test.change(obj)
		if got := onlyForCollection(obj, old); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if onlyForCollection(old, nil) {
		t.Error("a new role is not checked")
	}
	if onlyForCollection(&metav1.Status{}, old) || onlyForCollection(old, &metav1.Status{}) {
		t.Error("what has no metadata is not checked")
	}
}
