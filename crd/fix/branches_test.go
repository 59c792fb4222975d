package fix_test

import (
	"fmt"
	"strings"
	"testing"
)

// What only branches specify is specified outside them, too.
func TestLifted(t *testing.T) {
	var fields []string
	for i := range 17 {
		fields = append(fields, fmt.Sprintf(`"p%d":{"type":"string"}`, i))
	}
	many := strings.Join(fields, ",")
	testFields(t, []fieldCase{
		// One text moves; of several, none.
		{`{"allOf":[{"type":"string","title":"T","description":"one"},{"description":"one"}]}`, `{"type":"string","title":"T","description":"one"}`, ""},
		{`{"allOf":[{"type":"string","description":"one"},{"description":"two"}]}`, `{"type":"string"}`, ""},
		{`{"description":"outer","allOf":[{"type":"string","description":"one"}]}`, `{"description":"outer","type":"string"}`, ""},
		{`{"type":"string","not":{"enum":["x"],"description":"never"}}`, `{"type":"string","not":{"enum":["x"]}}`, ""},
		// A default in an allOf always applies; one in an anyOf never did.
		{`{"allOf":[{"type":"string","default":"x"}]}`, `{"type":"string","default":"x"}`, ""},
		{`{"type":"string","anyOf":[{"minLength":1,"default":"x"},{"maxLength":0}]}`, `{"type":"string","anyOf":[{"minLength":1},{"maxLength":0}]}`, "advice /anyOf/0/default junctor-default"},
		{`{"type":"string","default":"x","anyOf":[{"minLength":1,"default":"x"},{"maxLength":0}]}`, `{"type":"string","default":"x","anyOf":[{"minLength":1},{"maxLength":0}]}`, ""},
		// The default is not valid outside: it stays an error if it moves, so it goes.
		{`{"type":"string","maxLength":1,"allOf":[{"default":"xyz"}]}`, `{"type":"string","maxLength":1}`, "advice /allOf/0/default junctor-default"},

		{`{"type":"object","anyOf":[{` + keep + `,"required":["a"]},{"maxProperties":1}]}`, `{"type":"object",` + keep + `,"anyOf":[{"required":["a"]},{"maxProperties":1}]}`, ""},
		{`{"type":"object","anyOf":[{"additionalProperties":true,"required":["a"]},{"maxProperties":1}]}`, `{"type":"object",` + keep + `,"anyOf":[{"required":["a"]},{"maxProperties":1}]}`, ""},
		{`{` + keep + `,"allOf":[{` + keep + `,"minLength":1}]}`, `{` + keep + `,"allOf":[{"minLength":1}]}`, ""},
		{`{` + either + `,"allOf":[{"x-kubernetes-embedded-resource":true,"minLength":1}]}`, `{` + either + `,"allOf":[{"minLength":1}]}`, ""},
		{`{"type":"object","allOf":[{"x-kubernetes-embedded-resource":true}]}`, `{"type":"object",` + keep + `}`, "wider  junctor-embedded-resource"},

		// Objects of many fields.
		{`{"type":"object","properties":{` + many + `},"anyOf":[{"properties":{"b":{"type":"string","minLength":1},"p16":{"type":"string","minLength":1}}},{"properties":{"c":{"enum":["on"]},"b":{"minLength":3}}}]}`,
			`{"type":"object","properties":{` + many + `,"b":{"type":"string"},"c":{"type":"string"}},"anyOf":[{"properties":{"b":{"minLength":1},"p16":{"minLength":1}}},{"properties":{"c":{"enum":["on"]},"b":{"minLength":3}}}]}`,
			"narrower /properties/b/type type-required; narrower /properties/c/type type-required"},

		// Fields and items of branches.
		{`{"type":"object","anyOf":[{"properties":{"a":{"type":"string","minLength":1}}},{"properties":{"b":{"enum":["on"]}}}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"properties":{"a":{"minLength":1}}},{"properties":{"b":{"enum":["on"]}}}]}`,
			"narrower /properties/a/type type-required; narrower /properties/b/type type-required"},
		{`{"type":"object","allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"a":{"minLength":1}}}]}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"allOf":[{"properties":{"a":{"minLength":1}}}]}`, ""},
		{`{"type":"object","anyOf":[{"properties":{"a":{"type":"string","minLength":1}}},{"properties":{"a":{"type":"string","enum":[""]}}}]}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"a":{"minLength":1}}},{"properties":{"a":{"enum":[""]}}}]}`, ""},
		{`{"type":"array","allOf":[{"items":{"type":"string","minLength":1}}]}`, `{"type":"array","items":{"type":"string"},"allOf":[{"items":{"minLength":1}}]}`, "narrower /items/type type-required"},
		{`{"type":"array","items":{"nullable":true},"anyOf":[{"items":{"type":"string","nullable":true,"minLength":1}},{"items":{"type":"string","nullable":true,"enum":["on"]}}]}`,
			`{"type":"array","items":{"nullable":true,"type":"string"},"anyOf":[{"items":{"minLength":1}},{"items":{"enum":["on"]}}]}`, ""},
		{`{"type":"object","additionalProperties":{"nullable":true},"anyOf":[{"additionalProperties":{"type":"string","nullable":true}},{"additionalProperties":{"type":"string","nullable":true}}]}`,
			`{"type":"object","additionalProperties":{"nullable":true,"type":"string"}}`, ""},
		{`{"type":"array","items":{"type":"string"},"anyOf":[{"items":{"type":"string"}},{"maxItems":1}]}`, `{"type":"array","items":{"type":"string"}}`, ""},
		{`{"type":"object","properties":{"a":null}}`, `{"type":"object","properties":{"a":{` + keep + `}}}`, ""},
		{`{"type":"object","allOf":[{"properties":{"a":null,"b":{"type":"string","minLength":1}}}]}`,
			`{"type":"object","properties":{"b":{"type":"string"}},"allOf":[{"properties":{"a":null,"b":{"minLength":1}}}]}`, ""},

		// Maps. The names that branches mention are keys of the map.
		{`{"type":"object","allOf":[{"additionalProperties":{"type":"string"}}]}`, `{"type":"object","additionalProperties":{"type":"string"}}`, "narrower /additionalProperties/type type-required"},
		{`{"type":"object","allOf":[{"additionalProperties":{"type":"string","minLength":1}}]}`, `{"type":"object","additionalProperties":{"type":"string"}}`,
			"narrower /additionalProperties/type type-required; wider /allOf/0/additionalProperties junctor-additional-properties"},
		{`{"type":"object","properties":{"a":{"type":"string"}},"allOf":[{"additionalProperties":{"type":"string","minLength":1}}]}`,
			`{"type":"object","properties":{"a":{"type":"string"}},` + keep + `}`, "wider /allOf/0/additionalProperties junctor-additional-properties"},
		{`{"type":"object","additionalProperties":{"type":"string"},"anyOf":[{"properties":{"a":{"type":"string","enum":["x"]}}},{"maxProperties":1}]}`,
			`{"type":"object","additionalProperties":{"type":"string"},"anyOf":[{"properties":{"a":{"enum":["x"]}}},{"maxProperties":1}]}`, ""},
		// What a branch says of values does not hold for the fields that the branch names.
		{`{"type":"object","properties":{"a":{"type":"object"},"b":{"type":"object"}},"allOf":[{"properties":{"a":{"minProperties":1}},"additionalProperties":{"properties":{"x":{"type":"string"}}}}]}`,
			`{"type":"object","properties":{"a":{"type":"object"},"b":{"type":"object","properties":{"x":{` + keep + `}}}},` + keep + `,"allOf":[{"properties":{"a":{"minProperties":1}}}]}`,
			"wider /allOf/0/additionalProperties junctor-additional-properties"},
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"integer"}}`,
			`{"type":"object","properties":{"a":{"type":"string"}},` + keep + `}`, "wider /additionalProperties properties-or-additional-properties"},
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{}}`, `{"type":"object","properties":{"a":{"type":"string"}},` + keep + `}`, ""},
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, `{"type":"object","properties":{"a":{"type":"string"}}}`, ""},
		// Fields of branches are specified outside in these cases, too.
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{},"anyOf":[{"properties":{"b":{"type":"string","minLength":1}}},{"maxProperties":1}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},` + keep + `,"anyOf":[{"properties":{"b":{"minLength":1}}},{"maxProperties":1}]}`, "narrower /properties/b/type type-required"},
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false,"anyOf":[{"properties":{"a":{"type":"string","minLength":1},"b":{"type":"string"}}},{"maxProperties":1}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"properties":{"a":{"minLength":1}}},{"maxProperties":1}]}`, "narrower /properties/b/type type-required"},
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":true,"anyOf":[{"properties":{"b":{"type":"string","minLength":1}}},{"maxProperties":1}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"additionalProperties":true,"anyOf":[{"properties":{"b":{"minLength":1}}},{"maxProperties":1}]}`, "narrower /properties/b/type type-required"},
		{`{"type":"object","properties":{"a":{}},"additionalProperties":true}`, `{"type":"object","properties":{"a":{` + keep + `}},"additionalProperties":true}`, ""},
		{`{"type":"object","properties":{},"additionalProperties":{}}`, `{"type":"object","properties":{},"additionalProperties":{` + keep + `}}`, ""},
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"integer"},"not":{"properties":{"b":{"minimum":3}}}}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{` + keep + `}},` + keep + `,"not":{"properties":{"b":{"minimum":3}}}}`,
			"wider /additionalProperties properties-or-additional-properties"},
	})
}

// Branches keep only what is value validation. Inside not and oneOf that is exact, or the
// condition goes and a note says so.
func TestReduced(t *testing.T) {
	testFields(t, []fieldCase{
		{`{"type":"object","properties":{"a":{"type":"string"}},"not":{"properties":{"a":{"type":"string","enum":["x"]}}}}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"not":{"properties":{"a":{"enum":["x"]}}}}`, ""},
		// a may be a number, for which the not did not hold.
		{`{"type":"object","properties":{"a":{` + keep + `}},"not":{"required":["a"],"properties":{"a":{"type":"string"}}}}`,
			`{"type":"object","properties":{"a":{` + keep + `}}}`, "wider /not junctor-type"},
		{`{"type":"string","nullable":true,"not":{"type":"string","enum":["x"]}}`, `{"type":"string","nullable":true}`, "wider /not junctor-type"},
		{`{"type":"string","nullable":true,"not":{"type":"string","nullable":true,"enum":["x"]}}`, `{"type":"string","nullable":true,"not":{"enum":["x"]}}`, ""},
		{`{"type":"number","not":{"type":"integer","minimum":3}}`, `{"type":"number"}`, "wider /not junctor-type"},
		{`{"type":"integer","not":{"type":"number","minimum":3}}`, `{"type":"integer","not":{"minimum":3}}`, ""},
		{`{"type":"integer","not":{"type":"integer","format":"int32"}}`, `{"type":"integer"}`, "wider /not junctor-type"},
		{`{"type":"integer","format":"int32","not":{"type":"integer","format":"int32","minimum":3}}`, `{"type":"integer","format":"int32","not":{"format":"int32","minimum":3}}`, ""},
		{`{"type":"number","not":{"type":"number","format":"float","minimum":3}}`, `{"type":"number"}`, "wider /not junctor-type"},
		{`{"type":"string","not":{"type":"string","format":"date","enum":["x"]}}`, `{"type":"string","not":{"format":"date","enum":["x"]}}`, ""},
		// Clusters accept arrays where a string has a format that they know.
		{`{"type":"string","format":"date","not":{"type":"string","enum":["x"]}}`, `{"type":"string","format":"date"}`, "wider /not junctor-type"},
		{`{"type":"string","format":"date","not":{"type":"string","format":"date","enum":["x"]}}`, `{"type":"string","format":"date","not":{"format":"date","enum":["x"]}}`, ""},

		{`{"type":"object","properties":{"a":{"type":"string"}},"not":{"properties":{"a":{"enum":["x"]}},"additionalProperties":false}}`, `{"type":"object","properties":{"a":{"type":"string"}}}`, "wider /not junctor-type"},
		{`{"type":"object","additionalProperties":{"type":"string"},"not":{"minProperties":2,"additionalProperties":{"type":"string"}}}`,
			`{"type":"object","additionalProperties":{"type":"string"},"not":{"minProperties":2}}`, ""},
		{`{"type":"object","additionalProperties":{"type":"string"},"not":{"minProperties":2,"additionalProperties":{"type":"string","minLength":1}}}`,
			`{"type":"object","additionalProperties":{"type":"string"}}`, "wider /not junctor-type"},
		{`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"a":{"enum":["x"]}},"additionalProperties":false},{"minProperties":1}]}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"a":{"enum":["x"]}}},{"minProperties":1}]}`, "wider /anyOf/0/additionalProperties properties-or-additional-properties"},

		{`{"type":"object","properties":{},"additionalProperties":{"type":"string"},"not":{"properties":{"b":{"type":"string","enum":["x"]}}}}`,
			`{"type":"object","properties":{},"additionalProperties":{"type":"string"},"not":{"properties":{"b":{"enum":["x"]}}}}`, ""},
		{`{"type":"array","items":{"type":"string"},"not":{"items":{"type":"string","enum":["x"]}}}`, `{"type":"array","items":{"type":"string"},"not":{"items":{"enum":["x"]}}}`, ""},
		{`{"type":"array","items":{` + keep + `},"not":{"items":{"type":"string","enum":["x"]}}}`, `{"type":"array","items":{` + keep + `}}`, "wider /not junctor-type"},
		{`{"type":"string","not":{"anyOf":[{"type":"string","enum":["x"]},{"maxLength":2}]}}`, `{"type":"string","not":{"anyOf":[{"enum":["x"]},{"maxLength":2}]}}`, ""},
		{`{` + keep + `,"not":{"anyOf":[{"type":"string","enum":["x"]},{"maxLength":2}]}}`, `{` + keep + `}`, "wider /not junctor-type"},
		{`{` + keep + `,"not":{"not":{"type":"string","enum":["x"]}}}`, `{` + keep + `}`, "wider /not junctor-type"},
		{`{"type":"string","not":{"not":{"type":"string","enum":["x"]}}}`, `{"type":"string","not":{"not":{"enum":["x"]}}}`, ""},

		// A field called metadata must not be inside branches.
		{`{"type":"object","properties":{"metadata":{"type":"object"}},"anyOf":[{"properties":{"metadata":{"type":"object"}},"minProperties":2},{"maxProperties":1}]}`,
			`{"type":"object","properties":{"metadata":{"type":"object"}},"anyOf":[{"minProperties":2},{"maxProperties":1}]}`, ""},
		{`{"type":"object","properties":{"metadata":{"type":"object"}},"anyOf":[{"properties":{"metadata":{"required":["a"]}},"minProperties":2},{"maxProperties":1}]}`,
			`{"type":"object","properties":{"metadata":{"type":"object"}},"anyOf":[{"minProperties":2},{"maxProperties":1}]}`, "wider /anyOf/0/properties/metadata junctor-metadata"},
		{`{"type":"object","properties":{"metadata":{"type":"object"}},"not":{"properties":{"metadata":{"required":["a"]}},"minProperties":2}}`,
			`{"type":"object","properties":{"metadata":{"type":"object"}}}`, "wider /not junctor-type"},
		{`{"type":"object","properties":{"metadata":{"type":"object"}},"not":{"properties":{"metadata":{"type":"object"}},"minProperties":2}}`,
			`{"type":"object","properties":{"metadata":{"type":"object"}},"not":{"minProperties":2}}`, ""},

		{`{"type":"object","anyOf":[{"properties":{"metadata":{"type":"object"}},"minProperties":2},{"maxProperties":1}]}`,
			`{"type":"object","properties":{"metadata":{"type":"object"}},"anyOf":[{"minProperties":2},{"maxProperties":1}]}`, "narrower /properties/metadata/type type-required"},

		// oneOf: exact branches stay; others become anyOf, or go if one accepts everything.
		{`{"type":"string","oneOf":[{"type":"string","minLength":3},{"maxLength":1}]}`, `{"type":"string","oneOf":[{"minLength":3},{"maxLength":1}]}`, ""},
		{`{"type":"number","oneOf":[{"type":"integer","minimum":3},{"maximum":1}]}`, `{"type":"number","anyOf":[{"minimum":3},{"maximum":1}]}`, "wider /oneOf junctor-type"},
		{`{"type":"number","oneOf":[{"type":"integer"},{"maximum":1}]}`, `{"type":"number"}`, "wider /oneOf junctor-type"},
		{`{"type":"number","anyOf":[{"minimum":0}],"oneOf":[{"type":"integer","minimum":3},{"maximum":1}]}`, `{"type":"number","anyOf":[{"minimum":0}],"allOf":[{"anyOf":[{"minimum":3},{"maximum":1}]}]}`, "wider /oneOf junctor-type"},
		{`{"type":"number","allOf":[{"maximum":9}],"anyOf":[{"minimum":0}],"oneOf":[{"type":"integer","minimum":3},{"maximum":1}]}`,
			`{"type":"number","anyOf":[{"minimum":0}],"allOf":[{"maximum":9},{"anyOf":[{"minimum":3},{"maximum":1}]}]}`, "wider /oneOf junctor-type"},
		{`{"anyOf":[{"minimum":0}],"type":"number","oneOf":[{"type":"integer","minimum":3},{"maximum":1}]}`, `{"type":"number","anyOf":[{"minimum":0}],"allOf":[{"anyOf":[{"minimum":3},{"maximum":1}]}]}`, "wider /oneOf junctor-type"},
		{`{"type":"number","allOf":[{"type":"number"},{"type":"number","minimum":3}]}`, `{"type":"number","allOf":[{"minimum":3}]}`, ""},
		{`{"type":"number","allOf":[{"type":"number"}]}`, `{"type":"number"}`, ""},
		{`{"type":"number","anyOf":[{"type":"number"},{"minimum":3}]}`, `{"type":"number"}`, ""},

		{`{"type":"object","allOf":[{"required":["a"],"x-kubernetes-validations":[{"rule":"true"}]}]}`, `{"type":"object","allOf":[{"required":["a"]}]}`, "wider /allOf/0/x-kubernetes-validations junctor-validations"},
		{`{"type":"string","allOf":[{"nullable":true,"minLength":1}]}`, `{"type":"string","allOf":[{"minLength":1}]}`, ""},
		{`{` + either + `,"oneOf":[{"type":"integer"},{"type":"string"}]}`, `{` + either + `}`, "wider /oneOf junctor-type"},
		// The form of int-or-string stays inside the first branch of allOf.
		{`{` + either + `,"allOf":[{` + intText + `},{"type":"string","pattern":"^a"}]}`, `{` + either + `,"allOf":[{` + intText + `},{"pattern":"^a"}]}`, "wider /allOf/1 junctor-type"},
		{`{` + either + `,"allOf":[{"minLength":1},{` + intText + `}]}`, `{` + either + `,"allOf":[{"minLength":1}]}`, "wider /allOf/1/anyOf/0 junctor-type; wider /allOf/1/anyOf/1 junctor-type"},
		{`{` + either + `,"oneOf":[{` + intText + `,"minLength":1},{"minLength":3}]}`, `{` + either + `,"anyOf":[{"minLength":1},{"minLength":3}]}`, "wider /oneOf junctor-type"},
		{`{` + either + `,"allOf":[{"allOf":[{` + intText + `}]}]}`, `{` + either + `}`, "wider /allOf/0/allOf/0/anyOf/0 junctor-type; wider /allOf/0/allOf/0/anyOf/1 junctor-type"},
		// Each branch that loses a condition has its note, also after a oneOf with a note of its own.
		{`{"type":"number","anyOf":[{"oneOf":[{"type":"integer"},{"minimum":1}]},{"type":"integer","minimum":3}]}`, `{"type":"number"}`, "wider /anyOf/0/oneOf junctor-type; wider /anyOf/1 junctor-type"},
		{`{` + either + `,"allOf":[{` + intText + `,"title":"x"}]}`, `{` + either + `,"title":"x","allOf":[{` + intText + `}]}`, ""},
	})
}

// The root and embedded resources.
func TestResources(t *testing.T) {
	testFields(t, []fieldCase{
		{`{"x-kubernetes-embedded-resource":true}`, `{"type":"object","x-kubernetes-embedded-resource":true,` + keep + `}`, "narrower /type type-required"},
		{`{"type":"object","x-kubernetes-embedded-resource":true,` + keep + `,"id":"x"}`, `{"type":"object","x-kubernetes-embedded-resource":true,` + keep + `}`, ""},
		{`{"type":"object","x-kubernetes-embedded-resource":true,"properties":{}}`, `{"type":"object","x-kubernetes-embedded-resource":true,"properties":{},` + keep + `}`, ""},
		{`{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"kind":{},"apiVersion":{"type":"string"},"metadata":{}}}`,
			`{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"kind":{"type":"string"},"apiVersion":{"type":"string"},"metadata":{"type":"object"}}}`,
			"narrower /properties/kind/type type-required; narrower /properties/metadata/type type-required"},
		{`{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}},"additionalProperties":{"type":"string"}}`,
			`{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}},` + keep + `}`, "wider /additionalProperties embedded-additional-properties"},
		{`{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"kind":{"type":"integer"}}}`, `{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"kind":{"type":"integer"}}}`,
			"cannot /properties/kind/type type-meta-string"},
		// Fields of these names in other objects are like any.
		{`{"type":"object","properties":{"kind":{"minimum":1},"metadata":{"description":"d","items":{"type":"string"}}}}`,
			`{"type":"object","properties":{"kind":{"type":"number","minimum":1},"metadata":{"description":"d","type":"array","items":{"type":"string"}}}}`,
			"narrower /properties/kind/type type-required; narrower /properties/metadata/type type-required"},
	})
	testRoots(t, []fieldCase{
		{`{"nullable":true}`, `{"type":"object"}`, ""},
		{`{"type":"object","anyOf":[{"properties":{"a":{"type":"string","minLength":1}}},{"minProperties":4}]}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"a":{"minLength":1}}},{"minProperties":4}]}`, "narrower /properties/a/type type-required"},
		{`{"type":"string"}`, `{"type":"object"}`, ""},
		{`{"type":"object","additionalProperties":{"type":"string"}}`, `{"type":"object",` + keep + `}`, "wider /additionalProperties root-additional-properties"},
		{`{"type":"object","additionalProperties":true}`, `{"type":"object",` + keep + `}`, ""},
		{`{"type":"object","additionalProperties":false}`, `{"type":"object"}`, ""},
		{`{"type":"object","allOf":[{"additionalProperties":{"type":"string"}}]}`, `{"type":"object",` + keep + `}`, "wider /allOf/0/additionalProperties junctor-additional-properties"},
		{`{"type":"object","properties":{"apiVersion":{"default":"v1"},"kind":{"type":"integer"},"metadata":{"default":{}}}}`,
			`{"type":"object","properties":{"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"type":"object"}}}`, "wider /properties/metadata root-metadata"},
		{`{"type":"object","properties":{"metadata":{"properties":{"labels":{"type":"object"}}}}}`, `{"type":"object","properties":{"metadata":{"type":"object"}}}`, "wider /properties/metadata root-metadata"},
		{`{"type":"object","properties":{"metadata":{"properties":{"name":{"maxLength":3},"generateName":{"type":"string"}}}}}`,
			`{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":3},"generateName":{"type":"string"}}}}}`, "narrower /properties/metadata/properties/name/type type-required"},
		{`{"type":"object","anyOf":[{"properties":{"metadata":{"required":["name"]}}},{"minProperties":4}]}`, `{"type":"object"}`, "wider /anyOf/0/properties/metadata junctor-metadata"},
		{`{"type":"object","properties":{"metadata":{"type":"object"}},"anyOf":[{"properties":{"metadata":{"properties":{"labels":{"type":"object"}}}}},{"minProperties":4}]}`,
			`{"type":"object","properties":{"metadata":{"type":"object"}}}`, "wider /anyOf/0/properties/metadata junctor-metadata"},
		{`{"type":"object","properties":{"a":1}}`, `{"type":"object","properties":{"a":1}}`, "cannot /properties/a syntax"},
		{`{"type":"object","properties":{"a":1},"anyOf":[{"properties":{"a":{"properties":{"b":{"type":"string"}}}}}]}`,
			`{"type":"object","properties":{"a":1},"anyOf":[{"properties":{"a":{"properties":{"b":{"type":"string"}}}}}]}`, "cannot /properties/a syntax"},
	})
}

