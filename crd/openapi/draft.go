package openapi

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// writer writes schemas in the words of JSON Schema draft-07.
type writer struct {
	encoder
	options Options
	lenient bool // the server keeps all unknown fields
}

// place is where a schema stands.
type place struct {
	logical bool // in allOf, anyOf, oneOf or not: it says nothing about which fields there are
	dropped bool // a server drops null here, or puts a default in its place
}

// resource writes the members of the schema for a whole object.
func (w *writer) resource(d *crd.CRD, v *crd.Version, s *syntax.Schema) {
	w.lenient = d.PreserveUnknownFields || s == nil
	if s == nil {
		s = new(syntax.Schema)
	}
	title := s.Rare().Title
	if title == "" {
		title = d.Kind + " (" + apiVersion(d, v) + ")"
	}
	w.text("title", title)
	w.describe(s)
	w.text("type", "object")
	w.texts("required", union([]string{"apiVersion", "kind"}, w.required(s)))
	w.key("properties")
	w.object(func() {
		w.constant("apiVersion", apiVersion(d, v), "The API group and version of this object.")
		w.constant("kind", d.Kind, "The kind of this object.")
		w.metadata(s.Property("metadata"), !d.Namespaced)
		w.properties(s, "apiVersion", "kind", "metadata")
	})
	w.unknownFields(s)
	w.validations(s, place{})
	w.items("x-kubernetes-group-version-kind", 1, func(int) { w.groupVersionKind(d.Group, v.Name, d.Kind) })
}

func (e *encoder) groupVersionKind(group, version, kind string) {
	e.object(func() {
		e.text("group", group)
		e.text("version", version)
		e.text("kind", kind)
	})
}

// constant writes a property with one possible value. An enum is understood by
// more programs than const.
func (w *writer) constant(name, value, description string) {
	w.key(name)
	w.object(func() {
		w.optional("description", description)
		w.text("type", "string")
		w.texts("enum", []string{value})
	})
}

// union returns the strings of both lists, each once.
func union(a, b []string) []string {
	var list []string
	seen := make(map[string]bool, len(a)+len(b))
	for _, s := range slices.Concat(a, b) {
		if !seen[s] {
			seen[s] = true
			list = append(list, s)
		}
	}
	return list
}

func (w *writer) schema(s *syntax.Schema, at place) {
	w.object(func() {
		w.optional("title", s.Rare().Title)
		w.describe(s)
		w.types(s, at)
		w.enum(s, at)
		if s.Default != nil {
			w.key("default")
			w.raw(s.Default.Raw)
		}
		if example := s.Rare().Example; example != nil {
			w.key("examples")
			w.raw(append(append([]byte{'['}, example.Raw...), ']'))
		}
		if s.Rare().ReadOnly {
			w.flag("readOnly")
		}
		if s.EmbeddedResource && !at.logical {
			w.embedded(s)
		} else {
			if required := w.required(s); len(required) > 0 {
				w.texts("required", required)
			}
			if len(s.Properties) > 0 {
				w.key("properties")
				if at.logical {
					w.object(func() { w.branchProperties(s) })
				} else {
					w.object(func() { w.properties(s) })
				}
			}
		}
		if !at.logical {
			w.unknownFields(s)
		}
		w.validations(s, at)
	})
}

// required lists the fields that have to be written: those without a default.
func (w *writer) required(s *syntax.Schema) []string {
	var list []string
	for _, name := range s.Required {
		if p := s.Property(name); p == nil || p.Default == nil {
			list = append(list, name)
		}
	}
	return union(nil, list)
}

func (w *writer) properties(s *syntax.Schema, but ...string) {
	required := sets.New(s.Required...)
	for _, p := range s.Properties {
		if !slices.Contains(but, p.Name) {
			w.key(p.Name)
			w.schema(p.Schema, place{dropped: p.Schema.Default != nil || !required.Has(p.Name)})
		}
	}
}

func (w *writer) branchProperties(s *syntax.Schema) {
	for _, p := range s.Properties {
		w.key(p.Name)
		w.schema(p.Schema, place{logical: true})
	}
}

