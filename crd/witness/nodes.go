package witness

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Values of candidates: objects, lists, and literals, which are never changed once they are made.
type (
	object  = map[string]any
	list    = []any
	literal = json.RawMessage
)

// index is a step in an object: the name of a member, or the place of an item.
type index struct {
	Name string
	N    int // -1 for members
}

// node is a value in an object.
type node struct {
	path  []index
	texts []string // the field paths that may name it
	value any
}

// nodes lists the values of an object, parents first, members by name.
func nodes(o any) []node {
	var all []node
	var walk func(n node)
	walk = func(n node) {
		all = append(all, n)
		switch v := n.value.(type) {
		case object:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				walk(node{append(slices.Clip(n.path), index{name, -1}), member(n.texts, name), v[name]})
			}
		case list:
			for i := range v {
				texts := make([]string, len(n.texts))
				for j, t := range n.texts {
					texts[j] = t + "[" + strconv.Itoa(i) + "]"
				}
				walk(node{append(slices.Clip(n.path), index{"", i}), texts, v[i]})
			}
		}
	}
	walk(node{nil, []string{""}, o})
	return all
}

// member returns the paths of a member. Those of maps may be written with brackets.
func member(parents []string, name string) (texts []string) {
	for _, t := range parents {
		if t == "" {
			texts = append(texts, name)
			continue
		}
		texts = append(texts, t+"."+name)
		if len(parents) < 8 {
			texts = append(texts, t+"["+name+"]")
		}
	}
	return texts
}

// decode reads what a schema stores.
func decode(data []byte) any {
	switch data[0] {
	case '{':
		var m map[string]json.RawMessage
		if json.Unmarshal(data, &m) != nil {
			return literal(data)
		}
		o := make(object, len(m))
		for k, v := range m {
			o[k] = decode(v)
		}
		return o
	case '[':
		var l []json.RawMessage
		if json.Unmarshal(data, &l) != nil {
			return literal(data)
		}
		out := make(list, len(l))
		for i, v := range l {
			out[i] = decode(v)
		}
		return out
	}
	return literal(data)
}

// spots returns the paths in a stored object that the focus is about, and whether there is a value. The last step may be to
// a field that is absent.
func (s *search) spots(stored []byte) (at map[string]bool, present bool) {
	at = map[string]bool{}
	steps := s.focus.Path
	for _, n := range nodes(decode(stored)) {
		if along(n.path, steps) && len(n.path) == len(steps) {
			present = true
			for _, t := range n.texts {
				at[t] = true
			}
		}
		if len(steps) > 0 && len(n.path) == len(steps)-1 && along(n.path, steps) && steps[len(steps)-1].Into == Field {
			for _, t := range member(n.texts, steps[len(steps)-1].Name) {
				at[t] = true
			}
		}
	}
	return at, present
}

// along reports whether a path is one of those that begin with the steps.
func along(path []index, steps []Step) bool {
	if len(path) > len(steps) {
		return false
	}
	for i, x := range path {
		if s := steps[i]; x.N >= 0 != (s.Into == Item) || s.Into == Field && x.Name != s.Name {
			return false
		}
	}
	return true
}

// set returns o with a value at a path. Parents are copied; those that are absent are not made.
func set(o any, path []index, v any) (any, bool) {
	if len(path) == 0 {
		return v, true
	}
	child, ok := get(o, path[:1])
	if !ok && len(path) > 1 {
		return o, false
	}
	inner, ok := set(child, path[1:], v)
	if !ok {
		return o, false
	}
	switch p := o.(type) {
	case object:
		if path[0].N < 0 {
			p = maps.Clone(p)
			p[path[0].Name] = inner
			return p, true
		}
	case list:
		if n := path[0].N; n >= 0 && n < len(p) {
			p = slices.Clone(p)
			p[n] = inner
			return p, true
		}
	}
	return o, false
}

// remove returns o without the value at a path.
func remove(o any, path []index) (any, bool) {
	parent, ok := get(o, path[:len(path)-1])
	if !ok {
		return o, false
	}
	last := path[len(path)-1]
	switch p := parent.(type) {
	case object:
		if _, ok := p[last.Name]; ok && last.N < 0 {
			p = maps.Clone(p)
			delete(p, last.Name)
			return set(o, path[:len(path)-1], p)
		}
	case list:
		if last.N >= 0 && last.N < len(p) {
			return set(o, path[:len(path)-1], slices.Delete(slices.Clone(p), last.N, last.N+1))
		}
	}
	return o, false
}

func get(o any, path []index) (any, bool) {
	for _, x := range path {
		switch p := o.(type) {
		case object:
			v, ok := p[x.Name]
			if !ok || x.N >= 0 {
				return nil, false
			}
			o = v
		case list:
			if x.N < 0 || x.N >= len(p) {
				return nil, false
			}
			o = p[x.N]
		default:
			return nil, false
		}
	}
	return o, true
}
