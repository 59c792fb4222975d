package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"

	"github.com/espalier-dev/espalier/conformance/compare"
	"github.com/espalier-dev/espalier/conformance/corpus"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "conform:", err)
		os.Exit(1)
	}
}

func run() error {
	var (
		short    = flag.Bool("short", false, "the short form: small modules only, fewer mutants and objects")
		mutants  = flag.Int("mutants", 0, "mutated schemas (default 25000; short form 6000)")
		variants = flag.Int("variants", 0, "schemas varied within the rules, 24 object runs each (default 10000; short form 2000)")
		objects  = flag.Int("objects", 0, "object runs over the corpus (default 1000000; short form 100000)")
		seed     = flag.Uint64("seed", 1, "first seed")
		duration = flag.Duration("duration", 0, "go on with further seeds for this long")
		workers  = flag.Int("workers", 2, "parallel workers")
		show     = flag.Int("show", 10, "differences to print")
		file     = flag.String("archive", "", "archive of CRDs (default: $ESPALIER_CORPUS, or shared/corpus/crds.tar.gz beside the repository)")
		modules  = flag.Bool("modules", true, "use the pinned modules")
		noCache  = flag.Bool("no-cache", false, "convert the corpus again")
	)
	ignore := flag.String("ignore", "", "regular expression: differences whose reproducer matches are counted apart, and the command still fails")
	flag.Parse()
	cfg := compare.Config{Seed: *seed, Mutants: 25000, Variants: 10000, Objects: 1000000, Duration: *duration, Workers: *workers, Show: *show, Progress: os.Stdout}
	if *short {
		cfg.Mutants, cfg.Variants, cfg.Objects = 6000, 2000, 100000
	}
	if *mutants > 0 {
		cfg.Mutants = *mutants
	}
	if *variants > 0 {
		cfg.Variants = *variants
	}
	if *objects > 0 {
		cfg.Objects = *objects
	}
	if *ignore != "" {
		re, err := regexp.Compile(*ignore)
		if err != nil {
			return err
		}
		cfg.Ignore = re
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	began := time.Now()
	set, err := corpus.Load(ctx, corpus.Options{
		Short: *short, NoModules: !*modules, NoArchive: *short && *file == "", Archive: *file, NoCache: *noCache, Progress: os.Stdout, Parallel: 4,
	})
	if err != nil {
		return err
	}
	fmt.Printf("corpus: %d CRDs, %d versions, %d distinct schemas, %.1f MB, %d files unparsed, loaded in %v\n",
		set.CRDs, set.Versions, len(set.Schemas), float64(set.Bytes())/1e6, set.Unparsed(), set.Took.Round(time.Millisecond))

	counts, _, err := compare.Run(ctx, set.Schemas, cfg)
	fmt.Printf("CRDs %d, versions %d, distinct schemas %d, mutated schemas %d, object runs %d, differences %d, duration %v\n",
		set.CRDs, set.Versions, len(set.Schemas), counts.Mutants.Load(), counts.Objects.Load(), counts.Differences.Load(), time.Since(began).Round(time.Second))
	if err != nil {
		return err
	}
	if n, ignored := counts.Differences.Load(), counts.Ignored.Load(); n+ignored > 0 {
		return fmt.Errorf("%d differences, %d ignored", n, ignored)
	}
	return nil
}
