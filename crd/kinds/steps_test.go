package kinds

import (
	"slices"
	"strings"
	"testing"
)

// Defaults fill in what is absent, and clear what does not belong there.
func TestDefaultKeywords(t *testing.T) {
	for _, c := range []struct{ field, keywords, before, after string }{
		{"string", "{default: a}", "{}", `{"f":"a"}`}, {"string", "{default: a}", "f: b", ""}, {"string", "{default: a}", "f: ''", `{"f":"a"}`}, {"*string", "{default: a}", "f: ''", ""},
		{"int32", "{default: 1}", "{}", `{"f":1}`}, {"string", "{default: a, defaultIf: self.x == 1}", "x: 1", `{"f":"a","x":1}`}, {"string", "{default: a, defaultIf: self.x == 1}", "x: 2", ""},
		{"string", "{defaultExpression: string(self.x)}", "x: 1", `{"f":"1","x":1}`}, {"string", "{defaultExpression: string(self.x)}", "{f: a, x: 1}", ""}, {"int32", "{defaultExpression: self.x}", "{}", ""}, {"*int32", "{defaultExpression: self.x}", "{}", `{"f":0}`},
		{"*int32", "{defaultExpression: 'null'}", "{}", ""}, {"string", "{clearIf: self.x == 1, default: a}", "{f: b, x: 1}", `{"x":1}`}, {"string", "{clearIf: self.x == 1, default: a}", "{f: b, x: 2}", ""}, {"string", "{clearIf: self.x == 1, default: a}", "{x: 1}", `{"f":"a","x":1}`},
		{"map[string]string", "{default: {a: b, c: d}, defaultEntries: true}", "f: {a: x}", `{"f":{"a":"x","c":"d"}}`}, {"map[string]string", "{default: {a: b}, defaultEntries: true}", "f: {a: x}", ""}, {"map[string]string", "{default: {a: b}}", "f: {c: x}", ""},
		{"map[string]string", "{default: {a: b}, defaultEntries: true}", "{}", `{"f":{"a":"b"}}`}, {"any", "{default: {a: {b: c}, d: {e: f}}, defaultEntries: true}", "f: {a: {x: y}}", `{"f":{"a":{"b":"c","x":"y"},"d":{"e":"f"}}}`},
		{"any", "{default: {a: b}, defaultEntries: true}", "f: {a: {x: y}}", ""}, {"any", "{default: a, defaultEntries: true}", "f: {x: y}", ""},
		{"made.Inner", "{}", "{}", `{"f":{"a":"i"}}`}, {"*made.Inner", "{}", "{}", ""}, {"*made.Inner", "{}", "f: {}", `{"f":{"a":"i"}}`}, {"[]made.Inner", "{}", "f: [{}, {a: b}]", `{"f":[{"a":"i"},{"a":"b"}]}`},
		{"map[string]made.Inner", "{}", "f: {k: {}}", `{"f":{"k":{"a":"i"}}}`}, {"map[string][]made.Inner", "{}", "f: {k: [{}]}", `{"f":{"k":[{"a":"i"}]}}`}, {"made.Plain", "{default: {a: b}}", "{}", `{"f":{"a":"b"}}`}, {"made.Plain", "{}", "{}", ""}, {"made.Child", "{}", "x: 3", `{"f":{"a":"3"},"x":3}`},
	} {
		k := madeKind(t, "{made.Thing: {f: '"+c.field+"', x: int32}, made.Inner: {a: string}, made.Child: {a: string}, made.Plain: {a: string}}",
			"types: {made.Thing: {fields: {f: "+c.keywords+"}}, made.Inner: {fields: {a: {default: i}}}, made.Child: {fields: {a: {defaultExpression: string(parent.x)}}}}")
		tree := treeOf(t, c.before)
		before := text(tree)
		changed, err := k.Default(tree)
		want := c.after
		if want == "" {
			want = before
		}
		if got := text(tree); err != nil || got != want || changed != (c.after != "") {
			t.Errorf("%s %s, %s: %s, %v, %v", c.field, c.keywords, c.before, got, changed, err)
		}
	}
}

