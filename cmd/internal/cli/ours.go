package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/crd/manifest"
)

// sieve leaves out what is no object for an API server. Hooks pass all changed files, and
// folders have more than objects, too.
type sieve struct {
	ours  bool     // as for hooks: leave out all that is not for Kubernetes
	named []string // these files are asked for: patches among them are read, unless ours is set

	mu      sync.Mutex
	patches map[string]map[string]bool // by folder: the patches of its kustomization, as absolute paths
}

func newSieve(paths []string, ours bool) *sieve {
	return &sieve{ours: ours, named: paths, patches: map[string]map[string]bool{}}
}

// wants returns which documents of a file to look at.
func (s *sieve) wants(f *manifest.File, path string) func(*manifest.Document) bool {
	if path == manifest.Stdin || (!s.ours && slices.Contains(s.named, path)) {
		return func(d *manifest.Document) bool { return !s.ours || isObject(d) }
	}
	kustomization := isKustomization(path)
	patch := s.isPatch(path)
	template := s.ours && isTemplate(f, path)
	return func(d *manifest.Document) bool {
		switch {
		case patch, template, kustomization && (d.Kind == "" || d.Kind == "Kustomization" || d.Kind == "Component"):
			return false
		case typeMetaOf(d).isCRD() && patchesCRD(d):
			return false
		}
		return !s.ours || isObject(d)
	}
}

// isObject reports whether a document is meant for an API server. Charts have an apiVersion, and
// pipelines of Drone a kind; both lack metadata.
func isObject(d *manifest.Document) bool {
	if d.Name == "" && (d.APIVersion == "" || d.Kind == "" || d.APIVersion == "v1" && d.Kind == "Config") {
		return false // the last one is a kubeconfig
	}
	// Quoted, a template is YAML before it is rendered. CRDs and alerts have braces elsewhere.
	return !slices.ContainsFunc([]string{d.APIVersion, d.Kind, d.Namespace, d.Name}, func(s string) bool { return strings.Contains(s, "{{") })
}

// typed is a line of YAML or JSON that every object of Kubernetes has.
var typed = regexp.MustCompile(`(?m)^\s*"?apiVersion"?\s*:`)

// isOurs reports whether a file that cannot be parsed is meant for Kubernetes. Templates
// become YAML only when they are rendered.
func isOurs(f *manifest.File) bool {
	return typed.Match(f.Text) && !bytes.Contains(f.Text, []byte("{{"))
}

// isTemplate reports whether Helm renders a file.
func isTemplate(f *manifest.File, path string) bool {
	return bytes.Contains(f.Text, []byte("{{")) && inTemplates(path)
}

// inTemplates reports whether a file is below the folder of a Helm chart's templates.
func inTemplates(path string) bool {
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if filepath.Base(dir) == "templates" {
			if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "Chart.yaml")); err == nil {
				return true
			}
		}
	}
	return false
}

// largestPatch is far above what such a patch has, with certificates, too.
const largestPatch = 64 << 10

// patchesCRD reports whether a CRD has the form of the patches that kubebuilder makes, and that
// kustomizations name only in comments until they are used: annotations, or how to convert.
func patchesCRD(d *manifest.Document) bool {
	if len(d.JSON) > largestPatch || bytes.Contains(d.JSON, []byte(`"versions":`)) {
		return false
	}
	var top map[string]json.RawMessage
	if json.Unmarshal(d.JSON, &top) != nil {
		return false
	}
	var metadata, spec map[string]json.RawMessage
	_, hasSpec := top["spec"]
	for key := range top {
		// A CRD with a misspelled spec is a mistake, and no patch.
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "spec"}, key) {
			return false
		}
	}
	if json.Unmarshal(top["metadata"], &metadata) != nil || hasSpec && json.Unmarshal(top["spec"], &spec) != nil {
		return false
	}
	for key := range spec {
		if key != "conversion" && key != "preserveUnknownFields" {
			return false
		}
	}
	return len(spec) > 0 || !hasSpec && (metadata["annotations"] != nil || metadata["labels"] != nil)
}

// kustomizations are the names that kustomize looks for.
var kustomizations = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

func isKustomization(path string) bool { return slices.Contains(kustomizations, filepath.Base(path)) }

// isPatch reports whether a kustomization names a file as a patch, which is a part of an object.
// kustomize reads patches only from its folder and below, so that those above the file decide.
func (s *sieve) isPatch(path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	for dir := filepath.Dir(abs); ; dir = filepath.Dir(dir) {
		if s.patchesOf(dir)[abs] {
			return true
		}
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil || dir == filepath.Dir(dir) {
			return false
		}
	}
}

// patchesOf reads the kustomization of a folder, once.
func (s *sieve) patchesOf(dir string) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, known := s.patches[dir]; known {
		return found
	}
	found := map[string]bool{}
	for _, name := range kustomizations {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		f, err := manifest.Open(path, nil)
		if err != nil {
			continue
		}
		documents, _ := manifest.Parse(f) // what cannot be read names no patches
		for _, d := range documents {
			for _, p := range patchPaths(d.JSON) {
				found[filepath.Join(dir, filepath.FromSlash(p))] = true
			}
		}
	}
	s.patches[dir] = found
	return found
}

// patchPaths returns the files that a kustomization names as patches. An entry of
// patchesStrategicMerge is a path or a patch.
func patchPaths(kustomization []byte) []string {
	type patch struct{ Path string }
	var k struct {
		Patches, PatchesJSON6902 []patch
		PatchesStrategicMerge    []string
	}
	if json.Unmarshal(kustomization, &k) != nil {
		return nil
	}
	paths := k.PatchesStrategicMerge
	for _, p := range slices.Concat(k.Patches, k.PatchesJSON6902) {
		paths = append(paths, p.Path)
	}
	return slices.DeleteFunc(paths, func(p string) bool { return p == "" || strings.Contains(p, "\n") })
}
