package kinds

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"go.yaml.in/yaml/v3"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// answer evaluates an expression: its value as JSON, or else the error.
func answer(source string, s *scope) string {
	value, err := (&expr{source: source}).eval(s)
	if err != nil {
		return err.Error()
	}
	return text(plain(value))
}

// valuesScope has an object with fields of all forms.
func valuesScope(t *testing.T) *scope {
	t.Helper()
	k := madeKind(t, "{made.Thing: {s: string, i: int32, q: quantity, d: float64, b: bool, p: intOrString, l: '[]string', m: 'map[string]string', o: made.Inner, os: '[]made.Inner', a: any, namespace: string, sel: meta/v1.LabelSelector}, made.Inner: {x: string, y: '*string', z: quantity}}", "{}")
	tree := treeOf(t, "{s: a, i: 1, q: 5, d: 1.5, b: true, p: 5%, l: [x, y], m: {k: v}, o: {x: y}, os: [{x: u}, {x: v}], a: {b: c}, namespace: n, sel: {matchLabels: {a: b}}}")
	self := &object{k.object(), tree}
	return &scope{self: self, root: self, old: &object{k.object(), nil}, kind: "Thing", index: 7, path: field.NewPath("a").Index(2)}
}

// The functions of expressions, and what they refuse.
func TestExpressionFunctions(t *testing.T) {
	s := valuesScope(t)
	for source, want := range map[string]string{
		"'a' in set(['a', 'b'])": "true", "'c' in set(['a', 'b'])": "false", "set([1.5]).size()": "set([1.5]).size(): set is for strings, numbers and booleans", "set([1, true, 'a']).size()": "3",
		"firsts([1.5]).size()": "firsts([1.5]).size(): firsts is for strings, numbers and booleans", "firsts([true, true, false])[false]": "2",
		"repeated(['a', 'b', 'a', 'a'])": "[2,3]", "repeated([1, 2])": "[]", "repeated([1.5])": "repeated([1.5]): repeated is for strings, numbers and booleans",
		"firstIndexes(['a', 'b', 'a', 'c', 'b'])": "[0,1,0,3,1]", "firstIndexes([1.5])": "firstIndexes([1.5]): firstIndexes is for strings, numbers and booleans",
		"shorten([])": `""`, "shorten(['a', 'b'], 5)": `"a,b + 2 more..."`,
		"sumQuantities(['1', '500m', 'x'])": `"1500m"`, "sumQuantities([])": `"0"`,
		"qty('2')": "2", "qty('1500m')": "2", "qty('x')": "0", "milli('1500m')": "1500", "milli('x')": "0", "milli('9223372036854775')": "9223372036854775000", "milli('9223372036854776')": "9223372036854775807",
		"whole('1')": "true", "whole('1500m')": "false", "whole('x')": "true", "compareQuantities('1', '1000m')": "0", "compareQuantities('1', '2')": "-1", "compareQuantities('2', '1')": "1", "compareQuantities('x', '1')": "1",
		"age('x')": `"\u003cunknown\u003e"`, "age('2020-01-01T00:00:00Z') != age('2025-01-01T00:00:00Z')": "true", "elapsed('x', '')": `"\u003cunknown\u003e"`, "elapsed('2026-01-01T00:00:00Z', '2026-01-01T00:00:05Z')": `"5s"`,
		"elapsed('2020-01-01T00:00:00Z', '') == age('2020-01-01T00:00:00Z')": "true", "timestamp(now(0)) > timestamp('2024-01-01T00:00:00Z')": "true", "now(0).endsWith('Z')": "true", "check('uuid', uuid(0))": "[]", "uuid(0) == uuid(1)": "false",
		"check('absolute-path', 'a')": `["must be an absolute path"]`, "check('no such', 'a')": `check('no such', 'a'): there is no format "no such"`,
		"merge({'a': 1, 'b': 2}, {'b': 3})": `{"a":1,"b":3}`, "merge({'a': 1}, 'b')": "merge({'a': 1}, 'b'): merge is for maps", "merge(self.o, {'z': '1'})": `{"x":"y","z":"1"}`, "merge(self.m, {'a': 'b'}).size()": "2",
		"selector(self.sel)": `"a=b"`, "selector('a')": "selector('a'): selector is for label selectors", "selector(old.sel)": `"\u003cnone\u003e"`, "labels({'b': 'c', 'a': 'b'})": `"a=b,b=c"`, "labels({})": `"\u003cnone\u003e"`,
		"selects(self.sel, {'a': 'b', 'c': 'd'})": "true", "selects(self.sel, {'a': 'c'})": "false", "selects(old.sel, {'a': 'b'})": "false", "selects(1, {})": "selects(1, {}): selects is for label selectors",
		"readable(self.sel)": "true", "readable(1)": "readable(1): readable is for label selectors", "readable(old.sel)": "true",
		"equal(self.o, self.o)": "true", "equal(self.o, old.o)": "false", "equal(self.o, self.m)": "false", "equal(self.m, {'k': 'v'})": "true", "equal({'k': []}, {})": "true", "equal(1, 2)": "false",
		"json(self.o)": `"{\"x\":\"y\"}"`, "json('a')": `"\"a\""`, "int32(2147483647)": "true", "int32(2147483648)": "false", "int32(-2147483648)": "true", "int32(-2147483649)": "false", "int32('%d')": "int32('%d'): int32 is for integers, not for string",
		"overlaps([['a', 'x'], ['a/b', '']])": `["overlapping paths: \"a/b\" with \"a\" (x)"]`, "overlaps([['a']])": "overlaps([['a']]): overlaps is for lists of pairs", "overlaps([['', ''], ['', '']])": "[]", "overlaps([['a/b/c', ''], ['a/b/c/d', '']])": `["overlapping paths: \"a/b/c/d\" with \"a/b/c\""]`,
		"equalBut(self.o, old.o, ['x'])": "true", "equalBut(self.o, old.o, ['y'])": "false", "equalBut(self.o, self, [])": "equalBut(self.o, self, []): equalBut is for objects of the same type", "equalBut(self.o, 1, [])": "equalBut(self.o, 1, []): equalBut is for objects of the same type", "equalBut(self, self, ['os.x', 'o.x'])": "true",
		"amount('99999999999999999999%')": "9223372036854775807", "amount(true)": "0", "amount('5%') + amount(2)": "7", "checkAmount(-1)": `["must be greater than or equal to 0"]`, "checkAmount(0)": "[]",
		"checkIndexes('1', 1)": `["too large index: \"1\""]`, "checkIndexes('0', 1)": "[]", "countIndexes('0-2,5')": "4", "sharedIndex('0-2', '2-3')": "2",
	} {
		if got := answer(source, s); got != want {
			t.Errorf("%s = %s", source, got)
		}
	}
	numbers := types.DefaultTypeAdapter.NativeToValue([]int64{1})
	for want, got := range map[string]ref.Val{"shorten is for strings": shorten(numbers), "sumQuantities is for quantities": sumQuantities(numbers)} {
		if err, ok := got.(*types.Err); !ok || err.Error() != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

// Parts of a tree as expressions read them.
func TestExpressionValues(t *testing.T) {
	s := valuesScope(t)
	for source, want := range map[string]string{
		"self.s + self.q + string(self.i) + string(self.d) + string(self.b) + self.p": `"a511.5true5%"`, "old.s + old.q + string(old.i) + string(old.d) + string(old.b) + string(old.p)": `"00false0"`,
		"self.l + ['z']": `["x","y","z"]`, "self.l + 1": "self.l + 1: no such overload", "old.l.size() + old.m.size()": "0", "self.m.k": `"v"`, "self.a.b": `"c"`, "self.os.map(o, o.x)": `["u","v"]`, "self.os.transformList(i, o, o.x + string(i))": `["u0","v1"]`,
		"self.o": `{"x":"y"}`, "self.__namespace__": `"n"`, "has(self.__namespace__)": "true", "self.no": "self.no: made.Thing has no field no", "has(self.no)": "has(self.no): made.Thing has no field no", "has(self.o.y)": "false", "has(self.o.x)": "true", "has(self.o)": "true", "has(old.o)": "false",
		"self.o == self.o": "true", "self.o == old.o": "false", "self.o == self": "false", "type(self.o) == type(old.o)": "true", "string(self.o)": "string(self.o): no such overload: string(made.Inner)",
		"kind + path + string(index) + string(update)": `"Thinga[2]7false"`, "root == self": "true", "item": "item: no such attribute(s): item", "failed": "failed: no such attribute(s): failed", "unknown": "unknown: no such attribute(s): unknown",
		"'a' + 'b' + 'c'": `"abc"`, "'a' + self.s": `"aa"`, "self.s + 'a'": `"aa"`, "1 + 2": "3", "'abc'.matches('a' + 'b')": "true", "type(1) == int": "true",
	} {
		if got := answer(source, s); got != want {
			t.Errorf("%s = %s", source, got)
		}
	}
	if got := answer("1 +", s); !strings.HasPrefix(got, "1 +: ERROR: <input>:1:4: Syntax error") {
		t.Error(got)
	}
	o := s.self.(*object)
	if got, err := o.ConvertToNative(reflect.TypeFor[map[string]any]()); err != nil || !reflect.DeepEqual(got, o.tree) || !reflect.DeepEqual(o.Value(), o.tree) {
		t.Error(got, err)
	}
	if _, err := o.ConvertToNative(reflect.TypeFor[string]()); err == nil || err.Error() != "a made.Thing cannot be converted to string" {
		t.Error(err)
	}
	if got := o.ConvertToType(types.StringType).(*types.Err).Error(); got != "a made.Thing cannot be converted to string" {
		t.Error(got)
	}
	if got := o.ConvertToType(types.TypeType).(ref.Type).TypeName(); got != "made.Thing" || o.Type().TypeName() != "made.Thing" {
		t.Error(got)
	}
}

// What conditions and texts are not.
func TestTruthAndText(t *testing.T) {
	for source, want := range map[string]string{"true": "", "1": "1: the result is a int and not a bool", "no": "no: no such attribute(s): no"} {
		got, err := (&expr{source: source}).truth(&scope{})
		if got != (want == "") || (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v, %v", source, got, err)
		}
	}
	if got, err := (*expr)(nil).truth(nil); !got || err != nil {
		t.Error("no condition is true")
	}
	for source, want := range map[string]string{"'a'": "", "1": "1: the result is a int and not a string", "no": "no: no such attribute(s): no"} {
		got, err := (&expr{source: source}).text(&scope{})
		if (got == "a") != (want == "") || (err == nil) != (want == "") || err != nil && (err.Error() != want || got != "") {
			t.Errorf("%s: %q, %v", source, got, err)
		}
	}
}

// Rules make errors of every reason, at the places that they name.
func TestRules(t *testing.T) {
	const value = "{s: a, l: [x, y], os: [{x: u, low: [{x: '1'}]}, {x: v, low: [{x: '2'}, {x: '3'}]}], m: {k: v}, o: {x: y}}"
	for rule, want := range map[string]string{
		"{rule: 'true', message: m}": "", "{rule: 'false', message: m, path: s}": `s: Invalid value: "a": m`, "{rule: 'false', messageExpression: self.s + '!', path: s}": `s: Invalid value: "a": a!`, "{messages: \"['m', 'n']\", path: s}": "s: Invalid value: \"a\": m\ns: Invalid value: \"a\": n",
		"{messages: '[]'}": "", "{rule: 'false', path: s, reason: required, message: m}": "s: Required value: m", "{rule: 'false', path: s, reason: forbidden, message: m}": "s: Forbidden: m", "{rule: 'false', path: s, reason: duplicate}": `s: Duplicate value: "a"`,
		"{rule: 'false', path: s, reason: notFound}": `s: Not found: "a"`, "{rule: 'false', path: s, reason: tooLong, limit: 3}": "s: Too long: may not be more than 3 bytes", "{rule: 'false', path: l, reason: tooMany, limit: 1}": "l: Too many: 2: must have at most 1 item", "{rule: 'false', path: m, reason: tooMany, limit: 0}": "m: Too many: 1: must have at most 0 items",
		"{rule: 'false', path: s, reason: tooMany, limit: 0}": "s: Too many: 1: must have at most 0 items", "{rule: 'false', path: b, reason: tooMany, limit: 2}": "b: Too many: 0: must have at most 2 items", "{rule: 'false', path: s, reason: typeInvalid, message: m}": `s: Invalid value: "a": m`, "{rule: 'false', path: s, reason: internal, message: m%d}": "s: Internal error: m%d",
		"{rule: 'false', path: s, reason: notSupported, supported: [b, c]}": `s: Unsupported value: "a": supported values: "b", "c"`, "{rule: 'false', path: s, reason: notSupported, supported: \"['b', string(1)]\"}": `s: Unsupported value: "a": supported values: "b", "1"`,
		"{rule: 'false', path: s, reason: notSupported, supported: self.no}": "<nil>: Internal error: evaluating a rule failed: self.no: made.Thing has no field no", "{rule: 'false', path: s, message: m, value: 1 + 1}": "s: Invalid value: 2: m", "{rule: 'false', path: s, message: m, value: self.no}": "<nil>: Internal error: evaluating a rule failed: self.no: made.Thing has no field no",
		"{rule: 'false', pathExpression: \"'l[' + string(1) + ']'\", message: m}": `l[1]: Invalid value: "y": m`, "{rule: 'false', path: 'l[0]', message: m}": `l[0]: Invalid value: "x": m`, "{rule: 'false', path: 'l[2]', message: m}": "l[2]: Invalid value: null: m", "{rule: 'false', path: 'm[k]', message: m}": `m[k]: Invalid value: "v": m`,
		"{rule: 'false', path: 'm[j]', message: m}": "m[j]: Invalid value: null: m", "{rule: 'false', path: 's.x', message: m}": "s.x: Invalid value: null: m", "{rule: 'false', path: 's[0]', message: m}": "s[0]: Invalid value: null: m", "{rule: 'false', path: no, message: m}": "no: Invalid value: null: m", "{rule: 'false', path: 'os[1].x', message: m}": `os[1].x: Invalid value: "v": m`,
		"{rule: 'false', path: 'm[0]', message: m}": "m[0]: Invalid value: null: m", "{rule: 'false', path: 'o.[x].y', message: m}": "o.[x].y: Invalid value: null: m", "{rule: 'false', pathExpression: '1', message: m}": "<nil>: Internal error: evaluating a rule failed: 1: the result is a int and not a string", "{rule: 'false', messageExpression: '1'}": "<nil>: Internal error: evaluating a rule failed: 1: the result is a int and not a string",
		"{rule: '1'}": "<nil>: Internal error: evaluating a rule failed: 1: the result is a int and not a bool", "{messages: self.no}": "<nil>: Internal error: evaluating a rule failed: self.no: made.Thing has no field no", "{rule: 'false', message: m, path: s, if: 'false'}": "", "{rule: 'false', if: '1'}": "<nil>: Internal error: evaluating a rule failed: 1: the result is a int and not a bool",
		"{each: self.l, rule: item != 'y', message: m}": `l[1]: Invalid value: "y": m`, "{each: self.os, rule: \"item.x == 'u' && index == 0 && path == 'os[0]'\", path: x, message: m}": `os[1].x: Invalid value: "v": m`, "{each: self.l, flat: true, rule: item != 'y', path: s, message: m}": "s: Invalid value: null: m",
		"{each: 'self.l.filter(i, true)', rule: item != 'y', path: l, message: m}": "l: Invalid value: null: m", "{each: 'self.l.filter(i, true)', at: l, rule: item != 'y', message: m}": `l[1]: Invalid value: "y": m`, "{each: self.s, rule: 'false'}": "<nil>: Internal error: evaluating a rule failed: self.s: the result is a string and not a list", "{each: self.no, rule: 'false'}": "<nil>: Internal error: evaluating a rule failed: self.no: made.Thing has no field no",
		"{each: self.os, inner: item.low, rule: \"item.x == '1' || outer.x != 'v' || index == 0\", path: x, message: m}": `os[1].low[1].x: Invalid value: "3": m`, "{each: self.l, rule: item.no}": "<nil>: Internal error: evaluating a rule failed: item.no: no such key: no",
		"{let: {a: self.s + 'b', c: a + 'd'}, rule: \"c != 'abd'\", message: m, path: s}": `s: Invalid value: "a": m`, "{let: {a: self.no}, rule: a}": "<nil>: Internal error: evaluating a rule failed: a: self.no: made.Thing has no field no", "{let: {a: self.no}, rule: 'true'}": "",
		"{rule: 'false', message: m, when: update}": "", "{rule: 'false', message: m, path: s, when: create}": `s: Invalid value: "a": m`,
	} {
		k := madeKind(t, "{made.Thing: {s: string, b: bool, l: '[]string', os: '[]made.Inner', m: 'map[string]string', o: made.Inner}, made.Inner: {x: string, low: '[]made.Leaf'}, made.Leaf: {x: string}}", "types: {made.Thing: {rules: ["+rule+"]}}")
		if got := errorsOf(k, treeOf(t, value), nil, ""); got != want {
			t.Errorf("%s:\n%s", rule, got)
		}
	}
}

// A rule that stops keeps those after it from running, and rules can ask what failed.
func TestRulesAfterOthers(t *testing.T) {
	for rules, want := range map[string]string{
		"{rule: 'false', message: m, path: s, stop: true}, {rule: 'false', message: n, path: s}":                             `s: Invalid value: "a": m`,
		"{rule: 'true', message: m, path: s, stop: true}, {rule: 'false', message: n, path: s}":                              `s: Invalid value: "a": n`,
		"{rule: 'false', message: m, path: s}, {rule: \"!('s' in failed)\", message: n, path: s}":                            "s: Invalid value: \"a\": m\ns: Invalid value: \"a\": n",
		"{rule: \"!('s' in failed)\", message: n, path: s}, {rule: 'false', message: m, path: s}":                            `s: Invalid value: "a": m`,
		"{rule: 'false', message: m, path: 'l[1].x'}, {rule: \"!('l[1]' in failed) || 'l' in failed\", message: n, path: s}": "l[1].x: Invalid value: null: m\ns: Invalid value: \"a\": n",
	} {
		k := madeKind(t, "{made.Thing: {s: string, l: '[]string', o: made.Inner}, made.Inner: {s: string, l: '[]string'}}", "types: {made.Thing: {rules: ["+rules+"]}, made.Inner: {rules: ["+rules+"]}}")
		below := strings.ReplaceAll(strings.ReplaceAll("\n"+want, "\ns:", "\no.s:"), "\nl[", "\no.l[")
		if got := errorsOf(k, treeOf(t, "{s: a, l: [x, y], o: {s: a, l: [x, y]}}"), nil, ""); got != strings.TrimPrefix(below, "\n")+"\n"+want {
			t.Errorf("%s:\n%s", rules, got)
		}
	}
}

// What the files cannot say.
func TestWrongFiles(t *testing.T) {
	for source, want := range map[string]string{
		"types: []": "line 1: a mapping is needed", "types: {a: {}, a: {}}": "line 1: a is there twice", "types: {a: {fields: {f: {pattern: '('}}}}": "error parsing regexp: missing closing ): `(`", "types: {a: {fields: {f: {immutable: never}}}}": "line 1: immutable is true or once",
		"types: {a: {fields: {f: {clearIf: [a]}}}}": "line 1: an expression is needed", "types: {a: {rules: [{let: []}]}}": "line 1: a mapping is needed", "types: {a: {rules: [{supported: [{}]}]}}": "yaml: unmarshal errors:\n  line 1: cannot unmarshal !!map into string",
		"types: {a: {fields: {f: {distinct: [{}]}}}}": "yaml: unmarshal errors:\n  line 1: cannot unmarshal !!map into string", "types: {a: {fields: {f: {required: {}}}}}": "yaml: unmarshal errors:\n  line 1: cannot unmarshal !!map into string",
	} {
		if err := yaml.Unmarshal([]byte(source), &file{}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", source, err)
		}
	}
	var f file
	if err := yaml.Unmarshal([]byte("types: {a: {fields: {f: {required: false, distinct: false, immutable: true}, g: {required: true, distinct: [a, b]}, h: {distinct: a, immutable: once}}, union: {fields: [a]}, unions: [{fields: [b]}]}}"), &f); err != nil {
		t.Fatal(err)
	}
	fields, unions := f.Types.get("a").Fields, f.Types.get("a").unions()
	if d := fields.get("f"); d.Required.set || d.Distinct.set || !d.Immutable.set || d.Immutable.once {
		t.Errorf("%+v", d)
	}
	if d := fields.get("g"); !d.Required.set || d.Required.text != "" || len(d.Distinct.keys) != 2 || d.Immutable.set {
		t.Errorf("%+v", d)
	}
	if d := fields.get("h"); !d.Distinct.set || len(d.Distinct.keys) != 1 || !d.Immutable.once || fields.get("i") != nil {
		t.Errorf("%+v", d)
	}
	if len(unions) != 2 || unions[0].Fields[0] != "a" || unions[1].Fields[0] != "b" {
		t.Errorf("%v", unions)
	}
	for line, want := range map[string]string{"  a/v1.B:\n": "a/v1.B", "    a:\n": "", "  # a:\n": "", "a:\n": "", "  a: {b: c}\n": "a"} {
		if got := typeOf([]byte(line)); got != want {
			t.Errorf("%q begins %q", line, got)
		}
	}
	for want, wrong := range map[string]func(){
		"kinds: made.Thing has no field g":                                           func() { madeKind(t, "{made.Thing: {f: string}}", "types: {made.Thing: {fields: {g: {}}}}") },
		"kinds: types.json has the unknown type no.Such":                             func() { madeKind(t, "{made.Thing: {f: no.Such}}", "{}") },
		"kinds: reading data/no.yaml failed: open data/no.yaml: file does not exist": func() { read("data/no.yaml") },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("%v, want %s", got, want)
				}
			}()
			wrong()
		}()
	}
}

