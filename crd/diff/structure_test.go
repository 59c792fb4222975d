package diff_test

import (
	"strings"
	"testing"
)

func TestEnums(t *testing.T) {
	const text, whole = `"type":"string"`, `"type":"integer"`
	long := strings.Repeat("x", 60)
	runFieldCases(t, []fieldCase{
		{"value removed", text + `,"enum":["a","b"]`, text + `,"enum":["b"]`, `"a"`, only(`breaking WS enum-value-removed "a", "b" → "b"`)},
		{"value added", text + `,"enum":["b"]`, text + `,"enum":["a","b"]`, "", only(`risky R enum-value-added "b" → "a", "b"`)},
		{"another value", text + `,"enum":["a"]`, text + `,"enum":["b"]`, `"a"`, only(`breaking WS enum-value-removed "a" → "b"`)},
		{"added", text, text + `,"enum":["a"]`, `"b"`, only(`breaking WS enum-added → "a"`)},
		{"removed", text + `,"enum":["a"]`, text, "", only(`risky R enum-removed "a" →`)},
		{"an enum is a set", text + `,"enum":["a","b"]`, text + `,"enum":["b","a","b"]`, "", nil},
		{"the type excludes a value", text + `,"enum":["a",1,true,{},[]]`, text + `,"enum":["a"]`, "", nil},
		{"another type excludes others", whole + `,"enum":["a",1,true,{},[]]`, whole + `,"enum":[1]`, "", nil},
		{"maxLength excludes a value", text + `,"maxLength":1,"enum":["a","bbb"]`, text + `,"maxLength":1,"enum":["a"]`, "", nil},
		{"maxLength does not exclude it", text + `,"maxLength":3,"enum":["a","bbb"]`, text + `,"maxLength":3,"enum":["a"]`, `"bbb"`, only(`breaking WS enum-value-removed "a", "bbb" → "a"`)},
		{"minLength excludes a value", text + `,"minLength":3,"enum":["a","bbb"]`, text + `,"minLength":3,"enum":["bbb"]`, "", nil},
		{"minLength does not exclude it", text + `,"minLength":1,"enum":["a","bbb"]`, text + `,"minLength":1,"enum":["bbb"]`, `"a"`, only(`breaking WS enum-value-removed "a", "bbb" → "bbb"`)},
		{"a pattern excludes a value", text + `,"pattern":"^b","enum":["a","b"]`, text + `,"pattern":"^b","enum":["b"]`, "", nil},
		{"a format excludes a value", text + `,"format":"date","enum":["a","2020-01-01"]`, text + `,"format":"date","enum":["2020-01-01"]`, "", nil},
		{"numbers", whole + `,"enum":[1,2]`, whole + `,"enum":[1]`, "2", only("breaking WS enum-value-removed 1, 2 → 1")},
		{"lists", `"type":"array","items":{"type":"integer"},"enum":[[1],[2]]`, `"type":"array","items":{"type":"integer"},"enum":[[1]]`, "[2]", only("breaking WS enum-value-removed [1], [2] → [1]")},
		{"objects", `"type":"object","properties":{"a":{"type":"integer"}},"enum":[{"a":1},{}]`, `"type":"object","properties":{"a":{"type":"integer"}},"enum":[{}]`, `{"a":1}`,
			only(`breaking WS enum-value-removed {"a":1}, {} → {}`)},
		{"both booleans", `"type":"boolean"`, `"type":"boolean","enum":[true,false]`, "", nil},
		{"one boolean", `"type":"boolean"`, `"type":"boolean","enum":[true]`, "false", only("breaking WS enum-added → true")},
		{"the other boolean", `"type":"boolean"`, `"type":"boolean","enum":[false]`, "true", only("breaking WS enum-added → false")},
		{"both booleans and no null", `"type":"boolean","nullable":true`, `"type":"boolean","nullable":true,"enum":[true,false]`, "null", only("breaking WS enum-added → true, false")},
		{"both booleans and null", `"type":"boolean","nullable":true`, `"type":"boolean","nullable":true,"enum":[true,false,null]`, "", nil},
		{"null removed", text + `,"nullable":true,"enum":["a",null]`, text + `,"nullable":true,"enum":["a"]`, "null", only(`breaking WS enum-value-removed "a", null → "a"`)},
		{"null that could not occur", text + `,"enum":["a",null]`, text + `,"enum":["a"]`, "", nil},
		{"allOf does not validate null", text + `,"nullable":true,"allOf":[{"enum":["a"]}]`, text + `,"nullable":true,"enum":["a"]`, "null", only(`breaking WS enum-added → "a"`)},
		{"the tightest of several enums counts", text + `,"enum":["a","b","c"],"allOf":[{"enum":["a","b"]},{"enum":["a","b","d"]}]`, text + `,"enum":["a"]`, `"b"`, only(`breaking WS enum-value-removed "a", "b" → "a"`)},
		{"long values are cut", text + `,"enum":["` + long + `a","` + long + `b"]`, text + `,"enum":["` + long + `a"]`, `"` + long + `b"`,
			only(`breaking WS enum-value-removed "` + long + `a", "` + long[:14] + `… → "` + long + `a"`)},
		{"items", `"type":"array","items":{"type":"string","enum":["a","b"]}`, `"type":"array","items":{"type":"string","enum":["a"]}`, `["b"]`, only(`breaking WS enum-value-removed [*] "a", "b" → "a"`)},
	})
}

