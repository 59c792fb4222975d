package fix_test

import "testing"

// What JSON Schema has and structural schemas do not.
func TestPlainKeywords(t *testing.T) {
	testFields(t, []fieldCase{
		// Types: one, in lower case; null is nullable.
		{`{"type":"String"}`, `{"type":"string"}`, ""},
		{`{"type":["string","null"]}`, `{"type":"string","nullable":true}`, ""},
		{`{"type":["string","string"]}`, `{"type":"string"}`, ""},
		{`{"type":["number","integer"]}`, `{"type":"number"}`, ""},
		{`{"type":["string","integer"]}`, `{` + either + `}`, ""},
		{`{"type":["string","object"]}`, `{` + keep + `}`, "wider /type type-unknown"},
		{`{"type":["null"]}`, `{"type":["null"]}`, "cannot /type type-null"},
		{`{"type":["text"]}`, `{"type":["text"]}`, "cannot /type type-unknown"},
		{`{"anyOf":[{"type":"null"}]}`, `{"anyOf":[{"type":"null"}]}`, "cannot /type type-null"},
		{`{"anyOf":[{"type":"null"},{"type":"string","maxLength":3},{"type":"string","enum":["long"]}]}`, `{"nullable":true,"type":"string","anyOf":[{"maxLength":3},{"enum":["long"]}]}`,
			"wider /anyOf/0 junctor-type; wider /anyOf/1 junctor-type"},

		{`{"anyOf":[{"type":"null","enum":[null]},{"type":"string","maxLength":3}]}`, `{` + keep + `,"anyOf":[{"enum":[null]},{"maxLength":3}]}`,
			"wider  type-required; wider /anyOf/0 junctor-type; wider /anyOf/1 junctor-type"},

		// A list of schemas becomes one if all are the same.
		{`{"type":"array","items":[{"type":"string"}]}`, `{"type":"array","items":{"type":"string"}}`, "narrower /items items-tuple"},
		{`{"type":"array","items":[{"type":"string"},{"type":"string"}],"additionalItems":false}`, `{"type":"array","items":{"type":"string"},"maxItems":2}`, ""},
		{`{"type":"array","items":[{"type":"string"},{"type":"string"}],"maxItems":2}`, `{"type":"array","items":{"type":"string"},"maxItems":2}`, ""},
		{`{"type":"array","items":[{"type":"string"},{"type":"string"}],"maxItems":1,"additionalItems":false}`, `{"type":"array","items":{"type":"string"},"maxItems":1}`, ""},
		{`{"type":"array","items":[{"type":"string"},{"type":"string"}],"maxItems":3}`, `{"type":"array","items":{"type":"string"},"maxItems":3}`, "narrower /items items-tuple"},
		{`{"type":"array","items":[{"type":"string"},{"type":"string"}],"maxItems":3,"additionalItems":false}`, `{"type":"array","items":{"type":"string"},"maxItems":2}`, ""},
		{`{"type":"array","items":[{"type":"string"},{"type":"integer"}]}`, `{"type":"array","items":{` + keep + `}}`, "wider /items items-tuple"},
		{`{"type":"array","items":[{"type":"string"},{"type":"integer"}],"additionalItems":false}`, `{"type":"array","items":{` + keep + `},"maxItems":2}`, "wider /items items-tuple"},
		// additionalItems is the schema of the items after the listed ones.
		{`{"type":"array","items":[],"additionalItems":{"type":"string"}}`, `{"type":"array","items":{"type":"string"}}`, ""},
		{`{"type":"array","items":[],"additionalItems":false}`, `{"type":"array","items":{` + keep + `},"maxItems":0}`, ""},
		{`{"type":"array","items":[{"type":"string"}],"additionalItems":{"type":"string"}}`, `{"type":"array","items":{"type":"string"}}`, ""},
		{`{"type":"array","items":[{"type":"string"}],"additionalItems":{}}`, `{"type":"array","items":{"type":"string"}}`, "narrower /items items-tuple"},
		{`{"type":"array","items":[{"type":"string"}],"additionalItems":true}`, `{"type":"array","items":{"type":"string"}}`, "narrower /items items-tuple"},
		{`{"type":"array","items":[{"type":"string"}],"additionalItems":{"type":"integer"}}`, `{"type":"array","items":{"type":"string"}}`, "narrower /items items-tuple; wider /additionalItems unsupported-additional-items"},
		{`{"type":"array","items":[{"type":"string"}],"maxItems":1,"additionalItems":{"type":"integer"}}`, `{"type":"array","items":{"type":"string"},"maxItems":1}`, ""},
		{`{"type":"array","items":[{"type":"string"},{"type":"integer"}],"additionalItems":{"type":"integer"}}`, `{"type":"array","items":{` + keep + `}}`,
			"wider /items items-tuple; wider /additionalItems unsupported-additional-items"},
		{`{"type":"array","items":[]}`, `{"type":"array","items":{` + keep + `}}`, ""},
		{`{"type":"array","items":{"type":"string"},"additionalItems":false}`, `{"type":"array","items":{"type":"string"}}`, ""},

		// One pattern for all fields is a map. Its names are no longer checked unless it matches all.
		{`{"type":"object","patternProperties":{".*":{"type":"string"}}}`, `{"type":"object","additionalProperties":{"type":"string"}}`, ""},
		{`{"type":"object","patternProperties":{".*":{"type":"string"}},"additionalProperties":false}`, `{"type":"object","additionalProperties":{"type":"string"}}`, ""},
		{`{"type":"object","patternProperties":{"^a":{"type":"string"}},"additionalProperties":false}`, `{"type":"object","additionalProperties":{"type":"string"}}`, "wider /patternProperties unsupported-pattern-properties"},
		{`{"type":"object","patternProperties":{"^a":{"type":"string"}}}`, `{"type":"object",` + keep + `}`, "wider /patternProperties unsupported-pattern-properties"},
		{`{"type":"object","patternProperties":{".*":{"type":"string"}},"additionalProperties":{"type":"string"}}`, `{"type":"object",` + keep + `}`,
			"wider /patternProperties unsupported-pattern-properties; wider /additionalProperties unsupported-pattern-properties"},
		{`{"type":"object","patternProperties":{"^a":{"type":"string"}},"additionalProperties":{}}`, `{"type":"object",` + keep + `}`, "wider /patternProperties unsupported-pattern-properties"},
		{`{"type":"object","patternProperties":{".*":{"type":"string"}},"properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"type":"string"}},` + keep + `}`, "wider /patternProperties unsupported-pattern-properties"},
		{`{"type":"object","patternProperties":{"^a":{"type":"string"},"^b":{"type":"string"}},"additionalProperties":false}`, `{"type":"object",` + keep + `}`, "wider /patternProperties unsupported-pattern-properties"},
		{`{"type":"object","patternProperties":{},"id":"x"}`, `{"type":"object"}`, ""},

		// A field that another one needs: the one is absent, or the other is present.
		{`{"type":"object","dependencies":{"a":["b","c"]}}`, `{"type":"object","allOf":[{"anyOf":[{"not":{"required":["a"]}},{"required":["b","c"]}]}]}`, ""},
		{`{"type":"object","dependencies":{"a":{"minProperties":2}}}`, `{"type":"object","allOf":[{"anyOf":[{"not":{"required":["a"]}},{"minProperties":2}]}]}`, ""},
		{`{"type":"object","allOf":[{"minProperties":1}],"dependencies":{"a":["b"],"b":["a"]}}`,
			`{"type":"object","allOf":[{"minProperties":1},{"anyOf":[{"not":{"required":["a"]}},{"required":["b"]}]},{"anyOf":[{"not":{"required":["b"]}},{"required":["a"]}]}]}`, ""},
		{`{"type":"object","dependencies":null,"id":"x"}`, `{"type":"object"}`, ""},
		{`{"type":"object","allOf":{"minProperties":2},"dependencies":{"a":["b"]}}`, `{"type":"object","allOf":{"minProperties":2},"dependencies":{"a":["b"]}}`, "cannot /allOf syntax"},

		{`{"type":"string","id":"x","$schema":"http://json-schema.org/schema#"}`, `{"type":"string"}`, ""},
		{`{"type":"object","x-kubernetes-preserve-unknown-fields":false}`, `{"type":"object"}`, ""},
		{`{"type":"string","$ref":""}`, `{"type":"string"}`, ""},
		{`{"$ref":"#/definitions/none"}`, `{"$ref":"#/definitions/none"}`, "cannot /$ref unsupported-ref"},
		{`{"$ref":"https://example.com/schema"}`, `{"$ref":"https://example.com/schema"}`, "cannot /$ref unsupported-ref"},
	})
	const definitions = `"definitions":{"a/b":{"type":"string","maxLength":3},"c~d":{"$ref":"#/definitions/a~1b"},"loop":{"$ref":"#/definitions/loop"}}`
	testRoots(t, []fieldCase{
		// What is beside a reference holds together with what it refers to.
		{`{"properties":{"a":{"$ref":"#/definitions/a~1b","maxLength":5},"b":{"$ref":"#/definitions/c~0d"}},` + definitions + `}`,
			`{"type":"object","properties":{"a":{"type":"string","maxLength":5,"allOf":[{"maxLength":3}]},"b":{"type":"string","maxLength":3}}}`, ""},
		{`{"properties":{"a":{"$ref":"#/definitions/o","description":"mine","required":["y"],"allOf":[{"minProperties":1}]}},"definitions":{"o":{"type":"object","description":"theirs","required":["x"],"properties":{"x":{"type":"string"}}}}}`,
			`{"type":"object","properties":{"a":{"type":"object","description":"mine","required":["y"],"properties":{"x":{"type":"string"}},"allOf":[{"minProperties":1},{"required":["x"]}]}}}`, ""},
		{`{"properties":{"a":{"$ref":"#/definitions/o","properties":{"x":{"maxLength":5},"y":{"type":"integer"}}}},"definitions":{"o":{"type":"object","properties":{"x":{"type":"string","maxLength":3},"z":{"type":"string"}}}}}`,
			`{"type":"object","properties":{"a":{"type":"object","properties":{"x":{"maxLength":5,"type":"string"},"y":{"type":"integer"},"z":{"type":"string"}},"allOf":[{"properties":{"x":{"maxLength":3}}}]}}}`, ""},
		{`{"properties":{"a":{"$ref":"#/definitions/n","not":{"enum":["x"]}}},"definitions":{"n":{"type":"string","not":{"enum":["y"]}}}}`,
			`{"type":"object","properties":{"a":{"type":"string","not":{"enum":["x"]},"allOf":[{"not":{"enum":["y"]}}]}}}`, ""},
		{`{"properties":{"a":{"$ref":"#/definitions/a~1b","type":"integer"}},` + definitions + `}`, `{"type":"object","properties":{"a":{"type":"integer","maxLength":3}}}`, "wider /properties/a/allOf/0 junctor-type"},
		{`{"properties":{"a":{"$ref":"#/definitions/a~1b","maxLength":3}},` + definitions + `}`, `{"type":"object","properties":{"a":{"type":"string","maxLength":3}}}`, ""},
		// The same reference twice, one after the other, is no circle.
		{`{"properties":{"a":{"$ref":"#/definitions/a~1b"},"b":{"$ref":"#/definitions/a~1b"}},` + definitions + `}`,
			`{"type":"object","properties":{"a":{"type":"string","maxLength":3},"b":{"type":"string","maxLength":3}}}`, ""},
		{`{` + definitions + `,"properties":{"a":{"$ref":"#/definitions/a~1b"}}}`, `{"type":"object","properties":{"a":{"type":"string","maxLength":3}}}`, ""},
		// Of a schema that cannot be fixed, only that is noted.
		{`{"properties":{"a":{"minLength":1},"b":{"$ref":"https://example.com/schema"}}}`, `{"properties":{"a":{"minLength":1},"b":{"$ref":"https://example.com/schema"}}}`, "cannot /properties/b/$ref unsupported-ref"},
		{`{"properties":{"a":{"minLength":1},"b":{"type":1}}}`, `{"properties":{"a":{"minLength":1},"b":{"type":1}}}`, "cannot /properties/b/type syntax"},
		{`{"properties":{"a":{"$ref":"#/definitions/c~0d"},"b":{"$ref":"#/definitions/c~0d"}},` + definitions + `}`,
			`{"type":"object","properties":{"a":{"type":"string","maxLength":3},"b":{"type":"string","maxLength":3}}}`, ""},
		{`{"properties":{"a":{"$ref":"#/definitions/t"}},"definitions":{"t":{"type":"object","properties":{"child":{"$ref":"#/definitions/t","title":"T","description":"d","minProperties":1}}}}}`,
			`{"type":"object","properties":{"a":{"type":"object","properties":{"child":{"title":"T","description":"d",` + keep + `}}}}}`, "wider /properties/a/properties/child unsupported-ref"},
		{`{"properties":{"a":{"$ref":"#/definitions/loop"}},` + definitions + `}`,
			`{"type":"object","properties":{"a":{` + keep + `}}}`, "wider /properties/a unsupported-ref"},
	})
}

