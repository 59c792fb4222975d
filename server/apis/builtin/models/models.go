package models

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	generated "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// Definitions returns the OpenAPI definitions of some structs and of all structs that
// they refer to, by the names that the types give themselves. The function that it
// returns makes new ones on each call, as generated code does, because the caller may
// change them. A call takes a few milliseconds.
//
// The roots are part of a program, not of its input: what is no struct, has no
// name, or has a field that JSON has no form for, is a panic.
func Definitions(roots ...any) common.GetOpenAPIDefinitions {
	return func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		return describe(ref, generated.GetOpenAPIDefinitions(ref), roots).definitions
	}
}

// describe returns the OpenAPI definitions of types and of all that they refer to.
// It uses the known ones unchanged.
func describe(ref common.ReferenceCallback, known map[string]common.OpenAPIDefinition, roots []any) *describer {
	d := &describer{
		ref: ref, known: known, applied: appliedTypes(),
		types:       map[string]reflect.Type{},
		definitions: map[string]common.OpenAPIDefinition{},
	}
	for _, root := range roots {
		d.add(pointed(reflect.TypeOf(root)))
	}
	return d
}

// describer collects OpenAPI definitions.
type describer struct {
	ref         common.ReferenceCallback
	known       map[string]common.OpenAPIDefinition
	applied     *schema.Schema
	types       map[string]reflect.Type // by name: no two types have the same
	definitions map[string]common.OpenAPIDefinition
}

// add adds the OpenAPI definition of a struct, and of all that it refers to.
func (d *describer) add(t reflect.Type) {
	name := nameOf(t)
	if before, ok := d.types[name]; ok {
		if before != t {
			panic(fmt.Sprintf("models: %v and %v are both named %s: give each an OpenAPIModelName of its own", before, t, name))
		}
		return
	}
	d.types[name] = t
	if _, ok := d.known[name]; ok {
		d.take(name)
		return
	}
	definition, refers := d.define(name, t)
	d.definitions[name] = definition
	for _, other := range refers {
		d.add(other)
	}
}

// take adds a known OpenAPI definition, and all that it refers to.
func (d *describer) take(name string) {
	if _, ok := d.definitions[name]; ok {
		return
	}
	definition, ok := d.known[name]
	if !ok {
		panic(fmt.Sprintf("models: the generated OpenAPI refers to %s, which has no model", name))
	}
	d.definitions[name] = definition
	for _, other := range definition.Dependencies {
		d.take(other)
	}
}

// define returns the OpenAPI definition of one struct, and the structs that it refers
// to.
func (d *describer) define(name string, t reflect.Type) (common.OpenAPIDefinition, []reflect.Type) {
	if simple, ok := reflect.Zero(t).Interface().(interface {
		OpenAPISchemaType() []string
		OpenAPISchemaFormat() string
	}); ok {
		return defineSimple(docsOf(t)[""], simple.OpenAPISchemaType(), simple.OpenAPISchemaFormat(), simple), nil
	}
	s := &object{describer: d, name: name, applied: mapOf(d.applied, name), refers: map[string]reflect.Type{}}
	s.schema.Description = docsOf(t)[""]
	s.schema.Type = []string{"object"}
	s.addFields(t)
	s.applyToType()
	definition := common.OpenAPIDefinition{Schema: s.schema, Dependencies: slices.Sorted(maps.Keys(s.refers))}
	return definition, slices.Collect(maps.Values(s.refers))
}

// nameOf is the name of the OpenAPI definition of a struct.
func nameOf(t reflect.Type) string {
	if t != nil && t.Kind() == reflect.Struct {
		if named, ok := reflect.Zero(t).Interface().(interface{ OpenAPIModelName() string }); ok {
			return named.OpenAPIModelName()
		}
	}
	panic(fmt.Sprintf("models: %v is no struct with an OpenAPIModelName", t))
}

// docsOf are the descriptions of a struct, as that of the field "", and of its
// fields.
func docsOf(t reflect.Type) map[string]string {
	if documented, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		return documented.SwaggerDoc()
	}
	return nil
}

// pointed is the type without the pointers to it.
func pointed(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
