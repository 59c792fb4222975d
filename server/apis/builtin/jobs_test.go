package builtin

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestJobsHaveTheLabelsOfTheirPods(t *testing.T) {
	i := 0
	list := Data()
	for list[i].Plural != "jobs" {
		i++
	}
	jobs := list[i].Strategy
	own := map[string]string{"app": "a"}
	for name, labels := range map[string]map[string]string{"none": nil, "equal": {"app": "a"}} {
		job := &batchv1.Job{}
		job.Name, job.UID, job.Labels, job.Spec.Template.Labels = "j", "u", labels, own
		jobs.fill(job)
		jobs.Create(t.Context(), job)
		if job.Spec.Template.Labels["job-name"] != "j" {
			t.Errorf("%s: the pods have the labels %v", name, job.Spec.Template.Labels)
		}
		if got := job.Labels["job-name"] == "j"; got != (labels == nil) {
			t.Errorf("%s: the Job has the labels %v", name, job.Labels)
		}
	}
}

// Apply copies a Job after its defaults were set. What the applier owns tells whether the
// labels are defaults.
func TestLabelsOfAppliedJobs(t *testing.T) {
	for fields, want := range map[string]bool{
		`{"f:spec":{}}`: true,
		`{"f:metadata":{"f:annotations":{"f:a":{}}}}`:     true,
		`{"f:metadata":{"f:labels":{}}}`:                  true,
		`{"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`: false,
		`{"f:metadata":{"f:labels":[]}}`:                  false,
		`{"f:metadata":null}`:                             true,
		`nonsense`:                                        false,
	} {
		job := &batchv1.Job{}
		job.Labels, job.Spec.Template.Labels = map[string]string{"app": "a"}, map[string]string{"app": "a"}
		job.ManagedFields = []metav1.ManagedFieldsEntry{{Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)}}
		if got := defaultedByApply(job); got != want {
			t.Errorf("%s: %t", fields, got)
		}
	}
}
