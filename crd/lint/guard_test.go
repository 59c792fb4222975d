package lint

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd/cel"
)

// guarded is what the rules of TestUnguarded are about.
const guarded = `{"type":"object","required":["must","name"],"properties":{
	"must":{"type":"string"},"name":{"type":"object","properties":{"first":{"type":"string"}}},"withDefault":{"type":"integer","default":1},
	"a":{"type":"integer"},"b":{"type":"integer"},"s":{"type":"string"},"t":{"type":"string"},
	"o":{"type":"object","required":["in"],"properties":{"in":{"type":"integer"},"opt":{"type":"integer"}}},
	"m":{"type":"object","additionalProperties":{"type":"string"}},
	"l":{"type":"array","items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"}}}},
	"ml":{"type":"object","additionalProperties":{"type":"object","properties":{"v":{"type":"integer"}}}},
	"x-y":{"type":"integer"},"namespace":{"type":"string"}}%s}`

func TestUnguarded(t *testing.T) {
	for _, c := range []struct {
		rule string
		want string // what is read unguarded; empty if nothing is
	}{
		{`self.must != 'x' && self.withDefault > 0`, ""},
		{`self.a > 0`, "self.a"},
		{`self.a > self.b`, "self.a, self.b"},
		{`self.o.opt > 0`, "self.o"},
		{`self.name.first == 'x'`, "self.name.first"},
		{`has(self.a) && self.a > 0`, ""},
		{`self.a > 0 && has(self.a)`, ""}, // either side decides alone
		{`!has(self.a) || self.a > 0`, ""},
		{`self.a > 0 || !has(self.a)`, ""},
		{`has(self.a) ? self.a > 0 : true`, ""},
		{`!has(self.a) ? true : self.a > 0`, ""},
		{`has(self.a) ? self.b > 0 : true`, "self.b"},
		{`has(self.a) || self.a > 0`, "self.a"},
		{`!has(self.a) && self.a > 0`, "self.a"},
		{`has(self.b) ? self.a > 0 : self.b > 0`, "self.a, self.b"},
		{`!(has(self.a) && self.a > 0)`, ""},
		{`!(has(self.a) && self.b > 0)`, "self.b"},
		{`!has(self.a) || !has(self.b) || self.a > self.b`, ""},
		{`!(has(self.a) && has(self.b)) || self.a > self.b`, ""},
		{`(has(self.a) ? self.a : 0) + (has(self.b) ? self.b : 0) < 5`, ""},
		{`self.must == 'x' ? has(self.a) && self.a > 0 : true`, ""},
		{`has(self.a) == has(self.b) || !has(self.b) && self.a > 0`, ""},
		{`has(self.a) != has(self.b) || has(self.b) && self.a > 0`, ""},
		{`has(self.a) != has(self.b) || self.a > 0`, "self.a"},

		{`has(self.o.opt)`, ""}, // what the rule demands
		{`!has(self.o.opt) || self.o.opt > 0`, "self.o"},
		{`has(self.o) && has(self.o.opt) ? self.o.opt > self.o.in : true`, ""},
		{`!has(self.o) || self.o.in > 0`, ""},
		{`!has(self.o) || self.o.opt > 0`, "self.o.opt"},

		{`self.?a.orValue(0) >= 0`, ""},
		{`self.?o.opt.orValue(0) >= 0`, ""},
		{`self.?a.hasValue() ? self.a > 0 : true`, ""},
		{`self.?s.orValue('') == 'x' ? self.s.size() > 0 : true`, ""},
		{`self.?s.orValue('x') == 'x' ? self.s.startsWith('x') : true`, "self.s"},
		{`self.?s.orValue('').size() > 0 ? self.s.startsWith('x') : true`, ""},
		{`self.?a.optMap(x, x > 0).orValue(true)`, ""},
		{`self.o.?opt.orValue(0) == 0`, "self.o"},
		{`!self.?o.hasValue() || self.o.in > 0`, ""},

		{`size(self.s) > 0 || size(self.t) > 0`, ""}, // absent is not large
		{`size(self.s) == 0`, "self.s"},
		{`size(self.s) >= 0`, "self.s"},
		{`!has(self.o) || size(self.s) == 0`, "self.s"},
		{`self.s != 'x' || size(self.t) > 0`, "self.s"},
		{`self.s != ''`, ""},
		{`self.s == 'x' || self.t == 'y'`, ""},
		{`self.s == 'x'`, "self.s"},
		{`self.s == 'x' ? has(self.a) : !has(self.a)`, "self.s"},
		{`'x' in self.m`, ""},
		{`!('x' in self.m)`, "self.m"},
		{`has(self.m) && self.m['x'] == 'y'`, `self.m["x"]`},
		{`has(self.m) && 'x' in self.m && self.m['x'] == 'y'`, ""},
		{`!has(self.m) || !has(self.m.x) || self.m.x == 'y'`, ""},

		{`self.l.all(x, x.k != '')`, "self.l"},
		{`self.l.exists(x, x.k == 'y')`, ""}, // false without a list
		{`!has(self.l) || self.l.all(x, x.v > 0)`, "x.v"},
		{`!has(self.l) || self.l.all(x, has(x.v) ? x.v > 0 : true)`, ""},
		{`!has(self.l) || self.l.all(x, !has(x.v) || self.l.exists(y, has(y.v) && y.v > x.v))`, ""},
		{`!has(self.l) || self.l.all(x, !has(x.v) || self.l.all(y, y.v > x.v))`, "y.v"},
		{`!has(self.l) || self.l.filter(x, has(x.v)).all(y, y.v > 0)`, ""},
		{`!has(self.l) || self.l.filter(x, x.k == 'y').all(y, y.v > 0)`, "y.v"},
		{`!has(self.l) || self.l.filter(x, has(x.v)).filter(y, y.v > 0).map(z, z.v).sum() < 9`, ""},
		{`!has(self.l) || self.l.map(x, x.v).sum() < 9`, "x.v"},
		{`!has(self.l) || self.l.size() == 0 || self.l[0].v > 0`, "self.l[0].v"},
		{`!has(self.l) || self.l.size() == 0 || !has(self.l[0].v) || self.l[0].v > 0`, ""},
		{`!has(self.ml) || self.ml.all(k, k != 'x')`, ""},
		{`!has(self.ml) || self.ml.all(k, self.ml[k].v > 0)`, "self.ml[k].v"},
		{`!has(self.ml) || self.ml.all(k, v, v.v > 0)`, "v.v"},
		{`!has(self.ml) || self.ml.all(k, v, !has(v.v) || v.v > 0)`, ""},

		{`has(self.a) ? self.a == oldSelf.a : true`, "oldSelf.a"},
		{`!has(self.a) || !has(oldSelf.a) || self.a == oldSelf.a`, ""},
		{`self.must == oldSelf.must`, ""},
		{`self == oldSelf`, ""},

		{`self.x__dash__y > 0`, "self.x__dash__y"},
		{`!has(self.x__dash__y) || self.x__dash__y > 0`, ""},
		{`!has(self.__namespace__) || self.__namespace__ != ''`, ""},
		{`dyn(self).a > 0`, ""},
		{`this is no expression`, ""},
	} {
		raw, err := json.Marshal([]map[string]string{{"rule": c.rule}})
		if err != nil {
			t.Fatal(err)
		}
		found := of(t, "rule-unguarded-optional", `{"type":"object","properties":{"spec":`+fmt.Sprintf(guarded, `,"x-kubernetes-validations":`+string(raw))+`}}`)
		got := ""
		if len(found) > 0 {
			got, _, _ = strings.Cut(found[0].Detail, " is optional")
			got, _, _ = strings.Cut(got, " are optional")
		}
		if got != c.want || len(found) > 1 {
			t.Errorf("%s: reads %q unguarded, want %q", c.rule, got, c.want)
		}
	}
}

