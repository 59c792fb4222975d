package exec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// lower compiles a schema, structural or not; nil if it is none at all.
func lower(schema []byte, o compile.LowerOptions) *plan.Node {
	d, err := jsondoc.Parse(schema, jsondoc.Limits{})
	if err != nil {
		return nil
	}
	defer d.Release()
	s, problems := syntax.Parse(d, jsondoc.Root)
	if len(problems) > 0 {
		return nil
	}
	for _, f := range compile.Check(s, compile.CheckOptions{NonStructural: o.ValidationOnly}) {
		if f.Severity == finding.Error {
			return nil
		}
	}
	n, err := compile.Lower(s, o)
	if err != nil {
		return nil
	}
	return n
}

// canonical parses an object in canonical form; nil if it is none.
func canonical(object []byte) *jsondoc.Doc {
	d, err := jsondoc.Parse(object, jsondoc.Limits{})
	if err != nil {
		return nil
	}
	defer d.Release()
	if d.Kind(jsondoc.Root) != jsondoc.Object {
		return nil
	}
	c, err := jsondoc.Parse(d.AppendCanonical(nil, jsondoc.Root), jsondoc.Limits{})
	if err != nil {
		return nil
	}
	return c
}

func errorsOf(v *exec.Result) string {
	if v == nil {
		return ""
	}
	var lines []string
	for i := range v.Errors {
		lines = append(lines, v.Errors[i].Error())
	}
	return strings.Join(lines, "\n")
}

// spec wraps the schema of a field x.
func spec(x string) string {
	return `{"type":"object","properties":{"x":` + x + `}}`
}

// validationSeeds are schemas of a field x, and values of it.
var validationSeeds = []struct{ schema, now, was string }{
	{`{"type":"string","maxLength":3,"minLength":2,"pattern":"^a"}`, `"abcd"`, `"abcd"`},
	{`{"type":"string","format":"date-time","enum":["a",null],"nullable":true}`, `null`, `["a"]`},
	{`{"type":"number","minimum":2.5,"maximum":7.5,"multipleOf":0.5}`, `2`, `3`},
	{`{"type":"integer","format":"int32","exclusiveMaximum":true,"maximum":10}`, `10`, `1e20`},
	{`{"x-kubernetes-int-or-string":true,"enum":["A",1]}`, `65`, `1.5`},
	{`{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}`, `["a","b","a","a"]`, `["a","a"]`},
	{`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer","minimum":1}}}}`,
		`[{"k":"a","v":0},{"k":"b","v":0}]`, `[{"k":"b","v":0}]`},
	{`{"type":"object","additionalProperties":{"type":"integer","maximum":3},"minProperties":1,"maxProperties":2}`, `{"a":4,"b":4,"c":1}`, `{"b":4}`},
	{`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}],"not":{"properties":{"a":{"enum":["n"]}}}}`, `{"a":"n","b":""}`, `{}`},
	{`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"a":{"minLength":2}}},{"properties":{"a":{"enum":["x"]}}}],"allOf":[{"required":["a"]},{"minProperties":2}]}`, `{"a":"y"}`, `{"a":"y"}`},
	{`{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`, `{"kind":"-","metadata":{"name":"/"}}`, `{}`},
	{`{"type":"object","readOnly":true,"properties":{"a":{"type":"string","readOnly":true}}}`, `{"a":"b"}`, `{}`},
	{`{"type":"object","x-kubernetes-unions":[{"discriminator":"t","fields":{"a":"A","b":"B"}}],"properties":{"t":{"type":"string"},"a":{"type":"string"},"b":{"type":"string"}}}`, `{"t":"A","b":""}`, `{}`},
}

// FuzzValidate runs any schema on any object and any old one. The checker and
// the explainer are two programs for one question, so they have to agree.
func FuzzValidate(f *testing.F) {
	for _, s := range validationSeeds {
		f.Add([]byte(spec(s.schema)), []byte(`{"x":`+s.now+`}`), []byte(`{"x":`+s.was+`}`))
	}
	f.Fuzz(func(t *testing.T, schema, object, before []byte) {
		now, was := canonical(object), canonical(before)
		if now == nil || was == nil {
			return
		}
		for _, o := range []compile.LowerOptions{{}, {Strict: true}, {ValidationOnly: true}} {
			n := lower(schema, o)
			if n == nil {
				continue
			}
			agree(t, n, now, was)
			plan.Release(n)
		}
	})
}

func agree(t *testing.T, n *plan.Node, now, was *jsondoc.Doc) {
	t.Helper()
	created := exec.Validate(n, now, exec.ValidateOptions{Scope: exec.Namespaced})
	valid := exec.Valid(n, now, false)
	if explained := exec.Validate(n, now, exec.ValidateOptions{}); (explained == nil) != valid {
		t.Fatalf("the checker says %v, the explanation is %q", valid, errorsOf(explained))
	}
	if created != nil {
		for _, e := range created.Errors {
			if e.Offset < 0 || e.Offset > now.End(jsondoc.Root) {
				t.Fatalf("offset %d of %v is outside of the object", e.Offset, e)
			}
		}
	}
	plain := exec.Validate(n, now, exec.ValidateOptions{Old: was})
	ratcheted := exec.Validate(n, now, exec.ValidateOptions{Old: was, Ratchet: true, ReadOnly: true})
	if count(ratcheted) > count(plain) {
		t.Fatalf("ratcheting adds errors: %q after %q", errorsOf(ratcheted), errorsOf(plain))
	}
}

func count(v *exec.Result) int {
	if v == nil {
		return 0
	}
	return len(v.Errors)
}

