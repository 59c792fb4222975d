package cel

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/bridge"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// withBudget evaluates rules with a budget and returns the details of errors.
func withBudget(t *testing.T, set *set, object string, count bool, budget uint64) (details []string, ok bool) {
	t.Helper()
	run := newRun(set, document(t, object))
	r := new(evaluation)
	r.begin(set, run)
	ok = r.attempt(count, int64(budget))
	for i := range run.Errors {
		details = append(details, run.Errors[i].Detail)
	}
	return details, ok
}

// What costs exactly the budget is within it, and one more is not.
func TestBudgetToTheLastUnit(t *testing.T) {
	const fields = `"i":{"type":"integer"},"z":{"type":"boolean","x-kubernetes-validations":[{"rule":"true","message":"z"}]}`
	const object, none = `{"spec":{"i":7}}`, "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
	for _, c := range []struct {
		name, rules, object string
		budget              uint64
		want                []string
	}{
		{"a rule", `{"rule":"self.i == 7"}`, object, 3, nil},
		{"a rule, and one less", `{"rule":"self.i == 7"}`, object, 2, []string{outOfBudget}},
		{"two rules", `{"rule":"self.i == 7"},{"rule":"self.i != 7","message":"m"}`, object, 6, []string{"m"}},
		{"two rules, and one less", `{"rule":"self.i == 7"},{"rule":"self.i != 7","message":"m"}`, object, 5, []string{outOfBudget}},
		{"a message", `{"rule":"self.i != 7","message":"m","messageExpression":"string(self.i)"}`, object, 6, []string{"7"}},
		{"a message, and one less", `{"rule":"self.i != 7","message":"m","messageExpression":"string(self.i)"}`, object, 5, []string{none}},
		{"a message and a rule", `{"rule":"self.i != 7","messageExpression":"string(self.i)"},{"rule":"self.i == 7"}`, object, 9, []string{"7"}},
		{"a message and a rule, and one less", `{"rule":"self.i != 7","messageExpression":"string(self.i)"},{"rule":"self.i == 7"}`, object, 8, []string{"7", outOfBudget}},
		{"nothing is left for another value", `{"rule":"self.i == 7"}`, `{"spec":{"i":7,"z":true}}`, 3, []string{outOfBudget}},
		{"something is", `{"rule":"self.i == 7"}`, `{"spec":{"i":7,"z":true}}`, 4, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, set := compileSchema(t, specWith(fields, c.rules))
			if got, _ := withBudget(t, set, c.object, true, c.budget); !slices.Equal(got, c.want) {
				t.Errorf("counted: %q", got)
			}
			// Without counting, what is known is a bound. It is certain if there is room for it.
			var most uint64
			for _, p := range set.programs(bridge.Plan(s).Property("spec"), false).rules {
				most += uint64(p.test.bounds[0])
				if p.message.fast != nil {
					most += uint64(p.message.bounds[0])
				}
			}
			if _, ok := withBudget(t, set, object, false, most); !ok {
				t.Errorf("uncertain with all of %d", most)
			}
			if _, ok := withBudget(t, set, object, false, most-1); ok {
				t.Errorf("certain with less than %d", most)
			}
		})
	}
}

// exactly is a schema of n lists with rules that cost three for each of the items and two, as often as around says.
func exactly(n, items, around int, more string) string {
	var lists []string
	for i := range n {
		lists = append(lists, fmt.Sprintf(`"l%d":{"type":"array","maxItems":%d,"items":{"type":"array","maxItems":%d,"items":{"type":"boolean"},"x-kubernetes-validations":[{"rule":"self.all(x, true)"}]}}`, i, around, items))
	}
	return specWith(strings.Join(lists, ","), `{"rule":"true"}`+more)
}

// A loop costs 3 for each item, and 2.
func TestCostsAtTheLimits(t *testing.T) {
	checks := func(schema string) (list []string) {
		for _, f := range checked(t, schema, CheckOptions{}) {
			list = append(list, strings.TrimPrefix(string(f.Check)+" "+f.Path, "rule-"))
		}
		return list
	}
	at := func(i int) string {
		return fmt.Sprintf("properties[spec].properties[l%d].items.x-kubernetes-validations[0].rule", i)
	}
	if got := checks(exactly(1, 666666, 5, "")); got != nil {
		t.Errorf("a rule at the limit: %q", got)
	}
	if got := checks(exactly(1, 666666, 6, "")); !slices.Equal(got, []string{"cost " + at(0)}) {
		t.Errorf("a rule above it: %q", got)
	}
	if got := checks(exactly(10, 666666, 5, "")); got != nil {
		t.Errorf("a schema at the limit: %q", got)
	}
	// Of equally expensive ones the first four are named.
	want := []string{"total-cost " + at(0), "total-cost " + at(1), "total-cost " + at(2), "total-cost " + at(3), "total-cost <nil>"}
	if got := checks(exactly(10, 666666, 5, `,{"rule":"has(self.l0)"}`)); !slices.Equal(got, want) {
		t.Errorf("a schema above it: %q", got)
	}
	// What costs a hundredth of the limit is named, and what costs less is not.
	for around, want := range map[int]int{2: 4, 1: 3} {
		lists := exactly(1, 166666, around, "")
		c := check{}
		for _, cost := range []uint64{MaxSchemaCost, 5_000_000, 4_000_000, uint64(around) * 500_000} {
			c.cost(&inspected{index: 0, rule: &syntax.Rule{}}, "rule", "x", cost)
		}
		if costs := costsOf(t, lists); len(c.expensive) != want || costs[0].Total != uint64(around)*500_000 {
			t.Errorf("%d: %d are named, the cost is %d", around, len(c.expensive), costs[0].Total)
		}
	}
}

