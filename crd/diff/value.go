package diff

import (
	"slices"
	"strconv"

	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// part is a schema that applies to the values of a place.
type part struct {
	s      *schema
	at     *pointer
	nested bool // below a logical keyword: it validates, and gives no structure
	exempt bool // in a logical keyword of this very place, where nulls are not validated
}

// value is what one CRD says about the values of a place.
type value struct {
	frame *part  // what gives the structure; nil for the branch of a logical keyword
	parts []part // all that has to hold: the frame, and what logical keywords say that leave no choice
	fills *schema
	own   bool // the parts all come from the frame
	keep  bool // in a list whose unknown fields are preserved
	meta  bool // the metadata of a resource, which is not pruned
	all   bool // nothing is pruned, here and below
}

// open and bare stand for the schema of values that the CRD has no schema for. With
// open, the API server preserves all fields of objects. With bare, it prunes all of
// them. Both accept null.
var (
	open = &schema{Nullable: true, PreserveUnknownFields: new(true)}
	bare = &schema{Nullable: true}

	// textual is the schema of apiVersion and kind, and metadata that of metadata. Every
	// resource has these fields, also if its schema does not specify them.
	textual  = &schema{Type: "string"}
	metadata = &schema{Type: "object", PreserveUnknownFields: new(true)}
)

// framed returns the value whose structure p gives, under further demands.
func (c *comparer) framed(p part, demands []part, keep, meta bool) value {
	v := value{frame: &p, fills: p.s, own: len(demands) == 0, keep: keep, meta: meta}
	v.parts = c.flatten(nil, p)
	for _, d := range demands {
		v.parts = c.flatten(v.parts, d)
	}
	return v
}

// under returns v with one more demand, such as the branch of a logical keyword.
func (c *comparer) under(v value, p part) value {
	v.parts = c.flatten(slices.Clip(v.parts), p)
	v.own = false
	return v
}

// flatten appends p and what its logical keywords demand without a choice.
func (c *comparer) flatten(list []part, p part) []part {
	list = append(list, p)
	for i, b := range p.s.AllOf {
		if !c.spend(1) {
			return list
		}
		list = c.flatten(list, branch(p, "allOf", i, b))
	}
	if len(p.s.AnyOf) == 1 {
		list = c.flatten(list, branch(p, "anyOf", 0, p.s.AnyOf[0]))
	}
	if len(p.s.OneOf) == 1 {
		list = c.flatten(list, branch(p, "oneOf", 0, p.s.OneOf[0]))
	}
	return list
}

func branch(p part, keyword string, i int, s *schema) part {
	return part{s, p.at.to(keyword, strconv.Itoa(i)), true, true}
}

// negation returns what a part negates.
func negation(p part) part { return part{p.s.Not, p.at.to("not"), true, true} }

// keeps reports whether unknown fields of the value are preserved.
func (v *value) keeps() bool {
	return v.keep || v.meta || v.all || v.frame.s.PreserveUnknownFields != nil && *v.frame.s.PreserveUnknownFields
}

const null = plan.Kinds(1 << jsondoc.Null)

// kinds returns what the types of a value admit. Strictly, what clusters admit
// by mistake does not count.
func (v *value) kinds(strict bool) plan.Kinds {
	k := plan.AnyKind
	for i := range v.parts {
		a := compile.Accepts(v.parts[i].s, strict)
		if v.parts[i].exempt {
			a |= null
		}
		k &= a
	}
	return k
}

// whole reports whether numbers have to be integers.
func (v *value) whole() bool {
	return slices.ContainsFunc(v.parts, func(p part) bool { return p.s.Type == "integer" && !p.s.IntOrString })
}

// intOrString reports whether the value is declared as either.
func (v *value) intOrString() bool {
	return slices.ContainsFunc(v.parts, func(p part) bool { return p.s.IntOrString })
}

// nulls reports whether a null stays a null.
func (v *value) nulls(item bool) bool {
	return v.kinds(true)&null != 0 && (item || v.frame.s.Nullable)
}

// at returns the pointer to a keyword, or to the schema that lacks it.
func (v *value) at(keyword string) string {
	for i := range v.parts {
		if v.parts[i].s.Has(keyword) {
			return v.parts[i].at.to(keyword).String()
		}
	}
	if len(v.parts) == 0 {
		return ""
	}
	return v.parts[0].at.String()
}

// treatment is what becomes of a field.
type treatment uint8

const (
	dropped   treatment = iota // pruned, or refused
	preserved                  // kept as it is
	emptied                    // kept; objects in it lose their fields
	specified                  // described by a schema
)

// property returns what holds for the field called name.
func (c *comparer) property(v *value, name string, root bool) (value, treatment) {
	demands := demandsOn(v, func(p part) *part {
		if q := p.s.Property(name); q != nil {
			return &part{s: q, at: p.at.to("properties", name), nested: true}
		}
		return additional(p)
	})
	var child value
	how := specified
	switch frame := v.frame; {
	case frame == nil:
		for _, d := range demands {
			child.parts = c.flatten(child.parts, d)
		}
		if child.fills = valuesOf(v.fills); v.fills != nil && v.fills.Property(name) != nil {
			child.fills = v.fills.Property(name)
		}
	case frame.s.Property(name) != nil:
		p := part{s: frame.s.Property(name), at: frame.at.to("properties", name), nested: frame.nested}
		child = c.framed(p, demands, false, v.meta || name == "metadata" && (root || frame.s.EmbeddedResource))
	case (root || frame.s.EmbeddedResource) && isMeta(name), v.meta && (name == "name" || name == "generateName"):
		child = c.framed(part{s: metaSchema(name), at: frame.at}, demands, false, name == "metadata")
	default:
		child, how = c.others(v, demands)
	}
	child.all = v.all
	return child, how
}

func isMeta(name string) bool { return name == "metadata" || name == "apiVersion" || name == "kind" }

func metaSchema(name string) *schema {
	if name == "metadata" {
		return metadata
	}
	return textual
}

// others returns what holds for fields that the frame's properties do not name.
func (c *comparer) others(v *value, demands []part) (child value, how treatment) {
	defer func() { child.all = v.all }()
	frame := v.frame
	switch ap := frame.s.AdditionalProperties; {
	case ap != nil && ap.Schema != nil:
		return c.framed(*additional(*frame), demands, false, v.meta), specified
	case ap != nil && ap.Allows:
		return c.framed(part{s: bare, at: frame.at}, demands, false, v.meta), emptied
	case ap == nil && v.keeps():
		return c.framed(part{s: open, at: frame.at}, demands, false, false), preserved
	}
	return value{}, dropped
}

// valuesOf returns the schema of the fields that the properties of s do not name, nil if
// there is none.
func valuesOf(s *schema) *schema {
	if s == nil || s.AdditionalProperties == nil {
		return nil
	}
	return s.AdditionalProperties.Schema
}

func additional(p part) *part {
	if s := valuesOf(p.s); s != nil {
		return &part{s: s, at: p.at.to("additionalProperties"), nested: p.nested}
	}
	return nil
}

// items returns what holds for the items of a list.
func (c *comparer) items(v *value) (child value, how treatment) {
	defer func() { child.all = v.all }()
	of := func(p part) *part {
		if s := p.s.ItemSchema(); s != nil {
			return &part{s: s, at: p.at.to("items"), nested: p.nested}
		}
		return nil
	}
	demands := demandsOn(v, of)
	frame := v.frame
	switch {
	case frame == nil:
		for _, d := range demands {
			child.parts = c.flatten(child.parts, d)
		}
		if v.fills != nil {
			child.fills = v.fills.ItemSchema()
		}
		return child, specified
	case frame.s.ItemSchema() != nil:
		return c.framed(*of(*frame), demands, v.keeps() && !v.meta, v.meta), specified
	case v.keeps():
		return c.framed(part{s: open, at: frame.at}, demands, false, v.meta), preserved
	}
	return c.framed(part{s: bare, at: frame.at}, demands, false, false), emptied
}

// demandsOn collects what the parts besides the frame say about a value within.
func demandsOn(v *value, of func(part) *part) []part {
	parts := v.parts
	if v.frame != nil {
		parts = parts[1:]
	}
	var list []part
	for _, p := range parts {
		if d := of(p); d != nil {
			list = append(list, *d)
		}
	}
	return list
}
