package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/results"
)

var figures = results.New("bench-server")

var (
	seconds = flag.Float64("seconds", 4, "length of a slice: one side doing one operation")
	objects = flag.Int("objects", 10000, "objects that are read and listed")
	rounds  = flag.Int("rounds", 3, "how often the sides take turns")
	only    = flag.String("only", strings.Join([]string{upstream, ours, bare}, ","), "sides to measure; plain is ours without RBAC, admission and API priority and fairness")
	which   = flag.String("kinds", "", "only CRDs whose name contains this")
	other   = flag.String("before", "", "another espalier binary to compare with the present one; the run measures these two, unless -only is given, and prints ratios")
	profile = flag.String("profile", "", "write a CPU profile of our server, of the first minute of the run, to this file")
)

func main() { launch.Main("bench-server", run) }

// A bench is one run.
type bench struct {
	seconds time.Duration
	rounds  int
	objects int
	sides   []*side
}

const (
	upstream = "upstream"
	ours     = "espalier" // with everything on, asked by a user whose rights come from a role
	plain    = "plain"    // ours without admission plugins, priority and fairness, asked by an administrator
	before   = "before"   // ours as another program has it
	bare     = "etcd"
)

func run(ctx context.Context, dir string) error {
	b := &bench{seconds: time.Duration(*seconds * float64(time.Second)), rounds: *rounds, objects: *objects}
	kinds, err := kinds(ctx)
	if err != nil {
		return err
	}
	etcd, err := launch.StartEtcd(ctx)
	if err != nil {
		return err
	}
	defer etcd.Stop()
	defer b.stop()
	if *other != "" && !given("only") {
		*only = before + "," + ours
	}
	if err := b.start(ctx, dir, etcd, strings.Split(*only, ","), *other); err != nil {
		return err
	}
	if *profile != "" {
		collected := b.profile(ctx, *profile)
		defer func() {
			if err := <-collected; err != nil {
				fmt.Fprintln(os.Stderr, "bench-server: no profile:", err)
			}
		}()
	}
	fmt.Printf("%d connections (HTTP/2, TLS, client certificates; no compression), %d objects, %d rounds of %v for every side and operation, alternating, one etcd with fsync.\n"+
		"Rates are the median of the rounds; CPU is the server process's own, per operation; p50 and p99 are over all rounds.\n", connections, b.objects, b.rounds, b.seconds)
	var line string
	for _, k := range kinds {
		if !strings.Contains(k.name, *which) {
			continue
		}
		if err := b.measure(ctx, k); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		b.show(k)
		if err := b.watch(ctx, k); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		if line == "" {
			line = b.ratios()
		}
	}
	fmt.Printf("\n%s\n", line)
	if *other != "" {
		return nil // the figures that documents quote are those of the ordinary sides
	}
	return figures.Save()
}

// given reports whether a flag is on the command line.
func given(name string) (found bool) {
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// start starts the servers that are wanted. other is the program of the side that is called before.
func (b *bench) start(ctx context.Context, dir string, etcd *launch.Etcd, names []string, other string) error {
	for _, name := range names {
		s := &side{name: name, objects: b.objects, prefix: "/" + name}
		if s.name == before {
			if s.program = other; other == "" {
				return errors.New("the side \"before\" needs a program: use -before")
			}
		}
		b.sides = append(b.sides, s)
		if name == bare {
			s.pid = etcd.Pid
			for range connections {
				client, err := etcd.Client()
				if err != nil {
					return err
				}
				s.etcd = append(s.etcd, client)
			}
			continue
		}
		if err := s.start(ctx, dir, etcd); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) stop() {
	for _, s := range b.sides {
		for _, c := range s.etcd {
			_ = c.Close()
		}
		if s.server != nil {
			s.server.Stop()
		}
	}
}

// measure fills every side with objects, then lets the sides take turns at every operation.
func (b *bench) measure(ctx context.Context, k *kind) error {
	for _, s := range b.sides {
		began := time.Now()
		s.figures, s.memory = map[string]*figure{}, memory{}
		if err := s.install(ctx, k); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if s.server == nil {
			value, err := b.stored(ctx, k, s)
			if err != nil {
				return err
			}
			s.value = value
		}
		if err := s.fill(ctx, k); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %d objects on %s in %.1f s\n", k.name, s.objects, s.name, time.Since(began).Seconds())
	}
	for round := range b.rounds {
		for _, o := range operations {
			for _, s := range b.sides {
				sample, err := slice(ctx, b.seconds, o.workers, s.pid, func(ctx context.Context, worker int) error { return o.run(s, ctx, k, worker) })
				if errors.Is(err, errNotOffered) {
					continue
				}
				if err != nil {
					return fmt.Errorf("%s on %s: %w", o.name, s.name, err)
				}
				if s.figures[o.name] == nil {
					s.figures[o.name] = &figure{}
				}
				s.figures[o.name].samples = append(s.figures[o.name].samples, sample)
				fmt.Fprintf(os.Stderr, "%s, round %d: %s on %s: %.1f/s\n", k.name, round+1, o.name, s.name, float64(sample.ops)/sample.took.Seconds())
			}
		}
	}
	return nil
}

// stored returns what a server keeps in etcd for one object, so that etcd itself is measured with the same bytes.
func (b *bench) stored(ctx context.Context, k *kind, s *side) (string, error) {
	for _, other := range b.sides {
		if other.server == nil {
			continue
		}
		resp, err := s.etcd[0].Get(ctx, other.prefix+"/"+k.group+"/"+k.plural+"/"+listed+"/"+object(0))
		if err != nil {
			return "", err
		}
		if len(resp.Kvs) == 1 {
			return string(resp.Kvs[0].Value), nil
		}
	}
	return string(k.object(listed, object(0), 0)), nil
}

// watch counts what comes to watchers of each server while it is written to.
func (b *bench) watch(ctx context.Context, k *kind) error {
	fmt.Printf("\n%d watchers of %s under %d writers:\n", watchers, k.plural, connections)
	for _, s := range b.sides {
		if s.server == nil {
			continue
		}
		d, err := s.watch(ctx, k, b.seconds)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		resident, err := launch.RSS(s.pid)
		if err != nil {
			return err
		}
		fmt.Printf("  %-10s %v; %d MB resident\n", s.name, d, resident>>20)
	}
	return nil
}
