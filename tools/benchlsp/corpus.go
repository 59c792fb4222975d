package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// findArchive looks for the corpus: $ESPALIER_CORPUS, or shared/corpus beside the repository.
func findArchive() (string, error) {
	if named := os.Getenv("ESPALIER_CORPUS"); named != "" {
		return named, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for range 6 {
		path := filepath.Join(dir, "shared", "corpus", "crds.tar.gz")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		dir = filepath.Dir(dir)
	}
	return "", errors.New("no corpus: set ESPALIER_CORPUS to an archive of CRDs")
}

// crdFile is a CRD of the corpus.
type crdFile struct {
	name string
	text []byte
	crd  crd
}

type crd struct {
	Kind string `yaml:"kind"`
	Spec struct {
		Group string `yaml:"group"`
		Names struct {
			Kind string `yaml:"kind"`
		} `yaml:"names"`
		Versions []struct {
			Name   string `yaml:"name"`
			Served bool   `yaml:"served"`
			Schema struct {
				Root schema `yaml:"openAPIV3Schema"`
			} `yaml:"schema"`
		} `yaml:"versions"`
	} `yaml:"spec"`
}

type schema struct {
	Type       string            `yaml:"type"`
	Properties map[string]schema `yaml:"properties"`
	Items      *schema           `yaml:"items"`
	Required   []string          `yaml:"required"`
	Enum       []any             `yaml:"enum"`
	Pattern    string            `yaml:"pattern"`
	Format     string            `yaml:"format"`
	Minimum    *float64          `yaml:"minimum"`
	IntOrText  bool              `yaml:"x-kubernetes-int-or-string"`
}

// readCorpus returns CRDs of different kinds, spread over the whole archive.
func readCorpus(archive string, count int) ([]crdFile, error) {
	packed, err := os.ReadFile(archive)
	if err != nil {
		return nil, err
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	var names []string
	texts := make(map[string][]byte)
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if ext := filepath.Ext(h.Name); h.Typeflag != tar.TypeReg || ext != ".yaml" && ext != ".yml" {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		names = append(names, h.Name)
		texts[h.Name] = text
	}
	slices.Sort(names)
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var all []crdFile
	seen := make(map[string]bool)
	for _, name := range names {
		if len(all) == count {
			break
		}
		f := crdFile{name: strings.ReplaceAll(strings.TrimLeft(name, "./"), "/", "_"), text: texts[name]}
		if yaml.Unmarshal(f.text, &f.crd) != nil || f.crd.Kind != "CustomResourceDefinition" || len(f.crd.Spec.Versions) == 0 {
			continue
		}
		key := f.crd.Spec.Group + "/" + f.crd.Spec.Names.Kind
		if !seen[key] {
			seen[key] = true
			all = append(all, f)
		}
	}
	if len(all) < count {
		return nil, fmt.Errorf("%s has only %d CRDs of %d", archive, len(all), count)
	}
	return all, nil
}

// generator writes objects. Some of their values are wrong.
type generator struct {
	rng  *rand.Rand
	crds []crdFile
	next int
}

func (g *generator) object(spoilt bool) string {
	f := &g.crds[g.next%len(g.crds)]
	g.next++
	versions := f.crd.Spec.Versions
	v := versions[g.rng.IntN(len(versions))]
	object := map[string]any{
		"apiVersion": f.crd.Spec.Group + "/" + v.Name, "kind": f.crd.Spec.Names.Kind, "metadata": map[string]any{"name": fmt.Sprint("object-", g.next)},
	}
	if spec, ok := v.Schema.Root.Properties["spec"]; ok {
		object["spec"] = g.value(&spec, 0, spoilt)
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return ""
	}
	return string(text)
}

const maxFields = 8

func (g *generator) value(s *schema, depth int, spoilt bool) any {
	if spoilt && g.rng.IntN(40) == 0 {
		return []any{nil, "😀 wrong", 12345, true, map[string]any{"unknown": 1}, []any{1}}[g.rng.IntN(6)]
	}
	switch {
	case len(s.Enum) > 0:
		return s.Enum[g.rng.IntN(len(s.Enum))]
	case s.IntOrText:
		return 80
	}
	switch s.Type {
	case "object":
		object := make(map[string]any)
		names := make([]string, 0, len(s.Properties))
		for name := range s.Properties {
			names = append(names, name)
		}
		slices.Sort(names)
		g.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names {
			if slices.Contains(s.Required, name) || depth < 5 && len(object) < maxFields {
				p := s.Properties[name]
				object[name] = g.value(&p, depth+1, spoilt)
			}
		}
		return object
	case "array":
		list := []any{}
		for range 1 + g.rng.IntN(2) {
			if s.Items != nil && depth < 6 {
				list = append(list, g.value(s.Items, depth+1, spoilt))
			}
		}
		return list
	case "integer":
		if s.Minimum != nil {
			return int(*s.Minimum) + 1
		}
		return g.rng.IntN(100)
	case "number":
		return 0.5
	case "boolean":
		return g.rng.IntN(2) == 0
	case "string":
		if s.Format == "date-time" {
			return "2026-01-02T03:04:05Z"
		}
		return fmt.Sprint("value-", g.rng.IntN(1000))
	}
	return map[string]any{}
}

// file returns documents of at least a size.
func (g *generator) file(size int) string {
	var b strings.Builder
	for b.Len() < size {
		b.WriteString("---\n")
		b.WriteString(g.object(true))
	}
	return b.String()
}
