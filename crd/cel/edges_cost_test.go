package cel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/plan"
)

// Documents may be larger than all levels that bounds are known for.
func TestDocumentsBeyondAllLevels(t *testing.T) {
	const fields = `"s":{"type":"string"},"l":{"type":"array","items":{"type":"integer"}},"m":{"type":"object","additionalProperties":{"type":"integer"}}`
	var members []string
	for i := range 17 << 10 {
		members = append(members, fmt.Sprintf(`"k%d":1`, i))
	}
	rules := `{"rule":"!has(self.s) || self.s.contains('no')","message":"s"},{"rule":"!has(self.l) || 2 in self.l","message":"l"},{"rule":"!has(self.m) || 'q' in self.m","message":"m"}`
	for value, want := range map[string]string{
		`"s":"` + strings.Repeat("x", 300<<10) + `"`:  "s",
		`"l":[1` + strings.Repeat(",1", 17<<10) + `]`: "l",
		`"m":{` + strings.Join(members, ",") + `}`:    "m",
		`"s":"no","l":[2],"m":{"q":1}`:                "",
	} {
		_, set := compileSchema(t, specWith(fields, rules))
		object := `{"spec":{` + value + `}}`
		class := sizeOf(document(t, object)).class()
		if large := len(object) > 1000; large != (class == -1) || !large && class != 0 {
			t.Errorf("%.20s is of class %d", value, class)
		}
		for _, count := range []bool{false, true} {
			errs, _, ok := attempt(t, set, object, "", count)
			if got := strings.Join(errs, "|"); !ok || want == "" && got != "" || want != "" && got != "spec: Invalid value: "+want {
				t.Errorf("%.20s, counting %v: %q %v", value, count, got, ok)
			}
		}
	}
}

// When the budget is used up, nothing more is evaluated, and it is said once.
func TestBudgetIsUsedUpOnce(t *testing.T) {
	const one = `"x-kubernetes-validations":[{"rule":"true"},{"rule":"self == 1"}]`
	fields := `"i":{"type":"integer",` + one + `},"j":{"type":"integer",` + one + `},"k":{"type":"integer",` + one + `}`
	for _, object := range []string{`{"spec":{}}`, `{"spec":{"i":1,"j":1,"k":1}}`} {
		_, set := compileSchema(t, specWith(fields, `{"rule":"1 == 1"},{"rule":"2 == 2"},{"rule":"has(self.i) || true"},{"rule":"3 == 3"}`))
		for budget := range uint64(9) {
			got, ok := withBudget(t, set, object, true, budget)
			if enough := budget >= 4 && object == `{"spec":{}}`; !ok || enough != (len(got) == 0) || !enough && !slices.Equal(got, []string{outOfBudget}) {
				t.Errorf("%s with %d: %q", object, budget, got)
			}
		}
	}
}

