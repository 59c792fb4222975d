package kinds

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// madeKind makes a kind that is not built in, so that a test has exactly the keywords that
// it is about: types as types.json has them, and a file of the folder data.
func madeKind(t *testing.T, written, source string) *Kind {
	t.Helper()
	var fields map[string]map[string]string
	if err := yaml.Unmarshal([]byte(written), &fields); err != nil {
		t.Fatal(err)
	}
	var f file
	if err := yaml.Unmarshal([]byte(source), &f); err != nil {
		t.Fatal(err)
	}
	all := readTypes()
	for name := range fields {
		all[name] = &objectType{name: name}
		t.Cleanup(func() { delete(all, name) }) // other tests look at all types
	}
	for name, members := range fields {
		all[name].names = slices.Sorted(maps.Keys(members))
		all[name].fields = map[string]*fieldType{}
		for member, as := range members {
			all[name].fields[member] = parseType(all, as)
		}
	}
	for _, one := range f.Types {
		all[one.name].describe(one.value)
	}
	if len(f.Kinds) > 0 {
		return f.Kinds[0]
	}
	return &Kind{Kind: "Thing", Type: "made.Thing"}
}

// errorsOf are the texts of all errors, one per line.
func errorsOf(k *Kind, tree, old map[string]any, subresource string) string {
	var list []string
	for _, err := range k.Validate(tree, old, subresource) {
		list = append(list, err.Error())
	}
	return strings.Join(list, "\n")
}

