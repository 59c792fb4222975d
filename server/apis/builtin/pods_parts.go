package builtin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/crd/kinds"
)

// ephemeralContainers is the strategy of the subresource by which containers are added to
// a pod that runs, to look into it. They can be neither changed nor removed.
func ephemeralContainers(r *Resource) Strategy {
	path := field.NewPath("spec", "ephemeralContainers")
	return Strategy{
		Update: func(_ context.Context, obj, old runtime.Object) {
			restorePod(obj.(*corev1.Pod), old.(*corev1.Pod), func(p, sent *corev1.Pod) {
				p.Spec.EphemeralContainers = sent.Spec.EphemeralContainers
			})
		},
		ValidateUpdate: func(ctx context.Context, obj, old runtime.Object) field.ErrorList {
			p := obj.(*corev1.Pod)
			if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
				return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods do not support ephemeral containers")}
			}
			errs := below(path, podRules().validate(ctx, obj, old, "ephemeralcontainers"))
			now := map[string]*corev1.EphemeralContainer{}
			for i := range p.Spec.EphemeralContainers {
				now[p.Spec.EphemeralContainers[i].Name] = &p.Spec.EphemeralContainers[i]
			}
			for _, was := range old.(*corev1.Pod).Spec.EphemeralContainers {
				switch is := now[was.Name]; {
				case is == nil:
					errs = append(errs, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be removed\n", was.Name)))
				case !equality.Semantic.DeepEqual(*is, was):
					errs = append(errs, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be changed\n", was.Name)))
				}
			}
			return errs
		},
		Unconditional: true,
		Generation:    r.Strategy.Generation,
	}
}

// podRules are those of the file of pods.
func podRules() data { return data{kinds.Find("", "v1", "pods")} }

// below are the errors at or below a path.
func below(path *field.Path, errs field.ErrorList) field.ErrorList {
	var found field.ErrorList
	for _, err := range errs {
		if strings.HasPrefix(err.Field, path.String()) {
			found = append(found, err)
		}
	}
	return found
}

// restorePod sets a pod to the old one, but for what a subresource writes.
func restorePod(p, old *corev1.Pod, write func(p, sent *corev1.Pod)) {
	sent := *p
	*p = *old.DeepCopy()
	p.ManagedFields, p.ResourceVersion = sent.ManagedFields, sent.ResourceVersion
	write(p, &sent)
}

// resizing is the strategy of the subresource by which the resources of a pod and of its
// containers are changed.
func resizing(r *Resource) Strategy {
	return Strategy{
		Update: func(_ context.Context, obj, old runtime.Object) {
			restorePod(obj.(*corev1.Pod), old.(*corev1.Pod), func(p, sent *corev1.Pod) {
				p.Spec.Containers = resized(p.Spec.Containers, sent.Spec.Containers)
				p.Spec.InitContainers = resized(p.Spec.InitContainers, sent.Spec.InitContainers)
				if sent.Spec.Resources != nil {
					p.Spec.Resources = sent.Spec.Resources
				}
			})
		},
		ValidateUpdate: func(ctx context.Context, obj, old runtime.Object) field.ErrorList {
			p, before := obj.(*corev1.Pod), old.(*corev1.Pod)
			if errs := resizable(p, before); len(errs) > 0 {
				return errs
			}
			errs := below(field.NewPath("spec"), podRules().validate(ctx, obj, old, "resize"))
			errs = append(errs, validateResize(p, before)...)
			if was := qosClass(before); qosClass(p) != was {
				errs = append(errs, field.Invalid(field.NewPath("spec"), was, "Pod QOS Class may not change as a result of resizing"))
			}
			return errs
		},
		Unconditional: true,
		Generation:    r.Strategy.Generation,
	}
}

// resized are containers with the resources that were sent. If others were sent, it is
// those, which validation refuses.
func resized(list, sent []corev1.Container) []corev1.Container {
	if !slices.EqualFunc(list, sent, func(a, b corev1.Container) bool { return a.Name == b.Name }) {
		return sent
	}
	for i := range list {
		list[i].Resources, list[i].ResizePolicy = sent[i].Resources, sent[i].ResizePolicy
	}
	return list
}

// resizable returns why a pod cannot be resized whatever its resources are.
func resizable(p, old *corev1.Pod) field.ErrorList {
	if p.Spec.OS != nil && p.Spec.OS.Name == corev1.Windows {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "windows pods cannot be resized")}
	}
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods cannot be resized")}
	}
	return append(sameContainers("containers", p.Spec.Containers, old.Spec.Containers), sameContainers("initContainers", p.Spec.InitContainers, old.Spec.InitContainers)...)
}

