package builtin

import (
	"reflect"
	"slices"
	"strings"
)

// hasEmpty reports whether fields of an object, by their names in JSON, have a list or
// map that is empty but not absent. Trees cannot tell the two apart.
func hasEmpty(object reflect.Value, names []string) bool {
	object = object.Elem()
	for i := range object.NumField() {
		name, _, _ := strings.Cut(object.Type().Field(i).Tag.Get("json"), ",")
		if slices.Contains(names, name) && empties(object.Field(i)) {
			return true
		}
	}
	return false
}

func empties(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && empties(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && empties(v.Field(i)) {
				return true
			}
		}
	case reflect.Slice, reflect.Map:
		if v.IsNil() || v.Len() == 0 {
			return !v.IsNil()
		}
		if v.Kind() == reflect.Slice {
			for i := range v.Len() {
				if empties(v.Index(i)) {
					return true
				}
			}
			return false
		}
		for _, key := range v.MapKeys() {
			if empties(v.MapIndex(key)) {
				return true
			}
		}
	}
	return false
}
