package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientmetadata "k8s.io/client-go/metadata"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/catalog/restmapping"
)

// check looks at an object and its owners as they are now, and does what is to
// be done: nothing, delete it, remove references that lead nowhere, or let it go
// that has waited for its dependents.
func (r *run) check(ctx context.Context, i id, v view, place restmapping.ObjectKey) error {
	if v.state&deleting != 0 && !v.state.waits(foreground) {
		return nil // its end will be seen
	}
	latest, err := r.get(ctx, i, place)
	if err != nil || latest == nil {
		return err // gone: its end will be seen
	}
	if v.state.waits(foreground) {
		return r.waiting(ctx, i, place, latest)
	}
	if len(latest.OwnerReferences) == 0 {
		return nil
	}
	found, err := r.classify(ctx, place, latest)
	if errors.Is(err, errImpossible) {
		return nil // and will never be otherwise
	}
	if err != nil {
		return err
	}
	switch {
	case len(found.solid) == len(latest.OwnerReferences):
		return nil
	case len(found.solid) > 0:
		return r.disown(ctx, place, latest, found.solid)
	case found.waiting && v.dependents:
		return r.delete(ctx, place, latest, metav1.DeletePropagationForeground)
	}
	return r.delete(ctx, place, latest, policyOf(latest))
}

// policyOf is how an object is deleted whose owners are gone: as its finalizers
// ask for.
func policyOf(o *metav1.PartialObjectMetadata) metav1.DeletionPropagation {
	switch {
	case slices.Contains(o.Finalizers, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(o.Finalizers, metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

func (r *run) resource(p restmapping.ObjectKey) clientmetadata.ResourceInterface {
	if p.Namespaced {
		return r.config.Client.Resource(p.Resource).Namespace(p.Namespace)
	}
	return r.config.Client.Resource(p.Resource)
}

// get reads an object. It returns nil if the object does not exist or has another UID.
func (r *run) get(ctx context.Context, i id, place restmapping.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	o, err := r.resource(place).Get(ctx, place.Name, metav1.GetOptions{})
	if absent(err, place.Name) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if idOf(o.UID) != i {
		return nil, nil
	}
	return o, nil
}

// absent reports whether an answer says that there is no object of that name.
// There being no such resource, at the moment, says nothing about its objects.
func absent(err error, name string) bool {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	if details == nil || details.Name != name {
		return false
	}
	return !slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeUnexpectedServerResponse })
}

// found are the owners of an object: those that exist and stay; and whether there
// is one that waits for its dependents. The others do not exist.
type found struct {
	solid   []metav1.OwnerReference
	waiting bool
}

// errImpossible is for an object without a namespace whose owner would have to have one.
var errImpossible = errors.New("cluster-scoped objects cannot have owners in a namespace")

// classify asks for the owners of an object.
func (r *run) classify(ctx context.Context, place restmapping.ObjectKey, o *metav1.PartialObjectMetadata) (f found, err error) {
	for i := range o.OwnerReferences {
		ref := &o.OwnerReferences[i]
		owner, err := r.owner(ctx, place, o, ref)
		switch {
		case err != nil:
			return f, err
		case owner == nil:
		case owner.DeletionTimestamp != nil && slices.Contains(owner.Finalizers, metav1.FinalizerDeleteDependents):
			f.waiting = true
		default:
			f.solid = append(f.solid, *ref)
		}
	}
	return f, nil
}

// owner returns the object that a reference is to, or nil if it does not exist.
func (r *run) owner(ctx context.Context, place restmapping.ObjectKey, o *metav1.PartialObjectMetadata, ref *metav1.OwnerReference) (*metav1.PartialObjectMetadata, error) {
	i := idOf(ref.UID)
	kind, ok := r.config.Kinds.ByOwner(ref.APIVersion, ref.Kind)
	if !ok || !kind.Served() {
		// The owner may exist, so it counts as existing.
		return nil, fmt.Errorf("owner %s %q: no such kind is served", ref.Kind+"."+ref.APIVersion, ref.Name)
	}
	if kind.Namespaced && !place.Namespaced {
		r.complain(ctx, place, o, ref)
		return nil, errImpossible
	}
	if r.graph.gone(i) {
		return nil, nil
	}
	at := restmapping.ObjectKey{Kind: kind, Namespace: place.Namespace, Name: ref.Name}
	owner, err := r.get(ctx, i, at)
	if err != nil {
		return nil, fmt.Errorf("owner %s %q: %w", kind, ref.Name, err)
	}
	if owner != nil {
		r.graph.found(i, kind.Key(place.Namespace, ref.Name))
		return owner, nil
	}
	if kind.Namespaced && r.graph.elsewhere(i, kind.Key(place.Namespace, ref.Name)) {
		r.complain(ctx, place, o, ref)
	}
	return nil, nil
}

// complain tells of a reference that cannot be.
func (r *run) complain(ctx context.Context, place restmapping.ObjectKey, o *metav1.PartialObjectMetadata, ref *metav1.OwnerReference) {
	klog.FromContext(ctx).Info("Owner reference refers to an object in another namespace", "object", klog.KObj(o), "resource", place.Kind.String(), "ownerKind", ref.Kind, "ownerName", ref.Name)
	if r.events == nil {
		return
	}
	about := &corev1.ObjectReference{
		Kind: place.Kind.Kind, APIVersion: place.APIVersion(), Namespace: place.Namespace, Name: place.Name, UID: o.UID,
	}
	r.events.Eventf(about, corev1.EventTypeWarning, "OwnerRefInvalidNamespace", "ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
		ref.APIVersion, ref.Kind, place.Namespace, ref.Name, ref.UID, place.Namespace)
}

// waiting is for an object that waits for its dependents: they are looked at, and
// if there are none any more, it may go. One that waits for itself stops blocking others.
func (r *run) waiting(ctx context.Context, i id, place restmapping.ObjectKey, o *metav1.PartialObjectMetadata) error {
	blocked, cycle := r.graph.blockers(i)
	if !blocked {
		return r.release(ctx, place, o, metav1.FinalizerDeleteDependents)
	}
	if cycle {
		return r.unblock(ctx, place, o)
	}
	return nil
}

// orphan removes the references to an object that waits for it, and then lets it go.
func (r *run) orphan(ctx context.Context, i id, v view, place restmapping.ObjectKey) error {
	if !v.state.waits(orphaning) {
		return nil
	}
	o, err := r.get(ctx, i, place)
	if err != nil || o == nil {
		return err
	}
	if err := r.orphanDependents(ctx, i); err != nil {
		return err
	}
	return r.release(ctx, place, o, metav1.FinalizerOrphanDependents)
}
