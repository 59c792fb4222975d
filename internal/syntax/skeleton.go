package syntax

import (
	"slices"
	"strconv"
	"strings"
)

// Skeleton returns skel(s) of the first pruning KEP (KEP-24): what s says about
// types and field names, inside and outside logical keywords, without any value
// validation and without logical keywords.
//
//	skel(s) := merge(drop(s), skel(s_1), …, skel(s_n))
//
// where drop keeps type, items, additionalItems, properties, patternProperties
// and additionalProperties, and s_1 … s_n are the schemas under the logical keywords.
//
// The KEP lets a type survive only "if all x_i agree on t". A branch that says
// nothing about the type is read as agreeing with the type that s itself
// states, at s and at every path below it: s's own type applies whichever
// branch holds, and otherwise {type: object, anyOf: [{required: [a]}]} would
// lose its type. Where s itself states none, all branches that mention the path
// must state the same one.
//
// The cost is O(n log n) in the size of s, and the result is not larger than s.
func Skeleton(s *Schema) *Schema {
	if s == nil {
		return nil
	}
	return skel(s).schema()
}

// Merge returns merge(x_1, …, x_n) of the KEP. Keywords that are not part of a
// skeleton are ignored, logical keywords included.
func Merge(xs ...*Schema) *Schema {
	var all *bone
	for _, x := range xs {
		if x != nil {
			all = join(all, dropAll(x), equals)
		}
	}
	if all == nil {
		return &Schema{}
	}
	return all.schema()
}

// bone is a schema of a skeleton under construction. Joining two of them
// consumes both, so that the whole costs no more than the number of schemas.
type bone struct {
	offset int

	typ    string // the type that is stated somewhere
	silent bool   // and somewhere else there is none
	mixed  bool   // and somewhere else there is another one

	properties        *bones
	patternProperties *bones
	// additionalProperties and additionalItems; a bool is kept until it meets
	// a schema.
	additionalProperties *boneOrBool
	additionalItems      *boneOrBool

	items *bone   // one schema for all items
	tuple []*bone // one for each; nil if there is none
}

// bones is a map of schemas; it is not nil when the keyword is defined.
type bones struct{ byName map[string]named }

type named struct {
	offset int
	bone   *bone
}

type boneOrBool struct {
	allows bool
	bone   *bone
}

// relation says how the two sides of a join are related.
type relation bool

const (
	equals   relation = false // both are branches
	governed relation = true  // the left one applies whichever branch, the right one, holds
)

func skel(s *Schema) *bone {
	own := drop(s, skel)
	var branches *bone
	for _, list := range [][]*Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, b := range list {
			branches = join(branches, skel(b), equals)
		}
	}
	if s.Not != nil {
		branches = join(branches, skel(s.Not), equals)
	}
	return join(own, branches, governed)
}

func dropAll(s *Schema) *bone { return drop(s, dropAll) }

// drop makes a bone of s, of whose logical keywords it takes no notice, and lets child
// make those of its children.
func drop(s *Schema, child func(*Schema) *bone) *bone {
	b := &bone{offset: s.Offset, typ: s.Type, silent: s.Type == ""}
	b.properties = newBones(s.Properties, child)
	b.patternProperties = newBones(s.Rare().PatternProperties, child)
	b.additionalProperties = newBoneOrBool(s.AdditionalProperties, child)
	b.additionalItems = newBoneOrBool(s.Rare().AdditionalItems, child)
	if s.Items == nil {
		return b
	}
	if s.Items.Schema != nil {
		b.items = child(s.Items.Schema)
	}
	if s.Items.Tuple != nil {
		b.tuple = make([]*bone, len(s.Items.Tuple))
		for i, t := range s.Items.Tuple {
			b.tuple[i] = child(t)
		}
	}
	return b
}

func newBones(list []Property, child func(*Schema) *bone) *bones {
	if list == nil {
		return nil
	}
	m := &bones{make(map[string]named, len(list))}
	for _, p := range list {
		m.byName[p.Name] = named{p.Offset, child(p.Schema)}
	}
	return m
}

func newBoneOrBool(x *SchemaOrBool, child func(*Schema) *bone) *boneOrBool {
	if x == nil {
		return nil
	}
	b := &boneOrBool{allows: x.Allows}
	if x.Schema != nil {
		b.bone = child(x.Schema)
	}
	return b
}

// join merges two bones into one. Either may be nil.
func join(a, b *bone, r relation) *bone {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	if a.typ == "" {
		a.typ = b.typ
	} else if b.typ != "" && a.typ != b.typ {
		a.mixed = true
	}
	a.mixed = a.mixed || b.mixed
	a.silent = a.silent || b.silent && r == equals
	a.properties = joinBones(a.properties, b.properties, r)
	a.patternProperties = joinBones(a.patternProperties, b.patternProperties, r)
	a.additionalProperties = joinOrBool(a.additionalProperties, b.additionalProperties, r)
	a.additionalItems = joinOrBool(a.additionalItems, b.additionalItems, r)
	joinItems(a, b, r)
	return a
}

// joinBones moves the smaller map into the larger one: moved that way, no
// entry moves more than log n times however deep logical keywords are nested.
func joinBones(a, b *bones, r relation) *bones {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	into, from := a, b
	if len(into.byName) < len(from.byName) {
		into, from = b, a
	}
	for name, m := range from.byName {
		other, both := into.byName[name]
		switch {
		case !both:
		case into == a:
			m = named{other.offset, join(other.bone, m.bone, r)}
		default:
			m.bone = join(m.bone, other.bone, r)
		}
		into.byName[name] = m
	}
	return into
}

