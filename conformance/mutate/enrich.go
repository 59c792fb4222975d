package mutate

import "github.com/espalier-dev/espalier/conformance/tree"

// Enrich grows a schema that is most likely structural and restricts values in every way there is: bounds, lengths,
// patterns, formats, enums, list types, allOf and the like, CEL rules, alone and in combinations that real schemas lack.
func (p *Pool) Enrich(seed uint64) Mutant {
	g, base := p.plant(seed, 0x656e72696368)
	root := g.root
	strip(root, "description")
	if g.one(2) {
		strip(root, "x-kubernetes-validations")
	}
	if g.one(3) {
		for _, kw := range []string{"allOf", "anyOf", "oneOf", "not"} {
			strip(root, kw)
		}
	}
	m := Mutant{Base: base}
	for range 3 + g.IntN(9) {
		sites := g.sites()
		s := sites[g.IntN(len(sites))]
		if s.parent == root && (s.name == "metadata" || s.name == "kind" || s.name == "apiVersion") {
			continue
		}
		v := enrichments[g.IntN(len(enrichments))]
		if v.apply(g, s) {
			m.Applied = append(m.Applied, v.name)
		}
	}
	m.Schema = root.Bytes()
	return m
}

var enrichments = []mutation{
	{"values", 1, enrichValues}, {"values", 1, enrichValues}, {"values", 1, enrichValues}, {"values", 1, enrichValues},
	{"scalar", 1, enrichScalar}, {"scalar", 1, enrichScalar}, {"scalar", 1, enrichScalar},
	{"logical", 1, enrichLogical}, {"logical", 1, enrichLogical},
	{"list", 1, enrichList}, {"list", 1, enrichList},
	{"object", 1, enrichObject}, {"object", 1, enrichObject},
	{"rules", 1, enrichRules}, {"rules", 1, enrichRules}, {"rules", 1, enrichRules},
	{"twins", 1, enrichTwins}, {"twins", 1, enrichTwins},
	{"embedded", 1, func(g *gardener, s *site) bool { return s.parent != nil && !s.inside && varyEmbedded(g, s) }},
	{"nullable", 1, func(g *gardener, s *site) bool {
		if s.parent == nil || s.inside {
			return false
		}
		s.n.Set("nullable", tree.Lit("true"))
		if g.one(3) {
			s.n.Set("enum", g.node(`["a",null]`, `[null,1]`, `[null]`, `[null,true]`))
		}
		return true
	}},
	{"default", 1, func(g *gardener, s *site) bool { return s.parent != nil && !s.inside && varyDefault(g, s) }},
}

