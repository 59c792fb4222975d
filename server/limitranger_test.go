package server_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/server"
)

// limit makes a namespace with LimitRanges, which are called a, b, c.
func limit(t *testing.T, client kubernetes.Interface, name string, all ...[]corev1.LimitRangeItem) {
	t.Helper()
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, items := range all {
		limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}, Spec: corev1.LimitRangeSpec{Limits: items}}
		if _, err := client.CoreV1().LimitRanges(name).Create(t.Context(), limits, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// list is a list of resources: names and quantities by turns.
func list(all ...string) corev1.ResourceList {
	result := corev1.ResourceList{}
	for i := 0; i < len(all); i += 2 {
		result[corev1.ResourceName(all[i])] = resource.MustParse(all[i+1])
	}
	return result
}

func container(name string, requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Image: "i", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func said(r corev1.ResourceRequirements) string {
	text := ""
	for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
		for _, name := range []corev1.ResourceName{"cpu", "memory"} {
			if q, ok := list[name]; ok {
				text += q.String()
			}
			text += "/"
		}
	}
	return text
}

// Containers get the defaults, and the annotation says which.
func TestLimitRangeDefaults(t *testing.T) {
	t.Parallel()
	r := start(t, func(o *server.Options) { o.Kinds = server.KindsAll })
	client, err := kubernetes.NewForConfig(r.config(t))
	if err != nil {
		t.Fatal(err)
	}
	limit(t, client, "one", []corev1.LimitRangeItem{{Type: "Container", Default: list("cpu", "500m", "memory", "512Mi"), DefaultRequest: list("cpu", "100m", "memory", "200Mi")}})
	limit(t, client, "two",
		[]corev1.LimitRangeItem{{Type: "Container", Default: list("cpu", "100m")}},
		[]corev1.LimitRangeItem{{Type: "Container", Default: list("cpu", "50m", "memory", "5Mi")}},
		[]corev1.LimitRangeItem{{Type: "Container", Default: list("cpu", "30m")}})
	for i, test := range []struct {
		namespace  string
		spec       corev1.PodSpec
		resources  []string
		annotation string
	}{
		{"default", corev1.PodSpec{Containers: []corev1.Container{container("c", nil, nil)}}, []string{"////"}, ""},
		{
			"one", corev1.PodSpec{
				InitContainers: []corev1.Container{container("i", nil, nil)},
				Containers:     []corev1.Container{container("c", nil, nil), container("d", nil, list("cpu", "300m")), container("e", list("cpu", "300m"), nil)},
			},
			[]string{"100m/200Mi/500m/512Mi/", "100m/200Mi/500m/512Mi/", "300m/200Mi/300m/512Mi/", "300m/200Mi/500m/512Mi/"},
			"LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c; memory request for container d; memory limit for container d; " +
				"memory request for container e; cpu, memory limit for container e; cpu, memory request for init container i; cpu, memory limit for init container i",
		},
		{"one", corev1.PodSpec{Containers: []corev1.Container{container("c", nil, list("cpu", "1", "memory", "1Gi"))}}, []string{"1/1Gi/1/1Gi/"}, ""},
		{
			"two", corev1.PodSpec{Containers: []corev1.Container{container("c", nil, nil)}}, []string{"100m/5Mi/100m/5Mi/"},
			"LimitRanger plugin set: memory request for container c; memory limit for container c",
		},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)}, Spec: test.spec}
		got, err := client.CoreV1().Pods(test.namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		if got.Annotations["kubernetes.io/limit-ranger"] != test.annotation {
			t.Errorf("%d: %v", i, got.Annotations)
		}
		for j, c := range append(got.Spec.InitContainers, got.Spec.Containers...) {
			if said(c.Resources) != test.resources[j] {
				t.Errorf("%d: %s has %s", i, c.Name, said(c.Resources))
			}
		}
	}
}

