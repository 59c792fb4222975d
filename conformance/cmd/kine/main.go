package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-dev/espalier/conformance/launch"
)

var (
	engines   = flag.String("engines", "etcd,sqlite,postgres", "what to run on")
	seconds   = flag.Duration("time", 20*time.Second, "how long clients write")
	clients   = flag.Int("clients", 8, "how many clients write at a time")
	scenarios = flag.String("scenarios", "TestKubectl|TestInformer|TestControllerRuntime|TestOwners|TestNamespacesAreDeleted|TestServiceAccounts|TestUsers|TestEncryptionAtRest|TestReplicas|TestEstablishedEverywhere",
		"the scenarios to run; empty for none")
	binary = flag.String("espalier", "", "use this espalier program instead of building one")
)

func main() { launch.Main("kine", run) }

func run(ctx context.Context, dir string) (err error) {
	if _, err := launch.Tool("kine"); err != nil && *engines != "etcd" {
		fmt.Println("skipped: there is no .bin/kine; 'make kine' builds it")
		return nil
	}
	if *binary == "" {
		if *binary, err = launch.Build(ctx, dir); err != nil {
			return err
		}
	}
	var errs []error
	for engine := range strings.SplitSeq(*engines, ",") {
		if err := on(ctx, engine); err != nil {
			fmt.Printf("%-10s %v\n", engine, err)
			errs = append(errs, fmt.Errorf("%s: %w", engine, err))
		}
	}
	return errors.Join(errs...)
}

// on runs everything on an engine.
func on(ctx context.Context, engine string) error {
	store, stop, err := start(ctx, engine)
	if err != nil {
		return err
	}
	defer stop()
	server, err := launch.StartServer(ctx, launch.Spec{Binary: *binary, Etcd: store.URL, Prefix: "/kine", Flags: []string{"--kinds=control-plane"}})
	if err != nil {
		return fmt.Errorf("the server does not start: %w", err)
	}
	r, err := count(ctx, server)
	log := server.Output()
	server.Stop()
	if err != nil {
		return err
	}
	passed, failed := 0, []string(nil)
	if *scenarios != "" {
		if passed, failed, err = play(ctx, store.URL); err != nil {
			return err
		}
	}
	fmt.Printf("%-10s %s; scenarios: %d passed, %d failed %s\n", engine, r, passed, len(failed), strings.Join(failed, " "))
	for line := range strings.Lines(log) {
		if strings.Contains(line, "This is not etcd") {
			fmt.Print("           ", line)
		}
	}
	if r.lost+r.phantom+r.missed > 0 {
		return errors.New("writes or events were lost")
	}
	return nil
}

func start(ctx context.Context, engine string) (*launch.Etcd, func(), error) {
	if engine == "etcd" {
		e, err := launch.StartEtcd(ctx)
		if err != nil {
			return nil, nil, err
		}
		return e, e.Stop, nil
	}
	return launch.StartKine(ctx, engine)
}

// result is what clients have seen.
type result struct {
	acknowledged, conflicts, failed int
	lost, phantom, missed           int
	created                         int
	creating, took                  time.Duration
	slowest                         time.Duration
}

// String is one line.
func (r result) String() string {
	return fmt.Sprintf("%.0f creates/s; %.0f contended updates/s, slowest %v, %d conflicts, %d failed; %d writes lost, %d done without an answer, %d events missed",
		float64(r.created)/r.creating.Seconds(), float64(r.acknowledged)/r.took.Seconds(), r.slowest.Round(time.Millisecond), r.conflicts, r.failed, r.lost, r.phantom, r.missed)
}

// objects is how many objects clients compete for.
const objects = 4