var (
	numberLimits = []string{
		`{"minimum":1}`, `{"maximum":10}`, `{"minimum":2,"exclusiveMinimum":true}`, `{"maximum":5,"exclusiveMaximum":true}`, `{"minimum":1.5}`, `{"maximum":2.5,"exclusiveMaximum":true}`, `{"minimum":2.5,"maximum":3.5}`, `{"minimum":-0.5,"exclusiveMinimum":true}`,
		`{"multipleOf":2}`, `{"multipleOf":0.5}`, `{"multipleOf":1.5}`, `{"multipleOf":3,"minimum":3}`, `{"multipleOf":0.1}`, `{"maximum":9223372036854775807}`, `{"minimum":-9223372036854775808}`, `{"maximum":1e20}`, `{"minimum":-1e300,"maximum":1e300}`, `{"maximum":9007199254740993}`,
		`{"enum":[1,2,3]}`, `{"enum":[1.5,2]}`, `{"enum":[-0]}`, `{"enum":[-0.0,1]}`, `{"enum":[0,1.0]}`, `{"enum":[1e2,2.0]}`, `{"enum":[100,-0,0.5]}`, `{"enum":[1,"1",null]}`, `{"enum":[65]}`, `{"format":"int32"}`, `{"format":"int64"}`, `{"format":"float"}`, `{"format":"double"}`, `{"format":"int32","minimum":3000000000}`, `{"format":"int32","maximum":5}`, `{"format":"float","maximum":1e40}`, `{"maximum":0}`, `{"minimum":0}`,
		`{"multipleOf":0}`, `{"multipleOf":-2}`, `{"format":"uint32"}`, `{"exclusiveMinimum":true}`, `{"minimum":3,"maximum":2}`, `{"format":"int64","maximum":1e19}`, `{"format":"int32","multipleOf":4294967296}`,
	}
	stringLimits = []string{
		`{"minLength":3}`, `{"maxLength":5}`, `{"minLength":2,"maxLength":4}`, `{"maxLength":0}`, `{"pattern":"^[a-z]+$"}`, `{"pattern":"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$","maxLength":63}`, `{"pattern":"a"}`, `{"pattern":"^(apple|pear)-[0-9]{1,3}$"}`, `{"pattern":"^$|^v[0-9]+$"}`, `{"pattern":"(?i)^A.*z$"}`,
		`{"pattern":"^\\d+(\\.\\d+)?(Ki|Mi|Gi)?$"}`, `{"pattern":"^[^/]+/[^/]+$","minLength":5}`, `{"pattern":"\\S"}`, `{"pattern":"^.{1,3}$"}`, `{"pattern":"^[\\u00e9a]*$"}`, `{"enum":["a","b"]}`, `{"enum":["A","B",""]}`, `{"enum":["apple","pear",3]}`, `{"enum":["apple"],"maxLength":3}`, `{"minLength":70,"maxLength":64}`,
		`{"format":"date-time"}`, `{"format":"date"}`, `{"format":"duration"}`, `{"format":"byte"}`, `{"format":"uuid"}`, `{"format":"ipv4"}`, `{"format":"ipv6"}`, `{"format":"cidr"}`, `{"format":"uri"}`, `{"format":"hostname"}`, `{"format":"email"}`, `{"format":"mac"}`, `{"format":"password"}`, `{"format":"unknown-format"}`,
		`{"format":"bsonobjectid"}`, `{"format":"uuid3"}`, `{"format":"uuid4"}`, `{"format":"uuid5"}`, `{"format":"isbn"}`, `{"format":"isbn10"}`, `{"format":"isbn13"}`, `{"format":"creditcard"}`, `{"format":"ssn"}`, `{"format":"hexcolor"}`, `{"format":"rgbcolor"}`, `{"format":"k8s-short-name"}`, `{"format":"k8s-long-name"}`, `{"format":"datetime"}`, `{"format":"ipv4","maxLength":8}`, `{"format":"int32"}`, `{"format":"u-u-id"}`,
	}
	anyLimits = []string{
		`{"enum":[{"a":1},[],"x"]}`, `{"enum":[{},null]}`, `{"enum":[true]}`, `{"enum":["a",1,1.5,false,null]}`, `{"minProperties":1}`, `{"maxProperties":1}`, `{"maxItems":1}`, `{"minItems":2}`, `{"required":["a"]}`, `{"minimum":1}`, `{"maxLength":2}`, `{"pattern":"^a"}`, `{"format":"ipv4"}`, `{"enum":[[1,2],{"b":[{}]}]}`, `{"enum":[[2.0],{"a":1.0},{"a":[-0.0,1e2]},-0]}`, `{"enum":[[-0],[0.5,{"a":-0}],2.0]}`,
	}
)

// limit draws a restriction that makes sense for the type, or now and then one for any other.
func (g *gardener) limit(kind string) *tree.Node {
	if g.one(8) {
		kind = ""
	}
	switch kind {
	case "integer", "number":
		return g.node(numberLimits...)
	case "string":
		return g.node(stringLimits...)
	case "int-or-string":
		return g.node(append(append([]string{}, numberLimits...), stringLimits...)...)
	case "boolean":
		return g.node(`{"enum":[true]}`, `{"enum":[false,"true"]}`, `{"enum":[1]}`)
	case "array", "strings":
		return g.node(`{"minItems":1}`, `{"maxItems":2}`, `{"minItems":2,"maxItems":3}`, `{"maxItems":0}`, `{"enum":[[],["a"]]}`, `{"enum":[[2.0],[1],[-0]]}`, `{"enum":[[0],[2],[1.5,-0.0],["a"]]}`)
	case "object", "map":
		return g.node(`{"minProperties":1}`, `{"maxProperties":2}`, `{"minProperties":2,"maxProperties":3}`, `{"maxProperties":0}`, `{"required":["apple"]}`, `{"enum":[{}]}`, `{"enum":[{"a":1.0},{"a":-0},{"apple":[2.0]},{}]}`)
	}
	return g.node(anyLimits...)
}

