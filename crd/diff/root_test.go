package diff_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestMetadata has schemas of whole objects. Every resource has metadata, apiVersion and
// kind, also if its schema does not say so, and the API server does not prune them.
func TestMetadata(t *testing.T) {
	const bare = `{"type":"object"}`
	with := func(fields string) string { return `{"type":"object","properties":{` + fields + `}}` }
	embedded := func(fields string) string {
		return with(`"e":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"x":{"type":"string"}` + fields + `}}`)
	}
	for _, c := range []struct {
		name, old, now string
		want           []string
	}{
		{"metadata is said", bare, with(`"metadata":{"type":"object"}`), nil},
		{"metadata is no longer said", with(`"metadata":{"type":"object"}`), bare, nil},
		{"kind is said", bare, with(`"apiVersion":{"type":"string"},"kind":{"type":"string"}`), nil},
		{"kind is no longer said", with(`"apiVersion":{"type":"string"},"kind":{"type":"string"}`), bare, nil},
		{"short names", bare, with(`"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":9}}}`), only("breaking WS max-length-lowered metadata.name → 9")},
		{"short generated names", bare, with(`"metadata":{"type":"object","properties":{"generateName":{"type":"string","maxLength":9}}}`), only("breaking WS max-length-lowered metadata.generateName → 9")},
		{"any length of names", with(`"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":9}}}`), bare, only("safe R max-length-raised metadata.name 9 →")},
		{"one kind", bare, with(`"kind":{"type":"string","enum":["Tree"]}`), only(`breaking WS enum-added kind → "Tree"`)},
		{"one version", bare, with(`"apiVersion":{"type":"string","enum":["v1"]}`), only(`breaking WS enum-added apiVersion → "v1"`)},
		{"metadata of other objects is a field", with(`"spec":{"type":"object"}`), with(`"spec":{"type":"object","properties":{"metadata":{"type":"object"}}}`), only("safe R field-added spec.metadata → object")},
		{"and pruned", with(`"spec":{"type":"object","properties":{"metadata":{"type":"object"}}}`), with(`"spec":{"type":"object"}`), only("breaking WRS field-removed spec.metadata object →")},
		{"embedded metadata is said", embedded(``), embedded(`,"metadata":{"type":"object"},"kind":{"type":"string"},"apiVersion":{"type":"string"}`), nil},
		{"embedded metadata is no longer said", embedded(`,"metadata":{"type":"object"},"kind":{"type":"string"},"apiVersion":{"type":"string"}`), embedded(``), nil},
		{"embedded kind", embedded(``), embedded(`,"kind":{"type":"string","enum":["Pod"]}`), only(`breaking WS enum-added e.kind → "Pod"`)},
		{"no longer embedded, fields specified", with(`"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"properties":{"metadata":{"type":"object"}}}`),
			with(`"e":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"metadata":{"type":"object"}}}`), only("breaking WRS embedded-changed e true →", "breaking WRS preserve-removed e.metadata preserved → pruned")},
	} {
		compareOnly(t, c.name, crdWith(c.old), crdWith(c.now), c.want)
	}
}

