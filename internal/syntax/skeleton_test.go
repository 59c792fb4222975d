package syntax

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The numbered cases are the examples of the first pruning KEP.
var skeletonCases = []struct{ name, src, want string }{
	{"example 1", `{"properties": {"a": {}, "b": {"type": "string"}, "c": {"not": {}}}}`,
		`{"properties":{"a":{},"b":{"type":"string"},"c":{}}}`},
	{"example 2", `{"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}`,
		`{"properties":{"a":{},"b":{}}}`},
	{"example 3", `{"properties": {"a": {}, "b": {"type": "string", "properties": {"x": {}}}}, "anyOf": [{"properties": {"c":{}}}, {"properties": {"d":{"not":{}}}}]}`,
		`{"properties":{"a":{},"b":{"properties":{"x":{}},"type":"string"},"c":{},"d":{}}}`},
	{"example 4", `{"properties": {"a": {"type": "string", "pattern": "<some-long-regex-for-ips>", "format": "ip"}, "b": {"properties": {"x": {}, "y": {}}}}}`,
		`{"properties":{"a":{"type":"string"},"b":{"properties":{"x":{},"y":{}}}}}`},
	{"example 5", `{"anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}], "properties": {"c": {}}}`,
		`{"properties":{"a":{},"b":{"type":"string"},"c":{}}}`},
	// The KEP abbreviates this skeleton to {"properties": {}, "additionalProperties": {}}.
	{"example 6", `{"anyOf": [{"properties": {"a": {"type": "string"}}}, {"additionalProperties": {"type": "integer"}}]}`,
		`{"additionalProperties":{"type":"integer"},"properties":{"a":{"type":"string"}}}`},

	{"the type of a schema holds in branches that are silent", `{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"required":["a"]},{"properties":{"a":{"pattern":"x"}}}]}`,
		`{"properties":{"a":{"type":"string"}},"type":"object"}`},
	{"not in those that contradict", `{"type":"object","anyOf":[{"required":["a"]},{"type":"string"}]}`, `{}`},
	{"however deep", `{"type":"object","anyOf":[{"anyOf":[{"type":"string"},{"type":"object"}]}]}`, `{}`},
	{"a type in all branches only is none of the schema", `{"anyOf":[{"type":"string"},{"type":"string"}]}`, `{}`},
	{"a branch below a branch", `{"anyOf":[{"properties":{"a":{"type":"string"}},"not":{"properties":{"a":{"maxLength":1}}}}]}`, `{"properties":{"a":{"type":"string"}}}`},
	{"int or string", `{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}`, `{}`},
	{"everything that stays", `{"type":"array","items":[{"type":"string"}],"additionalItems":{"type":"string","minLength":1},"properties":{"a":{}},"patternProperties":{"x":{"title":"t"}},"additionalProperties":false,"definitions":{"d":{}},"dependencies":{"a":["b"]},"not":{"items":[{"type":"string"},{"type":"integer"}],"patternProperties":{"y":{}}}}`,
		`{"additionalItems":{"type":"string"},"additionalProperties":false,"items":[{"type":"string"},{"type":"integer"}],"patternProperties":{"x":{},"y":{}},"properties":{"a":{}},"type":"array"}`},
	{"items for all meet items one by one", `{"items":{"type":"string"},"anyOf":[{"items":[{"properties":{"a":{}}},{"properties":{"b":{}}}]}]}`,
		`{"items":{"properties":{"a":{},"b":{}},"type":"string"}}`},
	{"a longer tuple in a branch", `{"items":[{"type":"string"}],"anyOf":[{"items":[{},{"type":"integer"}]}]}`, `{"items":[{"type":"string"},{"type":"integer"}]}`},
	{"items in a branch only", `{"anyOf":[{"items":{"type":"string"}},{}]}`, `{"items":{"type":"string"}}`},
	{"true is the schema that says nothing", `{"anyOf":[{"additionalProperties":true},{"additionalProperties":{"type":"string","properties":{"a":{}}}}]}`, `{"additionalProperties":{"properties":{"a":{}}}}`},
	{"a schema outside governs true inside", `{"additionalProperties":{"type":"string"},"anyOf":[{"additionalProperties":true}]}`, `{"additionalProperties":{"type":"string"}}`},
	{"but not the other way round", `{"additionalProperties":true,"anyOf":[{"additionalProperties":{"type":"string"}}]}`, `{"additionalProperties":{}}`},
	{"false adds nothing", `{"additionalProperties":false,"anyOf":[{"additionalProperties":{"type":"string"}}]}`, `{"additionalProperties":{"type":"string"}}`},
	{"booleans", `{"additionalProperties":false,"anyOf":[{"additionalProperties":true}]}`, `{"additionalProperties":true}`},
}

