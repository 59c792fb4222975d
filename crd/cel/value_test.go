package cel

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/costtest"
)

// everything is a schema with values of all types.
const everything = `"s":{"type":"string"},"t":{"type":"string"},"i":{"type":"integer"},"n":{"type":"number"},"b":{"type":"boolean"},"no":{"type":"string"},
"by":{"type":"string","format":"byte"},"d":{"type":"string","format":"date"},"dt":{"type":"string","format":"date-time"},"du":{"type":"string","format":"duration"},
"ios":{"x-kubernetes-int-or-string":true},"ioi":{"x-kubernetes-int-or-string":true},
"nil":{"type":"string","nullable":true},
"l":{"type":"array","items":{"type":"integer"}},"l2":{"type":"array","items":{"type":"integer"}},
"ln":{"type":"array","items":{"type":"string","nullable":true}},
"set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},"set2":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
"ml":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"}}}},
"ml2":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"}}}},
"m":{"type":"object","additionalProperties":{"type":"integer"}},"m2":{"type":"object","additionalProperties":{"type":"integer"}},
"mn":{"type":"object","additionalProperties":{"type":"string","nullable":true}},
"a-b":{"type":"string"},"c.d":{"type":"string"},"e/f":{"type":"string"},"namespace":{"type":"string"},"x__y":{"type":"string"},"9z":{"type":"string"},
"any":{"x-kubernetes-preserve-unknown-fields":true},
"pu":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"z":{"type":"integer"}}},
"pu2":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"z":{"type":"integer"}}},
"empty":{"type":"object"},
"emb":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"properties":{"spec":{"type":"object","properties":{"q":{"type":"integer"}}}}},
"os":{"type":"array","items":{"type":"object","properties":{"any":{"x-kubernetes-preserve-unknown-fields":true},"f":{"type":"string","nullable":true}}}}`

const anObject = `{"apiVersion":"v1","kind":"K","metadata":{"name":"nm","labels":{"x":"y"}},"spec":{
"s":"häß","t":"a\"b\u0041","i":7,"n":2,"b":true,"by":"aGVsbG8=","d":"2020-02-29","dt":"2021-01-02T03:04:05Z","du":"1h30m","ios":"50%","ioi":3,"nil":null,
"l":[3,1,2],"l2":[3,1,2],"ln":["x",null],"set":["b","a"],"set2":["a","b"],
"ml":[{"k":"1","v":1},{"k":"2","v":2}],"ml2":[{"k":"2","v":2},{"k":"1","v":1}],
"m":{"x":1,"y-z":2},"m2":{"y-z":2,"x":1},"mn":{"a":null,"b":"c"},
"a-b":"dash","c.d":"dot","e/f":"slash","namespace":"ns","x__y":"us","9z":"hidden","any":[1],
"pu":{"z":1,"u":{"deep":[1,2.5]}},"pu2":{"u":{"deep":[1,2.5]},"z":1},"empty":{},
"emb":{"apiVersion":"g/v1","kind":"E","metadata":{"name":"en","labels":{"a":"b"}},"spec":{"q":5}},
"os":[{"any":{"x":1},"f":null},{"any":{"x":1}}]}}`

