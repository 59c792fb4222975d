package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/results"
)

var figures = results.New("bench-engine")

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-engine:", err)
		os.Exit(1)
	}
}

func run() error {
	var (
		rounds  = flag.Int("rounds", 60, "rounds of all rows and sides; the best counts")
		batch   = flag.Duration("batch", 6*time.Millisecond, "length of one round of one side")
		compile = flag.Bool("compile", true, "compile the whole corpus, too")
		norm    = flag.Bool("normalize", true, "normalize objects")
		limit   = flag.Int("schemas", 0, "compile at most this many schemas (0: all)")
	)
	admission := flag.Bool("admit", true, "admit objects, with and without rules")
	flag.Parse()
	set, err := corpus.Load(context.Background(), corpus.Options{Progress: os.Stderr, Parallel: 4})
	if err != nil {
		return err
	}
	fmt.Printf("corpus: %d CRDs, %d versions, %d distinct schemas, %.1f MB\n\n", set.Total, set.Versions, len(set.Schemas), float64(set.Bytes())/1e6)
	figures.Set("corpus.crds", "%s", results.Count(set.Total))
	figures.Set("corpus.schemas", "%s", results.Count(len(set.Schemas)))
	if *norm {
		if err := normalize(set, *rounds, *batch); err != nil {
			return err
		}
	}
	if *admission {
		if err := admit(set, *rounds, *batch); err != nil {
			return err
		}
	}
	if *compile {
		schemas := set.Schemas
		crds := set.Total
		if *limit > 0 && *limit < len(schemas) {
			crds = crds * *limit / len(schemas)
			schemas = schemas[:*limit]
		}
		if err := compileAll(schemas, crds); err != nil {
			return err
		}
	}
	return figures.Save()
}
