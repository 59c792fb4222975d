package server_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/server"
)

// A pod gets what its class says, or is refused in the words of kube-apiserver.
func TestRuntimeClass(t *testing.T) {
	t.Parallel()
	r := start(t, func(o *server.Options) { o.Kinds = server.KindsAll })
	client, err := kubernetes.NewForConfig(r.config(t))
	if err != nil {
		t.Fatal(err)
	}
	overhead := corev1.ResourceList{"cpu": resource.MustParse("10m")}
	for _, class := range []*nodev1.RuntimeClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Handler: "h"},
		{
			ObjectMeta: metav1.ObjectMeta{Name: "full"}, Handler: "h", Overhead: &nodev1.Overhead{PodFixed: overhead},
			Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"a": "b"}, Tolerations: []corev1.Toleration{{Key: "x", Operator: "Exists"}, {Key: "y", Operator: "Exists"}}},
		},
	} {
		if _, err := client.NodeV1().RuntimeClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i, test := range []struct {
		class string
		spec  corev1.PodSpec
		want  string // of the error
	}{
		{"none", corev1.PodSpec{}, `pod rejected: RuntimeClass "none" not found`},
		{"plain", corev1.PodSpec{}, ""},
		{"plain", corev1.PodSpec{Overhead: overhead}, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"},
		{"full", corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "y", Operator: "Exists"}}}, ""},
		{"full", corev1.PodSpec{Overhead: corev1.ResourceList{"cpu": resource.MustParse("0.010")}}, ""},
		{"full", corev1.PodSpec{Overhead: corev1.ResourceList{"cpu": resource.MustParse("20m")}}, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"},
		{"full", corev1.PodSpec{NodeSelector: map[string]string{"a": "c"}}, "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)}, Spec: test.spec}
		pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
		if test.class != "" {
			pod.Spec.RuntimeClassName = ptr.To(test.class)
		}
		got, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		if test.want != "" {
			if want := fmt.Sprintf("pods %q is forbidden: %s", pod.Name, test.want); err == nil || err.Error() != want {
				t.Errorf("%d: %v, want %s", i, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		var keys []string
		for _, one := range got.Spec.Tolerations {
			if !strings.Contains(one.Key, "/") {
				keys = append(keys, one.Key)
			}
		}
		if full := test.class == "full"; full != (got.Spec.NodeSelector["a"] == "b") || full != (got.Spec.Overhead.Cpu().MilliValue() == 10) || full != (len(keys) == 2) {
			t.Errorf("%d: %v %v %v", i, got.Spec.NodeSelector, got.Spec.Overhead, got.Spec.Tolerations)
		}
	}
}