// What is not within the limits is refused in the words of kube-apiserver.
func TestLimitRangeRefusals(t *testing.T) {
	t.Parallel()
	r := start(t, func(o *server.Options) { o.Kinds = server.KindsAll })
	client, err := kubernetes.NewForConfig(r.config(t))
	if err != nil {
		t.Fatal(err)
	}
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "heavy"}, Handler: "h", Overhead: &nodev1.Overhead{PodFixed: list("cpu", "40m")}}
	if _, err := client.NodeV1().RuntimeClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	limit(t, client, "both", []corev1.LimitRangeItem{
		{Type: "Pod", Max: list("cpu", "20m")},
		{Type: "Container", Max: list("cpu", "20m", "memory", "1Gi"), Min: list("cpu", "15m", "memory", "30Mi"), MaxLimitRequestRatio: list("cpu", "1")},
		{Type: "example.com/other", Max: list("cpu", "1m")},
	}, []corev1.LimitRangeItem{{Type: "Container", Max: list("cpu", "1m")}})
	limit(t, client, "pod", []corev1.LimitRangeItem{{Type: "Pod", Min: list("memory", "1Mi"), Max: list("cpu", "50m"), MaxLimitRequestRatio: list("cpu", "1500m")}})
	limit(t, client, "claim", []corev1.LimitRangeItem{{Type: "PersistentVolumeClaim", Min: list("storage", "2Gi"), Max: list("storage", "4Gi", "memory", "1")}})
	limit(t, client, "ratio", []corev1.LimitRangeItem{{Type: "Container", MaxLimitRequestRatio: list("memory", "1500m")}})
	for i, test := range []struct {
		namespace string
		spec      corev1.PodSpec
		want      string
	}{
		{"both", corev1.PodSpec{
			InitContainers: []corev1.Container{container("i", nil, list("cpu", "40m", "memory", "1Mi"))},
			Containers:     []corev1.Container{container("c", list("cpu", "10m"), list("cpu", "30m", "memory", "1Gi")), container("d", nil, list("cpu", "10m", "memory", "10Mi"))},
		}, "[maximum cpu usage per Pod is 20m, but limit is 40m, minimum cpu usage per Container is 15m, but request is 10m, maximum cpu usage per Container is 20m, but limit is 30m, " +
			"cpu max limit to request ratio per Container is 1, but provided ratio is 3.000000, minimum memory usage per Container is 30Mi, but request is 10Mi, minimum memory usage per Container is 30Mi, but request is 1Mi, " +
			"maximum cpu usage per Container is 20m, but limit is 40m]"},
		{
			"pod", corev1.PodSpec{Containers: []corev1.Container{container("c", nil, nil)}},
			"[minimum memory usage per Pod is 1Mi.  No request is specified, maximum cpu usage per Pod is 50m.  No limit is specified, cpu max limit to request ratio per Pod is 1500m, but no request is specified or request is 0]",
		},
		{
			"pod", corev1.PodSpec{Containers: []corev1.Container{container("c", list("cpu", "60m", "memory", "1Mi"), nil)}},
			"[maximum cpu usage per Pod is 50m.  No limit is specified, cpu max limit to request ratio per Pod is 1500m, but no limit is specified or limit is 0]",
		},
		{"pod", corev1.PodSpec{Containers: []corev1.Container{container("c", list("memory", "1Mi"), list("cpu", "40m")), container("d", list("cpu", "60m"), nil)}}, "maximum cpu usage per Pod is 50m, but request is 100m"},
		{"pod", corev1.PodSpec{Containers: []corev1.Container{container("c", list("cpu", "30m", "memory", "1Mi"), list("cpu", "46m"))}}, "cpu max limit to request ratio per Pod is 1500m, but provided ratio is 1.533333"},
		{"pod", corev1.PodSpec{Containers: []corev1.Container{container("c", list("cpu", "30m", "memory", "1Mi"), list("cpu", "45m"))}}, ""},
		{"pod", corev1.PodSpec{RuntimeClassName: ptr.To("heavy"), Containers: []corev1.Container{container("c", list("memory", "1Mi"), list("cpu", "50m"))}}, ""},
		{"pod", corev1.PodSpec{RuntimeClassName: ptr.To("heavy"), Containers: []corev1.Container{container("c", list("memory", "1Mi"), list("cpu", "60m"))}}, "maximum cpu usage per Pod is 50m, but limit is 60m"},
		{
			"pod", corev1.PodSpec{Resources: &corev1.ResourceRequirements{Limits: list("cpu", "60m"), Requests: list("memory", "1Mi")}, Containers: []corev1.Container{container("c", nil, nil)}},
			"maximum cpu usage per Pod is 50m, but limit is 60m",
		},
		{"ratio", corev1.PodSpec{Containers: []corev1.Container{container("c", list("memory", "1"), list("memory", "8Ei"))}}, "memory max limit to request ratio per Container is 1500m, but provided ratio is 9223372036854775808.000000"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)}, Spec: test.spec}
		_, err := client.CoreV1().Pods(test.namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		refusal(t, fmt.Sprint(i), err, "pods", pod.Name, test.want)
	}
	for storage, want := range map[string]string{
		"1Gi": "[minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi, maximum memory usage per PersistentVolumeClaim is 1.  No request is specified]",
		"5Gi": "[maximum memory usage per PersistentVolumeClaim is 1.  No request is specified, maximum storage usage per PersistentVolumeClaim is 4Gi, but request is 5Gi]",
	} {
		_, err := client.CoreV1().PersistentVolumeClaims("claim").Create(t.Context(), claim("c", storage), metav1.CreateOptions{})
		refusal(t, storage, err, "persistentvolumeclaims", "c", want)
	}
}

