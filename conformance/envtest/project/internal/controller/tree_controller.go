package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	orchardv1 "example.com/orchard/api/v1"
)

const (
	// uproot is the finalizer: a tree does not go without leaving a stump.
	uproot = "orchard.example.com/uproot"
	// conditionLabelled is that the ConfigMap of a tree says what the tree is.
	conditionLabelled = "Labelled"
)

// TreeReconciler keeps a label for every tree.
type TreeReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// +kubebuilder:rbac:groups=orchard.example.com,resources=trees,verbs=get;list;watch;update
// +kubebuilder:rbac:groups=orchard.example.com,resources=trees/status,verbs=update
// +kubebuilder:rbac:groups=orchard.example.com,resources=trees/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update

// Reconcile brings the label of a tree up to date.
func (r *TreeReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	tree := &orchardv1.Tree{}
	if err := r.Get(ctx, req.NamespacedName, tree); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !tree.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.fell(ctx, tree)
	}
	if controllerutil.AddFinalizer(tree, uproot) {
		if err := r.Update(ctx, tree); err != nil {
			return ctrl.Result{}, err
		}
	}
	label := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: tree.Namespace, Name: tree.Name + "-label"}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, label, func() error {
		label.Data = map[string]string{
			"variety": tree.Spec.Variety,
			"form":    tree.Spec.Form,
			"height":  fmt.Sprintf("%d cm", tree.Spec.HeightCentimetres),
		}
		return controllerutil.SetControllerReference(tree, label, r.Scheme)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	tree.Status.ObservedGeneration, tree.Status.Label = tree.Generation, label.Name
	meta.SetStatusCondition(&tree.Status.Conditions, metav1.Condition{
		Type: conditionLabelled, Status: metav1.ConditionTrue, Reason: "Written", Message: "the label is up to date", ObservedGeneration: tree.Generation,
	})
	return ctrl.Result{}, r.Status().Update(ctx, tree)
}

// fell leaves a stump, and lets the tree go.
func (r *TreeReconciler) fell(ctx context.Context, tree *orchardv1.Tree) error {
	if !controllerutil.ContainsFinalizer(tree, uproot) {
		return nil
	}
	stump := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: tree.Namespace, Name: tree.Name + "-stump"},
		Data:       map[string]string{"variety": tree.Spec.Variety},
	}
	if err := r.Create(ctx, stump); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	controllerutil.RemoveFinalizer(tree, uproot)
	return client.IgnoreNotFound(r.Update(ctx, tree))
}

// SetupWithManager has the manager run the reconciler.
func (r *TreeReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&orchardv1.Tree{}).Owns(&corev1.ConfigMap{}).Named("tree").Complete(r)
}
