package cel

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/espalier-dev/espalier/internal/bridge"
	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// selfOf is the spec of anObject as rules see it.
func selfOf(t *testing.T) (*object, *plan.Node, *set) {
	t.Helper()
	s, set := compileSchema(t, specWith(everything, `{"rule":"true"}`))
	spec := bridge.Plan(s).Property("spec")
	d := document(t, anObject)
	r := new(reader)
	r.use(d, set.views)
	v, _ := d.Get(0, "spec")
	return r.root(v, spec, false).(*object), spec, set
}

// What functions of CEL and of libraries ask of values, apart from what operators do.
func TestValuesByThemselves(t *testing.T) {
	self, _, _ := selfOf(t)
	get := func(name string) ref.Val { return self.Get(types.String(name)) }
	object := func(name string) *object { return get(name).(*object) }
	native := func(v ref.Val, like any) any {
		got, err := v.ConvertToNative(reflect.TypeOf(like))
		if err != nil {
			return err.Error()
		}
		return got
	}
	find := func(o traits.Mapper, key ref.Val) string {
		v, ok := o.Find(key)
		return fmt.Sprint(v, " ", ok)
	}
	items, members := get("l").(*list), object("m")
	hidden := self.value(self.mustMember(t, "any"), &plan.Node{Flags: plan.PreserveUnknown})
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"a field", get("i"), types.Int(7)},
		{"no field", fmt.Sprint(get("q")), "no such key: q"},
		{"no name of a field", find(self, types.String("a__b")), "<nil> false"},
		{"a key of another type", find(self, types.Int(1)), "no such overload true"},
		{"a key of another type of a map", find(members, types.Int(1)), "no such overload true"},
		{"a field that is null", find(self, types.String("nil")), "<nil> false"},
		{"a field that rules cannot see", find(object("pu"), types.String("u")), "<nil> false"},
		{"no such key to be there", fmt.Sprint(self.Contains(types.Int(1))), "no such overload"},
		{"a field is there", self.Contains(types.String("i")), types.True},
		{"a field is not there", self.Contains(types.String("q")), types.False},
		{"all members count", object("pu").Size(), types.Int(2)},
		{"a map for Go", native(members, map[string]any{}), map[string]any{"x": int64(1), "y-z": int64(2)}},
		{"a map is no string for Go", native(members, ""), "type conversion error from 'map(dyn, dyn)' to 'string'"},
		{"a map is a map", members.ConvertToType(types.MapType), members},
		{"the type of a map", members.ConvertToType(types.TypeType), types.MapType},
		{"a map is no string", fmt.Sprint(members.ConvertToType(types.StringType)), "type conversion error from 'map(dyn, dyn)' to 'string'"},
		{"a map is no number", fmt.Sprint(members.Equal(types.Int(1))), "no such overload"},
		{"names of fields are escaped", fmt.Sprint(valuesIn(object("emb"))), "[apiVersion kind metadata spec]"},
		{"names of keys are not", fmt.Sprint(valuesIn(members)), "[x y-z]"},
		{"names that rules cannot see are left out", fmt.Sprint(valuesIn(object("pu"))), "[z]"},

		{"an item", items.Get(types.Int(2)), types.Int(2)},
		{"an item too far", fmt.Sprint(items.Get(types.Int(3))), "index out of bounds: 3"},
		{"an item before the first", fmt.Sprint(items.Get(types.Int(-1))), "index out of bounds: -1"},
		{"no index", fmt.Sprint(items.Get(types.String("a"))), "unsupported index: a"},
		{"a list for Go", native(items, []any{}), []any{int64(3), int64(1), int64(2)}},
		{"a list of strings for Go", native(get("set"), []string{}), []string{"b", "a"}},
		{"not all are strings", native(get("ln"), []string{}), "expected all elements to be of type string, but got <nil>"},
		{"a list is no string for Go", native(items, ""), "type conversion error from 'list(dyn)' to 'string'"},
		{"a list is a list", items.ConvertToType(types.ListType), items},
		{"the type of a list", items.ConvertToType(types.TypeType), types.ListType},
		{"a list is no string", fmt.Sprint(items.ConvertToType(types.StringType)), "type conversion error from 'list(dyn)' to 'string'"},
		{"a list is no number", fmt.Sprint(items.Equal(types.Int(1))), "no such overload"},
		{"a list has no error", fmt.Sprint(items.Contains(types.NewErr("of the argument"))), "of the argument"},
		{"a list and a number", fmt.Sprint(items.Add(types.Int(1))), "no such overload"},

		{"what is unknown is the same", hidden.Equal(hidden), types.True},
		{"what is unknown is no number", hidden.Equal(types.Int(1)), types.False},
		{"what is unknown for Go", native(hidden, []any{}), "type conversion to '[]interface {}' not supported for values preserved by x-kubernetes-preserve-unknown-fields"},
		{"what is unknown has no other type", fmt.Sprint(hidden.ConvertToType(types.ListType)), "type conversion to 'list' not supported for values preserved by x-kubernetes-preserve-unknown-fields"},
		{"the type of what is unknown", hidden.Type(), types.UnknownType},
		{"the value of what is unknown", hidden.Value(), []any{int64(1)}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: %v, not %v", c.name, c.got, c.want)
		}
	}
	for most, want := range map[int]int{2: 2, 5: 3} {
		f := &folder{most: most}
		if items.Fold(f); f.seen != want {
			t.Errorf("%d items are visited, not %d", f.seen, want)
		}
	}
}

