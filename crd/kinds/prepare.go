package kinds

import (
	"fmt"
	"reflect"
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

// Prepare drops, restores and sets the fields that clients may not write: the status, if
// it has an endpoint of its own, those of features that are off, and those that the kind's
// file names. Old is nil for new objects; the tree may share its values afterwards. It
// reports whether the tree has changed. It fails only if an expression of a file does.
func (k *Kind) Prepare(tree, old map[string]any) (changed bool, err error) {
	switch {
	case k.Status && old != nil:
		changed = restore(tree, old, "status")
	case k.Status && !k.StatusOnCreate:
		was, _ := tree["status"].(map[string]any)
		changed = len(was) > 0
		delete(tree, "status")
	}
	return k.prepare(tree, old, "", changed)
}

// PrepareStatus does so for writes of the status, which change nothing else but parts of
// the metadata.
func (k *Kind) PrepareStatus(tree, old map[string]any) (changed bool, err error) {
	for name := range tree {
		switch name {
		case "status", "metadata", "kind", "apiVersion":
		default:
			changed = restore(tree, old, name) || changed
		}
	}
	for _, path := range k.StatusKeeps {
		if path != "metadata" {
			changed = restore(tree, old, path) || changed
			continue
		}
		for _, part := range metadataParts {
			changed = restore(tree, old, "metadata."+part) || changed
		}
	}
	return k.prepare(tree, old, "status", changed)
}

// metadataParts are what "metadata" means in StatusKeeps.
var metadataParts = []string{"deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences"}

func (k *Kind) prepare(tree, old map[string]any, subresource string, before bool) (changed bool, err error) {
	dropped := dropFeatures(k.object(), tree, old)
	changed, err = k.take(tree, old, func(step *preparation) bool {
		return step.Subresource == subresource && (step.When == "" || step.When == "create" && old == nil || step.When == "update" && old != nil)
	})
	return before || changed || dropped, err
}

// restore sets a field, as metadata.labels, to what it was, and reports whether it has
// been another.
func restore(tree, old map[string]any, path string) bool {
	var value any = old
	for _, step := range steps(path) {
		m, _ := value.(map[string]any)
		value = m[step.name]
	}
	return assign(tree, path, value)
}

// viewed returns an object as it is validated: a copy, if the kind has steps for it.
func (k *Kind) viewed(tree, old map[string]any) (map[string]any, error) {
	validates := func(step *preparation) bool { return step.When == "validate" }
	if !slices.ContainsFunc(k.Prepares, func(step preparation) bool { return validates(&step) }) {
		return tree, nil
	}
	tree, _ = copied(tree).(map[string]any)
	_, err := k.take(tree, old, validates)
	return tree, err
}

// take takes the steps that are chosen, and reports whether the tree has changed.
func (k *Kind) take(tree, old map[string]any, chosen func(*preparation) bool) (changed bool, err error) {
	w := newWalk(k, tree, old, "")
	for i := range k.load().Prepares {
		step := &k.Prepares[i]
		if !chosen(step) {
			continue
		}
		s := &scope{self: w.root, root: w.root, old: w.old, oldRoot: w.old, update: w.update, kind: k.Kind}
		ok, err := step.If.truth(s)
		if err != nil {
			return changed, fmt.Errorf("preparing a %s failed: %w", k.Kind, err)
		}
		if !ok {
			continue
		}
		switch {
		case step.Clear != "":
			changed = assign(tree, step.Clear, nil) || changed
		case step.Keep != "":
			changed = assign(tree, step.Keep, copied(plain(follow(w.old, step.Keep)))) || changed
		case step.Set != "":
			value, err := step.Value.eval(s)
			if err != nil {
				return changed, fmt.Errorf("preparing a %s failed: %w", k.Kind, err)
			}
			changed = assign(tree, step.Set, copied(plain(value))) || changed
		}
	}
	return changed, nil
}

// assign sets the value at a path of fields, and deletes it if the value is nil. It
// reports whether it has been another.
func assign(tree map[string]any, path string, value any) bool {
	parts := steps(path)
	for i, step := range parts {
		if i == len(parts)-1 {
			if reflect.DeepEqual(tree[step.name], value) {
				return false
			}
			if value == nil {
				delete(tree, step.name)
			} else {
				tree[step.name] = value
			}
			return true
		}
		below, ok := tree[step.name].(map[string]any)
		if !ok {
			if value == nil {
				return false
			}
			below = map[string]any{}
			tree[step.name] = below
		}
		tree = below
	}
	return false
}

// dropFeatures deletes the fields of features that are off, unless the old object has
// them. It reports whether there were any.
func dropFeatures(t *objectType, tree, old map[string]any) (dropped bool) {
	if !t.drops {
		return false
	}
	if t.data != nil {
		for _, field := range t.data.Fields {
			if field.value.Feature != "" && tree[field.name] != nil && !t.fields[field.name].isSet(old[field.name]) {
				delete(tree, field.name)
				dropped = true
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
			dropped = dropFeatures(ft.object, m, before) || dropped
			if size > 0 && len(m) == 0 && ft.pointer && ft.object.dropsWhole {
				delete(tree, name)
			}
			continue
		}
		p.items(func(item place) {
			m, ok := item.value.(map[string]any)
			before, _ := item.old.(map[string]any)
			if ok && item.t.form == objectForm {
				dropped = dropFeatures(item.t.object, m, before) || dropped
			}
		})
	}
	return dropped
}
