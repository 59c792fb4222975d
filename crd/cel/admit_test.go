package cel_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd/cel"
)

// object is the schema of an object with a field x.
func object(x string) string { return `{"type":"object","properties":{"x":` + x + `}}` }

// admitSchemas are schemas whose answers depend on numbers, strings and order in
// as many ways as there are.
var admitSchemas = []string{
	object(`{"type":"object","required":["a"],"properties":{"a":{"type":"string","maxLength":3},"n":{"type":"integer","minimum":1,"default":5},"l":{"type":"array","x-kubernetes-list-type":"set","items":{"x-kubernetes-preserve-unknown-fields":true}}}}`),
	object(`{"type":"array","x-kubernetes-list-type":"set","items":{"type":"number"}}`),
	object(`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","n"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"number"},"n":{"type":"number","default":0},"v":{"type":"string","maxLength":2}}}}`),
	object(`{"type":"object","properties":{"d":{"type":"number"},"i":{"type":"integer"},"s":{"type":"string"},"a":{"type":"array","maxItems":5,"items":{"type":"number"}},"m":{"type":"object","additionalProperties":{"type":"string"}},"u":{"x-kubernetes-preserve-unknown-fields":true},"o":{"x-kubernetes-int-or-string":true}},"x-kubernetes-validations":[
		{"rule":"!has(self.d) || 1.0 / self.d > 0.0","message":"d","fieldPath":".d"},
		{"rule":"!has(self.i) || self.i * 2 > self.i","messageExpression":"string(self.i)"},
		{"rule":"!has(self.a) || self.a.all(x, 1.0 / x > 0.0) && self.a.exists_one(x, x == 0.0)","messageExpression":"string(self.a[0])"},
		{"rule":"!has(self.s) || size(self.s) < 3 || string(1.5) == self.s"},
		{"rule":"!has(self.m) || self.m.all(k, k < self.m[k])"},
		{"rule":"!has(self.o) || type(self.o) == int && self.o > 0 || type(self.o) == string"},
		{"rule":"has(self.d) == has(oldSelf.d) && (!has(self.d) || self.d == oldSelf.d)","message":"old"}]}`),
	object(`{"x-kubernetes-preserve-unknown-fields":true,"enum":[0,-0.0,1.5,[2,2.0],[-0],{"a":-0.0},{"a":1e2},"1",null,true]}`),
	object(`{"type":"number","nullable":true,"minimum":-0.5,"exclusiveMinimum":true,"oneOf":[{"enum":[0,1.0]},{"multipleOf":0.5,"minimum":0.25},{"maximum":-0.0}]}`),
	object(`{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`),
	object(`{"type":"object","additionalProperties":{"type":"string","pattern":"^[a-zé]*$","default":"d"},"minProperties":1,"maxProperties":2}`),
	object(`{"type":"object","x-kubernetes-unions":[{"discriminator":"t","fields":{"a":"A","b":"B"}}],"properties":{"t":{"type":"string"},"a":{"type":"integer","readOnly":true},"b":{"type":"object","default":{},"properties":{"c":{"type":"number","default":-0.0}}}}}`),
}

// admitObjects are objects in several forms, those whose numbers are stored in
// another form than the one they are written in among them.
var admitObjects = []string{
	`{"x":[0,-0.0]}`, `{"x":[-0.0,-0]}`, `{"x":[0.0,0]}`, `{"x":[1,1.0,1e0]}`, `{"x":[-0.0]}`,
	`{"x":[{"k":0},{"k":-0.0}]}`, `{"x":[{"k":1,"n":-0.0},{"n":0,"k":1.0,"v":"abc"}]}`, `{"x":[{"k":-0.0},{"k":0,"n":0}]}`,
	`{"x":{"d":-0.0}}`, `{"x":{"d":0}}`, `{"x":{"d":-0}}`, `{"x":{"i":-0.0}}`, `{"x":{"a":[-0.0,0.0]}}`, `{"x":{"a":[0]}}`, `{"x":{"o":-0.0}}`, `{"x":{"u":[-0.0,{"b":1,"a":-0e5}]}}`,
	`{"x":-0.0}`, `{"x":-0}`, `{"x":[-0.0]}`, `{"x":{"a":-0.0}}`, `{"x":{"a":1e2}}`, `{"x":[2,2]}`, `{"x":-0.4}`, `{"x":1.00}`, `{"x":-1e-400}`,
	`{"x":{"s":"\u0031.5","m":{"b":"\u0061","a":"b"}}}`, `{"x":{"m":{"a":"\ud800"},"s":"<>&"}}`, ` { "x" : { "é" : "é" , "a":"<" } } `, `{"x":{"a":1,"a":-0.0}}`,
	`{"x":{"t":"A","a":-0.0}}`, `{"x":{"b":{"c":-0.0},"t":"B"}}`, `{"x":{"b":{}}}`, `{"x":{"apiVersion":"v1","kind":"K","metadata":{"generation":-0.0,"name":"a"}}}`,
	`{"apiVersion":"v1","kind":"K","metadata":{"name":"n","namespace":"s","generation":-0},"x":{"metadata":{"labels":{"a":1}}}}`, `{"x":null}`, `{}`, `null`, `{`,
	`{"x":[9223372036854775807,9223372036854775808,9.223372036854775807e18]}`, `{"x":{"i":1e400}}`, `{"x":{"n":2.0,"a":"b","l":[-0.0,0,{"z":1,"a":-0.0},{"a":0,"z":1}]}}`,
}

