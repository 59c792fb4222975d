package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

const (
	prefix   = "/soak"
	writers  = 8
	readers  = 2
	watchers = 20
)

var (
	minutes = flag.Float64("minutes", 60, "duration of the run")
	rate    = flag.Float64("rate", 200, "writes per second, about")
	which   = flag.String("server", "espalier", "server to run: espalier or upstream")
)

func main() { launch.Main("soak", run) }

func run(ctx context.Context, dir string) error {
	etcd, err := launch.StartEtcd(ctx)
	if err != nil {
		return err
	}
	defer etcd.Stop()
	spec := launch.Spec{Etcd: etcd.URL, Prefix: prefix, Flags: []string{"--profiling=true"}, Compatible: true}
	if spec.Kind, err = launch.Named(*which); err != nil {
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
	l := &load{pause: time.Duration(writers * float64(time.Second) / *rate), patient: spec.Kind == launch.Upstream}
	return soak(ctx, l, server, etcd, time.Duration(*minutes*float64(time.Minute)))
}

func soak(ctx context.Context, l *load, server *launch.Server, etcd *launch.Etcd, length time.Duration) error {
	conns, err := wire.DialAll(server.Config, writers+readers+watchers+2)
	if err != nil {
		return err
	}
	if err := install(ctx, conns[0]); err != nil {
		return err
	}
	all, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	loaded, stop := context.WithTimeout(all, length)
	defer stop()
	l.fail = fail
	var working, watching sync.WaitGroup
	take := func() *wire.Conn { c := conns[0]; conns = conns[1:]; return c }
	for range writers {
		c := take()
		working.Go(func() { l.write(loaded, c) })
	}
	for range readers {
		c := take()
		working.Go(func() { l.read(loaded, c) })
	}
	change, churn := take(), take()
	working.Go(func() { l.change(loaded, change) })
	working.Go(func() { l.churn(loaded, churn) })
	views := make([]*view, watchers)
	for i := range views {
		views[i] = &view{conn: take(), patient: l.patient}
		watching.Go(func() { views[i].follow(all, fail) })
	}
	samples, err := sample(loaded, l, server, length)
	working.Wait()
	if err == nil {
		err = context.Cause(all)
	}
	if err == nil {
		err = compare(all, etcd, views)
	}
	fail(nil)
	watching.Wait()
	events := counts{}
	for _, v := range views {
		events.events += v.events
		events.resumed += v.resumed
		events.relisted += v.relisted
	}
	fmt.Printf("%d writes, %d reads, %d changes of the schema, %d CRDs made and deleted; %d watchers: %d events, %d times resumed, %d times listed\n",
		l.writes.Load(), l.reads.Load(), l.changes.Load(), l.churns.Load(), watchers, events.events, events.resumed, events.relisted)
	if err != nil {
		return err
	}
	if err := grown(samples); err != nil {
		return err
	}
	fmt.Printf("soak: %v, every watcher's view equals etcd, no growth\n", length)
	return nil
}

// install makes the CRD and waits until it is served.
func install(ctx context.Context, c *wire.Conn) error {
	if _, err := c.Expect(ctx, http.StatusCreated, http.MethodPost, crdsPath, makeCRD("things", "Thing", 0)); err != nil {
		return err
	}
	if err := c.Until(ctx, 20*time.Second, http.StatusOK, http.MethodGet, everything, nil); err != nil {
		return fmt.Errorf("the CRD is not served after 20 s: %w", err)
	}
	return nil
}

// A reading is what the server took at one moment.
type reading struct{ heap, goroutines, resident int64 }

// sample reads memory and goroutines thirty times.
func sample(ctx context.Context, l *load, server *launch.Server, length time.Duration) ([]reading, error) {
	var readings []reading
	began := time.Now()
	for {
		launch.Pause(ctx, length/30)
		if ctx.Err() != nil {
			return readings, nil
		}
		var r reading
		var errs [3]error
		r.heap, errs[0] = server.Heap(ctx)
		r.goroutines, errs[1] = server.Goroutines(ctx)
		r.resident, errs[2] = launch.RSS(server.Pid)
		if err := errors.Join(errs[:]...); err != nil {
			if ctx.Err() != nil {
				return readings, nil
			}
			return readings, err
		}
		readings = append(readings, r)
		fmt.Printf("%6.1f min: %d writes, heap %.1f MB, %d goroutines, %d MB resident\n", time.Since(began).Minutes(), l.writes.Load(), float64(r.heap)/1e6, r.goroutines, r.resident>>20)
	}
}

// grown compares the last third with the second, before which everything has come into being. The smallest reading counts: others include
// what requests held at that moment.
func grown(readings []reading) error {
	if len(readings) < 9 {
		return fmt.Errorf("%d readings are too few to tell growth", len(readings))
	}
	third := len(readings) / 3
	middle, end := readings[third:2*third], readings[2*third:]
	of := func(rs []reading, value func(reading) int64) int64 {
		least := value(rs[0])
		for _, r := range rs {
			least = min(least, value(r))
		}
		return least
	}
	heap := func(r reading) int64 { return r.heap }
	goroutines := func(r reading) int64 { return r.goroutines }
	if a, b := of(middle, heap), of(end, heap); b > a+a/10+2e6 {
		return fmt.Errorf("live memory has grown from %.1f to %.1f MB", float64(a)/1e6, float64(b)/1e6)
	}
	if a, b := of(middle, goroutines), of(end, goroutines); b > a+a/20+10 {
		return fmt.Errorf("goroutines have grown from %d to %d", a, b)
	}
	return nil
}

// compare waits until every view equals what etcd holds. An object's resource version is the revision of its key.
func compare(ctx context.Context, etcd *launch.Etcd, views []*view) error {
	client, err := etcd.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	path := prefix + "/soak.espalier.dev/things/"
	resp, err := client.Get(ctx, path, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	stored := map[string]string{}
	for _, kv := range resp.Kvs {
		stored[strings.TrimPrefix(string(kv.Key), path)] = strconv.FormatInt(kv.ModRevision, 10)
	}
	if len(stored) == 0 {
		return errors.New("no object is in etcd")
	}
	for deadline := time.Now().Add(time.Minute); ; launch.Pause(ctx, 50*time.Millisecond) {
		var errs []error
		for i, v := range views {
			if d := v.differs(stored); d != "" {
				errs = append(errs, fmt.Errorf("watcher %d: %s", i, d))
			}
		}
		if len(errs) == 0 || time.Now().After(deadline) || ctx.Err() != nil {
			return errors.Join(errs...)
		}
	}
}
