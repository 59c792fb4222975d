package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// defaults are the packages that mutants are made of: the engine, CEL, CRDs, and the
// server's request path, authentication, authorization and storage.
var defaults = []string{
	"internal/build", "internal/compile", "internal/crdtree", "internal/exec", "internal/format", "internal/jsondoc", "internal/object", "internal/pattern",
	"internal/plan", "internal/quantities", "internal/syntax",
	"crd", "crd/cel", "crd/cel/celsize", "crd/diff", "crd/fix", "crd/kinds", "crd/manifest", "crd/offline", "crd/openapi", "crd/request", "crd/rules", "crd/splice",
	"server/apis/customresource", "server/apis/services", "server/auth/authentication", "server/auth/rbac", "server/auth/token",
	"server/endpoints", "server/endpoints/codec", "server/endpoints/requestinfo", "server/replica", "server/storage/converter", "server/storage/fieldmanager", "server/storage/store",
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

type options struct {
	root, packages, survivors, patches string
	mutants, workers                   int
	seed                               uint64
	least, leastOwn                    float64
	list, known, idle, own             bool
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	var o options
	flags.StringVar(&o.root, "root", "..", "the repository")
	flags.StringVar(&o.packages, "packages", strings.Join(defaults, ","), "packages, separated by commas; for example crd/diff,crd/fix")
	flags.StringVar(&o.survivors, "survivors", "mutants/survivors.txt", "file with known survivors and why no test notices them")
	flags.StringVar(&o.patches, "patches", "mutants/patches", "folder with mutants that are always tested if their package is")
	flags.IntVar(&o.mutants, "mutants", 1500, "how many mutants, chosen by the seed")
	flags.IntVar(&o.workers, "workers", runtime.NumCPU(), "mutants that are tested at the same time")
	flags.Uint64Var(&o.seed, "seed", 1, "the same seed chooses the same mutants")
	flags.Float64Var(&o.least, "least", 0, "fail if fewer percent are noticed; equivalent ones do not count")
	flags.Float64Var(&o.leastOwn, "least-own", 0, "fail if the tests of the package itself notice fewer percent")
	flags.BoolVar(&o.list, "list", false, "print the mutants and do not test them")
	flags.BoolVar(&o.known, "known", false, "test the mutants of the list of survivors, and no others")
	flags.BoolVar(&o.idle, "idle", false, "also list the tests that fail for no mutant of their package; takes longer")
	flags.BoolVar(&o.own, "own", false, "run only the tests of the package itself, which is quick; for those who write them")
	if err := flags.Parse(args); err != nil {
		return err
	}
	all, err := readKnown(o.survivors)
	if err != nil {
		return err
	}
	if o.root, err = filepath.Abs(o.root); err != nil {
		return err
	}
	s, err := read(o.root, strings.Split(o.packages, ","))
	if err != nil {
		return err
	}
	written, err := s.patches(o.root, o.patches)
	if err != nil {
		return err
	}
	every := slices.Concat(written, s.mutants)
	if gone := stale(all, s, every); len(gone) > 0 {
		slices.Sort(gone)
		return fmt.Errorf("%s has mutants that do not exist any more; remove them:\n%s", o.survivors, strings.Join(gone, "\n"))
	}
	var chosen []*mutant
	if o.known {
		chosen, written = listed(all, every), nil
	} else {
		chosen = slices.Concat(written, s.sample(o.mutants, o.seed))
	}
	if o.list {
		for _, m := range chosen {
			fmt.Fprintf(out, "%s:%d %s\n", m.File, m.Line, m.ID)
		}
		return nil
	}
	fmt.Fprintf(out, "mutants: %d of %d chosen by seed %d, and %d written by hand\n", len(chosen)-len(written), len(s.mutants), o.seed, len(written))
	total, err := test(ctx, o, s, chosen, all, out)
	if err != nil {
		return err
	}
	return total.check(o)
}

// test runs all mutants and prints the survivors and the sums.
func test(ctx context.Context, o options, s *source, chosen []*mutant, all map[string]*known, out io.Writer) (*score, error) {
	r, err := newRunner(o.root, s, chosen)
	if err != nil {
		return nil, err
	}
	defer r.close()
	r.all, r.own = o.idle, o.own
	began := time.Now()
	areas, total := map[string]*score{}, &score{}
	var wrong []string // entries of the list of survivors
	var (
		mu     sync.Mutex
		failed error
		wait   sync.WaitGroup
	)
	work := make(chan *mutant)
	for range o.workers {
		wait.Go(func() {
			for m := range work {
				became, err := r.try(ctx, m)
				mu.Lock()
				if err != nil {
					failed = cmp.Or(failed, err)
				} else {
					area := areaOf(m.Package)
					if areas[area] == nil {
						areas[area] = &score{}
					}
					areas[area].add(became, all[m.ID])
					total.add(became, all[m.ID])
					if became != survived && all[m.ID] != nil {
						wrong = append(wrong, m.ID)
					}
					report(out, m, became, all[m.ID], total.Tested, len(chosen), time.Since(began))
				}
				mu.Unlock()
			}
		})
	}
	// Mutants of one package follow each other: its tests stay in the build cache.
	ordered := slices.Clone(chosen)
	slices.SortStableFunc(ordered, func(a, b *mutant) int { return cmp.Compare(a.Package, b.Package) })
	for _, m := range ordered {
		mu.Lock()
		stop := failed != nil
		mu.Unlock()
		if stop || ctx.Err() != nil {
			break
		}
		work <- m
	}
	close(work)
	wait.Wait()
	if err := errors.Join(failed, ctx.Err()); err != nil {
		return nil, err
	}
	for _, area := range slices.Sorted(maps.Keys(areas)) {
		fmt.Fprintf(out, "%-28s %s\n", area, areas[area])
	}
	for _, p := range slices.Sorted(maps.Keys(r.shared.suites)) {
		if left := r.shared.suites[p].skipped; len(left) > 0 {
			fmt.Fprintf(out, "left out, because more functions change what they measure: %s %s\n", p, strings.Join(left, " "))
		}
	}
	if o.idle {
		idle, err := r.idle(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range idle {
			fmt.Fprintf(out, "failed for no mutant: %s\n", name)
		}
	}
	fmt.Fprintf(out, "%s; %.0f minutes\n", total, time.Since(began).Minutes())
	if len(wrong) > 0 {
		return nil, fmt.Errorf("%s lists mutants that tests notice; remove them:\n%s", o.survivors, strings.Join(wrong, "\n"))
	}
	return total, nil
}

// report prints a survivor, and now and then how far the run is.
func report(out io.Writer, m *mutant, became fate, why *known, tested, of int, took time.Duration) {
	if became == survived {
		text := "not explained"
		if why != nil {
			text = why.why
		}
		fmt.Fprintf(out, "survived: %s (%s:%d): %s\n", m.ID, m.File, m.Line, text)
	}
	if tested%25 == 0 {
		fmt.Fprintf(out, "mutants: %d of %d after %s\n", tested, of, took.Round(time.Second))
	}
}

// score sums up mutants.
type score struct{ Tested, Own, Near, Equivalent, Unexplained int }

func (s *score) add(became fate, why *known) {
	s.Tested++
	switch {
	case became == byOwn:
		s.Own++
	case became == byNear:
		s.Near++
	case why == nil:
		s.Unexplained++
	case why.equivalent:
		s.Equivalent++
	}
}

// counted are those that a test can notice.
func (s *score) counted() int { return s.Tested - s.Equivalent }

// percent of those that a test can notice.
func (s *score) percent(n int) float64 { return 100 * float64(n) / float64(max(s.counted(), 1)) }

func (s *score) String() string {
	return fmt.Sprintf("mutants: noticed %d of %d, equivalent %d; %.1f %%, by the package's own tests %.1f %%; survivors without an explanation %d",
		s.Own+s.Near, s.counted(), s.Equivalent, s.percent(s.Own+s.Near), s.percent(s.Own), s.Unexplained)
}

func (s *score) check(o options) error {
	if s.percent(s.Own+s.Near) < o.least || s.percent(s.Own) < o.leastOwn {
		return fmt.Errorf("%.1f %% must be noticed, %.1f %% by the package's own tests", o.least, o.leastOwn)
	}
	return nil
}
