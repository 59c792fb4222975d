package diff_test

import "testing"

// The branches of oneOf are the same ones if everything that they say is the same. Two
// that say different things about the same types may both be satisfied. So a changed
// branch is reported.
func TestBranchesToldApart(t *testing.T) {
	branches := func(first string) string { return `"f":{"oneOf":[{` + first + `},{"description":"any"}]}` }
	for _, c := range []struct{ name, a, b string }{
		{"format", `"format":"a"`, `"format":"b"`},
		{"pattern", `"pattern":"a"`, `"pattern":"b"`},
		{"nullable", ``, `"nullable":true`},
		{"maximum", `"maximum":1`, `"maximum":2`},
		{"maximum and minimum", `"maximum":1`, `"minimum":1`},
		{"exclusiveMaximum", `"maximum":1`, `"maximum":1,"exclusiveMaximum":true`},
		{"exclusiveMinimum", `"minimum":1`, `"minimum":1,"exclusiveMinimum":true`},
		{"multipleOf", `"multipleOf":1`, `"multipleOf":2`},
		{"maxLength", `"maxLength":1`, `"maxLength":2`},
		{"maxLength and minLength", `"maxLength":1`, `"minLength":1`},
		{"maxItems", `"maxItems":1`, `"maxItems":2`},
		{"maxItems and minItems", `"maxItems":1`, `"minItems":1`},
		{"maxProperties", `"maxProperties":1`, `"maxProperties":2`},
		{"maxProperties and minProperties", `"maxProperties":1`, `"minProperties":1`},
		{"uniqueItems", ``, `"uniqueItems":true`},
		{"int-or-string", ``, `"x-kubernetes-int-or-string":true`},
		{"embedded resource", ``, `"x-kubernetes-embedded-resource":true`},
		{"preserved fields", ``, `"x-kubernetes-preserve-unknown-fields":true`},
		{"list type", `"x-kubernetes-list-type":"set"`, `"x-kubernetes-list-type":"map"`},
		{"list and map type", `"x-kubernetes-list-type":"atomic"`, `"x-kubernetes-map-type":"atomic"`},
		{"list map keys", `"x-kubernetes-list-map-keys":["a"]`, `"x-kubernetes-list-map-keys":["b"]`},
		{"rule", `"x-kubernetes-validations":[{"rule":"a"}]`, `"x-kubernetes-validations":[{"rule":"b"}]`},
		{"message", `"x-kubernetes-validations":[{"rule":"a"}]`, `"x-kubernetes-validations":[{"rule":"a","message":"b"}]`},
		{"messageExpression", `"x-kubernetes-validations":[{"rule":"a"}]`, `"x-kubernetes-validations":[{"rule":"a","messageExpression":"b"}]`},
		{"fieldPath", `"x-kubernetes-validations":[{"rule":"a"}]`, `"x-kubernetes-validations":[{"rule":"a","fieldPath":".b"}]`},
		{"reason", `"x-kubernetes-validations":[{"rule":"a"}]`, `"x-kubernetes-validations":[{"rule":"a","reason":"FieldValueForbidden"}]`},
		{"optionalOldSelf", `"x-kubernetes-validations":[{"rule":"a"}]`, `"x-kubernetes-validations":[{"rule":"a","optionalOldSelf":true}]`},
		{"default", `"default":1`, `"default":2`},
		{"enum", `"enum":[1,2]`, `"enum":[1,3]`},
		{"required", `"required":["a","b"]`, `"required":["a","c"]`},
		{"required and enum", `"required":["a"]`, `"enum":["a"]`},
		{"names in required", `"required":["a,b"]`, `"required":["a","b"]`},
		{"allOf", `"allOf":[{"maximum":1}]`, `"allOf":[{"maximum":2}]`},
		{"anyOf", `"anyOf":[{"maximum":1}]`, `"anyOf":[{"maximum":2}]`},
		{"oneOf", `"oneOf":[{"maximum":1}]`, `"oneOf":[{"maximum":2}]`},
		{"allOf and anyOf", `"allOf":[{"maximum":1}]`, `"anyOf":[{"maximum":1}]`},
		{"anyOf and oneOf", `"anyOf":[{"maximum":1}]`, `"oneOf":[{"maximum":1}]`},
		{"not", `"not":{"maximum":1}`, `"not":{"maximum":2}`},
		{"not and items", `"not":{"maximum":1}`, `"items":{"maximum":1}`},
		{"properties", `"properties":{"a":{"maximum":1}}`, `"properties":{"a":{"maximum":2}}`},
		{"names of properties", `"properties":{"a":{"maximum":1}}`, `"properties":{"b":{"maximum":1}}`},
		{"additionalProperties", `"additionalProperties":{"maximum":1}`, `"additionalProperties":{"maximum":2}`},
		{"any additionalProperties", `"additionalProperties":true`, `"additionalProperties":false`},
		{"additionalProperties said", ``, `"additionalProperties":true`},
		{"items", `"items":{"maximum":1}`, `"items":{"maximum":2}`},
		{"items of a tuple", `"items":[{"maximum":1},{"maximum":2}]`, `"items":[{"maximum":1},{"maximum":3}]`},
		{"items and a tuple", `"items":{"maximum":1}`, `"items":[{"maximum":1}]`},
		{"readOnly", ``, `"readOnly":true`},
		{"reference", `"$ref":"#/a"`, `"$ref":"#/b"`},
		{"union", `"x-kubernetes-unions":[{"discriminator":"k","fields":{"a":"A"}}]`, `"x-kubernetes-unions":[{"discriminator":"l","fields":{"a":"A"}}]`},
		{"fields of a union", `"x-kubernetes-unions":[{"discriminator":"k","fields":{"a":"A"}}]`, `"x-kubernetes-unions":[{"discriminator":"k","fields":{"a":"B"}}]`},
		{"patternProperties", `"patternProperties":{"a":{"maximum":1}}`, `"patternProperties":{"a":{"maximum":2}}`},
		{"patternProperties and definitions", `"patternProperties":{"a":{"maximum":1}}`, `"definitions":{"a":{"maximum":1}}`},
		{"definitions", `"definitions":{"a":{"maximum":1}}`, `"definitions":{"a":{"maximum":2}}`},
		{"dependencies", `"dependencies":{"a":["b"]}`, `"dependencies":{"a":["c"]}`},
		{"names of dependencies", `"dependencies":{"a":["b"]}`, `"dependencies":{"c":["b"]}`},
		{"schemas of dependencies", `"dependencies":{"a":{"maximum":1}}`, `"dependencies":{"a":{"maximum":2}}`},
		{"additionalItems", `"additionalItems":{"maximum":1}`, `"additionalItems":{"maximum":2}`},
	} {
		compareOnly(t, c.name, crdWith(spec(branches(c.a))), crdWith(spec(branches(c.b))), only("risky WS junctor-changed another → 2 branches"))
	}
	for _, c := range []struct{ name, a, b string }{
		{"description", `"description":"a"`, `"description":"b"`},
		{"order of an enum", `"enum":[1,2]`, `"enum":[2,1,2]`},
		{"order of required", `"required":["a","b"]`, `"required":["b","a"]`},
		{"order of branches", `"allOf":[{"maximum":1},{"minimum":0}]`, `"allOf":[{"minimum":0},{"maximum":1}]`},
		{"order of properties", `"properties":{"a":{},"b":{"maximum":1}}`, `"properties":{"b":{"maximum":1},"a":{}}`},
	} {
		compareOnly(t, c.name, crdWith(spec(branches(c.a))), crdWith(spec(branches(c.b))), nil)
	}
}
