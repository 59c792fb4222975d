package builtin

import (
	"context"
	"fmt"
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
			p, errs := obj.(*corev1.Pod), below(path, podRules().validate(ctx, obj, old, "ephemeralcontainers"))
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

// resizing is the strategy of the subresource by which the resources of containers are
// changed.
func resizing(r *Resource) Strategy {
	return Strategy{
		Update: func(_ context.Context, obj, old runtime.Object) {
			restorePod(obj.(*corev1.Pod), old.(*corev1.Pod), func(p, sent *corev1.Pod) {
				resize(p.Spec.Containers, sent.Spec.Containers)
				resize(p.Spec.InitContainers, sent.Spec.InitContainers)
			})
		},
		ValidateUpdate: func(ctx context.Context, obj, old runtime.Object) field.ErrorList {
			p, before := obj.(*corev1.Pod), old.(*corev1.Pod)
			errs := validateResize(field.NewPath("spec", "containers"), p.Spec.Containers, before.Spec.Containers)
			errs = append(errs, validateResize(field.NewPath("spec", "initContainers"), p.Spec.InitContainers, before.Spec.InitContainers)...)
			if len(errs) == 0 {
				errs = below(field.NewPath("spec"), podRules().validate(ctx, obj, old, "resize"))
			}
			if was := qosClass(before); qosClass(p) != was {
				errs = append(errs, field.Invalid(field.NewPath("spec"), was, "Pod QOS Class may not change as a result of resizing"))
			}
			return errs
		},
		Unconditional: true,
		Generation:    r.Strategy.Generation,
	}
}

// resize takes the resources of the containers of the same names.
func resize(list, from []corev1.Container) {
	sent := map[string]*corev1.Container{}
	for i := range from {
		sent[from[i].Name] = &from[i]
	}
	for i := range list {
		if c := sent[list[i].Name]; c != nil {
			list[i].Resources, list[i].ResizePolicy = c.Resources, c.ResizePolicy
		}
	}
}

func validateResize(path *field.Path, list, old []corev1.Container) field.ErrorList {
	var errs field.ErrorList
	for i := range list {
		at := path.Index(i).Child("resources")
		now, was := list[i].Resources, old[i].Resources
		for _, part := range []struct {
			name     string
			now, was corev1.ResourceList
		}{{"limits", now.Limits, was.Limits}, {"requests", now.Requests, was.Requests}} {
			if !equality.Semantic.DeepEqual(others(part.now), others(part.was)) {
				return field.ErrorList{field.Forbidden(field.NewPath("spec"), "only cpu and memory resources are mutable")}
			}
			for _, name := range qosResources {
				_, is := part.now[name]
				if _, had := part.was[name]; had && !is {
					errs = append(errs, field.Forbidden(at.Child(part.name), fmt.Sprintf("resource %s cannot be removed", part.name)))
					break
				}
			}
		}
	}
	return errs
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
