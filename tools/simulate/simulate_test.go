package main

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// M/M/1 has a closed form: at a use of 0.5, the mean time is twice the work, and the 99th percentile 9.2 times.
func TestQueue(t *testing.T) {
	s, one := newSimulation(), newStation(1)
	now := 0.0
	for range 200_000 {
		now += s.rand.ExpFloat64() / 500
		s.add(now, []visit{{one, 1e-3}}, nil)
	}
	for s.next() {
	}
	sum := 0.0
	for _, took := range s.took {
		sum += took
	}
	if mean := sum / float64(len(s.took)); math.Abs(mean-2e-3) > 1e-4 {
		t.Errorf("the mean is %v, not 2 ms", mean)
	}
	if p99 := s.percentile(99); math.Abs(p99-2e-3*math.Log(100)) > 5e-4 {
		t.Errorf("the 99th percentile is %v", p99)
	}
	if use := one.use(now); math.Abs(use-0.5) > 0.01 {
		t.Errorf("the station is used %v of the time", use)
	}
}

var example = parts{serverRead: 0.4e-3, serverWrite: 0.7e-3, etcdRead: 1.0 / 7400, etcdWrite: 1.0 / 4600, serverStart: 6e-3, etcdStart: 3e-3, server: 200e6, plane: 2e6, stored: 400e3}

func TestExhausted(t *testing.T) {
	for what, c := range map[string]struct {
		site
		load
	}{
		"":                            {site{10, 20, true}, load{100_000, 0.05, 2, 0.2, 600}},
		"bytes of an etcd":            {site{10, 20, true}, load{200_000, 0.05, 2, 0.2, 600}},
		"bytes of the root etcd":      {site{1000, 1000, true}, load{8_000_000, 0.01, 2, 0.2, 600}},
		"memory of a replica":         {site{10, 1, true}, load{160_000, 0.1, 0.2, 0.2, 600}},
		"processors of the replicas":  {site{10, 1, true}, load{100_000, 0.05, 4, 0.2, 600}},
		"writes and reads of an etcd": {site{1, 100, true}, load{10_000, 0.1, 10, 0.9, 600}},
	} {
		if o := under(example, c.site, c.load); o.exhausted() != what {
			t.Errorf("%+v exhaust %q, not %q: %+v", c, o.exhausted(), what, o)
		}
	}
	// Each replica of many starts each tenant for itself, unless the load balancer sends a tenant's requests to one.
	l := usual
	l.tenants = 1_000_000
	spread, sticky := under(example, site{100, 1000, false}, l), under(example, site{100, 1000, true}, l)
	if spread.starts < 100*sticky.starts || sticky.exhausted() != "" {
		t.Errorf("starts with any replica %v, with one %v; %q", spread.starts, sticky.starts, sticky.exhausted())
	}
}

// figures are what bench-scale records of one point.
func figures(point, rate string) map[string]string {
	return map[string]string{point + ".rate": rate, point + ".server": "1.0 ms", point + ".etcd": "0.40 ms", point + ".client": "0.20 ms"}
}

// TestMeasured: two processors that work 1.6 ms on each write do 1,250 a second, however many replicas share them.
func TestMeasured(t *testing.T) {
	r := results{"bench-scale": {Figures: map[string]string{}}}
	for _, point := range []string{"1 replicas 1 etcds", "2 replicas 1 etcds", "3 replicas 1 etcds", "1 replicas 3 etcds", "3 replicas 3 etcds"} {
		maps.Copy(r["bench-scale"].Figures, figures(point, "1,100"))
	}
	points, err := measure(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		if p.rate != 1100 || math.Abs(p.simulated-1250) > 40 {
			t.Errorf("%+v", p)
		}
	}
	delete(r["bench-scale"].Figures, "3 replicas 3 etcds.rate")
	if _, err := measure(r); err == nil || !strings.Contains(err.Error(), "make bench-scale") {
		t.Errorf("a figure is missing: %v", err)
	}
}

// docs/scale.md shows the tables as they follow from the recorded figures.
func TestPageShowsTheTables(t *testing.T) {
	root := filepath.Join("..", "..")
	tables, err := run(root)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "scale.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range strings.Split(strings.TrimSpace(tables), "\n\n") {
		if !strings.Contains(string(page), table) {
			t.Errorf("docs/scale.md does not have this table, run make simulate:\n%s", table)
		}
	}
}