// The error of a default's expression names the field, wherever the object is.
func TestFailingDefaults(t *testing.T) {
	const failed = "the default of made.Inner.a failed: "
	for keywords, want := range map[string]string{
		"{defaultExpression: self.no}":                    "self.no: made.Inner has no field no",
		"{default: a, defaultIf: self.no}":                "self.no: made.Inner has no field no",
		"{default: a, clearIf: self.no}":                  "self.no: made.Inner has no field no",
		"{default: a, defaultIf: '1'}":                    "1: the result is a int and not a bool",
		"{defaultExpression: \"has(self.no) ? '' : ''\"}": "has(self.no) ? '' : '': made.Inner has no field no",
	} {
		k := madeKind(t, "{made.Thing: {o: '*made.Inner', l: '[]made.Inner', m: 'map[string]made.Inner', x: int32}, made.Inner: {a: '*string', b: string}}", "types: {made.Inner: {fields: {a: "+keywords+"}}}")
		for _, value := range []string{"o: {}", "l: [{}]", "m: {k: {}}"} {
			if strings.Contains(keywords, "clearIf") {
				value = strings.Replace(value, "{}", "{a: b}", 1)
			}
			if _, err := k.Default(treeOf(t, value)); err == nil || err.Error() != failed+want {
				t.Errorf("%s, %s: %v", keywords, value, err)
			}
		}
	}
}

// Warnings are found at every depth: of fields, items, objects, and whatever is below them.
func TestWarningKeywords(t *testing.T) {
	for _, c := range []struct{ types, data, value, old, want string }{
		{"f: string", "made.Thing: {fields: {f: {warnings: [{message: m}]}}}", "f: a", "", "m"}, {"f: string", "made.Thing: {fields: {f: {warnings: [{message: m}]}}}", "f: ''", "", ""},
		{"f: string", "made.Thing: {fields: {f: {warnings: [{messageExpression: path + self}]}}}", "f: a", "", "fa"}, {"f: string", "made.Thing: {fields: {f: {warnings: [{messages: '[self, path]'}]}}}", "f: a", "", "a|f"},
		{"f: string", "made.Thing: {fields: {f: {warnings: [{message: m, if: \"self == 'a'\"}]}}}", "f: b", "", ""}, {"f: string", "made.Thing: {warnings: [{message: m}]}", "{}", "", "m"},
		{"f: '[]string'", "made.Thing: {fields: {f: {items: {warnings: [{messageExpression: path + self}]}}}}", "f: [a, b]", "", "f[0]a|f[1]b"}, {"f: 'map[string]string'", "made.Thing: {fields: {f: {items: {warnings: [{messageExpression: path}]}}}}", "f: {a: b}", "", "f[a]"},
		{"f: '[]string'", "made.Thing: {fields: {f: {warnings: [{each: self, messageExpression: path + item}]}}}", "f: [a, b]", "", "f[0]a|f[1]b"},
		{"f: '[]made.Inner'", "made.Inner: {warnings: [{messageExpression: path}]}", "f: [{}, {}]", "", "f[0]|f[1]"}, {"f: made.Inner", "made.Inner: {fields: {a: {warnings: [{messageExpression: path}]}}}", "f: {a: b}", "", "f.a"},
		{"f: '*made.Inner'", "made.Inner: {warnings: [{messageExpression: path}]}", "{}", "", ""}, {"f: '*made.Inner'", "made.Inner: {warnings: [{messageExpression: path}]}", "f: {}", "", "f"},
		{"f: made.Middle", "made.Inner: {warnings: [{messageExpression: path}]}", "f: {i: {}}", "", "f.i"}, {"f: made.Middle", "made.Inner: {fields: {l: {items: {warnings: [{messageExpression: path}]}}}}", "f: {i: {l: [x]}}", "", "f.i.l[0]"},
		{"f: string", "made.Thing: {warnings: [{message: new, when: create}, {message: again, when: update}, {message: changed, if: self.f != old.f}, {message: updated, if: update}]}", "f: a", "f: a", "again|updated"},
		{"f: string", "made.Thing: {warnings: [{message: new, when: create}, {message: again, when: update}, {message: changed, if: self.f != old.f}, {message: updated, if: update}]}", "f: a", "f: b", "again|changed|updated"},
		{"f: string", "made.Thing: {warnings: [{message: new, when: create}, {message: again, when: update}, {message: changed, if: self.f != old.f}, {message: updated, if: update}]}", "f: a", "", "new|changed"},
		{"f: string", "made.Thing: {warnings: [{messageExpression: self.no}, {messages: self.no}, {message: m, if: self.no}, {messageExpression: '1'}]}", "f: a", "",
			"making a warning failed: self.no: made.Thing has no field no|making a warning failed: self.no: made.Thing has no field no|making a warning failed: self.no: made.Thing has no field no|making a warning failed: 1: the result is a int and not a string"},
		{"f: string", "made.Thing: {warnings: [{messages: \"[1, 'a']\"}]}", "f: a", "", "a"},
		{"f: string, p: made.Plain", "made.Thing: {warnings: [{message: m}]}", "p: {a: b}", "", "m"}, {"f: made.Inner, p: made.Plain", "made.Inner: {warnings: [{message: m}]}", "f: {}", "", "m"},
		{"f: '[]string', s: string", "made.Thing: {fields: {f: {items: {warnings: [{message: m}]}}, s: {enum: [a]}}}", "f: [a]", "", "m"},
	} {
		k := madeKind(t, "{made.Thing: {"+c.types+"}, made.Middle: {i: '*made.Inner'}, made.Inner: {a: string, l: '[]string'}, made.Plain: {a: string}}", "types: {"+c.data+"}")
		if got := strings.Join(k.Warnings(treeOf(t, c.value), treeOf(t, c.old)), "|"); got != c.want {
			t.Errorf("%s, %s: %s", c.data, c.value, got)
		}
	}
}