// TestGiven: what other rules and the schema demand need not be asked for.
func TestGiven(t *testing.T) {
	for _, c := range []struct {
		name, schema string
		found        bool
	}{
		{"another rule", `{type: object, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: self.a > 0}, {rule: has(self.a)}]}`, false},
		{"nothing", `{type: object, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: self.a > 0}, {rule: "true"}]}`, true},
		{"allOf", `{type: object, allOf: [{required: [a]}], properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: self.a > 0}]}`, false},
		{"all of oneOf", `{type: object, oneOf: [{required: [a, b]}, {required: [a]}], properties: {a: {type: integer}, b: {type: string}}, x-kubernetes-validations: [{rule: self.a > 0}]}`, false},
		{"the other of oneOf", `{type: object, oneOf: [{required: [a]}, {required: [b]}], properties: {a: {type: integer}, b: {type: integer}}, x-kubernetes-validations: [{rule: "has(self.b) ? self.b > 0 : self.a > 0"}]}`, false},
		{"one of oneOf", `{type: object, oneOf: [{required: [a]}, {required: [b]}], properties: {a: {type: integer}, b: {type: integer}}, x-kubernetes-validations: [{rule: self.a > 0}]}`, true},
		{"minProperties", `{type: object, minProperties: 1, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: self.a > 0}]}`, false},
		{"metadata", `{type: object, properties: {metadata: {type: object, properties: {name: {type: string}}}}, x-kubernetes-validations: [{rule: self.metadata.name != 'x' && self.kind != 'y'}]}`, false},
		{"an old value that may be none", `{type: object, required: [b], properties: {b: {type: object, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: "oldSelf.a.orValue(1) > 0", optionalOldSelf: true}]}}}`, false},
	} {
		if found := of(t, "rule-unguarded-optional", c.schema); len(found) > 0 != c.found {
			t.Errorf("%s: %v", c.name, found)
		}
	}
}

// TestWeight: the rough weight of an expression is never below the estimate that
// it stands for.
func TestWeight(t *testing.T) {
	for _, rule := range []string{
		`self.must == oldSelf.must`, `self == oldSelf`, `has(self.a) && self.a > 1`, `'x' in self.m`, `!('x' in self.m) || self.m['x'] == self.must`,
		`has(self.s) ? self.s.startsWith(self.must) : self.must.endsWith('x')`, `self.must in ['a', 'b', 'c']`, `self.must < self.s`, `size(self.l) == 3`,
		`self.?s.orValue('x') == self.must`, `self.l[0] == self.l[1]`, `self.m == self.m`, `self.l == self.l || self.l != self.l`, `self.l[0] in self.l`,
	} {
		raw, err := json.Marshal([]map[string]string{{"rule": rule}})
		if err != nil {
			t.Fatal(err)
		}
		schema := `{"type":"object","properties":{"spec":` + fmt.Sprintf(guarded, `,"x-kubernetes-validations":`+string(raw)) + `}}`
		list, err := cel.Costs([]byte(schema), cel.CheckOptions{})
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v, %v", rule, list, err)
		}
		tree, issues := parser().Parse(rule)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		if w := weight(tree.NativeRep().Expr()); w < list[0].Total {
			t.Errorf("%s may cost %d, more than %d", rule, list[0].Total, w)
		}
	}
}