// types writes which types of values there may be, null included.
func (w *writer) types(s *syntax.Schema, at place) {
	var list []string
	switch {
	case s.IntOrString:
		list = []string{"integer", "string"}
	case s.Type != "":
		list = []string{s.Type}
	default:
		return
	}
	if s.Nullable || at.dropped && !w.options.Strict {
		list = append(list, "null")
	}
	if len(list) == 1 {
		w.text("type", list[0])
	} else {
		w.texts("type", list)
	}
}

// enum writes the possible values. Whether null is one of them says the list,
// as for a server, unless that drops it.
func (w *writer) enum(s *syntax.Schema, at place) {
	if len(s.Enum) == 0 {
		return
	}
	null := at.dropped && !s.Nullable && !w.options.Strict
	w.key("enum")
	w.array(func() {
		for _, value := range s.Enum {
			w.next()
			w.raw(value.Raw)
			null = null && string(value.Raw) != "null"
		}
		if null {
			w.next()
			w.raw([]byte("null"))
		}
	})
}

// unknownFields writes what there may be besides the properties.
func (w *writer) unknownFields(s *syntax.Schema) {
	switch more := s.AdditionalProperties; {
	case more != nil && more.Schema != nil:
		w.key("additionalProperties")
		w.schema(more.Schema, place{dropped: true})
	case more != nil:
		w.bool("additionalProperties", more.Allows)
	case w.options.Strict && !w.lenient && s.Type == "object" && !preserves(s):
		w.bool("additionalProperties", false)
	}
}

func preserves(s *syntax.Schema) bool {
	return s.PreserveUnknownFields != nil && *s.PreserveUnknownFields
}

// validations writes what a value has to fulfil besides its type and fields.
func (w *writer) validations(s *syntax.Schema, at place) {
	if foreign[s.Format] == "" {
		w.optional("format", s.Format)
	}
	if s.Pattern != "" {
		w.optional("pattern", portable(s.Pattern))
	}
	w.integer("minLength", s.MinLength)
	w.integer("maxLength", s.MaxLength)
	w.bound("minimum", "exclusiveMinimum", s.Minimum, s.ExclusiveMinimum)
	w.bound("maximum", "exclusiveMaximum", s.Maximum, s.ExclusiveMaximum)
	w.number("multipleOf", s.MultipleOf)
	w.integer("minProperties", s.MinProperties)
	w.integer("maxProperties", s.MaxProperties)
	w.integer("minItems", s.MinItems)
	w.integer("maxItems", s.MaxItems)
	if s.UniqueItems || s.ListType != nil && *s.ListType == "set" {
		w.flag("uniqueItems")
	}
	if items := s.ItemSchema(); items != nil {
		w.key("items")
		w.schema(items, place{logical: at.logical, dropped: items.Default != nil})
	}
	w.branches("allOf", s.AllOf)
	if !s.IntOrString || !saysIntOrString(s.AnyOf) {
		w.branches("anyOf", s.AnyOf)
	}
	w.branches("oneOf", s.OneOf)
	if s.Not != nil {
		w.key("not")
		w.schema(s.Not, place{logical: true})
	}
}

// bound writes a limit: draft-07 has a number where OpenAPI has a flag.
func (w *writer) bound(inclusive, exclusive string, limit *float64, excluded bool) {
	if excluded {
		inclusive = exclusive
	}
	w.number(inclusive, limit)
}

func (w *writer) branches(name string, list []*syntax.Schema) {
	w.items(name, len(list), func(i int) { w.schema(list[i], place{logical: true}) })
}

// saysIntOrString recognizes the anyOf that goes with int-or-string and says
// the same as the list of types.
func saysIntOrString(anyOf []*syntax.Schema) bool {
	return len(anyOf) == 2 &&
		string(anyOf[0].AppendJSON(nil)) == `{"type":"integer"}` &&
		string(anyOf[1].AppendJSON(nil)) == `{"type":"string"}`
}