// Fields of features that are off are dropped, unless the old object has them.
func TestDroppedFeatures(t *testing.T) {
	for _, c := range []struct{ field, feature, value, old, want string }{
		{"made.Inner", "'off'", "f: {a: x, b: y}", "", `{"f":{"b":"y"}}`}, {"made.Inner", "'off'", "f: {a: x}", "f: {a: z}", ""}, {"made.Inner", "'off'", "f: {a: x}", "f: {a: ''}", `{"f":{}}`}, {"made.Inner", "'off'", "f: {b: x}", "", ""},
		{"*made.Inner", "'off'", "f: {a: x}", "", `{"f":{}}`}, {"*made.Inner", "whole", "f: {a: x}", "", "{}"}, {"*made.Inner", "whole", "f: {a: x, b: y}", "", `{"f":{"b":"y"}}`}, {"*made.Inner", "whole", "f: {}", "", ""}, {"made.Inner", "whole", "f: {a: x}", "", `{"f":{}}`},
		{"*made.Inner", "whole", "f: {a: x}", "f: {a: x}", ""}, {"[]made.Inner", "'off'", "f: [{a: x}, {a: x, b: y}]", "f: [{a: x}]", `{"f":[{"a":"x"},{"b":"y"}]}`}, {"[b]made.Inner", "'off'", "f: [{a: x, b: z}, {a: x, b: y}]", "f: [{a: x, b: y}]", `{"f":[{"b":"z"},{"a":"x","b":"y"}]}`},
		{"map[string]made.Inner", "'off'", "f: {k: {a: x}, l: {a: x}}", "f: {l: {a: x}}", `{"f":{"k":{},"l":{"a":"x"}}}`}, {"made.Inner", "''", "f: {a: x}", "", ""}, {"[]made.Inner", "'off'", "f: [null, {a: x}]", "", `{"f":[null,{}]}`},
	} {
		k := madeKind(t, "{made.Thing: {f: '"+c.field+"', x: string, y: made.Plain}, made.Inner: {a: string, b: string, c: made.Plain}, made.Plain: {a: string}}", "types: {made.Inner: {fields: {a: {feature: "+c.feature+"}, b: {enum: [y]}}}}")
		tree := treeOf(t, c.value)
		want := c.want
		if want == "" {
			want = text(tree)
		}
		changed, err := k.Prepare(tree, treeOf(t, c.old))
		if got := text(tree); err != nil || got != want || changed != (c.want != "") {
			t.Errorf("%s %s, %s after %q: %s, %v, %v", c.field, c.feature, c.value, c.old, got, changed, err)
		}
	}
	pod := treeOf(t, "spec: {containers: [{name: c, lifecycle: {stopSignal: SIGUSR1}}, {name: d, lifecycle: {stopSignal: SIGUSR1, preStop: {sleep: {seconds: 1}}}}]}")
	if changed, err := Find("", "v1", "pods").Prepare(pod, nil); err != nil || !changed || text(pod["spec"].(map[string]any)["containers"]) != `[{"name":"c"},{"lifecycle":{"preStop":{"sleep":{"seconds":1}}},"name":"d"}]` {
		t.Errorf("%v, %v, %v", pod, changed, err)
	}
}