// A part of an expression has the offset of its place in the schema.
func TestOffsetsOfParts(t *testing.T) {
	schema := specWith(`"s":{"type":"string","maxLength":5},"m":{"type":"object","maxProperties":3,"additionalProperties":{"type":"string","maxLength":5}}`,
		`{"rule":"self.s ==\n  self.m['\u00e4\ud83d\ude00'] \u007c\u007c\n size(self.s) \u003e 1","message":"m","messageExpression":"'ä' + self.s"}`)
	costs := costsOf(t, schema)
	if len(costs) != 2 {
		t.Fatalf("%+v %v", costs, checked(t, schema, CheckOptions{}))
	}
	var got []string
	for _, c := range costs {
		if !strings.HasPrefix(schema[c.Offset:], `"`) {
			t.Errorf("%s is at %.10s", c.Pointer, schema[c.Offset:])
		}
		for _, p := range c.Parts {
			got = append(got, fmt.Sprintf("%s %.4s", p.What, schema[p.Offset:]))
		}
	}
	want := []string{`|| \u00`, `== ==\n`, `> \u00`, `s .s =`, `_[_] ['\u`, `size (sel`, `self self`, `m .m['`, `s .s) `, `self self`, `self self`, `+ + se`, `s .s"}`, `self self`}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// All rules of a schema are evaluated equally often.
func TestRulesOfASchemaHaveTheSameTimes(t *testing.T) {
	const item = `"type":"object","required":["abc"],"properties":{"abc":{"type":"boolean"}}`
	const rules = `"x-kubernetes-validations":[{"rule":"self.abc"},{"rule":"!self.abc"}]`
	costs := costsOf(t, `{"type":"object","properties":{"l":{"type":"array","items":{`+item+`,`+rules+`}},"k":{"type":"array","items":{"type":"array","items":{`+item+`,`+rules+`}}}}}`)
	if len(costs) != 4 {
		t.Fatal(costs)
	}
	for _, c := range costs {
		if c.Times != 3<<20/14 {
			t.Errorf("%s: %d", c.Pointer, c.Times)
		}
	}
}

// What a path of an expression leads to, and how large that can be.
func TestPathsOfExpressions(t *testing.T) {
	_, spec, set := selfOf(t)
	z := newSizes(set.views)
	const text = 3<<20 - 2
	for path, want := range map[string]int64{
		"self": 0, "self.s": text, "self.by": text, "self.d": 12, "self.dt": 32, "self.du": 32, "self.i": 0, "self.b": 0, "self.ios": text,
		"self.l": text / 2, "self.l.@items": 0, "self.set.@items": text, "self.ln": text / 3, "self.m": text / 7, "self.m.@values": 0, "self.mn.@values": text, "self.m.@keys": 0,
		"self.a__dash__b": text, "self.__namespace__": text, "self.x__underscores__y": text, "self.ml.@items.k": text, "self.os.@items.f": text,
		"self.emb": 0, "self.emb.kind": text, "self.emb.metadata.name": 253 * 4, "self.emb.metadata.generateName": 252 * 4, "self.emb.spec.q": 0,
		// These lead nowhere.
		"self.q": -1, "self.a-b": -1, "self.namespace": -1, "self.9z": -1, "self.any": -1, "self.s.@items": -1, "self.s.x": -1, "self.ios.x": -1, "self.ios.@items": -1, "self.empty.@values": -1,
		"self.l.k": -1, "self.m.x": -1, "self.l.@keys": -1, "self.s.@keys": -1, "self.pu.@keys": -1, "self.ios.@keys": -1, "self.m.@keys.x": -1, "self.m.@keys.@keys": -1, "self.emb.metadata.labels": -1,
		"self.os.@items.any": -1, "self.pu.u": -1,
	} {
		got := int64(-1)
		if at, ok := z.follow(spec, false, strings.Split(path, ".")); ok {
			got = z.maxAt(at)
			if at.key != strings.HasSuffix(path, "@keys") {
				t.Errorf("%s: %+v", path, at)
			}
		}
		if got != want {
			t.Errorf("%s: %d, not %d", path, got, want)
		}
	}
	if at, ok := z.follow(&plan.Node{Type: plan.Array, Items: &plan.Node{}}, false, []string{"self", "@items"}); ok {
		t.Errorf("%+v", at)
	}
}

// Bounds for costs over the limit and at the limit, and ones that do not help.
func TestBoundsAtTheLimit(t *testing.T) {
	const numbers = `"type":"array","items":{"type":"integer"}`
	for _, c := range []struct{ name, schema, want string }{
		{"the limit is kept", specWith(`"l":{"type":"array","maxItems":5,"items":{`+numbers+`,"x-kubernetes-validations":[{"rule":"self.all(x, true)"}]}}`, `{"rule":"true"}`), "23592955 maxItems 1024: 15370"},
		{"it is kept without", specWith(`"a":{`+numbers+`},"b":{`+numbers+`,"maxItems":1760468}`, `{"rule":"self.a.all(x, true) && self.b.all(x, true) && true == true"}`), "10000000"},
		{"nothing helps", specWith(`"l":{`+numbers+`,"maxItems":20},"s":{"type":"string"}`, `{"rule":"self.l.all(q, self.?s.optMap(x, x + 'a').hasValue() && self.s.contains('a'))"}`), "18446744073709551615"},
	} {
		var got []string
		for _, x := range costsOf(t, c.schema) {
			if x.Total < expensiveTotal {
				continue
			}
			got = append(got, strconv.FormatUint(x.Total, 10))
			for _, b := range x.Bounds {
				got = append(got, fmt.Sprintf("%s %d: %d", b.Keyword, b.Value, b.Total))
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, not %s", c.name, got, c.want)
		}
	}
}

// What Check finds in schemas with other errors, and in messages.
func TestFurtherChecks(t *testing.T) {
	const no = `"x-kubernetes-validations":[{"rule":"self"}]`
	list := func(kind, item, key string) string {
		return specWith(`"l":{"type":"array",`+kind+`,"items":{"type":"object"`+item+`,"properties":{"k":{"type":"string"`+key+`}}},`+no+`}`, `{"rule":"self.l"}`)
	}
	const keyed = `"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]`
	labels := func(more string) string {
		return `{"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true` + more + `,"x-kubernetes-validations":[{"rule":"true"}],"properties":{"metadata":{"type":"object","properties":{"labels":{"type":"object"}},"x-kubernetes-validations":[{"rule":"has(self.labels)"}]}}}}}`
	}
	for _, c := range []struct {
		name, schema string
		want         []string
	}{
		{"a list with keys", list(keyed, `,"required":["k"]`, ``), []string{"properties[l].x-kubernetes-validations[0].rule: cel expression must evaluate to a bool", "x-kubernetes-validations[0].rule: cel expression must evaluate to a bool"}},
		{"a key that may be null", list(keyed, `,"required":["k"]`, `,"nullable":true`), nil},
		{"a key that is optional", list(keyed, ``, ``), nil},
		{"items that may be null", list(keyed, `,"required":["k"],"nullable":true`, ``), nil},
		{"a set of objects", list(`"x-kubernetes-list-type":"set"`, ``, ``), nil},
		{"a message about an optional old value", specWith(`"a":{"type":"integer"}`, `{"rule":"oldSelf.hasValue()","optionalOldSelf":true,"messageExpression":"oldSelf.hasValue() ? 'a' : 'b'"}`), nil},
		{"a message about an old value", specWith(`"a":{"type":"string"}`, `{"rule":"self == oldSelf","messageExpression":"oldSelf.a"}`), nil},
		{"a message that takes it for optional", specWith(`"a":{"type":"integer"}`, `{"rule":"self == oldSelf","messageExpression":"oldSelf.hasValue() ? 'a' : 'b'"}`), []string{"x-kubernetes-validations[0].messageExpression: messageExpression compilation failed: ERROR: <input>:1:17: found no matching overload for 'hasValue' applied to 'selfType.()'"}},
		{"items of what has none", `{"type":"object","properties":{"e":{"x-kubernetes-int-or-string":true,"x-kubernetes-validations":[{"rule":"true"}],"items":{"type":"integer","x-kubernetes-validations":[{"rule":"true"}]}}}}`, []string{"properties[e].items.x-kubernetes-validations: failed to convert to declType for CEL validation rules"}},
		{"items of anything, with rules around", specWith(`"l":{"type":"array","items":{"x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-validations":[{"rule":"true"}]}}`, `{"rule":"true"}`), []string{"properties[l].items.x-kubernetes-validations: " + unconvertible}},
		{"names that are no escapes", specWith(`"a":{"type":"string"}`, `{"rule":"self.x__zzz__y == ''"}`), []string{"x-kubernetes-validations[0].rule: compilation failed: ERROR: <input>:1:5: undefined field 'x__zzz__y'"}},
		{"metadata of a resource", labels(``), []string{"properties[e].properties[metadata].x-kubernetes-validations[0].rule: compilation failed: ERROR: <input>:1:4: undefined field 'labels'"}},
		{"metadata of what is a map, too", labels(`,"additionalProperties":{"type":"string"}`), nil},
	} {
		var got []string
		for _, f := range checked(t, c.schema, CheckOptions{}) {
			detail, _, _ := strings.Cut(f.Detail, "\n")
			got = append(got, strings.TrimPrefix(f.Path, "properties[spec].")+": "+detail)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// Functions of quantities give what they do, counted or not.
func TestResultsOfQuantities(t *testing.T) {
	rules := []string{
		`quantity(self.q) == quantity('1500m') && quantity(self.q).compareTo(quantity('1')) == 1 && !quantity(self.q).isInteger()`,
		`isQuantity(self.q) && !isQuantity('x') && isQuantity('2') && quantity('2').asInteger() == 2`, `!isQuantity(self.q)`, `quantity('x').isInteger()`, `isQuantity(self.no)`,
	}
	want := []string{"", "", "no", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'", "no such key: no"}
	const fields = `"q":{"type":"string"},"no":{"type":"string"}`
	for i, got := range errorsOf(t, fields, rules, `{"spec":{"q":"1.5"}}`, "") {
		if got != want[i] {
			t.Errorf("%s: %q", rules[i], got)
		}
		err := counted(t, specWith(fields, fmt.Sprintf(`{"rule":%q}`, rules[i])), `{"spec":{"q":"1.5"}}`)
		if text := fmt.Sprint(err); i > 2 && text != want[i] || i <= 2 && err != nil {
			t.Errorf("%s, counted: %q", rules[i], text)
		}
	}
}

// How large documents are: texts with their quotes, and those with escapes as large as they can become.
func TestSizesOfDocuments(t *testing.T) {
	for text, want := range map[string]level{
		`1`: {}, `"xyz"`: {0, 5}, `[]`: {}, `[1,2,3]`: {3, 0}, `{"abc":1}`: {1, 5}, `{"b":1,"a":[1,2],"c":{}}`: {3, 3}, `{"a":[[1,2,3,4]],"b":"xy"}`: {4, 4}, `["\u00e4"]`: {1, 3 * 8}, `{"\n":1,"abcdefgh":2}`: {2, 3 * 4},
	} {
		if got := sizeOf(nil, document(t, text)); got != want {
			t.Errorf("%s: %+v, not %+v", text, got, want)
		}
	}
	if got, want := sizeOf(document(t, `["abc"]`), document(t, `[1,2]`)), (level{2, 5}); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
}

// A rule is evaluated as often as lists and maps around it have elements.
func TestTimesOfRules(t *testing.T) {
	const rule = `"type":"boolean","x-kubernetes-validations":[{"rule":"self"}]`
	for _, c := range []struct {
		schema       string
		times, total uint64
	}{
		{`{` + rule + `}`, 1, 1},
		{`{"type":"object","properties":{"a":{` + rule + `}}}`, 1, 1},
		{`{"type":"array","maxItems":7,"items":{` + rule + `}}`, 7, 7},
		{`{"type":"array","maxItems":0,"items":{` + rule + `}}`, 0, 0},
		{`{"type":"array","maxItems":-7,"items":{` + rule + `}}`, 0, 0},
		{`{"type":"object","maxProperties":7,"additionalProperties":{` + rule + `}}`, 7, 7},
		{`{"type":"object","maxProperties":-7,"additionalProperties":{` + rule + `}}`, 0, 0},
		{`{"type":"array","maxItems":7,"items":{"type":"object","maxProperties":3,"additionalProperties":{` + rule + `}}}`, 21, 21},
		{`{"type":"array","maxItems":7,"items":{"type":"array","items":{` + rule + `}}}`, 3 << 20 / 5, 3 << 20 / 5},
		{`{"type":"array","items":{"type":"array","maxItems":7,"items":{` + rule + `}}}`, 3 << 20 / 5, 3 << 20 / 5},
		{`{"type":"array","maxItems":4294967296,"items":{"type":"array","maxItems":4294967296,"items":{` + rule + `}}}`, 1<<64 - 1, 1<<64 - 1},
		{`{"type":"array","maxItems":4294967296,"items":{"type":"array","maxItems":4294967295,"items":{` + rule + `}}}`, 1<<64 - 1<<32, 1<<64 - 1<<32},
	} {
		costs := costsOf(t, `{"type":"object","properties":{"v":`+c.schema+`}}`)
		if len(costs) != 1 || costs[0].Times != c.times || costs[0].Total != c.total {
			t.Errorf("%s: %+v", c.schema, costs)
		}
	}
}

// Memory for values is reused up to a point, and empty then.
func TestArena(t *testing.T) {
	var a arena[list]
	for _, n := range []int{1, chunk, chunk + 1, chunk * (maxChunks + 3), 5} {
		seen := map[*list]bool{}
		for range n {
			l := a.next()
			if seen[l] || *l != (list{}) {
				t.Fatal("a value is in use")
			}
			seen[l] = true
			l.at = 1
		}
		if a.reset(); len(a.chunks) > maxChunks || a.used != 0 {
			t.Errorf("after %d: %d chunks, %d in use", n, len(a.chunks), a.used)
		}
	}
	if len(a.chunks) != maxChunks {
		t.Errorf("%d chunks are kept", len(a.chunks))
	}
}
