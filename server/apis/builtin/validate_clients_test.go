package builtin

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	flowv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

// clientOf is what the clients of all kinds have.
type clientOf[T any] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Get(context.Context, string, metav1.GetOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

type anObject interface {
	metav1.Object
	runtime.Object
}

// life creates an object, changes it in three ways and deletes it. The generation
// counts changes that are not of metadata, if there is one; a change that breaks
// the object is refused with a text.
func life[T anObject](t *testing.T, c clientOf[T], r Resource, object string, change, spoil func(T), refusal string) {
	t.Helper()
	ctx := context.Background()
	generation := func(obj T, want int64) {
		t.Helper()
		if r.Strategy.Generation == nil {
			want = 0
		}
		if got := obj.GetGeneration(); got != want {
			t.Errorf("the generation of a %T is %d, not %d", obj, got, want)
		}
	}
	wanted := read(t, r, object).(T)
	made, err := c.Create(ctx, wanted, metav1.CreateOptions{FieldManager: "test"})
	if err != nil {
		t.Fatal(err)
	}
	generation(made, 1)
	made.SetLabels(map[string]string{"a": "b"})
	labelled, err := c.Update(ctx, made, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	generation(labelled, 1)
	change(labelled)
	changed, err := c.Update(ctx, labelled, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	generation(changed, 2)
	got, err := c.Get(ctx, changed.GetName(), metav1.GetOptions{})
	if err != nil || !equality.Semantic.DeepEqual(got, changed) {
		t.Errorf("got %v, %v; it was %v", got, err, changed)
	}
	spoil(got)
	if _, err := c.Update(ctx, got, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), refusal) {
		t.Errorf("%v is not about %q", err, refusal)
	}
	if err := c.Delete(ctx, changed.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := c.Get(ctx, changed.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after it is deleted: %v", err)
	}
}

// ours are the resources of this test: all but those of others.
func ours() []Resource { return slices.Concat(Standard(), Policies(PolicyOptions{}), Roles()) }

func withClients(t *testing.T, test func(t *testing.T, e *env, c kubernetes.Interface)) {
	t.Helper()
	e := start(t, ours()...)
	for name, c := range e.clients() {
		t.Run(name, func(t *testing.T) { test(t, e, c) })
	}
}

func TestRolesThroughClients(t *testing.T) {
	withClients(t, func(t *testing.T, _ *env, c kubernetes.Interface) {
		const rule = `{metadata: {name: "system:a"}, rules: [{verbs: [get], apiGroups: [""], resources: [pods]}]}`
		const binding = `{metadata: {name: "system:a"}, roleRef: {kind: ClusterRole, name: r}, subjects: [{kind: User, name: u}]}`
		noVerbs, changed := []rbacv1.PolicyRule{{}}, []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"a"}}}
		life(t, c.RbacV1().Roles("n"), roles(), rule,
			func(r *rbacv1.Role) { r.Rules = changed }, func(r *rbacv1.Role) { r.Rules = noVerbs }, "rules[0].verbs: Required value")
		life(t, c.RbacV1().ClusterRoles(), clusterRoles(), rule,
			func(r *rbacv1.ClusterRole) { r.Rules = changed }, func(r *rbacv1.ClusterRole) { r.Rules = noVerbs }, "rules[0].verbs: Required value")
		life(t, c.RbacV1().RoleBindings("n"), roleBindings(), binding,
			func(b *rbacv1.RoleBinding) { b.Subjects[0].Name = "v" }, func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "s" }, "field is immutable")
		life(t, c.RbacV1().ClusterRoleBindings(), clusterRoleBindings(), binding,
			func(b *rbacv1.ClusterRoleBinding) { b.Subjects[0].Name = "v" }, func(b *rbacv1.ClusterRoleBinding) { b.RoleRef.Name = "s" }, "field is immutable")
	})
}

