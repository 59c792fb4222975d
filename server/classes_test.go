package server_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/server"
)

// must returns what a client has returned without an error.
func must[T any](obj T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return obj
	}
}

// Pods tolerate nodes that do not answer for a while, unless they say something else.
func TestDefaultTolerations(t *testing.T) {
	t.Parallel()
	client := priorities(t)
	const notReady, unreachable = corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable
	for i, test := range []struct {
		given []corev1.Toleration
		want  []string
	}{
		{nil, []string{notReady + " 300", unreachable + " 300"}},
		{[]corev1.Toleration{{Operator: "Exists"}}, []string{" 0"}},
		{[]corev1.Toleration{{Operator: "Exists", Effect: "NoSchedule"}, {Key: notReady, Operator: "Exists"}}, []string{" 0", notReady + " 0", unreachable + " 300"}},
		{[]corev1.Toleration{{Key: unreachable, Operator: "Equal", Value: "x", Effect: "NoExecute"}}, []string{unreachable + " 0", notReady + " 300"}},
	} {
		pod := must(createPod(t, client, fmt.Sprint("p", i), corev1.PodSpec{Tolerations: test.given}))(t)
		if got := seconds(pod); !slices.Equal(got, test.want) {
			t.Errorf("%d: %q, want %q", i, got, test.want)
		}
	}
	// An update of the manifest leaves out what the server has added.
	pod := must(client.CoreV1().Pods("default").Get(t.Context(), "p0", metav1.GetOptions{}))(t)
	pod.Spec.Tolerations = nil
	pod = must(client.CoreV1().Pods("default").Update(t.Context(), pod, metav1.UpdateOptions{}))(t)
	if got := seconds(pod); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

func seconds(pod *corev1.Pod) (list []string) {
	for _, one := range pod.Spec.Tolerations {
		list = append(list, fmt.Sprintf("%s %d", one.Key, ptr.Deref(one.TolerationSeconds, 0)))
	}
	return list
}

// A new node has a taint until a controller has seen that it is ready.
func TestTaintedNodes(t *testing.T) {
	t.Parallel()
	client := priorities(t)
	for i, test := range []struct {
		given []corev1.Taint
		want  int
	}{
		{nil, 1},
		{[]corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: "NoSchedule", Value: "v"}}, 1},
		{[]corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: "NoExecute"}}, 2},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}, Spec: corev1.NodeSpec{Taints: test.given}}
		node = must(client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}))(t)
		if last := node.Spec.Taints[len(node.Spec.Taints)-1]; len(node.Spec.Taints) != test.want || last.Key != corev1.TaintNodeNotReady || last.Effect != "NoSchedule" {
			t.Errorf("%d: %v", i, node.Spec.Taints)
		}
		// It can be removed.
		node.Spec.Taints = nil
		if node = must(client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}))(t); len(node.Spec.Taints) > 0 {
			t.Errorf("%d: %v", i, node.Spec.Taints)
		}
	}
}

func createClaim(t *testing.T, client kubernetes.Interface, meta metav1.ObjectMeta, class *string) *corev1.PersistentVolumeClaim {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
	}}
	return must(client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), claim, metav1.CreateOptions{}))(t)
}

// Volumes, claims and their attribute classes stay while they are in use.
func TestStorageProtection(t *testing.T) {
	t.Parallel()
	client := priorities(t)
	for name, given := range map[string][]string{"none": nil, "other": {"example.com/f"}, "both": {"example.com/f", "kubernetes.io/pvc-protection"}} {
		claim := createClaim(t, client, metav1.ObjectMeta{Name: name, Finalizers: given}, nil)
		if n := len(claim.Finalizers); claim.Finalizers[n-1] != "kubernetes.io/pvc-protection" || n > 2 {
			t.Errorf("%s: %q", name, claim.Finalizers)
		}
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{
		Capacity: corev1.ResourceList{"storage": resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}},
	}}
	volume = must(client.CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{}))(t)
	class := &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}, DriverName: "d.x", Parameters: map[string]string{"a": "b"}}
	class = must(client.StorageV1().VolumeAttributesClasses().Create(t.Context(), class, metav1.CreateOptions{}))(t)
	if !slices.Equal(volume.Finalizers, []string{"kubernetes.io/pv-protection"}) || !slices.Equal(class.Finalizers, []string{"kubernetes.io/vac-protection"}) {
		t.Errorf("%q %q", volume.Finalizers, class.Finalizers)
	}
}

func createStorageClass(t *testing.T, client kubernetes.Interface, name, annotation, value string, expand *bool) {
	t.Helper()
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotation: value}}, Provisioner: "p", AllowVolumeExpansion: expand}
	must(client.StorageV1().StorageClasses().Create(t.Context(), class, metav1.CreateOptions{}))(t)
}

const defaultStorage = "storageclass.kubernetes.io/is-default-class"

