package espalier_test

import (
	"maps"
	"slices"

	"github.com/espalier-dev/espalier/internal/syntax"
)

// bone is a schema of a skeleton: what the schemas about one place say about
// types and fields.
type bone struct {
	types  map[string]bool
	silent bool // a schema states no type

	properties        map[string]*bone
	additional, items *bone
}

// skeleton returns skel(s) of KEP-24, as far as its examples need it:
//
//	skel(s) := merge(drop(s), skel(s_1), …, skel(s_n))
//
// where s_1 … s_n are the schemas under the logical keywords. The KEP lets a type
// survive only "if all x_i agree on t". A branch that is silent is read as
// agreeing with the type that s itself states.
func skeleton(s *syntax.Schema) *bone {
	if s == nil {
		return nil
	}
	own := &bone{types: map[string]bool{}, silent: s.Type == "", properties: map[string]*bone{}, items: skeleton(s.ItemSchema())}
	if s.Type != "" {
		own.types[s.Type] = true
	}
	for _, p := range s.Properties {
		own.properties[p.Name] = skeleton(p.Schema)
	}
	if s.AdditionalProperties != nil {
		own.additional = skeleton(s.AdditionalProperties.Schema)
	}
	branches := skeleton(s.Not)
	for _, b := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
		branches = merge(branches, skeleton(b), false)
	}
	return merge(own, branches, true)
}

// merge merges b into a. If a governs, it applies whichever branch, b, holds.
func merge(a, b *bone, governs bool) *bone {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	maps.Copy(a.types, b.types)
	a.silent = a.silent || b.silent && !governs
	for name, p := range b.properties {
		a.properties[name] = merge(a.properties[name], p, governs)
	}
	a.additional = merge(a.additional, b.additional, governs)
	a.items = merge(a.items, b.items, governs)
	return a
}

// schema returns the skeleton as a schema.
func (b *bone) schema() map[string]any {
	s := map[string]any{}
	if len(b.types) == 1 && !b.silent {
		for t := range b.types {
			s["type"] = t
		}
	}
	if len(b.properties) > 0 {
		properties := map[string]any{}
		for name, p := range b.properties {
			properties[name] = p.schema()
		}
		s["properties"] = properties
	}
	if b.additional != nil {
		s["additionalProperties"] = b.additional.schema()
	}
	if b.items != nil {
		s["items"] = b.items.schema()
	}
	return s
}
