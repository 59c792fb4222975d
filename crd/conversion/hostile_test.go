package conversion_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/internal/costtest"
)

// between is a CRD with rules between v1 and v2, whose schemas have these properties.
func between(rules, v1, v2 string) string {
	const version = "  - {name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {%s}}}}\n"
	rules = "conversions:\n- between: [v1, v2]\n" + strings.TrimRight(rules, "\n")
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: widgets.example.com\n  annotations:\n    conversion.espalier.dev/rules: |\n      " +
		strings.ReplaceAll(rules, "\n", "\n      ") + "\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {plural: widgets, kind: Widget}\n  versions:\n" +
		fmt.Sprintf(version, "v1", true, v1) + fmt.Sprintf(version, "v2", false, v2)
}

// A rule about a part of a field that another rule is about as a whole has no meaning: conversion panicked. An item or map
// value that is made of nothing, or becomes nothing, has no place: its value was lost.
func TestRulesThatOverlap(t *testing.T) {
	const (
		a = "a: {type: object, properties: {x: {type: string}, z: {type: string}}}, m: {type: object, additionalProperties: {type: string}}"
		b = "b: {type: object, properties: {x: {type: string}, z: {type: string}}}, c: {type: string}, m: {type: object, additionalProperties: {type: string}}"
	)
	for _, c := range []struct{ name, rules, want string }{
		{"part of what is preserved", "  rules:\n  - move: {from: a.x, to: c}\n  preserve: {v1: [a], v2: [b]}", "a.x of v1 is a part of a"},
		{"part of what is lost", "  rules:\n  - move: {from: a.x, to: c}\n  lost: {v1: [a], v2: [b]}", "a.x of v1 is a part of a"},
		{"part of what is calculated", "  rules:\n  - move: {from: a.x, to: c}\n  - cel: {from: a, to: b, value: self.a, back: self.b}", "a.x of v1 is a part of a"},
		{"whole and part in one rule", "  rules:\n  - cel: {from: [a, a.x], to: [b, c], value: [self.a, self.a.x], back: [self.b, self.c]}", "a.x of v1 is a part of a"},
		{"preserved part of what is lost", "  preserve: {v1: [a.x], v2: [b, c]}\n  lost: {v1: [a]}", "a.x of v1 is a part of a"},
		{"constant values of a map", "  rules:\n  - constant: {in: v2, path: 'm[*]', value: k}\n  preserve: everything", "constant cannot set m[*]"},
		{"preserved values of a map", "  preserve: {v1: [a, 'm[*]'], v2: [b, c, 'm[*]']}", "m[*] of v1 has no place in the list or map without its value: write m"},
		{"lost values of a map", "  preserve: {v1: [a], v2: [b, c]}\n  lost: {v1: ['m[*]'], v2: ['m[*]']}", "m[*] of v1 has no place in the list or map without its value: write m"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, found, err := conversion.Compile(parse(t, between(c.rules, a, b)))
			if err != nil || p != nil {
				t.Fatalf("%v, %v", p, err)
			}
			for _, f := range found {
				if strings.Contains(f.Detail, c.want) {
					return
				}
			}
			t.Errorf("got %v", found)
		})
	}
}

// returns checks that an object comes back from the other version as it was.
func returns(t *testing.T, p *conversion.Plan, version, rest string) {
	t.Helper()
	in := object(t, version, rest)
	there := convert(t, p, in, map[string]string{"v1": "v2", "v2": "v1"}[version])
	if back := convert(t, p, there, version); back != in {
		t.Errorf("%s\nbecame %s\nand came back as %s", in, there, back)
	}
}

