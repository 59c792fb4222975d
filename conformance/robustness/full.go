package robustness

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/espalier-dev/espalier/conformance/robustness/environment"
	"github.com/espalier-dev/espalier/conformance/robustness/fault"
	"github.com/espalier-dev/espalier/conformance/robustness/history"
	"github.com/espalier-dev/espalier/conformance/robustness/load"
)

// fullEtcd fills etcd, and asks whether reads and deletes go on: before and after a restart of all replicas.
func (r *Runner) fullEtcd(ctx context.Context, w io.Writer) (bool, error) {
	stage, err := r.scene.Site.Stage(ctx)
	if err != nil {
		return false, err
	}
	p := &play{Stage: stage, environment: r.scene.Environment}
	if p.b, err = stage.Client(10 * time.Second); err != nil {
		return false, err
	}
	for i := range 4 * len(p.environment.Replicas) {
		p.b.Create(ctx, p.Thing(1, fmt.Sprintf("k%d", i)), load.Traits{})
	}
	undo, err := fault.Fill(ctx, r.scene)
	if err != nil {
		return false, r.over(ctx, stage, err)
	}
	p.askFull(ctx, "etcd is full", 0)
	began := time.Now()
	for _, replica := range p.environment.Replicas {
		replica.Kill()
		if err := replica.Start(); err != nil {
			return false, err
		}
	}
	slowest := time.Duration(0)
	for _, replica := range p.environment.Replicas {
		if err := replica.AwaitReady(ctx, environment.Patience); err != nil {
			p.fail("etcd is full: %v", err)
		}
		slowest = time.Since(began)
	}
	p.askFull(ctx, "etcd is full and all replicas were restarted", 2*len(p.environment.Replicas))
	if err := undo(ctx); err != nil {
		return false, err
	}
	drained := time.Now()
	for i := range p.environment.Replicas {
		p.await(ctx, fmt.Sprintf("replica %d to write again", i), func() bool {
			return p.b.Create(ctx, p.Thing(i, fmt.Sprintf("again%d-%d", i, time.Now().UnixNano())), load.Traits{}).Outcome == history.Done
		})
	}
	back := time.Since(drained)
	for _, v := range p.bad {
		fmt.Fprintf(w, "      %s\n", v.Message)
	}
	durability := "kept"
	if len(p.bad) > 0 {
		durability = "NOT KEPT"
	}
	fmt.Fprintf(w, "%d members: etcd full: reads and deletes go on, also after a restart of all replicas (ready after %.2f s); writes %.2f s after there is room: %s\n",
		r.Members, slowest.Seconds(), back.Seconds(), durability)
	return len(p.bad) == 0, r.over(ctx, stage, nil)
}

// askFull asks each replica to read, to delete, and to refuse a create.
func (p *play) askFull(ctx context.Context, when string, from int) {
	for i := range p.environment.Replicas {
		if o := p.b.Get(ctx, p.Thing(i, fmt.Sprintf("k%d", from+i)), ""); o.Outcome != history.Done {
			p.fail("%s: replica %d does not read: %d %s", when, i, o.Code, o.Message)
		}
		if o := p.b.List(ctx, load.Listing{Replica: i, Resource: load.Things, Version: "v1", Namespace: p.Namespace()}); o.Outcome != history.Done {
			p.fail("%s: replica %d does not list: %d %s", when, i, o.Code, o.Message)
		}
		if o := p.b.Delete(ctx, p.Thing(i, fmt.Sprintf("k%d", from+i)), load.Preconditions{}); o.Outcome != history.Done {
			p.fail("%s: replica %d does not delete: %d %s", when, i, o.Code, o.Message)
		}
		if o := p.b.Create(ctx, p.Thing(i, fmt.Sprintf("new%d-%d", from, i)), load.Traits{}); o.Outcome == history.Done {
			p.fail("%s: replica %d creates", when, i)
		}
	}
}
