package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/results"
	"github.com/espalier-dev/espalier/conformance/wire"
	"github.com/espalier-dev/espalier/server/tenants"
	"github.com/espalier-dev/espalier/server/tenants/movetest"
)

var figures = results.New("bench-moves")

var (
	binary  = flag.String("espalier", "", "use this espalier program instead of building one")
	quiet   = flag.Int("moves", 100, "moves without faults")
	faulty  = flag.Int("faults", 100, "moves with faults")
	number  = flag.Int("tenants", 2, "tenants that are used and moved")
	objects = flag.Int("objects", 500, "objects of a tenant besides those of the writers")
	writers = flag.Int("writers", 3, "writers of a tenant")
	seed    = flag.Uint64("seed", 1, "of the choice of faults")
	only    = flag.String("fault", "", "only faults whose name has this text")
)

const (
	prefix   = "/moves"
	replicas = 3
	etcds    = 3
	// settle is how long the load goes on between two moves.
	settle = 300 * time.Millisecond
	// moveTime is how long a move may take without a fault, and faultTime with one.
	moveTime, faultTime = time.Minute, 3 * time.Minute
	// most is how long the p99 of the pause may be.
	most = time.Second
)

func main() { launch.Main("bench-moves", run) }

// A site is what tenants are moved on.
type site struct {
	root    *launch.Etcd
	etcds   map[string]*launch.Etcd
	servers []*launch.Server
	loads   []*movetest.Load
	random  *rand.Rand
}

func run(ctx context.Context, dir string) (err error) {
	if *binary == "" {
		if *binary, err = launch.Build(ctx, dir); err != nil {
			return err
		}
	}
	s := &site{etcds: map[string]*launch.Etcd{}, random: rand.New(rand.NewPCG(*seed, 2))} //nolint:gosec // it chooses faults
	defer s.stop()
	if err := s.start(ctx); err != nil {
		return err
	}
	pauses, err := s.moves(ctx)
	var worst []time.Duration
	if err == nil && *faulty > 0 {
		worst, err = s.faults(ctx)
	}
	var sum movetest.Result
	for _, load := range s.loads {
		r := load.Stop(ctx)
		sum.Writes, sum.Reads, sum.Events = sum.Writes+r.Writes, sum.Reads+r.Reads, sum.Events+r.Events
		sum.Violations = append(sum.Violations, r.Violations...)
	}
	for _, v := range sum.Violations {
		fmt.Println("violation:", v)
	}
	fmt.Printf("clients: %d writes, %d lists, %d events of informers\n", sum.Writes, sum.Reads, sum.Events)
	if len(worst) > 0 {
		fmt.Printf("with faults: %d moves | longest time without a write p50 %d ms max %d ms\n", len(worst), wire.Percentile(worst, 50).Milliseconds(), wire.Percentile(worst, 100).Milliseconds())
	}
	p99 := wire.Percentile(pauses, 99)
	fmt.Printf("moves: %d moves | violations %d | pause p50 %d ms p99 %d ms max %d ms\n", len(pauses)+len(worst), len(sum.Violations),
		wire.Percentile(pauses, 50).Milliseconds(), p99.Milliseconds(), wire.Percentile(pauses, 100).Milliseconds())
	switch {
	case err != nil:
		for i, server := range s.servers {
			fmt.Printf("--- the end of the log of replica %d\n%s\n", i, tail(server.Output(), 40))
		}
		return err
	case len(sum.Violations) > 0:
		return fmt.Errorf("%d violations", len(sum.Violations))
	case p99 > most:
		return fmt.Errorf("the p99 of the pause is %v, which must be at most %v", p99, most)
	}
	figures.Set("moves", "%s", results.Count(len(pauses)))
	figures.Set("pause.p50", "%s", results.Time(wire.Percentile(pauses, 50)))
	figures.Set("pause.p99", "%s", results.Time(p99))
	figures.Set("pause.max", "%s", results.Time(wire.Percentile(pauses, 100)))
	figures.Set("faults", "%s", results.Count(len(worst)))
	figures.Set("violations", "%d", len(sum.Violations))
	figures.Set("writes", "%s", results.Count(int(sum.Writes)))
	return figures.Save()
}

func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func (s *site) start(ctx context.Context) (err error) {
	if s.root, err = launch.StartEtcd(ctx); err != nil {
		return err
	}
	for range replicas {
		server, err := launch.StartServer(ctx, launch.Spec{Binary: *binary, Etcd: s.root.URL, Prefix: prefix, Flags: []string{"--tenants", "--v=1"}})
		if err != nil {
			return err
		}
		s.servers = append(s.servers, server)
	}
	for i := range etcds {
		etcd, err := launch.StartEtcd(ctx)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("etcd-%d", i+1)
		s.etcds[name] = etcd
		if err := s.create(ctx, tenants.EtcdResource.Resource, "Etcd", name, map[string]any{"servers": []any{etcd.URL}}); err != nil {
			return err
		}
	}
	for i := range *number {
		if err := s.create(ctx, tenants.Resource.Resource, "Tenant", tenant(i), map[string]any{"etcd": "etcd-1", "requests": int64(100)}); err != nil {
			return err
		}
		if err := s.fill(ctx, i); err != nil {
			return err
		}
		var configs []*rest.Config
		for _, server := range s.servers {
			own := rest.CopyConfig(server.Config)
			own.Host += tenants.Path(tenant(i))
			configs = append(configs, own)
		}
		load, err := movetest.Start(ctx, *writers, configs...)
		if err != nil {
			return err
		}
		s.loads = append(s.loads, load)
	}
	launch.Pause(ctx, 3*time.Second)
	for _, load := range s.loads {
		load.Longest()
	}
	return ctx.Err()
}