// admitter is a schema with its rules.
type admitter struct {
	s *espalier.Schema
	r *espalier.Rules
}

func admitters(t testing.TB) []admitter {
	var list []admitter
	for _, schema := range admitSchemas {
		for _, strict := range []bool{false, true} {
			s, err := espalier.Compile([]byte(schema), espalier.CompileOptions{Strict: strict})
			if err != nil {
				t.Fatal(err)
			}
			r, err := cel.Compile(s)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, admitter{s, r})
		}
	}
	return list
}

// admitOptions unpacks the choices of a fuzz input.
func (a admitter) options(bits uint8, old []byte) espalier.AdmitOptions {
	o := espalier.AdmitOptions{
		Source: espalier.Source(bits % 3),
		Validate: espalier.ValidateOptions{
			Old: old, NoRatcheting: bits&4 != 0, Scope: espalier.Scope(bits >> 3 % 3), ReadOnly: bits&32 != 0,
		},
	}
	if bits&64 == 0 {
		o.Validate.Rules = a.r
	}
	if bits&128 != 0 {
		o.Report = new(espalier.Report)
	}
	return o
}

// check compares Admit with Normalize and Validate. It reports whether they say
// the same.
func (a admitter) check(t *testing.T, in []byte, o espalier.AdmitOptions) bool {
	t.Helper()
	before := bytes.Clone(in)
	r, v, err := a.s.Admit(in, o)
	if !bytes.Equal(in, before) {
		t.Errorf("Admit has changed its input %q", before)
	}
	want, wantV, wantErr := a.steps(in, o)
	switch {
	case errorText(err) != errorText(wantErr):
		t.Errorf("%q after %q: Admit fails with %v, its steps with %v", in, o.Validate.Old, err, wantErr)
	case err != nil:
		return true
	case !bytes.Equal(r.Bytes, want.Bytes) || r.Changes != want.Changes:
		t.Errorf("%q is admitted as %q (%v), normalized as %q (%v)", in, r.Bytes, r.Changes, want.Bytes, want.Changes)
	case !reflect.DeepEqual(v, wantV):
		t.Errorf("%q after %q, %+v: Admit says %s, Validate says %s", in, o.Validate.Old, o, shown(v), shown(wantV))
	default:
		return true
	}
	return false
}

// steps is what Admit must be equal to.
func (a admitter) steps(in []byte, o espalier.AdmitOptions) (espalier.Result, espalier.Validation, error) {
	n := espalier.NormalizeOptions{Source: o.Source}
	if o.Report != nil {
		n.Report = new(espalier.Report)
	}
	r, err := a.s.Normalize(in, n)
	if err != nil {
		return r, espalier.Validation{}, err
	}
	v, err := a.s.Validate(r.Bytes, o.Validate)
	return r, v, err
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func shown(v espalier.Validation) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// TestAdmitIsNormalizeAndValidate: one call and two say the same, for objects
// whose numbers change when they are stored, too.
func TestAdmitIsNormalizeAndValidate(t *testing.T) {
	list := admitters(t)
	for _, a := range list {
		for _, in := range admitObjects {
			for bits := 0; bits < 256; bits += 7 {
				a.check(t, []byte(in), a.options(uint8(bits), nil))
			}
			for k, old := range admitObjects {
				a.check(t, []byte(in), a.options(uint8(k*37), []byte(old)))
			}
		}
	}
}

// FuzzAdmit looks for an object for which Admit is not Normalize and then
// Validate.
func FuzzAdmit(f *testing.F) {
	list := admitters(f)
	// TestAdmitIsNormalizeAndValidate tries all of them with all schemas.
	for i, in := range admitObjects {
		which := uint8(i * 5)
		f.Add(which, uint8(i*37), []byte(in), []byte(nil))
		f.Add(which, uint8(i*11), []byte(in), []byte(admitObjects[(i+1)%len(admitObjects)]))
	}
	f.Fuzz(func(t *testing.T, which, bits uint8, in, old []byte) {
		if len(in) > 4096 || len(old) > 4096 {
			return
		}
		if len(old) == 0 {
			old = nil
		}
		a := list[int(which)%len(list)]
		a.check(t, in, a.options(bits, old))
	})
}
