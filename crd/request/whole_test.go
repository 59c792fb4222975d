package request_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/request"
)

func gadget(t *testing.T, schema string) (*request.Resource, *request.Schema) {
	t.Helper()
	v := &crd.Version{Name: "v1", Status: true, Schema: []byte(schema)}
	s, err := request.Compile(v, false)
	if err != nil {
		t.Fatal(err)
	}
	return request.New(&crd.CRD{Group: "example.com", Names: crd.Names{Kind: "Widget"}, Namespaced: true}, v), s
}

// API servers look for the kind before they decode, and take the last one that is decoded.
func TestDecodeLooksForTheKindFirst(t *testing.T) {
	_, s := gadget(t, `{"type":"object"}`)
	for body, want := range map[string]string{
		`{"apiVersion":"a/v1","kind":"K","metadata":1e400}`: "json: cannot unmarshal number 1e400 into Go value of type float64",
		`{"kind":{},"kind":"Tree","apiVersion":"a/v1"}`:     "couldn't get version/kind; json parse error: json: cannot unmarshal object into Go struct field .kind of type string",
		`{"Kind":[],"kind":"Tree","apiVersion":"a/v1"}`:     "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go struct field .kind of type string",
		`{"apiVersion":"a/v1","kind":"K","kind":null}`:      "Object 'Kind' is missing in ",
	} {
		if _, _, err := s.Decode([]byte(body), nil, 0); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	_, s = gadget(t, `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`)
	if _, _, err := s.Decode([]byte(`{"apiVersion":"a/v1","kind":"K","Kind":{}}`), nil, 0); err == nil || !strings.HasPrefix(err.Error(), "couldn't get version/kind") {
		t.Errorf("with a kind that is preserved: %v", err)
	}
	if _, err := request.DecodeForeign([]byte(`{"apiVersion":"a/v1","kind":"K","x":1e400}`)); err == nil || !strings.HasPrefix(err.Error(), "json: ") {
		t.Errorf("of another kind: %v", err)
	}
}

// writeStatus returns the errors of a write of a status. before is how the stored object goes on after its metadata.
func writeStatus(t *testing.T, r *request.Resource, s *request.Schema, before, status string) string {
	t.Helper()
	const object = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","namespace":"d","resourceVersion":"7"}`
	old, err := s.DecodeStored([]byte(object + before))
	if err != nil {
		t.Fatal(err)
	}
	o, _, err := s.Decode([]byte(object+`,"status":`+status+`}`), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.PrepareUpdate(o, old, request.Status)
	found, err := r.Validate(s, o, request.Options{Old: old, Target: request.Status})
	if err != nil {
		t.Fatal(err)
	}
	return texts(&found)
}

// Errors outside the status do not keep rules from being evaluated when a status is written: API servers do not find
// them there.
func TestRulesOfStatusUpdates(t *testing.T) {
	r, s := gadget(t, `{"type":"object","required":["spec"],"properties":{"spec":{"type":"object"},"status":{"type":"object","properties":{
		"ready":{"type":"integer","format":"int32","x-kubernetes-validations":[{"rule":"self >= 0","message":"negative"}]}}}}}`)
	for status, want := range map[string]string{
		`{"ready":1}`:    "",
		`{"ready":-1}`:   "status.ready: Invalid value: -1: negative",
		`{"ready":1e12}`: `status: Invalid value: "": Checked value must be of type integer with format int32 in ready`,
		`{"ready":"x"}`: `status.ready: Invalid value: "string": ready in body must be of type integer: "string"` + "\n" +
			"<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
	} {
		if got := writeStatus(t, r, s, "}", status); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", status, got, want)
		}
	}
}

// API servers name the items of a status that is a list as members of it.
func TestStatusThatIsAList(t *testing.T) {
	r, s := gadget(t, `{"type":"object","properties":{"status":{"type":"array","items":{"type":"integer"}}}}`)
	if got, want := writeStatus(t, r, s, "}", `["x"]`), `status.[0]: Invalid value: "string": [0] in body must be of type integer: "string"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A status that is a number has no name in the details of its errors, and fields are named as they are called in it.
func TestStatusThatIsANumber(t *testing.T) {
	for _, c := range []struct{ schema, status, want string }{
		{`{"type":"integer","format":"int32","maximum":3000000000}`, `3`, `status: Invalid value: "": Maximum boundary value must be of type integer with format int32 in `},
		{`{"type":"number","multipleOf":-2}`, `3`, `status: Invalid value: -2: factor MultipleOf declared for  must be positive: -2`},
		{`{"type":"object","properties":{"a":{"type":"number","multipleOf":-2}}}`, `{"a":3}`, `status.a: Invalid value: -2: factor MultipleOf declared for a must be positive: -2`},
	} {
		r, s := gadget(t, `{"type":"object","properties":{"status":`+c.schema+`}}`)
		if got := writeStatus(t, r, s, "}", c.status); got != c.want {
			t.Errorf("%s: %s, want %s", c.schema, got, c.want)
		}
	}
}

// Where fields are preserved, so is a null. It is no change of a status that is missing, and rules are evaluated.
func TestNullStatus(t *testing.T) {
	v := &crd.Version{Name: "v1", Status: true, Schema: []byte(`{"type":"object","properties":{"status":{"type":"object"},
		"spec":{"type":"object","x-kubernetes-validations":[{"rule":"self.size == 1","message":"no"}],"properties":{"size":{"type":"integer"}}}}}`)}
	s, err := request.Compile(v, true)
	if err != nil {
		t.Fatal(err)
	}
	r := request.New(&crd.CRD{Group: "example.com", Names: crd.Names{Kind: "Widget"}, Namespaced: true}, v)
	for before, want := range map[string]string{
		`}`:           "",
		`,"spec":{}}`: `spec: Invalid value: "object": no such key: size evaluating rule: no`,
		`,"status":{}}`: `status: Invalid value: "null":  in body must be of type object: "null"` + "\n" +
			"<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
	} {
		if got := writeStatus(t, r, s, before, "null"); got != want {
			t.Errorf("after %s: %s", before, got)
		}
	}
}

// One of the errors says only that rules were not checked, and those that are not about a schema say nothing of them.
func TestNotChecked(t *testing.T) {
	r, s := gadget(t, `{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-validations":[{"rule":"true"}],"properties":{"a":{"type":"string","enum":["x"]}}}}}`)
	found, err := r.Validate(s, decoded(t, s, `"spec":{"a":"y"}`), request.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var about []string
	for _, p := range found.Problems {
		if request.NotChecked(p.Violation) {
			about = append(about, p.Error.Error())
		}
	}
	if len(found.Problems) != 3 || len(about) != 1 || !strings.Contains(about[0], "rules were not checked") || request.NotChecked(nil) {
		t.Errorf("%q of\n%s", about, texts(&found))
	}
}
