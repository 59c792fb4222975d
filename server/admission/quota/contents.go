package quota

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// contents says what objects of a resource take of a quota, besides their number and
// their bytes. Admission and the controller measure with it.
type contents struct {
	// has reports whether the objects may take something of a name.
	has func(corev1.ResourceName) bool
	// of returns what an object takes at a time.
	of func(runtime.Object, time.Time) corev1.ResourceList
	// within reports whether an object is in a scope.
	within func(runtime.Object, corev1.ScopedResourceSelectorRequirement) bool
	// lacks returns an error if an object says nothing about a name that it must say
	// something about; nil if there are no such names.
	lacks func(runtime.Object, []corev1.ResourceName) error
	// changedBy reports whether an update of a subresource may be refused for what the
	// object takes then; "" is the object itself. The controller counts what other updates
	// change.
	changedBy func(subresource string, obj, old runtime.Object) bool
}

// measured are the resources that have contents.
var measured = map[schema.GroupResource]*contents{
	corev1.Resource("pods"): {has: podsHave, of: ofPod, within: podWithin, lacks: podLacks, changedBy: podChangedBy},
	corev1.Resource("services"): {
		has: func(name corev1.ResourceName) bool {
			return name == corev1.ResourceServicesNodePorts || name == corev1.ResourceServicesLoadBalancers
		},
		of: ofService, changedBy: itself,
	},
	corev1.Resource("persistentvolumeclaims"): {
		has: func(name corev1.ResourceName) bool {
			_, of, ok := strings.Cut(string(name), classInfix)
			return name == corev1.ResourceRequestsStorage || ok && (of == classStorage || of == classClaims)
		},
		of: ofClaim, within: claimWithin, changedBy: itself,
	},
}

// itself says that updates of the object change what it takes.
func itself(subresource string, _, _ runtime.Object) bool { return subresource == "" }

func number(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }

// ofService returns the ports of nodes and the load balancers that a service takes. It
// gets a port for each of its own, unless it says that it needs none: then those count
// that it names.
func ofService(obj runtime.Object, _ time.Time) corev1.ResourceList {
	s, ok := obj.(*corev1.Service)
	if !ok {
		return nil
	}
	ports, balancers := 0, 0
	switch s.Spec.Type {
	case corev1.ServiceTypeNodePort:
		ports = len(s.Spec.Ports)
	case corev1.ServiceTypeLoadBalancer:
		ports, balancers = len(s.Spec.Ports), 1
		if allocate := s.Spec.AllocateLoadBalancerNodePorts; allocate != nil && !*allocate {
			ports = 0
			for _, port := range s.Spec.Ports {
				if port.NodePort != 0 {
					ports++
				}
			}
		}
	}
	return corev1.ResourceList{corev1.ResourceServicesNodePorts: number(ports), corev1.ResourceServicesLoadBalancers: number(balancers)}
}

// Names of what the claims of one storage class take: <class><classInfix><classStorage>.
const (
	classInfix   = ".storageclass.storage.k8s.io/"
	classStorage = "requests.storage"
	classClaims  = "persistentvolumeclaims"
)

// ofClaim returns the storage that a claim takes: what it requests, or what a failed
// expansion holds, if that is more. It is in whole bytes.
func ofClaim(obj runtime.Object, _ time.Time) corev1.ResourceList {
	c, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	class := ""
	if c.Spec.StorageClassName != nil {
		class = *c.Spec.StorageClassName
	}
	if old, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		class = old
	}
	taken := corev1.ResourceList{}
	if class != "" {
		taken[corev1.ResourceName(class+classInfix+classClaims)] = number(1)
	}
	storage, ok := c.Spec.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		return taken
	}
	storage = storage.DeepCopy()
	if held, ok := c.Status.AllocatedResources[corev1.ResourceStorage]; ok && held.Cmp(storage) > 0 {
		storage = held.DeepCopy()
	}
	storage.RoundUp(0)
	taken[corev1.ResourceRequestsStorage] = storage
	if class != "" {
		taken[corev1.ResourceName(class+classInfix+classStorage)] = storage
	}
	return taken
}

func claimWithin(obj runtime.Object, r corev1.ScopedResourceSelectorRequirement) bool {
	c, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || r.ScopeName != corev1.ResourceQuotaScopeVolumeAttributesClass {
		return false
	}
	class := ""
	if c.Spec.VolumeAttributesClassName != nil {
		class = *c.Spec.VolumeAttributesClassName
	}
	return selects(r, class)
}

// selects reports whether a requirement is met by the name of a class; "" is none.
func selects(r corev1.ScopedResourceSelectorRequirement, class string) bool {
	switch r.Operator {
	case corev1.ScopeSelectorOpIn:
		return class != "" && slices.Contains(r.Values, class)
	case corev1.ScopeSelectorOpNotIn:
		return class == "" || !slices.Contains(r.Values, class)
	case corev1.ScopeSelectorOpExists:
		return class != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return class == ""
	}
	return false
}

// scopesOf are the requirements that an object must meet to count for a quota.
func scopesOf(q *corev1.ResourceQuota) []corev1.ScopedResourceSelectorRequirement {
	var all []corev1.ScopedResourceSelectorRequirement
	for _, name := range q.Spec.Scopes {
		all = append(all, corev1.ScopedResourceSelectorRequirement{ScopeName: name, Operator: corev1.ScopeSelectorOpExists})
	}
	if q.Spec.ScopeSelector != nil {
		all = append(all, q.Spec.ScopeSelector.MatchExpressions...)
	}
	return all
}