// Fields that the other version does not have were lost if they were in a list or map that is itself a value of a map.
func TestPreservedInMapsOfLists(t *testing.T) {
	const (
		keyed  = "m: {type: object, additionalProperties: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}%s}}}}"
		plain  = "m: {type: object, additionalProperties: {type: array, items: {type: object, properties: {name: {type: string}%s}}}}"
		nested = "m: {type: object, additionalProperties: {type: object, additionalProperties: {type: object, properties: {name: {type: string}%s}}}}"
		list   = "l: {type: array, items: {type: object, properties: {k: {type: string}, v: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, old: {type: string}}}}}}}"
		old    = ", old: {type: string}"
	)
	for _, c := range []struct{ name, rules, v1, v2, object string }{
		{"keyed lists", "", fmt.Sprintf(keyed, old), fmt.Sprintf(keyed, ""), `{"m":{"a":[{"name":"x","old":"1"},{"name":"y"}],"b":[],"c":[{"name":"z","old":"2"}]}}`},
		{"lists", "", fmt.Sprintf(plain, old), fmt.Sprintf(plain, ""), `{"m":{"a":[{"name":"x","old":"1"},{"name":"y"}],"b":[]}}`},
		{"maps", "", fmt.Sprintf(nested, old), fmt.Sprintf(nested, ""), `{"m":{"a":{"x":{"name":"x","old":"1"},"~":{"old":"2"}},"b":{},"~":{"":{"old":"3"}}}}`},
		{"lists in a list that becomes a map", "  rules:\n  - listToMap: {list: l, key: k, value: v, map: m}\n", list, fmt.Sprintf(keyed, ""), `{"l":[{"k":"b","v":[{"name":"x","old":"1"}]},{"k":"a","v":[{"name":"y"}]}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			returns(t, compile(t, between(c.rules+"  preserve: everything", c.v1, c.v2)), "v1", c.object)
		})
	}
}

// A saved field comes back if the object around it is there, although the object around that one is gone because rules
// have moved all that it held.
func TestPreservedInMovedObjects(t *testing.T) {
	p := compile(t, between("  rules:\n  - move: {from: spec.template.config, to: spec.config}\n  preserve: everything",
		"spec: {type: object, properties: {template: {type: object, properties: {config: {type: object, properties: {size: {type: integer}, old: {type: string}}}, name: {type: string}}}}}",
		"spec: {type: object, properties: {template: {type: object, properties: {name: {type: string}}}, config: {type: object, properties: {size: {type: integer}}}}}"))
	returns(t, p, "v1", `{"spec":{"template":{"config":{"old":"x"}}}}`)
	returns(t, p, "v1", `{"spec":{"template":{"config":{"old":"x","size":1}}}}`)
	returns(t, p, "v1", `{"spec":{"template":{"config":{"old":"x","size":1},"name":"n"}}}`)
}

// A value that CEL calculates and the server prunes is saved with what it becomes: otherwise the pruned value looks like a
// change by a user, and what was saved is gone.
func TestCalculatedValuesFit(t *testing.T) {
	p := compile(t, between("  rules:\n  - cel: {from: old, to: new, value: '{\"size\": self.old, \"other\": self.old}', back: self.new.size}\n",
		"old: {type: integer}", "new: {type: object, properties: {size: {type: integer}}}"))
	there := convert(t, p, object(t, "v1", `{"old":1}`), "v2")
	if strings.Contains(there, `"other":1`) || !strings.Contains(there, "preserved") {
		t.Errorf("got %s", there)
	}
}

// Users may write the annotation: an entry of a list with very many members is read once, not for each item.
func TestForgedEntries(t *testing.T) {
	p := compile(t, widgets)
	for name, item := range map[string]string{"items with other keys": "p%d", "items with the same key": "x"} {
		t.Run(name, func(t *testing.T) {
			var entry, items strings.Builder
			for i := range 20000 {
				fmt.Fprintf(&entry, `"%d":0,`, i)
				items.WriteString(`{"name":"` + strings.ReplaceAll(item, "%d", fmt.Sprint(i)) + `"},`)
			}
			payload, err := json.Marshal(`{"v1alpha1":{"spec":{"ports":[{` + entry.String() + `"name":"x"}]}}}`)
			if err != nil {
				t.Fatal(err)
			}
			in := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","annotations":{"conversion.espalier.dev/preserved":` + string(payload) + `}},` +
				`"spec":{"ports":[` + strings.TrimSuffix(items.String(), ",") + `]}}`
			costtest.Within(t, time.Second, func() { convert(t, p, in, "v1alpha1") })
		})
	}
}