// Values that Go reads as zero are not set, unless the field is a pointer.
func TestIsSet(t *testing.T) {
	inner := &objectType{fields: map[string]*fieldType{"a": {form: stringForm}, "p": {form: stringForm, pointer: true}}}
	for _, c := range []struct {
		form  form
		value string
		want  bool
	}{
		{stringForm, "v: ''", false}, {stringForm, "v: a", true}, {integerForm, "v: 0", false}, {integerForm, "v: 1", true}, {floatForm, "v: 0.0", false}, {floatForm, "v: 0.5", true}, {boolForm, "v: false", false}, {boolForm, "v: true", true},
		{listForm, "v: []", false}, {listForm, "v: ['']", true}, {mapForm, "v: {}", false}, {mapForm, "v: {a: ''}", true}, {objectForm, "v: {}", false}, {objectForm, "v: {a: ''}", false}, {objectForm, "v: {a: b}", true}, {objectForm, "v: {p: ''}", true}, {objectForm, "v: {x: y}", false},
	} {
		value := treeOf(t, c.value)["v"]
		if got := (&fieldType{form: c.form, object: inner}).isSet(value); got != c.want {
			t.Errorf("%v %s: %v", c.form, c.value, got)
		}
		if !(&fieldType{form: c.form, object: inner, pointer: true}).isSet(value) {
			t.Errorf("%v %s: a pointer is not set", c.form, c.value)
		}
		if (&fieldType{form: c.form, object: inner, pointer: true}).isSet(nil) {
			t.Errorf("%v: nothing is set", c.form)
		}
	}
	if !(&fieldType{}).isSet(struct{}{}) {
		t.Error("another value is not set")
	}
}

