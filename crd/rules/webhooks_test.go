package rules

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// goodHook has what a webhook must say.
const goodHook = `name: a.b.c, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: "https://example.com/x"}`

func webhooksOf(hooks ...string) string { return "{webhooks: [{" + strings.Join(hooks, "}, {") + "}]}" }

// hookWith replaces what a good webhook says of one thing.
func hookWith(key, value string) string {
	for _, part := range []string{"name: a.b.c", "sideEffects: None", "admissionReviewVersions: [v1]", `clientConfig: {url: "https://example.com/x"}`} {
		if strings.HasPrefix(part, key+":") {
			return strings.Replace(goodHook, part, key+": "+value, 1)
		}
	}
	return goodHook + ", " + key + ": " + value
}

func TestValidateWebhooks(t *testing.T) {
	const at = "webhooks[0]."
	cases := []validationCase{
		{"none", `{}`, nil},
		{"the least", webhooksOf(goodHook), nil},
		{"nothing said", webhooksOf(""), []string{
			at + "name: Required value", at + "sideEffects: Required value: must specify one of None, NoneOnDryRun",
			at + "clientConfig: Required value: exactly one of url or service is required",
			at + "admissionReviewVersions: Required value: must specify one of v1, v1beta1",
		}},
		{"short name", webhooksOf(hookWith("name", "a.b")), []string{at + `name: Invalid value: "a.b": should be a domain with at least three segments separated by dots`}},
		{"the same twice", webhooksOf(goodHook, goodHook), []string{`webhooks[1].name: Duplicate value: "a.b.c"`}},
		{"side effects", webhooksOf(hookWith("sideEffects", "Some")), []string{at + `sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"`}},
		{"policies", webhooksOf(hookWith("failurePolicy", "Try, matchPolicy: Some")), []string{
			at + `failurePolicy: Unsupported value: "Try": supported values: "Fail", "Ignore"`,
			at + `matchPolicy: Unsupported value: "Some": supported values: "Equivalent", "Exact"`,
		}},
		{"timeout", webhooksOf(hookWith("timeoutSeconds", "31")), []string{at + "timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"}},
		{"versions", webhooksOf(hookWith("admissionReviewVersions", "[v2, v2, V1]")), []string{
			at + `admissionReviewVersions[1]: Invalid value: "v2": duplicate version`,
			at + `admissionReviewVersions[2]: Invalid value: "V1": a DNS-1035 label…`,
			at + `admissionReviewVersions: Invalid value: ["v2","v2","V1"]: must include at least one of v1, v1beta1`,
		}},
		{"plain HTTP", webhooksOf(hookWith("clientConfig", `{url: "http://example.com"}`)),
			[]string{at + `clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]`}},
		{"both", webhooksOf(hookWith("clientConfig", `{url: "https://example.com", service: {name: a, namespace: b}}`)),
			[]string{at + "clientConfig: Required value: exactly one of url or service is required"}},
		{"service", webhooksOf(hookWith("clientConfig", `{service: {name: a, namespace: b, path: /x/y}}`)), nil},
		{"service without a namespace, as kube-apiserver reports it", webhooksOf(hookWith("clientConfig", `{service: {name: a}}`)), []string{at + "clientConfig.service.name: Required value"}},
		{"no service", webhooksOf(hookWith("clientConfig", `{service: {port: 70000, path: x}}`)), []string{
			at + "clientConfig.service.name: Required value", at + "clientConfig.service.namespace: Required value",
			at + "clientConfig.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive",
			at + `clientConfig.service.path: Invalid value: "x": must start with a '/'`, at + `clientConfig.service.path: Invalid value: "x": segment[0] may not be empty`,
		}},
		{"selectors", webhooksOf(hookWith("objectSelector", `{matchLabels: {"a b": c}}`)), []string{at + `objectSelector.matchLabels: Invalid value: "a b": name part…`}},
	}
	validateAll(t, &ValidatingWebhookConfiguration, append(cases, ruleCases()...))
	validateAll(t, &MutatingWebhookConfiguration, append(append(cases, conditionCases()...), validationCase{
		"reinvocation", webhooksOf(hookWith("reinvocationPolicy", "Often")),
		[]string{at + `reinvocationPolicy: Unsupported value: "Often": supported values: "IfNeeded", "Never"`},
	}))
}

