package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/search"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "search-diff:", err)
		os.Exit(1)
	}
}

func run() error {
	var (
		minutes = flag.Float64("minutes", 10, "how long to search")
		seed    = flag.Uint64("seed", 1, "other seeds give other pairs")
		workers = flag.Int("workers", 2, "parallel workers")
		short   = flag.Bool("short", false, "small modules only, no archive")
		file    = flag.String("archive", "", "archive of CRDs (default: $ESPALIER_CORPUS, or shared/corpus/crds.tar.gz beside the repository)")
		modules = flag.Bool("modules", true, "use the pinned modules")
		show    = flag.Int("show", 5, "misses to print")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	set, err := corpus.Load(ctx, corpus.Options{Short: *short, NoModules: !*modules, NoArchive: *short && *file == "", Archive: *file, Progress: os.Stdout})
	if err != nil {
		return err
	}
	fmt.Printf("corpus: %d CRDs, %d distinct schemas, loaded in %v\n", set.Total, len(set.Schemas), set.Took.Round(time.Millisecond))
	began := time.Now()
	counts, _, err := search.Run(ctx, set.Schemas, search.Config{
		Seed: *seed, Duration: time.Duration(*minutes * float64(time.Minute)), Workers: *workers, Show: *show, Progress: os.Stdout,
	})
	if err != nil {
		return err
	}
	fmt.Printf("%v, duration %v\n", counts, time.Since(began).Round(time.Second))
	if alarms := counts.Breaking.Load(); alarms > 0 {
		fmt.Printf("breaking reported and no counterexample among a few objects: %.1f %% (they are made at random, so that this says little)\n",
			100*float64(alarms-counts.Broken.Load())/float64(alarms))
	}
	if n := counts.Misses.Load(); n > 0 {
		return fmt.Errorf("%d misses", n)
	}
	return nil
}