// enrichValues restricts the value at a site, by what its type offers.
func enrichValues(g *gardener, s *site) bool {
	for range 1 + g.IntN(2) {
		merge(s.n, g.limit(ruleKindOf(s)))
	}
	return true
}

// ruleKindOf is the type of the value at a site: within allOf, anyOf, oneOf and not, the schema outside states it.
func ruleKindOf(s *site) string {
	switch kind := ruleKind(s.n); kind {
	case "bytes", "datetime", "duration":
		return "string"
	default:
		return kind
	}
}

// enrichScalar makes a restricted scalar of what is at the site.
func enrichScalar(g *gardener, s *site) bool {
	if s.parent == nil || s.inside || s.n.Get("properties") != nil && !g.one(3) {
		return false
	}
	kind := g.choose("string", "string", "integer", "number", "boolean", "int-or-string")
	if kind == "int-or-string" {
		*s.n = *tree.Must(`{"x-kubernetes-int-or-string":true}`)
		if g.one(2) {
			s.n.Set("anyOf", tree.Must(`[{"type":"integer"},{"type":"string"}]`))
		}
	} else {
		*s.n = *tree.Must(`{"type":"` + kind + `"}`)
	}
	if g.one(5) {
		s.n.Set("nullable", tree.Lit("true"))
	}
	for range 1 + g.IntN(2) {
		merge(s.n, g.limit(kind))
	}
	return true
}

// enrichLogical adds allOf, anyOf, oneOf or not with value validations about what is outside.
func enrichLogical(g *gardener, s *site) bool {
	keyword := g.choose("allOf", "anyOf", "anyOf", "oneOf", "oneOf", "not")
	if keyword == "not" {
		s.n.Set(keyword, g.branch(s.n, 2))
		return true
	}
	list := tree.Arr()
	for range 1 + g.IntN(3) {
		list.Kids = append(list.Kids, g.branch(s.n, 2))
	}
	if keyword != "allOf" && s.n.Get("x-kubernetes-int-or-string").Is("true") && s.n.Get("anyOf") == nil && g.one(2) {
		s.n.Set("anyOf", tree.Must(`[{"type":"integer"},{"type":"string"}]`))
		keyword = "oneOf"
	}
	s.n.Set(keyword, list)
	return true
}

// branch grows a schema below allOf, anyOf, oneOf or not of outer: value validations only, about things that are outside.
func (g *gardener) branch(outer *tree.Node, depth int) *tree.Node {
	n := tree.Obj()
	kind := ruleKind(outer)
	if props := outer.Get("properties"); props != nil && props.Kind == tree.Object && len(props.Kids) > 0 {
		inner, required := tree.Obj(), tree.Arr()
		for range 1 + g.IntN(2) {
			i := g.IntN(len(props.Kids))
			name := tree.Unquote(props.Keys[i])
			if name == "metadata" || depth == 0 {
				continue
			}
			if props.Kids[i].Kind == tree.Object && !g.one(3) {
				inner.Set(name, g.branch(props.Kids[i], depth-1))
			}
			if g.one(2) {
				required.Kids = append(required.Kids, tree.Str(name))
			}
		}
		if len(inner.Kids) > 0 {
			n.Add("properties", inner)
		}
		if len(required.Kids) > 0 {
			n.Add("required", required)
		}
	} else if items := outer.Get("items"); items != nil && items.Kind == tree.Object && depth > 0 && g.one(2) {
		n.Add("items", g.branch(items, depth-1))
	}
	if len(n.Kids) == 0 || g.one(3) {
		merge(n, g.limit(kind))
	}
	if depth > 0 && g.one(6) {
		keyword := g.choose("allOf", "anyOf", "oneOf", "not")
		if keyword == "not" {
			n.Set(keyword, g.branch(outer, depth-1))
		} else {
			n.Set(keyword, tree.Arr(g.branch(outer, depth-1), g.branch(outer, depth-1)))
		}
	}
	return n
}

