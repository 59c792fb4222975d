package cel

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// errorsOf evaluates rules and returns what is wrong with each of them: "" if it holds, "no" if not.
func errorsOf(t *testing.T, properties string, rules []string, object, old string) []string {
	t.Helper()
	var list []string
	for i, rule := range rules {
		list = append(list, fmt.Sprintf(`{"rule":%q,"message":"no %d"}`, rule, i))
	}
	// One that does not compile would not say which it is.
	for _, f := range checked(t, specWith(properties, strings.Join(list, ",")), CheckOptions{}) {
		if f.Check == RuleExpression {
			t.Fatal(f)
		}
	}
	problems := make([]string, len(rules))
	for _, e := range validate(t, specWith(properties, strings.Join(list, ",")), object, old).Errors {
		at := strings.LastIndexByte(e.Detail, ' ')
		i, err := strconv.Atoi(e.Detail[at+1:])
		if err != nil {
			t.Fatal(e)
		}
		problems[i] = strings.TrimSuffix(strings.TrimSuffix(e.Detail[:at], " for rule: no"), " evaluating rule: no")
	}
	return problems
}

// Old objects need not fit the schema. What does not is an error of the rule that looks at it.
func TestOldValuesThatDoNotFit(t *testing.T) {
	for _, c := range []struct{ schema, now, old, want string }{
		{`"type":"string"`, `"a"`, `"a"`, ""},
		{`"type":"string"`, `"a"`, `"b"`, "no"},
		{`"type":"string"`, `"a"`, `1`, "invalid data, expected string, got int64"},
		{`"type":"string"`, `"a"`, `1.5`, "invalid data, expected string, got float64"},
		{`"type":"string"`, `"a"`, `true`, "invalid data, expected string, got bool"},
		{`"type":"string"`, `"a"`, `[]`, "invalid data, expected string, got []interface {}"},
		{`"type":"string"`, `"a"`, `{}`, "invalid data, expected string, got map[string]interface {}"},
		{`"type":"integer"`, `1`, `1.5`, "invalid data, expected int, got float64"},
		{`"type":"integer"`, `1`, `"1"`, "invalid data, expected int, got string"},
		{`"type":"number"`, `1`, `1`, ""},
		{`"type":"number"`, `1.5`, `1.5`, ""},
		{`"type":"number"`, `1`, `"1"`, "invalid data, expected float, got string"},
		{`"type":"boolean"`, `true`, `"true"`, "invalid data, expected bool, got string"},
		{`"type":"boolean"`, `true`, `false`, "no"},
		{`"type":"object","properties":{"a":{"type":"string"}}`, `{}`, `[]`, "invalid data, expected a map for the provided schema with type=object"},
		{`"type":"array","items":{"type":"string"}`, `[]`, `{}`, "invalid data, expected an array for the provided schema with type=array"},
		{`"x-kubernetes-int-or-string":true`, `1`, `true`, "invalid data, expected XIntOrString value to be either a string or integer"},
		{`"x-kubernetes-int-or-string":true`, `1`, `1.5`, "invalid data, expected XIntOrString value to be either a string or integer"},
		{`"x-kubernetes-int-or-string":true`, `1`, `1`, ""},
		{`"x-kubernetes-int-or-string":true`, `"1"`, `1`, "no"},
		{`"type":"string","format":"date"`, `"2020-01-02"`, `"2020"`, "Invalid date formatted string 2020: parsing time \"2020\" as \"2006-01-02\": cannot parse \"\" as \"-\""},
		{`"type":"string","format":"date-time"`, `"2020-01-02T03:04:05Z"`, `"2020"`, "Invalid date-time formatted string 2020: parsing time \"2020\" as \"2006-01-02T15:04:05\": cannot parse \"\" as \"-\""},
		{`"type":"string","format":"duration"`, `"1s"`, `"2020"`, "Invalid duration 2020: unable to parse 2020 as duration"},
		{`"type":"string","format":"byte"`, `"aaaa"`, `"?"`, "Invalid byte formatted string ?: illegal base64 data at input byte 0"},
		{`"type":"array","items":{"type":"string"}`, `["a"]`, `[1]`, "no"},
		{`"type":"array","items":{"type":"string"}`, `["a"]`, `[null]`, "no"},
		{`"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}`, `["a"]`, `[1]`, "no"},
		{`"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}`, `[{"k":"a"}]`, `["a"]`, "no"},
	} {
		if got := errorsOf(t, `"v":{`+c.schema+`}`, []string{"self.v == oldSelf.v"}, `{"spec":{"v":`+c.now+`}}`, `{"spec":{"v":`+c.old+`}}`)[0]; got != c.want {
			t.Errorf("%s, %s after %s: %q", c.schema, c.now, c.old, got)
		}
	}
}

