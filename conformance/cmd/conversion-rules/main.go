package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/conformance/conversion"
	"github.com/espalier-dev/espalier/crd/conversion/trial"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "conversion-rules:", err)
		os.Exit(1)
	}
}

// totals are those of all rule sets.
type totals struct {
	mu                                               sync.Mutex
	sets, actual, rules, objects, conversions, edits int
	violations                                       int
	err                                              error
}

func run() error {
	var (
		count   = flag.Int("sets", 200, "rule sets")
		actual  = flag.Int("real", 100, "of these, at most so many of real CRDs")
		objects = flag.Int("objects", 10_000, "random objects of each rule set")
		seed    = flag.Uint64("seed", 1, "number that made rule sets and objects are made from")
		workers = flag.Int("workers", runtime.GOMAXPROCS(0), "parallel workers")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	began := time.Now()
	sets, err := collect(ctx, *count, *actual, *seed)
	if err != nil {
		return err
	}
	all := &totals{}
	next := make(chan conversion.Set)
	var group sync.WaitGroup
	for range *workers {
		group.Go(func() {
			for s := range next {
				all.try(ctx, s, trial.Options{Objects: (*objects + len(s.CRD.Versions) - 1) / len(s.CRD.Versions), Seed: *seed, Violations: 2})
			}
		})
	}
	for _, s := range sets {
		next <- s
	}
	close(next)
	group.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	fmt.Printf("conversion-rules: %d sets, %d of them real | %d rules | %d objects | %d conversions | %d edits | %d violations | %v\n",
		all.sets, all.actual, all.rules, all.objects, all.conversions, all.edits, all.violations, time.Since(began).Round(time.Second))
	if all.err == nil && all.violations > 0 {
		all.err = fmt.Errorf("the contract is violated")
	}
	return all.err
}

// collect returns rule sets: real ones, evenly chosen, and made ones.
func collect(ctx context.Context, count, actual int, seed uint64) ([]conversion.Set, error) {
	found, skipped, err := conversion.Real(ctx)
	if err != nil {
		return nil, err
	}
	for _, text := range skipped {
		fmt.Println("skipped", text)
	}
	found = slices.DeleteFunc(found, func(s conversion.Set) bool { return !s.Real })
	fmt.Printf("%d real CRDs have versions that differ\n", len(found))
	n := min(actual, len(found), count)
	var sets []conversion.Set
	for i := range n {
		sets = append(sets, found[i*len(found)/n])
	}
	for i := range uint64(count - n) {
		s, err := conversion.Made(seed<<32 + i)
		if err != nil {
			return nil, err
		}
		sets = append(sets, s)
	}
	return sets, nil
}

func (t *totals) try(ctx context.Context, s conversion.Set, o trial.Options) {
	r, err := conversion.Try(ctx, s, o)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sets++
	if s.Real {
		t.actual++
	}
	t.rules += s.Rules
	t.objects += r.Objects
	t.conversions += r.Conversions
	t.edits += r.Edits
	t.violations += len(r.Violations)
	if err != nil {
		t.err = err
		fmt.Println(err)
	}
	for i := range r.Violations {
		fmt.Print(conversion.Explain(s, &r.Violations[i]))
	}
}