// A claim without a class gets the newest default.
func TestDefaultStorageClass(t *testing.T) {
	t.Parallel()
	client := priorities(t)
	const beta = "volume.beta.kubernetes.io/storage-class"
	if got := createClaim(t, client, metav1.ObjectMeta{Name: "before"}, nil); got.Spec.StorageClassName != nil {
		t.Errorf("before: %q", *got.Spec.StorageClassName)
	}
	createStorageClass(t, client, "a-old", "storageclass.beta.kubernetes.io/is-default-class", "true", nil)
	if got := createClaim(t, client, metav1.ObjectMeta{Name: "one"}, nil); ptr.Deref(got.Spec.StorageClassName, "") != "a-old" {
		t.Errorf("one: %v", got.Spec.StorageClassName)
	}
	time.Sleep(1100 * time.Millisecond) // the times of objects are in seconds
	createStorageClass(t, client, "b-new", defaultStorage, "true", nil)
	createStorageClass(t, client, "c-no", defaultStorage, "True", nil)
	if got := createClaim(t, client, metav1.ObjectMeta{Name: "several"}, nil); ptr.Deref(got.Spec.StorageClassName, "") != "b-new" {
		t.Errorf("several: %v", got.Spec.StorageClassName)
	}
	if got := createClaim(t, client, metav1.ObjectMeta{Name: "empty"}, ptr.To("")); ptr.Deref(got.Spec.StorageClassName, "?") != "" {
		t.Errorf("empty: %v", got.Spec.StorageClassName)
	}
	if got := createClaim(t, client, metav1.ObjectMeta{Name: "annotation", Annotations: map[string]string{beta: ""}}, nil); got.Spec.StorageClassName != nil {
		t.Errorf("annotation: %q", *got.Spec.StorageClassName)
	}
}

// A claim grows if its class allows it.
func TestResizedClaims(t *testing.T) {
	t.Parallel()
	client := priorities(t)
	claims := client.CoreV1().PersistentVolumeClaims("default")
	createStorageClass(t, client, "elastic", defaultStorage, "false", ptr.To(true))
	createStorageClass(t, client, "fixed", defaultStorage, "false", nil)
	for i, test := range []struct {
		class, annotation string
		ok                bool
	}{{"elastic", "", true}, {"fixed", "", false}, {"", "", false}, {"gone", "", false}, {"gone", "elastic", true}, {"elastic", "fixed", false}} {
		meta := metav1.ObjectMeta{Name: fmt.Sprint("c", i)}
		if test.annotation != "" {
			meta.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: test.annotation}
		}
		claim := createClaim(t, client, meta, ptr.To(test.class))
		claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, corev1.ResourceList{"storage": resource.MustParse("1Gi")}
		must(claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}))(t)
		_, err := claims.Patch(t.Context(), claim.Name, types.MergePatchType, []byte(`{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`), metav1.PatchOptions{})
		want := fmt.Sprintf("persistentvolumeclaims %q is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize", claim.Name)
		if test.ok && err != nil || !test.ok && (err == nil || err.Error() != want) {
			t.Errorf("%d: %v", i, err)
		}
		must(claims.Patch(t.Context(), claim.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}))(t)
	}
}

// An Ingress without a class gets the newest default.
func TestDefaultIngressClass(t *testing.T) {
	t.Parallel()
	client := priorities(t)
	create := func(name string, class *string, annotations map[string]string) string {
		t.Helper()
		ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Spec: networkingv1.IngressSpec{
			IngressClassName: class,
			DefaultBackend:   &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "s", Port: networkingv1.ServiceBackendPort{Number: 80}}},
		}}
		ingress = must(client.NetworkingV1().Ingresses("default").Create(t.Context(), ingress, metav1.CreateOptions{}))(t)
		return ptr.Deref(ingress.Spec.IngressClassName, "none")
	}
	class := func(name, value string) {
		t.Helper()
		c := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: value}}, Spec: networkingv1.IngressClassSpec{Controller: "x.y/z"}}
		must(client.NetworkingV1().IngressClasses().Create(t.Context(), c, metav1.CreateOptions{}))(t)
	}
	if got := create("before", nil, nil); got != "none" {
		t.Errorf("before: %s", got)
	}
	class("a-old", "true")
	if got := create("one", nil, nil); got != "a-old" {
		t.Errorf("one: %s", got)
	}
	time.Sleep(1100 * time.Millisecond) // the times of objects are in seconds
	class("b-new", "true")
	class("c-no", "True")
	for name, test := range map[string]struct {
		class       *string
		annotations map[string]string
		want        string
	}{
		"several":    {nil, nil, "b-new"},
		"given":      {ptr.To("x"), nil, "x"},
		"annotation": {nil, map[string]string{"kubernetes.io/ingress.class": ""}, "none"},
	} {
		if got := create(name, test.class, test.annotations); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// Without the plugins objects are as clients have sent them.
func TestPluginsOfClassesDisabled(t *testing.T) {
	t.Parallel()
	client := priorities(t, func(o *server.Options) {
		o.Admission.DisablePlugins = []string{"DefaultStorageClass", "DefaultTolerationSeconds", "StorageObjectInUseProtection", "TaintNodesByCondition"}
	})
	createStorageClass(t, client, "default", defaultStorage, "true", nil)
	claim := createClaim(t, client, metav1.ObjectMeta{Name: "c"}, nil)
	pod := must(createPod(t, client, "p", corev1.PodSpec{}))(t)
	node := must(client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{}))(t)
	if claim.Spec.StorageClassName != nil || len(claim.Finalizers)+len(pod.Spec.Tolerations)+len(node.Spec.Taints) > 0 {
		t.Errorf("%v %v %v", claim, pod.Spec.Tolerations, node.Spec.Taints)
	}
}