func TestSkeleton(t *testing.T) {
	for _, c := range skeletonCases {
		s := mustParse(t, c.src)
		before := string(s.AppendJSON(nil))
		if got := string(Skeleton(s).AppendJSON(nil)); got != c.want {
			t.Errorf("%s: %s\ngot  %s\nwant %s", c.name, c.src, got, c.want)
		}
		if after := string(s.AppendJSON(nil)); after != before {
			t.Errorf("%s: the schema was changed to %s", c.name, after)
		}
	}
	if Skeleton(nil) != nil {
		t.Error("nothing has a skeleton")
	}
}

func TestMerge(t *testing.T) {
	for _, c := range []struct {
		src  []string
		want string
	}{
		{nil, `{}`},
		{[]string{`{"type":"string"}`, `{"type":"string"}`}, `{"type":"string"}`},
		{[]string{`{"type":"string"}`, `{}`}, `{}`},
		{[]string{`{"type":"string"}`, `{"type":"integer"}`, `{"type":"string"}`}, `{}`},
		{[]string{`{"properties":{"a":{"type":"string"}}}`, `{"properties":{"b":{"type":"string"}},"anyOf":[{"properties":{"c":{}}}]}`},
			`{"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`},
	} {
		var list []*Schema
		for _, src := range c.src {
			list = append(list, mustParse(t, src))
		}
		if got := string(Merge(list...).AppendJSON(nil)); got != c.want {
			t.Errorf("%v: got %s, want %s", c.src, got, c.want)
		}
	}
	if got := string(Merge(nil, mustParse(t, `{"type":"string"}`)).AppendJSON(nil)); got != `{"type":"string"}` {
		t.Errorf("with nil: %s", got)
	}
}

func TestObjectPolymorphism(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{skeletonCases[5].src, `/`}, // example 6
		{skeletonCases[4].src, ``},
		{`{"properties":{},"patternProperties":{"x":{}}}`, `/`},
		{`{"properties":{"a/b":{"items":[{},{"properties":{"c":{}},"additionalProperties":true}]}},"additionalItems":{"properties":{},"additionalProperties":{"properties":{},"additionalProperties":{}}}}`,
			`/properties/a~1b/items/1 /additionalItems /additionalItems/additionalProperties`},
		{`{"patternProperties":{"^":{"items":{"properties":{},"additionalProperties":false}}}}`, `/patternProperties/^/items`},
	} {
		var got []string
		for _, p := range ObjectPolymorphism(Skeleton(mustParse(t, c.src))) {
			if p.Schema == nil || p.Schema.Properties == nil {
				t.Errorf("%s: not the schema at %s", c.src, p.Pointer)
			}
			if p.Pointer == "" {
				p.Pointer = "/"
			}
			got = append(got, p.Pointer)
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s: %s", c.src, got)
		}
	}
	if ObjectPolymorphism(nil) != nil {
		t.Error("nothing is polymorphic")
	}
}

// TestSkeletonCost checks that nesting logical keywords does not multiply the cost of
// what is below them, and that deep schemas stay within bounds.
func TestSkeletonCost(t *testing.T) {
	const n = 3000
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"p%d":{"type":"string"}`, i)
	}
	leaf := `{"properties":{` + b.String() + `}}`
	src := strings.Repeat(`{"properties":{"own":{}},"anyOf":[`, n) + leaf + strings.Repeat(`]}`, n)
	s := mustParse(t, src)
	start := time.Now()
	skeleton := Skeleton(s)
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
	if len(skeleton.Properties) != n+1 {
		t.Errorf("%d properties", len(skeleton.Properties))
	}

	deep := mustParse(t, strings.Repeat(`{"additionalProperties":true,"properties":{"a":`, n)+`{}`+strings.Repeat(`}}`, n))
	start = time.Now()
	size := 0
	for _, p := range ObjectPolymorphism(deep) {
		size += len(p.Pointer)
	}
	if d := time.Since(start); d > 5*time.Second || size > 2*maxPointerBytes {
		t.Errorf("took %v and %d bytes", d, size)
	}
}
