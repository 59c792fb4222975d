package mutate

import (
	"strings"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// A mutation edits the schema at a site. It reports whether it found something to do.
type mutation struct {
	name   string
	weight int
	apply  func(g *gardener, s *site) bool
}

var table []mutation

var totalWeight int

// The table is filled here because its functions grow nested schemas, which use the table's parts in turn.
func init() {
	table = []mutation{
		{"type", 8, mutateType},
		{"logical", 14, addLogical},
		{"metadata", 6, addMetadata},
		{"list", 10, mutateList},
		{"list-key", 8, mutateListKey},
		{"map-type", 3, setMember("x-kubernetes-map-type", `"atomic"`, `"granular"`, `"separable"`, `""`, `null`)},
		{"int-or-string", 8, addIntOrString},
		{"preserve", 5, setMember("x-kubernetes-preserve-unknown-fields", "true", "true", "true", "false", "null")},
		{"embedded", 7, addEmbedded},
		{"additional", 7, addAdditional},
		{"items", 6, mutateItems},
		{"forbidden", 7, addForbidden},
		{"pattern", 4, addPattern},
		{"null", 5, nullKeyword},
		{"wrong-type", 8, wrongType},
		{"unknown", 3, addUnknown},
		{"default", 8, addDefault},
		{"incomplete", 7, addIncomplete},
		{"root", 6, mutateRoot},
		{"rules", 4, addRules},
		{"empty", 5, addEmpty},
		{"value", 6, addValueValidation},
		{"nullable", 5, setMember("nullable", "true", "true", "false", "null")},
		{"drop", 4, dropKeyword},
		{"graft", 4, graft},
		{"name", 4, addNamedProperty},
		{"case", 2, changeCase},
	}
	for _, m := range table {
		totalWeight += m.weight
	}
}

func pick(g *gardener) mutation {
	at := g.IntN(totalWeight)
	for _, m := range table {
		if at -= m.weight; at < 0 {
			return m
		}
	}
	panic("unreachable")
}

// setMember is the mutation that sets a keyword to one of some values.
func setMember(keyword string, options ...string) func(*gardener, *site) bool {
	return func(g *gardener, s *site) bool {
		s.n.Set(keyword, g.node(options...))
		return true
	}
}

func mutateType(g *gardener, s *site) bool {
	if g.one(3) {
		if s.n.Find("type") < 0 {
			return false
		}
		s.n.Del("type")
		return true
	}
	s.n.Set("type", tree.Str(g.choose("object", "array", "string", "integer", "number", "boolean", "null", "foo", "", "Object", "int")))
	return true
}

func addLogical(g *gardener, s *site) bool {
	kw := g.choose("allOf", "anyOf", "oneOf", "not")
	if kw == "not" {
		s.n.Set(kw, g.nested(s.n, 2))
		return true
	}
	list := tree.Arr()
	for range 1 + g.IntN(3) {
		list.Kids = append(list.Kids, g.nested(s.n, 2))
	}
	if g.one(12) {
		list.Kids = append(list.Kids, g.node("null", "{}", "{}", "[]", "3"))
	}
	s.n.Set(kw, list)
	return true
}

// nested grows a schema as it stands below allOf, anyOf, oneOf or not of outer: mostly about things that outer has.
func (g *gardener) nested(outer *tree.Node, depth int) *tree.Node {
	n := tree.Obj()
	if props := outer.Get("properties"); props != nil && props.Kind == tree.Object && len(props.Kids) > 0 && !g.one(3) {
		inner := tree.Obj()
		for range 1 + g.IntN(2) {
			i := g.IntN(len(props.Kids))
			name := tree.Unquote(props.Keys[i])
			if g.one(6) {
				name = g.choose("metadata", "absent", "spec", "name")
			}
			if depth > 0 {
				inner.Set(name, g.nested(props.Kids[i], depth-1))
			} else {
				inner.Set(name, tree.Obj())
			}
		}
		n.Add("properties", inner)
	}
	if items := outer.Get("items"); items != nil && g.one(2) || g.one(12) {
		if depth > 0 && items != nil {
			n.Add("items", g.nested(items, depth-1))
		} else {
			n.Add("items", tree.Obj())
		}
	}
	if depth > 0 && g.one(5) {
		n.Add(g.choose("allOf", "anyOf", "oneOf"), tree.Arr(g.nested(outer, depth-1)))
	}
	for range g.IntN(3) {
		mem := g.choose(
			`{"type":"object"}`, `{"type":"string"}`, `{"type":"integer"}`, `{"description":"d"}`, `{"title":"t"}`, `{"default":1}`, `{"default":null}`,
			`{"nullable":true}`, `{"nullable":false}`, `{"x-kubernetes-preserve-unknown-fields":true}`, `{"x-kubernetes-preserve-unknown-fields":false}`,
			`{"x-kubernetes-embedded-resource":true}`, `{"x-kubernetes-embedded-resource":false}`, `{"x-kubernetes-int-or-string":true}`,
			`{"x-kubernetes-list-type":"set"}`, `{"x-kubernetes-list-map-keys":["a"]}`, `{"x-kubernetes-map-type":"atomic"}`,
			`{"x-kubernetes-validations":[{"rule":"true"}]}`, `{"additionalProperties":true}`, `{"additionalProperties":false}`,
			`{"additionalProperties":{"type":"string"}}`, `{"additionalProperties":{}}`, `{"required":["a"]}`, `{"minLength":1}`, `{"pattern":"^a"}`, `{"pattern":"["}`,
			`{"enum":["a",null,1.0]}`, `{"maximum":3}`, `{"minProperties":1}`, `{"maxItems":4}`, `{"format":"int32"}`, `{"uniqueItems":true}`,
			`{"example":1}`, `{"externalDocs":{"url":"u"}}`, `{"$ref":"#"}`, `{"not":{"type":"object"}}`, `{"not":{}}`)
		merge(n, tree.Must(mem))
	}
	return n
}

// merge adds the members of b to a.
func merge(a, b *tree.Node) {
	for i, k := range b.Keys {
		a.Set(tree.Unquote(k), b.Kids[i])
	}
}

func addMetadata(g *gardener, s *site) bool {
	s.n.Have("properties", tree.Object).Set(g.choose("metadata", "metadata", "metadata", "kind", "apiVersion"), g.node(
		`{"type":"object"}`, `{"type":"string"}`, `{}`, `null`, `{"type":"object","properties":{"name":{"type":"string","maxLength":5}}}`,
		`{"type":"object","properties":{"name":{"type":"string"},"generateName":{"type":"string","pattern":"^a"}}}`,
		`{"type":"object","properties":{"labels":{"type":"object"}}}`, `{"type":"object","properties":{}}`,
		`{"type":"object","properties":{"name":{"type":"string"},"labels":{"type":"object","additionalProperties":{"type":"string","default":"x"}}}}`,
		`{"type":"object","required":["name"]}`, `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`, `{"type":"object","description":"d"}`,
		`{"type":"object","title":"t"}`, `{"type":"object","nullable":true}`, `{"type":"object","default":{}}`, `{"type":"object","additionalProperties":true}`,
		`{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"a":{"type":"string"}}}`, `{"type":"object","minProperties":1}`,
		`{"type":"object","properties":{"name":{"type":"string","default":"x"}}}`, `{"type":"object","anyOf":[{"required":["name"]}]}`,
		`{"type":"object","properties":{"a":{"type":"object","properties":{"metadata":{"type":"string"}}}}}`,
		`{"type":"object","enum":[]}`, `{"type":"object","required":[]}`, `{"type":"object","allOf":[]}`, `{"type":"object","example":{}}`, `{"type":"object","format":"x"}`))
	return true
}

// addIntOrString plants the exempted pattern, exactly, nearly, or with neighbours.
func addIntOrString(g *gardener, s *site) bool {
	pattern := g.choose(
		`[{"type":"integer"},{"type":"string"}]`, `[{"type":"integer"},{"type":"string"}]`, `[{"type":"integer"},{"type":"string"}]`,
		`[{"type":"string"},{"type":"integer"}]`, `[{"type":"integer"},{"type":"string"},{"type":"string"}]`, `[{"type":"integer"}]`,
		`[{"type":"integer"},{"type":"string","pattern":"^a"}]`, `[{"type":"integer","required":[]},{"type":"string"}]`,
		`[{"type":"integer","enum":[]},{"type":"string"}]`, `[{"type":"integer","properties":{}},{"type":"string"}]`,
		`[{"type":"integer","allOf":[]},{"type":"string","anyOf":[]}]`, `[{"type":"integer","description":""},{"type":"string","format":""}]`,
		`[{"type":"integer","x-kubernetes-validations":[]},{"type":"string"}]`, `[{"type":"integer","default":null},{"type":"string"}]`,
		`[{"type":"integer","nullable":false},{"type":"string","x-kubernetes-list-map-keys":[]}]`, `[{"type":"integer","items":null},{"type":"string"}]`,
		`[{"type":"integer","items":3},{"type":"string"}]`, `[{"type":"integer","additionalProperties":false},{"type":"string"}]`,
		`[{"type":"integer","maximum":null},{"type":"string","not":null}]`, `[{"type":"integer","not":{}},{"type":"string"}]`,
		`[{"type":"integer","definitions":{}},{"type":"string","patternProperties":{}}]`, `[{"type":"integer","unknown":1},{"type":"string"}]`,
		`[{"type":"integer","example":1},{"type":"string"}]`, `[{"type":"integer","externalDocs":{}},{"type":"string"}]`,
		`[{"type":"integer","x-kubernetes-preserve-unknown-fields":null},{"type":"string"}]`, `[{"type":"number"},{"type":"string"}]`)
	if !g.one(4) {
		s.n.Set("x-kubernetes-int-or-string", g.node("true", "true", "true", "false"))
		if !g.one(4) {
			s.n.Del("type")
		}
	}
	switch g.IntN(6) {
	case 0, 1:
		s.n.Set("anyOf", tree.Must(pattern))
	case 2:
		s.n.Set("oneOf", tree.Must(pattern))
	case 3, 4:
		first := tree.Obj()
		first.Add("anyOf", tree.Must(pattern))
		if g.one(3) {
			merge(first, g.node(`{"pattern":"a"}`, `{"type":"string"}`, `{"required":[]}`, `{"minimum":1}`))
		}
		all := tree.Arr(first)
		for range g.IntN(3) {
			all.Kids = append(all.Kids, g.node(`{"pattern":"^b"}`, `{"type":"string"}`, `{"anyOf":[{"type":"integer"},{"type":"string"}]}`, `{}`, `{"anyOf":[{"minimum":1}]}`))
		}
		s.n.Set("allOf", all)
		if g.one(4) {
			s.n.Set("anyOf", tree.Must(pattern))
		}
	case 5:
		s.n.Set("not", tree.Must(`{"anyOf":`+pattern+`}`))
	}
	return true
}

func addEmbedded(g *gardener, s *site) bool {
	s.n.Set("x-kubernetes-embedded-resource", g.node("true", "true", "true", "true", "false", "null"))
	switch g.IntN(6) {
	case 0:
		s.n.Set("x-kubernetes-preserve-unknown-fields", tree.Lit("true"))
	case 1:
		s.n.Set("type", g.node(`"object"`, `"object"`, `"string"`, `""`))
	case 2:
		s.n.Del("properties")
	case 3:
		s.n.Set("type", tree.Str("object"))
		s.n.Set("properties", g.node(
			`{"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"type":"object"}}`,
			`{"apiVersion":{"type":"integer"},"kind":{"type":"object"},"metadata":{"type":"string"}}`,
			`{"kind":{"type":"string","default":"K"},"apiVersion":{"type":"string","default":"g/v"},"spec":{"type":"object"}}`,
			`{"metadata":{"type":"object","properties":{"name":{"type":"string","default":"n"},"labels":{"type":"object","additionalProperties":{"type":"string","default":"x"}}}}}`,
			`{"metadata":{"type":"object","properties":{"annotations":{"type":"object","default":{"a":"b"}},"foo":{"type":"string","default":"bar"}},"default":{}}}`,
			`{"metadata":{"x-kubernetes-preserve-unknown-fields":true},"kind":{"x-kubernetes-int-or-string":true}}`,
			`{"metadata":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}`,
			`{}`, `{"metadata":{"type":"object","nullable":true},"spec":{"type":"string"}}`))
	}
	return true
}

func addAdditional(g *gardener, s *site) bool {
	s.n.Set("additionalProperties", g.node(`true`, `false`, `{}`, `{"type":"string"}`, `{"type":"object","properties":{"a":{"type":"integer","default":3}}}`,
		`{"type":"string","nullable":true}`, `{"type":"string","default":"d"}`, `{"type":"array","items":{"type":"object"}}`, `{"x-kubernetes-preserve-unknown-fields":true}`,
		`null`, `3`, `"x"`, `[]`, `{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`))
	if g.one(3) {
		s.n.Del("properties")
	}
	return true
}

func changeCase(g *gardener, s *site) bool {
	if len(s.n.Keys) == 0 {
		return false
	}
	i := g.IntN(len(s.n.Keys))
	name := tree.Unquote(s.n.Keys[i])
	if name == "" {
		return false
	}
	s.n.Keys[i] = tree.Quote(g.choose(strings.ToUpper(name), strings.ToUpper(name[:1])+name[1:], strings.ToLower(name)+" "))
	return true
}
