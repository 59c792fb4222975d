package syntax

import (
	"testing"
)

// TestKeywordsAreReadAndWritten: every keyword that is read is written again as it was.
func TestKeywordsAreReadAndWritten(t *testing.T) {
	for _, keyword := range []string{
		`"$ref":"a"`, `"$schema":"a"`, `"additionalItems":false`, `"additionalItems":{"type":"string"}`, `"additionalProperties":true`,
		`"additionalProperties":{"type":"string"}`, `"allOf":[{"type":"string"},{}]`, `"anyOf":[{"type":"string"}]`, `"default":{"a":1}`,
		`"definitions":{"a":{"type":"string"}}`, `"dependencies":{"a":["b"],"c":{"type":"string"}}`, `"description":"a"`, `"enum":["a",1]`, `"example":[1]`,
		`"exclusiveMaximum":true`, `"exclusiveMinimum":true`, `"externalDocs":{"description":"a","url":"b"}`, `"format":"a"`, `"id":"a"`,
		`"items":{"type":"string"}`, `"items":[{"type":"string"},{}]`, `"maxItems":1`, `"maxLength":2`, `"maxProperties":3`, `"maximum":4.5`, `"minItems":5`,
		`"minLength":6`, `"minProperties":7`, `"minimum":8`, `"multipleOf":9`, `"not":{"type":"string"}`, `"nullable":true`, `"oneOf":[{}]`, `"pattern":"a"`,
		`"patternProperties":{"a":{}}`, `"properties":{"a":{"type":"string"},"b":{}}`, `"readOnly":true`, `"required":["b","a"]`, `"title":"a"`, `"type":"a"`,
		`"uniqueItems":true`, `"x-kubernetes-embedded-resource":true`, `"x-kubernetes-int-or-string":true`, `"x-kubernetes-list-map-keys":["a"]`,
		`"x-kubernetes-list-type":"a"`, `"x-kubernetes-map-type":"a"`, `"x-kubernetes-preserve-unknown-fields":true`,
	} {
		src := "{" + keyword + "}"
		if got := string(parseSchema(t, src).AppendJSON([]byte("x "))); got != "x "+src {
			t.Errorf("%s is written as %s", src, got)
		}
	}
}

// TestKeywordsWithProblemsAreWritten: what could not be read is null, and the rest is there.
func TestKeywordsWithProblemsAreWritten(t *testing.T) {
	s, problems := parse(t, `{"properties":1,"type":"a"}`)
	if got, want := string(s.AppendJSON([]byte("x "))), `x {"properties":null,"type":"a"}`; len(problems) != 1 || got != want {
		t.Errorf("%v, written as %s", problems, got)
	}
}

// TestMalformedKeywords: what upstream ignores is remembered, with a reason.
func TestMalformedKeywords(t *testing.T) {
	for _, c := range []struct{ before, value, after, want string }{
		{`{"x-kubernetes-unions":`, `{}`, `}`, "x-kubernetes-unions must be an array"},
		{`{"x-kubernetes-unions":[`, `1`, `]}`, "x-kubernetes-unions entries must be objects"},
		{`{"x-kubernetes-unions":[{"discriminator":`, `1`, `}]}`, "x-kubernetes-unions discriminator must be a string"},
		{`{"x-kubernetes-unions":[{"fields":`, `[]`, `}]}`, "x-kubernetes-unions fields must be an object of strings"},
		{`{"x-kubernetes-unions":[{"fields":{"a":`, `1`, `}}]}`, "x-kubernetes-unions discriminator values must be strings"},
		{`{"x-kubernetes-unions":[{`, `"other"`, `:1}]}`, "x-kubernetes-unions entries may have only discriminator and fields"},
		{`{"readOnly":`, `1`, `}`, "readOnly must be a boolean"},
	} {
		list := parseSchema(t, c.before+c.value+c.after).Rare().Malformed
		if len(list) != 1 || list[0].Keyword+" "+list[0].Detail != c.want || list[0].Offset != len(c.before) {
			t.Errorf("%s: %+v, want %s at byte %d", c.before+c.value+c.after, list, c.want, len(c.before))
		}
	}
}

// TestAMemberWithoutAName: a property may be called "", and be a member of a union that has no
// discriminator.
func TestAMemberWithoutAName(t *testing.T) {
	s := parseSchema(t, `{"type":"object","properties":{"":{},"b":{}},"x-kubernetes-unions":[{"fields":{"":"","b":""}}]}`)
	if list := WellFormedUnions(s); len(list) != 1 {
		t.Errorf("%v", list)
	}
}
