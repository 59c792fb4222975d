package espalier_test

import (
	"testing"

	"github.com/espalier-dev/espalier"
)

// accepts reports whether a schema with the one field x accepts a value there.
func accepts(t *testing.T, s *espalier.Schema, value string) bool {
	t.Helper()
	v, err := s.Validate([]byte(`{"x":`+value+`}`), espalier.ValidateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return v.Valid()
}

// TestSchemasDoNotChangeEachOther compiles schemas that differ only in how they
// write the numbers of an enum. The schema compiled first must not decide for
// the others.
func TestSchemasDoNotChangeEachOther(t *testing.T) {
	for _, c := range []struct {
		first, second, value string
		want                 bool
	}{
		{`{"type":"integer","enum":[-0,1,2]}`, `{"type":"integer","enum":[0,1,2]}`, `0`, true},
		{`{"type":"integer","enum":[0,1,2]}`, `{"type":"integer","enum":[-0,1,2]}`, `0`, true},
		{`{"type":"number","enum":[1]}`, `{"type":"number","enum":[1.0]}`, `1.5`, false},
		{`{"type":"number","enum":[1.0]}`, `{"type":"number","enum":[1]}`, `1.5`, true},
		{`{"type":"number","enum":[100]}`, `{"type":"number","enum":[1e2]}`, `100.5`, false},
		{`{"type":"number","enum":[1e2]}`, `{"type":"number","enum":[100]}`, `100.5`, true},
		{`{"type":"array","items":{"type":"integer"},"enum":[[2]]}`, `{"type":"array","items":{"type":"integer"},"enum":[[2.0]]}`, `[2]`, false},
		{`{"type":"array","items":{"type":"integer"},"enum":[[2.0]]}`, `{"type":"array","items":{"type":"integer"},"enum":[[2]]}`, `[2]`, true},
	} {
		first := compile(t, object(c.first))
		second := compile(t, object(c.second))
		if got := accepts(t, second, c.value); got != c.want {
			t.Errorf("%s, compiled after %s, accepts %s: %v", c.second, c.first, c.value, got)
		}
		accepts(t, first, c.value) // it stays in use until here
	}
}

// TestDefaultIsNotRefusedForAnotherSchema: the default of a schema is in its
// enum, whatever was compiled before.
func TestDefaultIsNotRefusedForAnotherSchema(t *testing.T) {
	first := compile(t, object(`{"type":"integer","enum":[-0,1,2]}`))
	findings, err := espalier.Check([]byte(object(`{"type":"integer","enum":[0,1,2],"default":0}`)), espalier.CheckOptions{})
	if err != nil || len(findings) > 0 {
		t.Errorf("findings %v, error %v", findings, err)
	}
	accepts(t, first, `1`)
}

// TestEnumNumbers compares enum with upstream's answers on stored objects, and
// with what JSON Schema says.
func TestEnumNumbers(t *testing.T) {
	for _, c := range []struct {
		x, value     string
		want, strict bool
	}{
		{`{"type":"integer","enum":[-0]}`, `0`, true, true},
		{`{"type":"integer","enum":[-0]}`, `-0`, true, true},
		{`{"type":"number","enum":[-0]}`, `-0.0`, true, true},
		{`{"type":"number","enum":[-0.0]}`, `0`, true, true},
		{`{"type":"number","enum":[0]}`, `-0.0`, true, true},
		{`{"type":"number","enum":[-0]}`, `0.5`, true, false}, // upstream converts 0.5 to an integer
		{`{"type":"number","enum":[-0.0]}`, `0.5`, false, false},
		{`{"type":"number","enum":[1e2]}`, `100`, true, true},
		{`{"type":"array","items":{"type":"integer"},"enum":[[2]]}`, `[2]`, true, true},
		{`{"type":"array","items":{"type":"integer"},"enum":[[2]]}`, `[2.0]`, true, true},
		{`{"type":"array","items":{"type":"integer"},"enum":[[2.0]]}`, `[2]`, false, true},
		{`{"type":"array","items":{"type":"integer"},"enum":[[2.0]]}`, `[2.0]`, false, true}, // it is stored as [2]
		{`{"type":"array","items":{"type":"integer"},"enum":[[-0]]}`, `[0]`, true, true},
		{`{"type":"array","items":{"type":"number"},"enum":[[-0.0]]}`, `[0]`, false, true},
		{`{"type":"array","items":{"type":"number"},"enum":[[-0]]}`, `[-0.0]`, true, true},
		{`{"type":"array","items":{"type":"number"},"enum":[[1.5]]}`, `[1.5]`, true, true},
		{`{"type":"array","items":{"type":"number"},"enum":[[1.50]]}`, `[15e-1]`, true, true},
		{`{"type":"array","items":{"type":"number"},"enum":[[1e300]]}`, `[1e300]`, true, true},
		{`{"type":"array","items":{"type":"number"},"enum":[[1]]}`, `[1.5]`, false, false},
		{`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"enum":[{"b":[1,{"c":2.5}],"a":null}]}`, `{"a":null,"b":[1,{"c":2.5}]}`, true, true},
		{`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"enum":[{"b":1,"b":2}]}`, `{"b":2}`, true, true},
		{`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"enum":[{"b":1.0}]}`, `{"b":1}`, false, true},
		{`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"enum":[{"b":1e18}]}`, `{"b":1000000000000000000}`, false, true},
		{`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"enum":[{"b":1e19}]}`, `{"b":10000000000000000000}`, true, true},
	} {
		if got := accepts(t, compile(t, object(c.x)), c.value); got != c.want {
			t.Errorf("%s accepts %s: %v", c.x, c.value, got)
		}
		s, err := espalier.Compile([]byte(object(c.x)), espalier.CompileOptions{Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := accepts(t, s, c.value); got != c.strict {
			t.Errorf("%s, strictly, accepts %s: %v", c.x, c.value, got)
		}
	}
}

// TestEnumInErrors: an error lists the values as upstream prints them.
func TestEnumInErrors(t *testing.T) {
	for enum, want := range map[string]string{
		`[1e6,-0]`:             `x: Unsupported value: 7: supported values: "1000000", "0"`,
		`[1000000,-0.0]`:       `x: Unsupported value: 7: supported values: "1000000", "-0"`,
		`[1000000.0,{"a":-0}]`: `x: Unsupported value: 7: supported values: "1000000", "{\"a\":0}"`,
	} {
		s := compile(t, object(`{"type":"number","enum":`+enum+`}`))
		v, err := s.Validate([]byte(`{"x":7}`), espalier.ValidateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := errorTexts(v.Errors); got != want {
			t.Errorf("%s:\n got %s\nwant %s", enum, got, want)
		}
	}
}
