package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/results"
	"github.com/espalier-dev/espalier/conformance/wire"
)

const (
	upstream = "upstream"
	ours     = "espalier"
)

var figures = results.New("bench-crds")

var (
	count     = flag.Int("count", 10000, "CRDs to create")
	minutes   = flag.Float64("minutes", 10, "time for one side")
	gigabytes = flag.Float64("gigabytes", 8, "memory for one side")
	probes    = flag.Int("probes", 50, "new CRDs per size whose time until they are served and published is measured")
	only      = flag.String("only", upstream+","+ours, "sides to measure")
)

func main() { launch.Main("bench-crds", run) }

// A bench is one run.
type bench struct {
	count   int
	minutes time.Duration
	memory  int64
	probes  int
	all     []*benchCRD
	last    string // the line that the run ends with
}

func run(ctx context.Context, dir string) error {
	b := &bench{count: *count, minutes: time.Duration(*minutes * float64(time.Minute)), memory: int64(*gigabytes * (1 << 30)), probes: *probes}
	var err error
	if b.all, err = load(ctx); err != nil {
		return err
	}
	fmt.Printf("%d CRDs of the corpus, repeated in other groups up to %d; at most %v and %.0f GB for each side; %d new CRDs timed at every size.\n", len(b.all), b.count, b.minutes, *gigabytes, b.probes)
	for _, name := range strings.Split(*only, ",") {
		if err := b.side(ctx, dir, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	fmt.Printf("\n%s\n", b.last)
	return figures.Save()
}

// side measures one server on an etcd of its own.
func (b *bench) side(ctx context.Context, dir, name string) error {
	etcd, err := launch.StartEtcd(ctx)
	if err != nil {
		return err
	}
	defer etcd.Stop()
	spec := launch.Spec{Etcd: etcd.URL, Prefix: "/crds", Flags: []string{"--profiling=true"}}
	if spec.Kind, err = launch.Named(name); err != nil {
		return err
	}
	if spec.Binary, err = spec.Kind.Program(ctx, dir); err != nil {
		return err
	}
	server, err := launch.StartServer(ctx, spec)
	if err != nil {
		return err
	}
	defer server.Stop()
	s := &side{name: name, server: server, etcd: etcd, shows: name == ours, began: time.Now()}
	if s.conns, err = wire.DialAll(server.Config, writers); err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, b.minutes, fmt.Errorf("%v are over", b.minutes))
	defer cancel()
	limited, stop := watchdog(limited, server.Pid, b.memory)
	defer stop()
	fmt.Printf("\n%s\n", name)
	err = b.grow(limited, s)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		resident, _ := launch.RSS(server.Pid)
		fmt.Printf("  stopped at %d CRDs with %d MB resident after %.0f s: %v\n", len(s.present), resident>>20, time.Since(s.began).Seconds(), context.Cause(limited))
		return nil
	}
	return err
}

