package witness

import (
	"slices"

	"github.com/espalier-dev/espalier/internal/syntax"
)

type schema = syntax.Schema

// parts are the schemas that apply to a value. The first one gives it its structure; there is none for values that the
// schema does not describe.
type parts []*schema

const maxParts = 256

// with appends a schema and what its logical keywords say without a choice; with all, what they say at all.
func (p parts) with(s *schema, all bool) parts {
	if s == nil || len(p) >= maxParts {
		return p
	}
	p = append(p, s)
	for _, b := range s.AllOf {
		p = p.with(b, all)
	}
	for _, branches := range [][]*schema{s.AnyOf, s.OneOf} {
		if len(branches) == 1 || all {
			for _, b := range branches {
				p = p.with(b, all)
			}
		}
	}
	if all {
		p = p.with(s.Not, all)
	}
	return p
}

// property returns what applies to a member.
func (p parts) property(name string, all bool) (child parts) {
	for _, s := range p {
		if q := s.Property(name); q != nil {
			child = child.with(q, all)
		} else if a := s.AdditionalProperties; a != nil {
			child = child.with(a.Schema, all)
		}
	}
	return child
}

// values returns what applies to members of a map.
func (p parts) values(all bool) (child parts) {
	for _, s := range p {
		if a := s.AdditionalProperties; a != nil {
			child = child.with(a.Schema, all)
		}
	}
	return child
}

func (p parts) items(all bool) (child parts) {
	for _, s := range p {
		child = child.with(s.ItemSchema(), all)
	}
	return child
}

func (p parts) step(s Step, all bool) parts {
	switch s.Into {
	case Item:
		return p.items(all)
	case Value:
		return p.values(all)
	}
	return p.property(s.Name, all)
}

// kind returns the type, "" for any.
func (p parts) kind() string {
	for _, s := range p {
		if s.IntOrString {
			return "int-or-string"
		}
		if s.Type != "" {
			return s.Type
		}
	}
	for _, s := range p {
		switch {
		case len(s.Properties) > 0 || s.AdditionalProperties != nil || len(s.Required) > 0:
			return "object"
		case s.ItemSchema() != nil:
			return "array"
		}
	}
	return ""
}

func (p parts) required() (names []string) {
	for _, s := range p {
		for _, name := range s.Required {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// properties returns the properties of the structure. There can be tens of thousands.
func (p parts) properties() []syntax.Property {
	if len(p) == 0 {
		return nil
	}
	return p[0].Properties
}

func (p parts) isMap() bool {
	return len(p) > 0 && p[0].AdditionalProperties != nil && (p[0].AdditionalProperties.Schema != nil || p[0].AdditionalProperties.Allows)
}

func (p parts) preserves() bool {
	return len(p) == 0 || p[0].PreserveUnknownFields != nil && *p[0].PreserveUnknownFields
}

func (p parts) defaults() bool { return len(p) > 0 && p[0].Default != nil }
func (p parts) nullable() bool { return len(p) > 0 && p[0].Nullable }
func (p parts) embedded() bool { return len(p) > 0 && p[0].EmbeddedResource }
func (p parts) keys() []string { return p[0].ListMapKeys }

// least returns the tightest of lower limits.
func (p parts) least(of func(*schema) *int64) int64 {
	n := int64(0)
	for _, s := range p {
		if x := of(s); x != nil {
			n = max(n, *x)
		}
	}
	return n
}

func maxItems(s *schema) *int64      { return s.MaxItems }
func minItems(s *schema) *int64      { return s.MinItems }
func maxProperties(s *schema) *int64 { return s.MaxProperties }
func minProperties(s *schema) *int64 { return s.MinProperties }
