package kinds

import (
	"fmt"
	"maps"
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
	if d.DefaultExpression == nil {
		tree[name], w.changed = copied(d.Default), true
		return nil
	}
	value, err := d.DefaultExpression.eval(s)
	if err != nil {
		return err
	}
	v := copied(plain(value))
	if entries, ok := v.(map[string]any); ok && d.DefaultEntries {
		before, _ := tree[name].(map[string]any)
		maps.Copy(entries, before)
	}
	if v != nil && t.isSet(v) {
		tree[name], w.changed = v, true
	}
	return nil
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