func TestValuesAreThoseOfTheAPIServer(t *testing.T) {
	for _, rule := range []string{
		`self.s == 'häß' && size(self.s) == 3`, `self.t == 'a"bA'`, `self.i == 7 && self.i < 7.5`, `self.n == 2.0 && type(self.n) == double`, `self.b`,
		`!has(self.no) && !has(self.nil)`, `self.by == b'hello' && size(self.by) == 5`,
		`self.d == timestamp('2020-02-29T00:00:00Z') && self.d.getDayOfMonth() == 28`, `self.dt < timestamp('2022-01-01T00:00:00Z')`, `self.du == duration('90m')`,
		`type(self.ios) == string && type(self.ioi) == int && self.ioi == 3 && self.ios == '50%'`,
		`self.l == self.l2 && self.l == [3, 1, 2] && [3, 1, 2] == self.l && self.l != [1, 2, 3]`, `self.l[1] == 1 && 2 in self.l && !(9 in self.l)`,
		`self.l + [4] == [3, 1, 2, 4] && ([0] + self.l)[0] == 0 && (self.l + self.l2).size() == 6`, `self.l.map(x, x * 2) == [6, 2, 4]`, `self.l.sum() == 6 && self.l.max() == 3`,
		`self.l.all(i, x, i >= 0 && x > 0) && self.l.transformList(i, x, i + x) == [3, 2, 4]`, `dyn(self.ln[1]) == null && self.ln.exists(x, dyn(x) == null)`,
		`self.set == self.set2 && self.set2 == ['b', 'a'] && self.set != ['b']`, `self.set + ['a', 'c'] == ['c', 'b', 'a'] && (self.set + ['c'] + ['c']).size() == 3`,
		`dyn(self.ml) == self.ml2 && dyn(self.ml) + dyn(self.ml2) == self.ml`, `(self.ml + self.ml).size() == 2 && (dyn(self.ml) + dyn(self.ml2))[0].v == 1`, `self.ml.filter(x, x.k == '1') == [self.ml[0]] && self.ml != [self.ml[0]] && self.ml == [self.ml[1], self.ml[0]]`,
		`self.m == self.m2 && self.m['y-z'] == 2 && self.m.x == 1 && 'x' in self.m && !('q' in self.m) && has(self.m.x) && !has(self.m.q)`, `self.m.size() == 2 && self.m.all(k, self.m[k] > 0)`,
		`self.m.exists(k, v, k == 'y-z' && v == 2)`, `dyn(self.mn.a) == null && 'a' in self.mn && self.mn.size() == 2`, `self.?m.?q.orValue(5) == 5 && self.m[?'x'].orValue(5) == 1`,
		`self.a__dash__b == 'dash' && self.c__dot__d == 'dot' && self.e__slash__f == 'slash' && self.__namespace__ == 'ns' && self.namespace == 'ns' && self.x__underscores__y == 'us'`,
		`dyn(self.pu) == self.pu2 && self.pu.z == 1`, `self.empty == self.empty && !has(self.empty.x)`,
		`self.emb.kind == 'E' && self.emb.metadata.name == 'en' && !has(self.emb.metadata.generateName) && self.emb.spec.q == 5`, `self.os[0] != self.os[1] && self.os == self.os`,
		`type(self) == map && type(self.l) == list`, `self.s.matches('^h.*$') && self.s.startsWith('h') && self.s.contains('ä') && self.s.upperAscii() == 'HäSS'.replace('SS', 'ß')`,
		`dyn(self.emb.spec).exists(k, k == 'q')`, `self.ml.map(x, x.k).join(',') == '1,2'`, `string(self.by) == 'hello' && string(self.i) == '7'`,
	} {
		schema := specWith(everything, "{"+`"rule":`+strconv.Quote(rule)+`,"message":"no"}`)
		// The rule about an empty object does not type-check: nothing can be
		// selected from it.
		if strings.Contains(rule, "self.empty.x") {
			rule = "self.empty == self.empty"
			schema = specWith(everything, `{"rule":"self.empty == self.empty"}`)
		}
		if v := validate(t, schema, anObject, ""); !v.Valid() {
			t.Errorf("%s: %v", rule, rendered(v.Errors))
		}
	}
}

// A number that is written as an integer has no sign if it is zero.
func TestNegativeZero(t *testing.T) {
	schema := specWith(`"n":{"type":"number"}`, `{"rule":"1.0 / self.n > 0.0"}`)
	for value, valid := range map[string]bool{"0": true, "-0": true, "2": true, "-0.5": false} {
		if v := validate(t, schema, `{"spec":{"n":`+value+`}}`, ""); v.Valid() != valid {
			t.Errorf("%s: %v", value, rendered(v.Errors))
		}
	}
}

func TestWhatRulesCannotSee(t *testing.T) {
	for rule, why := range map[string]string{
		`has(self.any)`:                              "undefined field 'any'",
		`self.pu.u == 1`:                             "undefined field 'u'",
		`self.emb.metadata.labels == 1`:              "undefined field 'labels'",
		`self.a_b == ''`:                             "undefined field 'a_b'",
		`self['9z'] == ''`:                           "no matching overload",
		`self.x__y == ''`:                            "undefined field 'x__y'",
		`self.l == self.set`:                         "no matching overload",
		`self.pu == self.pu2 && self.pu == self.emb`: "no matching overload",
	} {
		v := validate(t, specWith(everything, "{"+`"rule":`+strconv.Quote(rule)+`}`), anObject, "")
		if len(v.Errors) != 1 || !strings.Contains(v.Errors[0].Detail, why) {
			t.Errorf("%s: %v", rule, rendered(v.Errors))
		}
	}
}

