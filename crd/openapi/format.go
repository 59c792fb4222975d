package openapi

import (
	"slices"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// Format is a version of OpenAPI in which servers publish.
type Format int

// The formats. V2 says less than V3, in the way that clients which read it rely
// on: what a client might take for more than it is, is left out.
const (
	V3 Format = iota
	V2
)

// ref is how a document refers to a model.
func (f Format) ref(model string) string {
	if f == V2 {
		return "#/definitions/" + pointerToken(model)
	}
	return "#/components/schemas/" + pointerToken(model)
}

// AppendModels appends the schemas of the objects of a version and of lists of
// them, as members of the object in which a document has its schemas: compact,
// divided by a comma, without braces. They refer to models about metadata that
// are not among them.
func AppendModels(dst []byte, d *crd.CRD, v *crd.Version, f Format) ([]byte, error) {
	s, err := structural(d, v)
	if err != nil {
		return dst, err
	}
	p := &publisher{encoder: encoder{b: dst, compact: true, empty: true}, format: f}
	p.models(d, v, s)
	return p.b, nil
}

// withoutV3 returns s without what OpenAPI v2 has no words for. Readers of v2
// reject what they see more of than they expect: so a value that may be null
// has no type, and what preserves unknown fields no properties.
func withoutV3(s *syntax.Schema) *syntax.Schema {
	c := *s
	c.Default = nil // they would be taken for what a client has to fill in
	c.AllOf, c.AnyOf, c.OneOf, c.Not = nil, nil, nil, nil
	if c.Nullable {
		c.Type, c.Nullable = "", false
		c.Items, c.Properties = nil, nil
	}
	if preserves(&c) {
		c.Items, c.Properties = nil, nil
		if c.Type == "object" {
			c.Type = ""
		}
	}
	if c.Type == "array" && c.ItemSchema() == nil {
		c.Type = ""
	}
	if more := c.AdditionalProperties; more != nil && more.Schema != nil && more.Schema.Nullable {
		c.Required = nil
	}
	c.Required = withoutNullable(c.Required, c.Properties)
	return &c
}

// withoutNullable returns the required properties that may not be null.
func withoutNullable(required []string, properties []syntax.Property) []string {
	var nullable map[string]bool
	for _, p := range properties {
		if p.Schema.Nullable {
			if nullable == nil {
				nullable = make(map[string]bool)
			}
			nullable[p.Name] = true
		}
	}
	if nullable == nil {
		return required
	}
	return slices.DeleteFunc(slices.Clone(required), func(name string) bool { return nullable[name] })
}
