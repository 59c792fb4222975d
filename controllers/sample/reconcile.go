package main

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/espalier-dev/espalier/controllers/sample/v1"
)

const (
	finalizer = "garden.example.com/uproot"
	trellis   = "garden.example.com/trellis" // label with the name of the owner
)

// A reconciler has a ConfigMap for each row of a trellis, and none for others.
type reconciler struct {
	client.Client
	events events.EventRecorder
}

func (r *reconciler) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&v1.Trellis{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile brings one trellis to what its spec says.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var t v1.Trellis
	if err := r.Get(ctx, request.NamespacedName, &t); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !t.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.uproot(ctx, &t)
	}
	if controllerutil.AddFinalizer(&t, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &t)
	}
	rows, err := r.plant(ctx, &t)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, &t, rows)
}

// plant applies the ConfigMaps of the rows and removes those of rows that are no more.
func (r *reconciler) plant(ctx context.Context, t *v1.Trellis) (int32, error) {
	for row := range t.Spec.Size.Rows {
		owner := metaapply.OwnerReference().WithAPIVersion(v1.Version.String()).WithKind("Trellis").
			WithName(t.Name).WithUID(t.UID).WithController(true).WithBlockOwnerDeletion(true)
		config := coreapply.ConfigMap(rowName(t, row), t.Namespace).
			WithLabels(map[string]string{trellis: t.Name}).WithOwnerReferences(owner).
			WithData(map[string]string{"plant": t.Spec.Plant, "columns": strconv.Itoa(int(t.Spec.Size.Columns))})
		if err := r.Apply(ctx, config, client.FieldOwner("trellis"), client.ForceOwnership); err != nil {
			return 0, err
		}
	}
	var have corev1.ConfigMapList
	if err := r.List(ctx, &have, client.InNamespace(t.Namespace), client.MatchingLabels{trellis: t.Name}); err != nil {
		return 0, err
	}
	wanted := map[string]bool{}
	for row := range t.Spec.Size.Rows {
		wanted[rowName(t, row)] = true
	}
	for i := range have.Items {
		if !wanted[have.Items[i].Name] {
			if err := r.Delete(ctx, &have.Items[i]); client.IgnoreNotFound(err) != nil {
				return 0, err
			}
		}
	}
	return t.Spec.Size.Rows, nil
}

func rowName(t *v1.Trellis, row int32) string { return fmt.Sprintf("%s-row-%d", t.Name, row) }

// report writes the status.
func (r *reconciler) report(ctx context.Context, t *v1.Trellis, rows int32) error {
	before := t.DeepCopyObject().(*v1.Trellis)
	t.Status.ObservedGeneration, t.Status.Rows = t.Generation, rows
	apimeta.SetStatusCondition(&t.Status.Conditions, metav1.Condition{
		Type: v1.Ready, Status: metav1.ConditionTrue, Reason: "Planted", ObservedGeneration: t.Generation,
		Message: fmt.Sprintf("%d rows of %s", rows, t.Spec.Plant),
	})
	return r.Status().Patch(ctx, t, client.MergeFrom(before))
}

// uproot says goodbye and lets the trellis go; the collector removes what it owns.
func (r *reconciler) uproot(ctx context.Context, t *v1.Trellis) error {
	if !controllerutil.RemoveFinalizer(t, finalizer) {
		return nil
	}
	r.events.Eventf(t, nil, corev1.EventTypeNormal, "Uprooted", "Uproot", "%s is gone", t.Spec.Plant)
	return r.Update(ctx, t)
}