func ruleCases() []validationCase {
	const at = "webhooks[0].rules[0]."
	rule := func(said string) string { return webhooksOf(hookWith("rules", "[{"+said+"}]")) }
	resources := func(list string) string {
		return rule(`operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: ` + list)
	}
	return []validationCase{
		{"rule", resources(`[pods, pods/status, "*/scale"]`), nil},
		{"all resources", resources(`["*/*"]`), nil},
		{"nothing in a rule", rule(""), []string{
			at + "operations: Required value", at + "apiGroups: Required value", at + "apiVersions: Required value", at + "resources: Required value",
		}},
		{"stars beside others", rule(`operations: ["*", CREATE], apiGroups: ["*", a], apiVersions: ["*", v1], resources: ["*/*", a]`), []string{
			at + `operations: Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations`,
			at + `apiGroups: Invalid value: ["*","a"]: if '*' is present, must not specify other API groups`,
			at + `apiVersions: Invalid value: ["*","v1"]: if '*' is present, must not specify other API versions`,
			at + `resources: Invalid value: ["*/*","a"]: if '*/*' is present, must not specify other resources`,
		}},
		{"words", rule(`operations: [READ], apiGroups: [""], apiVersions: [""], resources: [""], scope: Moon`), []string{
			at + `operations[0]: Unsupported value: "READ": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"`,
			at + "apiVersions[0]: Required value", at + "resources[0]: Required value",
			at + `scope: Unsupported value: "Moon": supported values: "*", "Cluster", "Namespaced"`,
		}},
		{"subresources twice", resources(`[pods/*, pods/status, "*/scale", jobs/scale]`), []string{
			at + `resources[1]: Invalid value: "pods/status": if 'pods/*' is present, must not specify pods/status`,
			at + `resources[3]: Invalid value: "jobs/scale": if '*/scale' is present, must not specify jobs/scale`,
		}},
		{"resources twice", resources(`["*", pods]`), []string{
			at + `resources: Invalid value: ["*","pods"]: if '*' is present, must not specify other resources without subresources`,
		}},
	}
}

func conditionCases() []validationCase {
	const at = "webhooks[0].matchConditions"
	conditions := func(list string) string { return webhooksOf(hookWith("matchConditions", "["+list+"]")) }
	many := strings.Repeat(`{name: a, expression: "true"}, `, 65)
	return []validationCase{
		{"conditions", conditions(`{name: a, expression: "object.kind == 'x' && authorizer.group('').resource('pods').check('get').allowed()"}`), nil},
		{"no condition", conditions(`{}`), []string{at + "[0].expression: Required value", at + "[0].name: Required value"}},
		{"not a boolean", conditions(`{name: a, expression: "'x'"}`), []string{at + `[0].expression: Invalid value: "'x'": must evaluate to bool but got string`}},
		{"no parameters", conditions(`{name: a, expression: "params.x"}`), []string{
			at + `[0].expression: Invalid value: "params.x": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params'…`,
		}},
		{"names", conditions(`{name: a b, expression: "true"}, {name: c, expression: "true"}, {name: c, expression: "true"}`), []string{
			at + `[0].name: Invalid value: "a b": name part…`, at + `[2].name: Duplicate value: "c"`,
		}},
		{"too many", conditions(many), []string{at + ": Too many: 65: must have at most 64 items"}},
	}
}

func TestWebhooksKeepWhatTheyHad(t *testing.T) {
	old := read(t, &ValidatingWebhookConfiguration, webhooksOf(
		hookWith("sideEffects", "Some")+`, matchConditions: [{name: a, expression: "no such thing"}], objectSelector: {matchExpressions: [{key: a, operator: In, values: [b c]}]}`,
		strings.Replace(goodHook, "[v1]", "[v9]", 1))).(*admissionv1.ValidatingWebhookConfiguration)
	validate := ValidatingWebhookConfiguration.Validate
	if errs := validate(old, nil); len(errs) != 5 {
		t.Errorf("a new one: %v", errs)
	}
	complain(t, validate(old, old))
	changed := old.DeepCopy()
	changed.Webhooks[0].MatchConditions[0].Expression = "nor this"
	complain(t, validate(changed, old), `webhooks[0].matchConditions[0].expression: Invalid value: "nor this": compilation failed…`)
}

func TestWebhookDefaults(t *testing.T) {
	said := webhooksOf(strings.Replace(goodHook, `{url: "https://example.com/x"}`, "{service: {name: a, namespace: b}}", 1) + `, rules: [{}]`)
	w := read(t, &MutatingWebhookConfiguration, said).(*admissionv1.MutatingWebhookConfiguration).Webhooks[0]
	got := fmt.Sprintln(*w.FailurePolicy, *w.MatchPolicy, *w.TimeoutSeconds, *w.ReinvocationPolicy, *w.NamespaceSelector, *w.ObjectSelector,
		*w.ClientConfig.Service.Port, *w.Rules[0].Scope)
	got = strings.TrimSpace(got)
	if want := "Fail Equivalent 10 Never {map[] []} {map[] []} 443 *"; got != want {
		t.Errorf("the defaults are %s, not %s", got, want)
	}
}