func joinOrBool(a, b *boneOrBool, r relation) *boneOrBool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.bone != nil && b.bone != nil:
		a.bone = join(a.bone, b.bone, r)
		return a
	case a.bone == nil && b.bone == nil:
		a.allows = a.allows || b.allows
		return a
	}
	// A bool and a schema: true is the schema that says nothing; false
	// specifies no path, so it has nothing to add.
	flag, other := a, b
	if a.bone != nil {
		flag, other = b, a
	}
	if flag.allows && (r == equals || other == b) {
		other.bone.silent = true
	}
	return other
}

// joinItems joins tuples place by place. Where one side has a tuple and the
// other one schema for all items, the weaker form, one for all, has to do.
func joinItems(a, b *bone, r relation) {
	switch {
	case a.tuple != nil && b.tuple != nil && a.items == nil && b.items == nil:
		if len(a.tuple) < len(b.tuple) {
			a.tuple = append(a.tuple, b.tuple[len(a.tuple):]...)
		}
		for i, t := range b.tuple {
			if a.tuple[i] != t {
				a.tuple[i] = join(a.tuple[i], t, r)
			}
		}
	case a.tuple == nil && a.items == nil:
		a.items, a.tuple = b.items, b.tuple
	case b.tuple == nil && b.items == nil:
	default:
		a.items = join(a.allItems(), b.allItems(), r)
		a.tuple = nil
	}
}

// allItems is one schema for all items of the array.
func (b *bone) allItems() *bone {
	all := b.items
	for _, t := range b.tuple {
		all = join(all, t, equals)
	}
	return all
}

// schema turns the finished bone into a Schema.
func (b *bone) schema() *Schema {
	s := &Schema{Offset: b.offset}
	if b.typ != "" && !b.silent && !b.mixed {
		s.Type = b.typ
		s.write("type")
	}
	if b.properties != nil {
		s.Properties = b.properties.list()
		s.write("properties")
	}
	if b.patternProperties != nil {
		s.newRare().PatternProperties = b.patternProperties.list()
		s.write("patternProperties")
	}
	if b.additionalProperties != nil {
		s.AdditionalProperties = b.additionalProperties.schemaOrBool()
		s.write("additionalProperties")
	}
	if b.additionalItems != nil {
		s.newRare().AdditionalItems = b.additionalItems.schemaOrBool()
		s.write("additionalItems")
	}
	if b.items != nil || b.tuple != nil {
		s.Items = &Items{}
		s.write("items")
	}
	if b.items != nil {
		s.Items.Schema = b.items.schema()
	} else if b.tuple != nil {
		s.Items.Tuple = make([]*Schema, len(b.tuple))
		for i, t := range b.tuple {
			s.Items.Tuple[i] = t.schema()
		}
	}
	return s
}

func (m *bones) list() []Property {
	list := make([]Property, 0, len(m.byName))
	for name, n := range m.byName {
		list = append(list, Property{name, n.offset, n.bone.schema()})
	}
	slices.SortFunc(list, func(a, b Property) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (x *boneOrBool) schemaOrBool() *SchemaOrBool {
	if x.bone == nil {
		return &SchemaOrBool{Allows: x.allows}
	}
	return &SchemaOrBool{Allows: true, Schema: x.bone.schema()}
}

// Polymorphism is a place that is an object with given fields and a map at
// the same time.
type Polymorphism struct {
	Pointer string // RFC 6901, in the skeleton
	Schema  *Schema
}

// maxPointerBytes bounds the pointers ObjectPolymorphism makes: deep schemas
// could otherwise have a quadratic number of bytes in them.
const maxPointerBytes = 16 << 20

// ObjectPolymorphism returns the violations of Restriction 1 on Object
// Polymorphism of KEP-24 in a skeleton: the places where properties is defined
// together with additionalProperties or patternProperties. After 16 MiB of
// pointers it stops.
func ObjectPolymorphism(skeleton *Schema) []Polymorphism {
	w := polymorphism{budget: maxPointerBytes}
	w.walk(skeleton)
	return w.found
}

type polymorphism struct {
	path   []byte
	found  []Polymorphism
	budget int
}

func (w *polymorphism) walk(s *Schema) {
	if s == nil || w.budget <= 0 {
		return
	}
	if s.Properties != nil && (s.AdditionalProperties != nil || s.Rare().PatternProperties != nil) {
		w.found = append(w.found, Polymorphism{string(w.path), s})
		w.budget -= len(w.path) + 1
	}
	for _, p := range s.Properties {
		w.child(p.Schema, "properties", p.Name)
	}
	for _, p := range s.Rare().PatternProperties {
		w.child(p.Schema, "patternProperties", p.Name)
	}
	if x := s.AdditionalProperties; x != nil {
		w.child(x.Schema, "additionalProperties")
	}
	if x := s.Rare().AdditionalItems; x != nil {
		w.child(x.Schema, "additionalItems")
	}
	if s.Items != nil {
		w.child(s.Items.Schema, "items")
		for i, t := range s.Items.Tuple {
			w.child(t, "items", strconv.Itoa(i))
		}
	}
}

func (w *polymorphism) child(s *Schema, tokens ...string) {
	n := len(w.path)
	for _, t := range tokens {
		w.path = AppendToken(w.path, t)
	}
	w.walk(s)
	w.path = w.path[:n]
}
