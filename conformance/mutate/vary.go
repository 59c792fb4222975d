package mutate

import "github.com/espalier-dev/espalier/conformance/tree"

// Vary grows a schema that is most likely structural, with the features that decide what becomes of an object (unknown
// fields, nulls, defaults, embedded resources, maps, lists, missing types) in combinations that real schemas lack.
func (p *Pool) Vary(seed uint64) Mutant {
	g, base := p.plant(seed, 0x76617279)
	root := g.root
	for _, kw := range []string{"description", "x-kubernetes-validations", "allOf", "anyOf", "oneOf", "not"} {
		strip(root, kw)
	}
	m := Mutant{Base: base}
	for range 2 + g.IntN(8) {
		sites := g.sites()
		s := sites[g.IntN(len(sites))]
		if s.parent == nil || s.parent == root && s.name == "metadata" || s.parent == root && (s.name == "kind" || s.name == "apiVersion") {
			continue
		}
		v := variations[g.IntN(len(variations))]
		v.apply(g, s)
		m.Applied = append(m.Applied, v.name)
	}
	if g.one(6) {
		merge(root, g.node(`{"x-kubernetes-preserve-unknown-fields":true}`, `{"x-kubernetes-embedded-resource":true}`, `{"default":{}}`, `{"items":{"type":"string"}}`))
	}
	m.Schema = root.Bytes()
	return m
}

var variations = []mutation{
	{"nullable", 1, setMember("nullable", "true")},
	{"default", 1, varyDefault},
	{"default", 1, varyDefault},
	{"default", 1, varyDefault},
	{"preserve", 1, setMember("x-kubernetes-preserve-unknown-fields", "true")},
	{"typeless", 1, func(g *gardener, s *site) bool {
		s.n.Del("type")
		s.n.Set("x-kubernetes-preserve-unknown-fields", tree.Lit("true"))
		s.n.Del("x-kubernetes-int-or-string")
		return true
	}},
	{"int-or-string", 1, func(g *gardener, s *site) bool {
		for _, kw := range []string{"type", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"} {
			s.n.Del(kw)
		}
		s.n.Set("x-kubernetes-int-or-string", tree.Lit("true"))
		return true
	}},
	{"embedded", 1, varyEmbedded},
	{"embedded", 1, varyEmbedded},
	{"map", 1, func(g *gardener, s *site) bool {
		value := g.node(`{"type":"string"}`, `{"type":"integer","default":7}`, `{"type":"object","nullable":true}`)
		if props := s.n.Get("properties"); props != nil && len(props.Kids) > 0 && g.one(2) {
			value = props.Kids[g.IntN(len(props.Kids))]
		}
		s.n.Set("type", tree.Str("object"))
		s.n.Del("properties")
		s.n.Del("x-kubernetes-embedded-resource")
		s.n.Set("additionalProperties", value)
		return true
	}},
	{"additional", 1, func(g *gardener, s *site) bool {
		if s.n.Get("x-kubernetes-embedded-resource") != nil {
			return false
		}
		if s.n.Get("properties") == nil {
			s.n.Set("additionalProperties", g.node("true", "false"))
		} else {
			s.n.Set("additionalProperties", tree.Lit("true"))
		}
		return true
	}},
	{"list", 1, func(g *gardener, s *site) bool {
		items := s.n.Clone()
		*s.n = *tree.Must(`{"type":"array"}`)
		s.n.Set("items", items)
		if g.one(3) {
			s.n.Set("x-kubernetes-list-type", tree.Str("atomic"))
		}
		if g.one(3) {
			items.Set("nullable", tree.Lit("true"))
		}
		return true
	}},
	// the rules do not tie properties and items to types, and pruning goes by the value
	{"both", 1, func(g *gardener, s *site) bool {
		s.n.Set("items", g.node(`{"type":"string"}`, `{"type":"object","properties":{"a":{"type":"string","default":"x"}}}`, `{"x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"object"}}}`,
			`{"type":"array","items":{"type":"object"}}`))
		if s.n.Get("additionalProperties") == nil && s.n.Get("properties") == nil {
			s.n.Set("properties", g.node(`{"a":{"type":"string"},"b":{"type":"object","nullable":true}}`, `{"a":{"type":"integer","default":1}}`))
		}
		return true
	}},
	{"type", 1, func(g *gardener, s *site) bool {
		if s.n.Get("x-kubernetes-embedded-resource") == nil && s.n.Get("type").Text() != "array" {
			s.n.Set("type", tree.Str(g.choose("string", "integer", "boolean", "number", "object")))
		}
		return true
	}},
	{"names", 1, func(g *gardener, s *site) bool {
		props := s.n.Get("properties")
		if props == nil || props.Kind != tree.Object {
			return false
		}
		props.Set(g.choose("metadata", "kind", "apiVersion", "", "a.b", "<&>", "\u2028", "\ufffd", "a", "unknown", "extra", "name", "é", "spec"),
			g.node(`{"type":"string"}`, `{"type":"object"}`, `{"type":"object","properties":{"name":{"type":"string","default":"n"}}}`, `{"type":"array","items":{"type":"object"}}`,
				`{"type":"string","nullable":true}`, `{"type":"string","default":"<&>\u2028"}`, `{"x-kubernetes-preserve-unknown-fields":true}`))
		return true
	}},
}

