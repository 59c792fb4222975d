package offline

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

var bytesType = reflect.TypeFor[[]byte]()

// pointed is the type that a pointer points to, or the type itself.
func pointed(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

var fieldCache sync.Map // by reflect.Type

// fieldsOf returns the types of the fields of a struct by their names in JSON. Those of
// inlined structs are its own.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if known, ok := fieldCache.Load(t); ok {
		return known.(map[string]reflect.Type)
	}
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		field := t.Field(i)
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case tag == "-" || !field.IsExported():
		case tag == "" && (field.Anonymous || strings.Contains(options, "inline")):
			maps.Copy(fields, fieldsOf(pointed(field.Type)))
		case tag != "":
			fields[tag] = field.Type
		}
	}
	fieldCache.Store(t, fields)
	return fields
}

// namesOf returns the names of the fields of a struct, sorted.
func namesOf(t reflect.Type) []string { return slices.Sorted(maps.Keys(fieldsOf(t))) }
