package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness/environment"
	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// A Plan is what one run does.
type Plan struct {
	Seed    uint64
	Clients int
	Pause   time.Duration // of a client between two operations, on average
	Least   time.Duration // that the load lasts
	// Harm does the faults and undoes them; note records one that is over. The load goes on until it returns.
	// Extras are what happens besides the ordinary operations; the seed decides if it is nil.
	Extras []string
	Harm   func(ctx context.Context, note func(name string, begin time.Time)) error
}

// run is one run.
type run struct {
	site   *Site
	plan   Plan
	ctx    context.Context // of requests: it outlives the load, so that none is abandoned by its end
	number int
	ns     string
	rec    *record
	extras map[string]bool

	goneAt  int64 // revision at which the namespace <ns>-gone was seen to be gone
	limited bool  // the quota of <ns>-quota is known to every replica
}

func (r *run) random(stream int) *rand.Rand {
	return rand.New(rand.NewPCG(r.plan.Seed, uint64(stream)))
}

func (r *run) key(name string) string { return r.ns + "/" + name }

// Run does one run and returns its record. An error is one of the harness.
func (s *Site) Run(ctx context.Context, plan Plan) (*history.History, []Finding, error) {
	s.runs++
	r := &run{site: s, plan: plan, ctx: ctx, number: s.runs, ns: fmt.Sprintf("run%d", s.runs), rec: newRecord(plan.Seed), extras: map[string]bool{}}
	r.choose()
	if err := r.prepare(); err != nil {
		return nil, nil, err
	}
	if err := r.do(); err != nil {
		return nil, nil, fmt.Errorf("run %d, seed %d: %w", r.number, plan.Seed, err)
	}
	r.complete()
	return r.rec.h, r.rec.findings, nil
}

// choose picks what happens besides the ordinary operations.
func (r *run) choose() {
	if !r.site.Full {
		return
	}
	if r.plan.Extras != nil {
		for _, name := range r.plan.Extras {
			r.extras[name] = true
		}
		return
	}
	rng := r.random(1000)
	for _, i := range rng.Perm(len(extraOrder))[:1+rng.IntN(2)] {
		r.extras[extraOrder[i]] = true
	}
}