func varyDefault(g *gardener, s *site) bool {
	options := []string{`{}`, `[]`, `null`, `"d"`, `0`, `[null]`, `{"a":null,"unknown":{"b":[{"c":1}]}}`, `1.0`, `1.5e3`, `"<&>\u2028\ud800"`}
	switch s.n.Get("type").Text() {
	case "object":
		options = []string{`{}`, `{}`, `{"a":null}`, `{"a":1,"name":"x","unknown":[1,{"b":null}]}`, `{"z":1,"metadata":{"name":"m","foo":1},"kind":3,"apiVersion":"v1"}`,
			`{"apiVersion":"v1","kind":"K","metadata":{"name":"m","foo":1,"creationTimestamp":null,"labels":{"b":"2","a":"1"}},"spec":{"x":1}}`, `{"metadata":{"name":3}}`, `{"metadata":null}`}
		if props := s.n.Get("properties"); props != nil && len(props.Keys) > 0 && g.one(2) {
			options = []string{`{` + props.Keys[g.IntN(len(props.Keys))] + `:` + g.choose(`null`, `{}`, `[]`, `"x"`, `{"a":{}}`, `[{}]`) + `}`}
		}
	case "array":
		options = []string{`[]`, `[null]`, `[{}]`, `[{"a":1,"unknown":null},null,"x"]`, `["x"]`, `[[null]]`}
	case "string":
		options = []string{`"d"`, `""`, `"<&>\u2028\u0000"`, `"\ud800"`}
	case "integer":
		options = []string{`0`, `-0`, `3`, `1.0`, `9223372036854775807`, `1e3`}
	case "number":
		options = []string{`0.5`, `-0.0`, `1e21`, `0.0000001`, `3`}
	case "boolean":
		options = []string{`true`, `false`}
	}
	s.n.Set("default", g.node(options...))
	return true
}

func varyEmbedded(g *gardener, s *site) bool {
	s.n.Set("type", tree.Str("object"))
	s.n.Del("additionalProperties")
	s.n.Del("x-kubernetes-int-or-string")
	s.n.Set("x-kubernetes-embedded-resource", tree.Lit("true"))
	switch g.IntN(3) {
	case 0:
		s.n.Set("x-kubernetes-preserve-unknown-fields", tree.Lit("true"))
	case 1:
		s.n.Set("properties", g.node(
			`{"apiVersion":{"type":"string"},"kind":{"type":"string","default":"K"},"metadata":{"type":"object"},"spec":{"type":"object"}}`,
			`{"metadata":{"type":"object","properties":{"name":{"type":"string","default":"n"},"annotations":{"type":"object","additionalProperties":{"type":"string","nullable":true}}}},"spec":{"type":"string"}}`,
			`{"metadata":{"type":"object","default":{"name":"d","foo":1}},"kind":{"type":"string","nullable":true},"apiVersion":{"type":"string","nullable":true,"default":"v1"}}`,
			`{"metadata":{"type":"object","nullable":true,"properties":{"labels":{"type":"object","default":{"a":"b"}},"finalizers":{"type":"array","items":{"type":"string","default":"f"}}}}}`,
			`{"spec":{"type":"object","properties":{"template":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"properties":{"metadata":{"type":"object"}}}}}}`))
	case 2:
		if props := s.n.Get("properties"); props == nil || len(props.Kids) == 0 {
			s.n.Set("x-kubernetes-preserve-unknown-fields", tree.Lit("true"))
		}
	}
	if props := s.n.Get("properties"); props != nil {
		for i, key := range props.Keys { // what an embedded resource demands of these three
			switch key {
			case `"kind"`, `"apiVersion"`:
				props.Kids[i].Set("type", tree.Str("string"))
			case `"metadata"`:
				props.Kids[i].Set("type", tree.Str("object"))
			}
		}
	}
	return true
}
