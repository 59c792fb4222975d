package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/espalier-dev/espalier/conformance/releases"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pairs:", err)
		os.Exit(1)
	}
}

func run() error {
	var (
		projects = flag.String("projects", "", "names of projects to compare, separated by commas (default: all)")
		limit    = flag.Int("limit", 0, "pairs at most, evenly chosen (default: all)")
		objects  = flag.Int("objects", 40, "random objects for each version of a pair, to find breaks that are not reported")
		long     = flag.Int("long", 400, "random objects for each version with a breaking change that has no witness")
		workers  = flag.Int("workers", runtime.GOMAXPROCS(0), "parallel workers")
		without  = flag.Bool("without-crdify", false, "do not run crdify")
		cached   = flag.Bool("cached", false, "only releases that were downloaded before")
		profile  = flag.String("cpuprofile", "", "write a CPU profile to this file")
		list     = flag.Bool("list", false, "print every breaking change without a witness, and every risky change")
	)
	flag.Parse()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	began := time.Now()
	pairs, loaded, err := load(ctx, *projects, *cached)
	if err != nil {
		return err
	}
	if n := len(pairs); *limit > 0 && n > *limit {
		chosen := make([]releases.Pair, *limit)
		for i := range chosen {
			chosen[i] = pairs[i*n / *limit]
		}
		pairs = chosen
	}
	fmt.Printf("%d pairs of CRDs that differ, from %d releases of %d projects, loaded in %v\n", len(pairs), loaded.releases, loaded.projects, time.Since(began).Round(time.Second))

	m := &measurement{objects: *objects, long: *long, results: make([]result, len(pairs))}
	var group errgroup.Group
	group.SetLimit(*workers)
	var done sync.WaitGroup
	for i := range pairs {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		done.Add(1)
		group.Go(func() error {
			defer done.Done()
			began := time.Now()
			m.results[i] = m.pair(ctx, &pairs[i], uint64(i))
			if took := time.Since(began); took > 5*time.Second {
				fmt.Printf("%s %s: %v, comparison %v, %d changes\n", pairs[i].CRD, pairs[i].NewName, took.Round(time.Millisecond), m.results[i].took.Round(time.Millisecond), len(m.results[i].changes))
			}
			m.progress(len(pairs))
			return nil
		})
	}
	_ = group.Wait() // there are no errors
	if !*without {
		if err := m.crdify(ctx, pairs); err != nil {
			return err
		}
	}
	missed := m.table(os.Stdout, pairs, *list)
	fmt.Printf("\nduration %v\n", time.Since(began).Round(time.Second))
	if missed > 0 {
		return fmt.Errorf("%d breaks are not reported", missed)
	}
	return nil
}

type counted struct{ projects, releases int }

// load returns the pairs of the projects.
func load(ctx context.Context, names string, cached bool) (all []releases.Pair, n counted, err error) {
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	for _, p := range releases.Projects() {
		if names != "" && !strings.Contains(","+names+",", ","+p.Name+",") {
			continue
		}
		if cached {
			p.Releases = releases.Cached(p.Releases)
		}
		pairs, count, err := releases.Pairs(ctx, p, say)
		if err != nil {
			return nil, n, err
		}
		if count > 1 {
			n.projects++
			n.releases += count
		}
		all = append(all, pairs...)
	}
	return all, n, ctx.Err()
}
