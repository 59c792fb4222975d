package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/results"
	"github.com/espalier-dev/espalier/conformance/wire"
)

// steps are how many tenants are in use. Beyond a hundred, servers close those that no request is under way in.
var steps = []int{0, 30, 60, 100}

// rest is how long a tenant is kept without requests: longer than the steps take.
const rest = 20 * time.Second

// use measures tenants that are in use.
func use(ctx context.Context) error {
	s, err := start(ctx, 1, 0, "--tenant-idle-timeout="+rest.String())
	if err != nil {
		return err
	}
	defer s.stop()
	last := steps[len(steps)-1]
	if err := s.make(ctx, last); err != nil {
		return err
	}
	server, etcd, err := s.uses(ctx, 0, last)
	if err != nil {
		return err
	}
	fmt.Printf("the first use of a tenant, which gets its default roles: CPU of the server %v, of etcd %v\n", server, etcd)
	figures.Set("first.server", "%s", results.Time(server))
	figures.Set("first.etcd", "%s", results.Time(etcd))
	launch.Pause(ctx, 2*rest) // all are closed
	var first state
	for i, n := range steps {
		from := steps[max(i-1, 0)]
		server, etcd, err := s.uses(ctx, from, n)
		if err != nil {
			return err
		}
		now, err := s.state(ctx)
		if err != nil {
			return err
		}
		if i == 0 {
			first = now
		}
		fmt.Printf("%3d tenants in use: %4d MB resident, %4d MB of heap, %6d goroutines; CPU of a start: server %v, etcd %v\n", n, now.resident/1e6, now.heap/1e6, now.goroutines, server, etcd)
		figures.Set(fmt.Sprintf("%d in use.resident", n), "%d MB", now.resident/1e6)
		figures.Set(fmt.Sprintf("%d in use.heap", n), "%d MB", now.heap/1e6)
		figures.Set(fmt.Sprintf("%d in use.goroutines", n), "%s", results.Count(int(now.goroutines)))
		if n == last {
			figures.Set("plane.heap", "%.0f KB", float64(now.heap-first.heap)/float64(n)/1e3)
			figures.Set("plane.goroutines", "%.0f", float64(now.goroutines-first.goroutines)/float64(n))
			figures.Set("start.server", "%s", results.Time(server))
			figures.Set("start.etcd", "%s", results.Time(etcd))
		}
	}
	return nil
}

// uses sends a request to each of some tenants, and returns the CPU time that one took.
func (s *site) uses(ctx context.Context, from, to int) (server, etcd time.Duration, err error) {
	if from == to {
		return 0, 0, nil
	}
	before, err := s.cpu()
	if err != nil {
		return 0, 0, err
	}
	if _, err := s.each(ctx, to-from, func(ctx context.Context, conn *wire.Conn, i int) error {
		_, err := conn.Expect(ctx, http.StatusOK, http.MethodGet, inside(from+i, maps), nil)
		return err
	}); err != nil {
		return 0, 0, err
	}
	after, err := s.cpu()
	each := time.Duration(to - from)
	return (after[0] - before[0]) / each, (after[1] - before[1]) / each, err
}

// state is what a server takes.
type state struct{ resident, heap, goroutines int64 }

func (s *site) state(ctx context.Context) (now state, err error) {
	server := s.servers[0]
	if now.heap, err = server.Heap(ctx); err != nil { // which collects garbage
		return now, err
	}
	if now.goroutines, err = server.Goroutines(ctx); err != nil {
		return now, err
	}
	now.resident, err = launch.RSS(server.Pid)
	return now, err
}
