package conformance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/conformance/oracle"
)

// grammar writes random schemas and random objects over the same few names and values, so that they have something to do
// with each other.
type grammar struct{ *rand.Rand }

func (g grammar) of(list ...string) string { return list[g.IntN(len(list))] }

// schema writes a schema of any form, most of them not structural.
func (g grammar) schema(depth int) string {
	var members []string
	add := func(key, value string) { members = append(members, fmt.Sprintf("%q:%s", key, value)) }
	if g.IntN(5) < 2 {
		add("type", g.of(`"object"`, `"object"`, `"string"`, `"integer"`, `"number"`, `"array"`, `"boolean"`))
	}
	if g.IntN(8) == 0 {
		add("nullable", "true")
	}
	if g.IntN(6) == 0 {
		add(g.keyword())
	}
	if depth > 0 {
		if g.IntN(2) == 0 {
			var list []string
			for _, name := range []string{"a", "b", "metadata"}[:1+g.IntN(3)] {
				list = append(list, fmt.Sprintf("%q:%s", name, g.schema(depth-1)))
			}
			add("properties", "{"+strings.Join(list, ",")+"}")
		} else if g.IntN(6) == 0 {
			add("additionalProperties", g.of("true", "false", g.schema(depth-1), g.schema(depth-1)))
		}
		if g.IntN(7) == 0 {
			add("items", g.schema(depth-1))
		}
		for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
			if g.IntN(7) == 0 {
				var list []string
				for range 1 + g.IntN(3) {
					list = append(list, g.schema(depth-1))
				}
				add(keyword, "["+strings.Join(list, ",")+"]")
			}
		}
		if g.IntN(10) == 0 {
			add("not", g.schema(depth-1))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (g grammar) keyword() (key, value string) {
	all := [][2]string{
		{"enum", g.of(`["x","yy"]`, `[1,2]`, `[true]`, `["x",1]`, `[null,"yy"]`)},
		{"required", g.of(`["a"]`, `["b"]`, `["a","b"]`)},
		{"minimum", "2"}, {"maxLength", "1"}, {"minLength", "2"}, {"pattern", `"^x"`}, {"minItems", "1"}, {"maxItems", "1"},
		{"maxProperties", "1"}, {"minProperties", "1"}, {"format", g.of(`"date"`, `"int32"`, `"unheard-of"`)},
		{"x-kubernetes-preserve-unknown-fields", "true"}, {"x-kubernetes-int-or-string", "true"}, {"x-kubernetes-embedded-resource", "true"},
		{"description", `"said"`}, {"title", `"called"`}, {"default", g.of("1", `"x"`, "{}", "null")}, {"multipleOf", "2"},
	}
	x := all[g.IntN(len(all))]
	return x[0], x[1]
}

// value writes a random value.
func (g grammar) value(depth int) string {
	switch pick := g.IntN(12); {
	case pick < 5 && depth > 0:
		var list []string
		for _, name := range []string{"a", "b", "metadata", "c"} {
			if g.IntN(2) == 0 {
				list = append(list, fmt.Sprintf("%q:%s", name, g.value(depth-1)))
			}
		}
		return "{" + strings.Join(list, ",") + "}"
	case pick < 6 && depth > 0:
		var list []string
		for range g.IntN(3) {
			list = append(list, g.value(depth-1))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	return g.of("null", "true", "1", "2", "4.5", "65", `"x"`, `"yy"`, `"2020-02-02"`, `""`, "{}", "[]", `"x2"`)
}

func (g grammar) object() string {
	var list []string
	for _, name := range []string{"a", "b", "c"} {
		if g.IntN(4) > 0 {
			list = append(list, fmt.Sprintf("%q:%s", name, g.value(3)))
		}
	}
	return `{"apiVersion":"orchard.example/v1","kind":"Tree","metadata":{"name":"x"}` + strings.Join(append([]string{""}, list...), ",") + "}"
}

// TestFixRandom fixes random schemas. Whatever the old one accepts of a lot of random objects, the new one accepts.
func TestFixRandom(t *testing.T) {
	schemas, objects := 600, 60
	if testing.Short() {
		schemas = 200
	}
	var counts fixCounts
	for seed := range schemas {
		g := grammar{rand.New(rand.NewPCG(uint64(seed), 9))}
		schema := g.schema(3)
		if v := oracle.Check([]byte(schema), false); v.Panic != nil || v.Undecodable != nil || len(v.All()) == 0 {
			continue
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := runFix(t, fixCase{Schema: []byte(schema)}, 0, &counts)
			if !r.Changed || t.Failed() {
				if t.Failed() {
					t.Logf("%s", schema)
				}
				return
			}
			fixed := schemaOf(t, r.JSON)
			j := validators(t, []byte(schema), fixed, assumption(t, r, fixed))
			if j == nil {
				return
			}
			for range objects {
				if j.validate(t, []byte(g.object()), fixed) {
					counts.objects++
				}
				if t.Failed() {
					t.Fatalf("%s\n%+v", schema, r.Notes)
				}
			}
		})
	}
	t.Log(counts)
	if counts.fixed < schemas/4 || counts.objects < schemas {
		t.Errorf("too little was fixed: %v", counts)
	}
}
