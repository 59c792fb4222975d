package syntax

import (
	"slices"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// WellFormedUnions returns the entries of x-kubernetes-unions that are written
// as KEP-2335 defines them. The others have no effect: clusters ignore the
// keyword, and no object is to be refused because of a slip in it.
//
// A union is well-formed if the schema's type is object, its members are
// properties, and none of them is a member of a union before it or a
// discriminator. With a discriminator, which is a property of type string and
// not that of a union before it, the members have values that differ, and if
// the discriminator has an enum, it lists just these. Without, they have none.
func WellFormedUnions(s *Schema) []Union {
	r := s.Rare()
	if len(r.Unions) == 0 || s.Type != "object" || slices.ContainsFunc(r.Malformed, func(m Malformed) bool { return m.Keyword == unionsKeyword }) {
		return nil
	}
	discriminators, members := map[string]bool{}, map[string]bool{}
	for i := range r.Unions {
		discriminators[r.Unions[i].Discriminator] = true
	}
	delete(discriminators, "")
	var list []Union
	used := map[string]bool{}
	for i := range r.Unions {
		u := &r.Unions[i]
		ok := len(u.Fields) > 0 && !used[u.Discriminator] && distinctValues(s, u)
		used[u.Discriminator] = u.Discriminator != ""
		for _, f := range u.Fields {
			if s.Property(f.Name) == nil || discriminators[f.Name] || members[f.Name] {
				ok = false
			}
			members[f.Name] = true
		}
		if ok {
			list = append(list, *u)
		}
	}
	return list
}

const unionsKeyword = "x-kubernetes-unions"

// distinctValues reports whether the discriminator, if there is one, can tell
// the members apart.
func distinctValues(s *Schema, u *Union) bool {
	if u.Discriminator == "" {
		return !slices.ContainsFunc(u.Fields, func(f UnionField) bool { return f.Value != "" })
	}
	p := s.Property(u.Discriminator)
	if p == nil || p.Type != "string" {
		return false
	}
	values := make(map[string]bool, len(u.Fields))
	for _, f := range u.Fields {
		if f.Value == "" || values[f.Value] {
			return false
		}
		values[f.Value] = true
	}
	missing, surplus := UnionEnum(p, u)
	return len(missing)+len(surplus) == 0
}

// UnionEnum compares the enum of a discriminator with the values of the
// union's members: those it does not list, and what it lists besides, as
// JSON. There is nothing to compare if there is no enum.
func UnionEnum(discriminator *Schema, u *Union) (missing []UnionField, surplus []JSON) {
	if discriminator.Enum == nil {
		return nil, nil
	}
	listed := make(map[string]bool, len(discriminator.Enum))
	for _, e := range discriminator.Enum {
		listed[string(e.Raw)] = true
	}
	values := make(map[string]bool, len(u.Fields))
	for _, f := range u.Fields {
		value := string(jsondoc.AppendString(nil, f.Value))
		values[value] = true
		if !listed[value] {
			missing = append(missing, f)
		}
	}
	for _, e := range discriminator.Enum {
		if !values[string(e.Raw)] {
			surplus = append(surplus, e)
		}
	}
	return missing, surplus
}

// Unfold returns s as it is published: what well-formed unions mean is said
// with oneOf, too, for consumers that do not know of x-kubernetes-unions. That
// keyword stays, as KEP-2335 guarantees. s is not modified; what of it has no
// unions is shared with the result. Unfolding the result changes nothing.
//
// The form is the KEP's for a union with a discriminator: a oneOf in which each
// branch requires a member, and an enum of the discriminator's values. A schema
// that has a oneOf, or several unions, says it with allOf. What the KEP only
// sketches is completed, so that the published schema admits the objects that
// validation does: an anyOf within allOf couples discriminator and member, and
// for unions without a discriminator, which do not require a member, the oneOf has
// one more branch for none.
func Unfold(s *Schema) *Schema {
	if s == nil {
		return nil
	}
	out := unfoldBelow(s)
	unions := WellFormedUnions(s)
	if len(unions) == 0 {
		return out
	}
	if out == s {
		clone := *s
		out = &clone
	}
	u := unfolding{schema: out, present: map[string]bool{}}
	for _, x := range s.AllOf {
		u.present[string(x.AppendJSON(nil))] = true
	}
	u.write(unions)
	return out
}

// unfoldBelow unfolds the schemas of what is within a value. Unions inside
// logical keywords are not well-formed, so logical keywords stay as they are.
func unfoldBelow(s *Schema) *Schema {
	clone := *s
	changed := false
	for i, p := range s.Properties {
		child := Unfold(p.Schema)
		if child == p.Schema {
			continue
		}
		if !changed {
			clone.Properties = slices.Clone(s.Properties)
		}
		clone.Properties[i].Schema = child
		changed = true
	}
	if ap := s.AdditionalProperties; ap != nil {
		if child := Unfold(ap.Schema); child != ap.Schema {
			clone.AdditionalProperties = &SchemaOrBool{Allows: true, Schema: child}
			changed = true
		}
	}
	if items := s.ItemSchema(); items != nil {
		if child := Unfold(items); child != items {
			clone.Items = &Items{Schema: child}
			changed = true
		}
	}
	if !changed {
		return s
	}
	return &clone
}

// unfolding writes the unions of one schema into a copy of it.
type unfolding struct {
	schema  *Schema
	present map[string]bool // what allOf says already, as JSON
	added   []*Schema       // to allOf
}

func (u *unfolding) write(unions []Union) {
	s := u.schema
	forms := make([]*Schema, len(unions))
	for i := range unions {
		forms[i] = exclusion(&unions[i])
	}
	if len(forms) == 1 && len(s.OneOf) == 0 && !u.present[string(forms[0].AppendJSON(nil))] {
		s.OneOf = forms[0].OneOf
		s.write("oneOf")
		forms = nil
	}
	for _, form := range forms {
		if !sameOneOf(s, form) {
			u.and(form)
		}
	}
	listed := false
	for i := range unions {
		if unions[i].Discriminator == "" {
			continue
		}
		u.and(coupling(&unions[i]))
		if s.Property(unions[i].Discriminator).Enum != nil {
			continue
		}
		if !listed {
			s.Properties = slices.Clone(s.Properties)
			listed = true
		}
		listValues(s.Properties, &unions[i])
	}
	if len(u.added) > 0 {
		s.AllOf = append(u.added, s.AllOf...)
		s.write("allOf")
	}
}

// and adds x to allOf, unless it is there.
func (u *unfolding) and(x *Schema) {
	if key := string(x.AppendJSON(nil)); !u.present[key] {
		u.present[key] = true
		u.added = append(u.added, x)
	}
}

func sameOneOf(s, form *Schema) bool {
	own := &Schema{OneOf: s.OneOf}
	own.write("oneOf")
	return string(own.AppendJSON(nil)) == string(form.AppendJSON(nil))
}

// exclusion is the oneOf of a union: which members may be set.
func exclusion(u *Union) *Schema {
	s := &Schema{}
	s.write("oneOf")
	for _, f := range u.Fields {
		s.OneOf = append(s.OneOf, requires(f.Name))
	}
	if u.Discriminator == "" {
		none := &Schema{Not: &Schema{AnyOf: slices.Clone(s.OneOf)}}
		none.write("not")
		none.Not.write("anyOf")
		s.OneOf = append(s.OneOf, none)
	}
	return s
}

// coupling is the anyOf of a union with a discriminator: one of the members is
// set and the discriminator, if it is there, has its value.
func coupling(u *Union) *Schema {
	s := &Schema{}
	s.write("anyOf")
	for _, f := range u.Fields {
		branch := requires(f.Name)
		branch.Properties = []Property{{Name: u.Discriminator, Schema: enum([]string{f.Value})}}
		branch.write("properties")
		s.AnyOf = append(s.AnyOf, branch)
	}
	return s
}

func requires(name string) *Schema {
	s := &Schema{Required: []string{name}}
	s.write("required")
	return s
}

func enum(values []string) *Schema {
	s := &Schema{}
	for _, v := range values {
		raw := jsondoc.AppendString(nil, v)
		s.Enum = append(s.Enum, JSON{Raw: raw, Written: raw})
	}
	s.write("enum")
	return s
}

// listValues gives the discriminator of u an enum of the members' values.
func listValues(properties []Property, u *Union) {
	var values []string
	for _, f := range u.Fields {
		values = append(values, f.Value)
	}
	for i := range properties {
		if p := &properties[i]; p.Name == u.Discriminator {
			clone := *p.Schema
			clone.Enum = enum(values).Enum
			clone.write("enum")
			p.Schema = &clone
			return
		}
	}
}
