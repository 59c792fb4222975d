package quota

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	resourcehelper "k8s.io/component-helpers/resource"
)

const (
	requestsPrefix = "requests."
	limitsPrefix   = "limits."
	// longestGrace is the seconds of grace that are waited for at most: it is added to a
	// time.
	longestGrace = 1 << 31
)

// required are the names about which each container of a pod must say something if a quota
// limits them.
var required = []corev1.ResourceName{
	corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
}

// podsHave reports whether pods may take something of a name.
func podsHave(name corev1.ResourceName) bool {
	if name == corev1.ResourcePods {
		return true
	}
	if limited, ok := strings.CutPrefix(string(name), limitsPrefix); ok {
		return isOfNodes(limited)
	}
	requested, ok := strings.CutPrefix(string(name), requestsPrefix)
	huge := strings.HasPrefix(requested, corev1.ResourceHugePagesPrefix)
	return isOfNodes(requested) || huge || ok && isExtended(requested)
}

// isOfNodes reports whether a name is one of the resources that every node has.
func isOfNodes(name string) bool {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return false
}

// isExtended reports whether a name is of a resource that Kubernetes itself does not have.
func isExtended(name string) bool {
	return strings.Contains(name, "/") && !strings.Contains(name, "kubernetes.io/")
}

// ofPod returns what a pod takes. One that has ended takes nothing.
func ofPod(obj runtime.Object, now time.Time) corev1.ResourceList {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return nil
	}
	if end, ok := endOf(pod); ok && now.After(end) {
		return nil
	}
	// What a container holds counts until a resize has taken it away.
	options := resourcehelper.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}
	taken := named(resourcehelper.PodRequests(pod, options), resourcehelper.PodLimits(pod, options))
	taken[corev1.ResourcePods] = number(1)
	return taken
}

// endOf returns when a pod that is being deleted takes nothing any more, even if no node
// confirms that.
func endOf(obj runtime.Object) (time.Time, bool) {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil {
		return time.Time{}, false
	}
	grace := min(max(*pod.DeletionGracePeriodSeconds, 0), longestGrace)
	return pod.DeletionTimestamp.Add(time.Duration(grace) * time.Second), true
}

// named returns requests and limits by the names that they have in quotas.
func named(requests, limits corev1.ResourceList) corev1.ResourceList {
	taken := corev1.ResourceList{}
	for name, quantity := range requests {
		huge := strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
		if isOfNodes(string(name)) || huge {
			taken[name] = quantity
		}
		if isOfNodes(string(name)) || huge || isExtended(string(name)) {
			taken[requestsPrefix+name] = quantity
		}
	}
	for name, quantity := range limits {
		if isOfNodes(string(name)) {
			taken[limitsPrefix+name] = quantity
		}
	}
	return taken
}

// podChangedBy has resizes, and updates that give a pod a deadline: its scope changes.
func podChangedBy(subresource string, obj, old runtime.Object) bool {
	pod, ok := obj.(*corev1.Pod)
	was, before := old.(*corev1.Pod)
	return subresource == "resize" || subresource == "" && ok && before && isTerminating(pod) != isTerminating(was)
}

// podLacks returns an error that has the containers without an amount of what is limited.
// A pod that has amounts itself needs none.
func podLacks(obj runtime.Object, limited []corev1.ResourceName) error {
	pod, ok := obj.(*corev1.Pod)
	if !ok || resourcehelper.IsPodLevelResourcesSet(pod) {
		return nil
	}
	lacking := map[corev1.ResourceName][]string{}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		has := named(c.Resources.Requests, c.Resources.Limits)
		for _, name := range limited {
			if _, ok := has[name]; !ok && slices.Contains(required, name) {
				lacking[name] = append(lacking[name], c.Name)
			}
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(lacking)) {
		slices.Sort(lacking[name])
		parts = append(parts, string(name)+" for: "+strings.Join(lacking[name], ","))
	}
	return errors.New("must specify " + strings.Join(parts, "; "))
}

// podWithin reports whether a pod is in a scope.
func podWithin(obj runtime.Object, r corev1.ScopedResourceSelectorRequirement) bool {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return false
	}
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return isTerminating(pod)
	case corev1.ResourceQuotaScopeNotTerminating:
		return !isTerminating(pod)
	case corev1.ResourceQuotaScopeBestEffort:
		return isBestEffort(pod)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !isBestEffort(pod)
	case corev1.ResourceQuotaScopePriorityClass:
		return selects(r, pod.Spec.PriorityClassName)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return isAcrossNamespaces(pod.Spec.Affinity)
	}
	return false
}

func isTerminating(pod *corev1.Pod) bool {
	return pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds >= 0
}

// isBestEffort reports whether a pod neither requests CPU or memory nor limits them.
func isBestEffort(pod *corev1.Pod) bool {
	given := func(r *corev1.ResourceRequirements) bool {
		for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
			if !list.Cpu().IsZero() || !list.Memory().IsZero() {
				return true
			}
		}
		return false
	}
	return (pod.Spec.Resources == nil || !given(pod.Spec.Resources)) &&
		!slices.ContainsFunc(slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers), func(c corev1.Container) bool { return given(&c.Resources) })
}

// isAcrossNamespaces reports whether a term of affinity names namespaces.
func isAcrossNamespaces(a *corev1.Affinity) bool {
	if a == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	var weighted []corev1.WeightedPodAffinityTerm
	if a.PodAffinity != nil {
		terms, weighted = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	}
	if a.PodAntiAffinity != nil {
		terms = slices.Concat(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		weighted = slices.Concat(weighted, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	names := func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil }
	return slices.ContainsFunc(terms, names) ||
		slices.ContainsFunc(weighted, func(w corev1.WeightedPodAffinityTerm) bool { return names(w.PodAffinityTerm) })
}
