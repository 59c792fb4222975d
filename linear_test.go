package espalier_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/costtest"
)

// hostileSchema gives each family of objects below a part of its own.
const hostileSchema = `{"type":"object","properties":{
	"deep":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
	"map":{"type":"object","additionalProperties":{"type":"string","nullable":true}},
	"closed":{"type":"object","properties":{"known":{"type":"string","default":"x"},"other":{"type":"integer"}}},
	"list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer","default":1},"b":{"type":"string"}}}},
	"lists":{"type":"array","items":{"type":"array","items":{"type":"string"}}},
	"text":{"type":"string"},
	"embedded":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","properties":{"labels":{"type":"object","additionalProperties":{"type":"string"}}}}}}
}}`

// hostileObjects are families of objects that grow with n.
var hostileObjects = map[string]func(n int) string{
	"depth": func(n int) string {
		n = min(n, 9990)
		return `{"deep":` + strings.Repeat(`{"b":`, n) + `1` + strings.Repeat(`,"a":2}`, n) + `}`
	},
	"depth-arrays": func(n int) string {
		n = min(n, 9990)
		return `{"lists":` + strings.Repeat(`[`, n) + strings.Repeat(`]`, n) + `}`
	},
	"depth-unspecified": func(n int) string {
		n = min(n, 9990)
		return `{"closed":` + strings.Repeat(`{"known":`, n) + `1` + strings.Repeat(`}`, n) + `}`
	},
	"width-sorted":   func(n int) string { return `{"map":{` + members(n, `"key%08d":"v"`, 1) + `}}` },
	"width-unsorted": func(n int) string { return `{"map":{` + members(n, `"key%08d":"v"`, 7919) + `}}` },
	"width-long-prefix": func(n int) string {
		return `{"map":{` + members(n, `"a-prefix-that-they-all-have%08d":"v"`, 7919) + `}}`
	},
	"width-escaped-keys": func(n int) string { return `{"map":{` + members(n, `"\u006bey%08d":"v"`, 7919) + `}}` },
	"duplicate-keys":     func(n int) string { return `{"map":{` + members(n, `"key":"%08d"`, 1) + `}}` },
	"duplicate-pairs": func(n int) string {
		return `{"map":{` + members(n, `"key%08d":"v"`, 7919) + `,` + members(n, `"key%08d":"w"`, 1) + `}}`
	},
	"unknown-fields":      func(n int) string { return `{"closed":{` + members(n, `"unknown%08d":1`, 7919) + `}}` },
	"unknown-root":        func(n int) string { return `{` + members(n, `"unknown%08d":{"a":[1]}`, 7919) + `}` },
	"nulls":               func(n int) string { return `{"map":{` + members(n, `"key%08d":null`, 7919) + `}}` },
	"items":               func(n int) string { return `{"list":[` + members(n, `{"b":"%08d"}`, 1) + `]}` },
	"items-mismatched":    func(n int) string { return `{"list":[` + members(n, `{"c":%d,"b":1}`, 1) + `]}` },
	"long-string":         func(n int) string { return `{"text":"` + strings.Repeat("abcdefghijklmnop", n) + `"}` },
	"long-string-escaped": func(n int) string { return `{"text":"` + strings.Repeat(`\u00e9\n<"`[:9], n) + `"}` },
	"long-string-unicode": func(n int) string { return `{"text":"` + strings.Repeat("é漢\u2028", n) + `"}` },
	"long-key":            func(n int) string { return `{"map":{"` + strings.Repeat("abcdefghijklmnop", n) + `":"v"}}` },
	"long-number":         func(n int) string { return `{"deep":{"n":0.` + strings.Repeat("12345678", n) + `}}` },
	"whitespace":          func(n int) string { return `{` + strings.Repeat(" \n\t\r", 4*n) + `}` },
	"metadata-labels":     func(n int) string { return `{"metadata":{"labels":{` + members(n, `"key%08d":"v"`, 7919) + `}}}` },
	"metadata-unknown":    func(n int) string { return `{"metadata":{` + members(n, `"key%08d":"v"`, 7919) + `}}` },
	"metadata-owners": func(n int) string {
		return `{"metadata":{"ownerReferences":[` + members(n, `{"name":"%08d"}`, 1) + `]}}`
	},
	"metadata-malformed": func(n int) string { return `{"metadata":{"labels":{` + members(n, `"key%08d":1`, 1) + `}}}` },
	"embedded-labels": func(n int) string {
		return `{"embedded":{"metadata":{"labels":{` + members(n, `"key%08d":null`, 1) + `}}}}`
	},
	"syntax-error-at-end":  func(n int) string { return `{"map":{` + members(n, `"key%08d":"v"`, 7919) + `}` },
	"deep-then-unfinished": func(n int) string { return strings.Repeat(`{"a":`, min(n, 9990)) },
}

