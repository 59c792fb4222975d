package models

import (
	"fmt"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// appliedTypes are the schemas of client-go's apply configurations. They come from
// Kubernetes' own OpenAPI definitions, which include the markers in its comments.
func appliedTypes() *schema.Schema { return &Parser().Schema }

// mapOf is the schema of a struct, nil if nothing is known of it.
func mapOf(types *schema.Schema, name string) *schema.Map {
	def, ok := types.FindNamedType(name)
	if !ok {
		return nil
	}
	return def.Map
}

// applyToType says of a struct whether it is applied as a whole, and which of
// its fields exclude each other.
func (o *object) applyToType() {
	if o.applied == nil {
		return
	}
	addMapType(&o.schema, o.applied.ElementRelationship)
	var unions []any
	for i := range o.applied.Unions {
		unions = append(unions, unionOf(&o.applied.Unions[i]))
	}
	if unions != nil {
		o.schema.AddExtension("x-kubernetes-unions", unions)
	}
}

func unionOf(u *schema.Union) map[string]any {
	fields := map[string]any{}
	for _, f := range u.Fields {
		fields[f.FieldName] = f.DiscriminatorValue
	}
	union := map[string]any{"fields-to-discriminateBy": fields}
	if u.Discriminator != nil {
		union["discriminator"] = *u.Discriminator
	}
	return union
}

// applyToField sets how server-side apply merges a field, and its default. Lists in
// types that client-go does not apply are atomic, like all lists without markers. The
// exceptions are lists with a patch strategy, and the items of a list of objects,
// which cannot be written.
func (o *object) applyToField(s *spec.Schema, name string) {
	if o.applied == nil {
		if s.Items != nil && s.Extensions == nil && name != "items" {
			addListType(s, &schema.List{ElementRelationship: schema.Atomic})
		}
		return
	}
	f, ok := o.applied.FindField(name)
	if !ok {
		return
	}
	if s.Default == nil { // otherwise it is the same
		s.Default = fromYAML(f.Default)
	}
	if r := f.Type.ElementRelationship; r != nil {
		addMapType(s, *r)
	}
	if list := f.Type.Inlined.List; list != nil && s.Items != nil {
		addListType(s, list)
	}
	if m := f.Type.Inlined.Map; m != nil && s.AdditionalProperties != nil {
		addMapType(s, m.ElementRelationship)
	}
}

// fromYAML is a copy of a value that was read from YAML, with the types of JSON.
func fromYAML(v any) any {
	switch v := v.(type) {
	case map[any]any:
		out := map[string]any{}
		for key, value := range v {
			out[fmt.Sprint(key)] = fromYAML(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = fromYAML(v[i])
		}
		return out
	}
	return v
}

// addListType says what the items of a list are to each other.
func addListType(s *spec.Schema, list *schema.List) {
	kind := "atomic"
	switch {
	case list.ElementRelationship == schema.Associative && len(list.Keys) > 0:
		kind = "map"
		var keys []any
		for _, key := range list.Keys {
			keys = append(keys, key)
		}
		s.AddExtension("x-kubernetes-list-map-keys", keys)
	case list.ElementRelationship == schema.Associative:
		kind = "set"
	}
	s.AddExtension("x-kubernetes-list-type", kind)
}

// addMapType says whether a map or struct is applied as a whole. That it is
// not need not be said.
func addMapType(s *spec.Schema, r schema.ElementRelationship) {
	if r == schema.Atomic {
		s.AddExtension("x-kubernetes-map-type", "atomic")
	}
}
