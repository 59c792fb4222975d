package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/results"
	"github.com/espalier-dev/espalier/conformance/wire"
	"github.com/espalier-dev/espalier/crd/impact"
)

var figures = results.New("bench-plan")

var (
	objects = flag.Int("objects", 1_000_000, "how many objects are stored")
	limit   = flag.Duration("timeout", 30*time.Minute, "end after this time")
)

func main() { launch.Main("bench-plan", run) }

// What the plan of a million objects may take on two cores that do nothing else.
const maxTime, maxMemory = time.Minute, 256 << 20

// What a migration has to do at least, and how much longer the requests of users may take beside it.
const minRate, maxRatio = 3000, 1.2

func run(ctx context.Context, dir string) error {
	ctx, stop := context.WithTimeout(ctx, *limit)
	defer stop()
	binary, err := launch.Build(ctx, dir)
	if err != nil {
		return err
	}
	etcd, err := launch.StartEtcd(ctx, "--unsafe-no-fsync", "--quota-backend-bytes=8589934592")
	if err != nil {
		return err
	}
	defer etcd.Stop()
	var spaces []string
	for n := range namespaces {
		spaces = append(spaces, namespace(n))
	}
	server, err := launch.StartServer(ctx, launch.Spec{Binary: binary, Etcd: etcd.URL, Prefix: prefix, Flags: []string{"--profiling=true"}, Namespaces: spaces})
	if err != nil {
		return err
	}
	defer server.Stop()
	conn, err := wire.Dial(server.Config)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := fill(ctx, conn, etcd, *objects); err != nil {
		return err
	}
	fmt.Printf("%d objects of 1 KB were put into etcd in %v, which does not sync its disk.\n", *objects, time.Since(began).Round(time.Second))
	p, err := measure(ctx, conn, server, etcd)
	if err != nil {
		return err
	}
	fmt.Printf("%d pages; CPU: server %v, etcd %v; %s\n", p.pages, p.server.Round(time.Second), p.etcd.Round(time.Second), p.summary.Headline())
	figures.Set("plan.time", "%.1f s", p.time.Seconds())
	figures.Set("plan.memory", "%d MB", p.memory>>20)
	m, err := migrate(ctx, server, conn)
	if err != nil {
		return err
	}
	figures.Set("migrate.rate", "%.0f/s", m.rate)
	figures.Set("migrate.users", "x%.2f", m.ratio())
	fmt.Printf("plan: %d objects in %.1f s, %d MB | migrate %.0f/s | users p99 x%.2f\n", *objects, p.time.Seconds(), p.memory>>20, m.rate, m.ratio())
	if err := figures.Save(); err != nil {
		return err
	}
	if m.rate < minRate || m.ratio() > maxRatio {
		return fmt.Errorf("below %d objects/s, or users' p99 above x%.1f", minRate, maxRatio)
	}
	if scaled := p.time * 1_000_000 / time.Duration(*objects); scaled > maxTime || p.memory > maxMemory {
		return fmt.Errorf("above %v for 1,000,000 objects, or %d MB", maxTime, maxMemory>>20)
	}
	return nil
}

// planned is what a plan took.
type planned struct {
	time, server, etcd time.Duration // of the clock and of the processors
	memory             int64         // at the peak, besides what the server had before
	pages              int
	summary            impact.Summary
}

// measure plans the change, and checks that every object was counted.
func measure(ctx context.Context, conn *wire.Conn, server *launch.Server, etcd *launch.Etcd) (*planned, error) {
	p := &planned{}
	base, err := launch.RSS(server.Pid)
	if err != nil {
		return nil, err
	}
	watched, stop := context.WithCancel(ctx)
	peak := make(chan int64, 1)
	go func() { peak <- highest(watched, server.Pid) }()
	cpu := func() (s, e time.Duration) {
		s, _ = launch.CPU(server.Pid)
		e, _ = launch.CPU(etcd.Pid)
		return s, e
	}
	s, e := cpu()
	began := time.Now()
	err = p.plan(ctx, conn)
	p.time = time.Since(began)
	p.server, p.etcd = cpu()
	p.server, p.etcd = p.server-s, p.etcd-e
	stop()
	p.memory = max(<-peak-base, 0)
	if err != nil {
		return nil, err
	}
	lose, refused := 0, 0
	for n := range *objects {
		switch sampleOf(n) {
		case 1:
			lose++
		case 2:
			refused++
		}
	}
	if c := p.summary.Counts; p.summary.Objects != int64(*objects) || c["LosesFields"] != int64(lose) || c["RefusedOnCreate"] != int64(refused) {
		return nil, fmt.Errorf("the plan is wrong: %+v", p.summary)
	}
	return p, nil
}

// plan sends the change until there is no page left.
func (p *planned) plan(ctx context.Context, conn *wire.Conn) error {
	for token := ""; ; {
		answer, err := conn.Expect(ctx, http.StatusOK, http.MethodPost, crds+"/"+name+"/plan?continue="+url.QueryEscape(token), parcelCRD(after))
		if err != nil {
			return err
		}
		var page struct {
			Continue string         `json:"continue"`
			Summary  impact.Summary `json:"summary"`
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			return err
		}
		p.pages++
		p.summary.Merge(&page.Summary)
		if token = page.Continue; token == "" {
			return nil
		}
	}
}

// highest returns the most memory that a process had until the context ends.
func highest(ctx context.Context, pid int) (peak int64) {
	for ctx.Err() == nil {
		if now, err := launch.RSS(pid); err == nil {
			peak = max(peak, now)
		}
		launch.Pause(ctx, 100*time.Millisecond)
	}
	return peak
}
