package rules

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// a validationCase is an object in YAML, and everything that is wrong with it once
// defaults are filled in.
type validationCase struct {
	name, object string
	wrong        []string
}

// validateAll runs cases through the rules of a resource.
func validateAll(t *testing.T, r *Rules, cases []validationCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(r.Kind+"/"+c.name, func(t *testing.T) {
			obj := read(t, r, c.object)
			complain(t, r.Validate(obj, nil), c.wrong...)
		})
	}
}

// read makes an object of YAML, and fills in the defaults.
func read(tb testing.TB, r *Rules, object string) runtime.Object {
	tb.Helper()
	obj := made(tb, r)
	if err := yaml.UnmarshalStrict([]byte(object), obj); err != nil {
		tb.Fatal(err)
	}
	if r.Default != nil {
		r.Default(obj)
	}
	return obj
}

// complain fails the test unless the errors are those wanted, in any order. A
// wanted text that ends with … stands for all that begin with it.
func complain(t *testing.T, errs field.ErrorList, want ...string) {
	t.Helper()
	left := slices.Clone(want)
	for _, err := range errs {
		i := slices.IndexFunc(left, func(w string) bool {
			prefix, open := strings.CutSuffix(w, "…")
			return err.Error() == w || open && strings.HasPrefix(err.Error(), prefix)
		})
		if i < 0 {
			t.Errorf("unexpected: %v", err)
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, w := range left {
		t.Errorf("missing: %s", w)
	}
}

func TestValidateRoles(t *testing.T) {
	rules := []validationCase{
		{"empty", `{}`, nil},
		{"a rule", `{rules: [{verbs: [get], apiGroups: [""], resources: [pods], resourceNames: [a]}]}`, nil},
		{"nothing in a rule", `{rules: [{}]}`, []string{
			"rules[0].verbs: Required value",
			"rules[0].apiGroups: Required value: resource rules must supply at least one api group",
			"rules[0].resources: Required value: resource rules must supply at least one resource",
		}},
	}
	validateAll(t, &Role, append(rules, validationCase{
		"URLs are in no namespace", `{rules: [{verbs: [get], nonResourceURLs: [/healthz]}]}`,
		[]string{`rules[0].nonResourceURLs: Invalid value: ["/healthz"]: namespaced rules cannot apply to non-resource URLs`},
	}))
	validateAll(t, &ClusterRole, append(rules,
		validationCase{"URLs", `{rules: [{verbs: [get], nonResourceURLs: [/healthz]}]}`, nil},
		validationCase{"URLs and resources", `{rules: [{verbs: [get], nonResourceURLs: [/a], resources: [pods]}]}`,
			[]string{`rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and non-resource URLs`}},
		validationCase{"URLs, groups and resources", `{rules: [{verbs: [get], nonResourceURLs: [/a], apiGroups: [a], resources: [pods]}, {verbs: [get], nonResourceURLs: [/a], resources: [pods], resourceNames: [a]}]}`, []string{
			`rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and non-resource URLs`,
			`rules[1].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and non-resource URLs`,
		}},
		validationCase{"aggregation", `{aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}`, nil},
		validationCase{"aggregation of nothing", `{aggregationRule: {}}`,
			[]string{"aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil"}},
		validationCase{"a wrong selector", `{aggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: a, operator: Near}]}]}}`, []string{
			`aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator`,
			`aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.`,
		}},
	))
}

func TestValidateRoleBindings(t *testing.T) {
	both := []validationCase{
		{"subjects", `{roleRef: {kind: ClusterRole, name: "system:view"}, subjects: [
			{kind: User, name: jane}, {kind: Group, name: "system:masters"}, {kind: ServiceAccount, namespace: a, name: b}]}`, nil},
		{"no role", `{}`, []string{`roleRef.kind: Unsupported value: ""…`, "roleRef.name: Required value"}},
		{"a path", `{roleRef: {kind: ClusterRole, name: ../x}}`, []string{`roleRef.name: Invalid value: "../x": may not contain '/'`}},
		{"another group", `{roleRef: {apiGroup: x, kind: ClusterRole, name: a}}`,
			[]string{`roleRef.apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io"`}},
		{"nobody", `{roleRef: {kind: ClusterRole, name: a}, subjects: [{kind: User}, {kind: Group}, {kind: Robot, name: r}]}`, []string{
			"subjects[0].name: Required value", "subjects[1].name: Required value",
			`subjects[2].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"`,
		}},
		{"groups of subjects", `{roleRef: {kind: ClusterRole, name: a}, subjects: [
			{kind: User, apiGroup: x, name: a}, {kind: ServiceAccount, apiGroup: x, namespace: n, name: A}]}`, []string{
			`subjects[0].apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io"`,
			`subjects[1].apiGroup: Unsupported value: "x": supported values: ""`,
			`subjects[1].name: Invalid value: "A": a lowercase RFC 1123 subdomain…`,
		}},
	}
	noNamespace := `{roleRef: {kind: ClusterRole, name: a}, subjects: [{kind: ServiceAccount, name: b}]}`
	namespacedRole := `{roleRef: {kind: Role, name: a}}`
	validateAll(t, &RoleBinding, append(both,
		validationCase{"an account of the same namespace", noNamespace, nil},
		validationCase{"a role", namespacedRole, nil}))
	validateAll(t, &ClusterRoleBinding, append(both,
		validationCase{"an account of which namespace", noNamespace, []string{"subjects[0].namespace: Required value"}},
		validationCase{"a role of which namespace", namespacedRole, []string{`roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"`}}))
}

func TestRoleRefStays(t *testing.T) {
	old := &rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "a"}}
	changed := old.DeepCopy()
	complain(t, RoleBinding.Validate(changed, old))
	changed.RoleRef.Name = "b"
	complain(t, RoleBinding.Validate(changed, old),
		`roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"b"}: field is immutable`)
	cluster := &rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "a"}}
	other := cluster.DeepCopy()
	complain(t, ClusterRoleBinding.Validate(other, cluster))
	other.RoleRef.Name = "b"
	complain(t, ClusterRoleBinding.Validate(other, cluster),
		`roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"b"}: field is immutable`)
}