func TestTwoOpinions(t *testing.T) {
	for _, s := range validationSeeds {
		n := lower([]byte(spec(s.schema)), compile.LowerOptions{})
		if n == nil {
			t.Fatalf("%s does not compile", s.schema)
		}
		now, was := canonical([]byte(`{"x":`+s.now+`}`)), canonical([]byte(`{"x":`+s.was+`}`))
		agree(t, n, now, was)
		agree(t, n, was, now)
		plan.Release(n)
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct{ schema, value, want string }{
		{`{"type":"string"}`, `1`, `x: Invalid value: "integer": x in body must be of type string: "integer"`},
		{`{"type":"string"}`, `null`, `x: Invalid value: "null": x in body must be of type string: "null"`},
		{`{"x-kubernetes-int-or-string":true}`, `true`, `x: Invalid value: "boolean": x in body must be of type integer,string: "boolean"`},
		{`{"type":"string","format":"date"}`, `"x"`, `x: Invalid value: "x": x in body must be of type date: "x"`},
		{`{"type":"string","format":"date"}`, `1`, `x: Invalid value: "int64": x in body must be of type date: "int64"`},
		{`{"type":"string","maxLength":2,"pattern":"b"}`, `"aaa"`, `x: Too long: may not be more than 2 bytes`},
		{`{"type":"string","pattern":"b"}`, `"aaa"`, `x: Invalid value: "aaa": x in body should match 'b'`},
		{`{"type":"string","enum":["a","b"]}`, `"c"`, `x: Unsupported value: "c": supported values: "a", "b"`},
		{`{"type":"integer","format":"int32"}`, `2147483648`, `<nil>: Invalid value: "": Checked value must be of type integer with format int32 in x`},
		{`{"type":"number","maximum":2.5}`, `2.6`, `x: Invalid value: 2.6: x in body should be less than or equal to 2.5`},
		{`{"type":"number","maximum":2.5}`, `4`, `x: Invalid value: 4: x in body should be less than or equal to 2`},
		{`{"type":"object","additionalProperties":{"type":"string","minLength":1}}`, `{"k":""}`, `x.k: Invalid value: "": x.k in body should be at least 1 chars long`},
		{`{"type":"object","required":["a"]}`, `{}`, `x.a: Required value`},
		{`{"type":"array","maxItems":1,"items":{"type":"string"}}`, `["a","b"]`, `x: Too many: 2: must have at most 1 item`},
		{`{"type":"object","not":{}}`, `{}`, `<nil>: Invalid value: "": "x" must not validate the schema (not)`},
	} {
		n := lower([]byte(spec(c.schema)), compile.LowerOptions{})
		if n == nil {
			t.Fatalf("%s does not compile", c.schema)
		}
		if got := errorsOf(exec.Validate(n, canonical([]byte(`{"x":`+c.value+`}`)), exec.ValidateOptions{})); got != c.want {
			t.Errorf("%s on %s:\n got %s\nwant %s", c.schema, c.value, got, c.want)
		}
		plan.Release(n)
	}
}

func TestBranches(t *testing.T) {
	n := lower([]byte(spec(`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"required":["a"]},{"properties":{"b":{}},"minProperties":2}]}`)), compile.LowerOptions{ValidationOnly: true})
	v := exec.Validate(n, canonical([]byte(`{"x":{}}`)), exec.ValidateOptions{})
	defer plan.Release(n)
	if v == nil || v.Errors[0].Keyword != "anyOf" || v.Errors[0].At != "x" {
		t.Fatalf("got %q", errorsOf(v))
	}
	var tried []string
	for _, b := range v.Errors[0].Branches {
		for i := range b {
			tried = append(tried, b[i].Keyword+" at "+b[i].At)
		}
	}
	if got, want := fmt.Sprint(tried), "[required at x minProperties at x]"; got != want {
		t.Errorf("branches %s, want %s", got, want)
	}
}

func TestStrict(t *testing.T) {
	for _, c := range []struct {
		schema, value string
		lax           bool // clusters accept it
	}{
		{`{"type":"string","format":"date"}`, `["x"]`, true},
		{`{"type":"number","enum":[1]}`, `1.5`, true},
		{`{"x-kubernetes-int-or-string":true,"enum":["A"]}`, `65`, true},
		{`{"type":"number","minimum":2.5}`, `2`, true},
		{`{"type":"number","minimum":2.5}`, `1`, false},
	} {
		for _, strict := range []bool{false, true} {
			n := lower([]byte(spec(c.schema)), compile.LowerOptions{Strict: strict})
			got := exec.Valid(n, canonical([]byte(`{"x":`+c.value+`}`)), false)
			if want := c.lax && !strict; got != want {
				t.Errorf("%s on %s, strict %v: %v", c.schema, c.value, strict, got)
			}
			plan.Release(n)
		}
	}
	for _, c := range []struct{ schema, value string }{ // clusters refuse these for no reason
		{`{"type":"number","multipleOf":0.5}`, `3`},
		{`{"type":"number","exclusiveMaximum":true,"maximum":2.5}`, `2`},
		{`{"type":"string","nullable":true,"enum":["a",null]}`, `null`},
	} {
		for _, strict := range []bool{false, true} {
			n := lower([]byte(spec(c.schema)), compile.LowerOptions{Strict: strict})
			if !exec.Valid(n, canonical([]byte(`{"x":`+c.value+`}`)), false) {
				t.Errorf("%s refuses %s, strict %v", c.schema, c.value, strict)
			}
			plan.Release(n)
		}
	}
}