// Errors show values as JSON, and not as Go prints them: keys of a map may be
// of any type.
func TestValuesInErrors(t *testing.T) {
	for rule, want := range map[string]string{
		`self.l.transformMapEntry(i, x, {self.pu: x}).size() == 3`:                ``, // every access is another key
		`[self.pu].exists(p, self.l.transformMapEntry(i, x, {p: x}).size() == 3)`: `insert failed: key {"u":{"deep":[1,2.5]},"z":1} already exists`,
		`[self.l2].exists(p, self.l.transformMapEntry(i, x, {p: x}).size() == 3)`: `insert failed: key [3,1,2] already exists`,
	} {
		v := validate(t, specWith(everything, `{"rule":`+strconv.Quote(rule)+`}`), anObject, "")
		if want == "" && v.Valid() {
			continue
		}
		if len(v.Errors) != 1 || !strings.HasPrefix(v.Errors[0].Detail, want) || want == "" {
			t.Errorf("%s: %v", rule, rendered(v.Errors))
		}
	}
}

func TestRootsAreResources(t *testing.T) {
	schema := `{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":3,"x-kubernetes-validations":[{"rule":"self.size() < 3","message":"long"}]}}}},
		"x-kubernetes-validations":[{"rule":"self.kind == 'K' && self.apiVersion == 'v1' && self.metadata.name == 'nm' && !has(self.metadata.generateName)"},{"rule":"self.metadata.name == 'other'","message":"m","fieldPath":".metadata.name"}]}`
	v := validate(t, schema, `{"apiVersion":"v1","kind":"K","metadata":{"name":"nm","uid":"1"}}`, "")
	if got := rendered(v.Errors); len(got) != 1 || got[0] != "metadata.name: Invalid value: m" {
		t.Error(got)
	}
}

func TestRulesWithinEmbeddedMetadata(t *testing.T) {
	// To rules of the resource, metadata has name and generateName only, and its
	// own rules are compiled for that. Evaluated they are on what the schema
	// specifies. The rule of the labels is never run.
	schema := specWith(`"e":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","properties":{
		"labels":{"type":"object","additionalProperties":{"type":"string"},"x-kubernetes-validations":[{"rule":"false","message":"labels"}]}},
		"x-kubernetes-validations":[{"rule":"has(self.labels)","message":"a"},{"rule":"self.name == 'x'","message":"b"}]}}}`, `{"rule":"true"}`)
	v := validate(t, schema, `{"spec":{"e":{"apiVersion":"v1","kind":"K","metadata":{"name":"y","labels":{"a":"b"}}}}}`, "")
	got := strings.Join(rendered(v.Errors), "|")
	if !strings.Contains(got, "undefined field 'labels'") || !strings.Contains(got, "no such key: name evaluating rule: b") || len(v.Errors) != 2 {
		t.Error(got)
	}
	found := checked(t, schema, CheckOptions{})
	if len(found) != 1 || !strings.Contains(found[0].Detail, "undefined field 'labels'") {
		t.Error(found)
	}
}

// wideValues are objects with many members of a map, or items of a list.
var wideValues = map[string]string{
	"list":         `{"spec":{"l":[%s]}}`,
	"sorted map":   `{"spec":{"m":{%s}}}`,
	"unsorted map": `{"spec":{"m":{%s}}}`,
}

// visitor returns what evaluates rules that look at each of n members of a map, or items
// of a list, by its name.
func visitor(t *testing.T, name string, n int, count bool) func() {
	t.Helper()
	_, set := compileSchema(t, specWith(`"m":{"type":"object","additionalProperties":{"type":"integer"}},"l":{"type":"array","items":{"type":"integer"}}`,
		`{"rule":"!has(self.m) || self.m.all(k, self.m[k] > 0)"},{"rule":"!has(self.l) || self.l.all(x, self.l[x] == x)"}`))
	var list []string
	for i := range n {
		switch name {
		case "list":
			list = append(list, strconv.Itoa(i))
		case "sorted map":
			list = append(list, `"k`+strconv.Itoa(100000+i)+`":1`)
		default:
			list = append(list, `"k`+strconv.Itoa(900000-i)+`":1`)
		}
	}
	object := fmt.Sprintf(wideValues[name], strings.Join(list, ","))
	return func() {
		if errs, _, ok := attempt(t, set, object, "", count); len(errs) > 0 || !ok {
			t.Fatal(errs, ok)
		}
	}
}

func TestAccessToWideValues(t *testing.T) {
	for name := range wideValues {
		visitor(t, name, 400, false)()
		visitor(t, name, 400, true)()
	}
}

func TestAccessToWideValuesCostIsLinear(t *testing.T) {
	costtest.Limit(t)
	for name := range wideValues {
		for _, count := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, counting %v", name, count), func(t *testing.T) {
				costtest.Linear(t, costtest.Input{Size: 4000, Run: visitor(t, name, 4000, count)}, costtest.Input{Size: 40000, Run: visitor(t, name, 40000, count)})
			})
		}
	}
}
