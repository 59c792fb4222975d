package kinds

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// file is a YAML file of the folder data.
type file struct {
	Kinds []*Kind           `yaml:"kinds"`
	Types ordered[typeData] `yaml:"types"`
}

// typeData is what a file says about a type.
type typeData struct {
	Fields   ordered[fieldData] `yaml:"fields"`
	Union    *union             `yaml:"union"`
	Unions   []*union           `yaml:"unions"`
	Rules    []*rule            `yaml:"rules"`
	Warnings []*rule            `yaml:"warnings"`
}

// fieldData is what a file says about a field, about the keys of a map, or about the
// items of a list or map.
type fieldData struct {
	Required          required   `yaml:"required"`
	Default           any        `yaml:"default"`
	DefaultExpression *expr      `yaml:"defaultExpression"`
	DefaultIf         *expr      `yaml:"defaultIf"`
	ClearIf           *expr      `yaml:"clearIf"`
	DefaultEntries    bool       `yaml:"defaultEntries"`
	Enum              []string   `yaml:"enum"`
	Format            string     `yaml:"format"`
	Pattern           *pattern   `yaml:"pattern"`
	PatternText       string     `yaml:"patternText"`
	Minimum           *int64     `yaml:"minimum"`
	Maximum           *int64     `yaml:"maximum"`
	MinLength         int        `yaml:"minLength"`
	MaxLength         int        `yaml:"maxLength"`
	MaxBytes          int        `yaml:"maxBytes"`
	MinItems          int        `yaml:"minItems"`
	MaxItems          int        `yaml:"maxItems"`
	Distinct          distinct   `yaml:"distinct"`
	Immutable         immutable  `yaml:"immutable"`
	Keys              *fieldData `yaml:"keys"`
	Items             *fieldData `yaml:"items"`
	Text              string     `yaml:"text"`
	Rules             []*rule    `yaml:"rules"`
	Warnings          []*rule    `yaml:"warnings"`
	Shallow           bool       `yaml:"shallow"`
	Final             bool       `yaml:"final"`
	SkipIf            *expr      `yaml:"skipIf"`
	Feature           string     `yaml:"feature"` // "off", "whole", or empty
}

// union says that an object has at most one of some fields.
type union struct {
	Fields   []string `yaml:"fields"`
	Required string   `yaml:"required"`
	Many     string   `yaml:"many"`
}

// ordered is a mapping whose order is kept.
type ordered[T any] []named[T]

type named[T any] struct {
	name  string
	value *T
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (o *ordered[T]) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: a mapping is needed", node.Line)
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i].Value
		if o.get(name) != nil {
			return fmt.Errorf("line %d: %s is there twice", node.Content[i].Line, name)
		}
		value := new(T)
		if err := node.Content[i+1].Decode(value); err != nil {
			return err
		}
		*o = append(*o, named[T]{name, value})
	}
	return nil
}

// get returns the value of a name, nil if there is none.
func (o ordered[T]) get(name string) *T {
	if i := slices.IndexFunc(o, func(n named[T]) bool { return n.name == name }); i >= 0 {
		return o[i].value
	}
	return nil
}

// required is true or the text of the error.
type required struct {
	set  bool
	text string
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (r *required) UnmarshalYAML(node *yaml.Node) error {
	if node.Tag == "!!bool" {
		return node.Decode(&r.set)
	}
	r.set = true
	return node.Decode(&r.text)
}

// immutable is true or "once".
type immutable struct{ set, once bool }

// UnmarshalYAML implements yaml.Unmarshaler.
func (m *immutable) UnmarshalYAML(node *yaml.Node) error {
	m.once = node.Value == "once"
	m.set = m.once || node.Value == "true"
	if !m.set {
		return fmt.Errorf("line %d: immutable is true or once", node.Line)
	}
	return nil
}

// distinct has the keys that the items of a list differ in; none and set: the items
// themselves.
type distinct struct {
	set  bool
	keys []string
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *distinct) UnmarshalYAML(node *yaml.Node) error {
	d.set = true
	switch {
	case node.Kind == yaml.SequenceNode:
		return node.Decode(&d.keys)
	case node.Tag == "!!bool":
		return node.Decode(&d.set)
	}
	d.keys = []string{node.Value}
	return nil
}
