package cel

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"

	"github.com/espalier-dev/espalier/internal/bridge"
	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// A schema that has been parsed is checked like one that has not.
func TestCheckOfParsedSchemas(t *testing.T) {
	for _, schema := range []string{
		specWith(`"a":{"type":"integer"}`, `{"rule":"self.a > 1"}`),
		specWith(`"a":{"type":"integer"}`, `{"rule":"self.b > 1"},{"rule":"self.a"}`),
		specWith(`"l":{"type":"array","items":{"type":"string"}}`, `{"rule":"self.l.all(x, self.l.all(y, x == y))"}`),
	} {
		for _, o := range []CheckOptions{{Path: "p"}, {Unlimited: true}} {
			s, release, err := bridge.Read([]byte(schema), jsondoc.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			result := compile.Validate(s, compile.CheckOptions{})
			got, err := bridge.CheckRules([]byte(schema), s, &result, o)
			if want := checked(t, schema, o); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %v %v, not %v", schema, got, err, want)
			}
			release()
		}
	}
}

// Costs beyond all numbers are still too high, together too.
func TestSumOfEndlessCosts(t *testing.T) {
	const rule = `self.a.all(x, x.all(y, y.all(z, z.matches('a+') && x.all(q, q == y))))`
	found := checked(t, specWith(`"a":{"type":"array","items":{"type":"array","items":{"type":"array","items":{"type":"string"}}}}`, `{"rule":"`+rule+`"},{"rule":"`+rule+` || true"},{"rule":"true"}`), CheckOptions{})
	var got []string
	for _, f := range found {
		got = append(got, string(f.Check)+" "+f.Path)
	}
	const at = " properties[spec].x-kubernetes-validations[%d].rule"
	var want []string
	for _, check := range []string{"rule-cost", "rule-total-cost"} {
		want = append(want, fmt.Sprintf(check+at, 0), fmt.Sprintf(check+at, 1))
	}
	if want = append(want, "rule-total-cost <nil>"); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// Without counting, what has no bound is counted, and that it exceeds the budget is uncertain.
func TestUncertainBudgets(t *testing.T) {
	const z = `"z":{"type":"boolean","x-kubernetes-validations":[{"rule":"self"}]}`
	const object = `{"spec":{"l":[1,2,3]}}`
	for _, c := range []struct {
		rules, object string
		budget        uint64
		ok            bool
	}{
		{`{"rule":"self.l.distinct().size() > 0"}`, object, 1000, true},
		{`{"rule":"self.l.distinct().size() > 0"}`, object, 4, false},
		{`{"rule":"false","messageExpression":"string(self.l.distinct().size())"}`, object, 1000, true},
		{`{"rule":"false","messageExpression":"string(self.l.distinct().size())"}`, object, 4, false},
		{`{"rule":"has(self.l)"}`, `{"spec":{"z":true}}`, 1000, true},
		{`{"rule":"has(self.l) || true"}`, `{"spec":{"z":true}}`, 1, false},
	} {
		_, set := compileSchema(t, specWith(`"l":{"type":"array","items":{"type":"integer"}},`+z, c.rules))
		if got, ok := withBudget(t, set, c.object, false, c.budget); ok != c.ok {
			t.Errorf("%s with %d: %v %q", c.rules, c.budget, ok, got)
		}
	}
}

// Names of variables, and values of what has no type.
func TestNamesAndTypes(t *testing.T) {
	v := &variables{self: types.Int(1)}
	for name, want := range map[string]string{"self": "1 true", "oldSelf": "<nil> false", "other": "<nil> false"} {
		if got, ok := v.ResolveName(name); fmt.Sprint(got, " ", ok) != want {
			t.Errorf("%s: %v %v", name, got, ok)
		}
	}
	self, _, set := selfOf(t)
	for at, n := range map[string]*plan.Node{"s": {}, "l": {Type: plan.Array}} {
		want := map[string]string{"s": "invalid type, expected object, array,", "l": "invalid array type, expected Items"}[at]
		if got := fmt.Sprint(self.value(self.mustMember(t, at), n)); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", at, got)
		}
	}
	if got, ok := self.Find(types.String("x__zzz__y")); ok || got != nil {
		t.Errorf("%v", got)
	}
	if got := newSizes(set.views).max(&plan.Node{Type: plan.Array, Items: &plan.Node{}}); got != 0 {
		t.Errorf("a list of anything: %d", got)
	}
}

// Sets of other things than texts, and lists whose items have the same keys.
func TestEqualityOfOtherLists(t *testing.T) {
	const sets = `"b":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string","format":"byte"}},"c":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string","format":"byte"}},
		"v":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"array","x-kubernetes-list-type":"atomic","items":{"type":"integer"}}},
		"k":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"},"n":{"type":"string","nullable":true}}}}`
	const object = `{"spec":{"b":["aGVs","bG8="],"c":["bG8=","aGVs"],"v":[[1],[2]],"k":[{"k":"1","v":1},{"k":"2","v":2,"n":null}]}}`
	const old = `{"spec":{"k":[{"k":"2","v":2,"n":null},{"k":"1","v":3}]}}`
	const scalars = "listSet operations are only supported on lists of scalar values"
	cases := [][2]string{
		{`self.b == self.c && self.b == [b'lo', b'hel'] && self.b != [b'lo', b'he'] && (self.b + [b'lo', b'x']).size() == 3`, ""},
		{`self.v == self.v`, scalars},
		{`self.v + self.v == self.v`, scalars},
		{`self.k != oldSelf.k && self.k + [] != oldSelf.k && oldSelf.k + [] != self.k`, ""},
		{`self.k[0] != oldSelf.k[1] && self.k[1] == oldSelf.k[0] && self.k + oldSelf.k == oldSelf.k`, ""},
		{`self.k[0] in oldSelf.k`, "no"},
		{`dyn(self.k).orValue(1) == 1`, "'no such overload': call arguments did not match a supported operator, function or macro signature"},
	}
	var rules []string
	for _, c := range cases {
		rules = append(rules, c[0])
	}
	for i, got := range errorsOf(t, sets, rules, object, old) {
		if got != cases[i][1] {
			t.Errorf("%s: %q", rules[i], got)
		}
	}
}
