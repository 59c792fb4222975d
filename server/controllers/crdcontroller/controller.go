package crdcontroller

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/controllers/queue"
)

// Statuses writes the status of CRDs.
type Statuses interface {
	// UpdateStatus has mutate change the CRD as it is stored now, with its
	// resourceVersion, and stores the result, unless it was changed meanwhile; then
	// it calls mutate again or fails. It returns mutate's error as it is. mutate
	// changes the status and removes finalizers; a CRD that is being deleted and
	// loses its last finalizer is gone.
	UpdateStatus(ctx context.Context, name string, mutate func(o *object.Object) error) error
}

// Options are what a controller can be given besides.
type Options struct {
	// Barrier returns when every process that serves requests knows the
	// CRD as entry has it. Before it has, the CRD is not
	// established, no generation counts as observed, and instances are not
	// counted as gone. The catalog of this process knows by itself. If it fails
	// it is tried again.
	Barrier func(ctx context.Context, entry *catalog.Entry) error
	// Workers is how many CRDs are settled at a time, and how many are
	// cleaned up; 4 if it is 0.
	Workers int
}

// Controller keeps the status of all CRDs.
type Controller struct {
	catalog   *catalog.Catalog
	statuses  Statuses
	instances Instances
	barrier   func(ctx context.Context, entry *catalog.Entry) error
	workers   int
	now       func() time.Time

	// Deleting instances takes as long as it takes; new CRDs do not
	// wait for it.
	settling, cleaning queue.Queue[string]

	// groups serialize the decisions about names that more than one CRD
	// of a group asks for.
	groups [64]sync.Mutex
	seed   maphash.Seed

	mu       sync.Mutex
	cleanups map[string]*cleanup
}

// New returns a controller of the CRDs in a catalog.
func New(c *catalog.Catalog, statuses Statuses, instances Instances, o Options) *Controller {
	if o.Barrier == nil {
		o.Barrier = func(context.Context, *catalog.Entry) error { return nil }
	}
	if o.Workers == 0 {
		o.Workers = 4
	}
	return &Controller{
		catalog: c, statuses: statuses, instances: instances, barrier: o.Barrier, workers: o.Workers, now: time.Now,
		settling: queue.New[string]("definitions_settling", 5*time.Millisecond, lastRetry),
		cleaning: queue.New[string]("definitions_cleaning", firstPoll, lastRetry),
		seed:     maphash.MakeSeed(),
		cleanups: map[string]*cleanup{},
	}
}

// lastRetry is the longest time between two attempts.
const lastRetry = 30 * time.Second

// Run works until the context ends, whose error it returns. It is called once.
func (c *Controller) Run(ctx context.Context) error {
	select {
	case <-c.catalog.Synced(): // whether a name is taken depends on all CRDs
	case <-ctx.Done():
		return ctx.Err()
	}
	c.catalog.Subscribe(c.notice)
	failed := func(name string, err error) {
		klog.FromContext(ctx).V(2).Info("Failed to update the status of a CRD, retrying", "name", name, "reason", err.Error())
	}
	var workers sync.WaitGroup
	for range c.workers {
		workers.Go(func() { queue.Work(ctx, c.settling, c.settle, failed) })
		workers.Go(func() { queue.Work(ctx, c.cleaning, c.clean, failed) })
	}
	<-ctx.Done()
	c.settling.ShutDown()
	c.cleaning.ShutDown()
	workers.Wait()
	return ctx.Err()
}

// notice queues what a change may concern: the CRD itself, and those
// that wait for a name which it had or was asking for.
func (c *Controller) notice(old, updated *catalog.Entry) {
	if updated != nil && updated.Loan == nil { // the status of one that is lent is for its owner
		switch {
		case !updated.Deleting && !settled(updated):
			c.settling.Add(updated.Name)
		case updated.Deleting && renewed(old, updated):
			c.cleaning.Add(updated.Name)
		}
	}
	if old == nil || updated != nil && !waiting(old) && !updated.Deleting &&
		old.Names.Equal(&updated.Names) && old.Accepted.Equal(&updated.Accepted) {
		return
	}
	c.catalog.View(old.Group, func(claims catalog.Claims) {
		for _, s := range []catalog.Space{catalog.Resources, catalog.Kinds} {
			for _, names := range []*catalog.Names{&old.Names, &old.Accepted} {
				for name := range names.All(s) {
					for _, x := range claims.On(s, name) {
						if x.Name != old.Name && waiting(x) {
							c.settling.Add(x.Name)
						}
					}
				}
			}
		}
	})
}

