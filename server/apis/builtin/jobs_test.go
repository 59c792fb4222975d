package builtin

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
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
