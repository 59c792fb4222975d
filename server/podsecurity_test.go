package server_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/server"
)

// Namespaces say by a label which pods are allowed. The texts are those of kube-apiserver
// v1.37.1.
func TestPodSecurity(t *testing.T) {
	t.Parallel()
	r := start(t, func(o *server.Options) { o.Kinds = server.KindsAll })
	client, err := kubernetes.NewForConfig(r.config(t))
	if err != nil {
		t.Fatal(err)
	}
	namespace := func(name, level string) error {
		_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": level},
		}}, metav1.CreateOptions{})
		return err
	}
	if err := namespace("odd", "loose"); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "must be one of privileged, baseline, restricted") {
		t.Errorf("a level that does not exist: %v", err)
	}
	if err := namespace("strict", "baseline"); err != nil {
		t.Fatal(err)
	}
	pod := func(name string, privileged bool) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: "i", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(privileged)},
		}}}}
	}
	inStrict := client.CoreV1().Pods("strict")
	_, err = inStrict.Create(t.Context(), pod("p", true), metav1.CreateOptions{})
	const want = `pods "p" is forbidden: violates PodSecurity "baseline:latest": privileged (container "c" must not set securityContext.privileged=true)`
	if !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, err := inStrict.Create(t.Context(), pod("p", false), metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	// A debug container is part of a pod, too.
	_, err = inStrict.Patch(t.Context(), "p", types.StrategicMergePatchType,
		[]byte(`{"spec":{"ephemeralContainers":[{"name":"d","image":"i","securityContext":{"privileged":true}}]}}`), metav1.PatchOptions{}, "ephemeralcontainers")
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `violates PodSecurity "baseline:latest"`) {
		t.Errorf("a privileged debug container: %v", err)
	}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod("p", true), metav1.CreateOptions{}); err != nil {
		t.Errorf("a namespace without a level: %v", err)
	}
	// What is there stays; the client is warned.
	if _, err := client.CoreV1().Namespaces().Patch(t.Context(), "default", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}
