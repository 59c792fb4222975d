package kinds

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateKeywords validates a value against the keywords of its field. It reports
// whether rules should run.
func (w *walk) validateKeywords(data *fieldData, p place, set bool) bool {
	if data.Immutable.set && p.hasOld && !(data.Immutable.once && !p.t.isSet(p.old)) && !equalValues(p.t, p.value, p.old) {
		w.errs = append(w.errs, field.Invalid(p.path, p.value, validation.FieldImmutableErrorMsg))
	}
	if !set {
		if data.Required.set || data.MinItems > 0 {
			w.errs = append(w.errs, field.Required(p.path, data.Required.text))
			return false
		}
		if p.t.form == stringForm || p.t.pointer || p.value == nil && p.t.form != integerForm {
			return true
		}
	}
	before := len(w.errs)
	switch p.t.form {
	case listForm:
		w.validateList(data, p)
	case mapForm:
		w.validateMap(data, p)
	case integerForm, floatForm, quantityForm, intOrStringForm:
		w.validateRange(data, p)
	case stringForm:
		w.validateString(data, p)
	}
	if check := shapes[data.Format]; check != nil {
		w.errs = append(w.errs, check(p.value, p.path)...)
	} else if check := formats[data.Format]; check != nil && p.t.form != listForm && p.t.form != mapForm {
		for _, text := range check(fmt.Sprint(p.value)) {
			w.errs = append(w.errs, field.Invalid(p.path, p.value, orText(data.Text, text)))
		}
	}
	return len(w.errs) == before || p.t.form != stringForm
}

// orText is the text of a file, or else the usual one.
func orText(own, usual string) string {
	if own != "" {
		return own
	}
	return usual
}

func (w *walk) validateString(data *fieldData, p place) {
	s, _ := p.value.(string)
	switch {
	case len(data.Enum) > 0 && !slices.Contains(data.Enum, s):
		w.errs = append(w.errs, field.NotSupported(p.path, s, data.Enum))
	case data.Pattern != nil && !data.Pattern.MatchString(s):
		w.errs = append(w.errs, field.Invalid(p.path, s, orText(data.Text, data.PatternText)))
	}
	if data.MinLength > 0 && len(s) < data.MinLength {
		w.errs = append(w.errs, field.TooShort(p.path, s, data.MinLength))
	}
	if data.MaxLength > 0 && utf8.RuneCountInString(s) > data.MaxLength {
		w.errs = append(w.errs, field.TooLong(p.path, s, data.MaxLength))
	}
	if data.MaxBytes > 0 && len(s) > data.MaxBytes {
		w.errs = append(w.errs, field.TooLong(p.path, s, data.MaxBytes))
	}
}

func (w *walk) validateRange(data *fieldData, p place) {
	if data.Minimum == nil && data.Maximum == nil {
		return
	}
	var compare func(limit int64) int
	switch v := p.value.(type) {
	case nil:
		compare = func(limit int64) int { return cmp.Compare(0, limit) }
	case int64:
		compare = func(limit int64) int { return cmp.Compare(v, limit) }
	case string:
		q, err := parseQuantity(v)
		if err != nil || p.t.form != quantityForm {
			return
		}
		compare = func(limit int64) int { return q.CmpInt64(limit) }
	default:
		return
	}
	value := p.value
	if value == nil {
		value = int64(0)
	}
	if data.Minimum != nil && compare(*data.Minimum) < 0 {
		w.errs = append(w.errs, field.Invalid(p.path, value, orText(data.Text, minimumText(*data.Minimum, data.Maximum))))
	} else if data.Maximum != nil && compare(*data.Maximum) > 0 {
		w.errs = append(w.errs, field.Invalid(p.path, value, orText(data.Text, maximumText(data.Minimum, *data.Maximum))))
	}
}

func minimumText(least int64, most *int64) string {
	if most != nil {
		return maximumText(&least, *most)
	}
	return fmt.Sprintf("must be greater than or equal to %d", least)
}

func maximumText(least *int64, most int64) string {
	if least != nil {
		return fmt.Sprintf("must be between %d and %d, inclusive", *least, most)
	}
	return fmt.Sprintf("must be less than or equal to %d", most)
}

func (w *walk) validateList(data *fieldData, p place) {
	list, _ := p.value.([]any)
	if data.MaxItems > 0 && len(list) > data.MaxItems {
		w.errs = append(w.errs, field.TooMany(p.path, len(list), data.MaxItems))
	}
	if !data.Distinct.set {
		return
	}
	seen := make(map[string]bool, len(list))
	for i, item := range list {
		key, shown, path := distinctKey(data.Distinct.keys, item, p.path.Index(i))
		if key == "" {
			continue
		}
		if seen[key] {
			w.errs = append(w.errs, field.Duplicate(path, shown))
		}
		seen[key] = true
	}
}

// distinctKey is what must differ between items, as text, the value that an error
// shows, and its place. The key of an item with nothing in the only field that counts
// is empty.
func distinctKey(keys []string, item any, path *field.Path) (key string, shown any, at *field.Path) {
	m, _ := item.(map[string]any)
	switch len(keys) {
	case 0:
		return text(item), item, path
	case 1:
		value := m[keys[0]]
		if value == nil || value == "" {
			return "", nil, path
		}
		return text(value), value, path.Child(keys[0])
	}
	var parts []string
	part := map[string]any{}
	for _, name := range keys {
		parts = append(parts, text(m[name]))
		if m[name] != nil {
			part[name] = m[name]
		}
	}
	return strings.Join(parts, "\x00"), part, path
}

// text is a value as JSON.
func text(value any) string {
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value) // a tree has nothing that JSON cannot write
	}
	return string(b)
}

func (w *walk) validateMap(data *fieldData, p place) {
	m, _ := p.value.(map[string]any)
	if data.MaxItems > 0 && len(m) > data.MaxItems {
		w.errs = append(w.errs, field.TooMany(p.path, len(m), data.MaxItems))
	}
	if data.Keys == nil {
		return
	}
	for _, key := range sortedKeys(m) {
		w.validateField(data.Keys, place{t: keyType, value: key, parent: p.parent, path: p.path.Key(key), hasOld: false})
	}
}

// keyType is the type of the keys of maps.
var keyType = &fieldType{form: stringForm}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
