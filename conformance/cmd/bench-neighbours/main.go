package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/results"
	"github.com/espalier-dev/espalier/conformance/wire"
)

var figures = results.New("bench-neighbours")

var (
	rounds   = flag.Int("rounds", 7, "how often each phase is measured")
	phase    = flag.Duration("time", 8*time.Second, "how long each phase takes")
	seats    = flag.Int("requests", 0, "spec.requests of the tenant that floods; 0 for the default")
	flooding = flag.Int("connections", 64, "connections of the tenant that floods")
	binary   = flag.String("espalier", "", "use this espalier program instead of building one")
	profiles = flag.String("profile", "", "write CPU profiles of the server in the first phases into this folder")
)

const (
	tenants = "/apis/espalier.dev/v1alpha1/tenants"
	listed  = 2000 // objects that the flood lists
	limit   = 2100 // objects of the tenants that flood and that are full
	looking = 2    // connections of the tenant that is measured
	filling = 8    // connections that fill the others
	pause   = 5 * time.Millisecond
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == asFlood {
		if err := runFlood(context.Background(), os.Args[2], os.Args[3], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench-neighbours: flood:", err)
			os.Exit(1)
		}
		return
	}
	launch.Main("bench-neighbours", run)
}

func run(ctx context.Context, dir string) (err error) {
	if *binary == "" {
		if *binary, err = launch.Build(ctx, dir); err != nil {
			return err
		}
	}
	b := &bench{}
	if b.etcd, err = launch.StartEtcd(ctx, "--unsafe-no-fsync"); err != nil {
		return err
	}
	defer b.etcd.Stop()
	spec := launch.Spec{Binary: *binary, Etcd: b.etcd.URL, Prefix: "/bench", Flags: []string{"--tenants", "--profiling=true"}}
	if b.server, err = launch.StartServer(ctx, spec); err != nil {
		return err
	}
	defer b.server.Stop()
	if b.conns, err = wire.DialAll(b.server.Config, filling); err != nil {
		return err
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	if b.flood, err = startFlood(b.server, *flooding); err != nil {
		return err
	}
	if err := errors.Join(b.measure(ctx), b.flood.close()); err != nil {
		return err
	}
	return figures.Save()
}

// A bench is one run.
type bench struct {
	etcd   *launch.Etcd
	server *launch.Server
	flood  *floodProcess
	conns  []*wire.Conn
	made   atomic.Int64
}

func at(tenant, path string) string { return "/clusters/" + tenant + path }

const maps = "/api/v1/namespaces/default/configmaps"

func configMap(name string) []byte {
	return []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"of":"all"}},"data":{"a":%q}}`, name, strings.Repeat("x", 900)))
}

// prepare makes the tenants: one with few objects, one that floods, and one that gets full.
func (b *bench) prepare(ctx context.Context) error {
	for name, spec := range map[string]string{"quiet": "{}", "full": fmt.Sprintf(`{"objects":%d}`, limit), "flood": flooder()} {
		body := fmt.Sprintf(`{"apiVersion":"espalier.dev/v1alpha1","kind":"Tenant","metadata":{"name":%q},"spec":%s}`, name, spec)
		if err := b.conns[0].Until(ctx, time.Minute, http.StatusCreated, http.MethodPost, tenants, []byte(body)); err != nil {
			return err
		}
	}
	for _, tenant := range []string{"flood", "full"} {
		var next atomic.Int64
		var group sync.WaitGroup
		errs := make([]error, len(b.conns))
		for w, conn := range b.conns {
			group.Go(func() {
				for i := next.Add(1); i <= listed && errs[w] == nil; i = next.Add(1) {
					_, errs[w] = conn.Expect(ctx, http.StatusCreated, http.MethodPost, at(tenant, maps), configMap(fmt.Sprintf("one-%d", i)))
				}
			})
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			return fmt.Errorf("filling the tenant %s: %w", tenant, err)
		}
	}
	for { // the last objects until the tenant is full
		code, _, _, err := b.conns[0].Do(ctx, http.MethodPost, at("full", maps), configMap(fmt.Sprintf("last-%d", b.made.Add(1))))
		if err != nil || code == http.StatusForbidden {
			return err
		}
	}
}

func flooder() string {
	if *seats == 0 {
		return "{}"
	}
	return fmt.Sprintf(`{"requests":%d}`, *seats)
}

// look sends the requests of the tenant that is measured: it creates, reads, lists and deletes an object.
func (b *bench) look(ctx context.Context) ([]time.Duration, error) {
	times := make([][]time.Duration, looking)
	_, err := wire.Repeat(ctx, *phase, looking, func(ctx context.Context, w int) error {
		name := fmt.Sprintf("look-%d", b.made.Add(1))
		for _, r := range []struct {
			method, path string
			body         []byte
			code         int
		}{
			{http.MethodPost, maps, configMap(name), http.StatusCreated}, {http.MethodGet, maps + "/" + name, nil, http.StatusOK},
			{http.MethodGet, maps, nil, http.StatusOK}, {http.MethodDelete, maps + "/" + name, nil, http.StatusOK},
		} {
			began := time.Now()
			if _, err := b.conns[w].Expect(ctx, r.code, r.method, at("quiet", r.path), r.body); err != nil {
				return err
			}
			times[w] = append(times[w], time.Since(began))
			launch.Pause(ctx, pause)
		}
		return nil
	})
	return slices.Concat(times...), err
}

// phases are those of a round. Each measured one is beside one without other requests, so that what else the machine does
// meets both.
var phases = []string{"quiet", "flood", "quiet", "full"}

func (b *bench) measure(ctx context.Context) error {
	if _, err := b.look(ctx); err != nil { // warm
		return err
	}
	medians, p99s := map[string][]time.Duration{}, map[string][]time.Duration{}
	cpu := map[string][]usage{}
	for n := range *rounds*len(phases) + 1 { // it ends as it begins
		name := phases[n%len(phases)]
		times, used, err := b.measureOne(ctx, name, n < len(phases))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		medians[name], p99s[name] = append(medians[name], wire.Percentile(times, 50)), append(p99s[name], wire.Percentile(times, 99))
		cpu[name] = append(cpu[name], used)
	}
	b.report(medians, p99s, cpu)
	return nil
}

// measureOne measures a phase.
func (b *bench) measureOne(ctx context.Context, name string, first bool) (times []time.Duration, used usage, err error) {
	if name != "quiet" {
		if err := b.flood.begin(name); err != nil {
			return nil, used, err
		}
	}
	launch.Pause(ctx, 500*time.Millisecond)
	profiled := make(chan error, 1)
	go func() { profiled <- b.profile(ctx, name, first) }()
	used, err = b.use(func() (err error) { times, err = b.look(ctx); return err })
	err = errors.Join(err, <-profiled)
	var codes map[int]int64
	if err == nil && name != "quiet" {
		codes, err = b.flood.end()
	}
	if err != nil {
		return nil, used, err
	}
	fmt.Printf("%-6s %6d requests, p50 %7v, p99 %7v  %s%s\n", name, len(times), wire.Percentile(times, 50).Round(10*time.Microsecond),
		wire.Percentile(times, 99).Round(10*time.Microsecond), used, text(codes))
	launch.Pause(ctx, time.Second)
	return times, used, nil
}

// report prints the figures. The noise is what the same comparison says of phases without other requests: every second one against
// the others, and the range.
func (b *bench) report(medians, p99s map[string][]time.Duration, cpu map[string][]usage) {
	var halves [2][]time.Duration
	for n, p99 := range p99s["quiet"] {
		halves[n%2] = append(halves[n%2], p99)
	}
	middle := func(of []time.Duration) float64 { return float64(wire.Percentile(slices.Clone(of), 50)) }
	quiet := middle(p99s["quiet"])
	ratio := func(name string) float64 { return middle(p99s[name]) / quiet }
	noise := middle(halves[1]) / middle(halves[0])
	least, most := float64(slices.Min(p99s["quiet"]))/quiet, float64(slices.Max(p99s["quiet"]))/quiet
	figures.Set("quiet", "%s", results.Time(time.Duration(quiet)))
	figures.Set("quiet.again", "%.2f", noise)
	figures.Set("quiet.least", "%.2f", least)
	figures.Set("quiet.most", "%.2f", most)
	figures.Set("others", "%.2f", mean(slices.Concat(cpu["quiet"], cpu["flood"], cpu["full"])).others)
	fmt.Printf("\nneighbours: p99 %v, p50 %v\n", time.Duration(quiet).Round(10*time.Microsecond), time.Duration(middle(medians["quiet"])).Round(10*time.Microsecond))
	for _, name := range []string{"flood", "full"} {
		used, p50 := mean(cpu[name]), middle(medians[name])/middle(medians["quiet"])
		figures.Set(name, "%.2f", ratio(name))
		figures.Set(name+".p50", "%.2f", p50)
		figures.Set(name+".server", "%.2f", used.server)
		figures.Set(name+".etcd", "%.2f", used.etcd)
		figures.Set(name+".client", "%.2f", used.client)
		fmt.Printf("beside %-6s p99 x%.2f, p50 x%.2f  %s\n", name, ratio(name), p50, used)
	}
	fmt.Printf("noise         p99 x%.2f of every second quiet phase against the others; single ones x%.2f to x%.2f\n", noise, least, most)
}
