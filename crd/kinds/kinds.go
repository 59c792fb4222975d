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
	// MetadataLast is whether the metadata of new objects is validated only if they have
	// no other errors.
	MetadataLast bool `yaml:"metadataLast"`
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

	once sync.Once // see load
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