// count has clients count in objects, and compares what they have with what was acknowledged.
func count(ctx context.Context, server *launch.Server) (r result, err error) {
	client, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		return r, err
	}
	maps := client.CoreV1().ConfigMaps("default")
	name := func(i int) string { return fmt.Sprintf("counter-%d", i%objects) }
	for i := range objects {
		if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name(i)}, Data: map[string]string{"n": "0"}}, metav1.CreateOptions{}); err != nil {
			return r, err
		}
	}
	if err := r.create(ctx, client); err != nil {
		return r, err
	}
	list, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return r, err
	}
	own := 0
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, "own-") {
			own++
		}
	}
	r.lost += max(0, r.created-own)
	w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return r, err
	}
	seen, watched := map[string]int{}, make(chan int, 1)
	go func() {
		gaps := 0
		for event := range w.ResultChan() {
			if o, ok := event.Object.(*corev1.ConfigMap); ok && strings.HasPrefix(o.Name, "counter-") {
				n, _ := strconv.Atoi(o.Data["n"]) // "" of an object without it is a gap
				if n != seen[o.Name]+1 {
					gaps++
				}
				seen[o.Name] = n
			}
		}
		watched <- gaps
	}()
	var mu sync.Mutex
	acknowledged, unknown := map[string]int{}, map[string]int{}
	began := time.Now()
	var writing sync.WaitGroup
	for i := range *clients {
		writing.Go(func() {
			for time.Since(began) < *seconds && ctx.Err() == nil {
				at := time.Now()
				err := increment(ctx, client, name(i))
				mu.Lock()
				r.slowest = max(r.slowest, time.Since(at))
				switch {
				case err == nil:
					acknowledged[name(i)]++
					r.acknowledged++
				case apierrors.IsConflict(err):
					r.conflicts++
				default:
					unknown[name(i)]++
					r.failed++
				}
				mu.Unlock()
			}
		})
	}
	writing.Wait()
	r.took = time.Since(began)
	time.Sleep(2 * time.Second) // for the last events
	w.Stop()
	gaps := <-watched
	r.missed = gaps
	for i := range objects {
		o, err := maps.Get(ctx, name(i), metav1.GetOptions{})
		if err != nil {
			return r, err
		}
		n, err := strconv.Atoi(o.Data["n"])
		if err != nil {
			return r, err
		}
		r.lost += max(0, acknowledged[name(i)]-n)
		if more := n - acknowledged[name(i)]; more > unknown[name(i)] {
			r.phantom += more - unknown[name(i)]
		}
		if seen[name(i)] != n {
			r.missed++
		}
	}
	return r, nil
}

// create has each client create objects of its own.
func (r *result) create(ctx context.Context, client kubernetes.Interface) error {
	var mu sync.Mutex
	var errs []error
	var writing sync.WaitGroup
	began := time.Now()
	for i := range *clients {
		writing.Go(func() {
			for n := 0; time.Since(began) < *seconds/2; n++ {
				_, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("own-%d-%d", i, n)}}, metav1.CreateOptions{})
				mu.Lock()
				if err != nil {
					errs = append(errs, err)
					mu.Unlock()
					return
				}
				r.created++
				mu.Unlock()
			}
		})
	}
	writing.Wait()
	r.creating = time.Since(began)
	return errors.Join(errs...)
}

// increment adds one, if no other client has changed the object since it was read.
func increment(ctx context.Context, client kubernetes.Interface, name string) error {
	maps := client.CoreV1().ConfigMaps("default")
	o, err := maps.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(o.Data["n"])
	if err != nil {
		return err
	}
	o.Data["n"] = strconv.Itoa(n + 1)
	_, err = maps.Update(ctx, o, metav1.UpdateOptions{})
	return err
}

// outcome is a line of go test about a whole test.
var outcome = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (\S+)`)

// play runs scenarios on an engine that runs.
func play(ctx context.Context, url string) (passed int, failed []string, err error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-short", "-count=1", "-timeout", "20m", "-v", "-run", "^("+*scenarios+")", "./scenarios")
	cmd.Env = append(os.Environ(), "SCENARIO_ETCD="+url)
	out, err := cmd.CombinedOutput()
	for _, m := range outcome.FindAllStringSubmatch(string(out), -1) {
		switch m[1] {
		case "PASS":
			passed++
		case "FAIL":
			failed = append(failed, m[2])
		}
	}
	if err != nil && len(failed) == 0 {
		return 0, nil, fmt.Errorf("running scenarios: %w\n%s", err, out)
	}
	return passed, failed, nil
}
