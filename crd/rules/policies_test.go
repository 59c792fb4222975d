package rules

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	goodConstraints = `matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]}`
	goodValidation  = `validations: [{expression: "true"}]`
	goodMutation    = `mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{}"}}]`
)

func policyOf(parts ...string) string {
	return "{metadata: {name: p}, spec: {" + strings.Join(parts, ", ") + "}}"
}

func TestValidatePolicies(t *testing.T) {
	for _, kind := range []struct {
		resource *Rules
		rest     string
		also     []string // about operations
	}{{&ValidatingAdmissionPolicy, goodValidation, nil}, {&MutatingAdmissionPolicy, "reinvocationPolicy: Never, " + goodMutation, []string{
		`spec.matchConstraints.resourceRules.operations: Unsupported value: "READ": supported values: "*", "CONNECT", "CREATE", "UPDATE"`,
	}}} {
		of := func(parts ...string) string { return policyOf(append(parts, kind.rest)...) }
		validateAll(t, kind.resource, []validationCase{
			{"the least", of(goodConstraints), nil},
			{"no constraints", of(), []string{"spec.matchConstraints: Required value"}},
			{"no rules", of("matchConstraints: {}"), []string{"spec.matchConstraints.resourceRules: Required value"}},
			{"words", of(`failurePolicy: Try`, `matchConstraints: {matchPolicy: Some, resourceRules: [{resourceNames: [a, a, b/c], operations: [READ], apiGroups: [""], apiVersions: [v1], resources: [a]}]}`), append([]string{
				`spec.failurePolicy: Unsupported value: "Try": supported values: "Fail", "Ignore"`,
				`spec.matchConstraints.matchPolicy: Unsupported value: "Some": supported values: "Equivalent", "Exact"`,
				`spec.matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: "a"`,
				`spec.matchConstraints.resourceRules[0].resourceNames[2]: Invalid value: "b/c": may not contain '/'`,
				`spec.matchConstraints.resourceRules[0].operations[0]: Unsupported value: "READ": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"`,
			}, kind.also...)},
			{"parameters", of(goodConstraints, "paramKind: {apiVersion: a/v1, kind: Limit}", `matchConditions: [{name: a, expression: "params.x == 1"}]`), nil},
			{"kinds", of(goodConstraints, "paramKind: {apiVersion: a/b/c, kind: 1x}"), []string{
				`spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c`,
				`spec.paramKind.kind: Invalid value: "1x": may have mixed case, but should otherwise match: a DNS-1035 label…`,
			}},
			{"a wrong version", of(goodConstraints, "paramKind: {apiVersion: a/V1, kind: Limit}"), []string{`spec.paramKind.apiVersion: Invalid value: "V1": a DNS-1035 label…`}},
			{"no kind", of(goodConstraints, "paramKind: {apiVersion: A/}"), []string{
				`spec.paramKind.apiVersion: Invalid value: "A": a lowercase RFC 1123 subdomain…`,
				`spec.paramKind.apiVersion: Invalid value: "A/": version must be specified`, "spec.paramKind.kind: Required value",
			}},
			{"variables", of(goodConstraints, `variables: [{name: a, expression: "object.x"}, {name: b, expression: "variables.a + 1"}]`), nil},
			{"wrong variables", of(goodConstraints, `variables: [{}, {name: for, expression: "1"}, {name: b, expression: "variables.c"}]`), []string{
				"spec.variables[0].name: Required value: name is not specified", "spec.variables[0].expression: Required value: expression is not specified",
				`spec.variables[1].name: Invalid value: "for": must be a valid CEL identifier`,
				`spec.variables[2].expression: Invalid value: "variables.c": compilation failed: ERROR: <input>:1:10: undefined field 'c'…`,
			}},
			{"conditions see no variables", of(goodConstraints, `variables: [{name: a, expression: "true"}], matchConditions: [{name: a, expression: variables.a}]`), []string{
				`spec.matchConditions[0].expression: Invalid value: "variables.a": compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables'…`,
			}},
		})
	}
}

