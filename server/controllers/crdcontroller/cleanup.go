package crdcontroller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
)

// Instances deletes the objects of custom resources.
type Instances interface {
	// DeleteInstances asks for the deletion of all objects of a resource, in
	// pages, and returns how many are still there: those that others have to
	// finalize. It is called again until there are none. An error that is a
	// *ListError says that it is not known what there is.
	DeleteInstances(ctx context.Context, entry *catalog.Entry) (remaining int, err error)
}

// ListError is the error of DeleteInstances if it could not find out which
// instances there are.
type ListError struct{ Err error }

// Error implements error.
func (e *ListError) Error() string { return e.Err.Error() }

// Unwrap returns what went wrong.
func (e *ListError) Unwrap() error { return e.Err }

const (
	// The time between two looks at what remains grows from the first to the
	// last: most resources are empty at once, and some wait for finalizers.
	firstPoll, lastPoll = 50 * time.Millisecond, 5 * time.Second
	// patience is how long a deletion takes before the status says that it
	// takes long, and for how long a single attempt may go on.
	patience = time.Minute
)

// overlapping are resources of the server itself. A CRD of the same name would share
// their keys: deleting the CRD must not delete them.
var overlapping = map[schema.GroupResource]bool{
	{Group: "apiregistration.k8s.io", Resource: "apiservices"}:             true,
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}: true,
}

// cleanup is how far the deletion of a CRD's instances is, in this process. A new process
// begins anew.
type cleanup struct {
	uid   types.UID
	since time.Time
	polls int
}

// renewed reports whether a CRD that is being deleted has to be processed now. The
// controller's own writes must not hasten it.
func renewed(old, updated *catalog.Entry) bool {
	return old == nil || !old.Deleting || old.Generation != updated.Generation || old.Established != updated.Established
}

// clean takes a deleted CRD one step further: it deletes the instances
// and, when there are none, the finalizer that was waiting for that.
func (c *Controller) clean(ctx context.Context, name string) error {
	e := c.catalog.Get(name)
	if e == nil || !e.Deleting || !slices.Contains(e.Finalizers, v1.CustomResourceCleanupFinalizer) {
		c.forget(name)
		return nil
	}
	switch {
	case overlapping[schema.GroupResource{Group: e.Group, Resource: e.Names.Plural}]:
		return c.finish(ctx, e, "OverlappingBuiltInResource", "instances overlap with built-in resources in storage")
	case !e.Established:
		return c.finish(ctx, e, "NeverEstablished", "resource was never established")
	}
	progress := c.progress(e)
	if progress.polls == 0 {
		if err := c.begin(ctx, e); err != nil {
			return ignoreGone(err)
		}
		if e = c.catalog.Get(name); e == nil {
			return nil
		}
		if err := c.pass(ctx, e); err != nil {
			return err
		}
	}
	remaining, err := c.deleteInstances(ctx, e)
	switch {
	case err != nil:
		return err
	case remaining == 0:
		return c.finish(ctx, e, "InstanceDeletionCompleted", "removed all instances")
	}
	reason, message := "InstanceDeletionInProgress", "CustomResource deletion is in progress"
	if c.now().Sub(progress.since) > patience {
		reason, message = "InstanceDeletionCheck", fmt.Sprintf("could not confirm zero CustomResources remaining: %d remain", remaining)
	}
	if err := c.terminating(ctx, e, reason, message); err != nil {
		return ignoreGone(err)
	}
	c.cleaning.AddAfter(name, min(firstPoll<<min(progress.polls, 20), lastPoll))
	progress.polls++
	return nil
}

// progress returns how far the cleaning up of a CRD is. Only the worker
// that has its name from the queue uses the result.
func (c *Controller) progress(e *catalog.Entry) *cleanup {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.cleanups[e.Name]
	if p == nil || p.uid != e.UID {
		p = &cleanup{uid: e.UID, since: c.now()}
		c.cleanups[e.Name] = p
	}
	return p
}

func (c *Controller) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cleanups, name)
}

// begin makes sure that all replicas see that the CRD is terminating, so that no more
// instances are created, and that deletion has begun.
func (c *Controller) begin(ctx context.Context, e *catalog.Entry) error {
	data, err := e.JSON()
	if err != nil {
		return err
	}
	o, err := object.FromJSON(data)
	if err != nil {
		return err
	}
	status, err := StatusOf(o)
	if err != nil {
		return err
	}
	if t := find(status, v1.Terminating); t != nil && t.Status == v1.ConditionTrue && t.Reason != "InstanceDeletionPending" {
		return nil // another process has begun before
	}
	err = c.terminating(ctx, e, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
	if err != nil {
		return err
	}
	return c.awaitChange(ctx, e)
}

// deleteInstances makes one attempt, and has the status say if it failed.
func (c *Controller) deleteInstances(ctx context.Context, e *catalog.Entry) (int, error) {
	attempt, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	remaining, err := c.instances.DeleteInstances(attempt, e)
	if err == nil {
		return remaining, nil
	}
	if ctx.Err() != nil {
		return 0, err // this process is ending: that says nothing about the instances
	}
	reason, message := "InstanceDeletionFailed", "could not issue all deletes: "+err.Error()
	listing := (*ListError)(nil)
	switch {
	case attempt.Err() != nil:
		reason, message = "InstanceDeletionCheck", "could not confirm zero CustomResources remaining: "+attempt.Err().Error()
	case errors.As(err, &listing):
		message = "could not list instances: " + err.Error()
	}
	return 0, errors.Join(err, ignoreGone(c.terminating(ctx, e, reason, message)))
}

// errUnchanged keeps a CRD from being written.
var errUnchanged = errors.New("nothing to change")

// terminating writes the condition of a CRD whose deletion goes on.
func (c *Controller) terminating(ctx context.Context, e *catalog.Entry, reason, message string) error {
	err := c.update(ctx, e, v1.CustomResourceDefinitionCondition{
		Type: v1.Terminating, Status: v1.ConditionTrue, Reason: reason, Message: shorten(message),
	}, func(*object.Object) {})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// finish writes why there is nothing left to be deleted, and removes the
// finalizer.
func (c *Controller) finish(ctx context.Context, e *catalog.Entry, reason, message string) error {
	err := c.update(ctx, e, v1.CustomResourceDefinitionCondition{
		Type: v1.Terminating, Status: v1.ConditionFalse, Reason: reason, Message: message,
	}, func(o *object.Object) {
		o.SetFinalizers(slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == v1.CustomResourceCleanupFinalizer }))
	})
	if err = ignoreGone(err); err == nil || errors.Is(err, errUnchanged) {
		c.forget(e.Name)
		return nil
	}
	return err
}

// update changes a CRD that is being cleaned up, whatever else has
// changed about it. If it is another one by now there is nothing to do.
func (c *Controller) update(ctx context.Context, e *catalog.Entry, condition v1.CustomResourceDefinitionCondition, more func(*object.Object)) error {
	return c.statuses.UpdateStatus(ctx, e.Name, func(o *object.Object) error {
		if o.GetUID() != e.UID || o.GetDeletionTimestamp().IsZero() || !slices.Contains(o.GetFinalizers(), v1.CustomResourceCleanupFinalizer) {
			return errUnchanged
		}
		status, err := StatusOf(o)
		if err != nil {
			return err
		}
		before := status.DeepCopy()
		SetCondition(status, condition, o.GetGeneration(), c.now())
		finalizers := len(o.GetFinalizers())
		more(o)
		if equality.Semantic.DeepEqual(before, status) && len(o.GetFinalizers()) == finalizers {
			return errUnchanged
		}
		SetStatus(o, status)
		return nil
	})
}