// settled reports, without unpacking it, whether a CRD has the status
// that it is to have. The approval of protected groups is an annotation, which
// entries do not show.
func settled(e *catalog.Entry) bool {
	return e.ObservedGeneration == e.Generation && e.NamesAccepted && e.Established && !waiting(e) && !protected(e.Group)
}

// errStale says that a CRD is no longer the one that was decided about.
type errStale struct{ revision string }

func (e *errStale) Error() string { return "the CRD has changed, its revision is " + e.revision }

// settle gives a CRD the status that it is to have.
func (c *Controller) settle(ctx context.Context, name string) error {
	for {
		e := c.catalog.Get(name)
		if e == nil || e.Deleting || settled(e) {
			return nil
		}
		err := c.settleEntry(ctx, e)
		stale := (*errStale)(nil)
		if !errors.As(err, &stale) {
			return ignoreGone(err)
		}
		if err := c.catchUp(ctx, stale.revision); err != nil {
			return err
		}
		if c.catalog.Get(name) == e {
			return stale // and yet it has not changed: try again later
		}
	}
}

func (c *Controller) settleEntry(ctx context.Context, e *catalog.Entry) error {
	d, err := unpack(e)
	if err != nil {
		return err
	}
	status, contended := c.next(d)
	if equality.Semantic.DeepEqual(d.status, status) {
		return nil
	}
	if status.ObservedGeneration != d.status.ObservedGeneration || isTrue(status, v1.Established) && !isTrue(d.status, v1.Established) {
		if err := c.pass(ctx, e); err != nil {
			return err
		}
	}
	if !contended {
		return c.write(ctx, e, status)
	}
	group := &c.groups[maphash.String(c.seed, e.Group)%uint64(len(c.groups))]
	group.Lock()
	defer group.Unlock()
	if status, _ = c.next(d); equality.Semantic.DeepEqual(d.status, status) {
		return nil
	}
	if err := c.write(ctx, e, status); err != nil {
		return err
	}
	// The next decision is to see this one.
	return c.awaitChange(ctx, e)
}

// pass waits at the barrier, but not for ever: others want to pass, too.
func (c *Controller) pass(ctx context.Context, e *catalog.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	if err := c.barrier(ctx, e); err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	return nil
}

// WaitFor returns when the status of a CRD speaks of it as it has just
// been written, or it is being deleted.
func (c *Controller) WaitFor(ctx context.Context, o *object.Object) error {
	revision, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return fmt.Errorf("resourceVersion: %w", err)
	}
	if err := c.catalog.WaitFor(ctx, revision); err != nil {
		return err
	}
	for {
		seen := c.catalog.Revision()
		e := c.catalog.Get(o.GetName())
		if e == nil || e.UID != o.GetUID() || e.Deleting || e.ObservedGeneration >= o.GetGeneration() {
			return nil
		}
		if err := c.catalog.WaitFor(ctx, seen+1); err != nil {
			return err
		}
	}
}

func isTrue(status *v1.CustomResourceDefinitionStatus, t v1.CustomResourceDefinitionConditionType) bool {
	c := find(status, t)
	return c != nil && c.Status == v1.ConditionTrue
}

func (c *Controller) next(d *decoded) (status *v1.CustomResourceDefinitionStatus, contended bool) {
	c.catalog.View(d.entry.Group, func(claims catalog.Claims) {
		status, contended = next(claims, d, c.now())
	})
	return status, contended
}

// write stores a status that was decided for an entry, if the CRD still
// is that.
func (c *Controller) write(ctx context.Context, e *catalog.Entry, status *v1.CustomResourceDefinitionStatus) error {
	return c.statuses.UpdateStatus(ctx, e.Name, func(o *object.Object) error {
		if o.GetResourceVersion() != e.ResourceVersion || o.GetUID() != e.UID {
			return &errStale{o.GetResourceVersion()}
		}
		SetStatus(o, status)
		return nil
	})
}

// catchUpTime is how long the catalog, and those of others, may take to show
// what has been written.
const catchUpTime = 10 * time.Second

// catchUp waits until the catalog shows a resourceVersion.
func (c *Controller) catchUp(ctx context.Context, resourceVersion string) error {
	revision, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return fmt.Errorf("resourceVersion: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	return c.catalog.WaitFor(ctx, revision)
}

// awaitChange waits until the catalog has something else than e.
func (c *Controller) awaitChange(ctx context.Context, e *catalog.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	for {
		seen := c.catalog.Revision()
		if c.catalog.Get(e.Name) != e {
			return nil
		}
		if err := c.catalog.WaitFor(ctx, seen+1); err != nil {
			return err
		}
	}
}

// ignoreGone drops the errors after which a CRD needs no more work, or
// is going to be queued by a change that is on its way.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || storage.IsNotFound(err) {
		return nil
	}
	return err
}
