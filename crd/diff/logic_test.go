package diff_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestLogicalKeywords(t *testing.T) {
	const whole, either, text, texts = `"type":"integer"`, `"x-kubernetes-int-or-string":true`, `"type":"string"`, `"type":"array",`
	const fields = `"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}`
	const filled = `"type":"object","properties":{"x":{"type":"integer","default":1}}`
	within := func(keywords string) string { return `"type":"object",` + keywords }
	const rule = `,"x-kubernetes-validations":[{"rule":"self < 5"}]`
	const low, high = `{"maximum":2}`, `{"minimum":5}`
	runFieldCases(t, []fieldCase{
		{"allOf says the same", whole + `,"maximum":5`, whole + `,"allOf":[{"maximum":5}]`, "", nil},
		// In a logical keyword, the API server and Espalier cut off the fraction for integers.
		{"a fraction in allOf", `"type":"number","maximum":2.5,"exclusiveMaximum":true`, `"type":"number","allOf":[{"maximum":2.5,"exclusiveMaximum":true}]`, "2",
			only("breaking WS maximum-lowered 2.5 (exclusive) → 2.5 (exclusive)")},
		{"one anyOf says the same", whole + `,"maximum":5`, whole + `,"anyOf":[{"maximum":5}]`, "", nil},
		{"one oneOf says the same", whole + `,"oneOf":[{"maximum":5}]`, whole + `,"maximum":5`, "", nil},
		{"one oneOf says more", whole, whole + `,"oneOf":[{"maximum":5}]`, "6", only("breaking WS maximum-lowered → 5")},

		{"anyOf added", whole, whole + `,"anyOf":[` + low + `,` + high + `]`, "3", only("breaking WS junctor-changed → 2 branches")},
		{"anyOf removed", whole + `,"anyOf":[` + low + `,` + high + `]`, whole, "", only("safe R junctor-relaxed 2 branches →")},
		{"branches are a set", whole + `,"anyOf":[` + low + `,` + high + `]`, whole + `,"anyOf":[` + high + `,` + low + `]`, "", nil},
		{"branch added", whole + `,"anyOf":[` + low + `,` + high + `]`, whole + `,"anyOf":[` + low + `,` + high + `,{"minimum":3}]`, "", only("safe R junctor-relaxed 2 branches → another")},
		{"branch removed", whole + `,"anyOf":[` + low + `,` + high + `,{"minimum":3}]`, whole + `,"anyOf":[` + low + `,` + high + `]`, "4", only("breaking WS junctor-changed another → 2 branches")},
		{"branches relaxed", whole + `,"anyOf":[` + low + `,` + high + `]`, whole + `,"anyOf":[{"maximum":3},{"minimum":5}]`, "", only("safe R junctor-relaxed 2 branches → another")},
		{"a bound implies a branch", whole + `,"minimum":5`, whole + `,"minimum":5,"anyOf":[` + low + `,` + high + `]`, "", nil},
		{"a bound implies no branch", whole + `,"minimum":4`, whole + `,"minimum":4,"anyOf":[` + low + `,` + high + `]`, "4", only("breaking WS junctor-changed → 2 branches")},
		{"each type has a branch", either, either + `,"anyOf":[{"type":"integer"},{"type":"string"}]`, "", nil},
		{"a bound of one type holds for the other type", either, either + `,"anyOf":[{"type":"integer"},{"type":"string"}],"allOf":[{"anyOf":[{"maximum":2},{"maxLength":0}]}]`, "", nil},
		{"the numbers of int-or-string are integers", either, either + `,"anyOf":[{"type":"integer","multipleOf":1},{"type":"string"}]`, "", nil},
		{"required implies a branch", fields + `,"required":["b"]`, fields + `,"required":["b"],"anyOf":[{"required":["a"]},{"required":["b"]}]`, "", nil},
		{"required implies no branch", fields, fields + `,"anyOf":[{"required":["a"]},{"required":["b"]}]`, "{}", only("breaking WS junctor-changed → 2 branches")},
		{"a default implies a branch", `"type":"object","properties":{"a":{"type":"string","default":"x"}}`,
			`"type":"object","properties":{"a":{"type":"string","default":"x"}},"anyOf":[{"required":["a"]},{"maxProperties":0}]`, "", nil},
		{"a default of a field implies a branch", within(`"properties":{"a":{` + filled + `}}`), within(`"properties":{"a":{` + filled + `}},"anyOf":[{"properties":{"a":{"required":["x"]}}},{"maxProperties":0}]`), "", nil},
		{"a default of values implies a branch", within(`"additionalProperties":{` + filled + `}`), within(`"additionalProperties":{` + filled + `},"anyOf":[{"properties":{"a":{"required":["x"]}}},{"maxProperties":0}]`), "", nil},
		{"a default of all values implies a branch", within(`"additionalProperties":{` + filled + `}`), within(`"additionalProperties":{` + filled + `},"anyOf":[{"additionalProperties":{"required":["x"]}},{"maxProperties":0}]`), "", nil},
		{"a default of items implies a branch", texts + `"items":{` + filled + `}`, texts + `"items":{` + filled + `},"anyOf":[{"items":{"required":["x"]}},{"maxItems":0}]`, "", nil},
		{"the schema of a field implies a branch", `"type":"object","properties":{"a":{"type":"string","maxLength":2}}`,
			`"type":"object","properties":{"a":{"type":"string","maxLength":2}},"anyOf":[{"properties":{"a":{"maxLength":2}}},{"required":["a"]}]`, "", nil},
		{"the schema of a field implies no branch", `"type":"object","properties":{"a":{"type":"string","maxLength":3}}`,
			`"type":"object","properties":{"a":{"type":"string","maxLength":3}},"anyOf":[{"properties":{"a":{"maxLength":2}}},{"maxProperties":0}]`, `{"a":"xxx"}`, only("breaking WS junctor-changed → 2 branches")},
		{"what allOf says of a field is gone", fields + `,"allOf":[{"properties":{"a":{"maxLength":2}}}]`, fields, "", only("safe R max-length-raised a 2 →")},
		{"the schema of items implies a branch", texts + `"items":{"type":"string","maxLength":2}`, texts + `"items":{"type":"string","maxLength":2},"anyOf":[{"items":{"maxLength":2}},{"maxItems":0}]`, "", nil},
		{"the schema of items implies no branch", texts + `"items":{"type":"string","maxLength":3}`, texts + `"items":{"type":"string","maxLength":3},"anyOf":[{"items":{"maxLength":2}},{"maxItems":0}]`, `["aaa"]`,
			only("breaking WS junctor-changed → 2 branches")},

		{"a branch of a wider type below a rule", whole + rule, whole + rule + `,"anyOf":[{"type":"number"},{"type":"string"}]`, "", nil},

		{"oneOf added", whole, whole + `,"oneOf":[` + low + `,` + high + `]`, "3", only("breaking WS junctor-changed → 2 branches")},
		{"oneOf removed", whole + `,"oneOf":[` + low + `,` + high + `]`, whole, "", only("safe R junctor-relaxed 2 branches →")},
		{"branches of oneOf are a set", whole + `,"oneOf":[` + low + `,` + high + `]`, whole + `,"oneOf":[` + high + `,` + low + `]`, "", nil},
		{"the same oneOf beside another change", whole + `,"maximum":9,"oneOf":[` + low + `,` + high + `]`, whole + `,"maximum":8,"oneOf":[` + low + `,` + high + `]`, "9", only("breaking WS maximum-lowered 9 → 8")},
		{"oneOf to anyOf", whole + `,"oneOf":[` + low + `,` + high + `]`, whole + `,"anyOf":[` + low + `,` + high + `]`, "", only("safe R junctor-relaxed 2 branches →")},
		{"anyOf to oneOf", whole + `,"anyOf":[{"maximum":5},{"minimum":5}]`, whole + `,"oneOf":[{"maximum":5},{"minimum":5}]`, "5", only("breaking WS junctor-changed → 2 branches")},
		{"both branches of oneOf are satisfied", whole + `,"minimum":6`, whole + `,"minimum":6,"oneOf":[{"minimum":4},` + high + `]`, "6", only("breaking WS junctor-changed → 2 branches")},
		{"each type has a branch of oneOf", either, either + `,"oneOf":[{"type":"integer"},{"type":"string"}]`, "", nil},
		{"a type has two branches of oneOf", either, either + `,"oneOf":[{"type":"integer"},{"maxLength":3}]`, noValue, only("risky WS junctor-changed → 2 branches")},

		{"not added", whole, whole + `,"not":{"minimum":5}`, "5", only("breaking WS junctor-changed → a schema")},
		{"not removed", whole + `,"not":{"minimum":5}`, whole, "", only("safe R junctor-relaxed a schema →")},
		{"not stays", whole + `,"maximum":9,"not":{"minimum":5}`, whole + `,"maximum":10,"not":{"minimum":5}`, "", only("safe R maximum-raised 9 → 10")},
		{"not rejects less", whole + `,"not":{"minimum":5}`, whole + `,"not":{"minimum":6}`, "", only("safe R junctor-relaxed a schema → another")},
		{"not rejects more", whole + `,"not":{"minimum":6}`, whole + `,"not":{"minimum":5}`, "5", only("breaking WS junctor-changed another → a schema")},
		{"not about another type", text, text + `,"not":{"type":"integer"}`, "", nil},
		{"not in allOf", text + `,"not":{"maxLength":5}`, text + `,"allOf":[{"not":{"maxLength":5}}]`, "", nil},
	})
}

