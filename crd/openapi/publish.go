package openapi

import "github.com/espalier-dev/espalier/internal/syntax"

// resourceTexts describe the fields that an object has because it is one.
type resourceTexts struct{ apiVersion, kind string }

var (
	resourceFields = &resourceTexts{apiVersionText, kindText}
	embeddedFields = &resourceTexts{embeddedAPIVersionText, embeddedKindText}
)

func (p *publisher) schema(s *syntax.Schema) {
	var fields *resourceTexts
	if s.EmbeddedResource && (p.format == V3 || !preserves(s)) {
		fields = embeddedFields
	}
	if p.format == V2 {
		s = withoutV3(s)
	}
	p.object(func() { p.members(s, fields) })
}

// members writes the members of a structural schema. If it is that of a
// resource, fields describes the fields that it has anyway.
func (p *publisher) members(s *syntax.Schema, fields *resourceTexts) {
	p.generic(s)
	required := s.Required
	if fields == embeddedFields {
		required = union(required, []string{"kind", "apiVersion"})
	}
	p.values(s, required)
	if s.Properties != nil || fields != nil {
		p.properties(s, fields)
	}
	if more := s.AdditionalProperties; more != nil {
		if more.Schema != nil {
			p.key("additionalProperties")
			p.schema(more.Schema)
		} else {
			p.bool("additionalProperties", more.Allows)
		}
	}
	if items := s.ItemSchema(); items != nil {
		p.key("items")
		p.schema(items)
	}
	p.logical(s)
	p.extensions(s)
}

func (p *publisher) properties(s *syntax.Schema, fields *resourceTexts) {
	if len(s.Properties) == 0 && fields == nil {
		return
	}
	p.key("properties")
	p.object(func() {
		if fields != nil {
			p.described("apiVersion", "string", fields.apiVersion)
			p.described("kind", "string", fields.kind)
			p.referring("metadata", metaModel+"ObjectMeta", metadataText)
		}
		for _, m := range s.Properties {
			if fields != nil && (m.Name == "apiVersion" || m.Name == "kind" || m.Name == "metadata") {
				continue
			}
			p.key(m.Name)
			p.schema(m.Schema)
		}
	})
}

// nested writes a schema below a logical keyword.
func (p *publisher) nested(s *syntax.Schema) {
	p.object(func() {
		p.generic(s)
		p.values(s, s.Required)
		if len(s.Properties) > 0 {
			p.key("properties")
			p.object(func() {
				for _, m := range s.Properties {
					p.key(m.Name)
					p.nested(m.Schema)
				}
			})
		}
		if items := s.ItemSchema(); items != nil {
			p.key("items")
			p.nested(items)
		}
		p.logical(s)
		p.extensions(s)
	})
}

func (p *publisher) generic(s *syntax.Schema) {
	r := s.Rare()
	p.optional("title", r.Title)
	p.optional("description", s.Description)
	p.optional("type", s.Type)
	if s.Nullable {
		p.flag("nullable")
	}
	p.value("default", s.Default)
	p.value("example", r.Example)
	if docs := r.ExternalDocs; docs != nil {
		p.key("externalDocs")
		p.object(func() {
			p.optional("description", docs.Description)
			p.optional("url", docs.URL)
		})
	}
}

func (p *publisher) value(name string, j *syntax.JSON) {
	if j != nil && string(j.Raw) != "null" {
		p.key(name)
		p.raw(j.Raw)
	}
}