func TestTypes(t *testing.T) {
	const textual, numeric = `,"maxLength":3,"minLength":1,"pattern":"^a"`, `,"maximum":5,"minimum":1,"multipleOf":2`
	const listed, structured = `,"maxItems":3,"minItems":1`, `,"maxProperties":3,"minProperties":1,"required":["a"]`
	const text, whole, number, either = `"type":"string"`, `"type":"integer"`, `"type":"number"`, `"x-kubernetes-int-or-string":true`
	const kept = `"x-kubernetes-preserve-unknown-fields":true`
	runFieldCases(t, []fieldCase{
		{"changed", whole, text, "1", only("breaking WRS type-changed integer → string")},
		{"narrowed", number, whole, "1.5", only("breaking WRS type-changed number → integer")},
		{"widened", whole, number, "", only("risky R type-widened integer → number")},
		{"widened below a rule", whole + `,"x-kubernetes-validations":[{"rule":"self / 2 != 1"}]`, number + `,"x-kubernetes-validations":[{"rule":"self / 2 != 1"}]`, "",
			only("risky WRS type-widened integer → number")},
		{"integer to int-or-string", whole, either, "", only("risky R int-or-string-added integer → int-or-string")},
		{"string to int-or-string", text, either, "", only("risky R int-or-string-added string → int-or-string")},
		{"number to int-or-string", number, either, "1.5", only("breaking WRS type-changed number → int-or-string")},
		{"int-or-string to string", either, text, "1", only("breaking WRS int-or-string-removed int-or-string → string")},
		{"int-or-string to integer", either, whole, `"a"`, only("breaking WRS int-or-string-removed int-or-string → integer")},
		{"to boolean", text, `"type":"boolean"`, `"a"`, only("breaking WRS type-changed string → boolean")},
		{"object to list", `"type":"object","properties":{"a":{"type":"string"}}`, `"type":"array","items":{"type":"string"}`, "{}", only("breaking WRS type-changed object → array")},
		{"any type to object", kept, kept + `,"type":"object"`, "1", only("breaking WRS type-changed any → object")},
		{"any type to int-or-string", kept, either, "1.5", only("breaking WRS type-changed any → int-or-string")},
		{"object to any type", kept + `,"type":"object"`, kept, "", only("risky R type-widened object → any")},
		// Keywords of other types say nothing.
		{"a string of other types' keywords", text, text + numeric + listed + structured, "", nil},
		{"an integer of other types' keywords", whole, whole + textual + listed + structured, "", nil},
		{"a list of other types' keywords", `"type":"array","items":{"type":"string"}`, `"type":"array","items":{"type":"string"}` + textual + numeric + structured, "", nil},
		{"an object of other types' keywords", kept + `,"type":"object"`, kept + `,"type":"object"` + textual + numeric + listed, "", nil},
		{"type from allOf", text + `,"allOf":[{"type":"string"}]`, text, "", nil},

		{"null removed", whole + `,"nullable":true`, whole, "null", only("breaking WS nullable-removed true →")},
		{"null added", whole, whole + `,"nullable":true`, "", only("risky R nullable-added → true")},
		{"null in place of the default", whole + `,"default":1`, whole + `,"default":1,"nullable":true`, "", only("risky WR nullable-added → true")},
		{"null that the enum does not list", whole + `,"enum":[1]`, whole + `,"enum":[1],"nullable":true`, "", only("risky WR nullable-added → true")},
		{"null removed from items", `"type":"array","items":{"type":"integer","nullable":true}`, `"type":"array","items":{"type":"integer"}`, "[null]", only("breaking WS nullable-removed [*] true →")},
		{"null in a field of items", `"type":"array","items":{"type":"object","properties":{"a":{` + kept + `}}}`, `"type":"array","items":{"type":"object","properties":{"a":{` + kept + `,"nullable":true}}}`, "",
			only("risky R nullable-added [*].a → true")},
		{"null in items of any type", `"type":"array","items":{` + kept + `}`, `"type":"array","items":{` + kept + `,"nullable":true}`, "", nil},
		{"null added to items", `"type":"array","items":{"type":"integer"}`, `"type":"array","items":{"type":"integer","nullable":true}`, "", only("risky R nullable-added [*] → true")},
	})
}

