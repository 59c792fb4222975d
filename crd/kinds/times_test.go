package kinds

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Times that text cannot have come by protobuf and from other time zones. They do not stop
// an object from getting its defaults.
func TestTimesBeyondText(t *testing.T) {
	for at, want := range map[time.Time]time.Time{
		time.Unix(1e12, 0):  lastTime,
		time.Unix(-1e12, 0): firstTime,
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("west", -3600)): lastTime,
		time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC):                           time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC),
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{LastTransitionTime: metav1.NewTime(at)}}}}
		pod.CreationTimestamp = metav1.NewTime(at)
		pod.Labels = map[string]string{"time": "33658-09-27T01:46:40Z"}
		Assign(Tree(pod), pod)
		if !pod.CreationTimestamp.Time.Equal(want) || !pod.Status.Conditions[0].LastTransitionTime.Time.Equal(want) || pod.Labels["time"] != "33658-09-27T01:46:40Z" {
			t.Errorf("%v: %v", at, pod)
		}
		micro := metav1.NewMicroTime(at)
		lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &micro}}
		Assign(Tree(lease), lease)
		if !lease.Spec.RenewTime.Time.Equal(want) {
			t.Errorf("%v: %v", at, lease.Spec.RenewTime)
		}
	}
}

// A time that can be read stays, even if another one in the object cannot.
func TestTimesBesideOthers(t *testing.T) {
	known := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{LastTransitionTime: metav1.NewTime(time.Unix(1e12, 0))}}}}
	pod.CreationTimestamp = metav1.NewTime(known)
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	tree := Tree(pod)
	if tree["metadata"].(map[string]any)["managedFields"] != nil || len(pod.ManagedFields) != 1 {
		t.Errorf("%v, %v", tree["metadata"], pod.ManagedFields)
	}
	Assign(tree, pod)
	if !pod.CreationTimestamp.Time.Equal(known) || !pod.Status.Conditions[0].LastTransitionTime.Time.Equal(lastTime) || len(pod.ManagedFields) != 1 {
		t.Error(pod)
	}
	defer func() {
		if recover() == nil {
			t.Error("a tree of another form was assigned")
		}
	}()
	Assign(map[string]any{"spec": "a"}, pod)
}
