package compile

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/syntax"
)

// root checks what holds for the root of a schema only, structural or not.
func (c *checker) root(s *syntax.Schema, status bool) {
	if s.Nullable {
		c.forbidden(rootNullable, s, "nullable", "nullable cannot be true at the root")
	}
	if status {
		c.statusRoot(s)
	}
}

// statusRootFields are the Go names, as the message shows them, of the keywords
// that may be at the root when status is validated by itself.
var statusRootFields = strings.Fields(`
	Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum
	MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required
	Items Properties ExternalDocs Example XPreserveUnknownFields XValidations`)

// statusRoot reports the first thing at the root, in the order of upstream's
// Go type, that would be lost or misread when only the schema of status is
// applied to an update of the status.
func (c *checker) statusRoot(s *syntax.Schema) {
	keyword := func(name string, present bool) bool {
		if present {
			c.add(statusRootKeyword, c.path, fault{
				kind: field.ErrorTypeInvalid, bad: dumpSchema(s),
				detail: fmt.Sprintf("only %v fields are allowed at the root of the schema if the status subresource is enabled", statusRootFields),
				offset: s.At(name), in: path{{keyword: name}},
			})
		}
		return present
	}
	r := s.Rare()
	if keyword("id", r.ID != "") || keyword("$schema", r.SchemaURL != "") || keyword("$ref", r.Ref != nil) {
		return
	}
	if s.Type != "" && s.Type != "object" {
		c.invalid(statusRootType, s, "type", s.Type, `only "object" is allowed as the type at the root of the schema if the status subresource is enabled`)
		return
	}
	_ = keyword("nullable", s.Nullable) ||
		keyword("default", s.Default != nil) ||
		keyword("enum", s.Enum != nil) ||
		keyword("maxProperties", s.MaxProperties != nil) ||
		keyword("minProperties", s.MinProperties != nil) ||
		keyword("allOf", s.AllOf != nil) ||
		keyword("oneOf", s.OneOf != nil) ||
		keyword("anyOf", s.AnyOf != nil) ||
		keyword("not", s.Not != nil) ||
		keyword("additionalProperties", s.AdditionalProperties != nil) ||
		keyword("patternProperties", r.PatternProperties != nil) ||
		keyword("dependencies", r.Dependencies != nil) ||
		keyword("additionalItems", r.AdditionalItems != nil) ||
		keyword("definitions", r.Definitions != nil) ||
		keyword("x-kubernetes-embedded-resource", s.EmbeddedResource) ||
		keyword("x-kubernetes-int-or-string", s.IntOrString) ||
		keyword("x-kubernetes-list-map-keys", s.ListMapKeys != nil) ||
		keyword("x-kubernetes-list-type", s.ListType != nil) ||
		keyword("x-kubernetes-map-type", s.MapType != nil)
}
