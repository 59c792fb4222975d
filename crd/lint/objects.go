package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/evidence"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// objects looks at what a schema outside logical keywords says about structure.
func (c *checker) objects(n *node) {
	s := n.schema
	if !c.crd.PreserveUnknownFields {
		c.empty(n)
		c.required(n)
	}
	if a := s.AdditionalProperties; a != nil && a.Allows && a.Schema == nil && n.pruned() && !c.crd.PreserveUnknownFields {
		found := c.at("additional-properties-any", n, "additionalProperties", "the map values have no schema: the API server keeps scalars and prunes every object to {}",
			"Give the values a schema, or let them preserve unknown fields.")
		c.propose(found, "# Values of any type are kept then.\nadditionalProperties:\n  x-kubernetes-preserve-unknown-fields: true",
			edit{s.At("additionalProperties"), len("true"), `{"x-kubernetes-preserve-unknown-fields":true}`})
	}
	if s.Type == "array" && s.ListType == nil && c.on["list-type-missing"] {
		if key := listKey(s.ItemSchema()); key != "" {
			found := c.at("list-type-missing", n, "", fmt.Sprintf("items are objects with a required %s; without a list type, server-side apply replaces the whole list", key),
				fmt.Sprintf("Make it a map with the key %s, if no two items have the same.", key))
			c.propose(found, fmt.Sprintf("# Lists with two items of the same %s are refused then.\nx-kubernetes-list-type: map\nx-kubernetes-list-map-keys: [%[1]s]", key),
				insertInto(s.Offset, fmt.Sprintf(`"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":[%q],`, key)))
		}
	}
	if n.keyword == "properties" && s.Description == "" && !(n.parent.resource() && typeMeta(n.name)) {
		c.at("description-missing", n, "", fmt.Sprintf("%s has no description", n.name), "description: what the field is for, for kubectl explain")
	}
	c.unbounded(n)
}

func typeMeta(name string) bool { return name == "apiVersion" || name == "kind" || name == "metadata" }

// listKey returns the property that tells items of a list apart.
func listKey(items *syntax.Schema) string {
	if items == nil || items.Type != "object" {
		return ""
	}
	for _, key := range []string{"name", "id", "key"} {
		if p := items.Property(key); p != nil && p.Type == "string" && slices.Contains(items.Required, key) {
			return key
		}
	}
	return ""
}

// payloads are words in the names of fields that carry data for another program.
var payloads = []string{"template", "values", "parameters", "params", "overrides", "raw", "manifest", "payload", "variables"}

// empty finds objects in which nothing can be.
func (c *checker) empty(n *node) {
	s := n.schema
	if s.Type != "object" || structured(s) || n.resource() || n.keyword == "properties" && n.parent.resource() && typeMeta(n.name) {
		return
	}
	// Where only emptiness is allowed or a type chooses it, emptiness is meant.
	if s.MaxProperties != nil && *s.MaxProperties == 0 || n.chosen() {
		return
	}
	if n.parent.parent == nil && n.keyword == "properties" && n.name == "status" && c.version.Status {
		return // said of the status subresource
	}
	const preserve = "x-kubernetes-preserve-unknown-fields: true"
	switch name := n.what(); {
	case n.keyword == "properties" && n.name == "metadata":
		found := c.at("embedded-metadata-bare", n, "", "metadata specifies no fields: the API server prunes labels, annotations and all other fields in it",
			"Specify the fields of metadata that objects have, such as labels and annotations.")
		const texts = `{"type":"object","additionalProperties":{"type":"string"}}`
		c.propose(found, "# Labels and annotations are kept then; those that are no maps of strings are refused.\nproperties:\n  labels:\n    type: object\n    additionalProperties: {type: string}\n  annotations:\n    type: object\n    additionalProperties: {type: string}",
			insertInto(s.Offset, `"properties":{"labels":`+texts+`,"annotations":`+texts+`},`))
	case c.payload(n):
		found := c.at("payload-pruned", n, "", fmt.Sprintf("%s specifies no fields: the API server prunes all its content", name),
			"Specify its properties, or keep everything with "+preserve+".")
		c.propose(found, preserve+" # all content is kept then, and not validated", insertInto(s.Offset, `"x-kubernetes-preserve-unknown-fields":true,`))
	default:
		c.at("object-empty", n, "", fmt.Sprintf("%s specifies no fields: it is always {}, because the API server prunes all its content", name),
			"Specify properties, or additionalProperties for a map, or "+preserve+". If only {} is valid, set maxProperties: 0.")
	}
}

