package models

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// object is the schema of a struct while it is made.
type object struct {
	*describer
	name    string
	applied *schema.Map // what is known of applying to it; nil if nothing is
	schema  spec.Schema
	refers  map[string]reflect.Type
}

// addFields adds the fields of the struct, or of one that is inlined in it.
func (o *object) addFields(t reflect.Type) {
	docs := docsOf(t)
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-" || !f.IsExported():
			continue
		case f.Anonymous && tag == "":
			o.addFields(pointed(f.Type))
			continue
		case tag == "":
			tag = f.Name
		}
		o.addField(f, tag, strings.Split(options, ","), docs[tag])
	}
}

// addField adds a field as a property.
func (o *object) addField(f reflect.StructField, name string, options []string, doc string) {
	omitEmpty := slices.Contains(options, "omitempty")
	var s spec.Schema
	if slices.Contains(options, "string") {
		s = scalar("string", "")
	} else {
		s = o.value(f.Type)
		s.Default = defaultOf(f.Type, omitEmpty)
	}
	s.Description = doc
	for tag, extension := range patchTags {
		if v := f.Tag.Get(tag); v != "" {
			s.AddExtension(extension, v)
		}
	}
	o.applyToField(&s, name)
	if o.schema.Properties == nil {
		o.schema.Properties = map[string]spec.Schema{}
	}
	if readNotes().Granular[o.name+"."+name] {
		s.AddExtension("x-kubernetes-map-type", "granular")
	}
	o.schema.Properties[name] = s
	if isRequired(o.name, name, omitEmpty || slices.Contains(options, "omitzero")) {
		o.schema.Required = append(o.schema.Required, name)
	}
}

// patchTags are the extensions that say what tags of struct fields say.
var patchTags = map[string]string{
	"patchStrategy": "x-kubernetes-patch-strategy",
	"patchMergeKey": "x-kubernetes-patch-merge-key",
}

// value returns the schema of a value: of a field, of an item, of a map.
func (o *object) value(t reflect.Type) spec.Schema {
	t = pointed(t)
	if name, format := common.OpenAPITypeFormat(typeName(t)); name != "" {
		s := scalar(name, format)
		s.Enum = slices.Clone(enumOf(t))
		return s
	}
	switch {
	case t.Kind() == reflect.Struct:
		name := nameOf(t)
		o.refers[name] = t
		return spec.Schema{SchemaProps: spec.SchemaProps{Ref: o.ref(name)}}
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		items := o.value(t.Elem())
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"array"}, Items: &spec.SchemaOrArray{Schema: &items}}}
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		values := o.value(t.Elem())
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, AdditionalProperties: &spec.SchemaOrBool{Allows: true, Schema: &values}}}
	case t.Kind() == reflect.Interface:
		return spec.Schema{} // anything
	}
	panic(fmt.Sprintf("models: %s has a field of the type %v, which has no form in JSON", o.name, t))
}

// typeName is what kube-openapi calls a type that is no struct of its own.
func typeName(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "[]byte"
	case t == reflect.TypeFor[any]():
		return "interface{}"
	}
	return t.Kind().String()
}

func scalar(name, format string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{name}, Format: format}}
}

// defineSimple defines a struct that is written as a simple value, or, with the
// third version of OpenAPI, as one of several.
func defineSimple(doc string, names []string, format string, value any) common.OpenAPIDefinition {
	v2 := common.OpenAPIDefinition{Schema: spec.Schema{SchemaProps: spec.SchemaProps{Description: doc, Type: names, Format: format}}}
	several, ok := value.(interface{ OpenAPIV3OneOfTypes() []string })
	if !ok {
		return v2
	}
	v3 := common.OpenAPIDefinition{Schema: spec.Schema{SchemaProps: spec.SchemaProps{
		Description: doc, OneOf: common.GenerateOpenAPIV3OneOfSchema(several.OpenAPIV3OneOfTypes()), Format: format,
	}}}
	return common.EmbedOpenAPIDefinitionIntoV2Extension(v3, v2)
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// defaultOf is what a field has if it is not written: what Go fills in where
// clients can see it. What reads its own JSON may be null, and has none.
func defaultOf(t reflect.Type, omitEmpty bool) any {
	switch {
	case t.Kind() == reflect.Struct && reflect.PointerTo(t).Implements(unmarshaler):
		return nil
	case t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).Anonymous:
		return defaultOf(t.Field(0).Type, omitEmpty)
	case t.Kind() == reflect.Struct:
		return map[string]any{}
	case omitEmpty || t.Kind() == reflect.Slice:
		return nil
	}
	zero, _ := common.OpenAPIZeroValue(t.Kind().String())
	return zero
}