// The steps of a kind are taken for some writes, and say whether they change something.
func TestPreparations(t *testing.T) {
	for _, c := range []struct{ step, value, old, subresource, want string }{
		{"{clear: spec.a}", "spec: {a: x, b: y}", "", "", `{"spec":{"b":"y"}}`}, {"{clear: spec.a}", "spec: {b: y}", "", "", ""}, {"{clear: spec.a}", "{}", "", "", ""},
		{"{clear: spec.a, when: create}", "spec: {a: x}", "", "", `{"spec":{}}`}, {"{clear: spec.a, when: create}", "spec: {a: x}", "{}", "", ""}, {"{clear: spec.a, when: update}", "spec: {a: x}", "{}", "", `{"spec":{}}`}, {"{clear: spec.a, when: update}", "spec: {a: x}", "", "", ""},
		{"{clear: spec.a, when: validate}", "spec: {a: x}", "", "", ""}, {"{clear: spec.a, if: \"self.spec.a == 'x'\"}", "spec: {a: x}", "", "", `{"spec":{}}`}, {"{clear: spec.a, if: \"self.spec.a == 'x'\"}", "spec: {a: y}", "", "", ""},
		{"{clear: status.a, subresource: status}", "status: {a: x}", "", "", ""}, {"{clear: status.a, subresource: status}", "status: {a: x}", "{}", "status", `{"status":{}}`}, {"{clear: status.a}", "status: {a: x}", "{}", "status", ""},
		{"{keep: spec.a}", "spec: {a: x}", "spec: {a: y}", "", `{"spec":{"a":"y"}}`}, {"{keep: spec.a}", "{}", "spec: {a: y}", "", `{"spec":{"a":"y"}}`}, {"{keep: spec.a}", "spec: {a: x}", "spec: {a: x}", "", ""},
		{"{set: spec.a, value: self.spec.b + old.spec.b + kind + string(update)}", "spec: {b: x}", "spec: {b: y}", "", `{"spec":{"a":"xyThingtrue","b":"x"}}`}, {"{set: spec.a, value: \"'x'\"}", "spec: {a: x}", "", "", ""}, {"{set: spec.a, value: \"'x'\"}", "{}", "", "", `{"spec":{"a":"x"}}`},
		{"{clear: spec.a}, {keep: spec.b}", "spec: {a: x, b: y}", "spec: {b: y}", "", `{"spec":{"b":"y"}}`}, {"{clear: spec.a}, {clear: status.a}", "spec: {a: x}", "", "", `{"spec":{}}`}, {"{clear: spec.a}, {set: spec.b, value: \"'y'\"}", "spec: {a: x, b: y}", "", "", `{"spec":{"b":"y"}}`},
		{"{clear: spec.a, if: self.no}", "{}", "", "", "preparing a Thing failed: self.no: made.Thing has no field no"}, {"{set: spec.a, value: self.no}", "{}", "", "", "preparing a Thing failed: self.no: made.Thing has no field no"},
	} {
		k := madeKind(t, "{made.Thing: {spec: made.Inner, status: made.Inner}, made.Inner: {a: string, b: string}}", "kinds: [{kind: Thing, type: made.Thing, prepare: ["+c.step+"]}]")
		tree := treeOf(t, c.value)
		want := c.want
		if want == "" {
			want = text(tree)
		}
		prepare := k.Prepare
		if c.subresource != "" {
			prepare = k.PrepareStatus
		}
		changed, err := prepare(tree, treeOf(t, c.old))
		got := text(tree)
		if err != nil {
			if got = err.Error(); changed {
				t.Errorf("%s: a step that fails has changed something", c.step)
			}
			changed = true
		}
		if got != want || changed != (c.want != "") {
			t.Errorf("%s, %s after %q: %s, %v", c.step, c.value, c.old, got, changed)
		}
	}
}

