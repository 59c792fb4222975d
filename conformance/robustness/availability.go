package robustness

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness/environment"
	"github.com/espalier-dev/espalier/conformance/robustness/load"
)

// An outage is something after which replicas have to answer again.
type outage struct {
	name    string
	members int
	bound   time.Duration // that the project promises
	// harm does it and returns the time from which recovery counts.
	harm func(context.Context, *play, *meter) (since time.Time, err error)
	// gap: what counts is the longest time without an answer, not the time since harm.
	gap bool
}

var outages = []outage{
	{"replica killed and started again, since the start", 1, time.Second, func(_ context.Context, p *play, _ *meter) (time.Time, error) {
		p.replica(0).Kill()
		since := time.Now()
		return since, p.replica(0).Start()
	}, false},
	{"link to etcd cut for 10 s, since it healed", 1, 3 * time.Second, linkFor((*environment.Link).Cut, 10*time.Second), false},
	{"link to etcd cut for 60 s, since it healed", 1, 3 * time.Second, linkFor((*environment.Link).Cut, 60*time.Second), false},
	{"link to etcd half-open for 10 s, since it healed", 1, 3 * time.Second, linkFor((*environment.Link).Hold, 10*time.Second), false},
	{"replica stopped for 15 s, since it goes on", 1, 3 * time.Second, func(ctx context.Context, p *play, _ *meter) (time.Time, error) {
		p.replica(0).Freeze()
		launch.Pause(ctx, 15*time.Second)
		p.replica(0).Thaw()
		return time.Now(), nil
	}, false},
	{"etcd killed and started again, since the start", 1, 3 * time.Second, func(_ context.Context, p *play, _ *meter) (time.Time, error) {
		p.environment.Members[0].Kill()
		since := time.Now()
		return since, p.environment.Members[0].Start()
	}, false},
	{"follower of three frozen for 20 s, longest gap", 3, 5 * time.Second, freezeFor(20*time.Second, false), true},
	{"leader of three frozen for 20 s, longest gap", 3, 5 * time.Second, freezeFor(20*time.Second, true), true},
	{"leader of three killed, longest gap", 3, 3 * time.Second, func(ctx context.Context, p *play, _ *meter) (time.Time, error) {
		since := time.Now()
		leader := p.environment.Leader(ctx)
		leader.Kill()
		launch.Pause(ctx, 10*time.Second)
		return since, leader.Start()
	}, true},
}

func linkFor(harm func(*environment.Link), d time.Duration) func(context.Context, *play, *meter) (time.Time, error) {
	return func(ctx context.Context, p *play, _ *meter) (time.Time, error) {
		p.replica(0).Etcd.Each(harm)
		launch.Pause(ctx, d)
		p.replica(0).Etcd.Each((*environment.Link).Heal)
		return time.Now(), nil
	}
}

func freezeFor(d time.Duration, leader bool) func(context.Context, *play, *meter) (time.Time, error) {
	return func(ctx context.Context, p *play, _ *meter) (time.Time, error) {
		m := p.environment.Follower(ctx)
		if leader {
			m = p.environment.Leader(ctx)
		}
		since := time.Now()
		m.Freeze()
		launch.Pause(ctx, d)
		m.Thaw()
		return since, nil
	}
}

// Availability measures how soon all replicas answer reads and writes again after each outage, and prints a table. It returns whether all
// promises were kept. Only restricts it to outages whose name has that text.
func (r *Runner) Availability(ctx context.Context, w io.Writer, only string) (bool, error) {
	kept := true
	for _, o := range outages {
		if o.members != r.Members || !strings.Contains(o.name, only) {
			continue
		}
		reads, writes, failures, err := r.suffer(ctx, o)
		if err != nil {
			return false, fmt.Errorf("%s: %w", o.name, err)
		}
		ok := "kept"
		if reads > o.bound || writes > o.bound {
			ok, kept = "NOT KEPT", false
		}
		fmt.Fprintf(w, "%d members: %-52s reads %5.2f s, writes %5.2f s, promised %v: %s%s\n", r.Members, o.name, reads.Seconds(), writes.Seconds(), o.bound, ok, failures)
	}
	if !strings.Contains("etcd full", only) {
		return kept, nil
	}
	full, err := r.fullEtcd(ctx, w)
	return kept && full, err
}

// suffer is one outage.
func (r *Runner) suffer(ctx context.Context, o outage) (reads, writes time.Duration, failures string, err error) {
	stage, err := r.scene.Site.Stage(ctx)
	if err != nil {
		return 0, 0, "", err
	}
	p := &play{Stage: stage, environment: r.scene.Environment}
	if p.b, err = stage.Client(10 * time.Second); err != nil {
		return 0, 0, "", err
	}
	p.b.Create(ctx, p.Thing(1, "k"), load.Traits{})
	m, err := newMeter(p)
	if err != nil {
		return 0, 0, "", err
	}
	m.begin(ctx)
	answers := func(since time.Time) {
		p.await(ctx, "answers of all replicas", func() bool {
			_, reads := m.after(since, false)
			_, writes := m.after(since, true)
			return reads && writes
		})
	}
	answers(m.began)
	since, err := o.harm(ctx, p, m)
	if err == nil && !o.gap {
		answers(since)
	}
	launch.Pause(ctx, time.Second)
	gaps := m.end(since)
	if err == nil {
		if o.gap {
			for _, g := range gaps {
				reads, writes = max(reads, g.reads), max(writes, g.writes)
			}
		} else {
			reads, _ = m.after(since, false)
			writes, _ = m.after(since, true)
		}
	}
	failures = m.trouble(since).String()
	if len(p.bad) > 0 {
		err = fmt.Errorf("%s", p.bad[0].Message)
	}
	return reads, writes, failures, r.over(ctx, stage, err)
}

// over ends a stage that was played for its timing only.
func (r *Runner) over(ctx context.Context, stage *load.Stage, err error) error {
	if healed := r.scene.Environment.Heal(); err == nil {
		err = healed
	}
	for _, replica := range r.scene.Environment.Replicas {
		if ready := replica.AwaitReady(ctx, environment.Patience); err == nil {
			err = ready
		}
	}
	if _, _, end := stage.End(); err == nil {
		err = end
	}
	if err != nil {
		return err
	}
	return r.scene.Site.Tidy(ctx)
}
