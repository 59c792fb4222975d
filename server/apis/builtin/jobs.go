package builtin

import (
	"context"
	"maps"
	"reflect"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// addJobs gives Jobs without labels those of their pods. kube-apiserver has both use the
// same map, so that a new Job has the labels, too, that the server adds for its pods.
func addJobs(r *Resource) {
	fill, create := r.Strategy.fill, r.Strategy.Create
	r.Strategy.fill = func(obj runtime.Object) bool {
		changed := fill(obj)
		if job := obj.(*batchv1.Job); len(job.Labels) == 0 {
			job.Labels = job.Spec.Template.Labels
			changed = changed || len(job.Labels) > 0
		}
		return changed
	}
	r.Strategy.Create = func(ctx context.Context, obj runtime.Object) {
		job := obj.(*batchv1.Job)
		same := reflect.ValueOf(job.Labels).Pointer() == reflect.ValueOf(job.Spec.Template.Labels).Pointer()
		create(ctx, obj)
		if same {
			job.Labels = maps.Clone(job.Spec.Template.Labels)
		}
	}
}