// Lists in lists that become maps, in an order that maps do not hold, were converted twice at each level.
func TestDeepListsToMaps(t *testing.T) {
	const depth = 24
	lists, mappings, rules := `{type: string}`, `{type: string}`, ""
	in := `"x"`
	for i := range depth {
		lists = `{type: array, items: {type: object, properties: {k: {type: string}, v: ` + lists + `}}}`
		mappings = `{type: object, additionalProperties: {type: object, properties: {v: ` + mappings + `}}}`
		rules += fmt.Sprintf("  - listToMap: {list: 'v%s', key: k, map: 'v%s'}\n", strings.Repeat("[].v", i), strings.Repeat("[*].v", i))
		in = `[{"k":"b","v":` + in + `},{"k":"a"}]`
	}
	p := compile(t, between("  rules:\n"+rules, "v: "+lists, "v: "+mappings))
	costtest.Within(t, time.Second, func() { returns(t, p, "v1", `{"v":`+in+`}`) })
}

// What CEL expressions may cost is bounded for the object, not for each item of a list.
func TestCELCostOfObject(t *testing.T) {
	const ten = "[1,2,3,4,5,6,7,8,9,10]"
	for name, expression := range map[string]string{
		"each within the limit": fmt.Sprintf("%[1]s.all(a, %[1]s.all(a, %[1]s.all(a, %[1]s.all(a, a < 11)))) ? self.x : self.x", ten),
		"each beyond the limit": fmt.Sprintf("%[1]s.all(a, %[1]s.all(a, %[1]s.all(a, %[1]s.all(a, %[1]s.all(a, %[1]s.all(a, a < 11)))))) ? self.x : self.x", ten),
	} {
		t.Run(name, func(t *testing.T) {
			p := compile(t, between("  rules:\n  - cel: {from: 'l[].x', to: 'l[].z', value: '"+expression+"', back: self.z}\n",
				"l: {type: array, items: {type: object, properties: {x: {type: string}}}}", "l: {type: array, items: {type: object, properties: {z: {type: string}}}}"))
			in := object(t, "v1", `{"l":[{"x":"a"}`+strings.Repeat(`,{"x":"a"}`, 5000)+`]}`)
			var err error
			costtest.Within(t, 20*time.Second, func() { _, err = p.Convert(nil, []byte(in), "v2") })
			if err == nil || !strings.Contains(err.Error(), `converting "w" from v1 to v2 failed: the CEL expressions of the conversion rules cost more than`) {
				t.Error(err)
			}
		})
	}
	p := compile(t, between("  rules:\n  - cel: {from: 'l[].x', to: 'l[].z', value: 'self.x + 1', back: 'self.z - 1'}\n",
		"l: {type: array, items: {type: object, properties: {x: {type: integer}}}}", "l: {type: array, items: {type: object, properties: {z: {type: integer}}}}"))
	returns(t, p, "v1", `{"l":[{"x":1}`+strings.Repeat(`,{"x":1}`, 20_000)+`]}`)
}

// A conversion is a function of the object, also where CEL visits a map.
func TestCELVisitsMapsInOrder(t *testing.T) {
	for _, expression := range []string{
		`self.m.map(k, k + self.m[k])`,
		`self.m.transformList(k, v, k + v)`,
		`self.m.transformMap(k, v, v).map(k, k)`,
		`{"a": {"x": self.m, "y": self.m}}.map(k, k)`,
		`{"d": self.m, "c": self.m, "b": self.m, "a": self.m}.map(k, k)`,
		`[self.m].map(x, x.map(k, k))[0]`,
		`(self.m.size() > 1 ? self.m.transformMap(k, v, v) : self.m).filter(k, true)`,
		`self.m.transformMap(k, v, {k: v, dyn("z"): v, dyn("x"): v, dyn("w"): v}).transformList(k, v, v.map(x, x).join("/"))`,
	} {
		t.Run(expression, func(t *testing.T) {
			p := compile(t, between("  rules:\n  - cel: {from: m, to: l, value: '"+expression+"'}\n",
				"m: {type: object, additionalProperties: {type: string}}", "l: {type: array, items: {type: string}}"))
			in := object(t, "v1", `{"m":{"d":"4","a":"1","c":"3","b":"2"}}`)
			first := convert(t, p, in, "v2")
			if !strings.Contains(first, `"l":["`) {
				t.Fatal(first)
			}
			for range 50 {
				if again := convert(t, p, in, "v2"); again != first {
					t.Fatalf("%s\nthen %s", first, again)
				}
			}
		})
	}
}
