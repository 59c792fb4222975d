package builtin

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/crd/rules"
)

// FuzzValidate passes every resource arbitrary decoded objects. Defaults, validation, rows
// and the validation of updates must end soon, and must not panic.
func FuzzValidate(f *testing.F) {
	resources := ours()
	seed := func(object string) {
		data, err := yaml.YAMLToJSON([]byte(object))
		if err != nil {
			f.Fatal(err)
		}
		for i := range resources {
			f.Add(uint8(i), data)
		}
	}
	seed(`{}`)
	seed(`{webhooks: [{name: a.b.c, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: "https://example.com/x"},
		rules: [{operations: ["*"], resources: ["*/*", a/]}], matchConditions: [{name: a, expression: "[1].map(x, {x: x})"}]}]}`)
	seed(`{metadata: {name: p}, spec: {matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]},
		validations: [{expression: "true"}], mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{}"}}],
		variables: [{name: a, expression: "{object: object}"}, {name: b, expression: "{variables.a: variables.a}"}]}}`)
	seed(`{status: {typeChecking: {expressionWarnings: [{fieldRef: "spec.validations[?(@.a==1)].expression", warning: w}]}, conditions: [{type: A}]}}`)
	seed(`{roleRef: {kind: Role}, subjects: [{kind: User}], rules: [{nonResourceURLs: ["*"]}], aggregationRule: {clusterRoleSelectors: [{}]}}`)
	for _, schema := range bootstrap.MandatoryFlowSchemas {
		data, err := json.Marshal(schema)
		if err != nil {
			f.Fatal(err)
		}
		seed(string(data))
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		r := resources[int(which)%len(resources)]
		obj, old := r.New(), r.New()
		if json.Unmarshal(data, obj) != nil {
			return
		}
		began := time.Now()
		if r.Strategy.Default != nil {
			r.Strategy.Default(obj)
		}
		if r.Strategy.Validate != nil {
			_ = r.Strategy.Validate(context.Background(), obj).ToAggregate()
		}
		if r.Strategy.ValidateUpdate != nil {
			_ = r.Strategy.ValidateUpdate(context.Background(), obj, old)
			_ = r.Strategy.ValidateUpdate(context.Background(), old, obj)
			_ = r.Strategy.ValidateUpdate(context.Background(), obj, obj)
		}
		if _, ok := obj.(*admissionv1.ValidatingAdmissionPolicy); ok {
			_ = rules.ValidatingAdmissionPolicy.Status.Validate(obj, old).ToAggregate()
		}
		_ = newTable(&r).row(obj)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