func TestAdmissionThroughClients(t *testing.T) {
	withClients(t, func(t *testing.T, _ *env, c kubernetes.Interface) {
		hooks := `{metadata: {name: w}, webhooks: [{name: a.b.c, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: "https://example.com/x"}}]}`
		life(t, c.AdmissionregistrationV1().MutatingWebhookConfigurations(), mutatingWebhookConfigurations(), hooks,
			func(w *admissionv1.MutatingWebhookConfiguration) { w.Webhooks[0].Name = "x.y.z" },
			func(w *admissionv1.MutatingWebhookConfiguration) { w.Webhooks[0].SideEffects = nil }, "webhooks[0].sideEffects: Required value")
		life(t, c.AdmissionregistrationV1().ValidatingWebhookConfigurations(), validatingWebhookConfigurations(), hooks,
			func(w *admissionv1.ValidatingWebhookConfiguration) { w.Webhooks[0].Name = "x.y.z" },
			func(w *admissionv1.ValidatingWebhookConfiguration) { w.Webhooks[0].SideEffects = nil }, "webhooks[0].sideEffects: Required value")
		const constraints = `matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]}, `
		life(t, c.AdmissionregistrationV1().ValidatingAdmissionPolicies(), validatingAdmissionPolicies(), "{metadata: {name: p}, spec: {"+constraints+`validations: [{expression: "true"}]}}`,
			func(p *admissionv1.ValidatingAdmissionPolicy) { p.Spec.Validations[0].Expression = "false" },
			func(p *admissionv1.ValidatingAdmissionPolicy) { p.Spec.Validations[0].Expression = "1" }, "must evaluate to bool but got int")
		life(t, c.AdmissionregistrationV1().MutatingAdmissionPolicies(), mutatingAdmissionPolicies(), "{metadata: {name: p}, spec: {"+constraints+`reinvocationPolicy: Never, mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{}"}}]}}`,
			func(p *admissionv1.MutatingAdmissionPolicy) {
				p.Spec.ReinvocationPolicy = admissionv1.IfNeededReinvocationPolicy
			},
			func(p *admissionv1.MutatingAdmissionPolicy) { p.Spec.Mutations = nil }, "mutations must contain at least one item")
		life(t, c.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings(), validatingAdmissionPolicyBindings(),
			"{metadata: {name: b}, spec: {policyName: p, validationActions: [Deny], matchResources: {}}}",
			func(b *admissionv1.ValidatingAdmissionPolicyBinding) { b.Spec.PolicyName = "q" },
			func(b *admissionv1.ValidatingAdmissionPolicyBinding) { b.Spec.ValidationActions = nil }, "spec.validationActions: Required value")
		life(t, c.AdmissionregistrationV1().MutatingAdmissionPolicyBindings(), mutatingAdmissionPolicyBindings(), "{metadata: {name: b}, spec: {policyName: p}}",
			func(b *admissionv1.MutatingAdmissionPolicyBinding) { b.Spec.PolicyName = "q" },
			func(b *admissionv1.MutatingAdmissionPolicyBinding) { b.Spec.PolicyName = "" }, "spec.policyName: Required value")
	})
}

func TestFlowThroughClients(t *testing.T) {
	withClients(t, func(t *testing.T, _ *env, c kubernetes.Interface) {
		life(t, c.FlowcontrolV1().FlowSchemas(), flowSchemas(), "{metadata: {name: a}, spec: {priorityLevelConfiguration: {name: l}}}",
			func(s *flowv1.FlowSchema) { s.Spec.MatchingPrecedence = 7 },
			func(s *flowv1.FlowSchema) { s.Spec.MatchingPrecedence = -7 }, "must be a positive value")
		life(t, c.FlowcontrolV1().PriorityLevelConfigurations(), priorityLevelConfigurations(),
			"{metadata: {name: a}, spec: {type: Limited, limited: {limitResponse: {type: Reject}}}}",
			func(l *flowv1.PriorityLevelConfiguration) { *l.Spec.Limited.NominalConcurrencyShares = 0 },
			func(l *flowv1.PriorityLevelConfiguration) { *l.Spec.Limited.NominalConcurrencyShares = -1 }, "must be a non-negative integer")
		schemas := slices.Concat(bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas)
		levels := slices.Concat(bootstrap.MandatoryPriorityLevelConfigurations, bootstrap.SuggestedPriorityLevelConfigurations)
		for _, s := range schemas {
			accepted(t, c.FlowcontrolV1().FlowSchemas(), s, func(got *flowv1.FlowSchema) bool { return equality.Semantic.DeepEqual(got.Spec, s.Spec) })
		}
		for _, l := range levels {
			accepted(t, c.FlowcontrolV1().PriorityLevelConfigurations(), l, func(got *flowv1.PriorityLevelConfiguration) bool {
				return equality.Semantic.DeepEqual(got.Spec, l.Spec)
			})
		}
	})
}

