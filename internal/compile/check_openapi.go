package compile

import (
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// openapi checks what upstream demands of every schema, inside and outside
// logical keywords, structural or not.
func (c *checker) openapi(s *syntax.Schema, x context) {
	if !KnownType(s.Type) {
		if !c.tolerance.Types {
			c.notSupported(typeUnknown, s, "type", s.Type, "array", "boolean", "integer", "number", "object", "string")
		}
		if s.Type == "null" {
			c.forbidden(typeNull, s, "type", "type cannot be set to null, use nullable as an alternative")
		}
	}
	if s.Default != nil && x.noDefaults {
		detail := "must not be set"
		if x.reason != "" {
			detail += " " + x.reason
		}
		c.forbidden(defaultForbidden, s, "default", detail)
	}
	if s.EmbeddedResource && x.inMeta {
		c.forbidden(embeddedInMetadata, s, "x-kubernetes-embedded-resource", "must not be used inside of resource meta")
	}
	if s.UniqueItems {
		c.forbidden(uniqueItems, s, "uniqueItems", "uniqueItems cannot be set to true since the runtime complexity becomes quadratic")
	}
	if a := s.AdditionalProperties; a != nil && len(s.Properties) > 0 && (!a.Allows || a.Schema != nil) {
		c.forbidden(propertiesOrAdditional, s, "additionalProperties", "additionalProperties and properties are mutual exclusive")
	}
	if s.Items != nil && len(s.Items.Tuple) > 0 {
		c.forbidden(itemsTuple, s, "items", "items must be a schema object and not an array")
	}
	if s.PreserveUnknownFields != nil && !*s.PreserveUnknownFields {
		c.invalid(preserveFalse, s, "x-kubernetes-preserve-unknown-fields", false, "must be true or undefined")
	}
	c.unsupportedKeywords(s)
	c.topology(s)
	c.validations(s)
}

// KnownType reports whether there are values of the type called t, or it is left
// out.
func KnownType(t string) bool {
	switch t {
	case "", "string", "number", "integer", "boolean", "array", "object":
		return true
	}
	return false
}

// unsupportedKeywords checks for the keywords of JSON Schema that upstream does not
// support. An empty value counts if upstream only tests for presence.
func (c *checker) unsupportedKeywords(s *syntax.Schema) {
	r := s.Rare()
	if r.ID != "" {
		c.forbidden(unsupportedID, s, "id", "id is not supported")
	}
	if r.Ref != nil {
		c.forbidden(unsupportedRef, s, "$ref", "$ref is not supported")
	}
	if r.AdditionalItems != nil {
		c.forbidden(unsupportedAdditionalItems, s, "additionalItems", "additionalItems is not supported")
	}
	if len(r.PatternProperties) > 0 {
		c.forbidden(unsupportedPatternProperties, s, "patternProperties", "patternProperties is not supported")
	}
	if len(r.Definitions) > 0 {
		c.forbidden(unsupportedDefinitions, s, "definitions", "definitions is not supported")
	}
	if r.Dependencies != nil {
		c.forbidden(unsupportedDependencies, s, "dependencies", "dependencies is not supported")
	}
}

// topology checks the extensions that say how lists and maps are merged.
func (c *checker) topology(s *syntax.Schema) {
	if s.MapType != nil {
		if s.Type != "object" {
			c.wrongType(mapTypeObject, s, s.Type, "must be object if x-kubernetes-map-type is specified")
		}
		if t := *s.MapType; t != "atomic" && t != "granular" {
			c.notSupported(mapTypeUnknown, s, "x-kubernetes-map-type", t, "atomic", "granular")
		}
	}
	if s.ListType == nil {
		if len(s.ListMapKeys) > 0 {
			c.required(listMapKeysWithoutMap, s, "x-kubernetes-list-type", "must be map if x-kubernetes-list-map-keys is non-empty")
		}
		return
	}
	t := *s.ListType
	if s.Type != "array" {
		c.wrongType(listTypeArray, s, s.Type, "must be array if x-kubernetes-list-type is specified")
	} else if t == "set" && !c.tolerance.ListSets {
		c.setItems(s.ItemSchema())
	}
	if t != "atomic" && t != "set" && t != "map" {
		c.notSupported(listTypeUnknown, s, "x-kubernetes-list-type", t, "atomic", "set", "map")
	}
	if t != "map" && len(s.ListMapKeys) > 0 {
		c.invalid(listMapKeysWithoutMap, s, "x-kubernetes-list-type", t, "must be map if x-kubernetes-list-map-keys is non-empty")
	}
	if item := s.ItemSchema(); item != nil && item.Nullable && (t == "set" || t == "map") && !c.tolerance.ListKeys {
		c.enter("items")
		c.forbidden(listItemsNullable, item, "nullable", "cannot be nullable when x-kubernetes-list-type is "+t)
		c.leave()
	}
	if t == "map" {
		c.listMap(s)
	}
}

// setItems checks the items of a list of type set: they must be atomic.
func (c *checker) setItems(item *syntax.Schema) {
	const detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
	if item == nil {
		return
	}
	c.enter("items")
	switch {
	case item.Type == "array" && item.ListType != nil && *item.ListType != "atomic":
		c.invalid(listSetAtomic, item, "x-kubernetes-list-type", item.ListType, detail)
	case item.Type == "object" && (item.MapType == nil || *item.MapType != "atomic"):
		// The bad value is the list type here too, as upstream shows it.
		c.invalid(listSetAtomic, item, "x-kubernetes-map-type", item.ListType, detail)
	}
	c.leave()
}

// listMap checks a list of type map: its items are objects, identified by keys.
func (c *checker) listMap(s *syntax.Schema) {
	if len(s.ListMapKeys) == 0 {
		c.required(listMapKeysRequired, s, "x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
	}
	item := s.ItemSchema()
	switch {
	case s.Items == nil:
		c.required(listMapItemsRequired, s, "items", "must have a schema if x-kubernetes-list-type is map")
		return
	case item == nil:
		if !c.full(finding.Error) {
			c.invalid(listMapItemsSingle, s, "items", dumpItems(s.Items), "must only have a single schema if x-kubernetes-list-type is map")
		}
		return
	case item.Type != "object":
		c.enter("items")
		c.invalid(listMapItemsObject, item, "type", item.Type, "must be object if parent array's x-kubernetes-list-type is map")
		c.leave()
	}
	required := make(map[string]bool, len(item.Required))
	for _, k := range item.Required {
		required[k] = true
	}
	seen := make(map[string]bool, len(s.ListMapKeys))
	for _, k := range s.ListMapKeys {
		key := item.Property(k)
		if item.Type == "object" {
			if key == nil {
				c.invalid(listMapKeyUnknown, s, "x-kubernetes-list-map-keys", s.ListMapKeys, "entries must all be names of item properties")
			}
			if seen[k] {
				c.invalid(listMapKeyDuplicate, s, "x-kubernetes-list-map-keys", s.ListMapKeys, "must not contain duplicate entries")
			}
			seen[k] = true
		}
		if key != nil {
			c.listMapKey(k, item, key, required[k])
		}
	}
}

// listMapKey checks the property of the items that is their key called name.
func (c *checker) listMapKey(name string, item, key *syntax.Schema, required bool) {
	c.enter("items")
	c.enterKey("properties", name)
	if item.Type == "object" && (key.Type == "array" || key.Type == "object") {
		// The bad value is the type of the item, as upstream shows it.
		c.invalid(listMapKeyScalar, key, "type", item.Type, "must be a scalar type if parent array's x-kubernetes-list-type is map")
	}
	if !required && key.Default == nil && !c.tolerance.ListKeys {
		c.required(listMapKeyOptional, key, "default", "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property")
	}
	if key.Nullable && !c.tolerance.ListKeys {
		c.forbidden(listMapKeyNullable, key, "nullable", "this property is in x-kubernetes-list-map-keys, so it cannot be nullable")
	}
	c.leave()
	c.leave()
}
