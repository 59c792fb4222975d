package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/espalier-dev/espalier/crd/manifest"
)

// FuzzSieve: neither a kustomization nor a document makes it fail, and with ours it never wants more than without.
func FuzzSieve(f *testing.F) {
	f.Add("patches: [{path: a.yaml}]\n", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n")
	f.Add("patchesStrategicMerge: [a.yaml, \"a: b\\n\"]\n", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {labels: {}}\nspec: {conversion: {}}\n")
	f.Add("patches: {a: b}\n---\n- a\n", "kind: a\n---\napiVersion: '{{'\nkind: b\nmetadata: 1\n")
	f.Fuzz(func(t *testing.T, kustomization, text string) {
		dir := t.TempDir()
		path := filepath.Join(dir, "a.yaml")
		for name, content := range map[string]string{"kustomization.yaml": kustomization, "a.yaml": text} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		file := &manifest.File{Name: path, Text: []byte(text)}
		documents, _ := manifest.Objects(file)
		hook, folder := newSieve([]string{path}, true).wants(file, path), newSieve([]string{dir}, false).wants(file, path)
		for _, d := range documents {
			if hook(d) && !folder(d) {
				t.Errorf("only a hook wants %s", d.JSON)
			}
		}
	})
}