func (o *object) mustMember(t *testing.T, name string) jsondoc.Value {
	t.Helper()
	v, ok := o.member(o.at, name)
	if !ok {
		t.Fatal(name)
	}
	return v
}

func valuesIn(v traits.Iterable) (list []ref.Val) {
	for it := v.Iterator(); it.HasNext() == types.True; {
		list = append(list, it.Next())
	}
	return list
}

// folder stops after some items.
type folder struct{ seen, most int }

func (f *folder) FoldEntry(_, _ any) bool {
	f.seen++
	return f.seen < f.most
}

// Each of the keys of a list tells items apart, those that rules have no name for too.
func TestEachKeyTellsItemsApart(t *testing.T) {
	keys := []string{"a", "b-c", "9z", "namespace"}
	for n := 1; n <= len(keys); n++ {
		var quoted, fields []string
		for _, k := range keys[:n] {
			quoted = append(quoted, fmt.Sprintf("%q", k))
			fields = append(fields, fmt.Sprintf(`%q:{"type":"string"}`, k))
		}
		names := strings.Join(quoted, ",")
		for differs := range n {
			// Lists with keys that need to be escaped have items without them.
			if k := keys[differs]; escape(k) != "" && escape(k) != k {
				continue
			}
			item := func(value string) string {
				var list []string
				for i, k := range keys[:n] {
					v := "x"
					if i == differs {
						v = value
					}
					list = append(list, fmt.Sprintf("%q:%q", k, v))
				}
				return "{" + strings.Join(list, ",") + "}"
			}
			schema := `"v":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":[` + names + `],"items":{"type":"object","required":[` + names + `],"properties":{` + strings.Join(fields, ",") + `}}}`
			rules := []string{"self.v == [self.v[1], self.v[0]]"}
			if escape(keys[differs]) != "" {
				rules = append(rules, "(self.v + [self.v[1]]).size() == 2 && self.v + [] == [self.v[1], self.v[0]] && (self.v + [self.v[0]])[1] == self.v[1]")
			}
			for i, got := range errorsOf(t, schema, rules, `{"spec":{"v":[`+item("1")+`,`+item("2")+`]}}`, "") {
				if got != "" {
					t.Errorf("%s of %s: %s: %q", keys[differs], names, rules[i], got)
				}
			}
		}
	}
}

// Rules within the metadata of a resource are compiled for what rules of the resource see, and those of what they
// cannot see are not.
func TestWhatRulesInMetadataSee(t *testing.T) {
	count := 0
	rules := func() string {
		count++
		return fmt.Sprintf(`"x-kubernetes-validations":[{"rule":"%d == 0"}]`, count)
	}
	resource := func(more string) string {
		own, labels := "", "" // the root may not have them
		if more != "" {
			own = "," + rules()
			labels = `,"labels":{"type":"object","additionalProperties":{"type":"string",` + rules() + `},` + rules() + `},"finalizers":{"type":"array","items":{"type":"string",` + rules() + `}}`
		}
		return `"type":"object",` + more + `"properties":{"apiVersion":{"type":"string",` + rules() + `},"kind":{"type":"string"},"metadata":{"type":"object"` + own + `,"properties":{
			"name":{"type":"string","maxLength":5,` + rules() + `}` + labels + `}}`
	}
	const embedded = `"x-kubernetes-embedded-resource":true,`
	s, all := compileSchema(t, `{`+resource("")+`,"e":{`+resource(embedded)+`}},"l":{"type":"array","items":{`+resource(embedded)+`}}},"m":{"type":"object","additionalProperties":{`+resource(embedded)+`}}}}}`)
	root := bridge.Plan(s)
	part, err := compilePart(root, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		node *plan.Node
		part bool // the set of a part has it, too
	}{
		{"the root", root, false}, {"a field", root.Property("e"), true}, {"an item", root.Property("l").Items, true}, {"a value", root.Property("m").Additional, true},
	} {
		meta := c.node.Property("metadata")
		for _, set := range []*set{all, part} {
			want := set == all || c.part
			seen, ok := set.substituted[meta]
			if ok != (want && c.node != root) || ok && (seen == nil || seen.Property("name") == nil || seen.Property("labels") != nil) {
				t.Errorf("%s: metadata: %v %v", c.name, seen, ok)
			}
			seen, ok = set.substituted[meta.Property("name")]
			if ok != want || ok && (seen == nil || newSizes(set.views).max(seen) != 5*4) {
				t.Errorf("%s: name: %v %v", c.name, seen, ok)
			}
			if seen, ok = set.substituted[c.node.Property("apiVersion")]; ok != want || ok && seen != anyString {
				t.Errorf("%s: apiVersion: %v %v", c.name, seen, ok)
			}
			if c.node == root {
				continue
			}
			for what, n := range map[string]*plan.Node{"labels": meta.Property("labels"), "a label": meta.Property("labels").Additional, "a finalizer": meta.Property("finalizers").Items} {
				if seen, ok := set.substituted[n]; ok != want || seen != nil {
					t.Errorf("%s: %s: %v %v", c.name, what, seen, ok)
				}
			}
			for _, n := range []*plan.Node{c.node.Property("kind"), meta.Property("finalizers")} {
				if seen, ok := set.substituted[n]; ok {
					t.Errorf("%s: something without rules: %v", c.name, seen)
				}
			}
		}
	}
}