func (r *run) prepare() error {
	c, err := newClient(r.site.Environment, r.rec, 0, 5*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	if r.site.Environment.Kind == launch.Upstream {
		return nil
	}
	if err := r.calmCRDs(); err != nil {
		return err
	}
	names := []string{r.ns}
	if r.extras["quota"] {
		names = append(names, r.ns+"-quota")
	}
	if r.extras["namespace"] {
		names = append(names, r.ns+"-gone")
	}
	for _, name := range names {
		if err := r.site.namespace(r.ctx, c, name); err != nil {
			return err
		}
	}
	return nil
}

// calmCRDs waits until the CRDs are acknowledged: a change of the last run must not fall into this one. It is not recorded: the storage
// version changes back and forth, and a record that says only where it began would forbid the change.
func (r *run) calmCRDs() error {
	if !r.site.Full {
		return nil
	}
	c, err := newClient(r.site.Environment, newRecord(0), 0, 5*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, d := range []*CRD{&r.site.things, &r.site.coins} {
		if c.ChangeCRD(r.ctx, d, 0, 0, environment.Patience) == nil {
			return fmt.Errorf("the CRD of %s is not acknowledged after %v", d.Resource, environment.Patience)
		}
	}
	return nil
}

// do is the run itself: everything that goes on at the same time, and then the calm in which it must become as etcd is.
func (r *run) do() error {
	o, err := r.observe()
	if err != nil {
		return err
	}
	defer o.cancel()
	o.watch(r.watchers(o.from))
	if err := o.inform(); err != nil {
		return err
	}
	if err := r.work(r.ctx); err != nil {
		return err
	}
	if err := r.settle(o); err != nil {
		return err
	}
	return o.end()
}

// observers are all who watch a run: etcd's own log, watches, informers.
type observers struct {
	run       *run
	from      int64 // revision at which the run begins
	log       *etcdLog
	watchers  []*watcher
	informers []*informer

	following, watching sync.WaitGroup
	ctx, looking        context.Context
	cancel, look        context.CancelFunc
}

// observe begins to follow etcd's own log.
func (r *run) observe() (*observers, error) {
	from, err := r.site.Environment.Revision(r.ctx)
	if err != nil {
		return nil, err
	}
	o := &observers{run: r, from: from, log: &etcdLog{environment: r.site.Environment, mark: groupPrefix + "-marks/" + r.ns, from: from + 1}}
	r.site.log.Store(o.log)
	o.ctx, o.cancel = context.WithCancel(r.ctx)
	o.looking, o.look = context.WithCancel(o.ctx)
	o.following.Go(func() { o.log.follow(o.ctx, o.log.from) })
	return o, nil
}

func (o *observers) watch(watchers []*watcher) {
	o.watchers = watchers
	for _, x := range watchers {
		o.watching.Go(func() { _ = x.run(o.looking) })
	}
}

// inform starts an informer at each replica.
func (o *observers) inform() error {
	for _, replica := range o.run.site.Environment.Replicas {
		i, err := newInformer(replica, o.run.ns)
		if err != nil {
			return err
		}
		i.run(o.looking, &o.watching)
		o.informers = append(o.informers, i)
	}
	return nil
}

// end ends all of them, and completes the record with etcd's log.
func (o *observers) end() error {
	o.look()
	o.watching.Wait()
	writes, err := o.log.finish(o.run.ctx, []string{o.run.ns, o.run.ns + "-quota", o.run.ns + "-gone"})
	if err != nil {
		return err
	}
	o.cancel()
	o.following.Wait()
	o.run.rec.with(func(h *history.History) { h.Writes = writes })
	for _, w := range o.log.missed {
		o.run.rec.find("engine", "the engine's own watch has not shown revision %d of %s", w.Revision, w.Key)
	}
	return nil
}

// watchers are one of each kind at each replica.
func (r *run) watchers(from int64) []*watcher {
	var out []*watcher
	add := func(w watcher) {
		w.id, w.environment, w.rec, w.namespace = 200+len(out), r.site.Environment, r.rec, r.ns
		out = append(out, &w)
	}
	for i := range r.site.Environment.Replicas {
		add(watcher{replica: i, resource: Things, from: from})
		add(watcher{replica: i, resource: Things, initial: true})
		add(watcher{replica: i, resource: Things, from: from, selector: "metadata.name=a"})
		if r.extras["coins"] {
			add(watcher{replica: i, resource: Coins, from: from})
		}
	}
	return out
}

// work runs the clients until the faults are over.
func (r *run) work(ctx context.Context) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	var clients errgroup.Group
	for i := range r.plan.Clients {
		clients.Go(func() error { return r.walk(working, 1+i) })
	}
	side := func(id int, f func(*run, context.Context, *Client, *rand.Rand) error) {
		clients.Go(func() error {
			c, err := newClient(r.site.Environment, r.rec, id, 3*time.Second)
			if err != nil {
				return err
			}
			defer c.Close()
			return f(r, working, c, r.random(id))
		})
	}
	if r.site.Full {
		side(100, (*run).schemas)
	}
	for name := range r.extras {
		side(110+10*slices.Index(extraOrder, name), extras[name])
	}
	enough := time.After(r.plan.Least)
	err := r.plan.Harm(ctx, func(name string, begin time.Time) {
		r.rec.with(func(h *history.History) {
			h.Faults = append(h.Faults, history.Fault{Name: name, Begin: int64(begin.Sub(r.rec.begin)), End: r.rec.now()})
		})
	})
	select {
	case <-enough:
	case <-ctx.Done():
	}
	stop()
	return errors.Join(err, clients.Wait())
}

// Extras returns the names of what may happen besides the ordinary operations.
func Extras() []string { return slices.Clone(extraOrder) }

// extraOrder gives each extra its own numbers of clients, and random numbers.
var extraOrder = []string{"coins", "garbage", "leader", "quota", "namespace", "crd"}

// settle waits until everything has recovered, and until all watches have shown the last write. Then every client reads everything.
func (r *run) settle(o *observers) error {
	w := r.site.Environment
	for _, replica := range w.Replicas {
		if err := replica.AwaitReady(r.ctx, environment.Patience); err != nil {
			return err
		}
	}
	c, err := newClient(w, r.rec, 400, 10*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	last, err := r.sentinel(c)
	if err != nil {
		return err
	}
	r.arrive(o.watchers, o.informers, last)
	if err := r.caches(r.ctx, o.informers); err != nil {
		return err
	}
	for i := range w.Replicas {
		for _, name := range append([]string{"f0", "f1"}, keys...) {
			c.Get(r.ctx, Target{Replica: i, Resource: Things, Version: "v1", Key: r.key(name)}, "")
		}
		for _, l := range []Listing{{}, {Mode: "0"}, {Limit: 3}} {
			l.Replica, l.Resource, l.Version, l.Namespace = i, Things, "v1", r.ns
			c.List(r.ctx, l)
		}
		if r.extras["coins"] {
			c.List(r.ctx, Listing{Replica: i, Resource: Coins, Version: "v2", Namespace: r.ns})
		}
	}
	return nil
}

// sentinel is the last write.
func (r *run) sentinel(c *Client) (*history.Operation, error) {
	var o *history.Operation
	for n, end := 0, time.Now().Add(environment.Patience); time.Now().Before(end) && r.ctx.Err() == nil; n++ {
		t := Target{Replica: n % len(r.site.Environment.Replicas), Resource: Things, Version: "v1", Key: r.key(fmt.Sprintf("sentinel%d", n))}
		if o = c.Create(r.ctx, t, Traits{}); o.Outcome == history.Done {
			return o, nil
		}
		launch.Pause(r.ctx, 50*time.Millisecond)
	}
	return nil, fmt.Errorf("after the faults no replica accepts a write: %d %s %s", o.Code, o.Reason, o.Message)
}

// How long a watch and an informer may take, after everything has recovered, to see a write. A reflector of client-go that has failed several
// times waits up to 30 s, and as long again by chance, before it tries again.
const calm, calmOfInformers = 25 * time.Second, 75 * time.Second

// arrive waits until watchers and informers have seen the last write. A watcher that has not after a long time has stalled.
func (r *run) arrive(watchers []*watcher, informers []*informer, last *history.Operation) {
	for began := time.Now(); r.ctx.Err() == nil; launch.Pause(r.ctx, 5*time.Millisecond) {
		late, behind := lateWatches(r, watchers, last), lateInformers(informers, last)
		if len(late)+len(behind) == 0 {
			return
		}
		if waited := time.Since(began); len(late) > 0 && waited > calm || waited > calmOfInformers {
			r.rec.find("stalled watch", "%v after the faults these have not seen revision %d: %s", waited.Round(time.Second), last.Got.Revision, strings.Join(append(late, behind...), ", "))
			return
		}
	}
}

func lateWatches(r *run, watchers []*watcher, last *history.Operation) (late []string) {
	r.rec.with(func(*history.History) {
		for _, x := range watchers {
			if x.selector == "" && x.resource == Things && x.reached < last.Got.Revision {
				late = append(late, fmt.Sprintf("watch %d at replica %d (at %d)", x.id, x.replica, x.reached))
			}
		}
	})
	return late
}

func lateInformers(informers []*informer, last *history.Operation) (late []string) {
	for _, i := range informers {
		if !i.has(last.Key) {
			late = append(late, fmt.Sprintf("informer at replica %d", i.replica))
		}
	}
	return late
}

// complete derives what the log says.
func (r *run) complete() {
	h := r.rec.h
	slices.SortStableFunc(h.Operations, func(a, b history.Operation) int { return int(a.Call - b.Call) })
	for _, s := range r.rec.sessions {
		h.Sessions = append(h.Sessions, *s)
	}
	count := int64(0)
	for _, w := range h.Writes {
		ns := strings.Split(w.Key, "/")[1]
		switch ns {
		case r.ns + "-quota":
			switch {
			case w.Created:
				count++
			case w.Deleted:
				count--
			default:
				continue
			}
			if r.limited {
				h.Quotas = append(h.Quotas, history.Quota{Hard: quotaHard, Count: count, Revision: w.Revision})
			}
		case r.ns + "-gone":
			if r.goneAt > 0 && w.Revision > r.goneAt {
				r.rec.find("namespace", "the namespace %s was gone at revision %d, and %s was written at %d (deleted: %v)", ns, r.goneAt, w.Key, w.Revision, w.Deleted)
			}
		}
	}
}