// What is tried has limits: more branches, or deeper ones, are left undecided.
func TestManyBranches(t *testing.T) {
	const whole, undecided = `"type":"integer"`, "risky WS junctor-changed → 2 branches"
	// many is n branches that start with a keyword and a number from 101 on.
	many := func(n int, keyword string) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"%s":%d}`, keyword, i+101))
		}
		return strings.Join(list, ",")
	}
	// nested is n levels of anyOf around a bound.
	nested := func(n int) string {
		return strings.Repeat(`"anyOf":[{`, n) + `"maximum":5` + strings.Repeat(`},{"maximum":1}]`, n)
	}
	for _, c := range []struct {
		name, old, now string
		want           []string
	}{
		{"the 64th branch is implied", whole + `,"maximum":99`, whole + `,"maximum":99,"anyOf":[` + many(63, "minimum") + `,{"maximum":99}]`, nil},
		{"the 65th branch is not tried", whole + `,"maximum":99`, whole + `,"maximum":99,"anyOf":[` + many(64, "minimum") + `,{"maximum":99}]`, only("risky WS junctor-changed → 65 branches")},
		{"64 branches imply one", whole + `,"anyOf":[` + many(64, "minimum") + `]`, whole + `,"anyOf":[{"minimum":100},{"maximum":1}]`, only("safe R junctor-relaxed 64 branches → another")},
		{"65 branches are not tried", whole + `,"anyOf":[` + many(65, "minimum") + `]`, whole + `,"anyOf":[{"minimum":100},{"maximum":1}]`, only("risky WS junctor-changed another → 2 branches")},
		{"16 levels", whole + `,"maximum":5`, whole + `,"maximum":5,` + nested(16), nil},
		{"17 levels", whole + `,"maximum":5`, whole + `,"maximum":5,` + nested(17), only(undecided)},
	} {
		compareOnly(t, c.name, crdWith(spec(`"f":{`+c.old+`}`)), crdWith(spec(`"f":{`+c.now+`}`)), c.want)
	}
}

func TestRules(t *testing.T) {
	rules := func(kind string, list string) string {
		return `"type":"` + kind + `","x-kubernetes-validations":[` + list + `]`
	}
	whole := func(list string) string { return rules("integer", list) }
	const none = `"type":"integer"`
	long := strings.Repeat("self<5&&", 2100) + "self<5" // more than is parsed
	longest := long[:1<<14-2]
	runFieldCases(t, []fieldCase{
		{"added", none, whole(`{"rule":"self < 5"}`), "5", only(`breaking WS rule-added → "self < 5"`)},
		{"removed", whole(`{"rule":"self < 5"}`), none, "", only(`risky R rule-removed "self < 5" →`)},
		{"formatted", whole(`{"rule":"self<5"}`), whole(`{"rule":"(self  < 5)"}`), "", nil},
		{"in another order", whole(`{"rule":"self < 5"},{"rule":"self > 1"}`), whole(`{"rule":"self > 1"},{"rule":"self<5"}`), "", nil},
		{"relaxed", whole(`{"rule":"self < 5"}`), whole(`{"rule":"self < 6"}`), "", only(`risky R rule-changed "self < 5" → "self < 6"`)},
		{"tightened", whole(`{"rule":"self < 6"}`), whole(`{"rule":"self < 5"}`), "5", only(`breaking WS rule-changed "self < 6" → "self < 5"`)},
		{"changed", whole(`{"rule":"self < 6"}`), whole(`{"rule":"self != 3"}`), "3", only(`breaking WS rule-changed "self < 6" → "self != 3"`)},
		{"one added, one stays", whole(`{"rule":"self < 6"}`), whole(`{"rule":"self < 6"},{"rule":"self != 3"}`), "3", only(`breaking WS rule-added → "self != 3"`)},
		{"one removed, one stays", whole(`{"rule":"self < 6"},{"rule":"self != 3"}`), whole(`{"rule":"self < 6"}`), "", only(`risky R rule-removed "self != 3" →`)},
		{"one relaxed, one stays", whole(`{"rule":"self != 3"},{"rule":"self < 6"}`), whole(`{"rule":"self != 3"},{"rule":"self < 7"}`), "", only(`risky R rule-changed "self < 6" → "self < 7"`)},
		{"always true", none, whole(`{"rule":"true"}`), "", nil},
		{"never true", none, whole(`{"rule":"false"}`), "1", only(`breaking WS rule-added → "false"`)},
		{"two changed, told apart by their messages", whole(`{"rule":"self < 6","message":"high"},{"rule":"self > 1","message":"low"}`), whole(`{"rule":"self > 2","message":"low"},{"rule":"self < 5","message":"high"}`), "5",
			only(`breaking WS rule-changed "self > 1" → "self > 2"`, `breaking WS rule-changed "self < 6" → "self < 5"`)},
		{"two changed without messages", whole(`{"rule":"self < 6"},{"rule":"self > 1"}`), whole(`{"rule":"self > 2"},{"rule":"self < 5"}`), "5",
			only(`breaking WS rule-added → "self > 2"`, `breaking WS rule-added → "self < 5"`, `risky R rule-removed "self < 6" →`, `risky R rule-removed "self > 1" →`)},

		{"two in place of another", whole(`{"rule":"self < 6"}`), whole(`{"rule":"self != 3"},{"rule":"self != 4"}`), "3",
			only(`breaking WS rule-added → "self != 3"`, `breaking WS rule-added → "self != 4"`, `risky R rule-removed "self < 6" →`)},
		{"one in place of two", whole(`{"rule":"self < 6"},{"rule":"self > 1"}`), whole(`{"rule":"self != 3"}`), "3",
			only(`breaking WS rule-added → "self != 3"`, `risky R rule-removed "self < 6" →`, `risky R rule-removed "self > 1" →`)},

		{"message", whole(`{"rule":"self < 5","message":"high"}`), whole(`{"rule":"self < 5","message":"too high"}`), "", only("safe W rule-message-changed high → too high")},
		{"message of a formatted rule", whole(`{"rule":"self < 5","message":"high"}`), whole(`{"rule":"self<5","message":"too high"}`), "", only("safe W rule-message-changed high → too high")},
		{"messageExpression", whole(`{"rule":"self < 5"}`), whole(`{"rule":"self < 5","messageExpression":"'x'"}`), "", only("safe W rule-message-changed")},
		{"reason", whole(`{"rule":"self < 5"}`), whole(`{"rule":"self < 5","reason":"FieldValueForbidden"}`), "", only("safe W rule-message-changed")},
		{"fieldPath", rules("object", `{"rule":"true"}`), rules("object", `{"rule":"true","fieldPath":".a"}`), "", only("safe W rule-message-changed")},

		// A rule that reads oldSelf is evaluated on updates only: 7 could be created.
		{"now also for new objects", whole(`{"rule":"self == oldSelf && self < 5"}`), whole(`{"rule":"self < 5"}`), "7", only(`breaking WS rule-changed "self == oldSelf && self < 5" → "self < 5"`)},
		{"no longer for new objects", whole(`{"rule":"self < 5"}`), whole(`{"rule":"self < 5 || self == oldSelf"}`), "", only(`risky R rule-changed "self < 5" → "self < 5 || self == oldSelf"`)},
		{"updates tightened", whole(`{"rule":"self >= oldSelf"}`), whole(`{"rule":"self >= oldSelf && self < 9"}`), noValue, only(`breaking WS rule-changed "self >= oldSelf" → "self >= oldSelf && self < 9"`)},
		{"with optionalOldSelf", whole(`{"rule":"self > 1 || self >= oldSelf"}`), whole(`{"rule":"self > 1 || self >= oldSelf","optionalOldSelf":true}`), noValue,
			only(`breaking WS rule-changed "self > 1 || self >= oldSelf" → "self > 1 || self >= oldSelf"`)},
		{"a stronger rule that does not read oldSelf", whole(`{"rule":"self < 5"}`), whole(`{"rule":"self < 5 || oldSelf.hasValue()","optionalOldSelf":true}`), "",
			only(`risky R rule-changed "self < 5" → "self < 5 || oldSelf.hasValue()"`)},
		{"a stronger rule with another oldSelf", whole(`{"rule":"self == oldSelf"}`), whole(`{"rule":"self == oldSelf || self < 5","optionalOldSelf":true}`), noValue,
			only(`breaking WS rule-changed "self == oldSelf" → "self == oldSelf || self < 5"`)},
		{"what does not parse stays", whole(`{"rule":"self <"}`), whole(`{"rule":"self <","message":"low"}`), "", only("safe W rule-message-changed → low")},
		{"what does not parse is compared as text", whole(`{"rule":"self <"}`), whole(`{"rule":"(self <"}`), noValue, only(`risky WS rule-changed "self <" → "(self <"`)},
		{"so is what is too long", whole(`{"rule":"` + long + `"}`), whole(`{"rule":"` + long + ` "}`), "", only(`risky WS rule-changed "` + long[:80] + `…" → "` + long[:80] + `…"`)},
		{"the longest that is parsed", whole(`{"rule":"` + longest + `"}`), whole(`{"rule":"` + longest + `  "}`), "", nil},
		{"optionalOldSelf false is said", whole(`{"rule":"self >= oldSelf"}`), whole(`{"rule":"self >= oldSelf","optionalOldSelf":false}`), "", nil},
	})
}