func (p *publisher) values(s *syntax.Schema, required []string) {
	p.optional("format", s.Format)
	p.optional("pattern", s.Pattern)
	p.integer("minLength", s.MinLength)
	p.integer("maxLength", s.MaxLength)
	p.number("minimum", s.Minimum)
	if s.ExclusiveMinimum {
		p.flag("exclusiveMinimum")
	}
	p.number("maximum", s.Maximum)
	if s.ExclusiveMaximum {
		p.flag("exclusiveMaximum")
	}
	p.number("multipleOf", s.MultipleOf)
	p.integer("minItems", s.MinItems)
	p.integer("maxItems", s.MaxItems)
	if s.UniqueItems {
		p.flag("uniqueItems")
	}
	p.integer("minProperties", s.MinProperties)
	p.integer("maxProperties", s.MaxProperties)
	p.items("enum", len(s.Enum), func(i int) { p.raw(s.Enum[i].Raw) })
	if len(required) > 0 {
		p.texts("required", required)
	}
}

// logical writes allOf, anyOf, oneOf and not. What int-or-string means is said
// with anyOf, too, for clients that do not know it.
func (p *publisher) logical(s *syntax.Schema) {
	if p.format == V2 {
		return
	}
	implied := s.IntOrString && !saysTypes(s.AnyOf) && !(len(s.AllOf) > 0 && saysTypes(s.AllOf[0].AnyOf))
	if len(s.AllOf) > 0 || implied && len(s.AnyOf) > 0 {
		p.key("allOf")
		p.array(func() {
			if implied && len(s.AnyOf) > 0 {
				p.next()
				p.object(p.integerOrString)
			}
			for _, sub := range s.AllOf {
				p.next()
				p.nested(sub)
			}
		})
	}
	if implied && len(s.AnyOf) == 0 {
		p.integerOrString()
	}
	p.branches("anyOf", s.AnyOf)
	p.branches("oneOf", s.OneOf)
	if s.Not != nil {
		p.key("not")
		p.nested(s.Not)
	}
}

// saysTypes recognizes an anyOf that begins with the types integer and string.
func saysTypes(anyOf []*syntax.Schema) bool {
	return len(anyOf) >= 2 && anyOf[0].Type == "integer" && anyOf[1].Type == "string"
}

func (p *publisher) integerOrString() {
	p.key("anyOf")
	p.array(func() {
		for _, kind := range []string{"integer", "string"} {
			p.next()
			p.object(func() { p.text("type", kind) })
		}
	})
}

func (p *publisher) branches(name string, list []*syntax.Schema) {
	p.items(name, len(list), func(i int) { p.nested(list[i]) })
}

func (p *publisher) extensions(s *syntax.Schema) {
	if preserves(s) {
		p.flag("x-kubernetes-preserve-unknown-fields")
	}
	if s.EmbeddedResource {
		p.flag("x-kubernetes-embedded-resource")
	}
	if s.IntOrString {
		p.flag("x-kubernetes-int-or-string")
	}
	if len(s.ListMapKeys) > 0 {
		p.texts("x-kubernetes-list-map-keys", s.ListMapKeys)
	}
	if s.ListType != nil {
		p.text("x-kubernetes-list-type", *s.ListType)
	}
	if s.MapType != nil {
		p.text("x-kubernetes-map-type", *s.MapType)
	}
	unions := syntax.WellFormedUnions(s)
	p.items("x-kubernetes-unions", len(unions), func(i int) { p.union(unions[i]) })
	p.items("x-kubernetes-validations", len(s.Validations), func(i int) { p.rule(s.Validations[i]) })
}

func (p *publisher) union(u syntax.Union) {
	p.object(func() {
		p.optional("discriminator", u.Discriminator)
		p.key("fields")
		p.object(func() {
			for _, f := range u.Fields {
				p.text(f.Name, f.Value)
			}
		})
	})
}

func (p *publisher) rule(r syntax.Rule) {
	p.object(func() {
		p.text("rule", r.Rule)
		p.optional("message", r.Message)
		p.optional("messageExpression", r.MessageExpression)
		if r.Reason != nil {
			p.text("reason", *r.Reason)
		}
		p.optional("fieldPath", r.FieldPath)
		if r.OptionalOldSelf != nil {
			p.bool("optionalOldSelf", *r.OptionalOldSelf)
		}
	})
}
