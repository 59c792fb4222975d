package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// extras are activities that a run may have besides its clients. The seed decides which.
var extras = map[string]func(*run, context.Context, *Client, *rand.Rand) error{
	"coins":     (*run).storage,
	"garbage":   (*run).garbage,
	"leader":    (*run).leader,
	"quota":     (*run).quota,
	"namespace": (*run).gone,
	"crd":       (*run).recreate,
}

// schemas changes the schema of things again and again.
func (r *run) schemas(ctx context.Context, c *Client, rng *rand.Rand) error {
	n := len(r.site.Environment.Replicas)
	for ctx.Err() == nil {
		d := r.site.things
		d.Schema++
		r.site.things = d
		c.ChangeCRD(ctx, &d, rng.IntN(n), rng.IntN(n), 20*time.Second)
		launch.Pause(ctx, 200*time.Millisecond+time.Duration(rng.IntN(600))*time.Millisecond)
	}
	return nil
}

// storage changes the storage version of coins, once: which version was stored before a second change is not known to be wrong.
func (r *run) storage(ctx context.Context, c *Client, rng *rand.Rand) error {
	n := len(r.site.Environment.Replicas)
	launch.Pause(ctx, 300*time.Millisecond+time.Duration(rng.IntN(900))*time.Millisecond)
	d := r.site.coins
	d.Storage = map[string]string{"v1": "v2", "v2": "v1"}[d.Storage]
	r.site.coins = d
	c.ChangeCRD(ctx, &d, rng.IntN(n), rng.IntN(n), 20*time.Second)
	return nil
}

// garbage makes owners and dependents. A dependent goes when all of its owners have gone, and not before.
func (r *run) garbage(ctx context.Context, c *Client, rng *rand.Rand) error {
	at := func(name string) Target {
		return Target{Replica: rng.IntN(len(r.site.Environment.Replicas)), Resource: Things, Version: "v1", Key: r.key(name)}
	}
	for n := 0; ctx.Err() == nil; n++ {
		first := c.Create(r.ctx, at(fmt.Sprintf("own%d-a", n)), Traits{})
		second := c.Create(r.ctx, at(fmt.Sprintf("own%d-b", n)), Traits{})
		if first.Outcome == history.Done && second.Outcome == history.Done {
			c.Create(r.ctx, at(fmt.Sprintf("dep%d-a", n)), Traits{Owners: []history.Item{first.Got}})
			c.Create(r.ctx, at(fmt.Sprintf("dep%d-both", n)), Traits{Owners: []history.Item{first.Got, second.Got}})
			c.Create(r.ctx, at(fmt.Sprintf("dep%d-b", n)), Traits{Owners: []history.Item{second.Got}})
			c.Delete(r.ctx, at(fmt.Sprintf("own%d-a", n)), Preconditions{})
			if rng.IntN(2) == 0 {
				// An owner of the same name is another owner.
				c.Create(r.ctx, at(fmt.Sprintf("own%d-a", n)), Traits{})
			}
		}
		launch.Pause(ctx, 100*time.Millisecond+time.Duration(rng.IntN(300))*time.Millisecond)
	}
	return nil
}

// quotaHard is how many objects the namespace with a quota may have.
const quotaHard = 4

// limit gives a namespace a quota, and returns when its status says that it is in force: on every replica, whether or not it has heard of
// the quota. It returns false if ctx ended before.
func (r *run) limit(ctx context.Context, c *Client, ns string, rng *rand.Rand) bool {
	quotas := "/api/v1/namespaces/" + ns + "/resourcequotas"
	limit := encode(map[string]any{
		"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{"name": "limit"},
		"spec": map[string]any{"hard": map[string]any{fmt.Sprintf("count/%s.%s", Crates, Group): fmt.Sprint(quotaHard)}},
	})
	for inForce := false; !inForce; {
		if ctx.Err() != nil {
			return false
		}
		replica := rng.IntN(len(r.site.Environment.Replicas))
		c.Ask(ctx, replica, http.MethodPost, quotas, asJSON, bytes.NewReader(limit)) // 409 from the second time on
		var stored struct {
			Status struct{ Hard map[string]string }
		}
		answer := c.Ask(ctx, replica, http.MethodGet, quotas+"/limit", "", nil)
		inForce = answer.OK() && json.Unmarshal(answer.Data, &stored) == nil && len(stored.Status.Hard) > 0
		launch.Pause(ctx, 10*time.Millisecond)
	}
	r.rec.with(func(*history.History) { r.limited = true })
	return true
}

