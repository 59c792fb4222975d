package compile

import (
	"fmt"
	"regexp/syntax"

	"k8s.io/apimachinery/pkg/util/validation/field"

	schema "github.com/espalier-dev/espalier/internal/syntax"
)

// structure checks a schema outside logical keywords.
func (c *checker) structure(s *schema.Schema, at place) {
	embedded, preserve := s.EmbeddedResource, s.PreserveUnknownFields != nil

	c.structureType(s, at, preserve)
	if s.Type == "array" && s.ItemSchema() == nil {
		c.required(itemsRequired, s, "items", "must be specified")
	}
	if s.AdditionalProperties != nil {
		if at == atRoot {
			c.forbidden(rootAdditionalProperties, s, "additionalProperties", "must not be used at the root")
		}
		if embedded {
			c.forbidden(embeddedAdditionalProperties, s, "additionalProperties", "must not be used if x-kubernetes-embedded-resource is set")
		}
	}
	if embedded && !preserve && len(s.Properties) == 0 {
		c.required(embeddedProperties, s, "properties", "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields")
	}
	if s.IntOrString {
		const detail = "must be false if x-kubernetes-int-or-string is true"
		if preserve {
			c.invalid(intOrStringExclusive, s, "x-kubernetes-preserve-unknown-fields", true, detail)
		}
		if embedded {
			c.invalid(intOrStringExclusive, s, "x-kubernetes-embedded-resource", true, detail)
		}
	}
	if at == atRoot || embedded {
		c.resource(s)
	}
	if at == atRoot {
		c.rootMetadata(s)
	}
	c.pattern(s)
}

func (c *checker) structureType(s *schema.Schema, at place, preserve bool) {
	switch {
	case s.EmbeddedResource && s.Type != "object":
		c.wrongType(embeddedType, s, s.Type, "must be object if x-kubernetes-embedded-resource is true")
	case s.Type == "" && !s.IntOrString && !preserve:
		detail := "must not be empty for specified object fields"
		switch at {
		case atRoot:
			detail = "must not be empty at the root"
		case atItem:
			detail = "must not be empty for specified array items"
		}
		c.required(typeRequired, s, "type", detail)
	}
	if at == atRoot && s.Type != "" && s.Type != "object" {
		c.invalid(rootTypeObject, s, "type", s.Type, "must be object at the root")
	}
}

// resource checks what a schema says about the fields every resource has.
func (c *checker) resource(s *schema.Schema) {
	for _, p := range s.Properties {
		r, want := typeMetaString, "string"
		switch p.Name {
		case "apiVersion", "kind":
		case "metadata":
			r, want = metadataObject, "object"
		default:
			continue
		}
		if p.Schema.Type != want {
			c.enterKey("properties", p.Name)
			c.invalid(r, p.Schema, "type", p.Schema.Type, "must be "+want)
			c.leave()
		}
	}
}

// rootMetadata checks that the schema restricts nothing of the object's own
// metadata but name and generateName; their schemas are free.
func (c *checker) rootMetadata(s *schema.Schema) {
	m := s.Property("metadata")
	if m == nil {
		return
	}
	named := 0
	for _, p := range m.Properties {
		if p.Name == "name" || p.Name == "generateName" {
			named++
		}
	}
	if named == len(m.Properties) && m.AdditionalProperties == nil && bare(m) {
		return
	}
	c.enterKey("properties", "metadata")
	c.forbidden(rootMetadata, m, "", "must not specify anything other than name and generateName, but metadata is implicitly specified")
	c.leave()
}

// bare reports whether a schema says nothing, its type, default, properties and
// additionalProperties aside. An empty list counts as something where
// upstream's comparison of Go values makes it so.
func bare(s *schema.Schema) bool {
	r := s.Rare()
	return s.Description == "" && r.Title == "" && !s.Nullable && r.ExternalDocs == nil && r.Example == nil &&
		s.PreserveUnknownFields == nil && !s.EmbeddedResource && !s.IntOrString &&
		s.ListMapKeys == nil && s.ListType == nil && s.MapType == nil && s.Validations == nil &&
		s.Format == "" && s.Pattern == "" && !s.ExclusiveMaximum && !s.ExclusiveMinimum && !s.UniqueItems &&
		s.Maximum == nil && s.Minimum == nil && s.MultipleOf == nil &&
		s.MaxLength == nil && s.MinLength == nil && s.MaxItems == nil && s.MinItems == nil &&
		s.MaxProperties == nil && s.MinProperties == nil &&
		len(s.Enum) == 0 && s.Required == nil &&
		len(s.AllOf) == 0 && len(s.AnyOf) == 0 && len(s.OneOf) == 0 && s.Not == nil &&
		s.ItemSchema() == nil
}

// onlyType reports whether a schema in a logical keyword says nothing but its type.
// Upstream does not see additionalProperties: false there.
func onlyType(s *schema.Schema, typ string) bool {
	a := s.AdditionalProperties
	return s.Type == typ && s.Default == nil && s.Properties == nil && (a == nil || a.Schema == nil && !a.Allows) && bare(s)
}

