package conversion

import (
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// side is one of the two versions of a conversion: its fields as a tree.
type side struct {
	version string
	root    *field
	notes   []*field // annotations and labels that rules name
	fields  int
}

// kind is how the parts of a value are found.
type kind uint8

const (
	leaf    kind = iota // is converted as a whole
	object              // has fields
	list                // has items
	mapping             // has values by key
)

// fate is what becomes of a field.
type fate uint8

const (
	open      fate = iota // nothing has been decided
	carried               // its mate has the value
	grouped               // a group of fields is calculated from the group that it is in
	preserved             // it is saved in an annotation
	lost                  // it is dropped, as the rules say
	split                 // it is an object without a mate; its fields have fates
	listKey               // it is the key of a map in the other version
	header                // every object has it
)

// field is a value of one version, as its schema specifies it.
type field struct {
	name     string
	in       string // annotations or labels, if it is one of those
	kind     kind
	schema   *syntax.Schema
	parent   *field
	children []*field // of an object, sorted by name
	item     *field   // of a list or map
	unknown  bool     // members that the schema does not specify are kept

	fate     fate
	mate     *field
	group    *group
	index    int    // in its side of the group
	partner  *field // of an item: what a context of the other version it is converted with
	keyed    *keyed // of a list and a map that are converted into each other
	same     bool   // copying the bytes converts it
	explicit bool   // a rule says its fate

	slot int32 // where the value is while an object is converted
}

// keyed is how a list and a map become each other.
type keyed struct {
	key *field // of the items of the list
}

// headers are the members that every object has.
var headers = []string{"apiVersion", "kind", "metadata"}

// newSide makes the tree of a schema.
func newSide(version string, s *syntax.Schema) *side {
	out := &side{version: version}
	out.root = out.field("", s, nil)
	out.root.kind = object
	// The server owns these.
	out.root.children = slices.DeleteFunc(out.root.children, func(f *field) bool { return slices.Contains(headers, f.name) })
	for _, name := range headers {
		out.root.children = append(out.root.children, &field{name: name, parent: out.root, fate: header, slot: -1})
	}
	slices.SortFunc(out.root.children, func(a, b *field) int { return strings.Compare(a.name, b.name) })
	return out
}

func (s *side) field(name string, schema *syntax.Schema, parent *field) *field {
	s.fields++
	f := &field{name: name, schema: schema, parent: parent, slot: -1}
	if schema == nil {
		return f
	}
	f.unknown = schema.PreserveUnknownFields != nil && *schema.PreserveUnknownFields
	switch {
	case schema.EmbeddedResource:
		// Its metadata is the server's to check: it is converted as a whole.
	case schema.Type == "array" && schema.ItemSchema() != nil:
		f.kind = list
		f.item = s.field("", schema.ItemSchema(), f)
	case schema.AdditionalProperties != nil && len(schema.Properties) == 0 && schema.AdditionalProperties.Allows:
		f.kind = mapping
		f.item = s.field("", schema.AdditionalProperties.Schema, f)
	case schema.Type == "object" || schema.Type == "" && len(schema.Properties) > 0:
		f.kind = object
		for _, p := range schema.Properties {
			f.children = append(f.children, s.field(p.Name, p.Schema, f))
		}
	}
	return f
}

// note returns the field of an annotation or label.
func (s *side) note(in, name string) *field {
	for _, f := range s.notes {
		if f.in == in && f.name == name {
			return f
		}
	}
	f := &field{name: name, in: in, parent: s.root, schema: &syntax.Schema{Type: "string"}, slot: -1}
	s.notes = append(s.notes, f)
	return f
}

func (f *field) child(name string) *field {
	i, found := slices.BinarySearchFunc(f.children, name, func(c *field, name string) int { return strings.Compare(c.name, name) })
	if !found {
		return nil
	}
	return f.children[i]
}

// entry reports whether the field is an item of a list or a value of a map. Only rules that make something of it keep its
// place: it can be preserved, dropped or made of nothing only together with the list or map.
func (f *field) entry() bool {
	return f.parent != nil && (f.parent.kind == list || f.parent.kind == mapping)
}

// context returns the item, map value or object that the field is reached from by names alone.
func (f *field) context() *field {
	for f.parent != nil && f.parent.kind == object {
		f = f.parent
	}
	return f
}

// kinds returns what JSON the schema of the field accepts.
func (f *field) kinds() plan.Kinds {
	if f.schema == nil {
		return plan.AnyKind
	}
	return kindsOf(f.schema)
}

// listKeys returns the keys of the items of a list of type map.
func (f *field) listKeys() []string {
	if f.schema == nil || f.schema.ListType == nil || *f.schema.ListType != "map" || f.item.kind != object {
		return nil
	}
	return f.schema.ListMapKeys
}

// scalar returns the type of a leaf whose values have no parts, or "".
func (f *field) scalar() string {
	if f.kind != leaf || f.schema == nil || f.schema.IntOrString {
		return ""
	}
	switch f.schema.Type {
	case "string", "integer", "number", "boolean":
		return f.schema.Type
	}
	return ""
}

// alike reports whether values of one field can be values of the other, apart from what is below them.
func alike(a, b *field) bool {
	if a.kind != b.kind {
		return false
	}
	if a.item != nil {
		return alike(a.item, b.item) || decided(a.item) || decided(b.item)
	}
	if a.kind != leaf || a.schema == nil || b.schema == nil {
		return a.kind != leaf || a.schema == b.schema
	}
	if a.schema.EmbeddedResource && !keepsTheSame(a.schema, b.schema) {
		return false // it is converted as a whole, and what only one of them specifies would disappear
	}
	return a.schema.Type == b.schema.Type && a.schema.IntOrString == b.schema.IntOrString && a.schema.EmbeddedResource == b.schema.EmbeddedResource
}

// keepsTheSame reports whether both schemas prune the same fields, and have the same types.
func keepsTheSame(a, b *syntax.Schema) bool {
	if a == nil || b == nil {
		return a == b
	}
	keeps := func(s *syntax.Schema) bool { return s.PreserveUnknownFields != nil && *s.PreserveUnknownFields }
	if a.Type != b.Type || a.IntOrString != b.IntOrString || a.EmbeddedResource != b.EmbeddedResource || keeps(a) != keeps(b) ||
		len(a.Properties) != len(b.Properties) || !keepsTheSame(a.ItemSchema(), b.ItemSchema()) {
		return false
	}
	x, y := a.AdditionalProperties, b.AdditionalProperties
	if (x != nil && x.Allows) != (y != nil && y.Allows) || x != nil && x.Allows && !keepsTheSame(x.Schema, y.Schema) {
		return false
	}
	for i := range a.Properties {
		if a.Properties[i].Name != b.Properties[i].Name || !keepsTheSame(a.Properties[i].Schema, b.Properties[i].Schema) {
			return false
		}
	}
	return true
}

// identical reports whether values of one field are values of the other, with all that is below them.
func identical(a, b *field) bool {
	if !alike(a, b) || a.unknown != b.unknown || len(a.children) != len(b.children) {
		return false
	}
	for i := range a.children {
		if a.children[i].name != b.children[i].name || !identical(a.children[i], b.children[i]) {
			return false
		}
	}
	return a.item == nil || identical(a.item, b.item)
}

func kindsOf(s *syntax.Schema) plan.Kinds {
	all := plan.AnyKind
	switch {
	case s.IntOrString:
		all = plan.KindsOf(jsondoc.Number, jsondoc.String)
	case s.Type == "object":
		all = plan.KindsOf(jsondoc.Object)
	case s.Type == "array":
		all = plan.KindsOf(jsondoc.Array)
	case s.Type == "string":
		all = plan.KindsOf(jsondoc.String)
	case s.Type == "integer", s.Type == "number":
		all = plan.KindsOf(jsondoc.Number)
	case s.Type == "boolean":
		all = plan.KindsOf(jsondoc.False, jsondoc.True)
	}
	return all | plan.KindsOf(jsondoc.Null)
}
