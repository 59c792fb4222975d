package conformance

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/espalier-dev/espalier/conformance/compare"
	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/conformance/oracle"
)

// seeds are the schemas of testdata: small, and each about one feature.
func seeds(t testing.TB) []corpus.Schema {
	files, err := filepath.Glob("testdata/schemas/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no seed schemas: %v", err)
	}
	var schemas []corpus.Schema
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		schemas = append(schemas, corpus.Schema{Name: filepath.Base(f), Source: "testdata", JSON: b, Copies: 1})
	}
	return schemas
}

// TestDifferential is the differential run on the seed schemas: no downloads, a few seconds.
func TestDifferential(t *testing.T) {
	cfg := compare.Config{Seed: 42, Mutants: 2000, Variants: 300, Objects: 16000}
	if testing.Short() {
		cfg = compare.Config{Seed: 42, Mutants: 300, Variants: 50, Objects: 3000}
	}
	counts, found, err := compare.Run(context.Background(), seeds(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		t.Error(d)
	}
	t.Log(counts)
}

// FuzzDifferential hands the fuzzer's bytes to both sides, with one of the seed schemas.
func FuzzDifferential(f *testing.F) {
	var pairs []*compare.Pair
	for i, s := range seeds(f) {
		pair, d := compare.Compile(s.JSON)
		if d != nil || pair == nil {
			f.Fatalf("%s does not compile: %v", s.Name, d)
		}
		pairs = append(pairs, pair)
		plan, err := generate.Compile(s.JSON)
		if err != nil {
			f.Fatal(err)
		}
		for _, mode := range []generate.Mode{generate.Valid, generate.Near, generate.Hostile, generate.Hostile} {
			f.Add(uint8(i), mode == generate.Near, plan.Append(nil, uint64(i)*7+uint64(mode), generate.Options{Mode: mode, Size: 300}))
		}
	}
	f.Fuzz(func(t *testing.T, schema uint8, storage bool, object []byte) {
		source := oracle.Request
		if storage {
			source = oracle.Storage
		}
		pair := pairs[int(schema)%len(pairs)]
		d, out := pair.Normalize(object, source)
		if d == nil {
			d = pair.Routes(object, source, out)
		}
		if d != nil {
			t.Error(d)
		}
	})
}