// Objects with many members, which are found by an index, keep their order.
func TestManyMembers(t *testing.T) {
	var in, want, labels strings.Builder
	for i := range 30 {
		fmt.Fprintf(&in, `"f%d":{"minLength":1},`, i)
		fmt.Fprintf(&want, `"f%d":{"minLength":1,"type":"string"},`, i)
		fmt.Fprintf(&labels, `"l%d":{"type":"string"},`, i)
	}
	document := `{"properties":{"metadata":{"properties":{` + labels.String() + `"name":{"type":"string"}}},` + in.String() + `"z":{"type":"string"}},"anyOf":[{"properties":{"a":{"minLength":1},"b":{"minLength":2}}},{"properties":{"b":{"minLength":3},"a":{"minLength":4}}}]}`
	r := fixed(t, document)
	full := `{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string"}}},` + want.String() + `"z":{"type":"string"},"a":{"type":"string"},"b":{"type":"string"}},"anyOf"`
	if !strings.Contains(string(r.JSON), full) {
		t.Errorf("%s\ndoes not contain\n%s", r.JSON, full)
	}
	// A field that only branches name is found among many others: what they say of its type
	// is the same, and no condition is lost.
	r = fixed(t, `{"type":"object","properties":{`+labels.String()+`"z":{"type":"string"}},"anyOf":[{"properties":{"a":{"type":"string","minLength":1}}},{"properties":{"a":{"type":"string","enum":["on"]}}}]}`)
	if len(r.Notes) != 0 || !strings.Contains(string(r.JSON), `"a":{"type":"string"}},"anyOf":[{"properties":{"a":{"minLength":1}}},{"properties":{"a":{"enum":["on"]}}}]`) {
		t.Errorf("%+v\n%s", r.Notes, r.JSON)
	}
	var keywords strings.Builder
	for i := range 20 {
		fmt.Fprintf(&keywords, `"x-%d":%d,`, i, i)
	}
	r = fixed(t, `{"type":"object","properties":{"f":{`+keywords.String()+`"id":"a","minItems":1,"uniqueItems":true,"items":{"type":"string"},"$schema":"b"}}}`)
	if want := `"f":{` + strings.ReplaceAll(keywords.String(), " ", "") + `"minItems":1,"x-kubernetes-list-type":"set","type":"array","items":{"type":"string"}}`; !strings.Contains(string(r.JSON), want) {
		t.Errorf("%s\ndoes not contain\n%s", r.JSON, want)
	}
}