// A step that fails does not hide that one before it has changed the object.
func TestFailingPreparations(t *testing.T) {
	for _, step := range []string{"{set: a, value: self.no}", "{clear: a, if: self.no}"} {
		k := madeKind(t, "{made.Thing: {a: string}}", "kinds: [{kind: Thing, type: made.Thing, prepare: [{clear: a}, "+step+"]}]")
		if changed, err := k.Prepare(treeOf(t, "a: x"), nil); err == nil || !changed {
			t.Errorf("%s: %v, %v", step, changed, err)
		}
	}
}

// Validation sees an object after the steps for it, and the object stays as it is.
func TestValidatedView(t *testing.T) {
	k := madeKind(t, "{made.Thing: {spec: made.Inner}, made.Inner: {a: string}}", "{kinds: [{kind: Thing, type: made.Thing, prepare: [{clear: spec.a, when: validate}]}], types: {made.Inner: {fields: {a: {required: true}}}}}")
	tree := treeOf(t, "spec: {a: x}")
	if got := errorsOf(k, tree, nil, ""); got != "spec.a: Required value" || text(tree) != `{"spec":{"a":"x"}}` {
		t.Errorf("%s, %v", got, tree)
	}
	k = madeKind(t, "{made.Thing: {spec: string}}", "kinds: [{kind: Thing, type: made.Thing, prepare: [{clear: spec, when: validate, if: self.no}]}]")
	if got := errorsOf(k, treeOf(t, "spec: a"), nil, ""); got != "<nil>: Internal error: preparing a Thing failed: self.no: made.Thing has no field no" {
		t.Error(got)
	}
}

