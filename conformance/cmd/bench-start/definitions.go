package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/finding"
)

// prepare builds the program, and writes folders of CRDs as a project has them.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.espalier, err = launch.Build(ctx, b.dir); err != nil {
		return err
	}
	all, err := valid(ctx)
	if err != nil {
		return err
	}
	for _, count := range []int{1, 100} {
		s := size{count, filepath.Join(b.dir, fmt.Sprint("crds", count))}
		if err := os.Mkdir(s.dir, 0o700); err != nil {
			return err
		}
		total := 0
		for i := range count {
			// Evenly over the corpus, whose parts come from different projects.
			d := all[i*len(all)/count]
			text, err := yaml.JSONToYAML(d)
			if err != nil {
				return err
			}
			total += len(text)
			if err := os.WriteFile(filepath.Join(s.dir, fmt.Sprintf("%03d.yaml", i)), text, 0o600); err != nil {
				return err
			}
		}
		fmt.Printf("%d CRDs of the corpus: %d KB of YAML\n", count, total>>10)
		b.sizes = append(b.sizes, s)
	}
	return nil
}

// valid returns the CRDs of the corpus that servers accept, one of every name.
func valid(ctx context.Context) ([][]byte, error) {
	set, err := corpus.Load(ctx, corpus.Options{NoModules: true})
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var all [][]byte
	for _, d := range set.CRDs {
		// Conversion webhooks of the corpus are nowhere to be reached.
		if seen[d.Name] || bytes.Contains(d.JSON, []byte(`"strategy":"Webhook"`)) {
			continue
		}
		seen[d.Name] = true
		parsed, err := crd.Parse(d.JSON)
		if err != nil {
			continue
		}
		findings, err := crd.Validate(parsed, crd.ValidateOptions{})
		parsed.Release()
		if err != nil || slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Severity == finding.Error }) {
			continue
		}
		all = append(all, d.JSON)
	}
	return all, nil
}