func refusal(t *testing.T, what string, err error, resource, name, want string) {
	t.Helper()
	if want != "" {
		want = fmt.Sprintf("%s %q is forbidden: %s", resource, name, want)
	}
	if got := fmt.Sprint(err); got != want && (err != nil || want != "") {
		t.Errorf("%s: %s\nwant %s", what, got, want)
	}
}

func claim(name, storage string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}, Resources: corev1.VolumeResourceRequirements{Requests: list("storage", storage)},
	}}
}

// Of updates only the resize of a pod is limited, and those of claims but for the status.
func TestLimitRangeUpdates(t *testing.T) {
	t.Parallel()
	r := start(t, func(o *server.Options) { o.Kinds = server.KindsAll })
	client, err := kubernetes.NewForConfig(r.config(t))
	if err != nil {
		t.Fatal(err)
	}
	pods, claims := client.CoreV1().Pods("default"), client.CoreV1().PersistentVolumeClaims("default")
	if _, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{container("c", list("cpu", "40m"), nil)}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := claims.Create(t.Context(), claim("c", "1Gi"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "l"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: "Container", Default: list("cpu", "200m", "memory", "1Gi"), DefaultRequest: list("cpu", "100m", "memory", "1Mi"), Min: list("cpu", "100m")},
		{Type: "PersistentVolumeClaim", Min: list("storage", "2Gi")},
	}}}
	if _, err := client.CoreV1().LimitRanges("default").Create(t.Context(), limits, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ patch, subresource, want string }{
		{`{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"j"}]}}`, "", ""},
		{`{"status":{"message":"x"}}`, "status", ""},
		{`{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"5m"}}}]}}`, "resize", "minimum cpu usage per Container is 100m, but request is 5m"},
		{`{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"150m"}}}]}}`, "resize", ""},
	} {
		var parts []string
		if test.subresource != "" {
			parts = []string{test.subresource}
		}
		got, err := pods.Patch(t.Context(), "p", types.StrategicMergePatchType, []byte(test.patch), metav1.PatchOptions{}, parts...)
		refusal(t, test.patch, err, "pods", "p", test.want)
		if err != nil {
			continue
		}
		want := "40m////"
		if test.subresource == "resize" {
			want = "150m/1Mi/200m/1Gi/"
		}
		if c := said(got.Spec.Containers[0].Resources); c != want || len(got.Annotations) > 0 {
			t.Errorf("%s: %s, %v", test.patch, c, got.Annotations)
		}
	}
	for _, test := range []struct{ patch, subresource, want string }{
		{`{"metadata":{"labels":{"a":"b"}}}`, "", "minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi"},
		{`{"status":{"phase":"Bound"}}`, "status", ""},
	} {
		var parts []string
		if test.subresource != "" {
			parts = []string{test.subresource}
		}
		_, err := claims.Patch(t.Context(), "c", types.MergePatchType, []byte(test.patch), metav1.PatchOptions{}, parts...)
		refusal(t, test.patch, err, "persistentvolumeclaims", "c", test.want)
	}
}

// A LimitRange applies at once, on all replicas, to what is created after it.
func TestLimitRangeOfAnotherReplica(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	var clients []kubernetes.Interface
	for range 2 {
		r := start(t, site.replica(func(o *server.Options) { o.Kinds = server.KindsAll }))
		client, err := kubernetes.NewForConfig(r.config(t))
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, client)
	}
	for i := range 20 {
		namespace := fmt.Sprint("n", i)
		limit(t, clients[0], namespace, []corev1.LimitRangeItem{{Type: "Container", Default: list("cpu", "1")}})
		for j, client := range clients {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", j)}, Spec: corev1.PodSpec{Containers: []corev1.Container{container("c", nil, nil)}}}
			got, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
			if err != nil || said(got.Spec.Containers[0].Resources) != "1//1//" {
				t.Fatalf("%d, %d: %v, %v", i, j, got, err)
			}
		}
		if err := clients[0].CoreV1().LimitRanges(namespace).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "after"}, Spec: corev1.PodSpec{Containers: []corev1.Container{container("c", nil, nil)}}}
		if got, err := clients[0].CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil || said(got.Spec.Containers[0].Resources) != "////" {
			t.Fatalf("%d: %v, %v", i, got, err)
		}
	}
}
