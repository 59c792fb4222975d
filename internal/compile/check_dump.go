package compile

import (
	"encoding/json"

	"github.com/espalier-dev/espalier/internal/syntax"
)

// Two of upstream's errors show a whole schema as the bad value: a value of its
// internal Go type, whose fields encoding/json writes under their Go names,
// with the zero ones. The types below have those names in that order.

// Dump returns s as upstream's errors show a schema: a value for encoding/json.
// size is about the number of bytes that it takes.
func Dump(s *syntax.Schema) (value any, size int) {
	d := dumpSchema(s)
	return d, d.size
}

// dumpSchema returns s as a bad value.
func dumpSchema(s *syntax.Schema) *dump {
	var m dumper
	d := m.schema(s)
	d.size = m.size
	return d
}

// dumpItems returns the value of items as a bad value.
func dumpItems(items *syntax.Items) *itemsDump {
	var m dumper
	d := m.items(items)
	d.size = m.size
	return d
}

type dump struct {
	ID                     string
	Schema                 string
	Ref                    *string
	Description            string
	Type                   string
	Nullable               bool
	Format                 string
	Title                  string
	Default                *json.RawMessage
	Maximum                *float64
	ExclusiveMaximum       bool
	Minimum                *float64
	ExclusiveMinimum       bool
	MaxLength              *int64
	MinLength              *int64
	Pattern                string
	MaxItems               *int64
	MinItems               *int64
	UniqueItems            bool
	MultipleOf             *float64
	Enum                   []json.RawMessage
	MaxProperties          *int64
	MinProperties          *int64
	Required               []string
	Items                  *itemsDump
	AllOf                  []*dump
	OneOf                  []*dump
	AnyOf                  []*dump
	Not                    *dump
	Properties             map[string]*dump
	AdditionalProperties   *orBoolDump
	PatternProperties      map[string]*dump
	Dependencies           map[string]dependencyDump
	AdditionalItems        *orBoolDump
	Definitions            map[string]*dump
	ExternalDocs           *docsDump
	Example                *json.RawMessage
	XPreserveUnknownFields *bool
	XEmbeddedResource      bool
	XIntOrString           bool
	XListMapKeys           []string
	XListType              *string
	XMapType               *string
	XValidations           []ruleDump

	size int // see dumper
}

type (
	itemsDump struct {
		Schema      *dump
		JSONSchemas []*dump

		size int
	}
	orBoolDump struct {
		Allows bool
		Schema *dump
	}
	dependencyDump struct {
		Schema   *dump
		Property []string
	}
	docsDump struct {
		Description string
		URL         string
	}
	ruleDump struct {
		Rule              string
		Message           string
		MessageExpression string
		Reason            *string
		FieldPath         string
		OptionalOldSelf   *bool
	}
)

// emptyDump is about the number of bytes that a schema without any keywords
// takes.
const emptyDump = 800

// dumper makes dumps and adds up how many bytes they will take, about: all
// the findings together must stay within bounds.
type dumper struct{ size int }

func (m *dumper) schema(s *syntax.Schema) *dump {
	if s == nil {
		return nil
	}
	m.size += emptyDump + len(s.Description)
	r := s.Rare()
	d := &dump{
		ID: r.ID, Schema: r.SchemaURL, Ref: r.Ref, Description: s.Description, Type: s.Type, Nullable: s.Nullable,
		Format: s.Format, Title: r.Title, Default: rawDump(s.Default), Example: rawDump(r.Example),
		Maximum: s.Maximum, ExclusiveMaximum: s.ExclusiveMaximum, Minimum: s.Minimum, ExclusiveMinimum: s.ExclusiveMinimum,
		MaxLength: s.MaxLength, MinLength: s.MinLength, Pattern: s.Pattern, MaxItems: s.MaxItems, MinItems: s.MinItems,
		UniqueItems: s.UniqueItems, MultipleOf: s.MultipleOf, MaxProperties: s.MaxProperties, MinProperties: s.MinProperties,
		Required: s.Required, Items: m.items(s.Items),
		AllOf: m.list(s.AllOf), OneOf: m.list(s.OneOf), AnyOf: m.list(s.AnyOf), Not: m.schema(s.Not),
		Properties: m.properties(s.Properties), PatternProperties: m.properties(r.PatternProperties), Definitions: m.properties(r.Definitions),
		AdditionalProperties: m.orBool(s.AdditionalProperties), AdditionalItems: m.orBool(r.AdditionalItems),
		XPreserveUnknownFields: s.PreserveUnknownFields, XEmbeddedResource: s.EmbeddedResource, XIntOrString: s.IntOrString,
		XListMapKeys: s.ListMapKeys, XListType: s.ListType, XMapType: s.MapType,
	}
	if s.Enum != nil {
		d.Enum = make([]json.RawMessage, len(s.Enum))
		for i := range s.Enum {
			d.Enum[i] = s.Enum[i].Raw
		}
	}
	if r.Dependencies != nil {
		d.Dependencies = make(map[string]dependencyDump, len(r.Dependencies))
		for _, x := range r.Dependencies {
			d.Dependencies[x.Name] = dependencyDump{m.schema(x.Schema), x.Properties}
		}
	}
	if r.ExternalDocs != nil {
		d.ExternalDocs = &docsDump{r.ExternalDocs.Description, r.ExternalDocs.URL}
	}
	if s.Validations != nil {
		d.XValidations = make([]ruleDump, len(s.Validations))
		for i, x := range s.Validations {
			d.XValidations[i] = ruleDump{x.Rule, x.Message, x.MessageExpression, x.Reason, x.FieldPath, x.OptionalOldSelf}
		}
	}
	return d
}

func rawDump(j *syntax.JSON) *json.RawMessage {
	if j == nil {
		return nil
	}
	return (*json.RawMessage)(&j.Raw)
}

func (m *dumper) items(items *syntax.Items) *itemsDump {
	if items == nil {
		return nil
	}
	return &itemsDump{Schema: m.schema(items.Schema), JSONSchemas: m.list(items.Tuple)}
}

func (m *dumper) orBool(x *syntax.SchemaOrBool) *orBoolDump {
	if x == nil {
		return nil
	}
	return &orBoolDump{x.Allows, m.schema(x.Schema)}
}

func (m *dumper) list(list []*syntax.Schema) []*dump {
	if list == nil {
		return nil
	}
	out := make([]*dump, len(list))
	for i, s := range list {
		out[i] = m.schema(s)
	}
	return out
}

func (m *dumper) properties(list []syntax.Property) map[string]*dump {
	if list == nil {
		return nil
	}
	out := make(map[string]*dump, len(list))
	for _, p := range list {
		out[p.Name] = m.schema(p.Schema)
	}
	return out
}
