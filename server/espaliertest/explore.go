package espaliertest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
)

// Explore runs a test under n schedules of faults, each as a subtest of the name of
// its seed. It stops at the first one that fails, and prints what was on the wire
// and how to repeat it.
//
//	func TestController(t *testing.T) {
//		espaliertest.Explore(t, 100, func(t *testing.T, config *rest.Config) {
//			go controller.Run(t.Context(), config)
//			admin := espaliertest.WithoutFaults(config)
//			… // create something
//			espaliertest.Calm(config)
//			… // wait until the controller is done, and check what it has done
//		}, espaliertest.CRDs("config/crd/bases"))
//	}
//
//	go test -run 'TestController/seed-17$'
//
// Options are those of Start; Faults among them has weights, and the seed to begin
// with. With -short a tenth of the schedules is run.
//
// Each schedule has a server without the objects of others. It runs in a bubble of
// testing/synctest: time is the test's own and jumps to the next timer when all
// goroutines wait, so that a back-off of a minute takes no time, and the server
// knows exactly when a client has nothing more to say. The same seed gives the same
// order of requests, answers and events on the wire, whatever the machine does
// meanwhile. What remains are choices that the client makes at random: jitter,
// iteration over maps, which of two goroutines is the first to lock something.
//
// So the rules of synctest hold: everything that the test starts has ended when it
// returns or is ended by t.Context and t.Cleanup; it cannot use t.Run, t.Parallel
// or t.Deadline; it cannot wait for the network otherwise than through the
// configuration; and no goroutine may hold a lock that others wait for while it
// makes a request about objects. What has to listen (a webhook, a metrics endpoint)
// or to lock belongs into a test with Start and Faults.
func Explore(t *testing.T, n int, test func(t *testing.T, config *rest.Config), options ...Option) {
	t.Helper()
	e := newExplorer(test, options)
	if testing.Short() {
		n = (n + 9) / 10
	}
	seeds := make([]int, n)
	for i := range seeds {
		seeds[i] = e.plan.seed + i
	}
	e.explore(t, seeds)
}

// explorer runs schedules.
type explorer struct {
	plan    *plan
	options []Option
	test    func(*testing.T, *rest.Config)
	seen    func(order string) // gets what was on the wire; may be nil

	mu   sync.Mutex
	idle []*explored
}

// explored is a test server that schedules use one after the other.
type explored struct {
	*TestServer
	keys map[string]string // in etcd, before the first schedule
}

func newExplorer(test func(*testing.T, *rest.Config), options []Option) *explorer {
	s := &settings{}
	for _, option := range append([]Option{Faults()}, options...) {
		option(s)
	}
	return &explorer{plan: s.faults, options: append(slices.Clone(options), func(s *settings) { s.faults = nil }), test: test}
}

// explore runs schedules, some at a time: most of what they do is to wait for
// etcd and for what the server does by itself.
func (e *explorer) explore(t *testing.T, seeds []int) {
	t.Helper()
	exploring.Store(true)
	defer e.close(t)
	next := make(chan int)
	var failed atomic.Bool
	var wait sync.WaitGroup
	for range max(4, runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for seed := range next {
				if !failed.Load() && !t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) { e.run(t, seed) }) {
					failed.Store(true)
				}
			}
		})
	}
	for _, seed := range seeds {
		next <- seed
	}
	close(next)
	wait.Wait()
}

// run runs the schedule of a seed.
func (e *explorer) run(t *testing.T, seed int) {
	ts, err := e.take(t.Context())
	if err != nil {
		t.Fatalf("espaliertest: %v", err)
	}
	defer e.give(t, ts)
	if err := ts.interpose(&plan{seed, e.plan.weights}, true); err != nil {
		t.Fatalf("espaliertest: %v", err)
	}
	defer func() {
		if e.seen != nil {
			e.seen(ts.faults.Order())
		}
		if t.Failed() {
			t.Logf("espaliertest: seed %d fails. To repeat it: go test -run '%s$'\nthe last events on the wire:\n%s", seed, t.Name(), ts.faults.Tail(shownEvents))
		}
	}()
	now := time.Now()
	synctest.Test(t, func(t *testing.T) {
		// The clock of a bubble begins in 2000, before everything that the server writes.
		time.Sleep(time.Until(now))
		t.Cleanup(ts.faults.run()) // it ends after everything that the test cleans up
		e.test(t, ts.Config())
	})
}

// take returns a test server without the objects of other schedules.
func (e *explorer) take(ctx context.Context) (*explored, error) {
	e.mu.Lock()
	if n := len(e.idle); n > 0 {
		ts := e.idle[n-1]
		e.idle = e.idle[:n-1]
		e.mu.Unlock()
		return ts, nil
	}
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	ts, err := start(ctx, e.options...)
	if err != nil {
		return nil, err
	}
	if err := ts.settle(ctx); err != nil {
		return nil, err
	}
	keys, err := ts.keys(ctx)
	return &explored{ts, keys}, err
}

// give restores a test server for the next schedule. If that fails it stops the server.
func (e *explorer) give(t *testing.T, ts *explored) {
	ts.behave()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	if err := ts.restore(ctx, ts.keys); err != nil {
		if err := ts.stop(); err != nil {
			t.Errorf("espaliertest: %v", err)
		}
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, ts)
}

func (e *explorer) close(t *testing.T) {
	for _, ts := range e.idle {
		if err := ts.stop(); err != nil {
			t.Errorf("espaliertest: %v", err)
		}
	}
}

// exploring is set by the first Explore of a process.
var exploring atomic.Bool

// All error handlers but the first keep a distance between errors. They have one clock,
// but every bubble has its own: an error would sleep until the time of the last error in
// another bubble. They are unchanged until there is a bubble; init wraps them because no
// other goroutine reads them yet.
func init() {
	for i, handle := range utilruntime.ErrorHandlers[1:] {
		utilruntime.ErrorHandlers[1+i] = func(ctx context.Context, err error, message string, keysAndValues ...any) {
			if !exploring.Load() {
				handle(ctx, err, message, keysAndValues...)
			}
		}
	}
}
