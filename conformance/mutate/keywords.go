package mutate

import "github.com/espalier-dev/espalier/conformance/tree"

// keywords are all that the reference knows.
var keywords = []string{
	"id", "$schema", "$ref", "description", "type", "format", "title", "default", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
	"maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "enum", "maxProperties", "minProperties", "required",
	"items", "allOf", "oneOf", "anyOf", "not", "properties", "additionalProperties", "patternProperties", "dependencies", "additionalItems",
	"definitions", "externalDocs", "example", "nullable", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource",
	"x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-validations",
}

// mutateList makes an array of the site and gives it a topology, right or wrong.
func mutateList(g *gardener, s *site) bool {
	if s.n.Get("type").Text() != "array" && !g.one(4) {
		s.n.Set("type", tree.Str("array"))
		s.n.Del("properties")
		s.n.Del("additionalProperties")
		s.n.Set("items", g.node(`{"type":"string"}`, `{"type":"object","properties":{"name":{"type":"string"},"port":{"type":"integer","default":1}},"required":["name"]}`,
			`{"type":"object","x-kubernetes-map-type":"atomic"}`, `{"type":"object","x-kubernetes-map-type":"granular"}`, `{"type":"array","items":{"type":"string"}}`,
			`{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}`, `{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"atomic"}`,
			`{"type":"string","nullable":true}`, `{"type":"object"}`, `{"x-kubernetes-int-or-string":true}`, `{"x-kubernetes-preserve-unknown-fields":true}`))
	}
	s.n.Set("x-kubernetes-list-type", g.node(`"atomic"`, `"set"`, `"set"`, `"map"`, `"map"`, `"map"`, `"granular"`, `""`, `null`))
	if g.one(2) {
		s.n.Set("x-kubernetes-list-map-keys", g.listKeys(s.n))
	}
	return true
}

func (g *gardener) listKeys(n *tree.Node) *tree.Node {
	keys := tree.Arr()
	props := n.Get("items").Get("properties")
	for range 1 + g.IntN(2) {
		if props != nil && len(props.Keys) > 0 && !g.one(5) {
			keys.Kids = append(keys.Kids, tree.Lit(props.Keys[g.IntN(len(props.Keys))]))
		} else {
			keys.Kids = append(keys.Kids, g.node(`"name"`, `"absent"`, `""`))
		}
	}
	switch g.IntN(10) {
	case 0:
		keys.Kids = append(keys.Kids, keys.Kids[0])
	case 1:
		return tree.Arr()
	}
	return keys
}

// mutateListKey makes a list of type map at the site and touches one of its key properties.
func mutateListKey(g *gardener, s *site) bool {
	if s.n.Get("items").Get("properties") == nil {
		s.n.Del("properties")
		s.n.Del("additionalProperties")
		s.n.Set("items", tree.Must(`{"type":"object","properties":{"name":{"type":"string"},"port":{"type":"integer"}},"required":["name"]}`))
	}
	s.n.Set("type", tree.Str("array"))
	s.n.Set("x-kubernetes-list-type", g.node(`"map"`, `"map"`, `"map"`, `"map"`, `"set"`))
	s.n.Set("x-kubernetes-list-map-keys", g.listKeys(s.n))
	items := s.n.Get("items")
	if props := items.Get("properties"); props.Kind == tree.Object && len(props.Kids) > 0 {
		if key := props.Kids[g.IntN(len(props.Kids))]; key.Kind == tree.Object {
			merge(key, g.node(`{"nullable":true}`, `{"default":"x"}`, `{"default":null}`, `{"type":"object"}`, `{"type":"array","items":{"type":"string"}}`, `{"type":"integer"}`, `{}`))
		}
	}
	switch g.IntN(6) {
	case 0:
		items.Set("nullable", tree.Lit("true"))
	case 1:
		items.Set("required", g.node(`[]`, `["name","port"]`, `["name","name"]`, `null`))
	case 2:
		items.Set("type", g.node(`"string"`, `""`, `"array"`))
	case 3:
		items.Del("required")
	}
	return true
}