// An integer or a string has a keyword of its own, and only one form of anyOf beside it.
func TestIntOrString(t *testing.T) {
	testFields(t, []fieldCase{
		{`{"anyOf":[{"type":"string","maxLength":3},{"type":"integer","maximum":9}]}`, `{"maxLength":3,"maximum":9,` + either + `,` + intText + `}`, ""},
		{`{"oneOf":[{"type":"integer"},{"type":"string"}]}`, `{` + either + `,` + intText + `}`, ""},
		{`{"oneOf":[{"type":"string"},{"type":"integer"}],"anyOf":[{"minLength":1},{"minimum":1}]}`, `{` + either + `,"anyOf":[{"minLength":1},{"minimum":1}]}`, ""},
		// maximum cannot move: there is one already. The API server checks the outer one only.
		{`{"maximum":5,"anyOf":[{"type":"string"},{"type":"integer","maximum":9}]}`, `{"maximum":5,` + either + `}`, "wider /anyOf/0 junctor-type; wider /anyOf/1 junctor-type"},
		// An enum outside would refuse the other type.
		{`{"anyOf":[{"type":"integer"},{"type":"string","enum":["auto"]}]}`, `{` + either + `}`, "wider /anyOf/0 junctor-type; wider /anyOf/1 junctor-type"},
		{`{"anyOf":[{"type":"string"},{"type":"integer","enum":[1]}]}`, `{` + either + `}`, "wider /anyOf/0 junctor-type; wider /anyOf/1 junctor-type"},
		{`{"oneOf":[{"type":"integer"},{"type":"string","enum":["auto"]}]}`, `{` + either + `}`, "wider /oneOf junctor-type"},
		{`{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"integer","minimum":1}]}`, `{` + either + `}`, "wider /anyOf/0 junctor-type; wider /anyOf/1 junctor-type; wider /anyOf/2 junctor-type"},
		{`{"type":"string","anyOf":[{"type":"string","minLength":1},{"type":"integer"}]}`, `{"type":"string"}`, "wider /anyOf/1 junctor-type"},
		{`{"anyOf":[{"type":"string"},{"type":"boolean"}]}`, `{` + keep + `}`, "wider  type-required; wider /anyOf/0 junctor-type; wider /anyOf/1 junctor-type"},
		{`{"type":"string","format":"int-or-string","nullable":true,"id":"x"}`, `{"type":"string","format":"int-or-string","nullable":true}`, ""},
		{`{"format":"int-or-string"}`, `{` + either + `}`, "narrower /x-kubernetes-int-or-string type-required"},
		{`{` + either + `,` + keep + `}`, `{` + either + `}`, ""},
	})
	// A required value may have been null: clusters do not apply anyOf to it.
	testRoots(t, []fieldCase{
		{`{"type":"object","required":["f"],"properties":{"f":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`,
			`{"type":"object","required":["f"],"properties":{"f":{` + either + `,` + intText + `}}}`, "narrower /properties/f/x-kubernetes-int-or-string type-required"},
		{`{"type":"object","required":["f"],"properties":{"f":{"nullable":true,"anyOf":[{"type":"string"},{"type":"integer"}]}}}`,
			`{"type":"object","required":["f"],"properties":{"f":{"nullable":true,` + either + `,` + intText + `}}}`, ""},
		{`{"type":"object","required":["f"],"properties":{"f":{"anyOf":[{"type":"integer","minimum":1},{"type":"string","minLength":1},{"type":"string","maxLength":1}]}}}`,
			`{"type":"object","required":["f"],"properties":{"f":{` + either + `,"anyOf":[{"minimum":1},{"minLength":1},{"maxLength":1}]}}}`,
			"narrower /properties/f/x-kubernetes-int-or-string type-required; wider /properties/f/anyOf/0 junctor-type; wider /properties/f/anyOf/1 junctor-type; wider /properties/f/anyOf/2 junctor-type"},
		// An enum lists null, or rejects it.
		{`{"type":"object","required":["f"],"properties":{"f":{"enum":["on","off"]}}}`, `{"type":"object","required":["f"],"properties":{"f":{"type":"string","enum":["on","off"]}}}`, ""},
		{`{"type":"object","minProperties":1,"properties":{"f":{"allOf":[{"type":"string"}]},"g":{"type":"string"}}}`,
			`{"type":"object","minProperties":1,"properties":{"f":{"type":"string"},"g":{"type":"string"}}}`, "narrower /properties/f/type type-required"},
		{`{"type":"object","properties":{"f":{"allOf":[{"type":"string"}]},"g":{"type":"string"}},"required":["g"]}`,
			`{"type":"object","properties":{"f":{"type":"string"},"g":{"type":"string"}},"required":["g"]}`, ""},
		{`{"type":"object","minProperties":1,"properties":{"f":{"allOf":[{"type":"string"}]},"g":{"type":"string"}},"allOf":[{"required":["g"]}]}`,
			`{"type":"object","minProperties":1,"properties":{"f":{"type":"string"},"g":{"type":"string"}},"allOf":[{"required":["g"]}]}`, "narrower /properties/f/type type-required"},
		{`{"type":"object","properties":{"f":{"allOf":[{"type":"string"}]},"g":{"type":"string"}},"allOf":[{"minProperties":2},{"required":["g"]}]}`,
			`{"type":"object","properties":{"f":{"type":"string"},"g":{"type":"string"}},"allOf":[{"minProperties":2},{"required":["g"]}]}`, "narrower /properties/f/type type-required"},
		{`{"type":"object","properties":{"f":{"allOf":[{"type":"string"}]}},"anyOf":[{"required":["f"]},{"minProperties":7}]}`,
			`{"type":"object","properties":{"f":{"type":"string"}},"anyOf":[{"required":["f"]},{"minProperties":7}]}`, "narrower /properties/f/type type-required"},
	})
}

