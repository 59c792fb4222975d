package expression

import (
	"strconv"

	"github.com/google/cel-go/common/types"

	"k8s.io/apiserver/pkg/cel"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// A shape is a schema, with what rules see of it.
type shape struct {
	kind, format string // int-or-string is a kind of its own
	fields       []field
	values       *shape // additionalProperties
	items        *shape
	list         string   // x-kubernetes-list-type
	keys         []string // x-kubernetes-list-map-keys
	most         int      // maxItems, maxLength or maxProperties; 0 for none
	nullable     bool
	embedded     bool
	preserve     bool
	fallback     *tree.Node // default
	rules        []*Rule
	cel          *types.Type // nil where rules cannot see the value

	site string // where it is, for tables
	path string // as the reference's Sites names it
	at   string // field path of the schema
}

type field struct {
	name     string
	shape    *shape
	required bool
}

// The kinds of sites. A rule of items and of what is below them counts as one of the list.
const (
	atRoot     = "root"
	atProperty = "property"
	inAtomic   = "atomic list"
	inSet      = "set"
	inMapList  = "list map"
	inValues   = "map values"
)

// names are those of properties: plain ones, those that rules must escape, and those of other things that rules know.
var names = []string{"a", "b", "size", "kind", "items", "a.b", "a-b", "x/y", "u__d", "in", "namespace", "self", "name", "apiVersion", "value", "true", "metadata2", "A"}

// schemas grows the root.
func (g *generator) schema() *shape {
	root := &shape{kind: "object", site: atRoot}
	for range 2 + g.IntN(4) {
		name := names[g.IntN(len(names))]
		if name == "kind" || name == "apiVersion" || root.field(name) != nil { // at the root these are the resource's own
			continue
		}
		root.fields = append(root.fields, field{name, g.shape(3), !g.one(4)})
	}
	root.place(atRoot, "", "")
	g.types = map[string]*shape{}
	g.declare(root, "self", true)
	return root
}

func (s *shape) field(name string) *shape {
	for _, f := range s.fields {
		if f.name == name {
			return f.shape
		}
	}
	return nil
}

var scalars = []struct{ kind, format string }{
	{"string", ""},
	{"string", ""},
	{"string", ""},
	{"string", "date"},
	{"string", "date-time"},
	{"string", "duration"},
	{"string", "byte"},
	{"integer", ""},
	{"integer", ""},
	{"integer", "int32"},
	{"number", ""},
	{"boolean", ""},
	{"int-or-string", ""},
}

func (g *generator) scalar() *shape {
	k := scalars[g.IntN(len(scalars))]
	s := &shape{kind: k.kind, format: k.format}
	if k.kind == "string" && k.format != "date" && k.format != "date-time" {
		s.most = g.bound(30)
	}
	return s
}

// bound is small in most cases, so that rules may be of high complexity, and is missing or large otherwise.
func (g *generator) bound(n int) int {
	switch g.IntN(40) {
	case 0:
		return 0
	case 1:
		return 1000 * n
	}
	return n/2 + g.IntN(n)
}

func (g *generator) shape(depth int) *shape {
	s := g.grow(depth)
	s.nullable = g.one(8)
	return s
}

func (g *generator) grow(depth int) *shape {
	if depth == 0 {
		return g.scalar()
	}
	switch g.IntN(11) {
	case 0, 1:
		return g.scalar()
	case 2, 3:
		return &shape{kind: "array", items: g.shape(depth - 1), list: g.of("", "atomic"), most: g.bound(6)}
	case 4, 5:
		item := g.scalar()
		for item.kind == "int-or-string" {
			item = g.scalar()
		}
		return &shape{kind: "array", items: item, list: "set", most: g.bound(6)}
	case 6, 7:
		item := g.object(depth - 1)
		list := &shape{kind: "array", items: item, list: "map", most: g.bound(6)}
		for i := range 1 + g.IntN(2) {
			name := g.of("a", "b", "k.y", "in") + strconv.Itoa(i)
			key := &shape{kind: "string", most: 20}
			if g.one(3) {
				key = &shape{kind: "integer"}
			}
			item.fields = append(item.fields, field{name, key, true})
			list.keys = append(list.keys, name)
		}
		return list
	case 8:
		return &shape{kind: "object", values: g.shape(depth - 1), most: g.bound(6)}
	case 9:
		s := g.object(depth - 1)
		s.embedded = g.one(2)
		s.preserve = !s.embedded || g.one(2)
		return s
	}
	return g.object(depth - 1)
}

func (g *generator) object(depth int) *shape {
	s := &shape{kind: "object"}
	for range 1 + g.IntN(3) {
		name := names[g.IntN(len(names))]
		if name == "apiVersion" || name == "kind" || s.field(name) != nil {
			continue
		}
		s.fields = append(s.fields, field{name, g.shape(depth), !g.one(4)})
	}
	return s
}

// place notes where each shape is.
func (s *shape) place(site, path, at string) {
	s.site, s.path, s.at = site, path, at
	below := func(n *shape, own, step, keyword string) {
		if n == nil {
			return
		}
		n.place(own, path+step, join(at, keyword))
	}
	own := site
	if site == atRoot {
		own = atProperty
	}
	for _, f := range s.fields {
		below(f.shape, own, "."+f.name, "properties["+f.name+"]")
	}
	// Below a list whose items cannot be correlated nothing can be, so that the outermost one counts.
	lost := site == inAtomic || site == inSet
	inner := map[string]string{"": inAtomic, "atomic": inAtomic, "set": inSet, "map": inMapList}[s.list]
	values := inValues
	if lost {
		inner, values = site, site
	}
	below(s.items, inner, "[]", "items")
	below(s.values, values, "{}", "additionalProperties")
}

func join(at, keyword string) string {
	if at == "" {
		return keyword
	}
	return at + "." + keyword
}

// declare finds the type that a shape has in rules.
func (g *generator) declare(s *shape, name string, resource bool) {
	for _, f := range s.fields {
		g.declare(f.shape, name+"."+f.name, false)
	}
	switch s.kind {
	case "string":
		switch s.format {
		case "date", "date-time":
			s.cel = types.TimestampType
		case "duration":
			s.cel = types.DurationType
		case "byte":
			s.cel = types.BytesType
		default:
			s.cel = types.StringType
		}
	case "integer":
		s.cel = types.IntType
	case "number":
		s.cel = types.DoubleType
	case "boolean":
		s.cel = types.BoolType
	case "int-or-string":
		s.cel = types.DynType
	case "array":
		g.declare(s.items, name+".@items", false)
		s.cel = types.NewListType(s.items.cel)
	case "object":
		if s.values != nil {
			g.declare(s.values, name+".@values", false)
			s.cel = types.NewMapType(types.StringType, s.values.cel)
			return
		}
		s.cel = types.NewObjectType(name)
		g.types[name] = s
		if resource || s.embedded {
			g.declareResource(s, name)
		}
	}
}

// declareResource adds what rules see of a resource besides its fields. They are not fields of the schema.
func (g *generator) declareResource(s *shape, name string) {
	text := func() *shape { return &shape{kind: "string", cel: types.StringType} }
	meta := &shape{kind: "object", cel: types.NewObjectType(name + ".metadata"), fields: []field{{"name", text(), false}, {"generateName", text(), false}}}
	g.types[name+".metadata"] = meta
	g.types[name] = &shape{kind: "object", cel: s.cel, fields: append([]field{{"kind", text(), true}, {"apiVersion", text(), true}, {"metadata", meta, true}}, s.fields...)}
}

// steps lists the fields of an object by the names that rules use.
func (s *shape) steps() []field {
	var list []field
	for _, f := range s.fields {
		if escaped, ok := cel.Escape(f.name); ok && f.shape.cel != nil {
			list = append(list, field{escaped, f.shape, f.required})
		}
	}
	return list
}

// JSON is the schema as a document.
func (s *shape) JSON() *tree.Node {
	n := tree.Obj()
	switch s.kind {
	case "int-or-string":
		n.Add("x-kubernetes-int-or-string", tree.Lit("true"))
	default:
		n.Add("type", tree.Str(s.kind))
	}
	if s.format != "" {
		n.Add("format", tree.Str(s.format))
	}
	if s.fallback != nil {
		n.Add("default", s.fallback.Clone())
	}
	if s.nullable {
		n.Add("nullable", tree.Lit("true"))
	}
	if s.embedded {
		n.Add("x-kubernetes-embedded-resource", tree.Lit("true"))
	}
	if s.preserve {
		n.Add("x-kubernetes-preserve-unknown-fields", tree.Lit("true"))
	}
	if s.most > 0 {
		keyword := map[string]string{"string": "maxLength", "array": "maxItems", "object": "maxProperties", "int-or-string": "maxLength"}[s.kind]
		n.Add(keyword, tree.Lit(strconv.Itoa(s.most)))
	}
	if s.list != "" {
		n.Add("x-kubernetes-list-type", tree.Str(s.list))
	}
	if len(s.keys) > 0 {
		keys := tree.Arr()
		for _, k := range s.keys {
			keys.Kids = append(keys.Kids, tree.Str(k))
		}
		n.Add("x-kubernetes-list-map-keys", keys)
	}
	if s.items != nil {
		n.Add("items", s.items.JSON())
	}
	if s.values != nil {
		n.Add("additionalProperties", s.values.JSON())
	}
	if len(s.fields) > 0 {
		props, required := tree.Obj(), tree.Arr()
		for _, f := range s.fields {
			props.Add(f.name, f.shape.JSON())
			if f.required {
				required.Kids = append(required.Kids, tree.Str(f.name))
			}
		}
		n.Add("properties", props)
		if len(required.Kids) > 0 {
			n.Add("required", required)
		}
	}
	if len(s.rules) > 0 {
		list := tree.Arr()
		for _, r := range s.rules {
			list.Kids = append(list.Kids, r.JSON())
		}
		n.Add("x-kubernetes-validations", list)
	}
	return n
}

// each visits a shape and those below it.
func (s *shape) each(visit func(*shape)) {
	if s == nil {
		return
	}
	visit(s)
	for _, f := range s.fields {
		f.shape.each(visit)
	}
	s.items.each(visit)
	s.values.each(visit)
}

// describe writes the type of a shape with the fields of objects, which the names of types lack.
func (s *shape) describe() string {
	if s.kind != "object" || s.values != nil {
		switch {
		case s.items != nil:
			return s.list + "[" + s.items.describe() + "]"
		case s.values != nil:
			return "map[" + s.values.describe() + "]"
		}
		return s.cel.String()
	}
	text := "{"
	for _, f := range s.fields {
		text += f.name + ":" + f.shape.describe() + ","
	}
	return text + "}"
}
