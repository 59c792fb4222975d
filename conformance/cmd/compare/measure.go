package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/conformance/mistakes"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/conformance/results"
)

const truthFile = "truth.json"

// writeInputs writes CRDs, their schemas for kubeconform, objects, and which objects upstream's code refuses.
func writeInputs(ctx context.Context, folder string) error {
	chosen, err := choose(ctx)
	if err != nil {
		return err
	}
	truth := map[string]bool{}
	for i := range chosen {
		c := &chosen[i]
		text, err := yaml.JSONToYAML(c.JSON)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(folder, crdFolder, fmt.Sprintf("%03d.yaml", i)), text); err != nil {
			return err
		}
		if err := writeSchemas(filepath.Join(folder, schemas), c.JSON); err != nil {
			return err
		}
		for n := i; n < *objects; n += len(chosen) {
			name := fmt.Sprintf("%05d.yaml", n)
			text, refused, err := object(c, n)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			truth[name] = refused
			if err := writeFile(filepath.Join(folder, "objects", name), text); err != nil {
				return err
			}
		}
	}
	text, err := json.Marshal(truth)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(folder, truthFile), text)
}

// choose takes CRDs evenly from the archive, and generated ones where there is none: those that upstream's code accepts, of different kinds.
func choose(ctx context.Context) ([]corpus.CRD, error) {
	set, err := corpus.Load(ctx, corpus.Options{NoModules: true})
	if err != nil {
		if set, err = corpus.Load(ctx, corpus.Options{NoModules: true, NoArchive: true, Seeds: true}); err != nil {
			return nil, err
		}
	}
	n := min(*crds, len(set.CRDs))
	var chosen []corpus.CRD
	seen := map[string]bool{}
	for at := 0; at < len(set.CRDs) && len(chosen) < n; at++ {
		at = max(at, len(chosen)*len(set.CRDs)/n)
		c := set.CRDs[at]
		if r := oracle.CRD(c.JSON, oracle.CRDOptions{}); seen[c.Name] || r.Panic != nil || r.Undecodable != nil || len(r.Errors) > 0 {
			continue
		}
		if storage(c.JSON) == nil {
			continue
		}
		seen[c.Name] = true
		chosen = append(chosen, c)
	}
	if len(chosen) == 0 {
		return nil, errors.New("no CRDs")
	}
	fmt.Printf("compare: %d of %d CRDs\n", len(chosen), len(set.CRDs))
	return chosen, nil
}

// target is what objects of a CRD are made from.
type target struct {
	version, apiVersion, kind string
	namespaced                bool
	plan                      *generate.Plan
}

// storage returns the storage version, nil if no objects can be made of it.
func storage(crd []byte) *target {
	var d crdDocument
	if err := json.Unmarshal(crd, &d); err != nil {
		return nil
	}
	for _, v := range d.Spec.Versions {
		if !v.Storage || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		plan, err := generate.Compile(v.Schema.OpenAPIV3Schema)
		if err != nil {
			return nil
		}
		return &target{v.Name, d.Spec.Group + "/" + v.Name, d.Spec.Names.Kind, d.Spec.Scope == "Namespaced", plan}
	}
	return nil
}

// object generates an object in YAML, every second one with something wrong, and says whether upstream's code refuses it.
func object(c *corpus.CRD, n int) (text []byte, refused bool, err error) {
	t := storage(c.JSON)
	o := generate.Options{Mode: generate.Valid, APIVersion: t.apiVersion, Kind: t.kind, Compact: true, Resolve: true, Metadata: fmt.Sprintf(`{"name": "object-%d"}`, n)}
	if t.namespaced {
		o.Metadata = fmt.Sprintf(`{"name": "object-%d", "namespace": "default"}`, n)
	}
	if n / *crds % 2 == 1 {
		o.Mode = generate.Breach
	}
	generated, err := oracle.Decode(t.plan.Append(nil, *seed<<32+uint64(n), o)) // plain: the parser of YAML does not know all escapes of JSON
	if err != nil {
		return nil, false, err
	}
	if text, err = yaml.JSONToYAML(oracle.Marshal(generated)); err != nil {
		return nil, false, err
	}
	sent, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, false, err
	}
	r, err := oracle.NewResource(c.JSON, t.version)
	if err != nil {
		return nil, false, err
	}
	return text, len(mistakes.Refusals(r.Do(oracle.Operation{Verb: oracle.Create, Body: sent}))) > 0, nil
}

// measure runs the tools in turns over the objects, and prints the best of each figure, and what the tools report.
func measure(ctx context.Context, tools []*tool, inputs string) error {
	var truth map[string]bool
	text, err := os.ReadFile(filepath.Join(inputs, truthFile))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &truth); err != nil {
		return err
	}
	best, reports := map[string]cost{}, map[string]map[string]bool{}
	for range *rounds {
		for _, t := range tools {
			if t.folder == nil {
				continue
			}
			out, _, took, err := t.run(ctx, t.folder(t, inputs), nil)
			if err != nil {
				return err
			}
			if reports[t.name], err = t.files(out); err != nil {
				return fmt.Errorf("%s: %w: %s", t.name, err, tail(out))
			}
			if b, ok := best[t.name]; ok {
				took = cost{min(took.elapsed, b.elapsed), min(took.cpu, b.cpu), min(took.memory, b.memory)}
			}
			best[t.name] = took
		}
	}
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return err
	}
	bad := 0
	for _, refused := range truth {
		if refused {
			bad++
		}
	}
	figures.Set("objects", "%s", results.Count(len(truth)))
	figures.Set("crds", "%d", *crds)
	figures.Set("objects.refused", "%d", bad)
	figures.Set("objects.accepted", "%d", len(truth)-bad)
	fmt.Printf("\n| tool | time | CPU | memory | noticed of %d refused | false alarms of %d accepted |\n|---|---:|---:|---:|---:|---:|\n", bad, len(truth)-bad)
	for _, t := range tools {
		b, ok := best[t.name]
		if !ok {
			continue
		}
		if b.memory <= own.Maxrss<<10 {
			return fmt.Errorf("%s took %d KB, no more than this command: its peak is not known", t.name, b.memory>>10)
		}
		found, wrong := 0, 0
		for file := range reports[t.name] {
			if truth[file] {
				found++
			} else {
				wrong++
			}
		}
		figures.Set(t.name+".time", "%.2f s", b.elapsed.Seconds())
		figures.Set(t.name+".cpu", "%.2f s", b.cpu.Seconds())
		figures.Set(t.name+".memory", "%.0f MB", float64(b.memory)/1e6)
		figures.Set(t.name+".noticed", "%d", found)
		figures.Set(t.name+".false", "%d", wrong)
		fmt.Printf("| %s | %.2f s | %.2f s | %.0f MB | %d | %d |\n", t.name, b.elapsed.Seconds(), b.cpu.Seconds(), float64(b.memory)/1e6, found, wrong)
	}
	return nil
}
