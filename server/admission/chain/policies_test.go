package chain

import (
	"strings"
	"testing"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/espalier-dev/espalier/server/endpoints/apitest"
)

func newFlags() *genericoptions.AdmissionOptions { return NewFlags() }

// matching is what policies are about: things.
func matching() *admissionregistration.MatchResources {
	return &admissionregistration.MatchResources{ResourceRules: []admissionregistration.NamedRuleWithOperations{{RuleWithOperations: admissionregistration.RuleWithOperations{
		Operations: []admissionregistration.OperationType{admissionregistration.Create, admissionregistration.Update},
		Rule:       admissionregistration.Rule{APIGroups: []string{"test.dev"}, APIVersions: []string{"v1"}, Resources: []string{"things"}},
	}}}}
}

// policy makes a validating policy and binds it.
func (e *env) policy(name string, spec admissionregistration.ValidatingAdmissionPolicySpec, parameters *admissionregistration.ParamRef) {
	e.TB.Helper()
	spec.MatchConstraints = matching()
	c := e.client.AdmissionregistrationV1()
	_, err := c.ValidatingAdmissionPolicies().Create(e.TB.Context(), &admissionregistration.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	must(e.TB, err)
	_, err = c.ValidatingAdmissionPolicyBindings().Create(e.TB.Context(), &admissionregistration.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistration.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ParamRef: parameters,
			ValidationActions: []admissionregistration.ValidationAction{admissionregistration.Deny}}}, metav1.CreateOptions{})
	must(e.TB, err)
}

func TestValidatingPolicy(t *testing.T) {
	e := startThings(t)
	e.policy("small", admissionregistration.ValidatingAdmissionPolicySpec{Validations: []admissionregistration.Validation{{
		Expression:        "object.spec.size <= 10 && (oldObject == null || oldObject.spec.size <= object.spec.size)",
		MessageExpression: "'size ' + string(object.spec.size) + ' of ' + object.metadata.name + ' does not do'",
	}}}, nil)
	apitest.Eventually(t, func() bool { return e.Do("POST", path+"?dryRun=All", thing("a", `{"size":11}`)).Code == 422 })
	e.Do("POST", path, thing("a", `{"size":11}`)).Is(422).Mentions("size 11 of a does not do")
	e.Do("POST", path, thing("a", `{"size":9}`)).Is(201)
	e.Patch("merge", path+"/a", `{"spec":{"size":8}}`).Is(422).Mentions("size 8 of a does not do")
	e.Patch("merge", path+"/a", `{"spec":{"size":10}}`).Is(200).Has("metadata.generation", 2)
}

func TestPolicyWithParameters(t *testing.T) {
	e := startThings(t)
	maps := e.client.CoreV1().ConfigMaps("default")
	_, err := maps.Create(t.Context(), &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "limits"}, Data: map[string]string{"size": "5"}}, metav1.CreateOptions{})
	must(t, err)
	e.policy("limits", admissionregistration.ValidatingAdmissionPolicySpec{
		ParamKind:   &admissionregistration.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
		Validations: []admissionregistration.Validation{{Expression: "object.spec.size <= int(params.data.size)"}},
	}, &admissionregistration.ParamRef{Name: "limits", Namespace: "default", ParameterNotFoundAction: new(admissionregistration.DenyAction)})
	apitest.Eventually(t, func() bool { return e.Do("POST", path+"?dryRun=All", thing("a", `{"size":6}`)).Code == 422 })
	e.Do("POST", path, thing("a", `{"size":5}`)).Is(201)
}

func TestMutatingPolicies(t *testing.T) {
	e := startThings(t)
	for name, mutation := range map[string]admissionregistration.Mutation{
		"apply": {PatchType: admissionregistration.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionregistration.ApplyConfiguration{
			Expression: `Object{spec: Object.spec{name: "applied to " + object.metadata.name, inner: Object.spec.inner{note: "n"}}}`}},
		"patch": {PatchType: admissionregistration.PatchTypeJSONPatch, JSONPatch: &admissionregistration.JSONPatch{
			Expression: `[JSONPatch{op: "add", path: "/spec/replicas", value: object.spec.size * 2}, JSONPatch{op: "add", path: "/spec/alien", value: "x"}]`}},
	} {
		constraints := matching()
		c := e.client.AdmissionregistrationV1()
		_, err := c.MutatingAdmissionPolicies().Create(t.Context(), &admissionregistration.MutatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistration.MutatingAdmissionPolicySpec{MatchConstraints: constraints, Mutations: []admissionregistration.Mutation{mutation},
				ReinvocationPolicy: admissionregistration.IfNeededReinvocationPolicy},
		}, metav1.CreateOptions{})
		must(t, err)
		_, err = c.MutatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistration.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistration.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
		}, metav1.CreateOptions{})
		must(t, err)
	}
	last := ""
	defer func() {
		if t.Failed() {
			t.Log(last)
		}
	}()
	apitest.Eventually(t, func() bool {
		a := e.Do("POST", path+"?dryRun=All", thing("a", `{"size":1}`))
		last = string(a.Body)
		return a.Code == 201 && a.At("spec.name") != nil && a.At("spec.replicas") != nil
	})
	made := e.Do("POST", path, thing("a", `{"size":4}`)).Is(201).
		Has("spec", map[string]any{"inner": map[string]any{"mode": "fast", "note": "n"}, "name": "applied to a", "replicas": 8, "size": 4}).Has("metadata.generation", 1)
	if len(made.Warnings) != 1 || !strings.Contains(made.Warnings[0], "spec.alien") {
		t.Errorf("the warnings are %q", made.Warnings)
	}
	e.Do("GET", path+"/a", "").Is(200).Has("spec", made.At("spec")).Has("metadata.resourceVersion", made.At("metadata.resourceVersion"))
}
