package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/results"
	"github.com/espalier-dev/espalier/conformance/wire"
)

var figures = results.New("bench-objects")

var (
	list    = flag.String("sizes", "1000,100000,1000000", "numbers of objects; the others are compared with the first one")
	seconds = flag.Float64("seconds", 2, "length of a slice: one size doing one operation")
	rounds  = flag.Int("rounds", 3, "how often the sizes take turns")
	beside  = flag.Int("upstream", 0, "also measure upstream's server, with this number of objects, which take some 17 KB each in its watch cache; 0 for not")
	limit   = flag.Duration("timeout", 20*time.Minute, "end after this time")
)

func main() { launch.Main("bench-objects", run) }

// tolerance is how far the cost of an operation may be from the one at the first size.
const tolerance = 0.2

func run(ctx context.Context, dir string) error {
	var sizes []int
	for s := range strings.SplitSeq(*list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < pageSize {
			return fmt.Errorf("-sizes: %q is not a number of at least %d", s, pageSize)
		}
		sizes = append(sizes, n)
	}
	ctx, stop := context.WithTimeout(ctx, *limit)
	defer stop()
	binary, err := launch.Build(ctx, dir)
	if err != nil {
		return err
	}
	fmt.Printf("Objects of 1 KB in %d namespaces, put into a new etcd for each size; etcd does not sync its disk: what is measured is computing.\n"+
		"%d connections, %d rounds of %g s for every size and operation, alternating. CPU is per operation; a page has %d objects of all namespaces.\n", namespaces, connections, *rounds, *seconds, pageSize)
	var benches []*bench
	defer func() {
		for _, b := range benches {
			b.stop()
		}
	}()
	for _, n := range sizes {
		b, err := start(ctx, launch.Spec{Binary: binary, Flags: []string{"--profiling=true"}, Namespaces: spaces()}, n)
		benches = append(benches, b)
		if err != nil {
			return fmt.Errorf("%d objects: %w", n, err)
		}
	}
	ours := len(benches)
	if *beside > 0 {
		program, err := launch.Upstream.Program(ctx, dir)
		if err != nil {
			return err
		}
		b, err := start(ctx, launch.Spec{Kind: launch.Upstream, Binary: program}, max(*beside, pageSize))
		benches = append(benches, b)
		if err != nil {
			return fmt.Errorf("upstream, %d objects: %w", b.objects, err)
		}
	}
	d := time.Duration(*seconds * float64(time.Second))
	if err := turns(ctx, benches, withoutCache, *rounds, d); err != nil {
		return err
	}
	for _, b := range benches {
		if err := b.takeMemory(ctx); err != nil {
			return fmt.Errorf("%d objects: %w", b.objects, err)
		}
	}
	if err := turns(ctx, benches, withCache, *rounds, d); err != nil {
		return err
	}
	for _, b := range benches {
		b.show(benches[0])
	}
	fmt.Printf("\n%s\n", summary(benches[:ours]))
	return figures.Save()
}

// turns lets the sizes take turns at every operation, so that what else the machine does meets all of them.
func turns(ctx context.Context, benches []*bench, operations []operation, rounds int, d time.Duration) error {
	for range rounds {
		for _, o := range operations {
			for _, b := range benches {
				if err := b.slice(ctx, d, o); err != nil {
					return fmt.Errorf("%s of %d objects: %w", o.name, b.objects, err)
				}
			}
		}
	}
	return nil
}

// A bench is a server with objects, and what was measured on it.
type bench struct {
	etcd    *launch.Etcd
	server  *launch.Server
	conns   []*wire.Conn
	objects int
	stored  int // bytes of one of them
	serial  atomic.Int64
	// revision is that of etcd when a slice begins.
	revision int64

	filling, caching time.Duration
	figures          map[string]*figure
	bare, cached     memory
}

// start starts an etcd and a server and puts the objects. What it returns is to be stopped, error or not.
func start(ctx context.Context, spec launch.Spec, objects int) (*bench, error) {
	b := &bench{objects: objects, figures: map[string]*figure{}}
	var err error
	if b.etcd, err = launch.StartEtcd(ctx, "--unsafe-no-fsync"); err != nil {
		return b, err
	}
	spec.Etcd, spec.Prefix = b.etcd.URL, prefix
	b.server, err = launch.StartServer(ctx, spec)
	if err != nil {
		return b, err
	}
	if b.conns, err = wire.DialAll(b.server.Config, connections); err != nil {
		return b, err
	}
	began := time.Now()
	err = b.fill(ctx)
	b.filling = time.Since(began)
	return b, err
}

func (b *bench) stop() {
	if b.server != nil {
		b.server.Stop()
	}
	if b.etcd != nil {
		b.etcd.Stop()
	}
}

// takeMemory measures the server before and after a watch cache is filled.
func (b *bench) takeMemory(ctx context.Context) error {
	var err error
	if b.bare, err = b.memory(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := b.fillCache(ctx); err != nil {
		return err
	}
	b.caching = time.Since(began)
	b.cached, err = b.memory(ctx)
	return err
}