func mutateItems(g *gardener, s *site) bool {
	if g.one(2) {
		s.n.Set("type", tree.Str("array"))
	}
	if g.one(6) {
		s.n.Del("items")
		return true
	}
	s.n.Set("items", g.node(`[]`, `[{"type":"string"}]`, `[{}]`, `[null]`, `{}`, `null`, `3`, `33`, `true`, `""`, `"x"`, `[{"type":"string"},{"type":"foo"}]`, `{"type":"string"}`,
		`{"type":"string","default":"x"}`, `{"type":"object","nullable":true}`, `{"items":{}}`))
	return true
}

func addForbidden(g *gardener, s *site) bool {
	merge(s.n, g.node(`{"$ref":"#/definitions/x"}`, `{"$ref":""}`, `{"$ref":null}`, `{"definitions":{}}`, `{"definitions":{"a":{"type":"foo"}}}`, `{"definitions":null}`,
		`{"definitions":{"a":{"x-kubernetes-preserve-unknown-fields":false}}}`, `{"dependencies":{}}`, `{"dependencies":{"a":["b"]}}`, `{"dependencies":{"a":{"type":"foo"}}}`,
		`{"dependencies":null}`, `{"dependencies":{"a":3,"b":null,"c":"xx"}}`, `{"patternProperties":{}}`, `{"patternProperties":{"^a":{"type":"foo"}}}`, `{"patternProperties":null}`,
		`{"id":"x"}`, `{"id":""}`, `{"$schema":"http://json-schema.org/schema#"}`, `{"$schema":""}`, `{"additionalItems":true}`, `{"additionalItems":false}`,
		`{"additionalItems":{"type":"foo"}}`, `{"additionalItems":null}`, `{"uniqueItems":true}`, `{"uniqueItems":false}`))
	return true
}

func addPattern(g *gardener, s *site) bool {
	s.n.Set("pattern", g.node(`"["`, `"(?=a)"`, `"^a(b"`, `"a{1001}"`, `"\\p{Greek}+"`, `"(?P<n>a)"`, `"(?<n>a)"`, `"\\d+$"`, `""`, `"a**"`, `"\\Q"`, `"\\"`, `"\\uD800"`, `"x{2,1}"`, `"[[:foo:]]"`, `"(?i)ü"`, `"\\C"`))
	return true
}

func nullKeyword(g *gardener, s *site) bool {
	if len(s.n.Keys) > 0 && g.one(2) {
		s.n.Kids[g.IntN(len(s.n.Kids))] = tree.Lit("null")
		return true
	}
	if props := s.n.Get("properties"); props != nil && len(props.Kids) > 0 && g.one(2) {
		props.Kids[g.IntN(len(props.Kids))] = tree.Lit("null")
		return true
	}
	s.n.Set(keywords[g.IntN(len(keywords))], tree.Lit("null"))
	return true
}

func wrongType(g *gardener, s *site) bool {
	s.n.Set(keywords[g.IntN(len(keywords))], g.node(`1`, `-1`, `0`, `1.0`, `1.5`, `1e3`, `9223372036854775807`, `9223372036854775808`, `1e400`, `"s"`, `""`, `true`, `false`,
		`[]`, `{}`, `[1]`, `["a"]`, `["a",null]`, `[null]`, `[{}]`, `[[]]`, `{"a":1}`, `{"a":{}}`, `{"a":null}`, `{"a":[]}`, `{"type":"string"}`, `{"a":{"type":"string"}}`, `"object"`))
	return true
}

func addUnknown(g *gardener, s *site) bool {
	s.n.Set(g.choose("readOnly", "x-kubernetes-unions", "x-kubernetes-group-version-kind", "const", "$comment", "deprecated", "x-foo", "xml", "discriminator", "if", "$id", "examples"),
		g.node(`true`, `{}`, `[]`, `"x"`, `null`, `1e400`, `{"type":"foo"}`))
	return true
}