func TestValidateValidations(t *testing.T) {
	of := func(parts ...string) string { return policyOf(append(parts, goodConstraints)...) }
	many := "auditAnnotations: [" + strings.Repeat(`{key: a, valueExpression: "'x'"},`, 21) + "]"
	validateAll(t, &ValidatingAdmissionPolicy, []validationCase{
		{"nothing", of(), []string{
			"spec.validations: Required value: validations or auditAnnotations must contain at least one item",
			"spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item",
		}},
		{"everything", of(`variables: [{name: v, expression: object.spec}]`, `validations: [{expression: variables.v.x > 1, messageExpression: "'x is ' + string(variables.v.x)", reason: Forbidden, message: no}]`,
			`auditAnnotations: [{key: k, valueExpression: "string(variables.v.x)"}]`), nil},
		{"annotations only", of(`auditAnnotations: [{key: k, valueExpression: "'x'"}]`), nil},
		{"blanks", of(`validations: [{expression: " ", message: " ", messageExpression: " ", reason: Because}]`), []string{
			"spec.validations[0].expression: Required value: expression is not specified",
			`spec.validations[0].message: Invalid value: " ": message must be non-empty if specified`,
			`spec.validations[0].messageExpression: Invalid value: " ": must be non-empty if specified`,
			`spec.validations[0].reason: Unsupported value: "Because": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"`,
		}},
		{"types", of(`validations: [{expression: "1", message: "a\nb", messageExpression: "authorizer.path('/x')"}]`), []string{
			`spec.validations[0].expression: Invalid value: "1": must evaluate to bool but got int`,
			`spec.validations[0].message: Invalid value: "a\nb": message must not contain line breaks`,
			`spec.validations[0].messageExpression: Invalid value: "authorizer.path('/x')": compilation failed: ERROR: <input>:1:1: undeclared reference to 'authorizer'…`,
		}},
		{"columns are the author's", of(`validations: [{expression: "  nothing"}]`), []string{
			`spec.validations[0].expression: Invalid value: "  nothing": compilation failed: ERROR: <input>:1:3: undeclared reference to 'nothing'…`,
		}},
		{"annotations", of(`auditAnnotations: [{key: "a b", valueExpression: "1"}, {key: c}, {key: c, valueExpression: "'x'"}]`), []string{
			`spec.auditAnnotations[0].key: Invalid value: "p/a b": name part…`,
			`spec.auditAnnotations[0].valueExpression: Invalid value: "1": must evaluate to one of [string null_type] but got int`,
			"spec.auditAnnotations[1].valueExpression: Required value: valueExpression is not specified",
			`spec.auditAnnotations[2].key: Duplicate value: "c"`,
		}},
		{"long annotation", of(fmt.Sprintf("auditAnnotations: [{key: a, valueExpression: \"'%s'\"}]", strings.Repeat("x", maxAuditExpression))), []string{
			"spec.auditAnnotations[0].valueExpression: Required value: must not exceed 5120 bytes in length",
		}},
		{"many annotations", of(many), []string{"spec.auditAnnotations: Invalid value: …"}},
	})
}

func TestValidateMutations(t *testing.T) {
	of := func(mutation string) string {
		return policyOf(goodConstraints, "reinvocationPolicy: IfNeeded", "mutations: ["+mutation+"]")
	}
	const at = "spec.mutations[0]."
	validateAll(t, &MutatingAdmissionPolicy, []validationCase{
		{"nothing", policyOf(goodConstraints), []string{
			"spec.mutations: Required value: mutations must contain at least one item", "spec.reinvocationPolicy: Required value",
		}},
		{"apply", of(`{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"}}`), nil},
		{"patch", of(`{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 'c'}]"}}`), nil},
		{"none", of(`{}`), []string{at + "patchType: Required value"}},
		{"another", of(`{patchType: Magic}`), []string{at + `patchType: Unsupported value: "Magic": supported values: "ApplyConfiguration", "JSONPatch"`}},
		{"the other one", of(`{patchType: JSONPatch, applyConfiguration: {}}`), []string{
			at + `applyConfiguration: Invalid value: "{applyConfiguration}": must not be specified when patchType is JSONPatch`,
			at + "jsonPatch: Required value: must be specified when patchType is JSONPatch",
		}},
		{"the other other one", of(`{patchType: ApplyConfiguration, jsonPatch: {}}`), []string{
			at + `jsonPatch: Invalid value: "{jsonPatch}": must not be specified when patchType is ApplyConfiguration`,
			at + "applyConfiguration: Required value: must be specified when patchType is ApplyConfiguration",
		}},
		{"blank", of(`{patchType: JSONPatch, jsonPatch: {expression: " "}}`), []string{at + "jsonPatch.expression: Required value"}},
		{"what is applied", of(`{patchType: ApplyConfiguration, applyConfiguration: {expression: "1"}}`), []string{
			at + `applyConfiguration.expression: Invalid value: "1": must evaluate to Object but got int`,
		}},
		{"type", of(`{patchType: JSONPatch, jsonPatch: {expression: "Object{}"}}`), []string{
			at + `jsonPatch.expression: Invalid value: "Object{}": must evaluate to list(JSONPatch) but got Object`,
		}},
		{"nothing is left to mutate", policyOf("reinvocationPolicy: Never", goodMutation, strings.Replace(goodConstraints, "CREATE", "DELETE", 1)), []string{
			`spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"`,
		}},
	})
}

