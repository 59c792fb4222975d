package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
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
		{"page from etcd", (*bench).page},
	}
	withCache = []operation{
		{"create, cached", (*bench).create},
		{"get, cached", (*bench).get},
		{"page from cache", (*bench).page},
		{"indexed selector", (*bench).indexed},
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

// page reads a page that begins anywhere in the list, as if the pages before had been read.
func (b *bench) page(ctx context.Context, worker int) error {
	size, err := b.conns[worker].Drain(ctx, fmt.Sprintf("%s?limit=%d&continue=%s", collection, pageSize, b.token(rand.IntN(b.objects-pageSize+1))))
	if err == nil && size < int64(pageSize*b.stored*9/10) {
		err = fmt.Errorf("a page of %d bytes", size)
	}
	return err
}

// indexed lists the objects with one value of the indexed label.
func (b *bench) indexed(ctx context.Context, worker int) error {
	size, err := b.conns[worker].Drain(ctx, collection+"?labelSelector=batch%3D"+label(rand.IntN(b.objects/labeled*labeled)))
	if err == nil && (size < int64(labeled*b.stored*9/10) || size > int64(labeled*b.stored*12/10)) {
		err = fmt.Errorf("a list of %d bytes by an indexed label", size)
	}
	return err
}

// token continues a list at a place.
func (b *bench) token(place int) string {
	each := b.objects / namespaces
	space, at := min(place/each, namespaces-1), place%each
	n := at*namespaces + space
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"v":"meta.k8s.io/v1","rv":%d,"start":"%s/%s"}`, b.revision, namespace(n), objectName(n)))
}

// A figure is what one operation has taken, over all rounds.
type figure struct {
	latencies []time.Duration
	cpu       [2]time.Duration // of our server and of etcd
}

func (f *figure) p50() time.Duration { return wire.Percentile(f.latencies, 50) }

func (f *figure) p99() time.Duration { return wire.Percentile(f.latencies, 99) }

func (f *figure) server() time.Duration { return f.cpu[0] / time.Duration(len(f.latencies)) }

func (f *figure) etcd() time.Duration { return f.cpu[1] / time.Duration(len(f.latencies)) }

// memory is what our server takes.
type memory struct{ resident, heap int64 }

// slice runs an operation on all connections for a time. The first error ends it.
func (b *bench) slice(ctx context.Context, d time.Duration, o operation) error {
	if err := b.renew(ctx); err != nil {
		return err
	}
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
	who := ""
	if b.server.Kind != launch.Espalier {
		who = b.server.Kind.String() + ": "
	}
	fmt.Printf("\n%s%d objects of %d bytes as stored (put into etcd in %.1f s; the watch cache was filled after %.1f s)\n", who, b.objects, b.stored, b.filling.Seconds(), b.caching.Seconds())
	fmt.Printf("  %-16s %8s %10s %10s %12s %12s   %s\n", "", "done", "p50", "p99", "server CPU", "etcd CPU", "p50, server CPU, etcd CPU through the first size's")
	for _, o := range slices.Concat(withoutCache, withCache) {
		f, base := b.figures[o.name], first.figures[o.name]
		figures.Set(fmt.Sprintf(who+"%d.%s.server", b.objects, o.name), "%s", results.Time(f.server()))
		figures.Set(fmt.Sprintf(who+"%d.%s.etcd", b.objects, o.name), "%s", results.Time(f.etcd()))
		fmt.Printf("  %-16s %8d %10v %10v %12v %12v   %.2f %.2f %.2f\n", o.name, len(f.latencies), round(f.p50()), round(f.p99()), round(f.server()), round(f.etcd()),
			ratio(f.p50(), base.p50()), ratio(f.server(), base.server()), ratio(f.etcd(), base.etcd()))
	}
	n := float64(b.objects)
	figures.Set(fmt.Sprintf(who+"%d.object.resident", b.objects), "%.1f KB", float64(b.cached.resident-b.bare.resident)/1000/n)
	figures.Set(fmt.Sprintf(who+"%d.object.heap", b.objects), "%.1f KB", float64(b.cached.heap-b.bare.heap)/1000/n)
	figures.Set(fmt.Sprintf(who+"%d.resident", b.objects), "%d MB", b.cached.resident/1e6)
	fmt.Printf("  server's memory: %d MB resident, %.1f MB live without a watch cache; %d MB resident, %.1f MB live with it\n",
		b.bare.resident>>20, float64(b.bare.heap)/1e6, b.cached.resident>>20, float64(b.cached.heap)/1e6)
}

// summary is the line that the run ends with: the processor time of pages at the largest size, from etcd with etcd's own, and
// that of the other operations through the first size's.
func summary(benches []*bench) string {
	first, last := benches[0], benches[len(benches)-1]
	through := func(name string) string {
		x := ratio(last.figures[name].server(), first.figures[name].server())
		remark := ""
		if x > 1+tolerance || x < 1-tolerance {
			remark = " (not flat)"
		}
		return fmt.Sprintf("%.2f%s", x, remark)
	}
	cache, etcd := last.figures["page from cache"], last.figures["page from etcd"]
	return fmt.Sprintf("objects: page%d at %d %.1f ms cache %.1f ms etcd | create x%s get x%s indexed x%s", pageSize, last.objects,
		milliseconds(cache.server()), milliseconds(etcd.server()+etcd.etcd()), through("create"), through("get"), through("indexed selector"))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

func round(d time.Duration) time.Duration { return d.Round(time.Microsecond) }
