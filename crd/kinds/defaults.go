package kinds

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Default sets the defaults of an object, and reports whether there were any. It fails
// only if an expression of a file does.
func (k *Kind) Default(tree map[string]any) (changed bool, err error) {
	if !k.object().defaults {
		return false, nil
	}
	w := newWalk(k, tree, nil, "")
	err = w.defaultObject(k.object(), tree, nil)
	return w.changed, err
}

// defaultObject sets the defaults of the fields of an object, and then of what is
// below them.
func (w *walk) defaultObject(t *objectType, tree map[string]any, parent *object) error {
	if !t.defaults {
		return nil
	}
	self := &object{t, tree}
	if t.data != nil {
		s := &scope{self: self, root: w.root, kind: w.kind.Kind}
		if parent != nil {
			s.parent = parent
		}
		for _, field := range t.data.Fields {
			if err := w.fill(field.value, t.fields[field.name], field.name, tree, s); err != nil {
				return fmt.Errorf("the default of %s.%s failed: %w", t.name, field.name, err)
			}
		}
	}
	for _, name := range t.names {
		ft := t.fields[name]
		if ft.resources && strings.HasPrefix(t.name, "core/") { // kube-apiserver keeps those of other groups
			w.round(tree[name])
		}
		if below := ft.below(); below == nil || !below.defaults {
			continue
		}
		if ft.form == objectForm && !ft.pointer && tree[name] == nil {
			tree[name] = map[string]any{} // Go has no absent struct
		}
		if err := w.defaultValue(ft, tree[name], self); err != nil {
			return err
		}
	}
	return nil
}

// round rounds the quantities of a list of resources up to thousandths: no component
// measures less.
func (w *walk) round(value any) {
	list, _ := value.(map[string]any)
	for name, member := range list {
		text := quantityText(member)
		if !strings.ContainsAny(text, ".-nu") {
			continue // not less than a thousandth
		}
		if q, err := resource.ParseQuantity(text); err == nil && !q.RoundUp(resource.Milli) {
			list[name], w.changed = q.String(), true
		}
	}
}

func (w *walk) defaultValue(t *fieldType, value any, parent *object) error {
	switch v := value.(type) {
	case map[string]any:
		if t.form == objectForm {
			return w.defaultObject(t.object, v, parent)
		}
		for _, item := range v {
			if err := w.defaultValue(t.items, item, parent); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := w.defaultValue(t.items, item, parent); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill sets the default of a field.
func (w *walk) fill(d *fieldData, t *fieldType, name string, tree map[string]any, s *scope) error {
	if d.ClearIf != nil && tree[name] != nil {
		drop, err := d.ClearIf.truth(s)
		if err != nil {
			return err
		}
		if drop {
			delete(tree, name)
			w.changed = true
			return nil
		}
	}
	if d.Default == nil && d.DefaultExpression == nil || t.isSet(tree[name]) && !d.DefaultEntries {
		return nil
	}
	ok, err := d.DefaultIf.truth(s)
	if err != nil || !ok {
		return err
	}
	v := copied(d.Default)
	if d.DefaultExpression != nil {
		value, err := d.DefaultExpression.eval(s)
		if err != nil {
			return err
		}
		if v = copied(plain(value)); v == nil || !t.isSet(v) {
			return nil
		}
	}
	if before, ok := tree[name].(map[string]any); ok && d.DefaultEntries {
		v = addEntries(v, before)
	}
	if d.DefaultEntries && reflect.DeepEqual(tree[name], v) {
		return nil // it has them already, as objects have that are read
	}
	tree[name], w.changed = v, true
	return nil
}

// addEntries returns a map with the entries of a default that it does not have, at any
// depth.
func addEntries(value any, before map[string]any) any {
	entries, ok := value.(map[string]any)
	if !ok {
		return before
	}
	for key, member := range before {
		if inner, ok := member.(map[string]any); ok {
			member = addEntries(entries[key], inner)
		}
		entries[key] = member
	}
	return entries
}

// copied returns a value as trees have it: a copy, with numbers of JSON.
func copied(value any) any {
	switch v := value.(type) {
	case int:
		return int64(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = copied(v[i])
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, member := range v {
			m[key] = copied(member)
		}
		return m
	}
	return value
}