func tenant(i int) string { return fmt.Sprintf("tenant-%d", i) }

func (s *site) stop() {
	for _, server := range s.servers {
		server.Stop()
	}
	for _, etcd := range s.etcds {
		etcd.Stop()
	}
	if s.root != nil {
		s.root.Stop()
	}
}

// api returns the objects of a resource by a replica.
func (s *site) api(replica int, resource string) (dynamic.ResourceInterface, error) {
	config := rest.CopyConfig(s.servers[replica].Config)
	config.Timeout = 5 * time.Second
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	of := tenants.Resource
	of.Resource = resource
	return client.Resource(of), nil
}

func (s *site) create(ctx context.Context, resource, kind, name string, spec map[string]any) error {
	api, err := s.api(0, resource)
	if err != nil {
		return err
	}
	_, err = api.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "espalier.dev/v1alpha1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}, metav1.CreateOptions{})
	return err
}

// fill gives a tenant objects that no client changes.
func (s *site) fill(ctx context.Context, i int) error {
	conn, err := wire.Dial(s.servers[0].Config)
	if err != nil {
		return err
	}
	defer conn.Close()
	for n := range *objects {
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"filler-%d"},"data":{"a":%q}}`, n, strings.Repeat("x", 1000))
		if err := conn.Until(ctx, time.Minute, 201, "POST", tenants.Path(tenant(i))+"/api/v1/namespaces/default/configmaps", []byte(body)); err != nil {
			return err
		}
	}
	return nil
}

// whole tries something by all replicas until it succeeds: some may be stopped.
func (s *site) whole(ctx context.Context, limit time.Duration, do func(context.Context, dynamic.ResourceInterface) error) error {
	var last error
	for end := time.Now().Add(limit); time.Now().Before(end) && ctx.Err() == nil; launch.Pause(ctx, 20*time.Millisecond) {
		for i := range s.servers {
			api, err := s.api(i, tenants.Resource.Resource)
			if err != nil {
				return err
			}
			within, cancel := context.WithTimeout(ctx, 5*time.Second)
			last = do(within, api)
			cancel()
			if last == nil {
				return nil
			}
			if errors.Is(last, errNotYet) {
				break
			}
		}
	}
	return errors.Join(last, ctx.Err())
}

var errNotYet = errors.New("not yet")

// place says where a tenant is to be.
func (s *site) place(ctx context.Context, name, etcd string) error {
	patch := fmt.Sprintf(`{"spec":{"etcd":%q}}`, etcd)
	return s.whole(ctx, moveTime, func(ctx context.Context, api dynamic.ResourceInterface) error {
		_, err := api.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
}

// status is what the server says of the place of a tenant.
type status struct {
	etcd, phase, to, message string
	leftovers                bool
}

func (s *site) status(ctx context.Context, name string, limit time.Duration) (now status, err error) {
	err = s.whole(ctx, limit, func(ctx context.Context, api dynamic.ResourceInterface) error {
		o, err := api.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now.etcd, _, _ = unstructured.NestedString(o.Object, "status", "etcd")
		now.phase, _, _ = unstructured.NestedString(o.Object, "status", "move", "phase")
		now.to, _, _ = unstructured.NestedString(o.Object, "status", "move", "to")
		now.message, _, _ = unstructured.NestedString(o.Object, "status", "move", "message")
		left, _, _ := unstructured.NestedSlice(o.Object, "status", "leftovers")
		now.leftovers = len(left) > 0
		return nil
	})
	return now, err
}

// arrives waits until a tenant is in an etcd.
func (s *site) arrives(ctx context.Context, name, etcd string, limit time.Duration) error {
	var now status
	for end := time.Now().Add(limit); time.Now().Before(end) && ctx.Err() == nil; launch.Pause(ctx, 30*time.Millisecond) {
		var err error
		if now, err = s.status(ctx, name, limit); err != nil {
			return err
		}
		if now.etcd == etcd && now.to == "" {
			return nil
		}
	}
	return fmt.Errorf("%s is to be in %s, and is not after %v: %+v", name, etcd, limit, now)
}

// another is an etcd that a tenant is not in.
func (s *site) another(ctx context.Context, name string) (from, to string, err error) {
	now, err := s.status(ctx, name, moveTime)
	if err != nil {
		return "", "", err
	}
	for to = now.etcd; to == now.etcd; {
		to = fmt.Sprintf("etcd-%d", 1+s.random.IntN(etcds))
	}
	return now.etcd, to, nil
}

// moves moves tenants without faults and returns for how long clients had to wait each time.
func (s *site) moves(ctx context.Context) (pauses []time.Duration, err error) {
	for i := range *quiet {
		name, load := tenant(i%*number), s.loads[i%*number]
		from, to, err := s.another(ctx, name)
		if err != nil {
			return pauses, err
		}
		load.Longest()
		if err := s.place(ctx, name, to); err != nil {
			return pauses, err
		}
		if err := s.arrives(ctx, name, to, moveTime); err != nil {
			return pauses, err
		}
		launch.Pause(ctx, settle)
		pause := load.Longest()
		pauses = append(pauses, pause)
		if pause > most/2 {
			fmt.Printf("move %d of %s from %s to %s: pause %d ms\n", i, name, from, to, pause.Milliseconds())
		}
	}
	return pauses, nil
}