func addDefault(g *gardener, s *site) bool {
	target := s.n
	if g.one(3) {
		// where the root forbids them
		if props := g.root.Get("properties"); props != nil {
			if m := props.Get(g.choose("metadata", "kind", "apiVersion")); m != nil && m.Kind == tree.Object {
				target = m
				if inner := m.Get("properties"); inner != nil && len(inner.Kids) > 0 && inner.Kids[0].Kind == tree.Object && g.one(2) {
					target = inner.Kids[0]
				}
			}
		}
	}
	target.Set("default", g.node(`null`, `{}`, `[]`, `""`, `"a"`, `0`, `1.5`, `1.0`, `true`, `{"a":1}`, `{"unknown":{"b":null}}`, `[{}]`, `[null]`, `1e400`, `9223372036854775808`, `-0`, `{"metadata":{"name":3}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"name":"n","foo":1,"creationTimestamp":null}}`, `"<&>\u2028\ud800"`))
	return true
}

// addIncomplete speaks of things below allOf, anyOf, oneOf or not that do not exist outside: directly, in items, deeper.
func addIncomplete(g *gardener, s *site) bool {
	inner := g.node(`{"properties":{"nowhere":{}}}`, `{"properties":{"nowhere":{"minimum":1}}}`, `{"items":{}}`, `{"items":{"properties":{"nowhere":{}}}}`,
		`{"anyOf":[{"properties":{"nowhere":{}}}]}`, `{"not":{"properties":{"nowhere":{}}}}`, `{"allOf":[{"oneOf":[{"items":{"items":{}}}]}]}`,
		`{"properties":{"a":{"properties":{"b":{"properties":{"c":{}}}}}}}`, `{"properties":{}}`, `{"additionalProperties":{"properties":{"nowhere":{}}}}`,
		`{"required":["nowhere"]}`, `{"properties":{"nowhere":{},"elsewhere":{"items":{}}}}`, `{"properties":{"":{}}}`)
	if props := s.n.Get("properties"); props != nil && props.Kind == tree.Object && len(props.Keys) > 0 && g.one(2) {
		wrap := tree.Obj()
		wrap.Add("properties", tree.Obj())
		wrap.Get("properties").Add(tree.Unquote(props.Keys[g.IntN(len(props.Keys))]), inner)
		inner = wrap
	}
	switch kw := g.choose("not", "allOf", "anyOf", "oneOf"); kw {
	case "not":
		s.n.Set(kw, inner)
	default:
		list := s.n.Get(kw)
		if list == nil || list.Kind != tree.Array {
			list = tree.Arr()
			s.n.Set(kw, list)
		}
		list.Kids = append(list.Kids, inner)
	}
	return true
}

func mutateRoot(g *gardener, _ *site) bool {
	merge(g.root, g.node(`{"nullable":true}`, `{"additionalProperties":true}`, `{"additionalProperties":false}`, `{"additionalProperties":{"type":"string"}}`, `{"type":"array"}`, `{"type":""}`,
		`{"type":"string"}`, `{"default":{}}`, `{"x-kubernetes-embedded-resource":true}`, `{"x-kubernetes-int-or-string":true}`, `{"x-kubernetes-preserve-unknown-fields":true}`,
		`{"items":{"type":"string"}}`, `{"properties":{}}`, `{"properties":null}`, `{"x-kubernetes-map-type":"atomic"}`, `{"title":"t"}`, `{"required":["spec"]}`, `{"maxProperties":3}`,
		`{"anyOf":[{"required":["spec"]}]}`, `{"not":{}}`, `{"oneOf":[]}`, `{"enum":[{}]}`, `{"example":{}}`, `{"externalDocs":{"url":"u"}}`, `{"x-kubernetes-validations":[{"rule":"true"}]}`, `{"format":"x"}`, `{"uniqueItems":true}`))
	return true
}