func compareOnly(t *testing.T, name string, old, now []byte, want []string) {
	t.Helper()
	changes, err := compare(old, now)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range changes {
		got = append(got, shown(x))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: reported:\n\t%s\nexpected:\n\t%s", name, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// CRDs that preserve unknown fields prune nothing at any depth: a field that is no longer
// specified is kept.
func TestPreservingCRDs(t *testing.T) {
	ancient := func(f string) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"name":"trees.orchard.example"},
			"spec":{"group":"orchard.example","version":"v1","names":{"plural":"trees","kind":"Tree"},"preserveUnknownFields":true,
			"validation":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"f":%s}}}}}}}`, f)
	}
	const object, empty = `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"type":"object"}`
	for _, c := range []struct {
		name, old, now string
		want           []string
	}{
		{"field", object, empty, only("safe R field-unspecified a string → any")},
		{"field of items", `{"type":"array","items":` + object + `}`, `{"type":"array","items":` + empty + `}`, only("safe R field-unspecified [*].a string → any")},
		{"field deep in items", `{"type":"array","items":{"type":"object","properties":{"b":` + object + `}}}`, `{"type":"array","items":{"type":"object","properties":{"b":` + empty + `}}}`,
			only("safe R field-unspecified [*].b.a string → any")},
		{"field deep in values", `{"type":"object","additionalProperties":{"type":"object","properties":{"b":` + object + `}}}`, `{"type":"object","additionalProperties":{"type":"object","properties":{"b":` + empty + `}}}`,
			only("safe R field-unspecified *.b.a string → any")},
		{"field of values", `{"type":"object","additionalProperties":` + object + `}`, `{"type":"object","additionalProperties":` + empty + `}`, only("safe R field-unspecified *.a string → any")},
		{"items", `{"type":"array","items":{"type":"string"}}`, `{"type":"array"}`, only("risky R type-widened [*] string → any", "risky R nullable-added [*] → true")},
		{"field specified", empty, object, only("breaking WS field-specified a any → string")},
	} {
		compareOnly(t, c.name, ancient(c.old), ancient(c.now), c.want)
	}
}

// TestLegacySchemas has what only v1beta1 accepts, such as additionalProperties: false.
func TestLegacySchemas(t *testing.T) {
	const closed, a, both = `"type":"object","additionalProperties":false`, `,"properties":{"a":{"type":"string"}}`, `,"properties":{"a":{"type":"string"},"b":{"type":"string"}}`
	const kept = `"type":"object","x-kubernetes-preserve-unknown-fields":true`
	const counted = `"type":"object","additionalProperties":{"type":"integer","maximum":3}`
	runFieldCases(t, []fieldCase{
		{"other fields were pruned", `"type":"object"` + a, closed + a, "", nil},
		{"other fields are pruned", closed + a, `"type":"object"` + a, "", nil},
		{"other fields were kept", kept, closed, noValue, only("breaking WS additional-properties-closed → false", "breaking WRS preserve-removed preserved → pruned")},
		{"other fields are kept", closed, kept, "", only("safe R additional-properties-opened false →", "safe R preserve-added pruned → preserved")},
		{"field removed", closed + both, closed + a, noValue, only("breaking WS additional-properties-closed → false", "breaking WRS field-removed b string →")},
		{"field added", closed + a, closed + both, "", only("safe R additional-properties-opened false →", "safe R field-added b → string")},
		{"stays closed", closed + a, closed + `,"properties":{"a":{"type":"string","maxLength":1}}`, noValue, only("breaking WS max-length-lowered a → 1")},
		{"values were allowed", `"type":"object","additionalProperties":true`, closed, noValue, only("breaking WS additional-properties-closed → false")},
		{"values were allowed, and a branch says nothing about them", `"type":"object","additionalProperties":true,"allOf":[{"maxProperties":9}]`, closed + `,"allOf":[{"maxProperties":9}]`, noValue,
			only("breaking WS additional-properties-closed → false")},
		{"a branch implies nothing about values", counted, counted + `,"anyOf":[{"additionalProperties":{"maximum":2}},{"maxProperties":0}]`, noValue, only("risky WS junctor-changed → 2 branches")},
		{"the schema of values implies a branch", counted, counted + `,"anyOf":[{"additionalProperties":{"maximum":3}},{"maxProperties":0}]`, "", nil},
		{"other fields are pruned, whatever a branch says", `"type":"object"`, `"type":"object","anyOf":[{"additionalProperties":{"maximum":3}},{"maxProperties":0}]`, "", nil},
		{"a field that only allOf names is kept", `"type":"object","allOf":[{"properties":{"a":{"maxLength":2}}}]`, kept + `,"allOf":[{"properties":{"a":{"maxLength":2}}}]`, "", only("safe R preserve-added pruned → preserved")},
		{"items no longer preserved", `"type":"array","x-kubernetes-preserve-unknown-fields":true`, `"type":"array"`, noValue, only("breaking WRS preserve-removed preserved → pruned")},
		{"a field that only allOf names", kept + `,"allOf":[{"properties":{"a":{"maxLength":2}}}]`, kept + `,"allOf":[{"properties":{"a":{"maxLength":1}}}]`, noValue, only("breaking WS max-length-lowered a 2 → 1")},
		{"items specified", `"type":"array"`, `"type":"array","items":{"type":"string"}`, noValue, only("breaking WS field-specified [*] any → string")},
		{"unions", `"type":"object","properties":{"k":{"type":"string"},"a":{"type":"string"}}`,
			`"type":"object","properties":{"k":{"type":"string"},"a":{"type":"string"}},"x-kubernetes-unions":[{"discriminator":"k","fields":{"a":"A"}}]`, noValue, only("risky WS union-changed")},
		{"unions removed", `"type":"object","properties":{"k":{"type":"string"},"a":{"type":"string"}},"x-kubernetes-unions":[{"discriminator":"k","fields":{"a":"A"}}]`,
			`"type":"object","properties":{"k":{"type":"string"},"a":{"type":"string"}}`, "", only("safe R union-changed")},
	})
}

// A proof that failed stays failed, whatever is found next. Of a version that is not served
// only stored objects count: required breaks them, and the map type does not.
func TestProofsStayRefuted(t *testing.T) {
	notServed := func(a string) []byte {
		f := `"f":{"type":"object","x-kubernetes-preserve-unknown-fields":true` + a + `}`
		return []byte(strings.Replace(string(crdWith(spec(f))), `"served":true`, `"served":false`, 1))
	}
	compareOnly(t, "required, then the map type", notServed(``),
		notServed(`,"properties":{"a":{"x-kubernetes-preserve-unknown-fields":true,"nullable":true,"required":["x"],"x-kubernetes-map-type":"atomic"}}`),
		only("breaking S field-specified a any → any"))
}