// enrichList makes a list of what is at the site, or gives a list a topology and sizes.
func enrichList(g *gardener, s *site) bool {
	if s.parent == nil || s.inside {
		return false
	}
	if s.n.Get("type").Text() != "array" {
		items := s.n.Clone()
		for _, kw := range []string{"nullable", "default"} {
			items.Del(kw)
		}
		*s.n = *tree.Must(`{"type":"array"}`)
		s.n.Set("items", items)
	}
	items := s.n.Get("items")
	if items == nil || items.Kind != tree.Object {
		return false
	}
	for _, kw := range []string{"x-kubernetes-list-type", "x-kubernetes-list-map-keys"} {
		s.n.Del(kw)
	}
	switch g.IntN(5) {
	case 0:
		s.n.Set("x-kubernetes-list-type", tree.Str("atomic"))
	case 1, 2:
		s.n.Set("x-kubernetes-list-type", tree.Str("set"))
		items.Del("nullable")
		switch items.Get("type").Text() {
		case "object":
			items.Set("x-kubernetes-map-type", tree.Str("atomic"))
		case "array":
			items.Set("x-kubernetes-list-type", tree.Str("atomic"))
			items.Del("x-kubernetes-list-map-keys")
		}
	case 3:
		g.listMap(s.n, items)
	}
	if g.one(3) {
		merge(s.n, g.limit("array"))
	}
	return true
}

// listMap makes a list of type map, with one key or two.
func (g *gardener) listMap(list, items *tree.Node) {
	if items.Get("type").Text() != "object" || items.Get("additionalProperties") != nil {
		*items = *g.node(`{"type":"object","properties":{"value":{"type":"integer","maximum":5}}}`, `{"type":"object","properties":{"value":{"type":"string","minLength":4}},"minProperties":2}`)
	}
	items.Del("nullable")
	props := items.Have("properties", tree.Object)
	required := items.Get("required")
	if required == nil || required.Kind != tree.Array {
		required = tree.Arr()
	}
	keys := tree.Arr()
	for _, key := range []string{"name", "port"}[:1+g.IntN(2)] {
		props.Set(key, g.node(`{"type":"string"}`, `{"type":"integer"}`, `{"type":"string","enum":["a","b","c"]}`, `{"type":"string","default":"d"}`, `{"x-kubernetes-int-or-string":true}`, `{"type":"number"}`, `{"type":"string","maxLength":2}`, `{"type":"boolean"}`))
		if props.Get(key).Get("default") == nil {
			required.Kids = append(required.Kids, tree.Str(key))
		}
		keys.Kids = append(keys.Kids, tree.Str(key))
	}
	if len(required.Kids) > 0 {
		items.Set("required", required)
	}
	list.Set("x-kubernetes-list-type", tree.Str("map"))
	list.Set("x-kubernetes-list-map-keys", keys)
}

// enrichObject makes a map or an object with demands.
func enrichObject(g *gardener, s *site) bool {
	if s.inside {
		merge(s.n, g.limit("object"))
		return true
	}
	if s.parent == nil {
		merge(s.n, g.node(`{"minProperties":4}`, `{"maxProperties":4}`, `{"required":["spec"]}`, `{"required":["apple"]}`))
		return true
	}
	switch g.IntN(4) {
	case 0:
		if s.n.Get("x-kubernetes-embedded-resource") != nil {
			return false
		}
		value := g.node(`{"type":"string","maxLength":6}`, `{"type":"integer","minimum":1}`, `{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"type":"string","x-kubernetes-validations":[{"rule":"self != 'a'"}]}`)
		*s.n = *tree.Must(`{"type":"object"}`)
		s.n.Set("additionalProperties", value)
	case 1:
		if s.n.Get("properties") != nil || s.n.Get("x-kubernetes-embedded-resource") != nil {
			return false
		}
		*s.n = *tree.Must(`{"type":"object"}`)
		s.n.Set("additionalProperties", g.node("false", "true"))
	case 2:
		if s.n.Get("type").Text() == "object" {
			s.n.Set("x-kubernetes-map-type", g.node(`"atomic"`, `"granular"`))
		}
	}
	if props := s.n.Get("properties"); props != nil && props.Kind == tree.Object && len(props.Keys) > 0 {
		required := tree.Arr()
		for range 1 + g.IntN(2) {
			required.Kids = append(required.Kids, tree.Lit(props.Keys[g.IntN(len(props.Keys))]))
		}
		s.n.Set("required", required)
	}
	if g.one(2) {
		merge(s.n, g.limit("object"))
	}
	return true
}
