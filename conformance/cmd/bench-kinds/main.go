package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/results"
	"github.com/espalier-dev/espalier/conformance/wire"
	"github.com/espalier-dev/espalier/server/apis/builtin"
)

var figures = results.New("bench-kinds")

var (
	rounds = flag.Int("rounds", 3, "how often each server is started; figures are medians")
	writes = flag.Int("writes", 300, "objects that are created and updated in each round")
	idle   = flag.Duration("idle", 5*time.Second, "how long a server rests before its memory is read")
	child  = flag.Bool("child", false, "for its own use")
)

// most is how much more memory all kinds may take.
const most = 40 << 20

func main() {
	if flag.Parse(); !*child {
		launch.Main("bench-kinds", run)
	} else if err := runChild(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-kinds:", err)
		os.Exit(1)
	}
}

// A side is a server that is measured.
type side struct {
	name  string
	spec  launch.Spec
	ready []time.Duration // until it is ready
	start []time.Duration // CPU until then
	idle  []int64         // resident bytes
	heap  []int64         // bytes of live objects
	cpu   map[string][]time.Duration
}

func run(ctx context.Context, dir string) error {
	ours, err := launch.Espalier.Program(ctx, dir)
	if err != nil {
		return err
	}
	theirs, err := launch.Kubernetes.Program(ctx, dir)
	if err != nil {
		return err
	}
	plane := &side{name: "control plane", spec: launch.Spec{Kind: launch.Espalier, Binary: ours, Flags: []string{"--profiling=true"}}}
	// Pods get no token volume, as with kube-apiserver here: an update without it would be refused.
	all := &side{name: "all kinds", spec: launch.Spec{Kind: launch.Espalier, Binary: ours, Flags: []string{"--profiling=true", "--kinds=all", "--disable-admission-plugins=ServiceAccount"}}}
	kube := &side{name: "kube-apiserver", spec: launch.Spec{Kind: launch.Kubernetes, Binary: theirs}}
	tests := &side{name: "espaliertest"}
	for range *rounds {
		t, err := startTestServer(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", tests.name, err)
		}
		tests.ready, tests.start = append(tests.ready, t.Wall), append(tests.start, t.CPU)
		for _, s := range []*side{kube, plane, all} {
			if err := s.measure(ctx); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	for _, s := range []*side{kube, plane, all} {
		s.record()
		fmt.Printf("%-15s ready after %v and %v of CPU, %d MB idle, %d KB of heap", s.name, median(s.ready).Round(time.Millisecond), median(s.start), median(s.idle)>>20, median(s.heap)>>10)
		for _, o := range operations(*writes) {
			if took := s.cpu[o.name]; took != nil {
				fmt.Printf("; %s %v", o.name, median(took).Round(time.Microsecond))
			}
		}
		fmt.Println()
	}
	fmt.Printf("%-15s ready after %v and %v of CPU, with all kinds, one CRD and its etcd\n", tests.name, median(tests.ready).Round(time.Millisecond), median(tests.start))
	figures.Set("espaliertest.ready", "%s", results.Time(median(tests.ready)))
	figures.Set("espaliertest.start", "%s", results.Time(median(tests.start)))
	count := int64(len(builtin.Data()))
	grown := median(all.heap) - median(plane.heap)
	fmt.Printf("start: kube-apiserver takes %.1f times as long as espaliertest, and %.1f times the CPU; %d more kinds take %d KB of heap, %.1f KB each, their default roles included\n",
		float64(median(kube.ready))/float64(median(tests.ready)), float64(median(kube.start))/float64(median(tests.start)), count, grown>>10, float64(grown)/float64(count)/1024)
	more := median(all.idle) - median(plane.idle)
	var ratios []string
	for _, o := range operations(*writes) {
		ratios = append(ratios, fmt.Sprintf("%s %.2f", o.name, float64(median(all.cpu[o.name]))/float64(median(kube.cpu[o.name]))))
	}
	fmt.Printf("kinds: all take %+d MB more than the control plane's %d MB, kube-apiserver %d MB; CPU of writes, kube-apiserver's is 1: %s\n",
		more>>20, median(plane.idle)>>20, median(kube.idle)>>20, strings.Join(ratios, ", "))
	if more > most {
		return fmt.Errorf("all kinds take %d MB, which is more than %d MB", more>>20, int64(most)>>20)
	}
	return figures.Save()
}

// record records the medians of a server.
func (s *side) record() {
	set := func(what, value string) { figures.Set(s.name+"."+what, "%s", value) }
	set("ready", results.Time(median(s.ready)))
	set("start", results.Time(median(s.start)))
	set("idle", fmt.Sprintf("%d MB", median(s.idle)/1e6))
	set("heap", fmt.Sprintf("%.1f MB", float64(median(s.heap))/1e6))
	for _, o := range operations(*writes) {
		if took := s.cpu[o.name]; took != nil {
			set(o.name, results.Time(median(took)))
		}
	}
}

// measure starts the server on a new etcd, reads its memory and writes objects.
func (s *side) measure(ctx context.Context) error {
	etcd, err := launch.StartEtcd(ctx, "--unsafe-no-fsync")
	if err != nil {
		return err
	}
	defer etcd.Stop()
	spec := s.spec
	spec.Etcd, spec.Prefix, spec.Namespaces = etcd.URL, "/registry", []string{"bench"}
	began := time.Now()
	server, err := launch.StartServer(ctx, spec)
	if err != nil {
		return err
	}
	defer server.Stop()
	s.ready = append(s.ready, time.Since(began))
	ready, err := launch.CPU(server.Pid)
	if err != nil {
		return err
	}
	s.start = append(s.start, ready)
	time.Sleep(*idle)
	resident, err := launch.RSS(server.Pid)
	if err != nil {
		return err
	}
	s.idle = append(s.idle, resident)
	heap, err := server.Heap(ctx)
	if err != nil {
		return err
	}
	s.heap = append(s.heap, heap)
	conns, err := wire.DialAll(server.Config, 1)
	if err != nil {
		return err
	}
	defer conns[0].Close()
	if s.cpu == nil {
		s.cpu = map[string][]time.Duration{}
	}
	for _, o := range operations(*writes) {
		if o.workload && s.name == "control plane" {
			continue
		}
		if err := o.write(ctx, conns[0], "warm-"); err != nil { // rules are compiled at their first use
			return fmt.Errorf("%s: %w", o.name, err)
		}
		before, err := launch.CPU(server.Pid)
		if err != nil {
			return err
		}
		if err := o.write(ctx, conns[0], "m-"); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
		after, err := launch.CPU(server.Pid)
		if err != nil {
			return err
		}
		s.cpu[o.name] = append(s.cpu[o.name], (after-before)/time.Duration(o.count))
	}
	return nil
}

func median[T time.Duration | int64](list []T) T {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// An operation creates or updates objects of a kind.
type operation struct {
	name, plural, object string
	update, workload     bool
	count                int
}

// operations are in the order in which they run: what is created is updated then.
func operations(count int) []operation {
	return []operation{
		{"create pod", "pods", pod, false, true, count}, {"update pod", "pods", pod, true, true, count},
		{"create config map", "configmaps", configMap, false, false, count}, {"update config map", "configmaps", configMap, true, false, count},
		{"pod of 2,000 containers", "pods", "", false, true, 1},
	}
}

func (o *operation) write(ctx context.Context, conn *wire.Conn, prefix string) error {
	path := "/api/v1/namespaces/bench/" + o.plural
	for i := range o.count {
		name := fmt.Sprint(prefix, i)
		body := large(prefix)
		if o.object != "" {
			body = strings.NewReplacer("NAME", name, "REVISION", fmt.Sprint(o.update)).Replace(o.object)
		}
		method, to, want := http.MethodPost, path, http.StatusCreated
		if o.update {
			method, to, want = http.MethodPut, path+"/"+name, http.StatusOK
		}
		if _, err := conn.Expect(ctx, want, method, to, []byte(body)); err != nil {
			return err
		}
	}
	return nil
}

const configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NAME","labels":{"app":"shop"},"annotations":{"revision":"REVISION"}},` +
	`"data":{"a":"1","b":"2","settings.yaml":"listen: 8080\nlog: debug\n"}}`

const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"NAME","labels":{"app.kubernetes.io/name":"shop","pod-template-hash":"7d4b9c"},"annotations":{"revision":"REVISION"}},
"spec":{"terminationGracePeriodSeconds":30,"securityContext":{"runAsNonRoot":true,"fsGroup":1000},
"containers":[{"name":"shop","image":"registry.example.com/shop:1.2.3","args":["--listen=:8080"],"ports":[{"name":"http","containerPort":8080},{"name":"metrics","containerPort":9090}],
"env":[{"name":"A","value":"1"},{"name":"POD","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],"resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"memory":"256Mi"}},
"livenessProbe":{"httpGet":{"path":"/healthz","port":"http"}},"readinessProbe":{"httpGet":{"path":"/readyz","port":"http"}},
"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}},"volumeMounts":[{"name":"config","mountPath":"/etc/shop"},{"name":"tmp","mountPath":"/tmp"}]},
{"name":"proxy","image":"registry.example.com/proxy:2.0","resources":{"requests":{"cpu":"10m"}}}],
"volumes":[{"name":"config","configMap":{"name":"shop"}},{"name":"tmp","emptyDir":{}}]}}`

// large is a pod of 2,000 containers.
func large(prefix string) string {
	var b strings.Builder
	for i := range 2000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"c%d","image":"i"}`, i)
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%slarge"},"spec":{"containers":[%s]}}`, prefix, b.String())
}
