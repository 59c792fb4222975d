package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/conformance/compare"
	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/mixed"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "conform:", err)
		os.Exit(1)
	}
}

func run() error {
	var (
		short     = flag.Bool("short", false, "the short form: small modules only, fewer mutants and objects")
		mutants   = flag.Int("mutants", 0, "mutated schemas (default 25000; short form 6000)")
		variants  = flag.Int("variants", 0, "schemas varied within the rules, 24 object runs each (default 10000; short form 2000)")
		objects   = flag.Int("objects", 0, "object runs over the corpus (default 1000000; short form 100000)")
		checks    = flag.Int("validations", 0, "validations over the corpus (default 1400000; short form 25000)")
		enriched  = flag.Int("enriched", 0, "schemas with value validations and rules, 36 validations each (default 8000; short form 250)")
		crds      = flag.Int("crds", 0, "mutated CRDs, each created and changed (default 20000; short form 1500)")
		composed  = flag.Int("expressions", 0, "schemas with composed CEL rules, 24 validations each (default 6000; short form 300)")
		edges     = flag.Int("edges", 0, "cost edges of objects, and forty times as many of schemas (default 20; short form 1)")
		resources = flag.Int("requests", 0, "resources, each a schema in a form of its CRD, with requests about 16 objects each (default 15000; short form 300)")
		moded     = flag.Int("modes", 0, "schemas in a mode of the engine, 12 objects each, and CRDs of every compatibility version (default 10000; short form 300)")
		lives     = flag.Int("histories", 0, "CRDs, each with 3 to 8 changes (default 8000; short form 200)")
		families  = flag.Int("mixed", 0, "families of nearly equal schemas, compiled together and each in a process of its own, besides those of a table (default 1500; short form 100)")
		schemas   = flag.Int("grammar", 0, "schemas of a grammar, 40 objects each, with texts of formats and patterns (default 40000; short form 4000)")
		only      = flag.String("only", "", "only one part: grammar, expressions, requests, histories, modes, crds, normalize, validate, mixed")
		one       = flag.Bool("alone", false, "for its own use: answer the question about one schema on standard input, and exit")
		seed      = flag.Uint64("seed", 1, "first seed")
		rounds    = flag.Int("rounds", 0, "rounds into which the work is divided; each has a share of every part (default 20; short form 1)")
		first     = flag.Bool("first", false, "stop at the first difference")
		duration  = flag.Duration("duration", 0, "go on with further seeds for this long")
		workers   = flag.Int("workers", 2, "parallel workers")
		show      = flag.Int("show", 10, "differences to print")
		file      = flag.String("archive", "", "archive of CRDs (default: $ESPALIER_CORPUS, or shared/corpus/crds.tar.gz beside the repository)")
		modules   = flag.Bool("modules", true, "use the pinned modules")
		noCache   = flag.Bool("no-cache", false, "convert the corpus again")
	)
	ignore := flag.String("ignore", "", "regular expression: differences whose reproducer matches are counted apart, and the command still fails")
	flag.Parse()
	usual := true // what is compared depends on no flag
	flag.Visit(func(f *flag.Flag) {
		usual = usual && slices.Contains([]string{"short", "workers", "show", "first", "rounds", "no-cache"}, f.Name)
	})
	klog.SetLogger(logr.Discard()) // the reference logs what it finds twice
	if *one {
		return mixed.Answer(os.Stdin, os.Stdout)
	}
	cfg := compare.Config{Seed: *seed, Rules: true, Duration: *duration, First: *first, Workers: *workers, Show: *show, Progress: os.Stdout}
	together := mixed.Config{Seed: *seed, Workers: *workers, Show: *show, Progress: os.Stdout}
	for _, n := range []struct {
		into, given *int
		long, short int
	}{
		{&cfg.Mutants, mutants, 25000, 6000},
		{&cfg.Variants, variants, 10000, 2000},
		{&cfg.Objects, objects, 1000000, 100000},
		{&cfg.Validations, checks, 1400000, 25000},
		{&cfg.Enriched, enriched, 8000, 250},
		{&cfg.CRDs, crds, 20000, 1500},
		{&cfg.Requests, resources, 15000, 300},
		{&cfg.Histories, lives, 8000, 200},
		{&cfg.Modes, moded, 10000, 300},
		{&cfg.Expressions, composed, 6000, 300},
		{&cfg.Edges, edges, 20, 1},
		{&cfg.Grammar, schemas, 40000, 4000},
		{&together.Families, families, 1500, 100},
		{&cfg.Rounds, rounds, 20, 1},
	} {
		switch {
		case *n.given > 0:
			*n.into = *n.given
		case *short:
			*n.into = n.short
		default:
			*n.into = n.long
		}
	}
	if err := restrict(*only, &cfg, &together); err != nil {
		return err
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
	fmt.Printf("corpus: %d CRDs (%d with rules), %d versions, %d distinct schemas, %.1f MB, %d files unparsed, loaded in %v\n",
		set.Total, set.WithRules, set.Versions, len(set.Schemas), float64(set.Bytes())/1e6, set.Unparsed(), set.Took.Round(time.Millisecond))

	var answers int64
	later := together
	switch *only {
	case "mixed":
		_, err := mix(ctx, set, together)
		return err
	case "":
		// A share of the families first, like a round; the others when all else was equal.
		together.Families /= cfg.Rounds
		later.Families -= together.Families
		later.Seed += uint64(together.Families)
		if answers, err = mix(ctx, set, together); err != nil {
			return err
		}
	}
	if cfg.CRDs > 0 || cfg.Histories > 0 {
		cfg.Whole = set.CRDs
	}
	counts, _, err := compare.Run(ctx, set.Schemas, cfg)
	if cfg.CRDs > 0 {
		fmt.Println(&counts.CRDCounts)
	}
	if cfg.Expressions > 0 {
		fmt.Printf("%s\n%s\n", &counts.ExpressionCounts, &counts.EdgeCounts)
	}
	if cfg.Grammar > 0 {
		fmt.Println(&counts.Grammar)
	}
	if cfg.Requests > 0 {
		fmt.Println(counts.RequestCounts)
	}
	if cfg.Histories > 0 {
		fmt.Println(counts.HistoryCounts)
	}
	if cfg.Modes > 0 {
		fmt.Println(counts.ModeCounts)
	}
	summarize(set, counts)
	for _, row := range slices.Sorted(maps.Keys(counts.Rows)) {
		fmt.Printf("explained by %s: %d\n", row, counts.Rows[row])
	}
	for _, table := range counts.Tables {
		fmt.Print(table)
	}
	if err == nil && *only == "" && later.Families > 0 && counts.Differences.Load() == 0 {
		more, failed := mix(ctx, set, later)
		answers, err = answers+more, failed
	}
	fmt.Printf("comparisons %d\n", counts.Comparisons()+answers)
	fmt.Printf("CRDs %d, versions %d, distinct schemas %d, mutated schemas %d, object runs %d, validations %d, rules compiled %d, differences %d, duration %v\n",
		set.Total, set.Versions, len(set.Schemas), counts.Mutants.Load(), counts.Objects.Load(), counts.Runs(), counts.RulesCompiled.Load(), counts.Differences.Load(), time.Since(began).Round(time.Second))
	if err != nil {
		return err
	}
	if n, ignored := counts.Differences.Load(), counts.Ignored.Load(); n+ignored > 0 {
		return fmt.Errorf("%d differences, %d ignored", n, ignored)
	}
	if missing := counts.Missing(); len(missing) > 0 && !*short {
		return fmt.Errorf("%d combinations were never compared:\n%s", len(missing), strings.Join(missing, "\n"))
	}
	switch {
	case usual && *short:
		return unexpected(counts.Rows, inShort)
	case usual:
		return unexpected(counts.Rows, inLong)
	}
	return nil
}

// restrict leaves only one part of the work, if one is named.
func restrict(only string, cfg *compare.Config, together *mixed.Config) error {
	if only == "" {
		return nil
	}
	parts := []struct {
		name           string
		numbers        []*int
		schemas, rules bool // whether it needs the schemas of the corpus, and compares the costs of their rules
	}{
		{"grammar", []*int{&cfg.Grammar}, false, false},
		{"expressions", []*int{&cfg.Expressions, &cfg.Edges}, false, false},
		{"requests", []*int{&cfg.Requests}, true, false},
		{"histories", []*int{&cfg.Histories}, false, false},
		{"modes", []*int{&cfg.Modes}, false, false},
		{"crds", []*int{&cfg.CRDs}, false, false},
		{"normalize", []*int{&cfg.Mutants, &cfg.Variants, &cfg.Objects}, true, false},
		{"validate", []*int{&cfg.Enriched, &cfg.Validations}, true, true},
		{"mixed", []*int{&together.Families}, false, false},
	}
	found := false
	var names []string
	for _, part := range parts {
		names = append(names, part.name)
		if part.name == only {
			found, cfg.NoSchemas, cfg.Rules = true, !part.schemas, part.rules
			continue
		}
		for _, n := range part.numbers {
			*n = 0
		}
	}
	if !found {
		return fmt.Errorf("-only %s: use one of %s", only, strings.Join(names, ", "))
	}
	return nil
}

// mix compares the answers of schemas that are in use together with those of each alone, and says how many. A difference there makes every
// other comparison depend on the order in which it is made, so it ends the run.
func mix(ctx context.Context, set *corpus.Set, cfg mixed.Config) (answers int64, err error) {
	executable, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cfg.Command = []string{executable, "-alone"}
	began := time.Now()
	counts, err := mixed.Run(ctx, set.Schemas, cfg)
	if err != nil {
		return 0, err
	}
	fmt.Printf("%s, duration %v\n", &counts, time.Since(began).Round(time.Second))
	if counts.Differences > 0 {
		return 0, fmt.Errorf("%d answers depend on other schemas", counts.Differences)
	}
	return int64(counts.Answers), nil
}

// summarize prints what was compared of validation.
func summarize(set *corpus.Set, c *compare.Counts) {
	runs := c.Runs()
	if runs == 0 {
		return
	}
	fmt.Printf("validations %d: create %d, update %d, update with ratcheting %d; invalid %.1f %%, crashes of the reference %d\n",
		runs, c.Creates.Load(), c.Updates.Load(), c.Ratcheted.Load(), 100*float64(c.Invalid.Load())/float64(runs), c.Panics.Load())
	evaluations := c.RuleRuns.Load()
	fmt.Printf("rules: CRDs with rules %d, schemas with rules %d, rules compiled with costs %d; distinct rules evaluated %d (false or failed for %d fields of schemas), evaluations %d: true or skipped %d, false %d, failed %d\n",
		set.WithRules, c.RuleSchemas.Load(), c.RulesCompiled.Load(), c.Evaluated, c.Refuted,
		evaluations, evaluations-c.RulesFalse.Load()-c.RulesFailed.Load(), c.RulesFalse.Load(), c.RulesFailed.Load())
}
