package docgen

import (
	"regexp"
	"strings"
)

// The bounds of a skeleton: more would not be read.
const (
	maxSkeletonLines = 120
	maxSkeletonDepth = 12
)

// yamlLine is a line of YAML.
type yamlLine struct {
	Text    string
	Comment string
}

// String is the line with its comment.
func (l yamlLine) String() string {
	if l.Comment == "" {
		return l.Text
	}
	return l.Text + " # " + l.Comment
}

// skeleton is an object to start from, as YAML: the required fields, and the
// fields with a default.
func skeleton(v *version, kind string, namespaced bool) []yamlLine {
	k := &sketch{}
	k.line(0, "apiVersion: "+scalar(v.APIVersion), "")
	k.line(0, "kind: "+scalar(kind), "")
	k.line(0, "metadata:", "")
	k.line(1, "name: example", "")
	if namespaced {
		k.line(1, "namespace: default", "")
	}
	for _, f := range v.Root.Fields {
		switch f.Name {
		case "apiVersion", "kind", "metadata", "status":
		case "spec":
			k.field(f, 0, "")
		default:
			if f.wanted() {
				k.field(f, 0, "")
			}
		}
	}
	return k.lines
}

// sketch writes a skeleton.
type sketch struct{ lines []yamlLine }

func (k *sketch) full() bool { return len(k.lines) >= maxSkeletonLines }

func (k *sketch) line(depth int, text, comment string) {
	if !k.full() {
		k.lines = append(k.lines, yamlLine{strings.Repeat("  ", depth) + text, comment})
	}
}

// wanted reports whether the field is part of a skeleton.
func (f *field) wanted() bool { return f.Required || f.Default != "" }

// field writes a field; dash is what the first line of a list's item begins with.
func (k *sketch) field(f *field, depth int, dash string) {
	if k.full() {
		return
	}
	name := dash + scalar(f.Name) + ":"
	var below []*field
	for _, child := range f.Fields {
		if child.wanted() {
			below = append(below, child)
		}
	}
	switch {
	case f.Default != "":
		k.line(depth, name+" "+oneLineValue(f.Default), "default")
	case len(below) == 0 || depth >= maxSkeletonDepth:
		value, comment := f.placeholder()
		k.line(depth, name+" "+value, comment)
	case f.Type == "Object":
		k.line(depth, name, "")
		k.fields(below, depth+1)
	case f.Type == "[]Object":
		k.line(depth, name, "")
		k.field(below[0], depth+1, "- ")
		k.fields(below[1:], depth+2)
	case f.Type == "map[string]Object":
		k.line(depth, name, "")
		k.line(depth+1, "key:", "")
		k.fields(below, depth+2)
	default:
		value, comment := f.placeholder()
		k.line(depth, name+" "+value, comment)
	}
}

func (k *sketch) fields(list []*field, depth int) {
	for _, f := range list {
		k.field(f, depth, "")
	}
}

// placeholder is a value of the right type, and what else there is to know.
func (f *field) placeholder() (value, comment string) {
	list, mapping := strings.HasPrefix(f.Type, "[]"), strings.HasPrefix(f.Type, "map")
	switch {
	case f.Example != "":
		return oneLineValue(f.Example), ""
	case len(f.Enum) > 1 && !list && !mapping:
		return oneLineValue(f.Enum[0]), "or " + shorten(bareList(f.Enum[1:]), 60)
	case len(f.Enum) == 1 && !list && !mapping:
		return oneLineValue(f.Enum[0]), ""
	case list:
		return "[]", f.Type
	case mapping:
		return "{}", f.Type
	}
	switch f.Type {
	case "Object":
		return "{}", ""
	case "string":
		return `""`, f.Type
	case "boolean":
		return "false", f.Type
	case "integer", "number":
		if low := f.schema.Minimum; low != nil && *low > 0 {
			return number(*low), f.Type
		}
		return "0", f.Type
	case "IntOrString":
		return "0", f.Type
	}
	return "null", f.Type
}

// plain matches texts that YAML takes for strings without quotes.
var plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)

// scalar writes a string so that YAML reads it as that.
func scalar(s string) string {
	if plain.MatchString(s) {
		switch strings.ToLower(s) {
		case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		default:
			return s
		}
	}
	return quote(s)
}

// oneLineValue writes JSON as a value of YAML, which it is one of.
func oneLineValue(json string) string {
	if s, ok := unquote(json); ok {
		return scalar(s)
	}
	return strings.Join(strings.Fields(json), " ")
}