// Each keyword of a field has errors of its own.
func TestKeywords(t *testing.T) {
	const item = "made.Item: {a: string, b: string}"
	for _, c := range []struct{ field, keywords, value, old, want string }{
		{"[]string", "{format: absolute-path}", "f: [a]", "", ""}, {"map[string]string", "{format: absolute-path}", "f: {a: b}", "", ""}, {"float64", "{minimum: 2}", "f: 1.5", "", ""}, {"meta/v1.LabelSelector", "{format: label-selector}", "f: {matchLabels: 1}", "", ""},
		{"string", "{minLength: 2}", "f: ab", "", ""}, {"string", "{minLength: 2}", "f: a", "", "f: Too short: must be at least 2 characters"},
		{"string", "{maxLength: 2}", "f: ää", "", ""}, {"string", "{maxLength: 2}", "f: abc", "", "f: Too long: may not be more than 2 bytes"},
		{"string", "{maxBytes: 2}", "f: ä", "", ""}, {"string", "{maxBytes: 2}", "f: aä", "", "f: Too long: may not be more than 2 bytes"},
		{"string", "{enum: [a, b]}", "f: b", "", ""}, {"string", "{enum: [a, b]}", "f: c", "", `f: Unsupported value: "c": supported values: "a", "b"`}, {"string", "{enum: [a, b]}", "f: ''", "", ""},
		{"string", "{pattern: '^a', patternText: usual}", "f: ab", "", ""}, {"string", "{pattern: '^a', patternText: usual}", "f: b", "", `f: Invalid value: "b": usual`},
		{"string", "{pattern: '^a', patternText: usual, text: own}", "f: b", "", `f: Invalid value: "b": own`},
		{"string", "{format: absolute-path}", "f: b", "", `f: Invalid value: "b": must be an absolute path`}, {"string", "{format: absolute-path, text: own}", "f: b", "", `f: Invalid value: "b": own`},
		{"string", "{format: absolute-path}", "f: ''", "", ""}, {"[]string", "{items: {format: absolute-path}}", "f: [/a, '']", "", `f[1]: Invalid value: "": must be an absolute path`},
		{"string", "{format: cidr-strict}", "f: 1.2.3.4/24", "", `f: Invalid value: "1.2.3.4/24": must not have bits set beyond the prefix length`},
		{"string", "{format: absolute-path, rules: [{rule: 'false', message: m}]}", "f: a", "", `f: Invalid value: "a": must be an absolute path`},
		{"string", "{format: absolute-path, rules: [{rule: 'false', message: m}]}", "f: /a", "", `f: Invalid value: "/a": m`},
		{"int32", "{minimum: 2, rules: [{rule: 'false', message: m}]}", "f: 1", "", "f: Invalid value: 1: must be greater than or equal to 2\nf: Invalid value: 1: m"},
		{"string", "{rules: [{rule: 'false', message: m}]}", "f: ''", "", ""},
		{"int32", "{minimum: 2}", "f: 2", "", ""}, {"int32", "{minimum: 2}", "f: 1", "", "f: Invalid value: 1: must be greater than or equal to 2"}, {"int32", "{minimum: 2}", "x: 1", "", "f: Invalid value: 0: must be greater than or equal to 2"},
		{"int32", "{minimum: 2, text: own}", "f: 1", "", "f: Invalid value: 1: own"}, {"int32", "{maximum: 2, text: own}", "f: 3", "", "f: Invalid value: 3: own"}, {"*int32", "{minimum: 2}", "x: 1", "", ""},
		{"int32", "{maximum: 2}", "f: 2", "", ""}, {"int32", "{maximum: 2}", "f: 3", "", "f: Invalid value: 3: must be less than or equal to 2"}, {"int32", "{}", "f: 3", "", ""},
		{"int32", "{minimum: 1, maximum: 2}", "f: 3", "", "f: Invalid value: 3: must be between 1 and 2, inclusive"}, {"int32", "{minimum: 1, maximum: 2}", "f: 0", "", "f: Invalid value: 0: must be between 1 and 2, inclusive"},
		{"quantity", "{minimum: 1}", "f: 1000m", "", ""}, {"quantity", "{minimum: 1}", "f: 999m", "", `f: Invalid value: "999m": must be greater than or equal to 1`}, {"quantity", "{minimum: 1}", "f: x", "", ""},
		{"quantity", "{maximum: 1}", "f: 1001m", "", `f: Invalid value: "1001m": must be less than or equal to 1`}, {"intOrString", "{minimum: 1}", "f: '0'", "", ""}, {"intOrString", "{minimum: 1}", "f: 0", "", "f: Invalid value: 0: must be greater than or equal to 1"},
		{"string", "{required: true}", "x: 1", "", "f: Required value"}, {"string", "{required: why}", "f: ''", "", "f: Required value: why"}, {"string", "{required: why, enum: [a]}", "f: a", "", ""}, {"[]string", "{minItems: 1}", "f: []", "", "f: Required value"},
		{"*string", "{required: true}", "f: ''", "", ""}, {"[]string", "{minItems: 1}", "f: [a]", "", ""},
		{"[]string", "{maxItems: 1}", "f: [a]", "", ""}, {"[]string", "{maxItems: 1}", "f: [a, b]", "", "f: Too many: 2: must have at most 1 item"}, {"map[string]string", "{maxItems: 1}", "f: {a: b}", "", ""},
		{"map[string]string", "{maxItems: 1}", "f: {a: b, c: d}", "", "f: Too many: 2: must have at most 1 item"}, {"map[string]string", "{keys: {maxLength: 1}}", "f: {aa: b, c: d}", "", "f[aa]: Too long: may not be more than 1 byte"},
		{"map[string]string", "{items: {maxLength: 1}}", "f: {a: bb, c: d}", "", "f[a]: Too long: may not be more than 1 byte"}, {"[]string", "{items: {maxLength: 1}}", "f: [a, bb]", "", "f[1]: Too long: may not be more than 1 byte"},
		{"[]string", "{distinct: true}", "f: [a, b]", "", ""}, {"[]string", "{distinct: true}", "f: [a, b, a]", "", `f[2]: Duplicate value: "a"`}, {"[]string", "{distinct: false}", "f: [a, a]", "", ""}, {"[]string", "{}", "f: [a, a]", "", ""},
		{"[]made.Item", "{distinct: a}", "f: [{a: x}, {a: y}, {a: x}, {}, {}, {a: ''}]", "", `f[2].a: Duplicate value: "x"`}, {"[]made.Item", "{distinct: [a, b]}", "f: [{a: x, b: y}, {a: y, b: x}, {a: x}]", "", ""},
		{"[]made.Item", "{distinct: [a, b]}", "f: [{a: x}, {a: x}, {a: x, b: y}, {a: x, b: y}]", "", "f[1]: Duplicate value: {\"a\":\"x\"}\nf[3]: Duplicate value: {\"a\":\"x\",\"b\":\"y\"}"},
		{"string", "{immutable: true}", "f: a", "", ""}, {"string", "{immutable: true}", "f: a", "f: a", ""}, {"string", "{immutable: true}", "f: a", "f: b", `f: Invalid value: "a": field is immutable`}, {"string", "{immutable: true}", "f: a", "x: 1", `f: Invalid value: "a": field is immutable`},
		{"string", "{immutable: once}", "f: a", "x: 1", ""}, {"string", "{immutable: once}", "f: a", "f: b", `f: Invalid value: "a": field is immutable`}, {"string", "{immutable: once}", "x: 1", "f: b", `f: Invalid value: null: field is immutable`},
		{"string", "{final: true, enum: [a]}", "f: b", "", `f: Unsupported value: "b": supported values: "a"`}, {"string", "{final: true, enum: [a]}", "f: b", "f: b", ""}, {"string", "{final: true, enum: [a]}", "f: b", "f: c", "f: Invalid value: null: field is immutable"},
		{"string", "{skipIf: self.x == 1, enum: [a]}", "{f: b, x: 1}", "", ""}, {"string", "{skipIf: self.x == 1, enum: [a]}", "{f: b, x: 2}", "", `f: Unsupported value: "b": supported values: "a"`},
		{"string", "{skipIf: self.x, enum: [a]}", "{f: b, x: 1}", "", "<nil>: Internal error: self.x: the result is a int and not a bool\n" + `f: Unsupported value: "b": supported values: "a"`},
		{"made.Inner", "{}", "x: 1", "", "f.a: Required value"}, {"*made.Inner", "{}", "x: 1", "", ""}, {"*made.Inner", "{}", "f: {}", "", "f.a: Required value"}, {"made.Inner", "{shallow: true}", "f: {}", "", ""},
		{"[]made.Inner", "{}", "f: [{a: b}, {}]", "", "f[1].a: Required value"}, {"map[string]made.Inner", "{}", "f: {k: {}}", "", "f[k].a: Required value"}, {"[]made.Inner", "{shallow: true}", "f: [{}]", "", ""}, {"[]made.Item", "{}", "f: [{}]", "", ""},
	} {
		k := madeKind(t, "{made.Thing: {f: '"+c.field+"', x: int32}, "+item+", made.Inner: {a: string}}", "types: {made.Thing: {fields: {f: "+c.keywords+"}}, made.Inner: {fields: {a: {required: true}}}}")
		if got := errorsOf(k, treeOf(t, c.value), treeOf(t, c.old), ""); got != c.want {
			t.Errorf("%s %s, %s after %q:\n%s", c.field, c.keywords, c.value, c.old, got)
		}
	}
}

