package main

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// schema is what a form needs of an OpenAPI schema.
type schema struct {
	Type        string             `json:"type"`
	Description string             `json:"description"`
	Properties  map[string]*schema `json:"properties"`
	Items       *schema            `json:"items"`
	Required    []string           `json:"required"`
	Enum        []string           `json:"enum"`
	Default     any                `json:"default"`
}

// field is an input of the form.
type field struct {
	Path        string // in the object, such as spec.tls.redirect
	Description string
	Type        string
	Options     []string
	Default     any
	Required    bool
	Value       string
	Errors      []string
}

// fieldsOf returns the inputs for a schema: one for each value, with those of nested objects. Lists of strings have a
// line for each element. The form leaves out what it has no input for.
func fieldsOf(path string, s *schema, required bool) []field {
	switch {
	case s.Type == "object":
		var all []field
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			all = append(all, fieldsOf(path+"."+name, s.Properties[name], required && slices.Contains(s.Required, name))...)
		}
		return all
	case s.Type == "array" && (s.Items == nil || s.Items.Type != "string"):
		return nil
	}
	return []field{{Path: path, Description: s.Description, Type: s.Type, Options: s.Enum, Default: s.Default, Required: required}}
}

// objectOf returns the object that the values of a form make. What is empty is left out, so that it gets its default.
func objectOf(apiVersion, kind string, fields []field, form url.Values) map[string]any {
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": "default"}, "spec": map[string]any{}}
	for i := range fields {
		f := &fields[i]
		f.Value = strings.TrimSpace(form.Get(f.Path))
		if f.Value != "" {
			set(object, strings.Split(f.Path, "."), valueOf(f))
		}
	}
	return object
}

// valueOf reads what a user has written. If it is not what the schema wants, it stays a string, and Espalier says so.
func valueOf(f *field) any {
	switch f.Type {
	case "integer", "number":
		if _, err := strconv.ParseFloat(f.Value, 64); err == nil && json.Valid([]byte(f.Value)) {
			return json.RawMessage(f.Value)
		}
	case "boolean":
		if b, err := strconv.ParseBool(f.Value); err == nil {
			return b
		}
	case "array":
		return strings.Fields(f.Value)
	}
	return f.Value
}

func set(object map[string]any, path []string, value any) {
	for _, name := range path[:len(path)-1] {
		if object[name] == nil {
			object[name] = map[string]any{}
		}
		object = object[name].(map[string]any)
	}
	object[path[len(path)-1]] = value
}

// place shows an error at the field of its path. It reports whether there is one.
func place(fields []field, path, text string) bool {
	for i, f := range fields {
		if rest, ok := strings.CutPrefix(path, f.Path); ok && (rest == "" || rest[0] == '[' || rest[0] == '.') {
			fields[i].Errors = append(fields[i].Errors, text)
			return true
		}
	}
	return false
}
