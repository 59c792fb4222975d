package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/results"
	"github.com/espalier-dev/espalier/conformance/wire"
)

var figures = results.New("bench-scale")

var (
	binary  = flag.String("espalier", "", "use this espalier program instead of building one")
	seconds = flag.Duration("time", 10*time.Second, "how long each point is measured")
	number  = flag.Int("tenants", 3000, "tenants over three etcds")
	only    = flag.String("only", "", "run only points, use, watches or spread")
)

const (
	prefix  = "/scale"
	objects = "/apis/espalier.dev/v1alpha1/tenants"
	maps    = "/api/v1/namespaces/default/configmaps"
	workers = 24
)

func main() { launch.Main("bench-scale", run) }

func run(ctx context.Context, dir string) (err error) {
	if *binary == "" {
		if *binary, err = launch.Build(ctx, dir); err != nil {
			return err
		}
	}
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{"points", points}, {"use", use}, {"watches", watches}, {"spread", spread}} {
		if *only == "" || *only == part.name {
			if err := part.run(ctx); err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
		}
	}
	if *only != "" {
		return nil // figures of one part do not replace those of all
	}
	return figures.Save()
}

// A site is replicas and etcds. The first etcd is that of the servers; tenants are in the others, if there are any.
type site struct {
	etcds   []*launch.Etcd
	servers []*launch.Server
	conns   []*wire.Conn // workers of them, spread over the servers
	made    atomic.Int64
}

// start starts a site with etcds for tenants beside that of the servers; none if tenants are in that.
func start(ctx context.Context, replicas, etcds int, flags ...string) (_ *site, err error) {
	s := &site{}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	for range 1 + etcds {
		etcd, err := launch.StartEtcd(ctx, "--unsafe-no-fsync", "--quota-backend-bytes=4294967296")
		if err != nil {
			return nil, err
		}
		s.etcds = append(s.etcds, etcd)
	}
	for range replicas {
		server, err := launch.StartServer(ctx, launch.Spec{Binary: *binary, Etcd: s.etcds[0].URL, Prefix: prefix, Flags: append([]string{"--profiling=true", "--tenants"}, flags...)})
		if err != nil {
			return nil, err
		}
		s.servers = append(s.servers, server)
	}
	for i := range workers {
		conn, err := wire.Dial(s.servers[i%replicas].Config)
		if err != nil {
			return nil, err
		}
		s.conns = append(s.conns, conn)
	}
	for i, etcd := range s.etcds[1:] {
		body := fmt.Sprintf(`{"apiVersion":"espalier.dev/v1alpha1","kind":"Etcd","metadata":{"name":"etcd-%d"},"spec":{"servers":[%q]}}`, i+1, etcd.URL)
		if err := s.conns[0].Until(ctx, time.Minute, http.StatusCreated, http.MethodPost, "/apis/espalier.dev/v1alpha1/etcds", []byte(body)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *site) stop() {
	for _, conn := range s.conns {
		conn.Close()
	}
	for _, server := range s.servers {
		server.Stop()
	}
	for _, etcd := range s.etcds {
		etcd.Stop()
	}
}

func name(n int) string { return fmt.Sprintf("tenant-%05d", n) }

func inside(n int, path string) string { return "/clusters/" + name(n) + path }

// make makes n tenants.
func (s *site) make(ctx context.Context, n int) error {
	_, err := s.each(ctx, n, func(ctx context.Context, conn *wire.Conn, i int) error {
		body := fmt.Sprintf(`{"apiVersion":"espalier.dev/v1alpha1","kind":"Tenant","metadata":{"name":%q},"spec":{"requests":100}}`, name(i))
		return conn.Until(ctx, time.Minute, http.StatusCreated, http.MethodPost, objects, []byte(body))
	})
	return err
}

// each does something n times with all connections, and returns how long that took.
func (s *site) each(ctx context.Context, n int, do func(context.Context, *wire.Conn, int) error) (time.Duration, error) {
	began := time.Now()
	var next atomic.Int64
	errs := make([]error, len(s.conns))
	_, err := wire.Repeat(ctx, 0, len(s.conns), func(ctx context.Context, w int) error {
		for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
			if errs[w] = do(ctx, s.conns[w], i); errs[w] != nil {
				return fmt.Errorf("%s: %w", name(i), errs[w])
			}
		}
		return nil
	})
	return time.Since(began), errors.Join(err, ctx.Err())
}

// create makes an object of 1 KB in a tenant.
func (s *site) create(ctx context.Context, conn *wire.Conn, n int) error {
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"map-%d"},"data":{"a":%q}}`, s.made.Add(1), strings.Repeat("x", 600))
	_, err := conn.Expect(ctx, http.StatusCreated, http.MethodPost, inside(n, maps), []byte(body))
	return err
}

// cpu is what servers, etcds and this process have used.
func (s *site) cpu() (used [3]time.Duration, err error) {
	pids := [3][]int{2: {os.Getpid()}}
	for _, server := range s.servers {
		pids[0] = append(pids[0], server.Pid)
	}
	for _, etcd := range s.etcds {
		pids[1] = append(pids[1], etcd.Pid)
	}
	for i, all := range pids {
		for _, pid := range all {
			one, err := launch.CPU(pid)
			if err != nil {
				return used, err
			}
			used[i] += one
		}
	}
	return used, nil
}