// A field that the files say nothing about is visited only if it is there.
func TestFieldsWithoutKeywords(t *testing.T) {
	for value, want := range map[string]string{"x: 1": "", "f: {}": "f.a: Required value", "l: [{}]": "l[0].a: Required value", "m: {k: {}}": "m[k].a: Required value", "p: {}": "p.a: Required value", "{s: a, x: 1}": ""} {
		k := madeKind(t, "{made.Thing: {f: made.Inner, l: '[]made.Inner', m: 'map[string]made.Inner', p: '*made.Inner', s: string, x: int32}, made.Inner: {a: string}}", "types: {made.Inner: {fields: {a: {required: true}}}}")
		if got := errorsOf(k, treeOf(t, value), nil, ""); got != want {
			t.Errorf("%s: %s", value, got)
		}
	}
}

// Items are compared with the old ones of the same key, or of the same index.
func TestOldItems(t *testing.T) {
	const immutable = "Invalid value: \"x\": field is immutable"
	for _, c := range []struct{ field, value, old, want string }{
		{"[]made.Item", "f: [{k: a, v: x}]", "f: [{k: b, v: x}, {k: a, v: y}]", ""},
		{"[]made.Item", "f: [{k: a, v: x}, {k: b, v: x}]", "f: [{k: a, v: y}]", "f[0].v: " + immutable},
		{"[k]made.Item", "f: [{k: a, v: x}]", "f: [{k: b, v: x}, {k: a, v: y}]", "f[0].v: " + immutable},
		{"[k]made.Item", "f: [{k: a, v: x}, {k: c, v: x}]", "f: [{k: b, v: y}, {k: a, v: x}]", ""},
		{"[k]made.Item", "f: [{k: a, v: x}]", "f: [null, {k: a, v: y}]", "f[0].v: " + immutable},
		{"map[string]made.Item", "f: {a: {v: x}, b: {v: x}}", "f: {b: {v: y}}", "f[b].v: " + immutable},
		{"[]made.Item", "f: [{k: a, v: x}]", "", ""}, {"map[string]made.Item", "f: {a: {v: x}}", "", ""}, {"[k]made.Item", "f: [{k: a, v: x}]", "", ""},
	} {
		k := madeKind(t, "{made.Thing: {f: '"+c.field+"'}, made.Item: {k: string, v: string}}", "types: {made.Item: {fields: {v: {immutable: true}}}}")
		if got := errorsOf(k, treeOf(t, c.value), treeOf(t, c.old), ""); got != c.want {
			t.Errorf("%s, %s after %q: %s", c.field, c.value, c.old, got)
		}
	}
}

