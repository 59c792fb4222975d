package builtin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/espalier-dev/espalier/crd/offline"
)

// addPods adds to pods what no file says: the status of new pods, graceful deletion, and
// the subresources binding, ephemeralcontainers and resize. [addEviction] adds eviction.
func addPods(r *Resource) {
	create := r.Strategy.Create
	r.Strategy.Create = func(ctx context.Context, obj runtime.Object) {
		p := obj.(*corev1.Pod)
		for _, text := range offline.SyncAppArmor(p) {
			warning.AddWarning(ctx, "", text)
		}
		if create != nil {
			create(ctx, obj)
		}
		startPod(p)
		trees(ctx, obj, nil).set("status", &p.Status)
	}
	if r.status != nil {
		update := r.status.Update
		r.status.Update = func(ctx context.Context, obj, old runtime.Object) {
			// A write without the class has that of the containers it was sent with, which are
			// not written.
			if p := obj.(*corev1.Pod); p.Status.QOSClass == "" || p.Status.QOSClass == qosClass(p) {
				p.Status.QOSClass = old.(*corev1.Pod).Status.QOSClass
			}
			update(ctx, obj, old)
		}
	}
	r.Fields = podFields
	r.Wrap = func(s *genericregistry.Store) rest.Storage {
		s.DeleteStrategy = podDeletion{s.CreateStrategy.(restStrategy)}
		s.ReturnDeletedObject = true
		return s
	}
	if r.Subresources == nil {
		r.Subresources = map[string]func(*genericregistry.Store) rest.Storage{}
	}
	r.Subresources["binding"] = func(s *genericregistry.Store) rest.Storage { return &bindingREST{s} }
	r.Subresources["ephemeralcontainers"] = Part(ephemeralContainers(r))
	r.Subresources["resize"] = Part(resizing(r))
}

// podFields are the fields that pods are selected by.
func podFields(obj runtime.Object) fields.Set {
	p := obj.(*corev1.Pod)
	host := "false"
	if p.Spec.HostNetwork {
		host = "true"
	}
	ip := p.Status.PodIP
	if ip == "" && len(p.Status.PodIPs) > 0 {
		ip = p.Status.PodIPs[0].IP
	}
	return fields.Set{
		"spec.nodeName": p.Spec.NodeName, "spec.restartPolicy": string(p.Spec.RestartPolicy), "spec.schedulerName": p.Spec.SchedulerName,
		"spec.serviceAccountName": p.Spec.ServiceAccountName, "spec.hostNetwork": host,
		"status.phase": string(p.Status.Phase), "status.podIP": ip, "status.nominatedNodeName": p.Status.NominatedNodeName,
	}
}

// startPod sets the status of a new pod.
func startPod(p *corev1.Pod) {
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qosClass(p)}
	if len(p.Spec.SchedulingGates) > 0 {
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
			Message: "Scheduling is blocked due to non-empty scheduling gates", LastTransitionTime: metav1.Now(),
		}}
	}
}

// qosClass is the class by which nodes evict pods: Guaranteed if every container has
// limits of CPU and memory that equal its requests, BestEffort if none has either.
func qosClass(p *corev1.Pod) corev1.PodQOSClass {
	all := []corev1.ResourceRequirements{}
	if r := p.Spec.Resources; r != nil && (len(r.Requests) > 0 || len(r.Limits) > 0) {
		all = append(all, *r) // resources of the pod as a whole come before those of its containers
	} else {
		for i := range p.Spec.InitContainers {
			all = append(all, p.Spec.InitContainers[i].Resources)
		}
		for i := range p.Spec.Containers {
			all = append(all, p.Spec.Containers[i].Resources)
		}
	}
	requests, limits := map[corev1.ResourceName]*resource.Quantity{}, map[corev1.ResourceName]*resource.Quantity{}
	guaranteed := true
	for i := range all {
		add(requests, all[i].Requests)
		if add(limits, all[i].Limits) != len(qosResources) {
			guaranteed = false
		}
	}
	switch {
	case len(requests) == 0 && len(limits) == 0:
		return corev1.PodQOSBestEffort
	case !guaranteed || len(requests) != len(limits):
		return corev1.PodQOSBurstable
	}
	for name, request := range requests {
		if limit := limits[name]; limit == nil || limit.Cmp(*request) != 0 {
			return corev1.PodQOSBurstable
		}
	}
	return corev1.PodQOSGuaranteed
}

// qosResources are the resources that the class depends on.
var qosResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// add adds the resources that the class depends on, and returns how many there are.
func add(sum map[corev1.ResourceName]*resource.Quantity, list corev1.ResourceList) int {
	n := 0
	for _, name := range qosResources {
		quantity, ok := list[name]
		if !ok || quantity.Sign() <= 0 {
			continue
		}
		n++
		if sum[name] == nil {
			sum[name] = &resource.Quantity{}
		}
		sum[name].Add(quantity)
	}
	return n
}

// podDeletion is the strategy of deletions: the kubelet of a pod's node has time to stop
// its containers.
type podDeletion struct{ restStrategy }

var _ rest.RESTGracefulDeleteStrategy = podDeletion{}

// CheckGracefulDelete implements rest.RESTGracefulDeleteStrategy. Pods without a node,
// and those that have ended, need no time.
func (podDeletion) CheckGracefulDelete(_ context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool {
	if options == nil {
		return false
	}
	p, period := obj.(*corev1.Pod), int64(0)
	switch {
	case p.Spec.NodeName == "" || ended(p):
	case options.GracePeriodSeconds != nil:
		period = *options.GracePeriodSeconds
	case p.Spec.TerminationGracePeriodSeconds != nil:
		period = *p.Spec.TerminationGracePeriodSeconds
	}
	if period < 0 {
		period = 1
	}
	options.GracePeriodSeconds = &period
	return true
}

// ended reports whether the containers of a pod have ended for good.
func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// setPodCondition sets a condition of a pod.
func setPodCondition(p *corev1.Pod, c corev1.PodCondition) {
	c.LastTransitionTime = metav1.Now()
	for i := range p.Status.Conditions {
		if was := &p.Status.Conditions[i]; was.Type == c.Type {
			if was.Status == c.Status {
				c.LastTransitionTime = was.LastTransitionTime
			}
			*was = c
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, c)
}