// A field that is declared as either stays so, also if it may be more of it.
func TestEitherStaysEither(t *testing.T) {
	const either = `"x-kubernetes-int-or-string":true`
	runFieldCases(t, []fieldCase{{"a type is no longer demanded", either + `,"allOf":[{"type":"string"}]`, either, "", only("risky R type-widened int-or-string → int-or-string")}})
}

func TestLists(t *testing.T) {
	const texts = `"type":"array","items":{"type":"string"}`
	list := func(kind string) string { return texts + `,"x-kubernetes-list-type":"` + kind + `"` }
	byKeys := func(keys string) string {
		return `"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":[` + keys + `],
			"items":{"type":"object","required":["a","b"],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`
	}
	const keeping = `"x-kubernetes-preserve-unknown-fields":true,`
	const objects = `"type":"array","items":{"type":"object","required":["a","b"],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`
	runFieldCases(t, []fieldCase{
		{"maxItems lowered", texts + `,"maxItems":2`, texts + `,"maxItems":1`, `["a","b"]`, only("breaking WS max-items-lowered 2 → 1")},
		{"maxItems raised", texts + `,"maxItems":1`, texts + `,"maxItems":2`, "", only("safe R max-items-raised 1 → 2")},
		{"minItems raised", texts + `,"minItems":1`, texts + `,"minItems":2`, `["a"]`, only("breaking WS min-items-raised 1 → 2")},
		{"minItems removed", texts + `,"minItems":1`, texts, "", only("safe R min-items-lowered 1 →")},
		{"items changed", `"type":"array","items":{"type":"string","maxLength":2}`, `"type":"array","items":{"type":"string","maxLength":1}`, `["aa"]`, only("breaking WS max-length-lowered [*] 2 → 1")},
		{"items no longer preserved", keeping + objects, objects, `[{"a":"x","b":"y","c":1}]`, only("breaking WRS preserve-removed [*] preserved → pruned")},
		{"items now preserved", objects, keeping + objects, "", only("safe R preserve-added [*] pruned → preserved")},
		{"a field of preserved items removed", keeping + objects, keeping + strings.Replace(objects, `,"b":{"type":"string"}`, "", 1), "", only("safe R field-unspecified [*].b string → any")},
		{"a field of items removed", objects, strings.Replace(objects, `,"b":{"type":"string"}`, "", 1), `[{"a":"x","b":"y"}]`, only("breaking WRS field-removed [*].b string →")},
		{"items in allOf", `"type":"array","items":{"type":"string","maxLength":1}`, `"type":"array","items":{"type":"string"},"allOf":[{"items":{"maxLength":1}}]`, "", nil},
		{"items in allOf tightened", texts, texts + `,"allOf":[{"items":{"maxLength":1}}]`, `["aa"]`, only("breaking WS max-length-lowered [*] → 1")},

		{"atomic is said", texts, list("atomic"), "", nil},
		{"now a set", texts, list("set"), `["a","a"]`, only("breaking WS list-type-changed atomic → set")},
		{"a set no longer", list("set"), list("atomic"), "", only("risky W list-type-changed set → atomic")},
		{"now a map", objects, byKeys(`"a"`), `[{"a":"x","b":"y"},{"a":"x","b":"z"}]`, only("breaking WS list-type-changed atomic → map")},
		{"a map no longer", byKeys(`"a"`), objects, "", only("risky W list-type-changed map → atomic")},
		{"items that differ in their keys differ", strings.Replace(byKeys(`"a"`), `"required"`, `"x-kubernetes-map-type":"atomic","required"`, 1),
			strings.Replace(objects, `"required"`, `"x-kubernetes-map-type":"atomic","required"`, 1) + `,"x-kubernetes-list-type":"set"`, "", only("risky W list-type-changed map → set")},
		{"a set may have items with the same keys", strings.Replace(objects, `"required"`, `"x-kubernetes-map-type":"atomic","required"`, 1) + `,"x-kubernetes-list-type":"set"`,
			strings.Replace(byKeys(`"a"`), `"required"`, `"x-kubernetes-map-type":"atomic","required"`, 1), `[{"a":"x","b":"y"},{"a":"x","b":"z"}]`, only("breaking WS list-type-changed set → map")},
		{"a key less", byKeys(`"a","b"`), byKeys(`"a"`), `[{"a":"x","b":"y"},{"a":"x","b":"z"}]`, only("breaking WS list-map-keys-changed a, b → a")},
		{"a key more", byKeys(`"a"`), byKeys(`"a","b"`), "", only("risky W list-map-keys-changed a → a, b")},
		{"another key", byKeys(`"a"`), byKeys(`"b"`), `[{"a":"x","b":"y"},{"a":"z","b":"y"}]`, only("breaking WS list-map-keys-changed a → b")},
		{"keys are a set", byKeys(`"a","b"`), byKeys(`"b","a"`), "", nil},
	})
}

