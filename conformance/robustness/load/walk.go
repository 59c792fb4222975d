package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// keys are the names of ordinary objects; writes of the last one go through a slow admission webhook.
var keys = []string{"a", "b", "c", "d", "e", "slow"}

// walk is a client's life: mostly at one replica, sometimes at another.
type walk struct {
	*Client
	run    *run
	rng    *rand.Rand
	home   int
	recent int64 // greatest revision that it has seen
}

func (r *run) walk(ctx context.Context, id int) error {
	// Some are patient and some are not: what is abandoned may still be done.
	timeout := 1500 * time.Millisecond
	if id%2 == 1 {
		timeout = 6 * time.Second
	}
	c, err := newClient(r.site.Environment, r.rec, id, timeout)
	if err != nil {
		return err
	}
	defer c.Close()
	w := &walk{Client: c, run: r, rng: r.random(id), home: id % len(r.site.Environment.Replicas)}
	for ctx.Err() == nil {
		o := w.step()
		w.recent = max(w.recent, o.Got.Revision, o.ListRevision)
		switch {
		case o.Outcome == history.Done && o.Write() && w.rng.IntN(3) == 0 && o.Key != "":
			// Others have to see it at once.
			w.Get(r.ctx, w.target(o.Resource, o.Key, w.elsewhere(o.Replica)), "")
		case o.Outcome == history.Unknown:
			launch.Pause(ctx, 50*time.Millisecond)
		}
		launch.Pause(ctx, r.plan.Pause/2+time.Duration(w.rng.Int64N(int64(r.plan.Pause)+1)))
	}
	return nil
}

// elsewhere is another replica.
func (w *walk) elsewhere(replica int) int {
	n := len(w.environment.Replicas)
	if n == 1 {
		return replica
	}
	return (replica + 1 + w.rng.IntN(n-1)) % n
}

// target is an object of the run by a version that its resource has.
func (w *walk) target(resource, key string, replica int) Target {
	t := Target{Replica: replica, Resource: resource, Version: "v1", Key: key}
	if resource == Coins && w.rng.IntN(2) == 0 {
		t.Version = "v2"
	}
	return t
}

// step is one operation. What it is, is the seed's; what it is based on, the servers'.
func (w *walk) step() *history.Operation {
	ctx, rng := w.run.ctx, w.rng
	replica := w.home
	if rng.IntN(4) == 0 {
		replica = rng.IntN(len(w.environment.Replicas))
	}
	name := keys[rng.IntN(len(keys))]
	resource := Things
	if w.run.extras["coins"] && rng.IntN(5) == 0 {
		resource = Coins
	}
	t := w.target(resource, w.run.key(name), replica)
	switch x := rng.IntN(100); {
	case x < 14:
		return w.Create(ctx, t, Traits{Labels: labelsOf(name)})
	case x < 26:
		return w.Update(ctx, t, false)
	case x < 35:
		return w.Patch(ctx, t)
	case x < 40:
		return w.Merge(ctx, t)
	case x < 50:
		return w.Apply(ctx, t, []string{"first", "second"}[rng.IntN(2)])
	case x < 58:
		return w.Delete(ctx, t, Preconditions{UID: rng.IntN(3) == 0, Revision: rng.IntN(2) == 0})
	case x < 64:
		return w.held(ctx, replica)
	case x < 68:
		return w.bulk(ctx, replica)
	case x < 80:
		return w.Get(ctx, t, "")
	case x < 83:
		return w.Get(ctx, t, []string{"0", fmt.Sprintf("min:%d", max(w.recent, 1))}[rng.IntN(2)])
	}
	return w.list(ctx, t)
}

// list reads in one of the modes.
func (w *walk) list(ctx context.Context, t Target) *history.Operation {
	l := Listing{Replica: t.Replica, Resource: t.Resource, Version: t.Version, Namespace: w.run.ns}
	recent := max(w.recent, 1)
	switch w.rng.IntN(6) {
	case 0:
		l.Limit, l.Pause = 2, time.Duration(w.rng.IntN(60))*time.Millisecond
	case 1:
		l.Mode = "0"
	case 2:
		l.Mode, l.Limit = fmt.Sprintf("exact:%d", recent), 1+w.rng.IntN(3)
		l.Pause = time.Duration(w.rng.IntN(60)) * time.Millisecond
	case 3:
		l.Mode = fmt.Sprintf("exact:%d", recent)
	case 4:
		l.Mode = fmt.Sprintf("min:%d", recent)
	}
	return w.List(ctx, l)
}

// held is about objects with a finalizer: created, deleted, released.
func (w *walk) held(ctx context.Context, replica int) *history.Operation {
	t := Target{Replica: replica, Resource: Things, Version: "v1", Key: w.run.key(fmt.Sprintf("f%d", w.rng.IntN(2)))}
	seen, ok := w.last(Things, t.Key)
	switch {
	case !ok:
		o := w.Create(ctx, t, Traits{Finalizers: []string{finalizer}})
		if o.Code == http.StatusConflict {
			return w.Get(ctx, t, "")
		}
		return o
	case seen.Deleting:
		return w.Update(ctx, t, true)
	case w.rng.IntN(2) == 0:
		return w.Delete(ctx, t, Preconditions{UID: w.rng.IntN(2) == 0})
	}
	return w.Update(ctx, t, false)
}

// bulk is about objects that are deleted together.
func (w *walk) bulk(ctx context.Context, replica int) *history.Operation {
	name := fmt.Sprintf("bulk%d", w.rng.IntN(4))
	t := Target{Replica: replica, Resource: Things, Version: "v1", Key: w.run.key(name)}
	switch w.rng.IntN(4) {
	case 0:
		return w.DeleteCollection(ctx, replica, w.run.ns, "pool=bulk")
	case 1:
		return w.Patch(ctx, t)
	}
	return w.Create(ctx, t, Traits{Labels: labelsOf(name)})
}