// watchdog ends the context when a process takes more memory than it may.
func watchdog(ctx context.Context, pid int, limit int64) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for {
			if resident, err := launch.RSS(pid); err == nil && resident > limit {
				cancel(fmt.Errorf("%d MB resident", resident>>20))
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// grow creates more and more CRDs and measures at 1, 1,000, the corpus and the end.
func (b *bench) grow(ctx context.Context, s *side) error {
	var models []*benchCRD
	for _, d := range b.all {
		if d.version != "" && !d.protected() {
			models = append(models, d)
		}
	}
	taken := 0
	next := func() *benchCRD {
		for {
			round, at := taken/len(b.all), taken%len(b.all)
			taken++
			switch d := b.all[at]; {
			case round == 0:
				return d
			case !d.protected():
				return d.in(fmt.Sprintf("copy%d", round))
			}
		}
	}
	fmt.Printf("  %8s %12s %12s %11s %11s   %s\n", "present", "RSS/CRD", "heap/CRD", "goroutines", "connections", "new CRD, p50/p99 until served, /apis/G/V, /apis, /openapi/v3, everywhere")
	before, err := s.state(ctx)
	if err != nil {
		return err
	}
	for _, size := range []int{1, 1000, len(b.all), b.count} {
		if size > b.count || size <= len(s.present) {
			continue
		}
		began := time.Now()
		if err := s.fill(ctx, size, next); err != nil {
			return err
		}
		if err := s.settle(ctx); err != nil {
			return err
		}
		took := time.Since(began)
		after, err := s.state(ctx)
		if err != nil {
			return err
		}
		times, err := s.probe(ctx, b.probes, models)
		if err != nil {
			return err
		}
		b.line(s, before, after, times, took)
		if before, err = s.state(ctx); err != nil {
			return err
		}
	}
	return b.finish(ctx, s, before)
}

// line prints what has grown since the last size.
func (b *bench) line(s *side, before, after state, times map[string][]time.Duration, took time.Duration) {
	n := float64(max(after.present-before.present, 1))
	per := func(a, b int64) float64 { return float64(b-a) / n }
	var seen []string
	for _, view := range append(views, "everywhere") {
		if len(times[view]) == 0 {
			seen = append(seen, "-")
			continue
		}
		p50, p99 := wire.Percentile(times[view], 50), wire.Percentile(times[view], 99)
		seen = append(seen, fmt.Sprintf("%.0f/%.0f ms", float64(p50)/1e6, float64(p99)/1e6))
	}
	fmt.Printf("  %8d %8.1f KiB %8.1f KiB %11.2f %11.2f   %s; filled in %.1f s, %d refused\n", after.present,
		per(before.resident, after.resident)/1024, per(before.heap, after.heap)/1024, per(before.goroutines, after.goroutines),
		float64(after.connections-before.connections)/n, strings.Join(seen, ", "), took.Seconds(), s.refused)
	p50, p99 := wire.Percentile(times["everywhere"], 50), wire.Percentile(times["everywhere"], 99)
	figures.Set(s.name+".idle", "%.1f KB", per(before.resident, after.resident)/1000)
	figures.Set(s.name+".resident", "%d MB", after.resident/1e6)
	figures.Set(fmt.Sprintf("%s.%d.resident", s.name, after.present), "%d MB", after.resident/1e6)
	figures.Set(s.name+".new", "%.0f ms", float64(p50)/1e6)
	figures.Set(s.name+".new.p99", "%.0f ms", float64(p99)/1e6)
	figures.Set(s.name+".present", "%d", after.present)
	b.last = fmt.Sprintf("crds: %s per idle CRD %.1f KiB resident %.1f KiB heap, %.2f goroutines, %.2f connections | new CRD everywhere p99 %.0f ms with %d present",
		s.name, per(before.resident, after.resident)/1024, per(before.heap, after.heap)/1024, per(before.goroutines, after.goroutines),
		float64(after.connections-before.connections)/n, float64(p99)/1e6, after.present)
}

// finish uses every CRD once, which no longer leaves them idle.
func (b *bench) finish(ctx context.Context, s *side, idle state) error {
	began := time.Now()
	if err := s.touch(ctx); err != nil {
		return errors.Join(errors.New("using every CRD"), err)
	}
	after, err := s.state(ctx)
	if err != nil {
		return err
	}
	n := float64(after.present)
	fmt.Printf("  %d CRDs: %d MB resident idle, %d MB after each was listed once in %.1f s: %.1f KiB heap, %.2f goroutines, %.2f connections more for each\n",
		after.present, idle.resident>>20, after.resident>>20, time.Since(began).Seconds(),
		float64(after.heap-idle.heap)/n/1024, float64(after.goroutines-idle.goroutines)/n, float64(after.connections-idle.connections)/n)
	figures.Set(s.name+".listed", "%d MB", after.resident/1e6)
	b.last += fmt.Sprintf(" | all %d served in %d MB", after.present, after.resident>>20)
	return nil
}
