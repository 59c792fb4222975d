package server_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/server"
)

// priorities is a server with pods and priority classes.
func priorities(t *testing.T, configure ...func(*server.Options)) *kubernetes.Clientset {
	t.Helper()
	r := start(t, append([]func(*server.Options){func(o *server.Options) { o.Kinds = server.KindsAll }}, configure...)...)
	client, err := kubernetes.NewForConfig(r.config(t))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func createClass(t *testing.T, client kubernetes.Interface, class schedulingv1.PriorityClass) error {
	t.Helper()
	_, err := client.SchedulingV1().PriorityClasses().Create(t.Context(), &class, metav1.CreateOptions{})
	return err
}

func createPod(t *testing.T, client kubernetes.Interface, name string, spec corev1.PodSpec) (*corev1.Pod, error) {
	t.Helper()
	spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	return client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
}

// A pod gets the priority of its class, or is refused in the words of kube-apiserver.
func TestPriority(t *testing.T) {
	t.Parallel()
	client := priorities(t)
	if err := createClass(t, client, schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 7, PreemptionPolicy: ptr.To(corev1.PreemptNever)}); err != nil {
		t.Fatal(err)
	}
	const (
		badPriority = "the integer value of priority (5) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name"
		badPolicy   = "the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name"
	)
	for i, test := range []struct {
		spec     corev1.PodSpec
		priority int32
		policy   corev1.PreemptionPolicy
		want     string // of the error
	}{
		{corev1.PodSpec{}, 0, "PreemptLowerPriority", ""},
		{corev1.PodSpec{Priority: ptr.To(int32(0)), PreemptionPolicy: ptr.To(corev1.PreemptLowerPriority)}, 0, "PreemptLowerPriority", ""},
		{corev1.PodSpec{Priority: ptr.To(int32(5))}, 0, "", fmt.Sprintf(badPriority, 0)},
		{corev1.PodSpec{PreemptionPolicy: ptr.To(corev1.PreemptNever)}, 0, "", fmt.Sprintf(badPolicy, "Never", "PreemptLowerPriority")},
		{corev1.PodSpec{Priority: ptr.To(int32(5)), PreemptionPolicy: ptr.To(corev1.PreemptNever)}, 0, "", fmt.Sprintf(badPriority, 0)},
		{corev1.PodSpec{PriorityClassName: "none"}, 0, "", "no PriorityClass with name none was found"},
		{corev1.PodSpec{PriorityClassName: "high"}, 7, "Never", ""},
		{corev1.PodSpec{PriorityClassName: "high", Priority: ptr.To(int32(7)), PreemptionPolicy: ptr.To(corev1.PreemptNever)}, 7, "Never", ""},
		{corev1.PodSpec{PriorityClassName: "high", Priority: ptr.To(int32(5))}, 0, "", fmt.Sprintf(badPriority, 7)},
		{corev1.PodSpec{PriorityClassName: "high", PreemptionPolicy: ptr.To(corev1.PreemptLowerPriority)}, 0, "", fmt.Sprintf(badPolicy, "PreemptLowerPriority", "Never")},
		{corev1.PodSpec{PriorityClassName: "system-node-critical"}, 2000001000, "PreemptLowerPriority", ""},
		{corev1.PodSpec{PriorityClassName: "system-cluster-critical"}, 2000000000, "PreemptLowerPriority", ""},
	} {
		name := fmt.Sprint("p", i)
		got, err := createPod(t, client, name, test.spec)
		if test.want != "" {
			if want := fmt.Sprintf("pods %q is forbidden: %s", name, test.want); err == nil || err.Error() != want {
				t.Errorf("%d: %v, want %s", i, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		if *got.Spec.Priority != test.priority || *got.Spec.PreemptionPolicy != test.policy || got.Spec.PriorityClassName != test.spec.PriorityClassName {
			t.Errorf("%d: %q %d %s", i, got.Spec.PriorityClassName, *got.Spec.Priority, *got.Spec.PreemptionPolicy)
		}
	}

	// An update may leave out both, and change neither.
	pods := client.CoreV1().Pods("default")
	got, err := pods.Get(t.Context(), "p6", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got.Spec.Priority, got.Spec.PreemptionPolicy, got.Labels = nil, nil, map[string]string{"again": "yes"}
	if got, err = pods.Update(t.Context(), got, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got.Spec.Priority == nil || *got.Spec.Priority != 7 || got.Spec.PreemptionPolicy == nil || *got.Spec.PreemptionPolicy != "Never" || got.Labels["again"] != "yes" {
		t.Errorf("%v", got)
	}
	got.Spec.Priority = ptr.To(int32(8))
	if _, err := pods.Update(t.Context(), got, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("another priority: %v", err)
	}
}

// There is one default at most, and it applies to the pods after it.
func TestDefaultPriority(t *testing.T) {
	t.Parallel()
	client := priorities(t)
	classes := client.SchedulingV1().PriorityClasses()
	if _, err := createPod(t, client, "before", corev1.PodSpec{}); err != nil {
		t.Fatal(err)
	}
	if err := createClass(t, client, schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "glob"}, Value: 9, GlobalDefault: true}); err != nil {
		t.Fatal(err)
	}
	got, err := createPod(t, client, "after", corev1.PodSpec{})
	if err != nil || got.Spec.PriorityClassName != "glob" || *got.Spec.Priority != 9 {
		t.Fatalf("%v %v", got, err)
	}
	const one = "PriorityClass glob is already marked as default. Only one default can exist"
	refused := func(err error, name string) {
		t.Helper()
		if want := fmt.Sprintf("priorityclasses.scheduling.k8s.io %q is forbidden: %s", name, one); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	refused(createClass(t, client, schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Value: 1, GlobalDefault: true}), "other")
	if err := createClass(t, client, schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Value: 1}); err != nil {
		t.Fatal(err)
	}
	other, err := classes.Get(t.Context(), "other", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other.GlobalDefault = true
	_, err = classes.Update(t.Context(), other, metav1.UpdateOptions{})
	refused(err, "other")

	// The default itself can be written again, and another one can follow it.
	glob, err := classes.Get(t.Context(), "glob", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	glob.Description = "d"
	if _, err := classes.Update(t.Context(), glob, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
	if err := classes.Delete(t.Context(), "glob", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := createPod(t, client, "without", corev1.PodSpec{}); err != nil || got.Spec.PriorityClassName != "" || *got.Spec.Priority != 0 {
		t.Errorf("%v %v", got, err)
	}
	if _, err = classes.Update(t.Context(), other, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
}

// The classes of the system exist from the beginning and stay.
func TestSystemPriorityClasses(t *testing.T) {
	t.Parallel()
	client := priorities(t)
	for _, name := range []string{"system-node-critical", "system-cluster-critical"} {
		err := client.SchedulingV1().PriorityClasses().Delete(t.Context(), name, metav1.DeleteOptions{})
		if want := fmt.Sprintf("priorityclasses.scheduling.k8s.io %q is forbidden: this is a system priority class and cannot be deleted", name); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if _, err := client.SchedulingV1().PriorityClasses().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// Without the plugin a pod has no priority but its own.
func TestPriorityDisabled(t *testing.T) {
	t.Parallel()
	client := priorities(t, func(o *server.Options) { o.Admission.DisablePlugins = []string{"Priority"} })
	got, err := createPod(t, client, "p", corev1.PodSpec{PriorityClassName: "none"})
	if err != nil || got.Spec.Priority != nil {
		t.Errorf("%v %v", got, err)
	}
}

// A replica learns of the classes that another one writes.
func TestPriorityOfAnotherReplica(t *testing.T) {
	t.Parallel()
	replica := newSite(t).replica(nil)
	clients := []*kubernetes.Clientset{priorities(t, replica), priorities(t, replica)}
	// The informers of both run.
	for i, client := range clients {
		if _, err := createPod(t, client, fmt.Sprint("first", i), corev1.PodSpec{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := createClass(t, clients[0], schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "glob"}, Value: 9, GlobalDefault: true}); err != nil {
		t.Fatal(err)
	}
	if got, err := createPod(t, clients[1], "named", corev1.PodSpec{PriorityClassName: "glob"}); err != nil || *got.Spec.Priority != 9 {
		t.Errorf("%v %v", got, err)
	}
	tries := 0
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		tries++
		got, err := createPod(t, clients[1], fmt.Sprint("unnamed", tries), corev1.PodSpec{})
		return err == nil && got.Spec.PriorityClassName == "glob", err
	})
	if err != nil {
		t.Error(err)
	}
}
