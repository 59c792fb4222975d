package builtin

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/crd/offline"
)

// addJobs gives Jobs without labels those of their pods.
func addJobs(r *Resource) {
	fill, create := r.Strategy.fill, r.Strategy.Create
	r.Strategy.fill = func(obj runtime.Object) bool {
		changed := fill(obj)
		return offline.ShareJobLabels(obj.(*batchv1.Job)) || changed
	}
	r.Strategy.Create = func(ctx context.Context, obj runtime.Object) {
		job := obj.(*batchv1.Job)
		same := reflect.ValueOf(job.Labels).Pointer() == reflect.ValueOf(job.Spec.Template.Labels).Pointer() || defaultedByApply(job)
		create(ctx, obj)
		if same {
			offline.CopyJobLabels(job)
		}
	}
}

// defaultedByApply reports whether a new Job was applied without labels. Apply copies the
// object after its defaults were set, so that the labels are no longer the same map. The
// applier does not own them.
func defaultedByApply(job *batchv1.Job) bool {
	if len(job.ManagedFields) != 1 || job.ManagedFields[0].Operation != metav1.ManagedFieldsOperationApply || !maps.Equal(job.Labels, job.Spec.Template.Labels) {
		return false
	}
	var owned struct {
		Metadata struct {
			Labels map[string]json.RawMessage `json:"f:labels"`
		} `json:"f:metadata"`
	}
	fields := job.ManagedFields[0].FieldsV1
	if fields == nil || json.Unmarshal(fields.GetRawBytes(), &owned) != nil {
		return false
	}
	delete(owned.Metadata.Labels, ".")
	return len(owned.Metadata.Labels) == 0 // it may own an empty map
}
