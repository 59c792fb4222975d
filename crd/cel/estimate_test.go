package cel

import (
	"fmt"
	"strings"
	"testing"
)

// costsOf returns the costs of the rules of a schema.
func costsOf(t *testing.T, schema string) []Cost {
	t.Helper()
	costs, err := Costs([]byte(schema), CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return costs
}

// A list without a bound has as many items as there is room for in a request, each of them
// as small as the schema allows, and a comma.
func TestSmallestValues(t *testing.T) {
	const resource = `"x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true`
	for _, c := range []struct {
		items string
		size  uint64
	}{
		{`"type":"integer"`, 1}, {`"type":"number"`, 1}, {`"type":"boolean"`, 4}, {`"type":"string"`, 2}, {`"type":"string","minLength":5`, 2}, {`"x-kubernetes-int-or-string":true`, 1},
		{`"type":"string","format":"byte"`, 2}, {`"type":"string","format":"duration"`, 3}, {`"type":"string","format":"date"`, 12}, {`"type":"string","format":"date-time"`, 21},
		{`"type":"array","items":{"type":"boolean"}`, 2}, {`"type":"object","additionalProperties":{"type":"boolean"}`, 2}, {`"type":"object"`, 2},
		// Fields that are required count, with quotes, a colon and a comma.
		{`"type":"object","properties":{"abc":{"type":"boolean"}}`, 2},
		{`"type":"object","required":["abc"],"properties":{"abc":{"type":"boolean"}}`, 2 + 3 + 4 + 4},
		{`"type":"object","required":["abc","d"],"properties":{"abc":{"type":"boolean"},"d":{"type":"string"}}`, 2 + 3 + 4 + 4 + 1 + 2 + 4},
		{`"type":"object","required":["abc","abc"],"properties":{"abc":{"type":"boolean"}}`, 2 + 3 + 4 + 4},
		{`"type":"object","required":["abc","d"],"properties":{"abc":{"type":"boolean"}}`, 2 + 3 + 4 + 4},
		{`"type":"object","required":["abc"],"properties":{"abc":{"type":"boolean","default":true}}`, 2},
		{`"type":"object","required":["abc"],"properties":{"abc":{"x-kubernetes-preserve-unknown-fields":true}}`, 2},
		{`"type":"object","required":["a"],"properties":{"a":{"type":"object","required":["b"],"properties":{"b":{"type":"integer"}}}}`, 2 + 1 + 4 + 2 + 1 + 1 + 4},
		{`"type":"object","required":["kind"],` + resource, 2 + 4 + 2 + 4},
		{`"type":"object","required":["a"],"properties":{"a":{"type":"object","required":["kind"],` + resource + `}}`, 2 + 1 + 4 + 2 + 4 + 2 + 4},
	} {
		costs := costsOf(t, specWith(`"l":{"type":"array","items":{`+c.items+`,"x-kubernetes-validations":[{"rule":"true"}]}}`, `{"rule":"true"}`))
		if want := 3 << 20 / (c.size + 1); len(costs) != 2 || costs[0].Times != want {
			t.Errorf("%s: %d, not %d", c.items, costs[0].Times, want)
		}
	}
}

// What a value costs depends on how large the schema allows it to be: here 3 for each
// element and the loop, or a tenth of the bytes.
func TestLargestValues(t *testing.T) {
	for _, c := range []struct {
		schema, rule string
		cost         uint64
	}{
		{`"type":"array","items":{"type":"boolean"}`, `self.v.all(x, true)`, 1887438},
		{`"type":"array","items":{"type":"boolean"},"maxItems":7`, `self.v.all(x, true)`, 24},
		{`"type":"array","items":{"type":"boolean"},"maxItems":-7`, `self.v.all(x, true)`, 3},
		{`"type":"object","additionalProperties":{"type":"boolean"}`, `self.v.all(x, true)`, 943719},
		{`"type":"object","additionalProperties":{"type":"boolean"},"maxProperties":7`, `self.v.all(x, true)`, 24},
		{`"type":"object","additionalProperties":{"type":"boolean"},"maxProperties":7`, `self.v.all(x, x.contains('a'))`, 31},
		{`"type":"object","additionalProperties":{"type":"boolean"},"maxProperties":-7`, `self.v.all(x, true)`, 3},
		{`"type":"object","properties":{"a":{"type":"string"}}`, `self.v == self.v`, 4},
		// Lists and maps of resources: kind is required, 12 bytes and a comma, or a key of a map.
		{`"type":"array","items":{"type":"object","required":["kind"],"x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`, `self.v.all(x, true)`, 3*((3<<20-2)/(12+1)) + 3},
		{`"type":"object","additionalProperties":{"type":"object","required":["kind"],"x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`, `self.v.all(x, true)`, 3*((3<<20-2)/(12+6)) + 3},
		{`"type":"array","maxItems":5,"items":{"type":"array","maxItems":3,"items":{"type":"string","maxLength":5}}`, `self.v.all(x, x.all(y, y.contains('a')))`, 118},
		{`"type":"object","maxProperties":5,"additionalProperties":{"type":"array","maxItems":3,"items":{"type":"string","maxLength":5}}`, `self.v.all(k, self.v[k].all(y, y.contains('a')))`, 133},
		{`"type":"object","maxProperties":5,"additionalProperties":{"type":"array","maxItems":3,"items":{"type":"string","maxLength":5}}`, `self.v.all(k, x, x.all(y, y.contains(k)))`, 103},
		{`"type":"object","properties":{"a-b":{"type":"string","maxLength":5},"namespace":{"type":"string","maxLength":10}}`, `self.v.a__dash__b.contains('a') && self.v.__namespace__.contains('a')`, 12},
		{`"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":5}}}}`, `self.v.metadata.name.contains('a')`, 6},
		{`"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","properties":{"name":{"type":"string"}}}}`, `self.v.metadata.name.contains('a')`, 106},
		{`"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object"}}`, `self.v.metadata.name.contains('a')`, 106},
		{`"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object"}}`, `self.v.metadata.generateName.contains('a')`, 105},
		{`"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":500}}}}`, `self.v.metadata.name.contains('a')`, 106},
		{`"type":"string"`, `self.v.contains('a')`, 314575},
		{`"type":"string","maxLength":5`, `self.v.contains('a')`, 4},
		{`"type":"string","maxLength":-5`, `self.v.contains('a')`, 2},
		{`"type":"string","format":"byte","maxLength":20`, `string(self.v).contains('a')`, 6},
		{`"type":"string","format":"byte","maxLength":20`, `self.v == self.v`, 6},
		{`"type":"string","format":"duration"`, `self.v == self.v`, 8},
		{`"type":"string","format":"date"`, `self.v == self.v`, 6},
		{`"type":"string","format":"date-time"`, `self.v == self.v`, 8},
		{`"type":"string","enum":["a","bbbbbbbbbb","ccc"]`, `self.v.contains('a')`, 3},
		{`"type":"string","enum":["a","bbbbbbbbb\u00e4","ccc"]`, `self.v.contains('a')`, 4},
		{`"type":"string","enum":["a","bbbbbbbbbb","ccc"],"maxLength":5`, `self.v.contains('a')`, 4},
		{`"type":"string","nullable":true,"enum":[null]`, `self.v.contains('a')`, 2},
		{`"x-kubernetes-int-or-string":true`, `string(self.v).contains('a')`, 629148},
		{`"x-kubernetes-int-or-string":true,"maxLength":5`, `self.v == 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'`, 4},
		{`"type":"integer"`, `self.v == self.v`, 4},
		{`"type":"boolean"`, `self.v == self.v`, 4},
	} {
		costs := costsOf(t, specWith(`"v":{`+c.schema+`}`, fmt.Sprintf(`{"rule":%q}`, c.rule)))
		if len(costs) != 1 || costs[0].Cost != c.cost {
			t.Errorf("%s: %s: %+v, not %d", c.schema, c.rule, costs, c.cost)
		}
	}
}

// The bounds that would make rules cheaper, the most effective one first.
func TestMissingBounds(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{"a text", specWith(`"s":{"type":"string"}`, `{"rule":"self.s.matches('^a+$') || self.s.matches('^b{1,200}$') || self.s.matches('`+strings.Repeat("a", 400)+`')"}`), "/properties/spec/x-kubernetes-validations/0/rule: 32715598\nmaxLength 4096 at properties[spec].properties[s] /properties/spec/properties/s: 170462"},
		{"an int or string", specWith(`"s":{"x-kubernetes-int-or-string":true}`, `{"rule":"string(self.s).matches('`+strings.Repeat("a", 400)+`')"}`), "/properties/spec/x-kubernetes-validations/0/rule: 31771875\nmaxLength 4096 at properties[spec].properties[s] /properties/spec/properties/s: 165541"},
		{"a map", specWith(`"m":{"type":"object","additionalProperties":{"type":"string","maxLength":10}}`, `{"rule":"self.m.all(k, self.m.all(l, self.m[k] == self.m[l]))"}`), "/properties/spec/x-kubernetes-validations/0/rule: 2319272902668\nmaxProperties 512 at properties[spec].properties[m] /properties/spec/properties/m: 3935235"},
		{"values of a map", specWith(`"m":{"type":"object","maxProperties":10,"additionalProperties":{"type":"array","items":{"type":"string","maxLength":10}}}`, `{"rule":"self.m.all(k, self.m[k].all(x, self.m[k].all(y, x == y)))"}`), "/properties/spec/x-kubernetes-validations/0/rule: 98955941642333\nmaxItems 256 at properties[spec].properties[m].additionalProperties /properties/spec/properties/m/additionalProperties: 5918803"},
		{"two lists", specWith(`"a":{"type":"array","items":{"type":"string"}},"b":{"type":"array","items":{"type":"string"}}`, `{"rule":"self.a.all(x, self.b.all(y, x == y))"}`), "/properties/spec/x-kubernetes-validations/0/rule: 345881509131242703\nmaxItems 128 at properties[spec].properties[a] /properties/spec/properties/a: 42221904173571\nmaxItems 128 at properties[spec].properties[b] /properties/spec/properties/b: 5154046723\nmaxLength 1024 at properties[spec].properties[a].items /properties/spec/properties/a/items: 6800131"},
		{"lists in lists", specWith(`"a":{"type":"array","items":{"type":"array","items":{"type":"array","items":{"type":"string"}}}}`, `{"rule":"self.a.all(x, x.all(y, y.all(z, z.matches('a+') && x.all(q, q == y))))"}`), "/properties/spec/x-kubernetes-validations/0/rule: 18446744073709551615\nmaxItems 32 at properties[spec].properties[a].items /properties/spec/properties/a/items: 18446744073709551615\nmaxItems 32 at properties[spec].properties[a].items.items /properties/spec/properties/a/items/items: 338085717488478\nmaxItems 16 at properties[spec].properties[a] /properties/spec/properties/a: 5158783571\nmaxLength 512 at properties[spec].properties[a].items.items.items /properties/spec/properties/a/items/items/items: 8178259"},
		{"the value itself", specWith(`"l":{"type":"array","items":{"type":"string","maxLength":10},"x-kubernetes-validations":[{"rule":"self.all(x, self.all(y, x == y))"}]}`, `{"rule":"true"}`), "/properties/spec/properties/l/x-kubernetes-validations/0/rule: 9895591018502\nmaxItems 1024 at properties[spec].properties[l] /properties/spec/properties/l: 9442306"},
		{"a list around", specWith(`"a":{"type":"array","items":{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string","x-kubernetes-validations":[{"rule":"self.matches('a+')"}]}}}}}`, `{"rule":"true"}`), "/properties/spec/properties/a/items/properties/m/additionalProperties/x-kubernetes-validations/0/rule: 329854746624\nmaxLength 1024 at properties[spec].properties[a].items.properties[m].additionalProperties /properties/spec/properties/a/items/properties/m/additionalProperties: 430964736\nmaxProperties 256 at properties[spec].properties[a].items.properties[m] /properties/spec/properties/a/items/properties/m: 430964736\nmaxItems 64 at properties[spec].properties[a] /properties/spec/properties/a: 6733824"},
		{"a list around, and one with a bound", specWith(`"a":{"type":"array","maxItems":20,"items":{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string","maxLength":100,"x-kubernetes-validations":[{"rule":"self.matches('a+')"}]}}}}}`, `{"rule":"true"}`), "/properties/spec/properties/a/items/properties/m/additionalProperties/x-kubernetes-validations/0/rule: 44040192\nmaxProperties 1024 at properties[spec].properties[a].items.properties[m] /properties/spec/properties/a/items/properties/m: 860160"},
		{"a message", specWith(`"s":{"type":"string"}`, `{"rule":"true","messageExpression":"self.s.matches('`+strings.Repeat("x", 400)+`') ? 'a' : 'b'"}`), "/properties/spec/x-kubernetes-validations/0/messageExpression: 31457302\nmaxLength 4096 at properties[spec].properties[s] /properties/spec/properties/s: 163902"},
		{"a message in a list", specWith(`"a":{"type":"array","items":{"type":"object","properties":{"s":{"type":"string"}},"x-kubernetes-validations":[{"rule":"true","messageExpression":"self.s.matches('`+strings.Repeat("x", 400)+`') ? 'a' : 'b'"}]}}`, `{"rule":"true"}`), "/properties/spec/properties/a/items/x-kubernetes-validations/0/messageExpression: 31457302\nmaxLength 4096 at properties[spec].properties[a].items.properties[s] /properties/spec/properties/a/items/properties/s: 163902"},
		{"the root", `{"type":"object","properties":{"a-b":{"type":"array","items":{"type":"string"}}},"x-kubernetes-validations":[{"rule":"self.a__dash__b.all(x, self.a__dash__b.all(y, x == y))"}]}`, "/x-kubernetes-validations/0/rule: 345881509131242703\nmaxItems 128 at properties[a-b] /properties/a-b: 5154046723\nmaxLength 1024 at properties[a-b].items /properties/a-b/items: 6800131"},
		{"a resource", specWith(`"r":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object","properties":{"l":{"type":"array","items":{"type":"string"}}}}}}`, `{"rule":"self.r.spec.l.all(x, self.r.spec.l.all(y, x == y && self.r.kind.matches('a+')))"}`), ""},
		{"a long list with a bound inside a map", specWith(`"m":{"type":"object","additionalProperties":{"type":"array","maxItems":1000000,"items":{"type":"string","maxLength":100,"x-kubernetes-validations":[{"rule":"self.matches('a+')"}]}}}`, `{"rule":"true"}`), ""},
		{"a long list that says how a map is", specWith(`"m":{"type":"object","additionalProperties":{"type":"array","additionalProperties":{"type":"string"},"maxItems":1000000,"items":{"type":"string","maxLength":100,"x-kubernetes-validations":[{"rule":"self.matches('a+')"}]}}}`, `{"rule":"true"}`), ""},
	} {
		var lines []string
		for _, x := range costsOf(t, c.schema) {
			if len(x.Bounds) > 0 {
				lines = append(lines, fmt.Sprintf("%s: %d", x.Pointer, x.Total))
			}
			for _, b := range x.Bounds {
				lines = append(lines, fmt.Sprintf("%s %d at %s %s: %d", b.Keyword, b.Value, b.Path, b.Pointer, b.Total))
			}
		}
		if got := strings.Join(lines, "\n"); got != c.want {
			t.Errorf("%s:\n%s\nnot\n%s", c.name, got, c.want)
		}
	}
}