// intOrString reports whether the branches of a logical keyword are the ones KEP-2335
// permits for x-kubernetes-int-or-string.
func intOrString(branches []*schema.Schema) bool {
	return len(branches) == 2 && onlyType(branches[0], "integer") && onlyType(branches[1], "string")
}

// branch checks a schema under a logical keyword, where only value validation and the
// way to it are allowed.
func (c *checker) branch(s *schema.Schema) {
	const empty, undefined, isFalse = "must be empty to be structural", "must be undefined to be structural", "must be false to be structural"
	for _, k := range []struct {
		check   checkID
		keyword string
		present bool
		detail  string
	}{
		{junctorType, "type", s.Type != "", empty},
		{junctorAdditionalProperties, "additionalProperties", s.AdditionalProperties != nil && s.AdditionalProperties.Allows, undefined},
		{junctorDefault, "default", s.Default != nil, undefined},
		{junctorTitle, "title", s.Rare().Title != "", empty},
		{junctorDescription, "description", s.Description != "", empty},
		{junctorNullable, "nullable", s.Nullable, isFalse},
		{junctorPreserve, "x-kubernetes-preserve-unknown-fields", s.PreserveUnknownFields != nil, isFalse},
		{junctorEmbedded, "x-kubernetes-embedded-resource", s.EmbeddedResource, isFalse},
		{junctorIntOrString, "x-kubernetes-int-or-string", s.IntOrString, isFalse},
		{junctorListMapKeys, "x-kubernetes-list-map-keys", len(s.ListMapKeys) > 0, empty},
		{junctorListType, "x-kubernetes-list-type", s.ListType != nil, undefined},
		{junctorMapType, "x-kubernetes-map-type", s.MapType != nil, undefined},
		{junctorValidations, "x-kubernetes-validations", len(s.Validations) > 0, empty},
	} {
		if k.present {
			c.forbidden(k.check, s, k.keyword, k.detail)
		}
	}
	if m := s.Property("metadata"); m != nil {
		c.enterKey("properties", "metadata")
		c.forbidden(junctorMetadata, m, "", "must not be specified in a nested context")
		c.leave()
	}
	c.pattern(s)
}

// pattern checks the regular expression of s. Parsing it finds all errors that
// compiling would, without building the program.
func (c *checker) pattern(s *schema.Schema) {
	if s.Pattern == "" {
		return
	}
	err, known := c.patterns[s.Pattern]
	if !known {
		_, err = syntax.Parse(s.Pattern, syntax.Perl)
		if c.patterns == nil {
			c.patterns = make(map[string]error)
		}
		c.patterns[s.Pattern] = err
	}
	if err != nil {
		c.invalid(patternInvalid, s, "pattern", s.Pattern, fmt.Sprintf("must be a valid regular expression, but isn't: %v", err))
	}
}

// complete checks that what the logical keywords of s mention is specified by s itself.
// Clusters do that for the root only; below it is a warning.
func (c *checker) complete(s *schema.Schema, at place) {
	if s.AllOf == nil && s.AnyOf == nil && s.OneOf == nil && s.Not == nil {
		return
	}
	w := completeness{checker: c, check: incompleteBelowRoot}
	if at == atRoot {
		w.check = incomplete
	}
	w.logical(s, s)
}

// completeness walks the schemas under logical keywords and, beside them, the ones that
// must specify the same paths.
type completeness struct {
	*checker
	check checkID
	// Where the two are, below the schema with the logical keywords.
	inside, outside path
}

func (w *completeness) logical(in, out *schema.Schema) {
	for _, j := range []struct {
		keyword string
		list    []*schema.Schema
	}{{"allOf", in.AllOf}, {"anyOf", in.AnyOf}, {"oneOf", in.OneOf}} {
		for i, b := range j.list {
			w.inside = append(w.inside, step{keyword: j.keyword, index: i, kind: indexed})
			w.compare(b, out)
			w.inside = w.inside[:len(w.inside)-1]
		}
	}
	if in.Not != nil {
		w.inside = append(w.inside, step{keyword: "not"})
		w.compare(in.Not, out)
		w.inside = w.inside[:len(w.inside)-1]
	}
}

func (w *completeness) compare(in, out *schema.Schema) {
	if out == nil {
		w.missing(in)
		return
	}
	w.logical(in, out)
	if items := in.ItemSchema(); items != nil {
		w.child(step{keyword: "items"}, items, out.ItemSchema())
	}
	for _, p := range in.Properties {
		w.child(step{keyword: "properties", key: p.Name, kind: keyed}, p.Schema, out.Property(p.Name))
	}
}

func (w *completeness) child(at step, in, out *schema.Schema) {
	w.inside, w.outside = append(w.inside, at), append(w.outside, at)
	w.compare(in, out)
	w.inside, w.outside = w.inside[:len(w.inside)-1], w.outside[:len(w.outside)-1]
}

func (w *completeness) missing(in *schema.Schema) {
	x := fault{kind: field.ErrorTypeRequired, bad: "", offset: in.Offset, at: w.outside, in: w.inside}
	if !w.full(Checks[w.check].Severity) {
		x.detail = "because it is defined in " + string(w.inside.appendField(w.checker.path.appendField([]byte(w.prefix))))
	}
	w.add(w.check, w.checker.path, x)
}
