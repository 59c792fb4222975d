package quota

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
	"sigs.k8s.io/yaml"
)

// parse reads a part of an object.
func parse[T any](t *testing.T, text string) *T {
	t.Helper()
	value := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), value); err != nil {
		t.Fatal(err)
	}
	return value
}

// TestContents has what kube-controller-manager counts for the same objects.
func TestContents(t *testing.T) {
	const container = "{name: c, resources: {requests: {cpu: 300m, memory: 100Mi}, limits: {cpu: 500m, memory: 200Mi, x.io/gpu: 2, hugepages-2Mi: 4Mi}}}"
	pod := func(text string) runtime.Object { return parse[corev1.Pod](t, text) }
	service := func(spec string) runtime.Object { return parse[corev1.Service](t, "spec: {"+spec+"}") }
	claim := func(text string) runtime.Object { return parse[corev1.PersistentVolumeClaim](t, text) }
	for _, c := range []struct {
		name     string
		resource string
		obj      runtime.Object
		want     string
	}{
		{"containers", "pods", pod("spec: {containers: [" + container + "]}"), // resources that a pod only limits are requested by default, which is not done here
			"{pods: 1, cpu: 300m, requests.cpu: 300m, limits.cpu: 500m, memory: 100Mi, requests.memory: 100Mi, limits.memory: 200Mi}"},
		{"init containers and sidecars", "pods", pod(`spec:
  containers: [{name: c, resources: {requests: {cpu: 300m}, limits: {cpu: 500m}}}]
  initContainers:
  - {name: s, restartPolicy: Always, resources: {requests: {cpu: 111m}, limits: {cpu: 111m}}}
  - {name: i, resources: {requests: {cpu: 900m}, limits: {cpu: 900m}}}`),
			"{pods: 1, cpu: 1011m, requests.cpu: 1011m, limits.cpu: 1011m}"},
		{"overhead", "pods", pod("spec: {overhead: {cpu: 10m, memory: 1Mi}, containers: [{name: c, resources: {requests: {cpu: 1}, limits: {cpu: 2}}}]}"),
			"{pods: 1, cpu: 1010m, requests.cpu: 1010m, limits.cpu: 2010m, memory: 1Mi, requests.memory: 1Mi}"},
		{"other resources", "pods", pod("spec: {containers: [{name: c, resources: {requests: {x.io/gpu: 2, hugepages-2Mi: 4Mi, ephemeral-storage: 1, attachable-volumes-x: 1}}}]}"),
			"{pods: 1, requests.x.io/gpu: 2, hugepages-2Mi: 4Mi, requests.hugepages-2Mi: 4Mi, ephemeral-storage: 1, requests.ephemeral-storage: 1}"},
		{"the pod itself", "pods", pod("spec: {resources: {requests: {cpu: 1}, limits: {cpu: 2}}, containers: [{name: c}]}"),
			"{pods: 1, cpu: 1, requests.cpu: 1, limits.cpu: 2}"},
		{"a resize that has not been made", "pods", pod(`spec: {containers: [{name: c, resources: {requests: {cpu: 300m}}}]}
status: {containerStatuses: [{name: c, allocatedResources: {cpu: 800m}, resources: {requests: {cpu: 900m}}}]}`),
			"{pods: 1, cpu: 900m, requests.cpu: 900m}"},
		{"failed", "pods", pod("{spec: {containers: [" + container + "]}, status: {phase: Failed}}"), "{}"},
		{"succeeded", "pods", pod("{spec: {containers: [" + container + "]}, status: {phase: Succeeded}}"), "{}"},
		{"its grace is over", "pods", pod("{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 59}}"), "{}"},
		{"its grace is not over", "pods", pod("{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 60}}"), "{pods: 1}"},
		{"its grace is endless", "pods", pod("{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 9223372036854775807}}"), "{pods: 1}"},
		{"cluster IP", "services", service("type: ClusterIP, ports: [{port: 1}, {port: 2}]"), "{services.nodeports: 0, services.loadbalancers: 0}"},
		{"external name", "services", service("type: ExternalName"), "{services.nodeports: 0, services.loadbalancers: 0}"},
		{"node port", "services", service("type: NodePort, ports: [{port: 1}, {port: 2}]"), "{services.nodeports: 2, services.loadbalancers: 0}"},
		{"load balancer", "services", service("type: LoadBalancer, ports: [{port: 1}, {port: 2}]"), "{services.nodeports: 2, services.loadbalancers: 1}"},
		{"load balancer without node ports", "services", service("type: LoadBalancer, allocateLoadBalancerNodePorts: false, ports: [{port: 1, nodePort: 30999}, {port: 2}]"),
			"{services.nodeports: 1, services.loadbalancers: 1}"},
		{"class", "persistentvolumeclaims", claim("spec: {storageClassName: fast, resources: {requests: {storage: 1Gi}}}"),
			"{requests.storage: 1Gi, fast.storageclass.storage.k8s.io/requests.storage: 1Gi, fast.storageclass.storage.k8s.io/persistentvolumeclaims: 1}"},
		{"class in an annotation", "persistentvolumeclaims", claim("{metadata: {annotations: {volume.beta.kubernetes.io/storage-class: old}}, spec: {storageClassName: fast}}"),
			"{old.storageclass.storage.k8s.io/persistentvolumeclaims: 1}"},
		{"parts of bytes", "persistentvolumeclaims", claim("spec: {resources: {requests: {storage: 1500m}}}"), "{requests.storage: 2}"},
		{"a failed expansion", "persistentvolumeclaims", claim("{spec: {resources: {requests: {storage: 1Gi}}}, status: {allocatedResources: {storage: 2Gi}}}"), "{requests.storage: 2Gi}"},
	} {
		of := measured[corev1.Resource(c.resource)]
		got := of.of(c.obj, time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC))
		if want := *parse[corev1.ResourceList](t, c.want); !quotav1.Equals(got, want) {
			t.Errorf("%s: %v, not %v", c.name, got, want)
		}
		for name := range got {
			if !of.has(name) {
				t.Errorf("%s: %s is not a name of %s", c.name, name, c.resource)
			}
		}
	}
}