// Writes of the status keep the rest, and the parts of the metadata that the kind names.
func TestWhatStatusKeeps(t *testing.T) {
	const metadata = "metadata: {name: n, labels: {a: b}, annotations: {a: b}, finalizers: [a], ownerReferences: [{uid: a}], generation: 1, selfLink: a, deletionTimestamp: a, uid: x}"
	for _, c := range []struct{ keeps, value, old, want string }{
		{"[]", "{" + metadata + "}", "metadata: {name: m}", ""},
		{"[metadata]", "{" + metadata + "}", "metadata: {name: m}", `{"metadata":{"name":"n","uid":"x"}}`},
		{"[metadata]", "metadata: {name: n}", "metadata: {labels: {c: d}, generation: 2}", `{"metadata":{"generation":2,"labels":{"c":"d"},"name":"n"}}`},
		{"[metadata.labels]", "metadata: {labels: {a: b}, annotations: {a: b}}", "metadata: {labels: {c: d}}", `{"metadata":{"annotations":{"a":"b"},"labels":{"c":"d"}}}`},
		{"[metadata.labels]", "metadata: {labels: {a: b}}", "metadata: {labels: {a: b}}", ""}, {"[metadata]", "metadata: {labels: {a: b}}", "metadata: {labels: {a: b}}", ""},
		{"[metadata.labels, metadata.annotations]", "metadata: {labels: {a: b}, annotations: {a: b}}", "metadata: {annotations: {a: b}}", `{"metadata":{"annotations":{"a":"b"}}}`},
		{"[metadata]", "metadata: {labels: {a: b}, ownerReferences: []}", "metadata: {ownerReferences: []}", `{"metadata":{"ownerReferences":[]}}`},
		{"[]", "{kind: a, apiVersion: b, spec: {a: x}, status: {a: x}}", "{kind: c, apiVersion: d, spec: {a: x}, status: {a: y}}", ""}, {"[]", "{spec: {a: x}, status: {a: x}}", "{spec: {a: y}}", `{"spec":{"a":"y"},"status":{"a":"x"}}`},
	} {
		k := madeKind(t, "{made.Thing: {spec: made.Inner, status: made.Inner, metadata: meta/v1.ObjectMeta}, made.Inner: {a: string}}", "kinds: [{kind: Thing, type: made.Thing, status: true, statusKeeps: "+c.keeps+"}]")
		tree, old := treeOf(t, c.value), treeOf(t, c.old)
		want, before := c.want, text(old)
		if want == "" {
			want = text(tree)
		}
		changed, err := k.PrepareStatus(tree, old)
		if got := text(tree); err != nil || got != want || changed != (c.want != "") || text(old) != before {
			t.Errorf("%s, %s after %s: %s, %v, %v", c.keeps, c.value, c.old, got, changed, err)
		}
	}
	for _, c := range []struct {
		onCreate, value, want string
		changed               bool
	}{{"false", "status: {a: x}", "{}", true}, {"false", "status: {}", "{}", false}, {"true", "status: {a: x}", `{"status":{"a":"x"}}`, false}} {
		k := madeKind(t, "{made.Thing: {status: made.Inner}, made.Inner: {a: string}}", "kinds: [{kind: Thing, type: made.Thing, status: true, statusOnCreate: "+c.onCreate+"}]")
		tree := treeOf(t, c.value)
		if changed, err := k.Prepare(tree, nil); err != nil || changed != c.changed || text(tree) != c.want {
			t.Errorf("%+v: %v, %v, %v", c, tree, changed, err)
		}
	}
}

// Field selectors read these fields, and tables and selectors have these values.
func TestSelectorsAndCells(t *testing.T) {
	const source = "kinds: [{kind: Thing, type: made.Thing, columns: [{name: a, cell: self.spec.a + kind}, {name: b, cell: self.no}, {name: c, cell: 'null'}, {name: d, cell: root.x}], " +
		"selectors: {spec.a: self.spec.a, other: \"self.x == 1 ? self.spec.b : itself.y\", broken: self.no}}]"
	k := madeKind(t, "{made.Thing: {spec: made.Inner, x: int32}, made.Inner: {a: string, b: string}}", source)
	if got := k.SelectorPaths(); !slices.Equal(got, []string{"spec.a", "x", "spec.b", "no"}) {
		t.Errorf("%q", got)
	}
	tree := treeOf(t, "{spec: {a: x, b: y}, x: 1}")
	if got := text(k.Fields(tree)); got != `{"broken":"","other":"y","spec.a":"x"}` {
		t.Error(got)
	}
	if got := text(k.Row(tree)); got != `["xThing","\u003cerror: self.no: made.Thing has no field no\u003e",null,1]` {
		t.Error(got)
	}
	if got := (&Kind{Type: "made.Thing"}).Fields(tree); got != nil {
		t.Error(got)
	}
	for doc, want := range map[string][3]any{"made.Thing.x": {"made.Thing", "x", true}, "Text. More.": {"", "", false}, "Text": {"", "", false}} {
		name, field, ok := (&Column{Doc: doc}).DocumentedField()
		if got := [3]any{name, field, ok}; got != want {
			t.Errorf("%s: %v", doc, got)
		}
	}
}
