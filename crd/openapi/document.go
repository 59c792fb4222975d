package openapi

import (
	"strings"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// The texts that API servers publish with the fields that every object has.
const (
	apiVersionText         = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: " + conventions + "#resources"
	kindText               = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: " + conventions + "#types-kinds"
	metadataText           = "Standard object's metadata. More info: " + conventions + "#metadata"
	listMetadataText       = "Standard list metadata. More info: " + conventions + "#types-kinds"
	embeddedAPIVersionText = "apiVersion defines the versioned schema of this representation of an object. More info: " + conventions + "#resources"
	embeddedKindText       = "kind is a string value representing the type of this object. In CamelCase. More info: " + conventions + "#types-kinds"

	conventions = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
)

// Document returns an OpenAPI v3 document with the schemas of a version: of its
// objects, of lists of them, and of what these refer to. The schemas are those
// that an API server publishes; paths are left to servers. Unions, which other
// servers do not know, are also written as oneOf. A schema that is not structural
// is published as that of an arbitrary object.
func Document(d *crd.CRD, v *crd.Version) ([]byte, error) {
	s, err := structural(d, v)
	if err != nil {
		return nil, err
	}
	p := &publisher{}
	p.object(func() {
		p.text("openapi", "3.0.0")
		p.key("info")
		p.object(func() {
			p.text("title", d.Kind+" of "+d.Group)
			p.text("version", v.Name)
		})
		p.key("paths")
		p.object(func() {})
		p.key("components")
		p.object(func() {
			p.key("schemas")
			p.object(func() { p.components(d, v, s) })
		})
	})
	return p.finish(), nil
}

// structural returns the schema of a version as it is published, or nil if
// nothing of it is.
func structural(d *crd.CRD, v *crd.Version) (*syntax.Schema, error) {
	s, err := parse(d, v)
	if err != nil {
		return nil, err
	}
	if s != nil && !compile.Validate(s, compile.CheckOptions{UncheckedDefaults: true}).Sound {
		s = nil
	}
	return syntax.Unfold(s), nil
}

// publisher writes schemas as API servers publish them.
type publisher struct {
	encoder
	format Format
}

func (p *publisher) components(d *crd.CRD, v *crd.Version, s *syntax.Schema) {
	p.models(d, v, s)
	p.metaComponents()
}

// models writes the schemas of objects and of lists of them.
func (p *publisher) models(d *crd.CRD, v *crd.Version, s *syntax.Schema) {
	selectable := v.SelectableFields
	about := func(kind string) {
		p.items("x-kubernetes-group-version-kind", 1, func(int) { p.groupVersionKind(d.Group, v.Name, kind) })
		p.items("x-kubernetes-selectable-fields", len(selectable), func(i int) {
			p.object(func() { p.text("fieldPath", strings.TrimPrefix(selectable[i].JSONPath, ".")) })
		})
	}
	p.key(ModelName(d.Group, v.Name, d.Kind))
	p.object(func() {
		switch {
		case s == nil || p.format == V2 && (preserves(s) || d.PreserveUnknownFields):
			p.text("type", "object")
		case p.format == V2:
			p.members(withoutV3(s), resourceFields)
		default:
			p.members(s, resourceFields)
		}
		about(d.Kind)
	})
	p.key(ModelName(d.Group, v.Name, d.ListKind))
	p.object(func() {
		p.text("description", d.ListKind+" is a list of "+d.Kind)
		p.text("type", "object")
		p.texts("required", []string{"items"})
		p.key("properties")
		p.object(func() {
			p.described("apiVersion", "string", apiVersionText)
			p.key("items")
			p.object(func() {
				p.text("description", "List of "+d.Plural+". More info: "+conventions)
				p.text("type", "array")
				p.key("items")
				p.object(func() { p.text("$ref", p.format.ref(ModelName(d.Group, v.Name, d.Kind))) })
			})
			p.described("kind", "string", kindText)
			p.referring("metadata", metaModel+"ListMeta", listMetadataText)
		})
		about(d.ListKind)
	})
}

// described writes a property with only a type and a description.
func (e *encoder) described(name, kind, description string) {
	e.key(name)
	e.object(func() {
		e.optional("description", description)
		e.text("type", kind)
	})
}

// referring writes a property whose schema is another component.
func (p *publisher) referring(name, model, description string) {
	p.key(name)
	p.object(func() {
		p.text("description", description)
		if p.format == V2 {
			p.text("$ref", p.format.ref(model))
			return
		}
		p.items("allOf", 1, func(int) {
			p.object(func() { p.text("$ref", p.format.ref(model)) })
		})
	})
}
