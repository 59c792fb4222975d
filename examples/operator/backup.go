package main

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Reconciler runs one Job for every Backup.
type Reconciler struct{ client.Client }

// Reconcile creates the Job of a Backup, and writes its name into the status.
//
// The name of the Job follows from the Backup. So it does not matter whether the cache is behind, or whether the answer
// to an earlier attempt was lost: the second Create fails with AlreadyExists, and that is as good.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	backup := newBackup()
	if err := r.Get(ctx, req.NamespacedName, backup); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if jobOf(backup) != "" || backup.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	job := newJob(backup)
	job.Name = backup.GetName()
	if err := controllerutil.SetControllerReference(backup, job, r.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.Create(ctx, job); err != nil && !apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.note(ctx, backup, job.Name)
}

// note writes the name of the Job into the status. A conflict is returned, so that the queue tries again.
func (r *Reconciler) note(ctx context.Context, backup *unstructured.Unstructured, job string) error {
	if err := unstructured.SetNestedField(backup.Object, job, "status", "job"); err != nil {
		return err
	}
	return r.Status().Update(ctx, backup)
}

func newBackup() *unstructured.Unstructured {
	backup := &unstructured.Unstructured{}
	backup.SetAPIVersion("example.com/v1")
	backup.SetKind("Backup")
	return backup
}

func jobOf(backup *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(backup.Object, "status", "job")
	return name
}

// newJob returns the Job of a Backup, without a name.
func newJob(backup *unstructured.Unstructured) *batchv1.Job {
	source, _, _ := unstructured.NestedString(backup.Object, "spec", "source")
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: backup.GetNamespace()},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "save", Image: "registry.example.com/save", Args: []string{source}}},
		}}},
	}
}
