package sample

import (
	"slices"
	"strconv"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// object returns an object of a schema.
func (b *builder) object(s *syntax.Schema, size, depth int) map[string]any {
	o := map[string]any{}
	if s.EmbeddedResource {
		o["apiVersion"], o["kind"] = "example.com/v1", "Part"
		o["metadata"] = map[string]any{"name": "a"}
	}
	if depth < maxDepth {
		b.properties(o, s, size, depth)
	}
	if depth < maxDepth && isMap(s) {
		least, most := bounds(s.MinProperties, s.MaxProperties, 3)
		for range least + b.upTo(most-least, size) {
			o[b.key()] = b.value(s.AdditionalProperties.Schema, size/2, depth+1)
		}
	}
	if keeps(s) && size > 0 && b.one(2) {
		if name := b.key(); s.Property(name) == nil && !slices.Contains(headers, name) {
			o[name] = b.anything(size/2, depth+1)
		}
	}
	return o
}

// properties sets the properties that are required, and some of the others.
func (b *builder) properties(o map[string]any, s *syntax.Schema, size, depth int) {
	chosen := slices.Clone(s.Required)
	for _, part := range s.AllOf {
		chosen = append(chosen, part.Required...)
	}
	if n := len(s.Properties); n > 0 && size > 0 {
		for range b.r.IntN(min(n, size, 16) + 1) {
			chosen = append(chosen, s.Properties[b.r.IntN(n)].Name)
		}
		if depth == 0 { // most of what matters
			chosen = append(chosen, "spec")
		}
	}
	if s.Rare().Unions != nil {
		chosen = chosen[:min(len(chosen), len(s.Required)+1)]
	}
	slices.Sort(chosen)
	chosen = slices.Compact(chosen)
	rest := (size - len(chosen)) / max(1, len(chosen))
	for _, name := range chosen {
		if _, set := o[name]; set {
			continue
		}
		if p := s.Property(name); p != nil {
			o[name] = b.value(p, max(rest, size/3), depth+1)
		}
	}
}

func isMap(s *syntax.Schema) bool {
	return s.AdditionalProperties != nil && s.AdditionalProperties.Allows && len(s.Properties) == 0
}

func keeps(s *syntax.Schema) bool {
	return s.PreserveUnknownFields != nil && *s.PreserveUnknownFields
}

// maxCount bounds the items of a list, whatever its schema demands.
const maxCount = 64

// bounds returns how many items there may be, at most usual ones more than there must be.
func bounds(least, most *int64, usual int) (from, to int) {
	if least != nil {
		from = int(min(max(*least, 0), maxCount))
	}
	to = from + usual
	if most != nil {
		to = max(from, int(min(max(*most, 0), int64(to))))
	}
	return from, to
}

func (b *builder) upTo(n, size int) int {
	if n <= 0 || size <= 0 {
		return 0
	}
	return b.r.IntN(n + 1)
}

func (b *builder) list(s *syntax.Schema, size, depth int) []any {
	out := []any{}
	if depth >= maxDepth {
		return out
	}
	least, most := bounds(s.MinItems, s.MaxItems, 3)
	seen := map[string]bool{}
	for range least + b.upTo(most-least, size) {
		if item, ok := b.item(s, size/3, depth, seen); ok {
			out = append(out, item)
		}
	}
	return out
}

// item returns an item that may be in the list with those seen.
func (b *builder) item(s *syntax.Schema, size, depth int, seen map[string]bool) (any, bool) {
	const tries = 5
	for range tries {
		item := b.value(s.ItemSchema(), size, depth+1)
		id, unique := Identity(s, item)
		if !unique {
			return item, true
		}
		if id != "" && !seen[id] {
			seen[id] = true
			return item, true
		}
		if o, ok := item.(map[string]any); ok && id == "" {
			for _, name := range s.ListMapKeys { // keys need not be required if they have defaults
				if p := s.ItemSchema().Property(name); o[name] == nil && p != nil {
					o[name] = b.value(p, 1, depth+2)
				}
			}
			if id, _ := Identity(s, item); id != "" && !seen[id] {
				seen[id] = true
				return item, true
			}
		}
	}
	return nil, false
}

// Identity returns what identifies an item of a list: its keys in a list of type map, itself in a set. It is empty if
// keys are missing. It reports false if items of the list need not differ.
func Identity(s *syntax.Schema, item any) (string, bool) {
	switch {
	case s.ListType != nil && *s.ListType == "map":
		o, ok := item.(map[string]any)
		if !ok {
			return "", true
		}
		id := "{"
		for _, name := range s.ListMapKeys {
			v := o[name]
			if v == nil {
				return "", true
			}
			id += strconv.Quote(name) + ":" + text(v) + ","
		}
		return id + "}", true
	case s.UniqueItems || s.ListType != nil && *s.ListType == "set":
		return text(item), true
	}
	return "", false
}

// text returns a value as canonical JSON.
func text(v any) string {
	out, err := jsondoc.AppendAny(nil, v)
	if err != nil {
		return "null"
	}
	return string(out)
}
