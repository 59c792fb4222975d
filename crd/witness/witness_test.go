package witness_test

import (
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/witness"
	"github.com/espalier-dev/espalier/internal/crdtree"
)

func parsed(t testing.TB, schema string) *crd.CRD {
	t.Helper()
	d, err := crd.Parse(fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"trees.orchard.example"},
		"spec":{"group":"orchard.example","scope":"Namespaced","names":{"plural":"trees","kind":"Tree"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"f":{%s}}}}}}}]}}`, schema))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Witnesses of changes of spec.f.
func TestFind(t *testing.T) {
	f := witness.Focus{Path: []witness.Step{{Name: "spec"}, {Name: "f"}}}
	const head = `{"apiVersion":"orchard.example/v1","kind":"Tree","metadata":{"name":"a"}`
	for _, c := range []struct {
		name, old, now, keyword string
		object, refusal         string
	}{
		{"a bound", `"type":"integer"`, `"type":"integer","maximum":7`, "maximum", `{"f":8}`, "spec.f: Invalid value: 8: spec.f in body should be less than or equal to 7"},
		{"a length beside a pattern", `"type":"string","pattern":"^x[a-z]*$"`, `"type":"string","pattern":"^x[a-z]*$","maxLength":3`, "maxLength", `{"f":"xaaa"}`, "spec.f: Too long: may not be more than 3 bytes"},
		{"a removed field", `"type":"object","properties":{"a":{"type":"string"}},"required":["a"]`, `"type":"object"`, "", `{"f":{"a":"a"}}`, "the API server prunes spec.f.a"},
		{"a rule", `"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}`,
			`"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"x-kubernetes-validations":[{"rule":"!has(self.a) || has(self.b)"}]`,
			"x-kubernetes-validations", `{"f":{"a":"a"}}`, "spec.f: Invalid value: failed rule: !has(self.a) || has(self.b)"},
		{"a branch", `"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}`,
			`"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"not":{"required":["a","b"]}`, "not", `{"f":{"a":"a","b":"a"}}`, `<nil>: Invalid value: "": "spec.f" must not validate the schema (not)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, now := parsed(t, c.old), parsed(t, c.now)
			f := f
			f.Keyword = c.keyword
			if c.keyword == "x-kubernetes-validations" {
				f.Rule = &crdtree.Parse(&now.Versions[0]).Tree.Property("spec").Property("f").Validations[0]
			}
			w, result := witness.NewPair(old, now, &old.Versions[0], &now.Versions[0]).Find(f)
			if want := head + `,"spec":` + c.object + `}`; result != witness.Found || string(w.Object) != want || w.Refusal != c.refusal {
				t.Errorf("%d %s\n%s\nexpected %s\n%s", result, w.Object, w.Refusal, want, c.refusal)
			}
		})
	}
}
