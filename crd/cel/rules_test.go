package cel

import (
	"slices"
	"strings"
	"testing"

	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/bridge"
	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// specWith is a schema whose spec has the given properties and rules.
func specWith(properties, rules string) string {
	return `{"type":"object","properties":{"spec":{"type":"object","properties":{` + properties + `},"x-kubernetes-validations":[` + rules + `]}}}`
}

func compileSchema(t testing.TB, schema string) (*espalier.Schema, *set) {
	t.Helper()
	s, err := espalier.Compile([]byte(schema), espalier.CompileOptions{})
	if err != nil {
		t.Fatalf("%v\n%s", err, schema)
	}
	set, err := compilePart(bridge.Plan(s), true)
	if err != nil {
		t.Fatal(err)
	}
	return s, set
}

func validate(t testing.TB, schema, object, old string) espalier.Validation {
	t.Helper()
	s, set := compileSchema(t, schema)
	o := espalier.ValidateOptions{Rules: bridge.Rules(set).(*espalier.Rules)}
	if old != "" {
		o.Old = []byte(old)
	}
	v, err := s.Validate([]byte(object), o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func rendered(list []espalier.Violation) []string {
	var texts []string
	for _, v := range list {
		texts = append(texts, v.Error())
	}
	slices.Sort(texts)
	return texts
}

func TestValidate(t *testing.T) {
	const a = `"a":{"type":"integer"},"b":{"type":"string"},"l":{"type":"array","items":{"type":"string"}}`
	for _, c := range []struct {
		name, schema, object, old string
		errors, warnings          []string
	}{
		{
			name:   "what holds is silent",
			schema: specWith(a, `{"rule":"self.a > 1"}`), object: `{"spec":{"a":2}}`,
		},
		{
			name:   "the rule is the message without one",
			schema: specWith(a, `{"rule":" self.a > 1 "}`), object: `{"spec":{"a":1}}`,
			errors: []string{"spec: Invalid value: failed rule: self.a > 1"},
		},
		{
			name:   "a message is trimmed",
			schema: specWith(a, `{"rule":"self.a > 1","message":" too small "}`), object: `{"spec":{"a":1}}`,
			errors: []string{"spec: Invalid value: too small"},
		},
		{
			name: "reasons choose the type of the error",
			schema: specWith(a, `{"rule":"false","message":"f","reason":"FieldValueForbidden"},{"rule":"!true","message":"r","reason":"FieldValueRequired"},`+
				`{"rule":"1 == 2","message":"d","reason":"FieldValueDuplicate"},{"rule":"2 == 3","message":"i","reason":"FieldValueInvalid"}`), object: `{"spec":{}}`,
			errors: []string{"spec: Duplicate value", "spec: Forbidden: f", "spec: Invalid value: i", "spec: Required value: r"},
		},
		{
			name: "a fieldPath is appended",
			schema: specWith(a+`,"m":{"type":"object","additionalProperties":{"type":"string"}},"x.y":{"type":"string"}`,
				`{"rule":"false","message":"1","fieldPath":".b"},{"rule":"false && true","message":"2","fieldPath":".m['it\\'s']"},{"rule":"!true","message":"3","fieldPath":"['x.y']"}`),
			object: `{"spec":{}}`,
			errors: []string{"spec.b: Invalid value: 1", "spec.m[it's]: Invalid value: 2", "spec.x.y: Invalid value: 3"},
		},
		{
			name:   "the root has no path",
			schema: `{"type":"object","properties":{"spec":{"type":"string"}},"x-kubernetes-validations":[{"rule":"false","message":"m"},{"rule":"!true","message":"m","fieldPath":".spec"}]}`,
			object: `{"spec":"x"}`, errors: []string{"<nil>: Invalid value: m", "spec: Invalid value: m"},
		},
		{
			name:   "scalars are shown",
			schema: specWith(`"a":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 5","message":"m"}]},"b":{"type":"string","x-kubernetes-validations":[{"rule":"self == 'y'","reason":"FieldValueDuplicate"}]}`, ``),
			object: `{"spec":{"a":1,"b":"x"}}`, errors: []string{`spec.a: Invalid value: 1: m`, `spec.b: Duplicate value: "x"`},
		},
		{
			name:   "lists are not",
			schema: specWith(`"l":{"type":"array","items":{"type":"string"},"x-kubernetes-validations":[{"rule":"self.size() > 5","message":"m"},{"rule":"self.size() > 6","reason":"FieldValueDuplicate"}]}`, ``),
			object: `{"spec":{"l":["a"]}}`, errors: []string{`spec.l: Duplicate value`, `spec.l: Invalid value: m`},
		},
		{
			name: "items and values of maps have their place",
			schema: specWith(`"l":{"type":"array","items":{"type":"integer","x-kubernetes-validations":[{"rule":"self < 2","message":"m"}]}},`+
				`"m":{"type":"object","additionalProperties":{"type":"boolean","x-kubernetes-validations":[{"rule":"self","message":"m"}]}}`, ``),
			object: `{"spec":{"l":[1,2],"m":{"x":false,"y":true}}}`, errors: []string{"spec.l[1]: Invalid value: 2: m", "spec.m[x]: Invalid value: false: m"},
		},
		{
			name:   "null is not validated",
			schema: specWith(`"a":{"type":"integer","nullable":true,"x-kubernetes-validations":[{"rule":"false"}]}`, ``), object: `{"spec":{"a":null}}`,
		},
		{
			name:   "a messageExpression is the message",
			schema: specWith(a, `{"rule":"false","messageExpression":"'  a is ' + string(self.a) + ' '"}`), object: `{"spec":{"a":7}}`,
			errors: []string{"spec: Invalid value: a is 7"},
		},
		{
			name: "a messageExpression that gives nothing useful is ignored",
			schema: specWith(a, `{"rule":"false","message":"1","messageExpression":"' '"},{"rule":"!true","message":"2","messageExpression":"'a\\nb'"},`+
				`{"rule":"1 > 2","message":"3","messageExpression":"string(self.a / 0)"},{"rule":"2 > 3","messageExpression":"oldSelf.b"},`+
				`{"rule":"3 > 4","message":"5","messageExpression":"self.l.map(x, self.l.map(y, x + y).join('')).join('')"}`),
			object: `{"spec":{"a":7,"l":["` + strings.Repeat("x", 60) + `","2","3","4","5","6","7","8","9","` + strings.Repeat("x", 400) + `"]}}`,
			errors: []string{"spec: Invalid value: 1", "spec: Invalid value: 2", "spec: Invalid value: 3", "spec: Invalid value: 5", "spec: Invalid value: failed rule: 2 > 3"},
		},
		{
			name: "a fieldPath counts only beside a messageExpression that compiles",
			schema: specWith(a, `{"rule":"false","message":"1","fieldPath":".b","messageExpression":"self.nope"},{"rule":"!true","message":"2","fieldPath":".b","messageExpression":"self.a"},`+
				`{"rule":"1 > 2","message":"3","fieldPath":".b","messageExpression":"self.b"},{"rule":"2 > 3","message":"4","fieldPath":".b","messageExpression":"string(self.a)"}`),
			object: `{"spec":{"a":7}}`,
			errors: []string{"spec.b: Invalid value: 3", "spec.b: Invalid value: 7", "spec: Invalid value: 1", "spec: Invalid value: 2"},
		},
		{
			name:   "errors of evaluation are errors",
			schema: specWith(a+`,"ios":{"x-kubernetes-int-or-string":true}`, `{"rule":"1 / self.a == 1"},{"rule":"self.b == 'x'","message":"m"},{"rule":"self.ios < 5"},{"rule":"self.l[3] == ''"}`),
			object: `{"spec":{"a":0,"ios":"x","l":[]}}`,
			errors: []string{
				`spec: Invalid value: "object": 'no such overload': call arguments did not match a supported operator, function or macro signature for rule: self.ios < 5`,
				`spec: Invalid value: "object": division by zero evaluating rule: 1 / self.a == 1`,
				`spec: Invalid value: "object": index out of bounds: 3 evaluating rule: self.l[3] == ''`,
				`spec: Invalid value: "object": no such key: b evaluating rule: m`,
			},
		},
		{
			name:   "a rule that does not compile is an error of every object",
			schema: specWith(a, `{"rule":"self.nope == 1"}`), object: `{"spec":{}}`,
			errors: []string{"spec: Invalid value: \"object\": rule compile error: compilation failed: ERROR: <input>:1:5: undefined field 'nope'\n | self.nope == 1\n | ....^"},
		},
		{
			name:   "types of the schema have names that rules cannot use",
			schema: specWith(a, `{"rule":"self == 1"},{"rule":"selfType{} == self"}`), object: `{"spec":{}}`,
			errors: []string{
				"spec: Invalid value: \"object\": rule compile error: compilation failed: ERROR: <input>:1:6: found no matching overload for '_==_' applied to '(selfType, int)'\n | self == 1\n | .....^",
				"spec: Invalid value: \"object\": rule compile error: compilation failed: ERROR: <input>:1:9: undeclared reference to 'selfType' (in container '')\n | selfType{} == self\n | ........^",
			},
		},
		{
			name:   "transition rules need an old value",
			schema: specWith(a, `{"rule":"self.a >= oldSelf.a","message":"shrinks"}`), object: `{"spec":{"a":1}}`,
		},
		{
			name:   "transition rules compare",
			schema: specWith(a, `{"rule":"self.a >= oldSelf.a","message":"shrinks"}`), object: `{"spec":{"a":1}}`, old: `{"spec":{"a":2}}`,
			errors: []string{"spec: Invalid value: shrinks"},
		},
		{
			name:   "optional old values are there for creation",
			schema: specWith(a, `{"rule":"oldSelf.hasValue() && self.a >= oldSelf.value().a","optionalOldSelf":true,"message":"m"}`), object: `{"spec":{"a":1}}`,
			errors: []string{"spec: Invalid value: m"},
		},
		{
			name:   "and for updates",
			schema: specWith(a, `{"rule":"oldSelf.hasValue() && self.a >= oldSelf.value().a","optionalOldSelf":true,"message":"m"}`), object: `{"spec":{"a":3}}`, old: `{"spec":{"a":2}}`,
		},
		{
			name:   "messages of such rules see the plain old value",
			schema: specWith(a, `{"rule":"oldSelf.hasValue() && false","optionalOldSelf":true,"message":"m","messageExpression":"string(oldSelf.value().a)"}`), object: `{"spec":{"a":3}}`, old: `{"spec":{"a":2}}`,
			errors: []string{"spec: Invalid value: m"},
		},
		{
			name:   "errors in unchanged values become warnings",
			schema: specWith(a, `{"rule":"self.a > 5","message":"m"}`), object: `{"spec":{"a":1}}`, old: `{"spec":{"a":1}}`,
			warnings: []string{"spec: Invalid value: m"},
		},
		{
			name:   "except by transition rules",
			schema: specWith(a, `{"rule":"self.a > oldSelf.a","message":"m"}`), object: `{"spec":{"a":1}}`, old: `{"spec":{"a":1}}`,
			errors: []string{"spec: Invalid value: m"},
		},
		{
			name:   "other violations block rules",
			schema: specWith(a, `{"rule":"false","message":"m"}`), object: `{"spec":{"a":"x"}}`,
			errors: []string{
				`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
				`spec.a: Invalid value: "string": spec.a in body must be of type integer: "string"`,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := validate(t, strings.Replace(c.schema, `,"x-kubernetes-validations":[]`, "", 1), c.object, c.old)
			if got := rendered(v.Errors); !slices.Equal(got, c.errors) {
				t.Errorf("errors\n got %q\nwant %q", got, c.errors)
			}
			if got := rendered(v.Warnings); !slices.Equal(got, c.warnings) {
				t.Errorf("warnings\n got %q\nwant %q", got, c.warnings)
			}
		})
	}
}

func TestViolationsSayWhere(t *testing.T) {
	v := validate(t, specWith(`"a":{"type":"integer","x-kubernetes-validations":[{"rule":"false","message":"m"}]}`, `{"rule":"false","message":"n","fieldPath":".a"}`),
		`{"spec":{"a":1}}`, "")
	if len(v.Errors) != 2 {
		t.Fatal(v.Errors)
	}
	for _, e := range v.Errors {
		if e.Keyword != "x-kubernetes-validations" {
			t.Error(e.Keyword)
		}
		at, offset := "spec", strings.Index(`{"spec":{"a":1}}`, `{"a"`)
		if e.Detail == "m" {
			at, offset = "spec.a", strings.Index(`{"spec":{"a":1}}`, `1`)
		}
		if e.At != at || e.Offset != offset {
			t.Errorf("%s: at %s, offset %d; want %s, %d", e.Detail, e.At, e.Offset, at, offset)
		}
	}
}

// attempt evaluates rules in one of the two ways.
func attempt(t testing.TB, set *set, object, old string, count bool) (errors, warnings []string, ok bool) {
	t.Helper()
	run := newRun(set, document(t, object))
	if old != "" {
		run.Old = document(t, old)
	}
	r := new(evaluation)
	r.begin(set, run)
	ok = r.attempt(count, celconfig.RuntimeCELCostBudget)
	texts := func(list []exec.Violation) (texts []string) {
		for i := range list {
			texts = append(texts, list[i].Error())
		}
		return texts
	}
	return texts(run.Errors), texts(run.Warnings), ok
}

func newRun(set *set, d *jsondoc.Doc) *exec.RuleRun { return &exec.RuleRun{Node: set.root, Doc: d} }

func document(t testing.TB, text string) *jsondoc.Doc {
	t.Helper()
	d, err := jsondoc.Parse([]byte(text), jsondoc.Limits{})
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return d
}