// TestWhatPodsLack has texts of kube-apiserver.
func TestWhatPodsLack(t *testing.T) {
	for _, c := range []struct {
		spec    string
		limited []corev1.ResourceName
		want    string
	}{
		{"{containers: [{name: z}, {name: m}], initContainers: [{name: a}]}", []corev1.ResourceName{"pods", "limits.cpu"}, "must specify limits.cpu for: a,m,z"},
		{"{containers: [{name: c1, resources: {requests: {cpu: 1}}}, {name: c2, resources: {requests: {memory: 1Gi}, limits: {memory: 1Gi}}}], initContainers: [{name: i1}]}",
			[]corev1.ResourceName{"requests.memory", "requests.cpu", "memory", "limits.memory", "limits.cpu", "cpu"},
			"must specify cpu for: c2,i1; limits.cpu for: c1,c2,i1; limits.memory for: c1,i1; memory for: c1,i1; requests.cpu for: c2,i1; requests.memory for: c1,i1"},
		{"{containers: [{name: c}]}", []corev1.ResourceName{"pods", "requests.ephemeral-storage", "requests.x.io/gpu"}, ""},
		{"{containers: [{name: c, resources: {limits: {cpu: 0}}}]}", []corev1.ResourceName{"limits.cpu"}, ""},
		{"{resources: {requests: {cpu: 1}}, containers: [{name: c}]}", []corev1.ResourceName{"limits.memory"}, ""},
	} {
		got := ""
		if err := podLacks(parse[corev1.Pod](t, "spec: "+c.spec), c.limited); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, not %q", c.spec, got, c.want)
		}
	}
}

// scopesFrom reads words: S exists, !S does not, S=x is in a list and S!=x is not.
func scopesFrom(text string) (all []corev1.ScopedResourceSelectorRequirement) {
	for _, word := range strings.Fields(text) {
		r := corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScope(strings.TrimPrefix(word, "!")), Operator: corev1.ScopeSelectorOpExists}
		if strings.HasPrefix(word, "!") {
			r.Operator = corev1.ScopeSelectorOpDoesNotExist
		} else if name, value, ok := strings.Cut(word, "="); ok {
			r.Operator, r.Values = corev1.ScopeSelectorOpIn, []string{value}
			if trimmed, not := strings.CutSuffix(name, "!"); not {
				name, r.Operator = trimmed, corev1.ScopeSelectorOpNotIn
			}
			r.ScopeName = corev1.ResourceQuotaScope(name)
		}
		all = append(all, r)
	}
	return all
}

func TestScopes(t *testing.T) {
	pod := func(spec string) runtime.Object { return parse[corev1.Pod](t, "spec: "+spec) }
	claim := parse[corev1.PersistentVolumeClaim](t, "spec: {volumeAttributesClassName: gold}")
	for _, c := range []struct {
		obj     runtime.Object
		in, out string // scopes
	}{
		{pod("{containers: [{name: c}]}"), "BestEffort NotTerminating !PriorityClass", "NotBestEffort Terminating PriorityClass CrossNamespacePodAffinity VolumeAttributesClass"},
		{pod("{activeDeadlineSeconds: 5, containers: [{name: c, resources: {requests: {ephemeral-storage: 1, cpu: 0}}}]}"), "BestEffort Terminating", "NotBestEffort NotTerminating"},
		{pod("{containers: [{name: c}], initContainers: [{name: i, resources: {limits: {memory: 1}}}]}"), "NotBestEffort", "BestEffort"},
		{pod("{resources: {requests: {cpu: 1}}, containers: [{name: c}]}"), "NotBestEffort", "BestEffort"},
		{pod("{priorityClassName: high}"), "PriorityClass PriorityClass=high PriorityClass!=low", "!PriorityClass PriorityClass=low PriorityClass!=high"},
		{pod("{}"), "PriorityClass!=high", "PriorityClass=high"},
		{pod("{affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: k, namespaces: [x]}]}}}"), "CrossNamespacePodAffinity", ""},
		{pod("{affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: k, namespaceSelector: {}}}]}}}"), "CrossNamespacePodAffinity", ""},
		{pod("{affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: k}]}}}"), "", "CrossNamespacePodAffinity"},
		{claim, "VolumeAttributesClass VolumeAttributesClass=gold", "VolumeAttributesClass=iron BestEffort NotTerminating !PriorityClass"},
		{&corev1.Service{}, "", "BestEffort NotTerminating !PriorityClass"},
	} {
		e := newEvaluator(corev1.Resource("services"))
		switch c.obj.(type) {
		case *corev1.Pod:
			e = newEvaluator(corev1.Resource("pods"))
		case *corev1.PersistentVolumeClaim:
			e = newEvaluator(corev1.Resource("persistentvolumeclaims"))
		}
		for text, want := range map[string]bool{c.in: true, c.out: false} {
			for _, s := range scopesFrom(text) {
				if e.within(c.obj, []corev1.ScopedResourceSelectorRequirement{s}) != want {
					t.Errorf("%T %+v: %v is not %t", c.obj, c.obj, s, want)
				}
			}
		}
	}
}
