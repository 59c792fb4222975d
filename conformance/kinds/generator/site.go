package generator

import (
	"maps"
	"slices"
	"strconv"
)

// A site is a value of an object that a mutation can change.
type site struct {
	name   string // of the property; for items that of the list
	schema *Schema
	value  any
	set    func(any)
	remove func()
	list   *site // that the item is in
	index  int   // in the list
	meta   bool  // part of apiVersion, kind or metadata
	root   bool
}

// sites returns the root and all values below it, in an order that depends on the object alone.
func sites(root map[string]any, s *Schema) []*site {
	top := &site{schema: s, value: root, set: func(any) {}, remove: func() {}, root: true}
	found := []*site{top}
	collect(top, false, &found)
	return found
}

// serverFields are those of metadata that clients rarely write.
var serverFields = []string{"managedFields", "uid", "resourceVersion", "creationTimestamp", "generation", "selfLink"}

func collect(parent *site, meta bool, found *[]*site) {
	switch v := parent.value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if meta && slices.Contains(serverFields, key) {
				continue
			}
			child := &site{
				name: key, schema: parent.schema.property(key), value: v[key],
				set: func(n any) { v[key] = n }, remove: func() { delete(v, key) },
				meta: meta || parent.root && (key == "apiVersion" || key == "kind" || key == "metadata"),
			}
			*found = append(*found, child)
			collect(child, child.meta, found)
		}
	case []any:
		for i, e := range v {
			child := &site{
				name: parent.name, schema: parent.schema.items(), value: e, list: parent, index: i, meta: meta,
				set: func(n any) { v[i] = n },
				remove: func() {
					if i < len(v) {
						parent.set(slices.Delete(slices.Clone(v), i, i+1))
					}
				},
			}
			*found = append(*found, child)
			collect(child, meta, found)
		}
	}
}

// absent returns the properties of the schema that an object does not have.
func absent(s *site) []string {
	object, ok := s.value.(map[string]any)
	if !ok || s.schema == nil {
		return nil
	}
	var out []string
	for _, key := range s.schema.Keys {
		if _, ok := object[key]; !ok {
			out = append(out, key)
		}
	}
	return out
}

// otherType returns a value of another type: a scalar as a string, a string as a number, an object as a list.
func otherType(value any) any {
	switch v := value.(type) {
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n
		}
		return int64(7)
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case map[string]any:
		return []any{v}
	case []any:
		if len(v) > 0 {
			return v[0]
		}
		return map[string]any{}
	}
	return "text"
}