// Where no type is written, other keywords imply it, or the branches do.
func TestInferredTypes(t *testing.T) {
	const inferred = "narrower /type type-required"
	testRoots(t, []fieldCase{
		// What is nearer to the value counts, and is not repeated.
		{`{"properties":{"f":{"$ref":"#/definitions/d","example":"a"}},"definitions":{"d":{"type":"string","example":"b"}}}`, `{"type":"object","properties":{"f":{"example":"a","type":"string"}}}`, ""},
		// A description is put before the type, wherever that stands.
		{`{"properties":{"f":{"properties":{"a":{"type":"string"}},"type":"object","allOf":[{"description":"x"}]}}}`, `{"type":"object","properties":{"f":{"properties":{"a":{"type":"string"}},"description":"x","type":"object"}}}`, ""},
	})
	testFields(t, []fieldCase{
		{`{"minLength":1}`, `{"type":"string","minLength":1}`, inferred},
		{`{"multipleOf":2}`, `{"type":"number","multipleOf":2}`, inferred},
		{`{"maxItems":2}`, `{"type":"array","maxItems":2,"items":{` + keep + `}}`, inferred},
		{`{"required":["a"]}`, `{"type":"object","required":["a"]}`, inferred},
		{`{"minLength":1,"minimum":1}`, `{` + keep + `,"minLength":1,"minimum":1}`, ""},
		{`{"additionalProperties":true}`, `{` + keep + `,"additionalProperties":true}`, ""},
		{`{}`, `{` + keep + `}`, ""},
		// Clusters take the enum value A for 65, so its type is not certain.
		{`{"enum":["on","off"]}`, `{"type":"string","enum":["on","off"]}`, ""},
		{`{"enum":["A","on"]}`, `{"type":"string","enum":["A","on"]}`, inferred},
		{`{"enum":["on","A"]}`, `{"type":"string","enum":["on","A"]}`, inferred},
		{`{"enum":[true]}`, `{"type":"boolean","enum":[true]}`, ""},
		{`{"enum":[1,2.5]}`, `{"type":"number","enum":[1,2.5]}`, ""},
		{`{"enum":["on",1]}`, `{` + keep + `,"enum":["on",1]}`, ""},
		{`{"enum":[["a"]]}`, `{` + keep + `,"enum":[["a"]]}`, ""},
		// allOf holds always, anyOf if all branches agree, one branch of several only sometimes.
		{`{"allOf":[{"minLength":1},{"type":"string"}]}`, `{"type":"string","allOf":[{"minLength":1}]}`, ""},
		{`{"allOf":[{"type":"integer"},{"type":"number","minimum":1}]}`, `{"type":"integer","allOf":[{"minimum":1}]}`, ""},
		{`{"anyOf":[{"minLength":1},{"maxLength":5}],"oneOf":[{"type":"string","enum":["on"]},{"type":"string","enum":["off"]}]}`,
			`{"type":"string","anyOf":[{"minLength":1},{"maxLength":5}],"oneOf":[{"enum":["on"]},{"enum":["off"]}]}`, ""},
		{`{"minimum":1,"allOf":[{"minLength":1}]}`, `{` + keep + `,"minimum":1,"allOf":[{"minLength":1}]}`, ""},
		{`{"minimum":1,"not":{"minLength":1}}`, `{"type":"number","minimum":1,"not":{"minLength":1}}`, inferred},
		{`{"anyOf":[{"type":"integer","minimum":1},{"type":"number","maximum":0}]}`, `{"type":"number","anyOf":[{"minimum":1},{"maximum":0}]}`, "wider /anyOf/0 junctor-type"},
		{`{"anyOf":[{"type":"string","minLength":1},{"type":"string","enum":["on"]}]}`, `{"type":"string","anyOf":[{"minLength":1},{"enum":["on"]}]}`, ""},
		{`{"anyOf":[{"type":"string","minLength":3},{"maxLength":1}]}`, `{"type":"string","anyOf":[{"minLength":3},{"maxLength":1}]}`, inferred},
		{`{"not":{"type":"string"},"minimum":1}`, `{"type":"number","minimum":1}`, inferred + "; wider /not junctor-type"},
		{`{"allOf":[{"type":"string","nullable":true}]}`, `{"type":"string","nullable":true}`, ""},
		{`{"anyOf":[{"type":"integer","nullable":true,"minimum":1},{"type":"string","nullable":true,"minLength":1},{"type":"string","nullable":true,"enum":["on"]}]}`,
			`{"nullable":true,` + either + `,"anyOf":[{"minimum":1},{"minLength":1},{"enum":["on"]}]}`, "wider /anyOf/0 junctor-type; wider /anyOf/1 junctor-type; wider /anyOf/2 junctor-type"},
		{`{"anyOf":[{"` + `x-kubernetes-int-or-string":true,"minLength":2},{"maximum":4}]}`, `{` + either + `,"anyOf":[{"minLength":2},{"maximum":4}]}`, "narrower /x-kubernetes-int-or-string type-required"},
	})
}
