package kinds

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed data
var dataFiles embed.FS

// Kind is a built-in kind.
type Kind struct {
	Group      string   `yaml:"group"`
	Version    string   `yaml:"version"`
	Kind       string   `yaml:"kind"`
	Plural     string   `yaml:"plural"`
	Singular   string   `yaml:"singular"`
	Namespaced bool     `yaml:"namespaced"`
	ShortNames []string `yaml:"shortNames"`
	Categories []string `yaml:"categories"`
	// Type is the name of the Go type, as types.json has it.
	Type string `yaml:"type"`
	// Name is the format of metadata.name.
	Name string `yaml:"name"`
	// Status is whether spec and status are written through different endpoints.
	Status bool `yaml:"status"`
	// StatusOnCreate is whether a new object may have a status.
	StatusOnCreate bool `yaml:"statusOnCreate"`
	// StatusKeeps are the parts of the metadata that a write of the status does not
	// change: "metadata", or "metadata.labels". It changes nothing else but the status.
	StatusKeeps []string `yaml:"statusKeeps"`
	// GenerateName is when metadata.generateName is validated: "always", "never", or
	// else for new objects. AnyFinalizer is whether metadata.finalizers may have names
	// without a domain.
	GenerateName string `yaml:"generateName"`
	AnyFinalizer bool   `yaml:"anyFinalizer"`
	// ReturnDeleted is whether DELETE answers with the object instead of a status.
	ReturnDeleted bool `yaml:"returnDeleted"`
	// Scale is whether there is the subresource scale.
	Scale bool `yaml:"scale"`
	// Orphans is whether DELETE without a propagation policy orphans dependents.
	Orphans bool `yaml:"orphans"`
	// Generation are the fields whose changes metadata.generation counts. With
	// GenerationFirst, it counts those of fields that are then dropped, too. With
	// GenerationExact besides, a list or map that is empty differs from an absent one.
	Generation      []string `yaml:"generation"`
	GenerationFirst bool     `yaml:"generationFirst"`
	GenerationExact bool     `yaml:"generationExact"`
	// Unconditional is whether a PUT may leave out the resourceVersion, and
	// CreateOnUpdate whether it may create.
	Unconditional  bool `yaml:"unconditional"`
	CreateOnUpdate bool `yaml:"createOnUpdate"`
	// Deprecated is a warning for every request, mostly none.
	Deprecated string `yaml:"deprecated"`
	// Columns are those of tables; none: name and age.
	Columns []Column `yaml:"columns"`
	// Selectors are the field selectors besides metadata.name and metadata.namespace.
	Selectors ordered[expr] `yaml:"selectors"`
	// Prepares are the steps of Prepare.
	Prepares []preparation `yaml:"prepare"`
}

// All returns the kinds of all files, ordered by file. They must not be changed.
var All = sync.OnceValue(func() []*Kind {
	var all []*Kind
	for _, name := range files() {
		head, _, _ := bytes.Cut(read(name), []byte("\ntypes:\n"))
		var f file
		if err := yaml.Unmarshal(head, &f); err != nil {
			panic(fmt.Sprintf("kinds: reading %s failed: %v", name, err))
		}
		all = append(all, f.Kinds...)
	}
	return all
})

// Find returns the kind of a resource, nil if there is none.
func Find(group, version, plural string) *Kind {
	all := All()
	if i := slices.IndexFunc(all, func(k *Kind) bool { return k.Group == group && k.Version == version && k.Plural == plural }); i >= 0 {
		return all[i]
	}
	return nil
}

// files are the names of all files, sorted.
func files() []string {
	var names []string
	err := fs.WalkDir(dataFiles, "data", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("kinds: listing the files of kinds failed: %v", err)) // they are part of the program
	}
	return names
}

func read(name string) []byte {
	b, err := dataFiles.ReadFile(name)
	if err != nil {
		panic(fmt.Sprintf("kinds: reading %s failed: %v", name, err))
	}
	return b
}

// load reads what the files say about types, once for all kinds.
func (k *Kind) load() *Kind {
	loadTypes()
	return k
}

// object is the type of the kind's objects.
func (k *Kind) object() *objectType {
	k.load()
	return readTypes()[k.Type]
}

var loadTypes = sync.OnceFunc(func() {
	all := readTypes()
	for _, name := range files() {
		var f file
		if err := yaml.Unmarshal(read(name), &f); err != nil {
			panic(fmt.Sprintf("kinds: reading %s failed: %v", name, err))
		}
		for _, one := range f.Types {
			t := all[one.name]
			if t == nil {
				panic(fmt.Sprintf("kinds: %s describes %s, which types.json does not have", name, one.name))
			}
			t.describe(one.value)
		}
	}
	seen := map[*objectType]bool{}
	for _, t := range all {
		t.sum(seen)
	}
})

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

// sum finds out what there is to do for values of a type and of those below it. No type
// is below itself.
func (t *objectType) sum(seen map[*objectType]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
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
			below.sum(seen)
			t.validates = t.validates || below.validates
			t.defaults = t.defaults || below.defaults
			t.warns = t.warns || below.warns
			t.drops = t.drops || below.drops
		}
	}
}
