package flood

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// The bounds of a server under a flood.
const (
	maxMemory  = 1 << 30          // resident, at any moment
	maxLatency = time.Second      // of another user's requests, 99th percentile
	maxEnd     = 65 * time.Second // after SIGTERM: --request-timeout, and 5 s for the answers
)

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
	flooding("lists", fmt.Sprintf("%d readers of %d objects in YAML, indented JSON and tables", listReaders, listObjects), prepareLists, list),
	flooding("openapi", fmt.Sprintf("%d readers of /openapi/v2 of %d CRDs while one changes,", openAPIReaders, openAPICRDs), prepareOpenAPI, readOpenAPI),
	{"applies", Applies, applying},
	{"watches", Watches, nil},
	{"webhooks", Webhooks, nil},
}

// flooding is a scenario of requests that are all alike.
func flooding(name, what string, prepare func(context.Context, *launch.Server) error, flood func(context.Context, *launch.Server, *outcomes)) Scenario {
	run := func(ctx context.Context, s *launch.Server, report func(format string, args ...any)) error {
		if err := prepare(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		ctx, cancel := context.WithTimeout(ctx, floodTime)
		defer cancel()
		var o outcomes
		flood(ctx, s, &o)
		report("%s: %s for %v: %v", name, what, floodTime, &o)
		if o.whole.Load() == 0 {
			return fmt.Errorf("%s: no request was answered", name)
		}
		return nil
	}
	return Scenario{name, run, func(ctx context.Context, s *launch.Server) { flood(ctx, s, &outcomes{}) }}
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
	for _, user := range []string{"drowner", "onlooker"} {
		if err := grant(ctx, s, user); err != nil {
			return Figures{}, err
		}
	}
	client, err := clientOf(s, "onlooker")
	if err != nil {
		return Figures{}, err
	}
	stop := look(ctx, s, client, 10*time.Millisecond, func(i int) []request {
		name := fmt.Sprintf("looked-%d", i)
		return []request{{http.MethodPost, configMaps, configMap(name)}, {http.MethodGet, configMaps + "/" + name, ""}, {http.MethodDelete, configMaps + "/" + name, ""}}
	})
	failed := sc.Run(ctx, s, report)
	f := stop()
	f.End, err = ending(ctx, s, sc.Pressure)
	return f, errors.Join(failed, err, f.check(sc.Name, f.Requests/100))
}

// check says which bounds were exceeded. So many requests of another user may fail.
func (f Figures) check(name string, failures int) error {
	var errs []error
	if f.Memory >= maxMemory {
		errs = append(errs, fmt.Errorf("%s: the server took %d MB", name, f.Memory>>20))
	}
	if f.P99 >= maxLatency {
		errs = append(errs, fmt.Errorf("%s: the p99 of another user's requests was %v", name, f.P99))
	}
	if f.Requests == 0 || f.Failures > failures {
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
