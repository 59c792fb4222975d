package kinds

import (
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// loadAll reads what the files say about all types.
func loadAll(t *testing.T) {
	t.Helper()
	for _, k := range All() {
		k.load()
	}
}

// TestDescribing compares the types that were found in the text of files with those that
// YAML has. Each is part of a kind.
func TestDescribing(t *testing.T) {
	loadAll(t)
	found := 0
	for _, name := range files() {
		var f file
		if err := yaml.Unmarshal(read(name), &f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, one := range f.Types {
			found++
			if !slices.Contains(describing()[one.name], name) {
				t.Errorf("%s: what it says about %s is not found", name, one.name)
			}
		}
	}
	for name, in := range describing() {
		found -= len(in)
		if of := readTypes()[name]; of == nil || !of.loaded {
			t.Errorf("%s: no kind has this type", name)
		}
	}
	if found != 0 {
		t.Errorf("%d types are in YAML and not found, or the other way round", found)
	}
}
