package robustness

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness/environment"
	"github.com/espalier-dev/espalier/conformance/robustness/history"
	"github.com/espalier-dev/espalier/conformance/robustness/load"
)

// restartWatch: watches at replica 0 go on from the last revision that they have, at a replica that has just started.
func (p *play) restartWatch(ctx context.Context) {
	p.Sync(p.b.Create(ctx, p.Thing(1, "before"), load.Traits{}).Got.Revision)
	end := p.Fault("kill-replica")
	p.replica(0).Kill()
	for i := range 5 {
		p.b.Create(ctx, p.Thing(1, fmt.Sprint("meanwhile", i)), load.Traits{})
	}
	if err := p.replica(0).Start(); err != nil {
		p.fail("%v", err)
		return
	}
	p.await(ctx, "an answer of replica 0", func() bool { return p.a.Get(ctx, p.Thing(0, "before"), "").Outcome == history.Done })
	end()
	p.Sync(p.b.Create(ctx, p.Thing(1, "after"), load.Traits{}).Got.Revision)
}

// compactWatch: replica 0 has no connection to etcd while a client writes elsewhere, and etcd forgets those writes before it comes back.
func (p *play) compactWatch(ctx context.Context) {
	p.Sync(p.b.Create(ctx, p.Thing(1, "before"), load.Traits{}).Got.Revision)
	end := p.Fault("cut-compact")
	p.replica(0).Etcd.Each((*environment.Link).Cut)
	last := int64(0)
	for i := range 5 {
		last = p.b.Create(ctx, p.Thing(1, fmt.Sprint("meanwhile", i)), load.Traits{}).Got.Revision
	}
	p.await(ctx, "the record of the writes", func() bool { return p.Site.Recorded(ctx) >= last })
	if _, err := p.environment.Etcd.Compact(ctx, last); err != nil {
		p.fail("%v", err)
	}
	p.replica(0).Etcd.Each((*environment.Link).Heal)
	p.note("etcd has forgotten what was before revision %d, and replica 0 is connected again", last)
	p.await(ctx, "an answer of replica 0", func() bool { return p.a.Get(ctx, p.Thing(0, "before"), "").Outcome == history.Done })
	end()
	p.Sync(p.b.Create(ctx, p.Thing(1, "after"), load.Traits{}).Got.Revision)
}

// watchBegin: watches begin again and again, on all replicas, while a client writes all the time. An event that is on its way to
// watches just then is easily sent twice, or not at all.
func (p *play) watchBegin(ctx context.Context) {
	const lasts = 4 * time.Second
	writing, stop := context.WithTimeout(ctx, lasts)
	defer stop()
	var wg sync.WaitGroup
	for i := range p.environment.Replicas {
		c, err := p.Client(10 * time.Second)
		if err != nil {
			p.fail("%v", err)
			return
		}
		name := fmt.Sprint("k", i)
		c.Create(ctx, p.Thing(i, name), load.Traits{})
		wg.Go(func() {
			for writing.Err() == nil {
				c.Update(ctx, p.Thing(i, name), false)
			}
		})
		for range 3 {
			wg.Go(func() {
				for writing.Err() == nil {
					p.Watch(writing, i, 50*time.Millisecond)
				}
			})
		}
	}
	wg.Wait()
	p.Sync(p.b.Create(ctx, p.Thing(1, "after"), load.Traits{}).Got.Revision)
}

// behind: replica 0 hears nothing from etcd while a client writes elsewhere, and is asked for what was written: by its revision, and for the
// newest.
func (p *play) behind(ctx context.Context) {
	p.Sync(p.b.Create(ctx, p.Thing(1, "k"), load.Traits{}).Got.Revision)
	p.a.Get(ctx, p.Thing(0, "k"), "0") // it has a cache
	links := p.replica(0).Etcd
	for range 3 {
		end := p.Fault("late-answers")
		links.Each((*environment.Link).HoldDown)
		written := p.b.Update(ctx, p.Thing(1, "k"), false)
		least := fmt.Sprint("min:", written.Got.Revision)
		var wg sync.WaitGroup
		for i, mode := range []string{least, "", least, ""} {
			c, err := p.Client(10 * time.Second)
			if err != nil {
				p.fail("%v", err)
				continue
			}
			wg.Go(func() {
				if i < 2 {
					c.Get(ctx, p.Thing(0, "k"), mode)
				} else {
					c.List(ctx, load.Listing{Replica: 0, Resource: load.Things, Version: "v1", Namespace: p.Namespace(), Mode: mode})
				}
			})
		}
		launch.Pause(ctx, 300*time.Millisecond)
		links.Each((*environment.Link).Heal)
		wg.Wait()
		end()
		p.Sync(written.Got.Revision)
	}
}

// pages: a client writes between the pages of lists.
func (p *play) pages(ctx context.Context) {
	for i := range 9 {
		p.b.Create(ctx, p.Thing(1, fmt.Sprint("k", i)), load.Traits{})
	}
	for n := range 6 {
		var wg sync.WaitGroup
		wg.Go(func() {
			p.a.List(ctx, load.Listing{Replica: n % len(p.environment.Replicas), Resource: load.Things, Version: "v1", Namespace: p.Namespace(), Limit: 3, Pause: 150 * time.Millisecond})
		})
		for i := range 3 {
			launch.Pause(ctx, 60*time.Millisecond)
			p.b.Delete(ctx, p.Thing(1, fmt.Sprint("k", 8-i)), load.Preconditions{})
			p.b.Create(ctx, p.Thing(1, fmt.Sprint("k", 8-i)), load.Traits{})
		}
		wg.Wait()
	}
}