// The parts of expressions of all kinds, in the order in which they are found.
func TestKindsOfParts(t *testing.T) {
	const fields = `"s":{"type":"string","maxLength":10},"l":{"type":"array","maxItems":5,"items":{"type":"string","maxLength":10}},"m":{"type":"object","maxProperties":5,"additionalProperties":{"type":"string","maxLength":10}}`
	for _, c := range []struct{ rule, want string }{
		{`self.s in [self.s, 'a'] && {'a': self.s, self.s: 'b'}.size() > 1`, "&&@1:25=52 in@1:8=16 >@1:62=36 s@1:5=2 literal@1:11=12 size@1:59=35 self@1:1=1 s@1:16=2 literal@1:28=34 self@1:12=1 s@1:38=2 s@1:46=2 self@1:34=1 self@1:42=1"},
		{`self.l.exists(x, x == self.s) || self.m.all(k, v, v == k)`, "||@1:31=86 for@1:14=58 for@1:44=28 l@1:5=2 m@1:38=2 self@1:1=1 ==@1:20=35 self@1:34=1 ==@1:53=10 x@1:18=5 s@1:27=10 v@1:51=5 k@1:56=5 self@1:23=5"},
		{`self.l.map(x, x + 'a').filter(y, y.contains('b'))[0] == (has(self.s) ? 'c' : self.s)`, "==@1:54=188 _[_]@1:50=185 _?_:_@1:70=3 for@1:30=184 s@1:61=1 s@1:82=2 for@1:11=103 literal@1:30=10 self@1:62=1 self@1:78=1 l@1:5=2 literal@1:11=10 contains@1:44=5 self@1:1=1 y@1:34=5 +@1:17=30 y@1:31=5 x@1:15=5"},
		{"self.s ==\n  self.m['ä'] ||\n -self.l.size() < 1", "||@2:15=14 ==@1:8=9 <@3:17=5 s@1:5=2 _[_]@2:9=3 -@3:2=4 self@1:1=1 m@2:7=2 size@3:14=3 self@2:3=1 l@3:7=2 self@3:3=1"},
		{`self.?s.orValue('a') == 'b' && self.?s.optMap(x, x + 'a').hasValue()`, "&&@1:29=1844674407370955287 ==@1:22=4 hasValue@1:67=1844674407370955283 orValue@1:16=3 _?_:_@1:46=1844674407370955282 _?._@1:5=2 hasValue@1:46=3 optional.of@1:46=1844674407370955279 optional.none@1:46=1 self@1:1=1 _?._@1:36=2 for@1:46=1844674407370955278 self@1:32=1 literal@1:46=10 value@1:46=3 +@1:52=1844674407370955265 _?._@1:36=2 x@1:50=1 self@1:32=1"},
	} {
		var lines []string
		schema := specWith(fields, fmt.Sprintf(`{"rule":%q,"message":"m"}`, c.rule))
		costs := costsOf(t, schema)
		if len(costs) != 1 {
			t.Fatal(c.rule, len(costs), checked(t, schema, CheckOptions{}))
		}
		for _, p := range costs[0].Parts {
			lines = append(lines, fmt.Sprintf("%s@%d:%d=%d", p.What, p.Line, p.Column, p.Cost))
		}
		if got := strings.Join(lines, " "); got != c.want {
			t.Errorf("%s:\n%s\nnot\n%s", c.rule, got, c.want)
		}
	}
}

// Of long expressions the outer parts are shown.
func TestMostParts(t *testing.T) {
	for n, want := range map[int]int{50: 198, 100: 256} {
		rule := "self.b" + strings.Repeat(" || !self.b", n-1)
		if got := len(costsOf(t, specWith(`"b":{"type":"boolean"}`, fmt.Sprintf(`{"rule":%q}`, rule)))[0].Parts); got != want {
			t.Errorf("%d operands: %d parts, not %d", n, got, want)
		}
	}
}
