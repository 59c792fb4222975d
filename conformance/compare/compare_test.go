package compare

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/conformance/tree"
)

// A shrinker can be tested without a defect: this one looks for any object that has a certain thing in it.
func TestReduceFindsTheSmallest(t *testing.T) {
	for in, c := range map[string]struct{ need, want string }{
		`{"a":{"b":[1,2,{"c":"needle"}]},"d":{"e":"f"}}`: {`needle`, `{"a":"needle"}`},
		`{"a" : [ 1 , 2 ], "needle":[{"x":{}}]}`:         {`needle`, `{"needle":null}`},
		`{"a":1,"needle":tru`:                            {`needle`, `needle`},
	} {
		s := &shrinker{best: &Difference{Object: []byte(in)}, until: time.Now().Add(time.Minute)}
		s.reduce(func() []byte { return s.best.Object }, func(b []byte) *Difference {
			if strings.Contains(string(b), c.need) {
				return &Difference{Object: b}
			}
			return nil
		})
		if got := string(s.best.Object); got != c.want {
			t.Errorf("%s shrank to %s, want %s", in, got, c.want)
		}
	}
}

func TestEqual(t *testing.T) {
	object := func(bytes string, unknown ...string) oracle.Outcome {
		return oracle.Outcome{Bytes: []byte(bytes), Unknown: unknown}
	}
	refused := oracle.Outcome{Err: errText("no")}
	malformed := oracle.Outcome{Err: errText("bad"), Malformed: true}
	for _, c := range []struct {
		name         string
		ours, theirs oracle.Outcome
		want         bool
	}{
		{"same", object(`{}`, "a"), object(`{}`, "a"), true},
		{"bytes", object(`{}`), object(`{"a":1}`), false},
		{"unknown", object(`{}`, "a"), object(`{}`, "a", "a"), false},
		{"refused by both", refused, refused, true},
		{"other words", refused, oracle.Outcome{Err: errText("yes")}, false},
		{"malformed by both", malformed, oracle.Outcome{Err: errText("x"), Malformed: true}, true},
		{"refused by one", refused, object(`{}`), false},
		{"accepted by one", object(`{}`), malformed, false},
		{"malformed for refused", malformed, refused, false},
	} {
		if got := new(Pair).equal(c.ours, c.theirs); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

type errText string

func (e errText) Error() string { return string(e) }

func TestResultsOfTheSame(t *testing.T) {
	for _, schema := range []string{`{"type":"object"}`, `{}`, `{"type":3}`} {
		if d, _ := Schema([]byte(schema), false); d != nil {
			t.Error(d)
		}
	}
}

func TestExplained(t *testing.T) {
	for _, c := range []struct{ name, schema, object, row string }{
		{"a truncated bound", `{"type":"object","properties":{"a":{"type":"number","maximum":2.5,"exclusiveMaximum":true}}}`, `{"a":2}`, "fractional-bounds"},
		{"null in an enum", `{"type":"object","properties":{"a":{"type":"string","nullable":true,"enum":["x",null]}}}`, `{"a":null}`, "enum-null"},
		{"within not, where Espalier follows the reference", `{"type":"object","properties":{"a":{"type":"number","not":{"maximum":2.5,"exclusiveMaximum":true}}}}`, `{"a":2}`, ""},
		{"nothing to explain", `{"type":"object","properties":{"a":{"type":"number","maximum":2.5}}}`, `{"a":3}`, ""},
	} {
		pair, d := Compile([]byte(c.schema))
		if pair == nil {
			t.Fatal(d)
		}
		d, _, row := pair.Validate([]byte(c.object), oracle.ValidateOptions{})
		if d != nil || row != c.row {
			t.Errorf("%s: row %q, want %q: %v", c.name, row, c.row, d)
		}
	}
}

// What no row covers must not be explained, even if the schema has the feature of one.
func TestUnexplained(t *testing.T) {
	pair, d := Compile([]byte(`{"type":"object","properties":{"a":{"type":"number","maximum":2.5},"b":{"type":"string"}}}`))
	if pair == nil {
		t.Fatal(d)
	}
	wrong := "FieldValueTypeInvalid|b|\"integer\"|must be of type string|b: Invalid value"
	bound := "FieldValueInvalid|a|3|a in body should be less than or equal to 2|a: Invalid value"
	object := []byte(`{"a":1,"b":"x"}`)
	if row := pair.explained(object, oracle.ValidateOptions{}, &oracle.Validation{}, &oracle.Validation{Errors: []string{wrong}}); row != "" {
		t.Errorf("an error about a type is explained by %s", row)
	}
	if row := pair.explained(object, oracle.ValidateOptions{}, &oracle.Validation{}, &oracle.Validation{Errors: []string{bound}}); row != "fractional-bounds" {
		t.Errorf("an error about a bound is explained by %q", row)
	}
	if row := pair.explained(object, oracle.ValidateOptions{}, &oracle.Validation{Errors: []string{"x", "(3 errors omitted)"}}, &oracle.Validation{Errors: []string{"x", "y"}}); row != "error-limit" {
		t.Errorf("a list cut short is explained by %q", row)
	}
	// Inside allOf, anyOf, oneOf and not, Espalier follows the reference.
	pair, d = Compile([]byte(`{"type":"object","properties":{"a":{"type":"number","nullable":true,"allOf":[{"maximum":2.5,"enum":[null,1]}]}}}`))
	if pair == nil {
		t.Fatal(d)
	}
	null := "FieldValueNotSupported|a|null|supported values: \"null\", \"1\"|a: Unsupported value"
	for _, text := range []string{bound, null} {
		if row := pair.explained(object, oracle.ValidateOptions{}, &oracle.Validation{}, &oracle.Validation{Errors: []string{text}}); row != "" {
			t.Errorf("an error inside allOf is explained by %s: %s", row, text)
		}
	}
}

func TestShrinkKeepsOldAndNew(t *testing.T) {
	object := `{"a":{"b":1,"c":2},"n":3}`
	s := &shrinker{best: &Difference{What: "validate-update", Object: []byte(object), How: oracle.ValidateOptions{Old: []byte(object)}}, until: time.Now().Add(time.Minute)}
	x, y := tree.Must(object), tree.Must(object)
	s.common(x, y, func() bool { return x.Get("a").Get("c") != nil && y.Get("a").Get("c") != nil })
	if got := string(x.Bytes()) + string(y.Bytes()); got != `{"a":{"c":2}}{"a":{"c":2}}` {
		t.Error(got)
	}
}

// A default with an unknown field of metadata and a kind that is no string: every walk of the reference over it goes in
// another order, and the error shows what the last one left.
func TestCRDsWithCoercedDefaults(t *testing.T) {
	doc := []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{},"spec":{"group":"y.kubernetes.io","names":{"kind":"Tree","plural":"trees"},
		"scope":"Namespaced","versions":[{"additionalPrinterColumns":[{}],"name":"v1beta1","served":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":
		{"properties":{"values":{"items":null,"type":"object","x-kubernetes-embedded-resource":true,"properties":{"apiVersion":{"type":"string"},"metadata":{"type":"object"}},
		"default":{"z":1,"metadata":{"name":"m","foo":1},"kind":3,"apiVersion":"v1"}}},"required":["values"],"type":"object","items":"string"}}}]},"status":{}}`)
	for range 20 {
		if d, theirs := CRD(doc, oracle.CRDOptions{}); d != nil || len(theirs.Errors) == 0 {
			t.Fatal(d, theirs.Errors)
		}
	}
	if a := []string{"x: Invalid value: 1: must not have unknown fields"}; onlyCoerced(a, nil) || onlyCoerced(append(a, "y"), append(a, "z")) {
		t.Error("a missing error and another text pass for a coerced default")
	}
}

// A rule fails for the key of a map that comes first, and the walk of the reference begins anywhere. None of its answers
// is ours as a whole if there are several of them.
func TestRulesThatFailForAnyKey(t *testing.T) {
	var rules []string
	for i := range 6 {
		rules = append(rules, fmt.Sprintf(`{"rule":"{'a': 1, 'b': 2}.exists(k, {'c': %d}[k] == 1)"}`, i))
	}
	pair, d := Compile([]byte(`{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-validations":[` + strings.Join(rules, ",") + `]}}}`))
	if pair == nil {
		t.Fatal(d)
	}
	for range 50 {
		if d, theirs, _ := pair.Validate([]byte(`{"spec":{}}`), oracle.ValidateOptions{}); d != nil || len(theirs.Errors) != 6 {
			t.Fatal(d, theirs.Errors)
		}
	}
}
