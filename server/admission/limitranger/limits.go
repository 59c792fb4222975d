package limitranger

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	podresources "k8s.io/component-helpers/resource"
)

// annotation says on a pod what was set.
const annotation = "kubernetes.io/limit-ranger"

// setDefaults gives the containers of a pod what they do not say themselves, and returns
// the text of the annotation, which is empty if nothing was set.
func setDefaults(pod *corev1.Pod, limits []corev1.LimitRangeItem) string {
	var set []string
	for i := range limits {
		if limits[i].Type != corev1.LimitTypeContainer {
			continue
		}
		for _, group := range []struct {
			name       string
			containers []corev1.Container
		}{{"container", pod.Spec.Containers}, {"init container", pod.Spec.InitContainers}} {
			for j := range group.containers {
				c := &group.containers[j]
				set = append(set, fill(&c.Resources.Requests, limits[i].DefaultRequest, "request", group.name, c.Name)...)
				set = append(set, fill(&c.Resources.Limits, limits[i].Default, "limit", group.name, c.Name)...)
			}
		}
	}
	if len(set) == 0 {
		return ""
	}
	return "LimitRanger plugin set: " + strings.Join(set, "; ")
}

// fill adds the defaults that a list does not have, and says which.
func fill(list *corev1.ResourceList, defaults corev1.ResourceList, what, group, container string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		if _, ok := (*list)[name]; ok {
			continue
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = defaults[name].DeepCopy()
		names = append(names, string(name))
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s %s for %s %s", strings.Join(names, ", "), what, group, container)}
}

// check returns why an object is not within limits.
func check(obj runtime.Object, limits []corev1.LimitRangeItem) []error {
	var errs []error
	for i := range limits {
		item := &limits[i]
		switch o := obj.(type) {
		case *corev1.Pod:
			switch item.Type {
			case corev1.LimitTypeContainer:
				for _, c := range slices.Concat(o.Spec.Containers, o.Spec.InitContainers) {
					errs = append(errs, usage{c.Resources.Requests, c.Resources.Limits}.check(item)...)
				}
			case corev1.LimitTypePod:
				// Overhead belongs to the node: it does not count.
				all := podresources.PodResourcesOptions{ExcludeOverhead: true}
				errs = append(errs, usage{podresources.PodRequests(o, all), podresources.PodLimits(o, all)}.check(item)...)
			}
		case *corev1.PersistentVolumeClaim:
			if item.Type == corev1.LimitTypePersistentVolumeClaim {
				errs = append(errs, claimed(o.Spec.Resources.Requests).check(item)...)
			}
		}
	}
	return errs
}

// usage is what a container or a pod uses.
type usage struct{ requests, limits corev1.ResourceList }

func (u usage) check(item *corev1.LimitRangeItem) []error {
	errs := atLeast(u.requests, item)
	for _, name := range slices.Sorted(maps.Keys(item.Max)) {
		most := item.Max[name]
		limit, limited := u.limits[name]
		request, requested := u.requests[name]
		switch {
		case !limited:
			errs = append(errs, fmt.Errorf("maximum %s usage per %s is %s.  No limit is specified", name, item.Type, most.String()))
		case limit.Cmp(most) > 0:
			errs = append(errs, fmt.Errorf("maximum %s usage per %s is %s, but limit is %s", name, item.Type, most.String(), limit.String()))
		case requested && request.Cmp(most) > 0:
			errs = append(errs, fmt.Errorf("maximum %s usage per %s is %s, but request is %s", name, item.Type, most.String(), request.String()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.MaxLimitRequestRatio)) {
		most := item.MaxLimitRequestRatio[name]
		limit, request := u.limits[name], u.requests[name]
		why := ""
		switch provided := ratio(limit, request); {
		case request.IsZero():
			why = "no request is specified or request is 0"
		case limit.IsZero():
			why = "no limit is specified or limit is 0"
		case provided > float64(most.MilliValue())/1000:
			why = fmt.Sprintf("provided ratio is %f", provided)
		default:
			continue
		}
		errs = append(errs, fmt.Errorf("%s max limit to request ratio per %s is %s, but %s", name, item.Type, most.String(), why))
	}
	return errs
}

// ratio is that of whole numbers, which is exact enough to compare: of thousandths, unless
// there are too many of them.
func ratio(limit, request resource.Quantity) float64 {
	const most = math.MaxInt64 / 1000
	if limit.Value() > most || request.Value() > most {
		return float64(limit.Value()) / float64(request.Value())
	}
	return float64(limit.MilliValue()) / float64(request.MilliValue())
}

// claimed is what a claim requests.
type claimed corev1.ResourceList

func (c claimed) check(item *corev1.LimitRangeItem) []error {
	errs := atLeast(corev1.ResourceList(c), item)
	for _, name := range slices.Sorted(maps.Keys(item.Max)) {
		most := item.Max[name]
		request, ok := c[name]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("maximum %s usage per %s is %s.  No request is specified", name, item.Type, most.String()))
		case request.Cmp(most) > 0:
			errs = append(errs, fmt.Errorf("maximum %s usage per %s is %s, but request is %s", name, item.Type, most.String(), request.String()))
		}
	}
	return errs
}

func atLeast(requests corev1.ResourceList, item *corev1.LimitRangeItem) []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(item.Min)) {
		least := item.Min[name]
		request, ok := requests[name]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("minimum %s usage per %s is %s.  No request is specified", name, item.Type, least.String()))
		case request.Cmp(least) < 0:
			errs = append(errs, fmt.Errorf("minimum %s usage per %s is %s, but request is %s", name, item.Type, least.String(), request.String()))
		}
	}
	return errs
}