// Defaults of what rules cannot see are wrong if there are rules, except in fields.
func TestDefaultsOfWhatRulesCannotSee(t *testing.T) {
	const unknown = `"x-kubernetes-preserve-unknown-fields":true`
	const rule = `"x-kubernetes-validations":[{"rule":"true"}]`
	for _, c := range []struct {
		schema string
		want   []string
	}{
		{`"default":1,` + unknown + `,` + rule, []string{"default"}},
		{`"default":[1,2],` + unknown + `,"items":{"type":"integer",` + rule + `}`, []string{"default[0]", "default[1]"}},
		{`"default":[[1]],` + unknown + `,"items":{"type":"array","items":{"type":"integer",` + rule + `}}`, []string{"default[0][0]"}},
		{`"default":{"a":1},` + unknown + `,"additionalProperties":{"type":"integer",` + rule + `}`, []string{"default[a]"}},
		{`"default":[{"a":1}],` + unknown + `,"items":{"type":"object","properties":{"a":{"type":"integer",` + rule + `}},` + rule + `}`, []string{"default[0]"}},
		{`"default":{"a":1},` + unknown + `,"properties":{"a":{"type":"integer",` + rule + `}},` + rule, []string{"default"}},
		{`"default":{"a":1},` + unknown + `,"properties":{"a":{"type":"integer",` + rule + `}}`, nil},
		{`"type":"array","default":[1,2],"items":{` + unknown + `,` + rule + `}`, nil},
		{`"type":"object","default":{"a":1},"additionalProperties":{` + unknown + `,` + rule + `}`, nil},
	} {
		var got []string
		for _, f := range checked(t, `{"type":"object","properties":{"v":{`+c.schema+`}}}`, CheckOptions{}) {
			if f.Check == RuleDefault && f.Detail == "rule compiler initialization error: failed to convert to declType for CEL validation rules" {
				got = append(got, strings.TrimPrefix(f.Path, "properties[v]."))
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, not %q", c.schema, got, c.want)
		}
	}
}

// Defaults share a budget. What is evaluated with the old value and without counts once, as what costs more.
func TestBudgetOfDefaults(t *testing.T) {
	const plain = `"x-kubernetes-validations":[{"rule":"self > 1"}]` // costs 2
	const changes = `"x-kubernetes-validations":[{"rule":"self >= oldSelf"}]`
	const optional = `"x-kubernetes-validations":[{"rule":"oldSelf.hasValue() || self > 1 \u0026\u0026 self > 2 \u0026\u0026 self > 3","optionalOldSelf":true}]`
	for _, c := range []struct {
		rules  []string
		budget int64
		left   int64
		found  []string
	}{
		{[]string{plain}, 100, 98, nil},
		{[]string{changes}, 100, 97, nil},
		{[]string{optional}, 100, 92, nil},
		{[]string{""}, 100, 100, nil},
		{[]string{plain, plain, plain}, 6, 0, nil},
		{[]string{plain, plain, plain}, 5, -1, []string{"v2"}},
		{[]string{plain, plain, plain}, 4, -1, []string{"v2"}},
		{[]string{plain, plain, plain}, 3, -1, []string{"v1"}},
		{[]string{plain, plain, plain}, 2, -1, []string{"v1"}},
		{[]string{plain, plain, plain}, 1, -1, []string{"v0"}},
	} {
		var fields []string
		for i, r := range c.rules {
			fields = append(fields, strings.TrimSuffix(fmt.Sprintf(`"v%d":{"type":"integer","default":%d,%s`, i, i+5, r), ",")+"}")
		}
		s, release, err := bridge.Read([]byte(`{"type":"object","properties":{`+strings.Join(fields, ",")+`}}`), jsondoc.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		result := compile.Validate(s, compile.CheckOptions{})
		n, err := compile.Lower(s, compile.LowerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r := defaultsRun{root: n, remaining: c.budget}
		if err := r.all(result.Defaults); err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, f := range r.found {
			if f.Detail != outOfBudget {
				t.Error(f)
			}
			found = append(found, strings.TrimSuffix(strings.TrimPrefix(f.Path, "properties["), "].default"))
		}
		if r.remaining != c.left || !slices.Equal(found, c.found) {
			t.Errorf("%q with %d: %d are left, %q", c.rules, c.budget, r.remaining, found)
		}
		plan.Release(n)
		release()
	}
}

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