// What is null though it must not be is an error of the rule that looks at it.
func TestOldValuesThatAreNull(t *testing.T) {
	for _, c := range []struct{ items, want string }{
		{`"type":"string"`, "invalid data, got null for schema with nullable=false"}, {`"type":"string","nullable":true`, "no"},
	} {
		got := errorsOf(t, `"v":{"type":"array","items":{`+c.items+`}}`, []string{"dyn(oldSelf.v[0]) == 'a'"}, `{"spec":{"v":["a"]}}`, `{"spec":{"v":[null]}}`)
		if got[0] != c.want {
			t.Errorf("%s: %q", c.items, got)
		}
	}
}

// Equality of values of documents with each other, with literals and with what is something else.
func TestEquality(t *testing.T) {
	const keyed = `{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":[%s],"items":{"type":"object","required":[%[1]s],"properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string"},"v":{"type":"integer"}}}}`
	properties := everything
	for i, keys := range []string{`"a"`, `"a","b"`, `"a","b","c"`, `"a","b","c","d"`} {
		properties += fmt.Sprintf(`,"k%d":%s`, i+1, fmt.Sprintf(keyed, keys))
	}
	properties += `,"ll":{"type":"array","items":{"type":"array","items":{"type":"integer"}}},"ls":{"type":"array","items":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}},"lo":{"type":"array","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"z":{"type":"integer"}}}}`
	const item = `{"a":"1","b":"2","c":"3","d":"4","v":5}`
	object := strings.Replace(anObject, `"s":`, `"k1":[`+item+`,{"a":"2"}],"k2":[`+item+`,{"a":"1","b":"3"}],"k3":[`+item+`,{"a":"1","b":"2","c":"4"}],"k4":[`+item+`,{"a":"1","b":"2","c":"3","d":"5"}],"ll":[[1,2],[]],"ls":[["a"],["b","a"]],"lo":[{"z":1,"y":[1,"a",null,true,{"b":1.5}]},{"z":1,"y":[1,"a",null,true,{"b":1.5}]},{"z":1,"y":[1,"a",null,true,{"b":2.5}]},{"z":1},{"z":1,"x":1},{"z":1,"x":1.0},{"z":1,"x":[1]},{"z":1,"x":[1,2]},{"z":1,"x":{"a":1}},{"z":1,"x":{"b":1}},{"z":1,"x":{"a":1,"b":1}},{"z":1,"x":"a"},{"z":1,"x":"b"},{"z":1,"w":1},{"z":2,"w":1},{"w":1,"v":1}],"s":`, 1)
	hold := []string{
		// Lists
		`self.l != [3, 1] && self.l != [3, 1, 4] && [3, 1] != self.l && dyn(self.l) != 1 && dyn(self.l) != 'a' && dyn(self.l) != dyn(self.m) && dyn(self.l) != [1.5, 2.0, 3.0]`,
		`self.l + self.l != self.l && (self.l + [4])[3] == 4 && self.l + [] == self.l2`,
		`[1, 2] in self.ll && [] in self.ll && !([1] in self.ll) && [[1, 2]].all(x, x in self.ll)`,
		`self.ll[0] in [[1, 2]] && self.ls[1] == ['a', 'b'] && ['a', 'b'] in self.ls && !(['c'] in self.ls)`,
		// Sets
		`self.set + ['c', 'c'] == ['a', 'b', 'c'] && (self.set + ['c', 'c']).size() == 3 && (self.set + ['c'] + ['d', 'd', 'a']).size() == 4`,
		`self.set != ['a', 'c'] && self.set != ['a', 'a'] && self.set + ['c'] != ['a', 'b', 'd'] && self.set + ['c'] != ['a', 'b', 'b'] && self.set + ['c'] != ['a', 'b']`,
		`dyn(self.set) != 1 && dyn(self.set + ['c']) != 1 && ['b', 'a'] == self.set && ['a', 'b'] != self.set && (self.set + ['c'])[2] == 'c'`,
		`self.set + self.set2 == self.set2 && self.set2 + self.set == self.set`,
		// Lists with keys
		`self.k1 == [self.k1[1], self.k1[0]] && self.k2 == [self.k2[1], self.k2[0]] && self.k3 == [self.k3[1], self.k3[0]] && self.k4 == [self.k4[1], self.k4[0]]`,
		`self.k1 != [self.k1[1], self.k1[1]] && self.k2 != [self.k2[0], self.k2[0]] && self.k3 != [self.k3[0]] && dyn(self.k4) != 1 && dyn(self.k4) != dyn(self.s)`,
		`(self.k1 + self.k1).size() == 2 && (self.k2 + self.k2).size() == 2 && (self.k3 + self.k3).size() == 2 && (self.k4 + self.k4).size() == 2`,
		`dyn(self.k1) + dyn(self.k2) == [dyn(self.k2[1]), dyn(self.k1[1])] && (dyn(self.k2) + dyn(self.k1)).size() == 3 && (dyn(self.k3) + dyn(self.k2)).size() == 3 && (dyn(self.k4) + dyn(self.k3)).size() == 3`,
		`self.k1 + [] == self.k1 && self.k1 + [] + self.k1 == [self.k1[1], self.k1[0]] && self.k1 + [] != [self.k1[0], self.k1[0]] && self.k1 + [] != [self.k1[0]] && dyn(self.k1 + []) != 1`,
		`dyn(self.k1) != [1, 2] && dyn(self.k1) + [] != [1, 2] && (dyn(self.k1) + [1]).size() == 3 && (dyn(self.k1) + [dyn({'a': '1'})])[0] == {'a': '1'} && (dyn(self.k1) + [{'a': '3'}, {'a': '3'}]).size() == 4`,
		`dyn(self.ml) != dyn(self.k1) && self.ml + [self.ml[0]] == self.ml`,
		// Objects and maps
		`self.m == {'x': 1, 'y-z': 2} && self.m != {'x': 1} && self.m != {'x': 1, 'z': 2} && self.m != {'x': 1, 'y-z': 3} && {'y-z': 2, 'x': 1} == self.m && dyn(self.m) != 1 && dyn(self.emb) != dyn(self.m)`,
		`self.lo[0] == self.lo[1]`, `self.lo[0] != self.lo[2]`, `self.lo[0] != self.lo[3]`, `self.lo[6] != self.lo[7]`, `self.lo[6] != self.lo[4]`, `self.lo[7] == self.lo[7]`,
		`self.lo[8] != self.lo[9] && self.lo[8] != self.lo[10] && self.lo[8] == self.lo[8] && self.lo[11] != self.lo[12] && self.lo[11] == self.lo[11] && self.lo[13] != self.lo[14] && self.lo[4] == self.lo[13] && self.lo[13] != self.lo[15]`,
		`dyn(self.lo[3]) == {'z': 1} && dyn(self.lo[3]) != {'z': 2} && dyn(self.lo[3]) != {'y': 1} && self.lo[3] in self.lo`,
		`self.os == [self.os[0], self.os[1]] && self.os[0] != self.os[1] && self.os[0] == self.os[0]`,
		`dyn(self.empty) == {} && dyn({}) == self.empty && dyn(self.empty) != {'a': 1}`,
		// Conversions and types
		`type(self.set) == list && type(self.ml) == list && type(self.m) == map && type(self.set + ['c']) == list && type(self.l[0]) == int && dyn(self.l) == dyn(self.l) && dyn(self.m) == dyn(self.m)`,
		`self.l.exists(i, x, i == 2 && x == 2) && !self.l.exists(i, x, i == 2 && x == 3) && self.l.existsOne(i, x, x == 3)`,
		`self.?l[?5].hasValue() == false && self.?l[?0].value() == 3 && self.?no.or(self.?s).value() == 'häß' && self.?s.or(self.?t).value() == 'häß' && self.?s.orValue('x') == 'häß'`,
	}
	for i, got := range errorsOf(t, properties, hold, object, "") {
		if got != "" {
			t.Errorf("%s: %s", hold[i], got)
		}
	}
	const overload = "'no such overload': call arguments did not match a supported operator, function or macro signature"
	fail := [][2]string{
		{`dyn(1) in self.ll`, overload},
		{`dyn(1) in self.ls`, overload},
		{`dyn(1) in dyn([self.set + ['c']])`, "no"},
		{`dyn(1) in dyn(self.lo)`, overload},
		{`dyn(self.lo[0]) == {'z': 1, 'y': 1}`, overload}, // a member that rules cannot see
		{`dyn(self.emb)['a__b'] == 1`, "no such key: a__b"},
		{`self.l[-1] == 1`, "index out of bounds: -1"},
		{`self.l[3] == 1`, "index out of bounds: 3"},
		{`dyn(self.l)['a'] == 1`, "unsupported index type 'string' in list"},
		{`self.m['q'] == 1`, "no such key: q"},
		{`dyn(self.m)[1] == 1`, overload},
		{`1 in dyn(self.m)`, overload},
		{`dyn(self.l) + dyn(1) == 1`, overload},
		{`dyn(self.set) + dyn(1) == 1`, overload},
		{`dyn(self.ml) + dyn(1) == 1`, overload},
		{`dyn(self.set + ['c']) + dyn(1) == 1`, overload},
		{`dyn(self.ml + []) + dyn(1) == 1`, overload},
		{`dyn(self.set) + [[1]] == []`, "listSet operations are only supported on lists of scalar values"},
		{`dyn(self.set) == [['a'], ['b']]`, "listSet operations are only supported on lists of scalar values"},
		{`dyn(self.set) + [dyn({'a': 1})] == []`, "listSet operations are only supported on lists of scalar values"},
		{`string(dyn(self.l)) == ''`, "'no such overload: string(list)': call arguments did not match a supported operator, function or macro signature"},
		{`string(dyn(self.m)) == ''`, "'no such overload: string(map)': call arguments did not match a supported operator, function or macro signature"},
		{`int(dyn(self.set)) == 1`, "'no such overload: int(list)': call arguments did not match a supported operator, function or macro signature"},
		{`dyn(self.l).join(',') == ''`, "'no such overload: join(list, string)': call arguments did not match a supported operator, function or macro signature"},
		{`dyn(self.ln).join(',') == ''`, "join: invalid input: 0"},
		{`self.?nil.or(optional.of(self.s)).value() == 'a'`, "no"},
		{`optional.of(self.l[7]).orValue(1) == 1`, "index out of bounds: 7"},
		{`quantity(self.ln[7]).isInteger()`, "index out of bounds: 7"},
		{`isQuantity(self.ln[7])`, "index out of bounds: 7"},
		{`self.i / 0 == 1`, "division by zero"},
	}
	var rules []string
	for _, c := range fail {
		rules = append(rules, c[0])
	}
	for i, got := range errorsOf(t, properties, rules, object, "") {
		if got != fail[i][1] {
			t.Errorf("%s: %q", rules[i], got)
		}
	}
}