// members joins n members, numbered in steps so that their order is not sorted.
func members(n int, format string, step int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, format, i*step%n)
	}
	return b.String()
}

// The sizes to which a family grows.
var factors = [...]int{1, 10, 100}

// sizes returns the inputs of a family: about 10 kB, 100 kB and 1 MB.
func sizes(family func(int) string) (inputs [len(factors)][]byte) {
	base := max(20, 10_000*10/len(family(10)))
	if len(family(100_000)) == len(family(200_000)) {
		base = 100 // the family is bounded by the depth limit
	}
	for i, f := range factors {
		inputs[i] = []byte(family(base * f))
	}
	return inputs
}

// checkLinear grows a family tenfold and a hundredfold and demands that time
// and memory grow about as fast as the input. For scattered families the known
// algorithm that costtest compares with is encoding/json.
func checkLinear(t *testing.T, family func(int) string, scattered bool, run func([]byte)) {
	t.Helper()
	costtest.Limit(t)
	var inputs []costtest.Input
	for _, b := range sizes(family) {
		input := costtest.Input{Size: len(b), Run: func() { run(b) }}
		if scattered {
			input.Scattered = costtest.ReadJSON(b)
		}
		inputs = append(inputs, input)
	}
	costtest.Linear(t, inputs...)
}

// scattered are the families of objects and schemas whose members have to be
// sorted, or compared across the document, or for which the stack has to grow.
var scattered = regexp.MustCompile(`^(depth|width|duplicate|unknown|nulls|metadata|embedded|map-keys|violations|default|enum|required)`)