// accepted creates an object, which must come back as it was sent, and deletes it.
func accepted[T anObject](t *testing.T, c clientOf[T], obj T, same func(T) bool) {
	t.Helper()
	if _, err := c.Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
		t.Error(err)
		return
	}
	got, err := c.Get(t.Context(), obj.GetName(), metav1.GetOptions{})
	if err != nil || !same(got) {
		t.Errorf("%s came back as %v, %v", obj.GetName(), got, err)
	}
	if err := c.Delete(t.Context(), obj.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// TestStatusThroughClients: the resource leaves the status alone, and the status
// leaves everything else alone.
func TestStatusThroughClients(t *testing.T) {
	e := start(t, ours()...)
	for path, object := range map[string]string{
		"/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas":                 `{"metadata":{"name":"a"},"spec":{"priorityLevelConfiguration":{"name":"l"}},"status":{"conditions":[{"type":"Early"}]}}`,
		"/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations": `{"metadata":{"name":"a"},"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}},"status":{"conditions":[{"type":"Early"}]}}`,
		"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies": `{"metadata":{"name":"a"},"spec":{"validations":[{"expression":"true"}],"matchConstraints":{"resourceRules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["a"]}]}},
			"status":{"observedGeneration":9}}`,
	} {
		t.Run(path, func(t *testing.T) {
			e.Do(http.MethodPost, path, object).Is(http.StatusCreated).Has("status.conditions", nil).Has("status.observedGeneration", nil)
			const condition = `{"type":"Ready","status":"True","reason":"R","message":"","lastTransitionTime":"2020-01-01T00:00:00Z"}`
			changed := `{"metadata":{"labels":{"x":"y"}},"spec":{"matchingPrecedence":3,"type":"Exempt","failurePolicy":"Ignore"},"status":{"conditions":[` + condition + `]}}`
			e.Patch("merge", path+"/a/status", changed).Is(http.StatusOK).
				Has("status.conditions.0.type", "Ready").Has("metadata.labels", nil).Has("metadata.generation", 1).
				Has("spec", e.Do(http.MethodGet, path+"/a", "").At("spec"))
			before := e.Do(http.MethodGet, path+"/a", "").At("status")
			e.Patch("merge", path+"/a", `{"metadata":{"labels":{"x":"y"}},"status":null}`).Is(http.StatusOK).Has("status", before).Has("metadata.labels.x", "y")
			e.Patch("merge", path+"/a/status", `{"status":{"conditions":[`+condition+`,`+condition+`]}}`).Is(http.StatusUnprocessableEntity).Mentions("status.conditions[1]")
			e.Patch("apply", path+"/a/status?fieldManager=m&force=true", `{"apiVersion":"`+strings.Join(strings.Split(path, "/")[2:4], "/")+`","kind":"`+kindOf(path)+`","metadata":{"name":"a"},"status":{"conditions":[`+condition+`]}}`).
				Is(http.StatusOK).Has("status.conditions.0.reason", "R")
		})
	}
}

func kindOf(path string) string {
	for _, r := range ours() {
		if strings.HasSuffix(path, "/"+r.Plural) {
			return r.Kind
		}
	}
	return ""
}

// TestPutCreates: roles are created by PUT, as `kubectl auth reconcile` wants; the
// others are not.
func TestPutCreates(t *testing.T) {
	e := start(t, ours()...)
	e.Do(http.MethodPut, "/apis/rbac.authorization.k8s.io/v1/clusterroles/a", `{"metadata":{"name":"a"}}`).Is(http.StatusCreated)
	e.Do(http.MethodPut, "/apis/rbac.authorization.k8s.io/v1/clusterroles/a", `{"metadata":{"name":"a","labels":{"x":"y"}}}`).Is(http.StatusOK)
	e.Do(http.MethodPut, "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/a", `{"metadata":{"name":"a"},"spec":{"priorityLevelConfiguration":{"name":"l"}}}`).Is(http.StatusNotFound)
	e.Do(http.MethodPost, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", `{"metadata":{"name":"a"}}`).Is(http.StatusCreated)
	e.Do(http.MethodPut, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/a", `{"metadata":{"name":"a"}}`).
		Is(http.StatusUnprocessableEntity).Mentions("metadata.resourceVersion: Invalid value")
	e.Do(http.MethodPost, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", `{"metadata":{"name":"a.static.k8s.io"}}`).
		Is(http.StatusUnprocessableEntity).Mentions("reserved")
}

// TestOurTables: what `kubectl get` shows.
func TestOurTables(t *testing.T) {
	e := start(t, ours()...)
	show := func(path, object, names string, cells ...any) {
		t.Helper()
		e.Do(http.MethodPost, path, object).Is(http.StatusCreated)
		e.tabled(path, names, cells...)
	}
	const rbac, admission, flow = "/apis/rbac.authorization.k8s.io/v1/", "/apis/admissionregistration.k8s.io/v1/", "/apis/flowcontrol.apiserver.k8s.io/v1/"
	const binding = `{"metadata":{"name":"b"},"roleRef":{"kind":"ClusterRole","name":"r"},"subjects":[{"kind":"User","name":"u"},{"kind":"User","name":"v"},{"kind":"Group","name":"g"},{"kind":"ServiceAccount","namespace":"n","name":"a"}]}`
	for _, path := range []string{rbac + "namespaces/n/roles", rbac + "clusterroles"} {
		show(path, `{"metadata":{"name":"r"}}`, "Name,Created At", "r", "*")
	}
	for _, path := range []string{rbac + "namespaces/n/rolebindings", rbac + "clusterrolebindings"} {
		show(path, binding, "Name,Role,Age,Users,Groups,ServiceAccounts", "b", "ClusterRole/r", "*", "u, v", "g", "n/a")
	}
	for _, path := range []string{admission + "mutatingwebhookconfigurations", admission + "validatingwebhookconfigurations"} {
		show(path, `{"metadata":{"name":"w"}}`, "Name,Webhooks,Age", "w", 0.0, "*")
	}
	const policy = `{"metadata":{"name":"p"},"spec":{"paramKind":{"apiVersion":"a/v1","kind":"K"},"reinvocationPolicy":"Never",
		"matchConstraints":{"resourceRules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["a"]}]},`
	show(admission+"validatingadmissionpolicies", policy+`"validations":[{"expression":"true"}]}}`, "Name,Validations,ParamKind,Age", "p", 1.0, "a/v1/K", "*")
	show(admission+"mutatingadmissionpolicies", policy+`"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{}]"}}]}}`, "Name,Mutations,ParamKind,Age", "p", 1.0, "a/v1/K", "*")
	show(admission+"validatingadmissionpolicybindings", `{"metadata":{"name":"b"},"spec":{"policyName":"p","paramRef":{"name":"x","parameterNotFoundAction":"Deny"},"validationActions":["Deny"]}}`,
		"Name,PolicyName,ParamRef,Age", "b", "p", "*/x", "*")
	show(admission+"mutatingadmissionpolicybindings", `{"metadata":{"name":"b"},"spec":{"policyName":"p","paramRef":{"namespace":"n","name":"x","parameterNotFoundAction":"Deny"}}}`,
		"Name,PolicyName,ParamRef,Age", "b", "p", "n/x", "*")
	show(flow+"flowschemas", `{"metadata":{"name":"f"},"spec":{"priorityLevelConfiguration":{"name":"l"},"distinguisherMethod":{"type":"ByUser"}}}`,
		"Name,PriorityLevel,MatchingPrecedence,DistinguisherMethod,Age,MissingPL", "f", "l", 1000.0, "ByUser", "*", "?")
	show(flow+"prioritylevelconfigurations", `{"metadata":{"name":"l"},"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Queue","queuing":{}}}}}`,
		"Name,Type,NominalConcurrencyShares,Queues,HandSize,QueueLengthLimit,Age", "l", "Limited", 30.0, 64.0, 8.0, 50.0, "*")
}

// read makes an object of YAML, and fills in the defaults.
func read(tb testing.TB, r Resource, object string) runtime.Object {
	tb.Helper()
	obj := r.New()
	if err := yaml.UnmarshalStrict([]byte(object), obj); err != nil {
		tb.Fatal(err)
	}
	if r.Strategy.Default != nil {
		r.Strategy.Default(obj)
	}
	return obj
}
