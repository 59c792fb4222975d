package garbagecollector

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/server/catalog/restmapping"
)

const (
	// attempts is how often a change is tried at once if others change the object
	// meanwhile. After that it has to wait.
	attempts = 5
	// orphanWorkers is how many dependents of an object are changed at a time.
	orphanWorkers = 8
)

// delete deletes an object as it has been read: if it has changed since, its
// references may have, and it is looked at again.
func (r *run) delete(ctx context.Context, place restmapping.ObjectKey, o *metav1.PartialObjectMetadata, policy metav1.DeletionPropagation) error {
	conditions := &metav1.Preconditions{UID: &o.UID}
	if o.ResourceVersion != "" {
		conditions.ResourceVersion = &o.ResourceVersion
	}
	err := r.resource(place).Delete(ctx, place.Name, metav1.DeleteOptions{Preconditions: conditions, PropagationPolicy: &policy})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		actions.WithLabelValues("deleted").Inc()
	}
	return err
}

// patch is a JSON merge patch of metadata, which all kinds understand. It applies
// to the object that has been read, and to no later state of it.
type patch struct {
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion"`
	*references
	*finalizers
}

// references and finalizers are null if there are none left.
type references struct {
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
}

type finalizers struct {
	Finalizers []string `json:"finalizers"`
}

func (r *run) patch(ctx context.Context, place restmapping.ObjectKey, o *metav1.PartialObjectMetadata, p patch, action string) error {
	p.UID, p.ResourceVersion = o.UID, o.ResourceVersion
	body, err := json.Marshal(map[string]patch{"metadata": p})
	if err != nil {
		return err
	}
	_, err = r.resource(place).Patch(ctx, place.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		actions.WithLabelValues(action).Inc()
	}
	return err
}

// disown leaves an object those references that lead somewhere.
func (r *run) disown(ctx context.Context, place restmapping.ObjectKey, o *metav1.PartialObjectMetadata, solid []metav1.OwnerReference) error {
	return r.patch(ctx, place, o, patch{references: &references{solid}}, "disowned")
}

// unblock clears blockOwnerDeletion of an object whose owners all wait for each other.
func (r *run) unblock(ctx context.Context, place restmapping.ObjectKey, o *metav1.PartialObjectMetadata) error {
	refs := slices.Clone(o.OwnerReferences)
	changed := false
	for i := range refs {
		if b := refs[i].BlockOwnerDeletion; b != nil && *b {
			no := false
			refs[i].BlockOwnerDeletion, changed = &no, true
		}
	}
	if !changed {
		return nil
	}
	return r.patch(ctx, place, o, patch{references: &references{refs}}, "unblocked")
}

// release removes a finalizer of an object that has waited for its dependents.
func (r *run) release(ctx context.Context, place restmapping.ObjectKey, o *metav1.PartialObjectMetadata, finalizer string) error {
	for n := 0; ; n++ {
		left := slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return f == finalizer })
		if len(left) == len(o.Finalizers) {
			return nil
		}
		if len(left) == 0 {
			left = nil
		}
		err := r.patch(ctx, place, o, patch{finalizers: &finalizers{left}}, "released")
		if !apierrors.IsConflict(err) || n == attempts {
			return err
		}
		if o, err = r.get(ctx, idOf(o.UID), place); err != nil || o == nil {
			return err
		}
	}
}

// orphanDependents removes the references of all dependents to an owner.
func (r *run) orphanDependents(ctx context.Context, owner id) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(orphanWorkers)
	for i, key := range r.graph.dependentsOf(owner) {
		group.Go(func() error {
			if err := r.orphanOne(ctx, i, key, owner); err != nil {
				return fmt.Errorf("dependent %s: %w", key, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (r *run) orphanOne(ctx context.Context, i id, key string, owner id) error {
	place, ok := r.config.Kinds.ByKey(key)
	if !ok || !place.Served() {
		return fmt.Errorf("no such kind is served")
	}
	for n := 0; ; n++ {
		o, err := r.get(ctx, i, place)
		if err != nil || o == nil {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(o.OwnerReferences), func(ref metav1.OwnerReference) bool { return idOf(ref.UID) == owner })
		if len(left) == len(o.OwnerReferences) {
			return nil
		}
		if len(left) == 0 {
			left = nil
		}
		err = r.patch(ctx, place, o, patch{references: &references{left}}, "orphaned")
		if !apierrors.IsConflict(err) || n == attempts {
			return err
		}
	}
}
