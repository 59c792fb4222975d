package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/results"
	"github.com/espalier-dev/espalier/conformance/wire"
)

var figures = results.New("bench-tenants")

var (
	number  = flag.Int("tenants", 10000, "how many tenants there are")
	used    = flag.Int("used", 0, "how many of them bind the shared CRDs and get objects; 0 for all")
	objects = flag.Int("objects", 10, "objects of each")
	cold    = flag.Int("cold", 200, "how many are used again after they were closed")
	limit   = flag.Duration("timeout", 30*time.Minute, "end after this time")
)

const (
	prefix   = "/bench"
	users    = 16
	idle     = 5 * time.Second
	patience = 5 * time.Minute
	path     = "/apis/espalier.dev/v1alpha1/tenants"
)

func main() { launch.Main("bench-tenants", run) }

func run(ctx context.Context, dir string) error {
	ctx, stop := context.WithTimeout(ctx, *limit)
	defer stop()
	if *used == 0 || *used > *number {
		*used = *number
	}
	binary, err := launch.Build(ctx, dir)
	if err != nil {
		return err
	}
	etcd, err := launch.StartEtcd(ctx, "--unsafe-no-fsync", "--quota-backend-bytes=8589934592")
	if err != nil {
		return err
	}
	defer etcd.Stop()
	server, err := launch.StartServer(ctx, launch.Spec{Binary: binary, Etcd: etcd.URL, Prefix: prefix,
		Flags: []string{"--profiling=true", "--tenants", "--tenant-idle-timeout=" + idle.String()}})
	if err != nil {
		return err
	}
	defer server.Stop()
	b := &bench{server: server}
	if b.conns, err = wire.DialAll(server.Config, users); err != nil {
		return err
	}
	if b.etcd, err = etcd.Client(); err != nil {
		return err
	}
	if err := b.measure(ctx); err != nil {
		return err
	}
	return figures.Save()
}

// A bench is one run.
type bench struct {
	server *launch.Server
	etcd   *clientv3.Client
	conns  []*wire.Conn
	// unbound is what the server takes when all tenants were used, before they bind.
	unbound state
}

// state is what the server takes.
type state struct{ resident, heap, goroutines int64 }

func (b *bench) state(ctx context.Context) (s state, err error) {
	if s.heap, err = b.server.Heap(ctx); err != nil { // which collects garbage
		return s, err
	}
	if s.goroutines, err = b.server.Goroutines(ctx); err != nil {
		return s, err
	}
	s.resident, err = launch.RSS(b.server.Pid)
	return s, err
}