func addRules(g *gardener, s *site) bool {
	s.n.Set("x-kubernetes-validations", g.node(`[]`, `null`, `[{"rule":"true"}]`, `[{"rule":""}]`, `[{"rule":"  "}]`, `[{}]`, `[null]`, `[{"rule":"true","message":" "}]`, `[{"rule":"true","message":"a\nb"}]`,
		`[{"rule":"true\n&& true"}]`, `[{"rule":"true\n&& true","message":"m"}]`, `[{"rule":"true\n"}]`, `[{"rule":"true","messageExpression":" "}]`, `[{"rule":"true","messageExpression":"'x'"}]`,
		`[{"rule":"true","reason":"Nope"}]`, `[{"rule":"true","reason":"FieldValueForbidden"}]`, `[{"rule":"true","reason":""}]`, `[{"rule":"true","reason":null}]`, `[{"rule":"true","fieldPath":" "}]`,
		`[{"rule":"true","fieldPath":".a\n"}]`, `[{"rule":"true","fieldPath":".nowhere"}]`, `[{"rule":"true","fieldPath":"spec"}]`, `[{"rule":"true","fieldPath":".metadata.name"}]`,
		`[{"rule":"true","optionalOldSelf":true}]`, `[{"rule":"self =="}]`, `[{"rule":"true"},{"rule":""},{"rule":"true","message":"\r"}]`, `[{"rule":3}]`, `[{"unknown":1,"rule":"true"}]`, `{}`))
	return true
}

func addEmpty(g *gardener, s *site) bool {
	merge(s.n, g.node(`{"required":[]}`, `{"enum":[]}`, `{"properties":{}}`, `{"allOf":[]}`, `{"anyOf":[]}`, `{"oneOf":[]}`, `{"not":{}}`, `{"items":{}}`, `{"description":""}`, `{"title":""}`, `{"format":""}`, `{"pattern":""}`,
		`{"x-kubernetes-list-map-keys":[]}`, `{"definitions":{}}`, `{"dependencies":{}}`, `{"externalDocs":{}}`, `{"x-kubernetes-validations":[]}`, `{"id":""}`, `{"type":""}`, `{"default":{}}`, `{"allOf":[{}]}`, `{"anyOf":[{},{}]}`))
	return true
}

func addValueValidation(g *gardener, s *site) bool {
	merge(s.n, g.node(`{"maximum":1.5}`, `{"minimum":-1}`, `{"maximum":"1"}`, `{"exclusiveMaximum":true}`, `{"exclusiveMinimum":1}`, `{"maxLength":1.0}`, `{"maxLength":1e3}`, `{"minLength":-1}`, `{"maxItems":9223372036854775808}`,
		`{"multipleOf":0}`, `{"multipleOf":-1}`, `{"enum":["a",1,1.0,null,{"b":[]}]}`, `{"enum":"a"}`, `{"enum":[1e400]}`, `{"required":["a","a"]}`, `{"required":[1]}`, `{"required":[null]}`, `{"required":"a"}`, `{"format":"int32"}`, `{"format":"nope"}`,
		`{"minProperties":2}`, `{"maxProperties":null}`, `{"maximum":1e400}`, `{"example":{"a":1e400}}`, `{"externalDocs":{"url":1}}`, `{"externalDocs":"x"}`, `{"uniqueItems":1}`, `{"nullable":"true"}`, `{"description":1}`, `{"title":["t"]}`))
	return true
}

func dropKeyword(g *gardener, s *site) bool {
	if len(s.n.Keys) == 0 {
		return false
	}
	s.n.Cut(g.IntN(len(s.n.Keys)))
	return true
}

// graft copies one schema of the tree into another's place.
func graft(g *gardener, s *site) bool {
	sites := g.sites()
	from := sites[g.IntN(len(sites))].n.Clone()
	if from.Size() > maxNodes/2 {
		return false
	}
	switch g.IntN(4) {
	case 0:
		s.n.Set("items", from)
	case 1:
		s.n.Set("additionalProperties", from)
	case 2:
		s.n.Set(g.choose("allOf", "anyOf", "oneOf"), tree.Arr(from))
	case 3:
		s.n.Set("not", from)
	}
	return true
}

// addNamedProperty tries names that are awkward in paths.
func addNamedProperty(g *gardener, s *site) bool {
	props := s.n.Get("properties")
	if props == nil || props.Kind != tree.Object {
		return false
	}
	props.Set(g.choose("", "a.b", "a[0]", "a]b", "ü", "a\"b", "a\\b", "metadata", "kind", "$ref", "properties", "items", "type", "__proto__", "<&>", "a b", "\u2028"),
		g.node(`{"type":"string"}`, `{}`, `{"type":"array"}`, `{"type":"object","properties":{"x":{}}}`, `null`, `{"x-kubernetes-int-or-string":true}`))
	return true
}
