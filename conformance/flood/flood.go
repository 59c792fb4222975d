package flood

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// maxEnd is how long a server may take to end after SIGTERM: --request-timeout, and 5 s for the answers.
const maxEnd = 65 * time.Second

// floodTime is how long the requests of a scenario go on.
const floodTime = 30 * time.Second

// A Scenario is one way to wear a server down.
type Scenario struct {
	Name string
	// Run prepares the server and floods it for a bounded time.
	Run func(ctx context.Context, s *launch.Server, report func(format string, args ...any)) error
	// Pressure, if there is one, goes on with the requests of Run until the context ends: while the server is asked to end.
	Pressure func(ctx context.Context, s *launch.Server)
}

// All are the scenarios of `make flood`.
var All = []Scenario{
	{"lists", Lists, listing},
	{"openapi", OpenAPI, asking},
	{"applies", Applies, applying},
	{"watches", Watches, nil},
	{"webhooks", Webhooks, nil},
}

// Figures are what was measured of a scenario.
type Figures struct {
	Memory   int64         // the most resident memory of the server
	P99      time.Duration // of another user's requests
	End      time.Duration // from SIGTERM to the end of the process
	Requests int           // of that user
	Failures int
}

// Measure runs a scenario beside another user's requests, and then asks the server to end while the flood goes on. The server has ended
// when it returns.
func (sc *Scenario) Measure(ctx context.Context, s *launch.Server, report func(format string, args ...any)) (Figures, error) {
	o := &onlooker{server: s}
	if err := o.prepare(ctx); err != nil {
		return Figures{}, err
	}
	looking, stop := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	tasks.Go(func() { o.watchMemory(looking) })
	tasks.Go(func() { o.ask(looking) })
	failed := sc.Run(ctx, s, report)
	stop()
	tasks.Wait()
	f := o.figures()
	end, err := ending(ctx, s, sc.Pressure)
	f.End = end
	return f, errors.Join(failed, err, f.check(sc.Name))
}

// check says which bounds were exceeded.
func (f Figures) check(name string) error {
	var errs []error
	if f.Memory >= maxMemory {
		errs = append(errs, fmt.Errorf("%s: the server took %d MB", name, f.Memory>>20))
	}
	if f.P99 >= maxLatency {
		errs = append(errs, fmt.Errorf("%s: the p99 of another user's requests was %v", name, f.P99))
	}
	if f.Requests == 0 || f.Failures*100 > f.Requests {
		errs = append(errs, fmt.Errorf("%s: %d of %d requests of another user failed", name, f.Failures, f.Requests))
	}
	return errors.Join(errs...)
}

// ending sends SIGTERM while requests go on, and returns how long the process takes to end.
func ending(ctx context.Context, s *launch.Server, pressure func(context.Context, *launch.Server)) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, maxEnd+10*time.Second)
	defer cancel()
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	if pressure != nil {
		tasks.Go(func() { pressure(ctx, s) })
		time.Sleep(3 * time.Second)
	}
	begin := time.Now()
	if err := syscall.Kill(s.Pid, syscall.SIGTERM); err != nil {
		return 0, err
	}
	for time.Since(begin) < maxEnd {
		if _, err := launch.RSS(s.Pid); err != nil { // a process that has ended has no memory
			return time.Since(begin), nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.Kill()
	return time.Since(begin), fmt.Errorf("the server did not end within %v of SIGTERM", maxEnd)
}

// onlooker is another user, with requests for a resource of its own.
type onlooker struct {
	server    *launch.Server
	client    *http.Client
	peak      atomic.Int64
	latencies []time.Duration
	failures  int
}

// prepare gives the flooder and the onlooker their rights.
func (o *onlooker) prepare(ctx context.Context) error {
	for _, user := range []string{"drowner", "onlooker"} {
		if err := grant(ctx, o.server, user); err != nil {
			return err
		}
	}
	var err error
	o.client, err = clientOf(o.server, "onlooker")
	return err
}

// grant gives a user all rights, subject to flow control as other users' requests are.
func grant(ctx context.Context, s *launch.Server, user string) error {
	return must(ctx, s, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", fmt.Sprintf(
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"all-for-%[1]s"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":%[1]q}]}`, user))
}

// must creates something as the administrator.
func must(ctx context.Context, s *launch.Server, path, body string) error {
	client, err := s.HTTP()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	code, text, err := floodCall(ctx, client, http.MethodPost, s.URL+path, body)
	if err == nil && code != http.StatusCreated {
		err = fmt.Errorf("POST %s: %d: %.300s", path, code, text)
	}
	return err
}

func clientOf(s *launch.Server, user string) (*http.Client, error) {
	config, err := s.Client(user)
	if err != nil {
		return nil, err
	}
	return rest.HTTPClientFor(config)
}

// ask creates, gets and deletes until the context ends.
func (o *onlooker) ask(ctx context.Context) {
	const path = "/api/v1/namespaces/default/configmaps"
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprintf("looked-%d", i)
		for _, r := range []struct{ method, path, body string }{
			{http.MethodPost, path, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"a":"b"}}`, name)},
			{http.MethodGet, path + "/" + name, ""},
			{http.MethodDelete, path + "/" + name, ""},
		} {
			begin := time.Now()
			code, _, err := floodCall(ctx, o.client, r.method, o.server.URL+r.path, r.body)
			if ctx.Err() != nil {
				return
			}
			o.latencies = append(o.latencies, time.Since(begin))
			if err != nil || code >= http.StatusBadRequest {
				o.failures++
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (o *onlooker) watchMemory(ctx context.Context) {
	for ctx.Err() == nil {
		if now, err := launch.RSS(o.server.Pid); err == nil && now > o.peak.Load() {
			o.peak.Store(now)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (o *onlooker) figures() Figures {
	f := Figures{Memory: o.peak.Load(), Requests: len(o.latencies), Failures: o.failures}
	if slices.Sort(o.latencies); len(o.latencies) > 0 {
		f.P99 = o.latencies[len(o.latencies)*99/100]
	}
	return f
}

// repeat runs f in parallel, again and again, until the context ends. f gets the number of its worker.
func repeat(ctx context.Context, workers int, f func(ctx context.Context, worker int)) {
	var tasks sync.WaitGroup
	for i := range workers {
		tasks.Go(func() {
			for ctx.Err() == nil {
				f(ctx, i)
			}
		})
	}
	tasks.Wait()
}

// each runs f for the numbers below n, in parallel, up to the first error.
func each(ctx context.Context, n, workers int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var tasks sync.WaitGroup
	for range workers {
		tasks.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := f(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	tasks.Wait()
	return context.Cause(ctx)
}

// outcomes counts how the requests of a flood were answered.
type outcomes struct{ whole, refused, broken atomic.Int64 }

func (o *outcomes) add(code int, err error) {
	switch {
	case err != nil:
		o.broken.Add(1)
		time.Sleep(50 * time.Millisecond)
	case code >= http.StatusBadRequest:
		o.refused.Add(1)
	default:
		o.whole.Add(1)
	}
}

func (o *outcomes) String() string {
	return fmt.Sprintf("%d answered, %d refused, %d broken", o.whole.Load(), o.refused.Load(), o.broken.Load())
}
