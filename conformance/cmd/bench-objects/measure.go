package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/results"
	"github.com/espalier-dev/espalier/conformance/wire"
)

const (
	connections = 4
	pageSize    = 500
)

// An operation is something whose cost is measured.
type operation struct {
	name string
	run  func(b *bench, ctx context.Context, worker int) error
}

// Those without a watch cache come first: a server goes back to having none only after a long time without use.
var (
	withoutCache = []operation{
		{"create", (*bench).create},
		{"get", (*bench).get},
		{"page from etcd", func(b *bench, ctx context.Context, worker int) error {
			return b.page(ctx, worker, "&resourceVersionMatch=Exact&resourceVersion="+b.version)
		}},
	}
	withCache = []operation{
		{"create, cached", (*bench).create},
		{"get, cached", (*bench).get},
		{"page from cache", func(b *bench, ctx context.Context, worker int) error { return b.page(ctx, worker, "") }},
	}
)

// create makes an object with a new name, beyond those that are there.
func (b *bench) create(ctx context.Context, worker int) error {
	n := b.objects + int(b.serial.Add(1)) - 1
	_, err := b.conns[worker].Expect(ctx, http.StatusCreated, http.MethodPost, path(n), parcel(n))
	return err
}

// get reads an object from etcd: without a resource version nothing comes from a cache.
func (b *bench) get(ctx context.Context, worker int) error {
	n := rand.IntN(b.objects)
	_, err := b.conns[worker].Expect(ctx, http.StatusOK, http.MethodGet, path(n)+"/"+objectName(n), nil)
	return err
}

// page reads the first page of a list.
func (b *bench) page(ctx context.Context, worker int, parameters string) error {
	size, err := b.conns[worker].Drain(ctx, fmt.Sprintf("%s?limit=%d%s", collection, pageSize, parameters))
	if err == nil && size < int64(pageSize*b.stored*9/10) {
		err = fmt.Errorf("a page of %d bytes", size)
	}
	return err
}

// A figure is what one operation has taken, over all rounds.
type figure struct {
	latencies []time.Duration
	cpu       [2]time.Duration // of our server and of etcd
}

func (f *figure) p50() time.Duration { return f.latencies[len(f.latencies)/2] }

func (f *figure) server() time.Duration { return f.cpu[0] / time.Duration(len(f.latencies)) }

func (f *figure) etcd() time.Duration { return f.cpu[1] / time.Duration(len(f.latencies)) }

// memory is what our server takes.
type memory struct{ resident, heap int64 }

// slice runs an operation on all connections for a time. The first error ends it.
func (b *bench) slice(ctx context.Context, d time.Duration, o operation) error {
	before, err := b.cpu()
	if err != nil {
		return err
	}
	latencies, err := wire.Repeat(ctx, d, connections, func(ctx context.Context, worker int) error { return o.run(b, ctx, worker) })
	if err != nil {
		return err
	}
	after, err := b.cpu()
	if err != nil {
		return err
	}
	f := b.figures[o.name]
	if f == nil {
		f = &figure{}
		b.figures[o.name] = f
	}
	f.latencies = slices.Sorted(slices.Values(slices.Concat(latencies, f.latencies)))
	for i := range f.cpu {
		f.cpu[i] += after[i] - before[i]
	}
	return b.forget(ctx)
}

// cpu is the time that the server and etcd have used.
func (b *bench) cpu() (used [2]time.Duration, err error) {
	for i, pid := range []int{b.server.Pid, b.etcd.Pid} {
		if used[i], err = launch.CPU(pid); err != nil {
			return used, err
		}
	}
	return used, nil
}

func (b *bench) memory(ctx context.Context) (m memory, err error) {
	if m.resident, err = launch.RSS(b.server.Pid); err != nil {
		return m, err
	}
	m.heap, err = b.server.Heap(ctx)
	return m, err
}

// show prints the figures of a size beside those of the first one.
func (b *bench) show(first *bench) {
	fmt.Printf("\n%d objects of %d bytes as stored (put into etcd in %.1f s; the watch cache was filled after %.1f s)\n", b.objects, b.stored, b.filling.Seconds(), b.caching.Seconds())
	fmt.Printf("  %-16s %8s %10s %12s %12s   %s\n", "", "done", "p50", "server CPU", "etcd CPU", "p50, server CPU, etcd CPU through the first size's")
	for _, o := range slices.Concat(withoutCache, withCache) {
		f, base := b.figures[o.name], first.figures[o.name]
		figures.Set(fmt.Sprintf("%d.%s.server", b.objects, o.name), "%s", results.Time(f.server()))
		figures.Set(fmt.Sprintf("%d.%s.etcd", b.objects, o.name), "%s", results.Time(f.etcd()))
		fmt.Printf("  %-16s %8d %10v %12v %12v   %.2f %.2f %.2f\n", o.name, len(f.latencies), round(f.p50()), round(f.server()), round(f.etcd()),
			ratio(f.p50(), base.p50()), ratio(f.server(), base.server()), ratio(f.etcd(), base.etcd()))
	}
	n := float64(b.objects)
	figures.Set(fmt.Sprintf("%d.object.resident", b.objects), "%.1f KB", float64(b.cached.resident-b.bare.resident)/1000/n)
	figures.Set(fmt.Sprintf("%d.object.heap", b.objects), "%.1f KB", float64(b.cached.heap-b.bare.heap)/1000/n)
	figures.Set(fmt.Sprintf("%d.resident", b.objects), "%d MB", b.cached.resident/1e6)
	fmt.Printf("  server's memory: %d MB resident, %.1f MB live without a watch cache; %d MB resident, %.1f MB live with it\n",
		b.bare.resident>>20, float64(b.bare.heap)/1e6, b.cached.resident>>20, float64(b.cached.heap)/1e6)
}

// summary is the line that the run ends with: the largest deviation of each operation from the first size.
func summary(benches []*bench) string {
	var parts []string
	for _, o := range slices.Concat(withoutCache, withCache) {
		worst := 1.0
		for _, b := range benches {
			for _, r := range []float64{ratio(b.figures[o.name].p50(), benches[0].figures[o.name].p50()), ratio(b.figures[o.name].server(), benches[0].figures[o.name].server())} {
				if max(r, 1/r) > max(worst, 1/worst) {
					worst = r
				}
			}
		}
		remark := ""
		if worst > 1+tolerance || worst < 1-tolerance {
			remark = " (not flat)"
		}
		parts = append(parts, fmt.Sprintf("%s %.2f%s", o.name, worst, remark))
	}
	return "objects, p50 or CPU at the other sizes through the first: " + strings.Join(parts, " | ")
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

func round(d time.Duration) time.Duration { return d.Round(time.Microsecond) }
