package compile

import (
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/finding"
)

// TestRootMetadataSaysNothingElse: whatever the schema says about metadata besides names,
// clusters refuse.
func TestRootMetadataSaysNothingElse(t *testing.T) {
	refused := func(keyword string) bool {
		s := parse(t, `{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string"}}`+keyword+`}}}`)
		return slices.ContainsFunc(Check(s, CheckOptions{}), func(f finding.Finding) bool { return f.Check == "root-metadata" })
	}
	if refused("") {
		t.Error("names are refused")
	}
	for _, keyword := range []string{
		`"description":"x"`, `"title":"x"`, `"nullable":true`, `"externalDocs":{"url":"x"}`, `"example":1`,
		`"x-kubernetes-preserve-unknown-fields":true`, `"x-kubernetes-embedded-resource":true`, `"x-kubernetes-int-or-string":true`,
		`"x-kubernetes-list-map-keys":["a"]`, `"x-kubernetes-list-type":"set"`, `"x-kubernetes-map-type":"atomic"`, `"x-kubernetes-validations":[{"rule":"true"}]`,
		`"format":"x"`, `"pattern":"x"`, `"maximum":1,"exclusiveMaximum":true`, `"exclusiveMaximum":true`, `"exclusiveMinimum":true`, `"uniqueItems":true`,
		`"maximum":1`, `"minimum":1`, `"multipleOf":1`, `"maxLength":1`, `"minLength":1`, `"maxItems":1`, `"minItems":1`, `"maxProperties":1`, `"minProperties":1`,
		`"enum":[{}]`, `"required":["name"]`, `"allOf":[{}]`, `"anyOf":[{}]`, `"oneOf":[{}]`, `"not":{}`, `"items":{"type":"string"}`,
		`"additionalProperties":{"type":"string"}`,
	} {
		if !refused("," + keyword) {
			t.Errorf("%s is not refused", keyword)
		}
	}
}

// TestUnsupportedPartsHideOtherFindings: upstream stops at a schema that it cannot convert,
// so that other findings in it are not reported.
func TestUnsupportedPartsHideOtherFindings(t *testing.T) {
	findings := func(keyword string) int {
		s := parse(t, `{"type":"object","properties":{"a":{}}`+keyword+`}`)
		n := 0
		for _, f := range Check(s, CheckOptions{}) {
			if f.Severity == finding.Error && f.Pointer == "/properties/a" || f.Severity == finding.Error && f.Pointer == "/properties/a/type" {
				n++
			}
		}
		return n
	}
	if findings("") == 0 {
		t.Fatal("a field without a type is accepted")
	}
	for _, keyword := range []string{
		`"id":"x"`, `"$schema":"x"`, `"$ref":"x"`, `"patternProperties":{"x":{}}`, `"dependencies":{"x":["y"]}`, `"additionalItems":true`,
		`"definitions":{"x":{}}`, `"items":[{}]`, `"x-kubernetes-preserve-unknown-fields":false`, `"not":{"id":"x"}`,
	} {
		if n := findings("," + keyword); n != 0 {
			t.Errorf("%s: %d findings of a field", keyword, n)
		}
	}
}

// TestNonStructuralSchemas: schemas from before types were checked need none.
func TestNonStructuralSchemas(t *testing.T) {
	s := parse(t, `{"type":"object","properties":{"a":{}}}`)
	for _, f := range Check(s, CheckOptions{NonStructural: true}) {
		if f.Severity == finding.Error {
			t.Error(f.Error())
		}
	}
}

// TestFindingsAreInOrder: what is alike to read comes in the order in which it was found.
func TestFindingsAreInOrder(t *testing.T) {
	f := findings{room: [2]int{maxRendered, maxRendered}, list: []finding.Finding{
		{Check: "f", Path: "b"}, {Check: "e", Path: "a", Detail: "z"}, {Check: "d", Path: "a", Detail: "y", Offset: 2},
		{Check: "c", Path: "a", Detail: "y", Offset: 1}, {Check: "b", Path: "a", Detail: "y", Offset: 1}, {Check: "a", Path: "a", Detail: "y", Offset: 1},
	}}
	var got []string
	for _, x := range f.sorted() {
		got = append(got, string(x.Check))
	}
	if want := []string{"c", "b", "a", "d", "e", "f"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestStatusRootKeywords: of what is not allowed at the root with the status subresource only the
// first is reported, in the order of upstream's Go type.
func TestStatusRootKeywords(t *testing.T) {
	keywords := []struct{ name, value string }{
		{"id", `"x"`}, {"$schema", `"x"`}, {"$ref", `"x"`}, {"nullable", "true"}, {"default", "{}"}, {"enum", "[{}]"},
		{"maxProperties", "1"}, {"minProperties", "1"}, {"allOf", "[{}]"}, {"oneOf", "[{}]"}, {"anyOf", "[{}]"}, {"not", "{}"},
		{"additionalProperties", "{}"}, {"patternProperties", "{}"}, {"dependencies", "{}"}, {"additionalItems", "true"}, {"definitions", "{}"},
		{"x-kubernetes-embedded-resource", "true"}, {"x-kubernetes-int-or-string", "true"}, {"x-kubernetes-list-map-keys", `["a"]`},
		{"x-kubernetes-list-type", `"map"`}, {"x-kubernetes-map-type", `"atomic"`},
	}
	for i, first := range keywords {
		for _, second := range keywords[i:] {
			src := `{"type":"object","` + first.name + `":` + first.value
			if second != first {
				src += `,"` + second.name + `":` + second.value
			}
			src += "}"
			var at []string
			for _, f := range Check(parse(t, src), CheckOptions{StatusSubresource: true}) {
				if f.Check == "status-root-keyword" {
					at = append(at, f.Pointer)
				}
			}
			if !slices.Equal(at, []string{"/" + first.name}) {
				t.Errorf("%s: reported are %v", src, at)
			}
		}
	}
}
