package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

var (
	rounds = flag.Int("rounds", 3, "how often each server is started; figures are medians")
	writes = flag.Int("writes", 300, "objects that are created and updated in each round")
	idle   = flag.Duration("idle", 5*time.Second, "how long a server rests before its memory is read")
)

// most is how much more memory all kinds may take.
const most = 40 << 20

func main() { launch.Main("bench-kinds", run) }

// A side is a server that is measured.
type side struct {
	name  string
	spec  launch.Spec
	start []time.Duration // CPU until it is ready
	idle  []int64         // resident bytes
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
	plane := &side{name: "control plane", spec: launch.Spec{Kind: launch.Espalier, Binary: ours}}
	all := &side{name: "all kinds", spec: launch.Spec{Kind: launch.Espalier, Binary: ours, Flags: []string{"--kinds=all"}}}
	kube := &side{name: "kube-apiserver", spec: launch.Spec{Kind: launch.Kubernetes, Binary: theirs}}
	for range *rounds {
		for _, s := range []*side{kube, plane, all} {
			if err := s.measure(ctx); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	for _, s := range []*side{kube, plane, all} {
		fmt.Printf("%-15s ready after %v of CPU, %d MB idle", s.name, median(s.start), median(s.idle)>>20)
		for _, o := range operations(*writes) {
			if took := s.cpu[o.name]; took != nil {
				fmt.Printf("; %s %v", o.name, median(took).Round(time.Microsecond))
			}
		}
		fmt.Println()
	}
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
	return nil
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
	server, err := launch.StartServer(ctx, spec)
	if err != nil {
		return err
	}
	defer server.Stop()
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