func TestObjectSchemas(t *testing.T) {
	const counts, fields = `"type":"object","additionalProperties":{"type":"integer"}`, `"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}`
	const kept = `"type":"object","x-kubernetes-preserve-unknown-fields":true`
	const resource = kept + `,"x-kubernetes-embedded-resource":true`
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`
	runFieldCases(t, []fieldCase{
		{"maxProperties lowered", counts + `,"maxProperties":2`, counts + `,"maxProperties":1`, `{"x":1,"y":2}`, only("breaking WS max-properties-lowered 2 → 1")},
		{"maxProperties raised", counts + `,"maxProperties":1`, counts + `,"maxProperties":2`, "", only("safe R max-properties-raised 1 → 2")},
		{"minProperties raised", counts + `,"minProperties":1`, counts + `,"minProperties":2`, `{"x":1}`, only("breaking WS min-properties-raised 1 → 2")},
		{"minProperties lowered", counts + `,"minProperties":2`, counts + `,"minProperties":1`, "", only("safe R min-properties-lowered 2 → 1")},
		{"required fields are enough", fields + `,"required":["a","b"]`, fields + `,"required":["a","b"],"minProperties":2`, "", nil},
		{"required fields are too few", fields + `,"required":["a"]`, fields + `,"required":["a"],"minProperties":2`, `{"a":"x"}`, only("breaking WS min-properties-raised → 2")},

		{"required", fields, fields + `,"required":["a"]`, "{}", only("breaking WS required-added a → a")},
		{"another required", fields + `,"required":["b"]`, fields + `,"required":["b","a"]`, `{"b":"x"}`, only("breaking WS required-added a → a")},
		{"several required", fields, fields + `,"required":["b","a"]`, "{}", only("breaking WS required-added a → a", "breaking WS required-added b → b")},
		{"no longer required", fields + `,"required":["a","b"]`, fields, "", only("risky R required-removed a a →", "risky R required-removed b b →")},
		{"required with a default", `"type":"object","properties":{"a":{"type":"string","default":"x"}}`, `"type":"object","properties":{"a":{"type":"string","default":"x"}},"required":["a"]`, "", nil},
		{"required with a default in values", `"type":"object","properties":{"a":{"type":"object","properties":{"x":{"type":"integer","default":1}}}}`,
			`"type":"object","additionalProperties":{"type":"object","properties":{"x":{"type":"integer","default":1}},"required":["x"]}`, "", only("safe R additional-properties-opened pruned → object")},
		{"required twice", fields + `,"required":["a"]`, fields + `,"required":["a"],"allOf":[{"required":["a"]}]`, "", nil},
		{"required and removed", fields + `,"required":["b"]`, `"type":"object","properties":{"a":{"type":"string"}}`, `{"b":"x"}`, only("breaking WRS field-removed b string →")},

		{"field added", `"type":"object","properties":{"a":{"type":"string"}}`, fields, "", only("safe R field-added b → string")},
		{"field removed", fields, `"type":"object","properties":{"a":{"type":"string"}}`, `{"b":"x"}`, only("breaking WRS field-removed b string →")},
		{"field removed and preserved", fields + `,"x-kubernetes-preserve-unknown-fields":true`, `"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-preserve-unknown-fields":true`, "",
			only("safe R field-unspecified b string → any")},
		{"field with a default removed and preserved", kept + `,"properties":{"b":{"type":"string","default":"x"}}`, kept, "",
			only("safe R field-unspecified b string → any", `risky WRS default-removed b "x" →`)},
		{"field specified", kept, kept + `,"properties":{"a":{"type":"string"}}`, `{"a":1}`, only("breaking WS field-specified a any → string")},
		{"field specified with any value", kept, kept + `,"properties":{"a":{"x-kubernetes-preserve-unknown-fields":true,"nullable":true}}`, "", nil},
		{"field with odd names", `"type":"object","properties":{"a.b":{"type":"object","properties":{"":{"type":"string"}}}}`,
			`"type":"object","properties":{"a.b":{"type":"object","properties":{"":{"type":"string","maxLength":1}}}}`, `{"a.b":{"":"xx"}}`, only(`breaking WS max-length-lowered ["a.b"][""] → 1`)},

		{"no longer preserved", kept, `"type":"object"`, `{"a":1}`, only("breaking WRS preserve-removed preserved → pruned")},
		{"now preserved", `"type":"object"`, kept, "", only("safe R preserve-added pruned → preserved")},
		{"preserved, and now a map", kept, counts, `{"a":"x"}`, only("breaking WRS preserve-removed preserved → integer")},
		{"preserved, and now a map of any type", kept, `"type":"object","additionalProperties":{"x-kubernetes-preserve-unknown-fields":true,"nullable":true}`, "", nil},
		{"now a map", `"type":"object"`, counts, "", only("safe R additional-properties-opened pruned → integer")},
		{"no longer a map", counts, `"type":"object"`, `{"a":1}`, only("breaking WRS additional-properties-closed integer → pruned")},
		{"values of a map", counts, `"type":"object","additionalProperties":{"type":"integer","maximum":1}`, `{"a":2}`, only("breaking WS maximum-lowered * → 1")},
		{"values of any type get one", `"type":"object","additionalProperties":true`, counts, `{"a":"x"}`, only("breaking WS field-specified * any → integer")},

		{"merged as a whole", fields, fields + `,"x-kubernetes-map-type":"atomic"`, "", only("risky W map-type-changed granular → atomic")},
		{"granular is said", fields, fields + `,"x-kubernetes-map-type":"granular"`, "", nil},
		{"read-only", fields, fields + `,"readOnly":true`, "", only("risky W read-only-changed → true")},
		{"no longer read-only", fields + `,"readOnly":true`, fields, "", only("safe R read-only-changed true →")},
		{"embedded resource", kept, resource, `{"a":1}`, only("breaking WRS embedded-changed → true")},
		{"embedded resource no longer", resource, kept, "", only("safe R embedded-changed true →")},
		{"embedded resource no longer and pruned", resource, `"type":"object"`, pod, only("breaking WRS embedded-changed true →", "breaking WRS preserve-removed preserved → pruned")},
	})
}

func TestDefaults(t *testing.T) {
	const whole = `"type":"integer"`
	// with returns an object with the field a and, after the change, b, which has a default.
	with := func(keywords string) (old, now string) {
		return `"type":"object",` + keywords + `"properties":{"a":{"type":"string"}}`, `"type":"object",` + keywords + `"properties":{"a":{"type":"string"},"b":{"type":"integer","default":1}}`
	}
	cases := []fieldCase{
		{"added", whole, whole + `,"default":1`, "", only("risky WRS default-added → 1")},
		{"removed", whole + `,"default":1`, whole, "", only("risky WRS default-removed 1 →")},
		{"changed", whole + `,"default":1`, whole + `,"default":2`, "", only("risky WRS default-changed 1 → 2")},
		{"a long text is cut between characters", `"type":"string"`, `"type":"string","default":"` + strings.Repeat("é", 60) + `"`, "", only(`risky WRS default-added → "` + strings.Repeat("é", 39) + `…`)},
		{"the same", whole + `,"default":1,"maximum":1`, whole + `,"default":1,"maximum":2`, "", only("safe R maximum-raised 1 → 2")},
	}
	// The default of a new field appears in every object. What looks at the fields of an
	// object may reject it then.
	for _, c := range []struct{ name, around, broken string }{
		{"new field, and no keyword that looks at it", ``, ""},
		{"new field below a rule", `"x-kubernetes-validations":[{"rule":"size(self.a) < 9"}],`, ""},
		{"new field below maxProperties", `"maxProperties":1,`, `{"a":"x"}`},
		{"new field below an enum", `"enum":[{"a":"x"}],`, `{"a":"x"}`},
		{"new field below anyOf", `"anyOf":[{"maxProperties":1},{"maxProperties":0}],`, `{"a":"x"}`},
		{"new field below oneOf", `"oneOf":[{"maxProperties":1},{"minProperties":3}],`, `{"a":"x"}`},
		{"new field below unions", `"x-kubernetes-unions":[{"discriminator":"k","fields":{"a":"A"}}],`, ""},
		{"new field below not", `"not":{"required":["b"]},`, `{"a":"x"}`},
	} {
		old, now := with(c.around)
		want := only("safe R field-added b → integer", "risky WS default-added b → 1")
		if c.around == "" {
			want[1] = "safe RS default-added b → 1"
		}
		cases = append(cases, fieldCase{c.name, old, now, c.broken, want})
	}
	// The same holds for a rule farther above: a and c are equal until a gets the default.
	pair := func(fields string) string {
		return `"type":"object","x-kubernetes-validations":[{"rule":"dyn(self.a) == dyn(self.c)"}],
			"properties":{"a":{"type":"object","properties":{` + fields + `}},"c":{"type":"object","properties":{"x":{"type":"integer"}}}}`
	}
	cases = append(cases, fieldCase{"new field two levels below a rule", pair(`"x":{"type":"integer"}`), pair(`"x":{"type":"integer"},"b":{"type":"integer","default":1}`),
		`{"a":{"x":1},"c":{"x":1}}`, only("safe R field-added a.b → integer", "risky WS default-added a.b → 1")})
	deep := func(fields string) string {
		return `"type":"object","not":{"properties":{"a":{"required":["b"]}}},"properties":{"a":{"type":"object","properties":{` + fields + `}}}`
	}
	cases = append(cases, fieldCase{"new field two levels below not", deep(`"x":{"type":"integer"}`), deep(`"x":{"type":"integer"},"b":{"type":"integer","default":1}`),
		`{"a":{"x":1}}`, only("safe R field-added a.b → integer", "risky WS default-added a.b → 1")})
	all := func(fields string) string {
		return `"type":"object","allOf":[{"properties":{"a":{"properties":{"b":{"maximum":0}}}}}],"properties":{"a":{"type":"object","properties":{` + fields + `}}}`
	}
	cases = append(cases, fieldCase{"new field two levels below allOf", `"type":"object","properties":{"a":{"type":"object","properties":{"x":{"type":"integer"}}}}`, all(`"x":{"type":"integer"},"b":{"type":"integer","default":1}`),
		`{"a":{"x":1}}`, only("safe R field-added a.b → integer", "risky WS default-added a.b → 1")})
	runFieldCases(t, cases)
}