// Values of a type are equal if Go reads the same.
func TestEqualValues(t *testing.T) {
	for _, c := range []struct {
		field, a, b string
		want        bool
	}{
		{"string", "f: a", "f: a", true}, {"string", "f: a", "f: b", false}, {"string", "f: ''", "{}", true}, {"string", "f: a", "{}", false}, {"*string", "f: ''", "{}", false}, {"int32", "f: 1", "f: 1", true}, {"int32", "f: 1", "f: 2", false},
		{"[]string", "f: [a]", "f: [a]", true}, {"[]string", "f: [a]", "f: [b]", false}, {"[]string", "f: [a]", "f: [a, b]", false}, {"[]string", "f: [a, b]", "f: [a]", false}, {"[]string", "f: []", "{}", true},
		{"map[string]string", "f: {a: b}", "f: {a: b}", true}, {"map[string]string", "f: {a: b}", "f: {a: c}", false}, {"map[string]string", "f: {a: b}", "f: {c: b}", false}, {"map[string]string", "f: {a: ''}", "f: {c: ''}", false}, {"map[string]string", "f: {a: b}", "f: {a: b, c: d}", false},
		{"quantity", "f: '1'", "f: 1000m", true}, {"quantity", "f: '1'", "f: 1", true}, {"quantity", "f: 1.5", "f: 1500m", true}, {"quantity", "f: '1'", "f: '2'", false}, {"quantity", "f: x", "f: x", true}, {"quantity", "f: x", "f: y", false},
		{"made.Inner", "f: {a: x}", "f: {a: x}", true}, {"made.Inner", "f: {a: x}", "f: {a: y}", false}, {"*made.Inner", "f: {}", "{}", false}, {"made.Inner", "f: {}", "{}", true}, {"made.Inner", "f: {a: x}", "f: {a: x, b: []}", true}, {"made.Inner", "f: {a: x}", "f: {a: x, other: y}", true}, {"any", "f: {a: []}", "f: {a: []}", true}, {"any", "f: {a: x}", "f: {a: y}", false},
	} {
		k := madeKind(t, "{made.Thing: {f: '"+c.field+"'}, made.Inner: {a: string, b: '[]string'}}", "{}")
		a, b := treeOf(t, c.a), treeOf(t, c.b)
		if got := equalObjects(k.object(), a, b); got != c.want || equalObjects(k.object(), b, a) != c.want {
			t.Errorf("%s, %s and %s: %v", c.field, c.a, c.b, got)
		}
	}
}
