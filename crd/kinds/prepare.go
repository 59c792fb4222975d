package kinds

import (
	"fmt"
	"slices"
)

// preparation is a step that a write takes before validation.
type preparation struct {
	When string `yaml:"when"`
	// Subresource is the one that the step is for, mostly none.
	Subresource string `yaml:"subresource"`
	If          *expr  `yaml:"if"`
	Clear       string `yaml:"clear"`
	Keep        string `yaml:"keep"`
	Set         string `yaml:"set"`
	Value       *expr  `yaml:"value"`
}

// Prepare drops, restores and sets the fields that clients may not write: those of
// features that are off, and those that the kind's file names. Old is nil for new
// objects. It fails only if an expression of a file does.
func (k *Kind) Prepare(tree, old map[string]any) error { return k.prepare(tree, old, "") }

// PrepareStatus does so for writes of the status.
func (k *Kind) PrepareStatus(tree, old map[string]any) error { return k.prepare(tree, old, "status") }

func (k *Kind) prepare(tree, old map[string]any, subresource string) error {
	dropFeatures(k.object(), tree, old)
	return k.take(tree, old, func(step *preparation) bool {
		return step.Subresource == subresource && (step.When == "" || step.When == "create" && old == nil || step.When == "update" && old != nil)
	})
}

// viewed returns an object as it is validated: a copy, if the kind has steps for it.
func (k *Kind) viewed(tree, old map[string]any) (map[string]any, error) {
	validates := func(step *preparation) bool { return step.When == "validate" }
	if !slices.ContainsFunc(k.Prepares, func(step preparation) bool { return validates(&step) }) {
		return tree, nil
	}
	tree, _ = copied(tree).(map[string]any)
	return tree, k.take(tree, old, validates)
}

// take takes the steps that are chosen.
func (k *Kind) take(tree, old map[string]any, chosen func(*preparation) bool) error {
	w := newWalk(k, tree, old, "")
	for i := range k.load().Prepares {
		step := &k.Prepares[i]
		if !chosen(step) {
			continue
		}
		s := &scope{self: w.root, root: w.root, old: w.old, oldRoot: w.old, update: w.update, kind: k.Kind}
		ok, err := step.If.truth(s)
		if err != nil {
			return fmt.Errorf("preparing a %s failed: %w", k.Kind, err)
		}
		if !ok {
			continue
		}
		switch {
		case step.Clear != "":
			assign(tree, step.Clear, nil)
		case step.Keep != "":
			assign(tree, step.Keep, copied(plain(follow(w.old, step.Keep))))
		case step.Set != "":
			value, err := step.Value.eval(s)
			if err != nil {
				return fmt.Errorf("preparing a %s failed: %w", k.Kind, err)
			}
			assign(tree, step.Set, copied(plain(value)))
		}
	}
	return nil
}

// assign sets the value at a path of fields, and deletes it if the value is nil.
func assign(tree map[string]any, path string, value any) {
	parts := steps(path)
	for i, step := range parts {
		if i == len(parts)-1 {
			if value == nil {
				delete(tree, step.name)
			} else {
				tree[step.name] = value
			}
			return
		}
		below, ok := tree[step.name].(map[string]any)
		if !ok {
			if value == nil {
				return
			}
			below = map[string]any{}
			tree[step.name] = below
		}
		tree = below
	}
}

// dropFeatures deletes the fields of features that are off, unless the old object has
// them.
func dropFeatures(t *objectType, tree, old map[string]any) {
	if !t.drops {
		return
	}
	if t.data != nil {
		for _, field := range t.data.Fields {
			if field.value.Feature != "" && !t.fields[field.name].isSet(old[field.name]) {
				delete(tree, field.name)
			}
		}
	}
	for name, value := range tree {
		ft := t.fields[name]
		if ft == nil || ft.below() == nil || !ft.below().drops {
			continue
		}
		p := place{t: ft, value: value, old: old[name], hasOld: true}
		if ft.form == objectForm {
			m, _ := value.(map[string]any)
			before, _ := old[name].(map[string]any)
			size := len(m)
			dropFeatures(ft.object, m, before)
			if size > 0 && len(m) == 0 && ft.pointer && ft.object.dropsWhole {
				delete(tree, name)
			}
			continue
		}
		p.items(func(item place) {
			m, ok := item.value.(map[string]any)
			before, _ := item.old.(map[string]any)
			if ok && item.t.form == objectForm {
				dropFeatures(item.t.object, m, before)
			}
		})
	}
}
