package generator

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Merge returns the JSON merge patch that makes after of before.
func Merge(before, after map[string]any) map[string]any {
	patch := map[string]any{}
	for key, old := range before {
		next, ok := after[key]
		switch {
		case !ok:
			patch[key] = nil
		case reflect.DeepEqual(old, next):
		default:
			o, isObject := old.(map[string]any)
			n, staysObject := next.(map[string]any)
			if isObject && staysObject {
				patch[key] = Merge(o, n)
			} else {
				patch[key] = Copy(next)
			}
		}
	}
	for key, next := range after {
		if _, ok := before[key]; !ok {
			patch[key] = Copy(next)
		}
	}
	return patch
}

// JSONPatch returns the operations that make after of before. A few of them are wrong.
func JSONPatch(src *Source, before, after map[string]any) []any {
	ops := []any{}
	operations(before, after, "", &ops)
	if len(ops) > 20 {
		ops = ops[:20]
	}
	if src.Chance(10) {
		wrong := pick(src, []map[string]any{
			{"op": "test", "path": "/metadata/name", "value": "x"}, {"op": "remove", "path": "/spec/nothing"}, {"op": "replace", "path": "/nothing", "value": int64(1)},
			{"op": "steal", "path": "/spec"}, {"op": "add", "path": "spec", "value": int64(1)}, {"op": "add", "path": "/spec/x/y/z", "value": int64(1)},
			{"op": "copy", "from": "/metadata/labels", "path": "/metadata/annotations"}, {"op": "move", "from": "/nothing", "path": "/spec"}, {"op": "add", "path": "/unknownField", "value": "x"},
		})
		ops = slices.Insert(ops, src.IntN(len(ops)+1), Copy(wrong))
	}
	return ops
}

func operations(before, after map[string]any, path string, ops *[]any) {
	for _, key := range slices.Sorted(maps.Keys(before)) {
		next, ok := after[key]
		at := path + "/" + escape(key)
		if !ok {
			*ops = append(*ops, map[string]any{"op": "remove", "path": at})
			continue
		}
		old := before[key]
		if reflect.DeepEqual(old, next) {
			continue
		}
		o, isObject := old.(map[string]any)
		n, staysObject := next.(map[string]any)
		if isObject && staysObject {
			operations(o, n, at, ops)
			continue
		}
		ol, isList := old.([]any)
		nl, staysList := next.([]any)
		if isList && staysList && len(ol) == len(nl) {
			itemOperations(ol, nl, at, ops)
			continue
		}
		*ops = append(*ops, map[string]any{"op": "replace", "path": at, "value": Copy(next)})
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[key]; !ok {
			*ops = append(*ops, map[string]any{"op": "add", "path": path + "/" + escape(key), "value": Copy(after[key])})
		}
	}
}

func itemOperations(before, after []any, path string, ops *[]any) {
	for i := range before {
		o, isObject := before[i].(map[string]any)
		n, staysObject := after[i].(map[string]any)
		at := path + "/" + strconv.Itoa(i)
		if isObject && staysObject {
			operations(o, n, at, ops)
		} else if !reflect.DeepEqual(before[i], after[i]) {
			*ops = append(*ops, map[string]any{"op": "replace", "path": at, "value": Copy(after[i])})
		}
	}
}

func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// Strategic returns a strategic merge patch that makes after of before, or something like it: in lists with a merge key it names only
// the items that changed, and it uses directives.
func Strategic(src *Source, s *Schema, before, after map[string]any) map[string]any {
	patch := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		old := before[key]
		next, ok := after[key]
		switch {
		case !ok:
			patch[key] = nil
		case reflect.DeepEqual(old, next):
		default:
			patch[key] = strategicValue(src, s.property(key), old, next)
			if list, ok := patch[key].([]any); ok && len(list) > 0 && src.Chance(10) {
				patch["$setElementOrder/"+key] = order(s.property(key), next)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[key]; !ok {
			patch[key] = Copy(after[key])
		}
	}
	if len(patch) > 0 && src.Chance(4) {
		patch["$patch"] = pick(src, []string{"replace", "merge", "delete", "steal"})
	}
	if len(patch) > 0 && src.Chance(3) {
		patch["$retainKeys"] = keysOf(patch)
	}
	return patch
}

func keysOf(object map[string]any) []any {
	keys := []any{}
	for _, k := range slices.Sorted(maps.Keys(object)) {
		if !strings.HasPrefix(k, "$") {
			keys = append(keys, k)
		}
	}
	return keys
}

func strategicValue(src *Source, s *Schema, old, next any) any {
	if o, ok := old.(map[string]any); ok {
		if n, ok := next.(map[string]any); ok {
			return Strategic(src, s, o, n)
		}
	}
	o, isList := old.([]any)
	n, staysList := next.([]any)
	if !isList || !staysList || s == nil || s.MergeKey == "" {
		return Copy(next)
	}
	key := s.MergeKey
	out := []any{}
	for _, item := range n {
		object, ok := item.(map[string]any)
		if !ok {
			return Copy(next)
		}
		if was := keyed(o, key, object[key]); was == nil {
			out = append(out, Copy(item))
		} else if !reflect.DeepEqual(was, object) {
			change := Strategic(src, s.Items, was, object)
			change[key] = object[key]
			out = append(out, change)
		}
	}
	for _, item := range o {
		if object, ok := item.(map[string]any); ok && keyed(n, key, object[key]) == nil {
			out = append(out, map[string]any{key: object[key], "$patch": "delete"})
		}
	}
	return out
}

func keyed(list []any, key string, value any) map[string]any {
	for _, item := range list {
		if object, ok := item.(map[string]any); ok && reflect.DeepEqual(object[key], value) {
			return object
		}
	}
	return nil
}

func order(s *Schema, list any) []any {
	out := []any{}
	items, _ := list.([]any)
	for _, item := range items {
		if object, ok := item.(map[string]any); ok && s != nil && s.MergeKey != "" {
			out = append(out, map[string]any{s.MergeKey: object[s.MergeKey]})
		} else {
			out = append(out, Copy(item))
		}
	}
	return out
}

// Applied returns the part of an object that a client applies: without what the server sets, and mostly without a few fields.
func Applied(src *Source, object map[string]any) map[string]any {
	out := Copy(object).(map[string]any)
	if meta, ok := out["metadata"].(map[string]any); ok {
		for _, key := range serverFields {
			if !src.Chance(2) {
				delete(meta, key)
			}
		}
	}
	if src.Chance(90) {
		delete(out, "status")
	}
	if spec, ok := out["spec"].(map[string]any); ok {
		for _, key := range slices.Sorted(maps.Keys(spec)) {
			if src.Chance(15) {
				delete(spec, key)
			}
		}
	}
	return out
}

// Value returns a generated value of a schema, for example a status.
func Value(src *Source, s *Schema, known Known, name string) any {
	m := &mutation{src: src, known: known}
	return m.value(s, name, 0)
}