func TestFactorsOfCosts(t *testing.T) {
	for cost, want := range map[uint64]string{1001: "1.001000x", 1499: "1.499000x", 1500: "1.5x", 2000: "2.0x", 100_000: "100.0x", 100_001: "more than 100x"} {
		if got := costDetail("n", cost, 1000); !strings.HasPrefix(got, "n exceeds budget by factor of "+want+" (try ") {
			t.Errorf("%d: %s", cost, got)
		}
	}
}

// A path in a default follows that of the default.
func TestPathsInDefaults(t *testing.T) {
	const small = `"x-kubernetes-validations":[{"rule":"self > 1","message":"small"}]`
	for _, c := range []struct{ schema, want string }{
		{`{"type":"integer","default":1,` + small + `}`, "default"},
		{`{"type":"array","default":[5,1,2],"items":{"type":"integer",` + small + `}}`, "default[1]"},
		{`{"type":"object","default":{"b":{"y":3,"x":1},"a":[1,{"z":[]},"\u0041"]},"properties":{"a":{"type":"array","items":{"x-kubernetes-preserve-unknown-fields":true}},"b":{"type":"object","properties":{"x":{"type":"integer",` + small + `},"y":{"type":"integer",` + small + `}}}}}`, "default.b.x"},
		{`{"type":"object","default":{"b":[{"x":[5,1]},{"x":[]}]},"properties":{"b":{"type":"array","items":{"type":"object","properties":{"x":{"type":"array","items":{"type":"integer",` + small + `}}}}}}}`, "default.b[0].x[1]"},
	} {
		schema := strings.Replace(specWith(`"v":`+c.schema, ``), `,"x-kubernetes-validations":[]`, "", 1)
		found := checked(t, schema, CheckOptions{})
		if len(found) != 1 || found[0].Path != "properties[spec].properties[v]."+c.want || found[0].Pointer != "/properties/spec/properties/v/default" {
			t.Errorf("%s: %v", c.schema, found)
		}
	}
	// Rules see the default as it is written, whatever the order of its members.
	const fine = `{"type":"object","default":{"c":[1,2,[3,4]],"b":1.50,"a":{"z":"\u00e4","y":2}},"properties":{"a":{"type":"object","properties":{"y":{"type":"integer"},"z":{"type":"string"}}},"b":{"type":"number"},"c":{"x-kubernetes-preserve-unknown-fields":true}},
		"x-kubernetes-validations":[{"rule":"self.a.y == 2 && self.a.z == 'ä' && self.b == 1.5"},{"rule":"self == oldSelf"}]}`
	if found := checked(t, strings.Replace(specWith(`"v":`+fine, ``), `,"x-kubernetes-validations":[]}}`, "}}", 1), CheckOptions{}); len(found) > 0 {
		t.Error(found)
	}
}

// The summary of an expression with several errors says how many there are.
func TestSummariesOfProblems(t *testing.T) {
	for rule, want := range map[string]string{
		"self.x == 1": "undefined field 'x'", "self.x == 1 && self.y == 1": "undefined field 'x' (and 1 more in this expression)", "self.i": "",
	} {
		found := checked(t, specWith(`"i":{"type":"integer"}`, fmt.Sprintf(`{"rule":%q}`, rule)), CheckOptions{})
		if len(found) != 1 || found[0].Summary != want {
			t.Errorf("%s: %+v", rule, found)
		}
	}
}

// Items of long lists are found wherever they are, and in any order.
func TestItemsOfLongLists(t *testing.T) {
	rules := []string{
		`[39, 0, 15, 16, 17, 38].all(i, dyn(self.v[i]) == self.w[i])`, `self.v.all(x, x in self.w) && self.v == self.w`, `self.v[15].size() == 3 && self.v[16].size() == 3`,
	}
	const list = `{"type":"array","items":{"type":"array","items":{"type":"string"}}}`
	var texts []string
	for i := range 40 {
		texts = append(texts, fmt.Sprintf(`["%d","x","y"]`, i))
	}
	all := strings.Join(texts, ",")
	for i, got := range errorsOf(t, `"v":`+list+`,"w":`+list, append(rules, `[39, 0, 15, 16, 17, 38].all(i, self.v[i][0] == string(i))`, `[0, 15, 16].all(i, self.w[i][0] == string(i))`), `{"spec":{"v":[`+all+`],"w":[`+all+`]}}`, "") {
		if got != "" {
			t.Errorf("rule %d: %s", i, got)
		}
	}
}

// Values of a map cost by how large they are, and keys nothing.
func TestCostOfKeysAndValues(t *testing.T) {
	const m = `"m":{"type":"object","maxProperties":5,"additionalProperties":{"type":"string","maxLength":100}}`
	cost := func(rule string) uint64 {
		costs := costsOf(t, specWith(m, fmt.Sprintf(`{"rule":%q}`, rule)))
		if len(costs) != 1 {
			t.Fatal(rule)
		}
		return costs[0].Cost
	}
	keys, values := cost(`self.m.all(k, v, k.contains('a'))`), cost(`self.m.all(k, v, v.contains('a'))`)
	if values-keys != 5*40 {
		t.Errorf("keys %d, values %d", keys, values)
	}
	for _, p := range costsOf(t, specWith(m, `{"rule":"self.m.all(k, v, v.contains('a') || k.contains('a'))"}`))[0].Parts {
		if p.What != "contains" {
			continue
		}
		if want := map[int]uint64{28: 5 * (1 + 40), 47: 5 * (1 + 0)}[p.Column]; p.Cost != want {
			t.Errorf("%+v, want %d", p, want)
		}
	}
}
