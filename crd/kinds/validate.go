package kinds

import (
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns the errors of an object. Old is the object that it replaces, nil if
// it is new. Subresource is the one that it is written through, mostly none. The
// object's own metadata is validated elsewhere.
func (k *Kind) Validate(tree, old map[string]any, subresource string) field.ErrorList {
	tree, err := k.viewed(tree, old)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)} // a test evaluates every step
	}
	w := newWalk(k, tree, old, subresource)
	root := place{t: &fieldType{form: objectForm, object: k.object()}, value: tree, old: old, hasOld: old != nil}
	w.validateObject(root)
	return w.errs
}

// validateObject validates an object and what is below it.
func (w *walk) validateObject(p place) {
	object := p.t.object
	if !object.validates {
		return
	}
	atRoot := p.path == nil
	extra := object.data.extra(p)
	p.members(func(name string, data *fieldData, member place) {
		if extra[name] {
			return
		}
		if atRoot && w.kind.Status {
			if (name == "status") != (w.subresource == "status") {
				return
			}
			w.inStatus = name == "status"
		}
		if atRoot && name == "metadata" && data == nil || data != nil && w.skips(data, p) {
			return
		}
		w.validateField(data, member)
	})
	if atRoot {
		w.inStatus = false
	}
	if object.data == nil {
		return
	}
	for _, u := range object.data.unions() {
		w.validateUnion(u, p)
	}
	w.runRules(object.data.Rules, p)
}

// skips reports whether a field of the object at a place is not validated.
func (w *walk) skips(data *fieldData, p place) bool {
	if data.SkipIf == nil {
		return false
	}
	skip, err := data.SkipIf.truth(w.scope(p))
	if err != nil {
		w.errs = append(w.errs, field.InternalError(p.path, err)) // a test checks the types
	}
	return skip
}

// runRules runs the rules of a value.
func (w *walk) runRules(rules []*rule, p place) {
	if len(rules) == 0 {
		return
	}
	s := w.scope(p)
	for _, r := range rules {
		errs := r.violations(w, s, p.path)
		w.errs = append(w.errs, errs...)
		if r.Stop && len(errs) > 0 {
			return
		}
	}
}

// validateField validates a field or item and what is below it.
func (w *walk) validateField(data *fieldData, p place) {
	set := p.item || p.t.isSet(p.value)
	if data != nil && data.Final && p.hasOld {
		if !equalValues(p.t, p.value, p.old) {
			w.errs = append(w.errs, field.Invalid(p.path, nil, validation.FieldImmutableErrorMsg))
		}
		return
	}
	if data != nil {
		// Keywords are for spec or for status, as the write is.
		if !w.validateKeywords(data, p, set) {
			return
		}
		if set {
			w.runRules(data.Rules, p)
		}
		if data.Shallow {
			return
		}
	}
	switch p.t.form {
	case objectForm:
		if set || !p.t.pointer {
			w.validateObject(p)
		}
	case listForm, mapForm:
		var items *fieldData
		if data != nil {
			items = data.Items
		}
		below := p.t.below()
		if items == nil && (below == nil || !below.validates) {
			return
		}
		p.items(func(item place) { w.validateField(items, item) })
	}
}

// extra are the fields of unions that are set besides another. They are forbidden, so
// that nothing else is said about them.
func (d *typeData) extra(p place) map[string]bool {
	if d == nil {
		return nil
	}
	var extra map[string]bool
	tree, _ := p.value.(map[string]any)
	for _, u := range d.unions() {
		found := false
		for _, name := range u.Fields {
			if !p.t.object.fields[name].isSet(tree[name]) {
				continue
			}
			if found {
				if extra == nil {
					extra = map[string]bool{}
				}
				extra[name] = true
			}
			found = true
		}
	}
	return extra
}

// validateUnion complains if more or fewer than one of some fields are set.
func (w *walk) validateUnion(u *union, p place) {
	tree, _ := p.value.(map[string]any)
	found := false
	for _, name := range u.Fields {
		if !p.t.object.fields[name].isSet(tree[name]) {
			continue
		}
		if found && u.Many != "" {
			w.errs = append(w.errs, field.Forbidden(p.path.Child(name), u.Many))
		}
		found = true
	}
	if !found && u.Required != "" {
		w.errs = append(w.errs, field.Required(p.path, u.Required))
	}
}

// Warnings returns what to tell the client about an object that is valid.
func (k *Kind) Warnings(tree, old map[string]any) []string {
	w := newWalk(k, tree, old, "")
	w.warn(nil, nil, place{t: &fieldType{form: objectForm, object: k.object()}, value: tree, old: old, hasOld: old != nil})
	return w.warnings
}

// warn collects the warnings of a value and of what is below it.
func (w *walk) warn(rules []*rule, items *fieldData, p place) {
	if len(rules) > 0 && p.t.isSet(p.value) {
		w.runWarnings(rules, p)
	}
	switch p.t.form {
	case objectForm:
		object := p.t.object
		if !object.warns || p.t.pointer && p.value == nil {
			return
		}
		p.members(func(_ string, data *fieldData, member place) {
			var own []*rule
			var below *fieldData
			if data != nil {
				own, below = data.Warnings, data.Items
			}
			w.warn(own, below, member)
		})
		if object.data != nil {
			w.runWarnings(object.data.Warnings, p)
		}
	case listForm, mapForm:
		var own []*rule
		if items != nil {
			own = items.Warnings
		}
		below := p.t.below()
		if len(own) == 0 && (below == nil || !below.warns) {
			return
		}
		p.items(func(item place) { w.warn(own, nil, item) })
	}
}

// runWarnings adds the texts of warnings.
func (w *walk) runWarnings(rules []*rule, p place) {
	s := w.scope(p)
	for _, r := range rules {
		err := r.run(w, s, p.path, func(s *scope, _ *field.Path) error {
			if r.Messages != nil {
				list, err := r.Messages.eval(s)
				if err != nil {
					return err
				}
				texts, _ := plain(list).([]any)
				for _, text := range texts {
					if t, ok := text.(string); ok {
						w.warnings = append(w.warnings, t)
					}
				}
				return nil
			}
			text := r.Message
			if r.MessageExpression != nil {
				var err error
				if text, err = r.MessageExpression.text(s); err != nil {
					return err
				}
			}
			w.warnings = append(w.warnings, text)
			return nil
		})
		if err != nil {
			w.warnings = append(w.warnings, "making a warning failed: "+err.Error())
		}
	}
}