func TestValidatePolicyBindings(t *testing.T) {
	for _, kind := range []struct {
		resource *Rules
		rest     string
	}{{&ValidatingAdmissionPolicyBinding, ", validationActions: [Deny]"}, {&MutatingAdmissionPolicyBinding, ""}} {
		of := func(said string) string { return "{spec: {" + said + kind.rest + "}}" }
		validateAll(t, kind.resource, []validationCase{
			{"the least", of("policyName: p"), nil},
			{"parameters", of("policyName: p, paramRef: {name: a, namespace: b, parameterNotFoundAction: Deny}, matchResources: {}"), nil},
			{"no policy", of(`policyName: ""`), []string{"spec.policyName: Required value"}},
			{"a wrong name", of("policyName: P"), []string{`spec.policyName: Invalid value: "P": a lowercase RFC 1123 subdomain…`}},
			{"no parameter", of("policyName: p, paramRef: {}"), []string{
				"spec.paramRef: Required value: one of name or selector must be specified", "spec.paramRef.parameterNotFoundAction: Required value",
			}},
			{"no action", of(`policyName: p, paramRef: {name: a, parameterNotFoundAction: ""}`), []string{"spec.paramRef.parameterNotFoundAction: Required value"}},
			{"two parameters", of("policyName: p, paramRef: {name: a, selector: {}, parameterNotFoundAction: Maybe}"), []string{
				"spec.paramRef.name: Forbidden: name and selector are mutually exclusive",
				"spec.paramRef.selector: Forbidden: name and selector are mutually exclusive",
				`spec.paramRef.parameterNotFoundAction: Unsupported value: "Maybe": supported values: "Deny", "Allow"`,
			}},
			{"a wrong selector", of(`policyName: p, paramRef: {selector: {matchLabels: {"a b": c}}, parameterNotFoundAction: Deny}`),
				[]string{`spec.paramRef.selector.matchLabels: Invalid value: "a b": name part…`}},
			{"wrong selectors of objects", of(`policyName: p, matchResources: {namespaceSelector: {matchLabels: {"a b": c}}, objectSelector: {matchLabels: {"d e": f}}}`), []string{
				`spec.matchResources.namespaceSelector.matchLabels: Invalid value: "a b": name part…`,
				`spec.matchResources.objectSelector.matchLabels: Invalid value: "d e": name part…`,
			}},
			{"a wrong rule", of("policyName: p, matchResources: {excludeResourceRules: [{operations: [CREATE], apiVersions: [v1], resources: [a]}]}"),
				[]string{"spec.matchResources.excludeResourceRules[0].apiGroups: Required value"}},
		})
	}
	validateAll(t, &ValidatingAdmissionPolicyBinding, []validationCase{
		{"no action", "{spec: {policyName: p}}", []string{"spec.validationActions: Required value"}},
		{"actions", "{spec: {policyName: p, validationActions: [Warn, Audit, Warn, Shout]}}", []string{
			`spec.validationActions[2]: Duplicate value: "Warn"`,
			`spec.validationActions[3]: Unsupported value: "Shout": supported values: "Audit", "Deny", "Warn"`,
		}},
		{"deny and warn", "{spec: {policyName: p, validationActions: [Deny, Warn]}}", []string{`spec.validationActions: Invalid value: ["Deny","Warn"]: must not contain both Deny and Warn…`}},
	})
}

// Defaulting fills in what decides which objects match; an object without it is not valid.
func TestWhatMatchesIsSaid(t *testing.T) {
	complain(t, validateMatchResources(field.NewPath("x"), &admissionv1.MatchResources{}, operations),
		"x.matchPolicy: Required value", "x.namespaceSelector: Required value", "x.objectSelector: Required value")
}

func TestPoliciesKeepTheirConditions(t *testing.T) {
	old := read(t, &ValidatingAdmissionPolicy, policyOf(goodConstraints, goodValidation, `matchConditions: [{name: a, expression: "no such thing"}]`)).(*admissionv1.ValidatingAdmissionPolicy)
	if len(validateValidatingPolicy(old, nil)) != 1 {
		t.Error("a new policy may have a condition that does not compile")
	}
	complain(t, validateValidatingPolicy(old, old))
	changed := old.DeepCopy()
	changed.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"} // what conditions see has changed
	if len(validateValidatingPolicy(changed, old)) != 1 {
		t.Error("a condition is not looked at again when there are parameters")
	}
}

func TestValidatePolicyStatus(t *testing.T) {
	complain(t, validateValidatingPolicyStatus(&admissionv1.ValidatingAdmissionPolicyStatus{TypeChecking: &admissionv1.TypeChecking{
		ExpressionWarnings: []admissionv1.ExpressionWarning{{FieldRef: "spec.validations[0].expression", Warning: "w"}, {}, {FieldRef: "a[", Warning: "w"}},
	}}), "status.typeChecking.expressionWarnings[1].warning: Required value", "status.typeChecking.expressionWarnings[1].fieldRef: Required value",
		`status.typeChecking.expressionWarnings[2].fieldRef: Invalid value: "a[": invalid JSONPath: unterminated array`)
}

// TestVariablesThatDouble is about variables whose types double: without a bound,
// twenty of them take minutes.
func TestVariablesThatDouble(t *testing.T) {
	variables := []string{`{name: v0, expression: "1"}`}
	for i := range 40 {
		variables = append(variables, fmt.Sprintf(`{name: v%d, expression: "{variables.v%d: variables.v%d}"}`, i+1, i, i))
	}
	p := read(t, &ValidatingAdmissionPolicy, policyOf(goodConstraints, goodValidation, "variables: ["+strings.Join(variables, ",")+"]"))
	errs := validateValidatingPolicy(p.(*admissionv1.ValidatingAdmissionPolicy), nil)
	if len(errs) == 0 || errs[0].Field != "spec.variables[7].expression" || !strings.Contains(errs[0].Detail, "types of its parts are too large") {
		t.Error(errs)
	}
}
