package main

import (
	"fmt"
	"strings"
)

const (
	processors = 2  // of the machine that bench-scale ran on
	workers    = 24 // its clients; each sends one request at a time
	closed     = 50_000
)

// A measuredPoint is what some replicas and etcds did on one machine, and what the simulation says.
type measuredPoint struct {
	name                 string
	rate                 float64 // writes a second
	server, etcd, client float64 // seconds of a processor for a write
	simulated            float64 // writes a second
}

// measure simulates the points that bench-scale has measured. Client, servers and etcds share the
// processors of the machine, so that more of them do not make more of it; what they cost each other is what
// one replica and one etcd need for a write.
func measure(r results) (points []measuredPoint, err error) {
	for _, name := range []string{"1 replicas 1 etcds", "2 replicas 1 etcds", "3 replicas 1 etcds", "1 replicas 3 etcds", "3 replicas 3 etcds"} {
		p := measuredPoint{name: name}
		for figure, to := range map[string]*float64{"rate": &p.rate, "server": &p.server, "etcd": &p.etcd, "client": &p.client} {
			if *to, err = r.figure("bench-scale", name+"."+figure); err != nil {
				return nil, err
			}
		}
		work := p
		if len(points) > 0 {
			work = points[0]
		}
		p.simulated = loop(work.server + work.etcd + work.client)
		points = append(points, p)
	}
	return points, nil
}

// loop is how many requests a second clients send that wait for each answer.
func loop(work float64) float64 {
	s, machine := newSimulation(), newStation(processors)
	now, begun := 0.0, 0
	var again func(end float64)
	again = func(end float64) {
		if now = end; begun < closed {
			begun++
			s.add(end, []visit{{machine, work}}, again)
		}
	}
	for range workers {
		again(0)
	}
	for s.next() {
	}
	return closed / now
}

// comparison is the table of the points.
func comparison(points []measuredPoint) string {
	var b strings.Builder
	b.WriteString("| | creates/s, measured | simulated | CPU of a create: servers | etcds | client |\n|---|---|---|---|---|---|\n")
	for _, p := range points {
		var replicas, etcds int
		_, _ = fmt.Sscanf(p.name, "%d replicas %d etcds", &replicas, &etcds) // a name from above
		fmt.Fprintf(&b, "| %s and %s | %s | %s | %.2f ms | %.2f ms | %.2f ms |\n", number(replicas, "replica"), number(etcds, "etcd"),
			grouped(int(p.rate)), grouped(int(p.simulated)), p.server*1e3, p.etcd*1e3, p.client*1e3)
	}
	return b.String()
}

func number(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}
