package offline

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
)

// ShareJobLabels gives a Job without labels those of its pods. It reports whether it has
// changed the Job. kube-apiserver has both use the same map, so that a new Job has the
// labels, too, that the server adds for its pods: see [CopyJobLabels].
func ShareJobLabels(job *batchv1.Job) bool {
	if len(job.Labels) > 0 {
		return false
	}
	job.Labels = job.Spec.Template.Labels
	return len(job.Labels) > 0
}

// CopyJobLabels gives a new Job that shares labels with its pods those that were added.
func CopyJobLabels(job *batchv1.Job) { job.Labels = maps.Clone(job.Spec.Template.Labels) }
