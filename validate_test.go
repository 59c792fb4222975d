package espalier_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/costtest"
)

// errorTexts renders what is wrong, one line each.
func errorTexts(list []espalier.Violation) string {
	var lines []string
	for _, v := range list {
		lines = append(lines, v.Error())
	}
	return strings.Join(lines, "\n")
}

func TestValidateUpdate(t *testing.T) {
	const list = `{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer","minimum":1}}}}`
	tests := []struct {
		name, schema, old, now string
		want                   string // errors with ratcheting
		without                string // errors without, if they differ
	}{
		{"unchanged value", `{"type":"string","maxLength":1}`, `"ab"`, `"ab"`, ``, `x: Too long: may not be more than 1 byte`},
		{"changed value", `{"type":"string","maxLength":1}`, `"ab"`, `"abc"`, `x: Too long: may not be more than 1 byte`, ``},
		{"items by key, reordered", list, `[{"k":"a","v":0},{"k":"b","v":0}]`, `[{"k":"c","v":2},{"k":"b","v":0}]`, ``,
			`x[1].v: Invalid value: 0: x[1].v in body should be greater than or equal to 1`},
		{"item with another key", list, `[{"k":"a","v":0}]`, `[{"k":"b","v":0}]`, `x[0].v: Invalid value: 0: x[0].v in body should be greater than or equal to 1`, ``},
		{"items without keys are one value", `{"type":"array","items":{"type":"integer","minimum":1}}`, `[0,2]`, `[0,3]`, `x[0]: Invalid value: 0: x[0] in body should be greater than or equal to 1`, ``},
		{"missing stays missing in an unchanged parent", `{"type":"object","required":["a"],"properties":{"b":{"type":"string"}}}`, `{"b":"c"}`, `{"b":"c"}`, ``, `x.a: Required value`},
		{"missing in a changed parent", `{"type":"object","required":["a"],"properties":{"b":{"type":"string"}}}`, `{"b":"c"}`, `{"b":"d"}`, `x.a: Required value`, ``},
		{"no ratcheting inside allOf", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"allOf":[{"properties":{"a":{"maxLength":1}}}]}`,
			`{"a":"aa","b":"1"}`, `{"a":"aa","b":"2"}`, "x.a: Too long: may not be more than 1 byte\n<nil>: Invalid value: \"\": \"x\" must validate all the schemas (allOf). None validated", ``},
		{"duplicates may stay, and more may come", `{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}`, `["a","a"]`, `["a","a","b","b"]`, ``, ``},
		{"duplicates that are new", `{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}`, `["a"]`, `["a","a","a"]`, `x[1]: Duplicate value: "a"`, ``},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := compile(t, object(test.schema))
			o := espalier.ValidateOptions{Old: []byte(`{"x":` + test.old + `}`)}
			for _, ratchet := range []bool{true, false} {
				o.NoRatcheting = !ratchet
				want := test.want
				if !ratchet && test.without != "" {
					want = test.without
				}
				v, err := s.Validate([]byte(`{"x":`+test.now+`}`), o)
				if err != nil {
					t.Fatal(err)
				}
				if got := errorTexts(v.Errors); got != want {
					t.Errorf("ratcheting %v:\n got %s\nwant %s", ratchet, got, want)
				}
			}
		})
	}
}

// admitted are objects in several forms, valid and not, complete and not.
var admitted = []string{
	`{"x":{"a":"b","n":1}}`, `{"x":{"n":1,"a":"b"}}`, ` {"x" : {"n":1.0,"a":"\u0062"}}`, `{"x":{"n":0,"a":"b"}}`, `{"x":{"n":"1"}}`,
	`{"x":{}}`, `{"y":1,"x":{"a":""}}`, `{"x":{"a":null,"n":2}}`, `{"x":{"n":1e3,"a":"toolong"}}`, `{"metadata":{"name":"_"},"x":{"a":"b"}}`,
	`{"x":{"a":"b","a":"toolong","n":1}}`, `{"x":{"l":["b","a","b"]}}`, `{"x":{"l":[1.50,1.5]}}`,
}

const admittingSchema = `{"type":"object","required":["a"],"properties":{"a":{"type":"string","maxLength":3},"n":{"type":"integer","minimum":1,"default":5},"l":{"type":"array","x-kubernetes-list-type":"set","items":{"x-kubernetes-preserve-unknown-fields":true}}}}`

// TestAdmit: Admit is Normalize and Validate, however much of the work it can
// spare.
func TestAdmit(t *testing.T) {
	s := compile(t, object(admittingSchema))
	for _, in := range admitted {
		for _, old := range append([]string{""}, admitted...) {
			var o espalier.ValidateOptions
			if old != "" {
				o.Old = []byte(old)
			}
			o.Scope = espalier.Cluster
			r, v, err := s.Admit([]byte(in), espalier.AdmitOptions{Validate: o})
			want, wantErr := s.Normalize([]byte(in), espalier.NormalizeOptions{})
			if (err == nil) != (wantErr == nil) || !bytes.Equal(r.Bytes, want.Bytes) || r.Changes != want.Changes {
				t.Errorf("%s: admitted as %s (%v, %v), normalized as %s (%v, %v)", in, r.Bytes, r.Changes, err, want.Bytes, want.Changes, wantErr)
			}
			if err != nil {
				continue
			}
			wantV, err := s.Validate(want.Bytes, o)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(v, wantV) {
				t.Errorf("%s after %q: admitted with %+v, validated with %+v", in, old, v, wantV)
			}
		}
	}
}

func TestAdmitDoesNotAllocate(t *testing.T) {
	if costtest.Race {
		t.Skip("the race detector allocates")
	}
	s := compile(t, object(`{"type":"object","required":["a"],"properties":{
		"a":{"type":"string","maxLength":30,"minLength":1,"pattern":"^[a-z]([-a-z0-9]*[a-z0-9])?$"},
		"b":{"type":"integer","format":"int32","minimum":1,"maximum":65535},
		"c":{"type":"string","enum":["Always","Never"]},
		"d":{"type":"string","format":"date-time"},
		"e":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"},"maxItems":20},
		"f":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["n"],"items":{"type":"object","required":["n"],"properties":{"n":{"type":"string"},"v":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}}}},
		"g":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
		"h":{"type":"object","properties":{"p":{"type":"string"},"q":{"type":"string"}},"oneOf":[{"required":["p"]},{"required":["q"]}]},
		"i":{"type":"integer","enum":[0,1,2]},
		"j":{"type":"array","items":{"type":"number"},"enum":[[1,2.5],[]]}
	}}`))
	in := []byte(`{"apiVersion":"a/v1","kind":"K","metadata":{"labels":{"a":"b"},"name":"n","namespace":"ns"},"x":{"a":"name-1","b":8080,"c":"Never","d":"2024-01-02T03:04:05Z",` +
		`"e":["a","b","c","d","e","f","g","h","i","j"],"f":[{"n":"a","v":1},{"n":"b","v":"1%"}],"g":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}},"h":{"q":""},"i":2,"j":[1,2.5]}}`)
	run := func() {
		_, v, err := s.Admit(in, espalier.AdmitOptions{Validate: espalier.ValidateOptions{Scope: espalier.Namespaced}})
		if err != nil || !v.Valid() {
			t.Fatal(err, v.Err())
		}
	}
	run()
	if n := testing.AllocsPerRun(200, run); n != 0 {
		t.Errorf("%v allocations for a valid object", n)
	}
}

func TestValidationOnly(t *testing.T) {
	// The types stand inside the logical keyword: not structural, and fine in v1beta1.
	schema := `{"properties":{"x":{"oneOf":[{"type":"string","minLength":2},{"type":"integer"}]}}}`
	var notStructural *espalier.SchemaError
	if _, err := espalier.Compile([]byte(schema), espalier.CompileOptions{}); !errors.As(err, &notStructural) {
		t.Fatalf("compiled as structural: %v", err)
	}
	s, err := espalier.Compile([]byte(schema), espalier.CompileOptions{ValidationOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		`{"x":"ab"}`: ``, `{"x":1,"y":2}`: ``,
		`{"x":"a"}`:  `<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found none valid` + "\n" + `x: Invalid value: "a": x in body should be at least 2 chars long`,
		`{"x":true}`: `<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found none valid` + "\n" + `x: Invalid value: "boolean": x in body must be of type string: "boolean"`,
	} {
		v, err := s.Validate([]byte(in), espalier.ValidateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := errorTexts(v.Errors); got != want {
			t.Errorf("%s:\n got %s\nwant %s", in, got, want)
		}
	}
	if _, err := s.Normalize([]byte(`{}`), espalier.NormalizeOptions{}); !errors.Is(err, espalier.ErrValidationOnly) {
		t.Errorf("normalizing gives %v", err)
	}
	if _, err := espalier.Compile([]byte(`{"patternProperties":{"a":{}}}`), espalier.CompileOptions{ValidationOnly: true}); err == nil {
		t.Error("clusters refuse patternProperties also in schemas that are not structural")
	}
}

func TestReadOnly(t *testing.T) {
	s := compile(t, object(`{"type":"object","properties":{"a":{"type":"string","readOnly":true},"b":{"type":"string"},
		"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"r":{"type":"integer","readOnly":true}}}}}}`))
	for _, test := range []struct{ old, now, want string }{
		{`{"a":"1","b":"1"}`, `{"a":"1","b":"2"}`, ``},
		{`{"a":"1"}`, `{"a":"2"}`, `x.a: Forbidden: the field is read-only and must not change`},
		{`{}`, `{"a":"2"}`, `x.a: Forbidden: the field is read-only and was not set before`},
		{`{"a":"1"}`, `{}`, `x.a: Forbidden: the field is read-only and must not be removed`},
		{`{"l":[{"k":"1","r":1},{"k":"2","r":2}]}`, `{"l":[{"k":"2","r":3},{"k":"1","r":1}]}`, `x.l[0].r: Forbidden: the field is read-only and must not change`},
	} {
		o := espalier.ValidateOptions{Old: []byte(`{"x":` + test.old + `}`), ReadOnly: true}
		v, err := s.Validate([]byte(`{"x":`+test.now+`}`), o)
		if err != nil || !v.Valid() {
			t.Fatal(err, v.Err())
		}
		if got := errorTexts(v.ReadOnly); got != test.want {
			t.Errorf("%s to %s: got %q, want %q", test.old, test.now, got, test.want)
		}
		if o.ReadOnly = false; true {
			if v, _ = s.Validate([]byte(`{"x":`+test.now+`}`), o); len(v.ReadOnly) > 0 {
				t.Errorf("%s to %s: reported without being asked", test.old, test.now)
			}
		}
	}
}

func TestValidateLimits(t *testing.T) {
	s := compile(t, object(`{"type":"array","items":{"type":"string","maxLength":1}}`))
	items := strings.Repeat(`"ab",`, 20_000)
	v, err := s.Validate([]byte(`{"x":[`+items[:len(items)-1]+`]}`), espalier.ValidateOptions{})
	if err != nil || len(v.Errors) != 10_000 || v.Omitted != 10_000 {
		t.Errorf("%d errors, %d omitted, %v", len(v.Errors), v.Omitted, err)
	}
	for _, in := range []string{``, `[]`, `{"x":`} {
		if _, err := s.Validate([]byte(in), espalier.ValidateOptions{}); err == nil {
			t.Errorf("%q is validated", in)
		}
		if _, err := s.Validate([]byte(`{}`), espalier.ValidateOptions{Old: []byte(in)}); err == nil && in != "" {
			t.Errorf("%q is accepted as the old object", in)
		}
	}
}

// hostileValues are schemas of a field x and families of its values whose cost
// of validation must be linear, on creation and on update.
var hostileValues = map[string]struct {
	schema string
	value  func(n int) string
}{
	"set": {`{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}`,
		func(n int) string { return `[` + members(n, `"v%08d"`, 7919) + `]` }},
	"set-equal": {`{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}`,
		func(n int) string { return `[` + members(n, `"v%.0d"`, 0) + `]` }},
	"list-map": {`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","l"],"items":{"type":"object","required":["k","l"],"properties":{"k":{"type":"string"},"l":{"type":"integer","maximum":5}}}}`,
		func(n int) string { return `[` + members(n, `{"k":"v","l":%d}`, 7919) + `]` }},
	"map": {`{"type":"object","additionalProperties":{"type":"string","maxLength":2}}`,
		func(n int) string { return `{` + members(n, `"key%08d":"abc"`, 1) + `}` }},
	"required": {`{"type":"object","additionalProperties":{"type":"string"},"oneOf":[{"required":["a"]},{"required":["b"]}],"anyOf":[{"required":["c"]},{"minProperties":3}]}`,
		func(n int) string { return `{` + members(n, `"key%08d":"abc"`, 1) + `}` }},
	"depth": {`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},"not":{"enum":[{}]}}`,
		func(n int) string {
			n = min(n, 4900)
			return strings.Repeat(`{"a":`, n) + `{}` + strings.Repeat(`}`, n)
		}},
	"pattern": {`{"type":"string","pattern":"^(a|aa|aaa)*(b|c)?[a-z]*$"}`,
		func(n int) string { return `"` + strings.Repeat("aaaaaaaaab", n) + `"` }},
	"enum-numbers": {`{"type":"array","items":{"type":"number","enum":[` + strings.TrimSuffix(strings.Repeat("1,2,3.5,", 300), ",") + `]}}`,
		func(n int) string { return `[` + members(n, `%d.25`, 1) + `]` }},
}

func TestValidationCostIsLinear(t *testing.T) {
	costtest.Limit(t)
	for name, family := range hostileValues {
		s := compile(t, object(family.schema))
		whole := func(n int) string { return `{"x":` + family.value(n) + `}` }
		t.Run(name, func(t *testing.T) {
			checkLinear(t, whole, true, func(b []byte) { _, _ = s.Validate(b, espalier.ValidateOptions{}) })
		})
		t.Run(name+"/update", func(t *testing.T) {
			checkLinear(t, whole, true, func(b []byte) { _, _ = s.Validate(b, espalier.ValidateOptions{Old: b}) })
		})
	}
}

// TestLogicalNesting: a schema of nested logical keywords costs what it weighs.
func TestLogicalNesting(t *testing.T) {
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		const depth = 1000
		schema := object(`{"type":"string","allOf":[` + strings.Repeat(fmt.Sprintf(`{"%s":[{"minLength":9},`, keyword), depth) + `{"maxLength":1}` + strings.Repeat(`]}`, depth) + `]}`)
		s := compile(t, schema)
		v, err := s.Validate([]byte(`{"x":"abc"}`), espalier.ValidateOptions{})
		if err != nil || v.Valid() {
			t.Errorf("%s: %v, %v", keyword, v, err)
		}
		if _, err := json.Marshal(v.Errors[0].Branches); err != nil {
			t.Error(err)
		}
	}
}
