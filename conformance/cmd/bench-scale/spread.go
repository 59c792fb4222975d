package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/results"
	"github.com/espalier-dev/espalier/conformance/wire"
)

// asked is how many tenants are asked of each replica while an etcd is gone.
const asked = 600

// spread looks at how tenants are spread over three etcds, and at who notices that one is gone.
func spread(ctx context.Context) error {
	s, err := start(ctx, 3, 3, "--tenant-idle-timeout=10s")
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.make(ctx, *number); err != nil {
		return err
	}
	took, err := s.each(ctx, *number, s.create)
	if err != nil {
		return err
	}
	fmt.Printf("%d tenants with an object each, over three etcds and three replicas: %.0f first writes/s\n", *number, float64(*number)/took.Seconds())
	where, err := s.places(ctx)
	if err != nil {
		return err
	}
	count := map[string]int{}
	for _, etcd := range where {
		count[etcd]++
	}
	var least, most int
	for i, etcd := range s.etcds[1:] {
		keys, err := keysOf(ctx, etcd)
		if err != nil {
			return err
		}
		n := count[fmt.Sprintf("etcd-%d", i+1)]
		if least, most = min(n, least), max(n, most); i == 0 {
			least, most = n, n
		}
		fmt.Printf("etcd-%d: %d tenants, %d keys\n", i+1, n, keys)
	}
	figures.Set("spread.least", "%s", results.Count(least))
	figures.Set("spread.most", "%s", results.Count(most))
	const gone = "etcd-2"
	s.etcds[2].Kill()
	began := time.Now()
	for _, when := range []string{"at once", "after 15 s"} {
		if when == "after 15 s" {
			launch.Pause(ctx, 15*time.Second-min(time.Since(began), 15*time.Second))
		}
		if err := s.ask(ctx, when, func(n int) bool { return where[name(n)] == gone }); err != nil {
			return err
		}
	}
	fmt.Println("spread: only the tenants of the killed etcd fail")
	return nil
}

// ask sends a read and a write to tenants by all replicas, and fails if others than those of the etcd that is gone do not answer.
func (s *site) ask(ctx context.Context, when string, gone func(n int) bool) error {
	times := make([][2][]time.Duration, len(s.conns))
	var wrong [workers]error
	step := max(1, *number/asked)
	took, err := s.each(ctx, *number/step*len(s.servers), func(ctx context.Context, _ *wire.Conn, i int) error {
		n, at := i/len(s.servers)*step, i%workers
		conn, err := wire.Dial(s.servers[i%len(s.servers)].Config) // requests that wait for the etcd that is gone hold up no others
		if err != nil {
			return err
		}
		defer conn.Close()
		within, cancel := context.WithTimeout(ctx, 70*time.Second)
		defer cancel()
		one := time.Now()
		code, _, text, err := conn.Do(within, http.MethodGet, inside(n, maps), nil)
		failed := err != nil || code != http.StatusOK
		if !failed && !gone(n) {
			err = s.create(within, conn, n)
			failed = err != nil
		}
		if failed != gone(n) {
			wrong[at] = fmt.Errorf("%s: %d %.300s %w", name(n), code, text, err)
		}
		kind := 0
		if gone(n) {
			kind = 1
		}
		times[at][kind] = append(times[at][kind], time.Since(one))
		return nil
	})
	if err := errors.Join(err, errors.Join(wrong[:]...)); err != nil {
		return err
	}
	var all [2][]time.Duration
	for _, one := range times {
		all[0], all[1] = append(all[0], one[0]...), append(all[1], one[1]...)
	}
	fmt.Printf("%s, in %v: %d requests to other tenants, all answered, p99 %v; %d to those of the etcd that is gone, all 503 or without an answer, p99 %v\n",
		when, took.Round(time.Second), len(all[0]), wire.Percentile(all[0], 99).Round(time.Millisecond), len(all[1]), wire.Percentile(all[1], 99).Round(time.Millisecond))
	figures.Set("gone "+when+".others", "%s", results.Time(wire.Percentile(all[0], 99)))
	figures.Set("gone "+when+".its", "%s", results.Time(wire.Percentile(all[1], 99)))
	return nil
}

// places says in which etcd each tenant is.
func (s *site) places(ctx context.Context) (map[string]string, error) {
	answer, err := s.conns[0].Expect(ctx, http.StatusOK, http.MethodGet, objects, nil)
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct{ Etcd string }
		}
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, err
	}
	where := map[string]string{}
	for _, one := range list.Items {
		if where[one.Metadata.Name] = one.Status.Etcd; one.Status.Etcd == "" {
			return nil, fmt.Errorf("the tenant %s is in no etcd", one.Metadata.Name)
		}
	}
	return where, nil
}

// keysOf counts what tenants have in an etcd.
func keysOf(ctx context.Context, etcd *launch.Etcd) (int64, error) {
	client, err := etcd.Client()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	answer, err := client.Get(ctx, prefix+"-tenants/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return answer.Count, nil
}
