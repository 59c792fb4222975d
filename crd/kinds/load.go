package kinds

import (
	"bytes"
	"fmt"
	"sync"

	"go.yaml.in/yaml/v3"
)

// describing finds the files that describe a type, by type, in their order. It reads no
// YAML: most programs use few kinds, and parsing all files takes longer than everything
// that a kind does. The lines after "types:" that are indented by two spaces begin a type.
var describing = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for _, name := range files() {
		types := false
		for line := range bytes.Lines(read(name)) {
			if types = types || string(line) == "types:\n"; !types {
				continue
			}
			if of := typeOf(line); of != "" {
				all[of] = append(all[of], name)
			}
		}
	}
	return all
})

// typeOf returns the type that a line begins, mostly none.
func typeOf(line []byte) string {
	rest, ok := bytes.CutPrefix(line, []byte("  "))
	if !ok || rest[0] == ' ' || rest[0] == '#' {
		return ""
	}
	name, _, _ := bytes.Cut(rest, []byte(":"))
	return string(name)
}

// parsed has the files that were needed, by name.
var parsed = map[string]*file{}

func parse(name string) *file {
	f := parsed[name]
	if f == nil {
		f = &file{}
		if err := yaml.Unmarshal(read(name), f); err != nil {
			panic(fmt.Sprintf("kinds: reading %s failed: %v", name, err))
		}
		f.Kinds = nil // see All
		parsed[name] = f
	}
	return f
}

// loading protects parsed, and types while they are read. A type is changed only before
// the first kind that has it is used.
var loading sync.Mutex

// load reads what the files say about the types of the kind, once.
func (k *Kind) load() *Kind {
	k.once.Do(func() {
		loading.Lock()
		defer loading.Unlock()
		if t := readTypes()[k.Type]; t != nil {
			t.load()
		}
	})
	return k
}

// object is the type of the kind's objects.
func (k *Kind) object() *objectType {
	k.load()
	return readTypes()[k.Type]
}

// load reads what the files say about a type and those below it, and finds out what
// there is to do for values of them. No type is below itself.
func (t *objectType) load() {
	if t.loaded {
		return
	}
	t.loaded = true
	for _, name := range describing()[t.name] {
		t.describe(parse(name).Types.get(t.name))
	}
	t.sum()
}

// describe adds what a file says about a type.
func (t *objectType) describe(data *typeData) {
	if t.data == nil {
		t.data = &typeData{}
	}
	t.data.Fields = append(t.data.Fields, data.Fields...)
	t.data.Unions = append(t.data.Unions, data.unions()...)
	t.data.Rules = append(t.data.Rules, data.Rules...)
	t.data.Warnings = append(t.data.Warnings, data.Warnings...)
	for _, field := range data.Fields {
		if t.fields[field.name] == nil {
			panic(fmt.Sprintf("kinds: %s has no field %s", t.name, field.name))
		}
	}
}

// unions are those of a type.
func (d *typeData) unions() []*union {
	if d.Union != nil {
		return append([]*union{d.Union}, d.Unions...)
	}
	return d.Unions
}

// field is what the files say about a field, nil if nothing.
func (t *objectType) field(name string) *fieldData {
	if t.data == nil {
		return nil
	}
	return t.data.Fields.get(name)
}

// sum finds out what there is to do for values of a type and of those below it.
func (t *objectType) sum() {
	if d := t.data; d != nil {
		t.validates = true
		t.warns = t.warns || len(d.Warnings) > 0
		for _, f := range d.Fields {
			t.defaults = t.defaults || f.value.Default != nil || f.value.DefaultExpression != nil
			t.warns = t.warns || len(f.value.Warnings) > 0 || f.value.Items != nil && len(f.value.Items.Warnings) > 0
			t.drops = t.drops || f.value.Feature != ""
			t.dropsWhole = t.dropsWhole || f.value.Feature == "whole"
		}
	}
	for _, ft := range t.fields {
		t.defaults = t.defaults || ft.resources
		if below := ft.below(); below != nil {
			below.load()
			t.validates = t.validates || below.validates
			t.defaults = t.defaults || below.defaults
			t.warns = t.warns || below.warns
			t.drops = t.drops || below.drops
		}
	}
}
