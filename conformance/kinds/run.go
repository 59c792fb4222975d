package kinds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/conformance/kinds/generator"
)

// Options are what a run compares.
type Options struct {
	There, Here *Client
	Kinds       []string // names; all if empty
	Objects     int      // for each kind
	Seed        uint64
	Workers     int
	// Fixtures, if not empty, is a folder whose objects take the place of seeds.
	Fixtures string
	Progress io.Writer
}

// round is how many objects of a kind are made before the next kind has its turn, so that a run that is cut short has seen all kinds.
const round = 50

// fixtureRounds is how often each fixture is created: as it is, and with one, two and three changes.
const fixtureRounds = 4

// Run compares all kinds until ctx ends.
func Run(ctx context.Context, o Options) (*Report, error) {
	kinds, report, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	for from := 0; from < o.Objects && ctx.Err() == nil; from += round {
		to := min(from+round, o.Objects)
		if err := together(ctx, o, kinds, report, from, to); err != nil {
			return report, err
		}
		for _, k := range kinds {
			if !k.Exclusive || ctx.Err() != nil {
				continue
			}
			if err := objects(ctx, o, k, report, from, to); err != nil {
				return report, err
			}
		}
		done := report.Total().Objects
		fmt.Fprintf(o.Progress, "kinds: %d of %d objects, %.0f objects/s\n", done, o.Objects*len(kinds), float64(done)/time.Since(start).Seconds())
	}
	return report, nil
}

// prepare finds the kinds that both servers serve, compares what is published about them, and makes namespaces.
func prepare(ctx context.Context, o Options) ([]*Kind, *Report, error) {
	all, err := Discover(ctx, o.There)
	if err != nil {
		return nil, nil, err
	}
	selected, err := Select(all, o.Kinds)
	if err != nil {
		return nil, nil, err
	}
	ours, err := Discover(ctx, o.Here)
	if err != nil {
		return nil, nil, err
	}
	report := NewReport(o.Seed)
	documents := map[string]*generator.Document{}
	texts := &publication{o.There, o.Here, map[string]map[string]any{}}
	var given map[string][]map[string]any
	if o.Fixtures != "" {
		if given, err = fixtures(o.Fixtures); err != nil {
			return nil, nil, err
		}
	}
	var kinds []*Kind
	for _, k := range selected {
		if err := k.plant(); err != nil {
			return nil, nil, err
		}
		if o.Fixtures != "" {
			k.fixed, k.Seeds = true, given[k.apiVersion()+" "+k.Resource.Kind]
		}
		if len(k.Seeds) == 0 {
			report.NoSeed = append(report.NoSeed, k.ID)
			continue
		}
		if err := k.learn(ctx, o.There, documents); err != nil {
			return nil, nil, err
		}
		i := slices.IndexFunc(ours, func(h *Kind) bool {
			return h.Resource.Name == k.Resource.Name && h.Group == k.Group && h.Version == k.Version
		})
		if i < 0 {
			report.NotServed = append(report.NotServed, k.ID)
			continue
		}
		misses, err := texts.compare(ctx, k, ours[i])
		if err != nil {
			return nil, nil, err
		}
		report.note(k.ID, k.ID, misses)
		if k.Resource.Namespaced {
			if err := errors.Join(o.There.namespace(ctx, k.namespace()), o.Here.namespace(ctx, k.namespace())); err != nil {
				return nil, nil, err
			}
		}
		kinds = append(kinds, k)
	}
	return kinds, report, nil
}

// together runs the kinds that do not disturb each other at the same time.
func together(ctx context.Context, o Options, kinds []*Kind, report *Report, from, to int) error {
	work := make(chan *Kind)
	var wait sync.WaitGroup
	var failed atomic.Pointer[error]
	for range o.Workers {
		wait.Go(func() {
			for k := range work {
				if err := objects(ctx, o, k, report, from, to); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	for _, k := range kinds {
		if !k.Exclusive && failed.Load() == nil {
			work <- k
		}
	}
	close(work)
	wait.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// objects runs the scripts of some objects of a kind.
func objects(ctx context.Context, o Options, k *Kind, report *Report, from, to int) error {
	if k.fixed {
		to = min(to, fixtureRounds*len(k.Seeds))
	}
	for i := from; i < to && ctx.Err() == nil; i++ {
		s := newScript(o.There, o.Here, o.Seed, k, i)
		if err := s.run(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("%s/%d: %w", k.ID, i, err)
		}
		report.add(k, i, s)
	}
	return nil
}

// Show runs the script of one object and prints the requests and answers.
func Show(ctx context.Context, o Options, name string, index int, w io.Writer) error {
	o.Kinds = []string{name}
	kinds, _, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	if len(kinds) == 0 {
		return fmt.Errorf("%s is not served by both servers", name)
	}
	for _, k := range kinds {
		s := newScript(o.There, o.Here, o.Seed, k, index)
		err := s.run(ctx)
		for _, x := range s.exchanges {
			showExchange(w, x)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CheckSeeds creates every seed as it is on kube-apiserver, and returns an error for each that it refuses.
func CheckSeeds(ctx context.Context, o Options) error {
	all, err := Discover(ctx, o.There)
	if err != nil {
		return err
	}
	selected, err := Select(all, o.Kinds)
	if err != nil {
		return err
	}
	var errs []error
	var without []string
	for _, k := range selected {
		if err := k.plant(); err != nil {
			return err
		}
		if len(k.Seeds) == 0 {
			without = append(without, k.ID)
			continue
		}
		if k.Resource.Namespaced {
			if err := o.There.namespace(ctx, k.namespace()); err != nil {
				return err
			}
		}
		if !k.can("get") {
			continue // an answer to a review or a binding depends on other objects
		}
		for i := range k.Seeds {
			errs = append(errs, checkSeed(ctx, o, k, i))
		}
	}
	if len(without) > 0 {
		fmt.Fprintln(o.Progress, "kinds without a seed:", strings.Join(without, ", "))
	}
	return errors.Join(errs...)
}