func sameContainers(name string, list, old []corev1.Container) field.ErrorList {
	path := field.NewPath("spec", name)
	if len(list) != len(old) {
		return field.ErrorList{field.Forbidden(path, name+" may not be added or removed on resize")}
	}
	var errs field.ErrorList
	for i := range list {
		if list[i].Name != old[i].Name {
			errs = append(errs, field.Forbidden(path.Index(i).Child("name"), name+" may not be renamed or reordered on resize"))
		}
	}
	return errs
}

// validateResize returns errors for what a resize may not change. The containers have the
// names of the old ones.
func validateResize(p, old *corev1.Pod) field.ErrorList {
	spec := field.NewPath("spec")
	var errs, other field.ErrorList
	for i := range p.Spec.Containers {
		now, was := &p.Spec.Containers[i], &old.Spec.Containers[i]
		errs = append(errs, removed(spec.Child("containers").Index(i).Child("resources"), "resource", &now.Resources, &was.Resources)...)
		if len(other) == 0 && !sameBut(now, was) {
			other = append(other, field.Forbidden(spec, "only cpu and memory resources are mutable"))
		}
	}
	for i := range p.Spec.InitContainers {
		now, was, path := &p.Spec.InitContainers[i], &old.Spec.InitContainers[i], spec.Child("initContainers").Index(i)
		errs = append(errs, removed(path.Child("resources"), "resource", &now.Resources, &was.Resources)...)
		if !sameBut(now, was) {
			other = append(other, field.Forbidden(path, "only cpu and memory resources for init or sidecar containers are mutable"))
		}
	}
	if now, was := p.Spec.Resources, old.Spec.Resources; now != nil {
		if was == nil {
			was = &corev1.ResourceRequirements{}
		}
		errs = append(errs, removed(spec.Child("resources"), "pod-level resource", now, was)...)
		if !sameResources(now, was) {
			other = append(other, field.Forbidden(spec, "only cpu and memory resources are mutable at pod-level"))
		}
	}
	return append(errs, other...)
}

// removed returns errors for the limits and requests of CPU and memory that are gone.
func removed(path *field.Path, what string, now, was *corev1.ResourceRequirements) field.ErrorList {
	var errs field.ErrorList
	for _, part := range []struct {
		name     string
		now, was corev1.ResourceList
	}{{"limits", now.Limits, was.Limits}, {"requests", now.Requests, was.Requests}} {
		for _, name := range qosResources {
			_, is := part.now[name]
			if _, had := part.was[name]; had && !is {
				errs = append(errs, field.Forbidden(path.Child(part.name), what+" "+part.name+" cannot be removed"))
				break
			}
		}
	}
	return errs
}

// sameBut reports whether a resize leaves a container as it is, besides CPU and memory.
func sameBut(now, was *corev1.Container) bool {
	return equality.Semantic.DeepEqual(now.ResizePolicy, was.ResizePolicy) && sameResources(&now.Resources, &was.Resources)
}

func sameResources(now, was *corev1.ResourceRequirements) bool {
	return equality.Semantic.DeepEqual(others(now.Limits), others(was.Limits)) && equality.Semantic.DeepEqual(others(now.Requests), others(was.Requests)) &&
		equality.Semantic.DeepEqual(now.Claims, was.Claims)
}

// others are the resources besides CPU and memory.
func others(list corev1.ResourceList) corev1.ResourceList {
	rest := corev1.ResourceList{}
	for name, quantity := range list {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
			rest[name] = quantity
		}
	}
	return rest
}
