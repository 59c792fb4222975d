package sample

import (
	"math/rand/v2"
	"slices"

	"github.com/espalier-dev/espalier/internal/syntax"
)

// Edit is a change of one place in an object. Edits apply to any object: one without the place stays as it is.
type Edit struct {
	Op    Op
	Path  []any // names and indexes; for Insert the last is the index before which the item is put
	Value any   // of Set and Insert
}

// Op is what an edit does.
type Op string

// What edits do.
const (
	Set    Op = "set"    // changes or adds a member, or changes an item
	Insert Op = "insert" // adds an item
	Delete Op = "delete"
	Turn   Op = "turn" // reverses the order of a list
)

// place is where an edit can be made.
type place struct {
	path   []any
	schema *syntax.Schema // of the value; nil for unknown values
	value  any
	list   *syntax.Schema // of the list that the value is an item of
	fixed  bool           // a key of an item, or something that the server owns
}

// Edits returns edits of an object of the version, as a user makes them: values change, come and go.
func (g *Generator) Edits(r *rand.Rand, object map[string]any) []Edit {
	b := &builder{Generator: g, r: r}
	n := 1 + r.IntN(4)
	var all []Edit
	for range n {
		places := b.places(object)
		if len(places) == 0 {
			break
		}
		for range 8 {
			if e, ok := b.edit(pick(b, places)); ok {
				all = append(all, e)
				object, _ = Apply(object, e).(map[string]any)
				break
			}
		}
	}
	return all
}

// places lists where the object can be edited.
func (b *builder) places(object map[string]any) []place {
	var all []place
	var walk func(p place)
	walk = func(p place) {
		all = append(all, p)
		switch v := p.value.(type) {
		case map[string]any:
			for _, name := range sortedNames(v) {
				if len(p.path) == 0 && slices.Contains(headers, name) || p.schema != nil && p.schema.EmbeddedResource && slices.Contains(headers, name) {
					continue
				}
				child := place{path: append(slices.Clip(p.path), name), value: v[name]}
				if p.schema != nil {
					if child.schema = p.schema.Property(name); child.schema == nil && isMap(p.schema) {
						child.schema = p.schema.AdditionalProperties.Schema
					}
				}
				child.fixed = p.list != nil && slices.Contains(p.list.ListMapKeys, name)
				walk(child)
			}
		case []any:
			for i, item := range v {
				child := place{path: append(slices.Clip(p.path), i), value: item}
				if p.schema != nil {
					child.schema, child.list = p.schema.ItemSchema(), p.schema
				}
				walk(child)
			}
		}
	}
	walk(place{schema: b.root, value: object})
	return all
}

func sortedNames(o map[string]any) []string {
	names := make([]string, 0, len(o))
	for name := range o {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// edit returns an edit of a place, or false if the place allows none.
func (b *builder) edit(p place) (Edit, bool) {
	const size = 6
	if len(p.path) > 0 && !p.fixed && b.one(4) {
		return Edit{Op: Delete, Path: p.path}, true
	}
	switch v := p.value.(type) {
	case map[string]any:
		name, s := b.newMember(p.schema, v)
		if name == "" {
			return Edit{}, false
		}
		return Edit{Op: Set, Path: append(slices.Clip(p.path), name), Value: b.value(s, size, 4)}, true
	case []any:
		if len(v) > 1 && b.one(3) {
			return Edit{Op: Turn, Path: p.path}, true
		}
		if p.schema == nil || p.schema.ItemSchema() == nil {
			return Edit{}, false
		}
		seen := map[string]bool{}
		for _, item := range v {
			if id, unique := Identity(p.schema, item); unique {
				seen[id] = true
			}
		}
		item, ok := b.item(p.schema, size, 4, seen)
		return Edit{Op: Insert, Path: append(slices.Clip(p.path), b.r.IntN(len(v)+1)), Value: item}, ok
	}
	if len(p.path) == 0 || p.fixed {
		return Edit{}, false
	}
	v := b.value(p.schema, size, 4)
	if p.list != nil {
		if _, unique := Identity(p.list, v); unique {
			return Edit{}, false
		}
	}
	return Edit{Op: Set, Path: p.path, Value: v}, true
}

// newMember returns a member that an object can get, and its schema.
func (b *builder) newMember(s *syntax.Schema, o map[string]any) (string, *syntax.Schema) {
	if s == nil {
		return "", nil
	}
	if n := len(s.Properties); n > 0 {
		p := s.Properties[b.r.IntN(n)]
		if _, has := o[p.Name]; !has && !slices.Contains(headers, p.Name) {
			return p.Name, p.Schema
		}
		return "", nil
	}
	if isMap(s) {
		return b.key(), s.AdditionalProperties.Schema
	}
	return "", nil
}

// Apply returns the value after an edit. It shares what does not change with the value.
func Apply(value any, e Edit) any { return apply(value, e.Path, e) }

func apply(value any, path []any, e Edit) any {
	if len(path) == 0 {
		switch list, ok := value.([]any); {
		case e.Op == Turn && ok:
			list = slices.Clone(list)
			slices.Reverse(list)
			return list
		case e.Op == Set:
			return e.Value
		}
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		name, ok := path[0].(string)
		if !ok {
			return value
		}
		child, has := v[name]
		last := len(path) == 1
		if !has && (!last || e.Op != Set) {
			return value
		}
		out := make(map[string]any, len(v)+1)
		for k, x := range v {
			out[k] = x
		}
		if last && e.Op == Delete {
			delete(out, name)
			return out
		}
		out[name] = apply(child, path[1:], e)
		return out
	case []any:
		i, ok := path[0].(int)
		last := len(path) == 1
		switch {
		case !ok || i > len(v) || i == len(v) && (!last || e.Op != Insert):
			return value
		case last && e.Op == Insert:
			return slices.Insert(slices.Clone(v), i, e.Value)
		case last && e.Op == Delete:
			return slices.Delete(slices.Clone(v), i, i+1)
		}
		out := slices.Clone(v)
		out[i] = apply(v[i], path[1:], e)
		return out
	}
	return value
}