func TestObjectCostIsLinear(t *testing.T) {
	costtest.Limit(t)
	schema, err := espalier.Compile([]byte(hostileSchema), espalier.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, family := range hostileObjects {
		t.Run(name, func(t *testing.T) {
			checkLinear(t, family, scattered.MatchString(name), func(b []byte) {
				_, _ = schema.Normalize(b, espalier.NormalizeOptions{})
			})
		})
		t.Run(name+"/storage", func(t *testing.T) {
			checkLinear(t, family, scattered.MatchString(name), func(b []byte) {
				_, _ = schema.Normalize(b, espalier.NormalizeOptions{Source: espalier.Storage})
			})
		})
		if !strings.HasPrefix(name, "depth") { // paths are as long as the object is deep; Report bounds them
			t.Run(name+"/report", func(t *testing.T) {
				checkLinear(t, family, scattered.MatchString(name), func(b []byte) {
					_, _ = schema.Normalize(b, espalier.NormalizeOptions{Report: new(espalier.Report)})
				})
			})
		}
	}
}

// hostileSchemas are families of schemas that grow with n.
var hostileSchemas = map[string]func(n int) string{
	"depth": func(n int) string {
		n = min(n, 4900)
		return strings.Repeat(`{"type":"object","properties":{"a":`, n) + `{"type":"string"}` + strings.Repeat(`}}`, n)
	},
	"depth-logical": func(n int) string {
		n = min(n, 4900)
		return `{"type":"object","not":` + strings.Repeat(`{"allOf":[`, n) + `{}` + strings.Repeat(`]}`, n) + `}`
	},
	"width": func(n int) string {
		return `{"type":"object","properties":{` + members(n, `"p%08d":{"type":"string","default":"x"}`, 7919) + `}}`
	},
	"width-collide": func(n int) string {
		return `{"type":"object","properties":{` + members(n, `"aaaaaaaa%08dzzzzzzzz":{"type":"string"}`, 7919) + `}}`
	},
	"violations": func(n int) string {
		return `{"type":"object","properties":{` + members(n, `"p%08d":{"nullable":true}`, 7919) + `}}`
	},
	"unknown": func(n int) string { return `{"type":"object",` + members(n, `"k%08d":1`, 7919) + `}` },
	"duplicates": func(n int) string {
		return `{"type":"object","properties":{` + members(n, `"p":{"type":"string","maxLength":%d}`, 1) + `}}`
	},
	"map-keys": func(n int) string {
		return `{"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":[` + members(n, `"p%08d"`, 1) +
			`],"items":{"type":"object","properties":{` + members(n, `"p%08d":{"type":"string"}`, 1) + `}}}}}`
	},
	"enum": func(n int) string {
		return `{"type":"object","properties":{"e":{"type":"string","enum":[` + members(n, `"v%08d"`, 1) + `]}}}`
	},
	"required": func(n int) string { return `{"type":"object","required":[` + members(n, `"v%08d"`, 1) + `]}` },
	"default": func(n int) string {
		return `{"type":"object","properties":{"d":{"type":"object","additionalProperties":{"type":"integer"},"default":{` + members(n, `"v%08d":1`, 7919) + `}}}}`
	},
	"defaults-below-defaults": func(n int) string {
		return `{"type":"object","properties":{"d":{"type":"object","default":{},"properties":{` + members(n, `"v%08d":{"type":"integer","default":1}`, 1) + `}}}}`
	},
}

func TestSchemaCostIsLinear(t *testing.T) {
	costtest.Limit(t)
	for name, family := range hostileSchemas {
		t.Run(name, func(t *testing.T) {
			checkLinear(t, family, scattered.MatchString(name), func(b []byte) {
				_, _ = espalier.Compile(b, espalier.CompileOptions{})
			})
		})
	}
}

// hostileDefaults are families of schemas with defaults that grow with n. What
// compiling makes of nested defaults has the size of all of them filled in;
// checking has not.
var hostileDefaults = map[string]func(n int) string{
	"default-depth": func(n int) string {
		n = min(n, 4900)
		return strings.Repeat(`{"type":"object","default":{},"properties":{"a":`, n) + `{"type":"string"}` + strings.Repeat(`}}`, n)
	},
	"default-width": func(n int) string {
		return `{"type":"object","properties":{` + members(n, `"p%08d":{"type":"string","pattern":"^x","default":"x"}`, 7919) + `}}`
	},
	"default-valid": func(n int) string {
		return `{"type":"object","properties":{"d":{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer","minimum":0}},"required":["a"]},"default":[` +
			members(n, `{"a":%d}`, 1) + `]}}}`
	},
	"default-violations": func(n int) string {
		return `{"type":"object","properties":{"d":{"type":"array","items":{"type":"string","maxLength":3},"default":[` + members(n, `"v%08d"`, 1) + `]}}}`
	},
	"default-unknown": func(n int) string {
		return `{"type":"object","properties":{"d":{"type":"object","default":{` + members(n, `"v%08d":1`, 7919) + `}}}}`
	},
	"default-duplicates": func(n int) string {
		return `{"type":"object","properties":{"d":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"default":{` + members(n, `"v":%d`, 1) + `}}}}`
	},
	"default-logical": func(n int) string {
		return `{"type":"object","properties":{"d":{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"}},"anyOf":[{"required":["b"]},{"properties":{"a":{"minimum":0}}}]},"default":[` +
			members(n, `{"a":%d}`, 1) + `]}}}`
	},
	"default-embedded": func(n int) string {
		return `{"type":"object","properties":{"d":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"default":{"apiVersion":"v1","kind":"K","metadata":{"labels":{` +
			members(n, `"k%08d":"v"`, 7919) + `}}}}}}`
	},
	"default-metadata": func(n int) string {
		return `{"type":"object","properties":{"d":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","properties":{"labels":{"type":"object","properties":{` +
			members(n, `"k%08d":{"type":"string","default":"v"}`, 7919) + `}}}}}}}}`
	},
	"default-unchecked": func(n int) string {
		return `{"type":"object","properties":{"d":{"type":"object","additionalProperties":{"type":"object","properties":{` + members(n, `"p%08d":{"type":"string","default":1}`, 7919) + `}}}}}`
	},
}

func TestDefaultCostIsLinear(t *testing.T) {
	costtest.Limit(t)
	for name, family := range hostileDefaults {
		if _, err := espalier.Check([]byte(family(20)), espalier.CheckOptions{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Run(name, func(t *testing.T) {
			checkLinear(t, family, scattered.MatchString(name), func(b []byte) {
				_, _ = espalier.Check(b, espalier.CheckOptions{})
			})
		})
	}
}

// TestHostileInputsAgree makes sure that the families do what their names say
// and that nothing of them is lost unnoticed.
func TestHostileInputsAgree(t *testing.T) {
	schema, err := espalier.Compile([]byte(hostileSchema), espalier.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, family := range hostileObjects {
		report := new(espalier.Report)
		with, errWith := schema.Normalize([]byte(family(40)), espalier.NormalizeOptions{Report: report})
		without, err := schema.Normalize([]byte(family(40)), espalier.NormalizeOptions{})
		if (err == nil) != (errWith == nil) || !bytes.Equal(with.Bytes, without.Bytes) || with.Changes != without.Changes {
			t.Errorf("%s: a report changes the result: %s %v / %s %v", name, with.Bytes, with.Changes, without.Bytes, without.Changes)
		}
		var reported espalier.Changes
		for _, c := range report.Changes {
			reported |= c.What
		}
		if err == nil && reported != with.Changes {
			t.Errorf("%s: changes %v, reported %v", name, with.Changes, reported)
		}
	}
}
