package kinds

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// walk visits the values of an object, beside those of the object that it replaces.
type walk struct {
	kind        *Kind
	root, old   ref.Val
	update      bool
	subresource string
	inStatus    bool // within the field status
	changed     bool // by a default
	errs        field.ErrorList
	warnings    []string
}

// newWalk begins a walk. Old is nil for new objects.
func newWalk(k *Kind, tree, old map[string]any, subresource string) *walk {
	return &walk{
		kind: k, root: &object{k.object(), tree}, old: &object{k.object(), old},
		update: old != nil, subresource: subresource,
	}
}

// place is a value within an object.
type place struct {
	t          *fieldType
	value, old any
	hasOld     bool
	parent     ref.Val
	path       *field.Path
	item       bool // of a list: never absent, even if it is empty
}

// scope returns the variables of the expressions at a place.
func (w *walk) scope(p place) *scope {
	return &scope{
		self: wrap(p.t, p.value), old: wrap(p.t, p.old), parent: p.parent,
		root: w.root, oldRoot: w.old, update: p.hasOld, kind: w.kind.Kind,
		failed: w.failed(p.path),
	}
}

// failed returns what makes a map of the fields and items of an object, such as
// "volumes[2]", in which errors were found so far. An expression asks once for each item
// of a list, so that each error is read only once.
func (w *walk) failed(path *field.Path) func() ref.Val {
	var prefix string
	var found map[string]bool
	var value ref.Val
	read := 0
	return func() ref.Val {
		if value == nil {
			if path != nil {
				prefix = path.String() + "."
			}
			found = map[string]bool{}
			value = types.DefaultTypeAdapter.NativeToValue(found)
		}
		for ; read < len(w.errs); read++ {
			if rest, ok := strings.CutPrefix(w.errs[read].Field, prefix); ok {
				name, _, _ := strings.Cut(rest, ".")
				found[name] = true
			}
		}
		return value
	}
}

// pathText is a path as errors show it.
func pathText(path *field.Path) string {
	if path == nil {
		return ""
	}
	return path.String()
}

// members calls visit for the fields of an object that are set, or that data has
// something to say about, in the order of their names.
func (p place) members(visit func(name string, data *fieldData, member place)) {
	tree, _ := p.value.(map[string]any)
	old, _ := p.old.(map[string]any)
	object := p.t.object
	var self ref.Val
	for _, name := range object.names {
		data := object.field(name)
		value := tree[name]
		if data == nil && (value == nil || object.fields[name].below() == nil) {
			continue
		}
		if self == nil {
			self = wrap(p.t, p.value)
		}
		visit(name, data, place{
			t: object.fields[name], value: value, old: old[name], hasOld: p.hasOld, parent: self, path: p.path.Child(name),
		})
	}
}

// items calls visit for the items of a list or map.
func (p place) items(visit func(item place)) {
	switch value := p.value.(type) {
	case []any:
		match := matcher(p.t, p.old)
		for i, item := range value {
			old, ok := match(i, item)
			visit(place{t: p.t.items, value: item, old: old, hasOld: ok, parent: p.parent, path: p.path.Index(i), item: true})
		}
	case map[string]any:
		before, _ := p.old.(map[string]any)
		for _, key := range sortedKeys(value) {
			old, ok := before[key]
			visit(place{t: p.t.items, value: value[key], old: old, hasOld: ok, parent: p.parent, path: p.path.Key(key)})
		}
	}
}

// matcher returns the function that finds the old one of an item: by the key of the
// list, or by index.
func matcher(t *fieldType, old any) func(i int, item any) (any, bool) {
	before, _ := old.([]any)
	if t.key == "" || t.items.form != objectForm {
		return func(i int, _ any) (any, bool) {
			if i < len(before) {
				return before[i], true
			}
			return nil, false
		}
	}
	byKey := make(map[string]any, len(before))
	for _, item := range before {
		if m, ok := item.(map[string]any); ok {
			byKey[fmt.Sprint(m[t.key])] = item
		}
	}
	return func(_ int, item any) (any, bool) {
		m, _ := item.(map[string]any)
		found, ok := byKey[fmt.Sprint(m[t.key])]
		return found, ok
	}
}