func (b *bench) measure(ctx context.Context) error {
	before, err := b.state(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("without tenants: %d MB resident, %d KB of heap, %d goroutines\n", before.resident>>20, before.heap>>10, before.goroutines)
	created, err := b.each(ctx, *number, func(ctx context.Context, conn *wire.Conn, n int) error {
		_, err := conn.Expect(ctx, http.StatusCreated, http.MethodPost, path, []byte(fmt.Sprintf(`{"apiVersion":"espalier.dev/v1alpha1","kind":"Tenant","metadata":{"name":%q}}`, name(n))))
		return err
	})
	if err != nil {
		return fmt.Errorf("creating tenants: %w", err)
	}
	perSecond := float64(*number) / created.Seconds()
	fmt.Printf("%d tenants created in %v: %.0f/s\n", *number, created.Round(time.Millisecond), perSecond)
	if err := b.share(ctx); err != nil {
		return fmt.Errorf("sharing CRDs: %w", err)
	}
	steps := []int{*used / 10, *used}
	for i, n := range steps {
		from := 0
		if i > 0 {
			from = steps[i-1]
		}
		took, err := b.each(ctx, n-from, func(ctx context.Context, conn *wire.Conn, n int) error { return b.use(ctx, conn, from+n) })
		if err != nil {
			return fmt.Errorf("using tenants: %w", err)
		}
		fmt.Printf("%d of them were used in %v: %.1f tenants/s\n", n-from, took.Round(time.Second), float64(n-from)/took.Seconds())
		now, err := b.settle(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("%d tenants, %d were used, none is: %d MB resident, %d KB of heap, %d goroutines\n", *number, n, now.resident>>20, now.heap>>10, now.goroutines)
		b.unbound = now
		figures.Set(fmt.Sprintf("%d used.heap", n), "%.1f MB", float64(now.heap)/1e6)
		figures.Set(fmt.Sprintf("%d used.resident", n), "%d MB", now.resident/1e6)
	}
	filled, err := b.each(ctx, *used, b.fill)
	if err != nil {
		return fmt.Errorf("binding: %w", err)
	}
	fmt.Printf("%d of them bound %d CRDs and got %d objects in %v: %.1f tenants/s\n", *used, shared, *objects, filled.Round(time.Second), float64(*used)/filled.Seconds())
	after, err := b.settle(ctx)
	if err != nil {
		return err
	}
	bindings := max(0, float64(after.heap-b.unbound.heap)) / float64(*used*shared) / 1000
	perTenant := float64(after.heap-before.heap) / float64(*number) / 1000
	goroutines := float64(after.goroutines-before.goroutines) / float64(*number)
	size, err := b.stored(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("no requests: %d MB resident, %d KB of heap, %d goroutines; in etcd %.1f KB for each\n", after.resident>>20, after.heap>>10, after.goroutines, size)
	p50, p99, err := b.again(ctx)
	if err != nil {
		return fmt.Errorf("using tenants again: %w", err)
	}
	fmt.Printf("a request to a tenant that is not in use: p50 %v, p99 %v\n", p50.Round(100*time.Microsecond), p99.Round(100*time.Microsecond))
	gone, err := b.remove(ctx)
	if err != nil {
		return fmt.Errorf("deleting tenants: %w", err)
	}
	figures.Set("resident", "%d MB", after.resident>>20)
	figures.Set("binding", "%.2f KB", bindings)
	figures.Set("stored", "%.0f KB", size)
	figures.Set("idle", "%.1f KB", perTenant)
	figures.Set("goroutines", "%.2f", goroutines)
	figures.Set("create", "%.0f/s", perSecond)
	figures.Set("delete", "%.0f s", gone.Seconds())
	figures.Set("cold", "%.1f ms", float64(p50)/1e6)
	figures.Set("cold.p99", "%.1f ms", float64(p99)/1e6)
	fmt.Printf("\ntenants: %d in %d MB | idle %.1f KB %.2f goroutines | create %.0f/s | delete %.0f s | cold %.1f ms | binding %.2f KB\n",
		*number, after.resident>>20, perTenant, goroutines, perSecond, gone.Seconds(), float64(p50)/1e6, bindings)
	return nil
}

func name(n int) string { return fmt.Sprintf("tenant-%06d", n) }

// each does something for n tenants, and returns how long that took.
func (b *bench) each(ctx context.Context, n int, do func(context.Context, *wire.Conn, int) error) (time.Duration, error) {
	began := time.Now()
	var next atomic.Int64
	errs := make([]error, len(b.conns))
	var wg sync.WaitGroup
	for u, conn := range b.conns {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[u] == nil && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if errs[u] = do(ctx, conn, i); errs[u] != nil {
					errs[u] = fmt.Errorf("%s: %w", name(i), errs[u])
					next.Store(int64(n))
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return time.Since(began), ctx.Err()
}

// shared is how many CRDs the provider shares.
const (
	shared   = 5
	group    = "bench.espalier.dev"
	provider = "provider"
	crd      = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"parcels%[1]d.bench.espalier.dev"},
"spec":{"group":"bench.espalier.dev","scope":"Namespaced","names":{"plural":"parcels%[1]d","singular":"parcel%[1]d","kind":"Parcel%[1]d","listKind":"Parcel%[1]dList"},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
"properties":{"to":{"type":"string"},"weight":{"type":"integer","minimum":1}}}}}}}]}}`
	export  = `{"apiVersion":"apis.espalier.dev/v1alpha1","kind":"APIExport","metadata":{"name":"parcels"},"spec":{"resources":[%s],"consumers":{"everyone":true}}}`
	binding = `{"apiVersion":"apis.espalier.dev/v1alpha1","kind":"APIBinding","metadata":{"name":"parcels"},"spec":{"export":{"tenant":"provider","name":"parcels"}}}`
)

func at(tenant, path string) string { return "/clusters/" + tenant + path }

func parcels(n int) string {
	return fmt.Sprintf("/apis/%s/v1/namespaces/default/parcels%d", group, n)
}

// share makes the tenant whose CRDs the others bind.
func (b *bench) share(ctx context.Context) error {
	conn := b.conns[0]
	if _, err := conn.Expect(ctx, http.StatusCreated, http.MethodPost, path, []byte(`{"apiVersion":"espalier.dev/v1alpha1","kind":"Tenant","metadata":{"name":"`+provider+`"}}`)); err != nil {
		return err
	}
	var names []string
	for i := range shared {
		if _, err := conn.Expect(ctx, http.StatusCreated, http.MethodPost, at(provider, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"), []byte(fmt.Sprintf(crd, i))); err != nil {
			return err
		}
		if err := conn.Until(ctx, patience, http.StatusOK, http.MethodGet, at(provider, parcels(i)), nil); err != nil {
			return err
		}
		names = append(names, fmt.Sprintf("%q", fmt.Sprintf("parcels%d.%s", i, group)))
	}
	_, err := conn.Expect(ctx, http.StatusCreated, http.MethodPost, at(provider, "/apis/apis.espalier.dev/v1alpha1/apiexports"), []byte(fmt.Sprintf(export, strings.Join(names, ","))))
	return err
}

// use sends the first request to a tenant.
func (b *bench) use(ctx context.Context, conn *wire.Conn, n int) error {
	_, err := conn.Expect(ctx, http.StatusOK, http.MethodGet, at(name(n), "/api/v1/namespaces/default/configmaps"), nil)
	return err
}

// fill has a tenant bind the shared CRDs, and gives it objects.
func (b *bench) fill(ctx context.Context, conn *wire.Conn, n int) error {
	if _, err := conn.Expect(ctx, http.StatusCreated, http.MethodPost, at(name(n), "/apis/apis.espalier.dev/v1alpha1/apibindings"), []byte(binding)); err != nil {
		return err
	}
	for i := range *objects {
		of := parcels(i % shared)
		if i < shared {
			if err := conn.Until(ctx, patience, http.StatusOK, http.MethodGet, at(name(n), of), nil); err != nil {
				return err
			}
		}
		body := fmt.Sprintf(`{"apiVersion":"bench.espalier.dev/v1","kind":"Parcel%d","metadata":{"name":"parcel-%d"},"spec":{"to":"7 Harbour Road","weight":%d}}`, i%shared, i, i+1)
		if _, err := conn.Expect(ctx, http.StatusCreated, http.MethodPost, at(name(n), of), []byte(body)); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until no tenant is in use, and returns what the server takes then.
func (b *bench) settle(ctx context.Context) (s state, err error) {
	last := int64(-1)
	for end := time.Now().Add(patience); time.Now().Before(end); launch.Pause(ctx, idle) {
		if s, err = b.state(ctx); err != nil || s.goroutines == last {
			return s, err
		}
		last = s.goroutines
	}
	return s, fmt.Errorf("the number of goroutines does not settle: %d", last)
}

// stored is how many KB a tenant has in etcd.
func (b *bench) stored(ctx context.Context) (float64, error) {
	answer, err := b.etcd.Get(ctx, prefix+"-tenants/", clientv3.WithPrefix(), clientv3.WithLimit(5000))
	if err != nil {
		return 0, err
	}
	size, tenants := 0, map[string]bool{}
	for _, kv := range answer.Kvs {
		size += len(kv.Key) + len(kv.Value)
		tenants[string(kv.Key[:min(len(kv.Key), len(prefix)+45)])] = true
	}
	return float64(size) / float64(max(len(tenants), 1)) / 1000, nil
}

// again uses tenants that were closed, one after the other.
func (b *bench) again(ctx context.Context) (p50, p99 time.Duration, err error) {
	var took []time.Duration
	for i := range min(*cold, *used) {
		began := time.Now()
		if _, err := b.conns[0].Expect(ctx, http.StatusOK, http.MethodGet, at(name(i), parcels(0)+"/parcel-0"), nil); err != nil {
			return 0, 0, err
		}
		took = append(took, time.Since(began))
		launch.Pause(ctx, 50*time.Millisecond)
	}
	return wire.Percentile(took, 50), wire.Percentile(took, 99), nil
}

// remove deletes all tenants, and waits until nothing of them is left in etcd.
func (b *bench) remove(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	if _, err := b.each(ctx, *number+1, func(ctx context.Context, conn *wire.Conn, n int) error {
		of := provider // the last one
		if n < *number {
			of = name(n)
		}
		_, err := conn.Expect(ctx, http.StatusOK, http.MethodDelete, path+"/"+of, nil)
		return err
	}); err != nil {
		return 0, err
	}
	fmt.Printf("deleted, as far as their objects say, after %v\n", time.Since(began).Round(time.Millisecond))
	for end := time.Now().Add(patience); ; launch.Pause(ctx, 100*time.Millisecond) {
		answer, err := b.conns[0].Expect(ctx, http.StatusOK, http.MethodGet, path+"?limit=1", nil)
		if err != nil {
			return 0, err
		}
		var list struct{ Items []json.RawMessage }
		if err := json.Unmarshal(answer, &list); err != nil {
			return 0, err
		}
		left := &clientv3.GetResponse{Count: -1}
		if len(list.Items) == 0 { // etcd goes through all keys to count them
			if left, err = b.etcd.Get(ctx, prefix+"-tenants/", clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil {
				return 0, err
			}
		}
		if left.Count == 0 {
			return time.Since(began), nil
		}
		if time.Now().After(end) {
			return 0, fmt.Errorf("after %v there are keys of tenants in etcd (%d; -1 is not counted), or %d tenants", patience, left.Count, len(list.Items))
		}
	}
}