// what names a schema in a sentence.
func (n *node) what() string {
	switch n.keyword {
	case "properties":
		return n.name
	case "items":
		return "each item of " + n.parent.what()
	case "additionalProperties":
		return "each value of " + n.parent.what()
	}
	return "the object"
}

// payload reports whether the name of n says that it carries data.
func (c *checker) payload(n *node) bool {
	for n.keyword == "items" || n.keyword == "additionalProperties" {
		n = n.parent
	}
	if n.keyword != "properties" {
		return false
	}
	// What is called somethingConfig is often empty on purpose.
	return n.name == "config" || slices.ContainsFunc(payloads, func(word string) bool {
		rest, ok := strings.CutSuffix(strings.ToLower(n.name), word)
		// A word ends the name: podTemplate and config, not configRef.
		return ok && (rest == "" || n.name[len(rest)] >= 'A' && n.name[len(rest)] <= 'Z' || rest[len(rest)-1] == '_' || rest[len(rest)-1] == '-')
	})
}

// required finds fields that are demanded and cannot be there.
func (c *checker) required(n *node) {
	s := n.schema
	if s.Type != "object" || !n.pruned() || s.AdditionalProperties != nil {
		return
	}
	c.unspecified(n, n)
}

// maxNames is how many fields are named.
const maxNames = 5

// unspecified looks at the required of m, which is n or a logical keyword of it.
func (c *checker) unspecified(m, n *node) {
	var names []string
	for _, name := range m.schema.Required {
		if n.schema.Property(name) == nil && !(n.resource() && typeMeta(name)) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		list := strings.Join(names[:min(len(names), maxNames)], ", ")
		if more := len(names) - maxNames; more > 0 {
			list += fmt.Sprintf(" and %d more", more)
		}
		detail := "required fields that are not specified, so the API server prunes them: " + list
		if m != n {
			detail = "no object matches this branch, because of " + detail
		}
		c.at("required-unspecified", m, "required", detail, "Specify under properties, or remove from required: "+list)
	}
	s := m.schema
	for _, j := range []struct {
		keyword string
		list    []*syntax.Schema
	}{{"allOf", s.AllOf}, {"anyOf", s.AnyOf}, {"oneOf", s.OneOf}} {
		for i, x := range j.list {
			k := c.child(m, x, j.keyword, i)
			k.logical = true
			c.unspecified(k, n)
		}
	}
}

// unbounded finds values of any size.
func (c *checker) unbounded(n *node) {
	if !c.on["unbounded"] {
		return
	}
	s := n.schema
	keyword := ""
	switch {
	case s.Type == "array" && s.MaxItems == nil:
		keyword = "maxItems"
	case s.Type == "object" && s.AdditionalProperties != nil && s.MaxProperties == nil:
		keyword = "maxProperties"
	case s.Type == "string" && s.MaxLength == nil && s.Enum == nil && s.Format == "":
		keyword = "maxLength"
	default:
		return
	}
	if n.keyword == "properties" && n.parent.resource() && typeMeta(n.name) {
		return
	}
	size := evidence.Of(keyword, n.field(), s)
	found := c.at("unbounded", n, "", fmt.Sprintf("%s has no %s: only the size of a request limits it, and the API server estimates the cost of CEL rules with that size", n.what(), keyword),
		fmt.Sprintf("Add %s, larger than any real value.", keyword))
	c.propose(found, fmt.Sprintf("%s: %d # %s", keyword, size.Most, size.Why), insertInto(s.Offset, fmt.Sprintf("%q:%d,", keyword, size.Most)))
}

// field returns the name of the property that n is, or that it is part of.
func (n *node) field() string {
	for n.parent != nil && n.keyword != "properties" {
		n = n.parent
	}
	return n.name
}
