package witness_test

import (
	"fmt"
	"strings"
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

// Bounds of large values have large witnesses. What is too large to be tried is not said to be searched.
func TestFindLarge(t *testing.T) {
	const keyed = `"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}`
	for _, c := range []struct {
		name, old, now, keyword string
		want                    witness.Result
	}{
		{"items that differ", keyed, keyed + `,"maxItems":1000`, "maxItems", witness.Found},
		{"items with many fields", `"type":"array","items":{"type":"object","required":["a","b"],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`,
			`"type":"array","maxItems":2000,"items":{"type":"object","required":["a","b"],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, "maxItems", witness.Found},
		{"too many items", keyed, keyed + `,"maxItems":100000`, "maxItems", witness.NotSearched},
		{"a text", `"type":"string"`, `"type":"string","maxLength":51200`, "maxLength", witness.Found},
		{"base64", `"type":"string","format":"byte"`, `"type":"string","format":"byte","maxLength":51200`, "maxLength", witness.Found},
		{"too long a text", `"type":"string"`, `"type":"string","maxLength":1000000`, "maxLength", witness.NotSearched},
		{"no such text", `"type":"string","enum":["a"]`, `"type":"string","enum":["a"],"maxLength":3`, "maxLength", witness.NotFound},
	} {
		old, now := parsed(t, c.old), parsed(t, c.now)
		f := witness.Focus{Path: []witness.Step{{Name: "spec"}, {Name: "f"}}, Keyword: c.keyword}
		if _, result := witness.NewPair(old, now, &old.Versions[0], &now.Versions[0]).Find(f); result != c.want {
			t.Errorf("%s: %d, want %d", c.name, result, c.want)
		}
	}
}

// What fields of a schema do not concern a change take nothing from its search.
func TestFindInLargeSchema(t *testing.T) {
	fields := func(bound string) string {
		var b strings.Builder
		for i := range 1500 {
			fmt.Fprintf(&b, `"f%d":{"type":"object","description":"%s","properties":{"a":{"type":"string"%s},"b":{"type":"integer"}}},`, i, strings.Repeat("long ", 40), bound)
		}
		return `"type":"object","properties":{` + strings.TrimSuffix(b.String(), ",") + `}`
	}
	old, now := parsed(t, fields("")), parsed(t, fields(`,"maxLength":7`))
	pair := witness.NewPair(old, now, &old.Versions[0], &now.Versions[0])
	for i := range 1500 {
		f := witness.Focus{Path: []witness.Step{{Name: "spec"}, {Name: "f"}, {Name: fmt.Sprintf("f%d", i)}, {Name: "a"}}, Keyword: "maxLength"}
		if _, result := pair.Find(f); result != witness.Found {
			t.Fatalf("change %d: %d", i, result)
		}
	}
}
