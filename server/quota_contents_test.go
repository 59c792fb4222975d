package server_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/server"
)

func withPods(o *server.Options) { o.Kinds = server.KindsAll }

// podOf is a pod that requests CPU, if there is an amount.
func podOf(name, cpu string) *corev1.Pod {
	c := corev1.Container{Name: "c", Image: "i"}
	if cpu != "" {
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{c}}}
}

// TestQuotaOfPods has writers at two replicas: they never get more than the quota has, and
// what ends, changes or goes is free again.
func TestQuotaOfPods(t *testing.T) {
	t.Parallel()
	const amount = "300m"
	l := startLimited(t, 2, corev1.ResourceList{"pods": resource.MustParse("50"), "requests.cpu": resource.MustParse("2")}, withPods)
	var running sync.WaitGroup
	var admitted atomic.Int64
	for i := range 16 {
		running.Go(func() {
			_, err := l.typed[i%2].CoreV1().Pods("default").Create(t.Context(), podOf(fmt.Sprint("p", i), amount), metav1.CreateOptions{})
			switch {
			case err == nil:
				admitted.Add(1)
			case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), exceeded+"requests.cpu=300m, used: requests.cpu="):
				t.Error(err)
			}
		})
	}
	running.Wait()
	pods := l.typed[0].CoreV1().Pods("default")
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 6 || admitted.Load() != 6 {
		t.Fatalf("%d pods, %d admitted, %v", len(list.Items), admitted.Load(), err)
	}
	l.usedExactly(t, "requests.cpu", resource.MustParse("1800m"))
	l.used(t, "pods", 6)

	_, err = pods.Create(t.Context(), podOf("without", ""), metav1.CreateOptions{})
	if err == nil || !strings.HasSuffix(err.Error(), `pods "without" is forbidden: failed quota: q: must specify requests.cpu for: c`) {
		t.Error(err)
	}
	ended, err := pods.Patch(t.Context(), list.Items[0].Name, types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
	if err != nil || ended.Status.Phase != corev1.PodSucceeded {
		t.Fatalf("%v, %v", ended, err)
	}
	l.usedExactly(t, "requests.cpu", resource.MustParse("1500m"))
	if err := pods.Delete(t.Context(), list.Items[1].Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	l.usedExactly(t, "requests.cpu", resource.MustParse("1200m"))
	l.used(t, "pods", 4)

	resize := func(cpu string) error {
		body := `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"` + cpu + `"}}}]}}`
		_, err := pods.Patch(t.Context(), list.Items[2].Name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, "resize")
		return err
	}
	if err := resize("1101m"); err == nil || !strings.HasSuffix(err.Error(), exceeded+"requests.cpu=801m, used: requests.cpu=1200m, limited: requests.cpu=2") {
		t.Error(err)
	}
	if err := resize("1"); err != nil {
		t.Error(err)
	}
	l.usedExactly(t, "requests.cpu", resource.MustParse("1900m"))
	if err := resize("100m"); err != nil {
		t.Error(err)
	}
	l.usedExactly(t, "requests.cpu", resource.MustParse("1"))
}

// TestQuotaOfScopes has two quotas that share the pods of a namespace.
func TestQuotaOfScopes(t *testing.T) {
	t.Parallel()
	l := startLimited(t, 1, corev1.ResourceList{"pods": resource.MustParse("9")}, withPods)
	client := l.typed[0].CoreV1()
	used := func(quota string, want int64) {
		t.Helper()
		eventually(t, func() bool {
			q, err := client.ResourceQuotas("default").Get(t.Context(), quota, metav1.GetOptions{})
			if err != nil {
				return false
			}
			n, ok := q.Status.Used["pods"]
			return ok && n.Value() == want
		})
	}
	for name, scope := range map[string]corev1.ResourceQuotaScope{"deadline": corev1.ResourceQuotaScopeTerminating, "endless": corev1.ResourceQuotaScopeNotTerminating} {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}}
		q.Spec = corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("2")}, Scopes: []corev1.ResourceQuotaScope{scope}}
		if _, err := client.ResourceQuotas("default").Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		used(name, 0)
	}
	seconds := int64(60)
	for _, name := range []string{"a", "b", "c"} {
		p := podOf(name, "")
		p.Spec.ActiveDeadlineSeconds = &seconds
		if name == "c" {
			p.Spec.ActiveDeadlineSeconds = nil
		}
		if _, err := client.Pods("default").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	used("deadline", 2)
	used("endless", 1)
	l.used(t, "pods", 3)
	limit := func() error {
		_, err := client.Pods("default").Patch(t.Context(), "c", types.MergePatchType, []byte(`{"spec":{"activeDeadlineSeconds":5}}`), metav1.PatchOptions{})
		return err
	}
	if err := limit(); err == nil || !strings.HasSuffix(err.Error(), `pods "c" is forbidden: exceeded quota: deadline, requested: pods=1, used: pods=2, limited: pods=2`) {
		t.Error(err)
	}
	if err := client.Pods("default").Delete(t.Context(), "a", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	used("deadline", 1)
	if err := limit(); err != nil {
		t.Error(err)
	}
	used("deadline", 2)
	used("endless", 0)
	l.used(t, "pods", 2)
}

// TestQuotaOfServicesAndClaims has updates that take more, and what they give back.
func TestQuotaOfServicesAndClaims(t *testing.T) {
	t.Parallel()
	const class = "fast.storageclass.storage.k8s.io/requests.storage"
	l := startLimited(t, 1, corev1.ResourceList{
		"services.nodeports": resource.MustParse("2"), "services.loadbalancers": resource.MustParse("1"),
		"requests.storage": resource.MustParse("10Gi"), class: resource.MustParse("3Gi"),
	}, withPods)
	client := l.typed[0].CoreV1()
	service := func(name string, as corev1.ServiceType) error {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}}
		s.Spec = corev1.ServiceSpec{Type: as, Ports: []corev1.ServicePort{{Name: "a", Port: 1}, {Name: "b", Port: 2}}}
		_, err := client.Services("default").Create(t.Context(), s, metav1.CreateOptions{})
		return err
	}
	become := func(name string, as corev1.ServiceType) error {
		_, err := client.Services("default").Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"type":"`+as+`"}}`), metav1.PatchOptions{})
		return err
	}
	if err := service("inner", corev1.ServiceTypeClusterIP); err != nil {
		t.Fatal(err)
	}
	if err := service("outer", corev1.ServiceTypeLoadBalancer); err != nil {
		t.Fatal(err)
	}
	l.used(t, "services.nodeports", 2)
	l.used(t, "services.loadbalancers", 1)
	if err := become("inner", corev1.ServiceTypeNodePort); err == nil ||
		!strings.HasSuffix(err.Error(), `services "inner" is forbidden: `+exceeded+"services.nodeports=2, used: services.nodeports=2, limited: services.nodeports=2") {
		t.Error(err)
	}
	if err := become("outer", corev1.ServiceTypeClusterIP); err != nil {
		t.Fatal(err)
	}
	l.used(t, "services.loadbalancers", 0)
	l.used(t, "services.nodeports", 0)
	if err := become("inner", corev1.ServiceTypeNodePort); err != nil {
		t.Error(err)
	}
	l.used(t, "services.nodeports", 2)

	claim := func(name, class, size string) error {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.StorageClassName, c.Spec.AccessModes = &class, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		_, err := client.PersistentVolumeClaims("default").Create(t.Context(), c, metav1.CreateOptions{})
		return err
	}
	if err := claim("a", "fast", "2Gi"); err != nil {
		t.Fatal(err)
	}
	if err := claim("b", "fast", "2Gi"); err == nil || !strings.HasSuffix(err.Error(), exceeded+class+"=2Gi, used: "+class+"=2Gi, limited: "+class+"=3Gi") {
		t.Error(err)
	}
	if err := claim("c", "slow", "8Gi"); err != nil {
		t.Error(err)
	}
	l.usedExactly(t, "requests.storage", resource.MustParse("10Gi"))
	l.usedExactly(t, class, resource.MustParse("2Gi"))
}