func TestReservedNames(t *testing.T) {
	if admissionName("a.static.k8s.io", false) == nil {
		t.Error("a client may take a name that is for files")
	}
	if wrong := admissionName("static.k8s.io.a", false); wrong != nil {
		t.Error(wrong)
	}
	if wrong := admissionName("a.static.k8s.io", true); wrong != nil { // more follows
		t.Error(wrong)
	}
}

// TestExpressionsAreBounded is about what would keep a server busy.
func TestExpressionsAreBounded(t *testing.T) {
	condition := func(i int, expression string) admissionv1.MatchCondition {
		return admissionv1.MatchCondition{Name: fmt.Sprint("c", i), Expression: expression}
	}
	at := field.NewPath("x")
	t.Run("many", func(t *testing.T) {
		cel := newExpressions()
		cel.count = maxExpressions
		complain(t, cel.matchConditions(at, []admissionv1.MatchCondition{condition(0, "true")}, false),
			"x[0].expression: Forbidden: an object may have at most 1000 CEL expressions; use several objects")
	})
	t.Run("the same is one", func(t *testing.T) {
		cel := newExpressions()
		complain(t, cel.matchConditions(at, []admissionv1.MatchCondition{condition(0, "true"), condition(1, "true")}, false))
		if cel.count != 1 {
			t.Errorf("%d expressions are counted", cel.count)
		}
	})
	t.Run("long", func(t *testing.T) {
		complain(t, newExpressions().matchConditions(at, []admissionv1.MatchCondition{condition(0, strings.Repeat("true ||", maxExpressionBytes/7+1)+"true")}, false),
			"x[0].expression: Forbidden: the CEL expressions of an object may have at most 131072 bytes together; use several objects")
	})
	t.Run("types that double", func(t *testing.T) {
		expression := "true"
		for i := 40; i > 0; i-- {
			expression = fmt.Sprintf("[{a%d: a%d}].all(a%d, %s)", i-1, i-1, i, expression)
		}
		errs := newExpressions().matchConditions(at, []admissionv1.MatchCondition{condition(0, "[1].all(a0, "+expression+")")}, false)
		if len(errs) != 1 || !strings.Contains(errs[0].Detail, "types of its parts are too large") {
			t.Error(errs)
		}
	})
	t.Run("types that double in a map", func(t *testing.T) {
		expression := "true"
		for i := 40; i > 0; i-- {
			expression = fmt.Sprintf("[{a%d: 1}.transformMap(k, v, k)].all(a%d, %s)", i-1, i, expression)
		}
		errs := newExpressions().matchConditions(at, []admissionv1.MatchCondition{condition(0, "[1].all(a0, "+expression+")")}, false)
		if len(errs) != 1 || !strings.Contains(errs[0].Detail, "types of its parts are too large") {
			t.Error(errs)
		}
	})
	t.Run("types that do not", func(t *testing.T) {
		for _, expression := range []string{
			"object.a.all(x, object.b.exists(y, x.c.map(z, {z: [y, x]}).size() > 0))",
			"[[[[[[[[[[1]]]]]]]]]].size() == 1 && {'a': {'b': {'c': {'d': [1, 2]}}}}.size() == 1",
			strings.Repeat("object.x.y == {'a': 'b'} || ", 400) + "true",
			"(" + strings.Repeat("object.x + ", 100) + "object.y).size() > 3",
		} {
			complain(t, newExpressions().matchConditions(at, []admissionv1.MatchCondition{condition(0, expression)}, false))
		}
	})
}

// A configuration may keep versions that are not known if it had such.
func TestUnknownReviewVersions(t *testing.T) {
	with := func(versions string) *admissionv1.ValidatingWebhookConfiguration {
		return read(t, &ValidatingWebhookConfiguration, webhooksOf(hookWith("admissionReviewVersions", versions))).(*admissionv1.ValidatingWebhookConfiguration)
	}
	for old, fine := range map[string]bool{"[]": false, "[v1]": false, "[v1beta1, v8]": false, "[v8]": true} {
		var wrong []string
		if !fine {
			wrong = []string{`webhooks[0].admissionReviewVersions: Invalid value: ["v9"]: must include at least one of v1, v1beta1`}
		}
		complain(t, ValidatingWebhookConfiguration.Validate(with("[v9]"), with(old)), wrong...)
	}
}