// Unions have at most one field, and more are not looked at.
func TestUnions(t *testing.T) {
	for _, c := range []struct{ union, value, want string }{
		{"{fields: [a, b, c], required: one, many: many}", "a: x", ""}, {"{fields: [a, b, c], required: one, many: many}", "{a: x, b: y, c: z}", "b: Forbidden: many\nc: Forbidden: many"},
		{"{fields: [a, b, c], required: one, many: many}", "a: ''", "<nil>: Required value: one"}, {"{fields: [a, b, c], many: many}", "a: ''", ""}, {"{fields: [a, b, c], required: one}", "{a: x, b: y, c: z}", ""},
		{"{fields: [b, a], many: many}", "{a: x, b: x}", "b: Unsupported value: \"x\": supported values: \"y\", \"z\"\na: Forbidden: many"}, {"{fields: [a, b], many: many}", "{a: x, b: x}", "b: Forbidden: many"},
	} {
		k := madeKind(t, "{made.Thing: {a: string, b: string, c: string}}", "types: {made.Thing: {union: "+c.union+", fields: {b: {enum: [y, z]}}}}")
		if got := errorsOf(k, treeOf(t, c.value), nil, ""); got != c.want {
			t.Errorf("%s, %s:\n%s", c.union, c.value, got)
		}
	}
}

// A write of the status validates the status, and other writes the rest.
func TestWhatWritesValidate(t *testing.T) {
	const wrong = ".a: Required value"
	for _, c := range []struct{ status, subresource, want string }{
		{"true", "", "spec" + wrong}, {"true", "status", "status" + wrong}, {"false", "", "spec" + wrong + "\nstatus" + wrong},
	} {
		k := madeKind(t, "{made.Thing: {spec: made.Inner, status: made.Inner, metadata: made.Inner}, made.Inner: {a: string}}",
			"{kinds: [{kind: Thing, type: made.Thing, status: "+c.status+"}], types: {made.Inner: {fields: {a: {required: true}}}}}")
		if got := errorsOf(k, treeOf(t, "{spec: {}, status: {}, metadata: {}}"), nil, c.subresource); got != c.want {
			t.Errorf("%+v:\n%s", c, got)
		}
	}
}

// The metadata is validated elsewhere, but for what the kind says about it.
func TestKeywordsOfMetadata(t *testing.T) {
	for data, want := range map[string]string{"{}": "", "{fields: {metadata: {rules: [{rule: 'false', message: m, path: a}]}}}": "metadata.b: Required value\nmetadata.a: Invalid value: \"x\": m"} {
		k := madeKind(t, "{made.Thing: {metadata: made.Inner, x: int32}, made.Inner: {a: string, b: string}}", "types: {made.Thing: "+data+", made.Inner: {fields: {b: {required: true}}}}")
		got := errorsOf(k, treeOf(t, "metadata: {a: x}"), nil, "")
		lines, expected := strings.Split(got, "\n"), strings.Split(want, "\n")
		slices.Sort(lines)
		slices.Sort(expected)
		if !slices.Equal(lines, expected) {
			t.Errorf("%s:\n%s", data, got)
		}
	}
	if Find("", "v1", "things") != nil {
		t.Error("a kind that is not there is found")
	}
	if Find("apps", "v1", "pods") != nil || Find("", "v2", "pods") != nil || Find("", "v1", "pods").Kind != "Pod" {
		t.Error("the kind of pods is not found, or another one is")
	}
	if got := nameFormats["any"]("/", false); got != nil {
		t.Error(got)
	}
}

// Expressions read the objects around a value.
func TestVariablesOfRules(t *testing.T) {
	k := madeKind(t, "{made.Thing: {o: made.Inner, x: string}, made.Inner: {a: string}}",
		"types: {made.Inner: {fields: {a: {rules: [{rule: 'false', path: '', messageExpression: \"[self, old, parent.a, root.x, oldRoot.x, kind, path, string(update)].join('-')\"}]}}}, made.Thing: {rules: [{rule: 'false', path: x, messageExpression: \"path + self.x + old.x\"}]}}")
	want := "o.a: Invalid value: \"1\": 1-2-1-3-4-Thing-o.a-true\nx: Invalid value: \"3\": 34"
	if got := errorsOf(k, treeOf(t, "{o: {a: '1'}, x: '3'}"), treeOf(t, "{o: {a: '2'}, x: '4'}"), ""); got != want {
		t.Error(got)
	}
}

// A default is set whatever stands in the fields after it.
func TestDefaultBeforeOtherFields(t *testing.T) {
	for _, keywords := range []string{"{default: x}", "{defaultExpression: \"'x'\"}"} {
		k := madeKind(t, "made.Thing: {a: '*string', b: string}", "types: {made.Thing: {fields: {a: "+keywords+", b: {maxLength: 3}}}}")
		k.object().sum()
		tree := map[string]any{}
		if changed, err := k.Default(tree); err != nil || !changed || tree["a"] != "x" {
			t.Errorf("%s: %v, %v, %v", keywords, tree, changed, err)
		}
	}
}
