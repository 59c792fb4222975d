package conformance

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/conformance/compare"
	"github.com/espalier-dev/espalier/conformance/corpus"
)

// seeds are the schemas of this repository: small, and each about one feature.
func seeds(t testing.TB) []corpus.Schema {
	t.Helper()
	schemas, err := corpus.Seeds()
	if err != nil || len(schemas) == 0 {
		t.Fatalf("no seed schemas: %v", err)
	}
	return schemas
}

// archived are the schemas of the archive. Without it, or in the short form, there are none.
func archived(t testing.TB) []corpus.Schema {
	t.Helper()
	if testing.Short() {
		return nil
	}
	set, err := corpus.Load(t.Context(), corpus.Options{NoModules: true, Seeds: true})
	if err != nil {
		t.Fatal(err)
	}
	list := slices.DeleteFunc(set.Schemas, func(s corpus.Schema) bool { return s.Source == "testdata" })
	if len(list) == 0 {
		t.Log("no archive of CRDs: only the schemas of the repository are compared")
	}
	return list
}

// TestDifferential is the differential run on the seed schemas: no downloads, a few seconds.
func TestDifferential(t *testing.T) {
	cfg := compare.Config{Seed: 42, Mutants: 2000, Variants: 300, Objects: 16000, Enriched: 80, Validations: 4000, Rules: true}
	if testing.Short() {
		cfg = compare.Config{Seed: 42, Mutants: 300, Variants: 50, Objects: 3000, Enriched: 20, Validations: 1000, Rules: true}
	}
	counts, found, err := compare.Run(context.Background(), seeds(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		t.Error(d)
	}
	t.Log(counts)
	if counts.Runs() < int64(cfg.Validations) || counts.RulesCompiled.Load() == 0 || counts.RulesFalse.Load() == 0 {
		t.Errorf("too little was compared: %v", &counts.ValidationCounts)
	}
}

// TestCRDs is the differential run on whole CRDs around the seed schemas.
func TestCRDs(t *testing.T) {
	cfg := compare.Config{Seed: 42, CRDs: 600, NoSchemas: true}
	if testing.Short() {
		cfg.CRDs = 100
	}
	schemas := seeds(t)
	for i, s := range schemas {
		doc := fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"trees.orchard.example"},`+
			`"spec":{"group":"orchard.example","scope":"Namespaced","names":{"plural":"trees","kind":"Tree"},`+
			`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":%s}}`, s.JSON)
		if i%2 == 0 { // and another version with the schema of a neighbour, or the same
			doc = fmt.Appendf(doc, `,{"name":"v1beta1","served":true,"storage":false,"subresources":{"status":{}},"schema":{"openAPIV3Schema":%s}}`, schemas[max(i-i%4, 0)].JSON)
		}
		cfg.Whole = append(cfg.Whole, corpus.CRD{Name: s.Name, Source: "testdata", JSON: append(doc, `]}}`...)})
	}
	counts, found, err := compare.Run(context.Background(), schemas, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		t.Error(d)
	}
	c, n := &counts.CRDCounts, int64(cfg.CRDs)
	t.Log(c)
	if c.Created.Load() != n || c.Changed.Load() != n || c.Warned.Load() == 0 || c.Refused.Load() == 0 || c.Refused.Load()+c.Undecoded.Load()+c.Crashed.Load() >= 2*n {
		t.Error("that is not what was to be compared")
	}
}