// quota has clients create in a namespace whose number of objects is limited.
func (r *run) quota(ctx context.Context, c *Client, rng *rand.Rand) error {
	ns := r.ns + "-quota"
	if !r.limit(ctx, c, ns, rng) {
		return nil // the faults were faster
	}
	var all errgroup.Group
	for n := range 3 {
		own := r.random(700 + n)
		all.Go(func() error { return r.crowd(ctx, c.ID+1+n, ns, own) })
	}
	return all.Wait()
}

// crowd creates and deletes in a namespace.
func (r *run) crowd(ctx context.Context, id int, ns string, rng *rand.Rand) error {
	c, err := newClient(r.site.Environment, r.rec, id, 2*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	for n := 0; ctx.Err() == nil; n++ {
		t := Target{Replica: rng.IntN(len(r.site.Environment.Replicas)), Resource: Crates, Version: "v1", Key: fmt.Sprintf("%s/q%d", ns, rng.IntN(12))}
		if rng.IntN(3) > 0 {
			c.Create(r.ctx, t, Traits{})
		} else {
			c.Delete(r.ctx, t, Preconditions{})
		}
		launch.Pause(ctx, time.Duration(10+rng.IntN(30))*time.Millisecond)
	}
	return nil
}

// gone deletes a namespace while others create in it. When the namespace is gone, nothing may be in it, or come into it.
func (r *run) gone(ctx context.Context, c *Client, rng *rand.Rand) error {
	ns := r.ns + "-gone"
	path := "/api/v1/namespaces/" + ns
	creating, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	own := r.random(800)
	go func() { done <- r.crowd(creating, c.ID+1, ns, own) }()
	launch.Pause(ctx, 150*time.Millisecond)
	n := len(r.site.Environment.Replicas)
	for ctx.Err() == nil && !c.Ask(ctx, rng.IntN(n), http.MethodDelete, path, "", nil).OK() {
		launch.Pause(ctx, 50*time.Millisecond)
	}
	var revision int64
	for ctx.Err() == nil && revision == 0 {
		if a := c.Ask(ctx, rng.IntN(n), http.MethodGet, path, "", nil); a.Code == http.StatusNotFound {
			if rev, err := r.site.Environment.Revision(ctx); err == nil {
				revision = rev
			}
		}
		launch.Pause(ctx, 20*time.Millisecond)
	}
	launch.Pause(ctx, 300*time.Millisecond) // late requests arrive now
	stop()
	err := <-done
	r.rec.with(func(*history.History) { r.goneAt = revision })
	return err
}

// recreate deletes a CRD while its objects are written, and makes it again.
func (r *run) recreate(ctx context.Context, c *Client, rng *rand.Rand) error {
	d := CRD{Resource: fmt.Sprintf("boat%ds", r.number), Versions: []string{"v1", "v2"}, Storage: "v1"}
	n := len(r.site.Environment.Replicas)
	defer func() { // not waited for: it is of no use any more
		c.Ask(r.ctx, 0, http.MethodDelete, d.Path(), "", nil)
	}()
	writing, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	own := r.random(900)
	go func() { done <- r.sail(writing, c.ID+1, d.Resource, own) }()
	for ctx.Err() == nil {
		d.Schema++
		if c.ChangeCRD(ctx, &d, rng.IntN(n), rng.IntN(n), 20*time.Second) == nil {
			continue
		}
		launch.Pause(ctx, 300*time.Millisecond)
		if c.DeleteCRD(ctx, &d, rng.IntN(n), rng.IntN(n), 20*time.Second) == nil {
			continue
		}
	}
	return <-done
}

// sail writes objects of a CRD that comes and goes.
func (r *run) sail(ctx context.Context, id int, resource string, rng *rand.Rand) error {
	c, err := newClient(r.site.Environment, r.rec, id, 2*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	for ctx.Err() == nil {
		t := Target{Replica: rng.IntN(len(r.site.Environment.Replicas)), Resource: resource, Version: "v1", Key: r.key(fmt.Sprintf("s%d", rng.IntN(3)))}
		switch rng.IntN(3) {
		case 0:
			c.Create(r.ctx, t, Traits{})
		case 1:
			c.Patch(r.ctx, t)
		case 2:
			c.Get(r.ctx, t, "")
		}
		launch.Pause(ctx, time.Duration(10+rng.IntN(30))*time.Millisecond)
	}
	return nil
}
