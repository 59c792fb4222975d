package quota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"

	"github.com/espalier-dev/espalier/internal/object"
)

// registry makes an evaluator when one is asked for: nothing is kept for a
// resource. That of the library would keep one for every CRD.
type registry struct{}

var _ quotav1.Registry = registry{}

// Get implements quota.Registry.
func (registry) Get(resource schema.GroupResource) quotav1.Evaluator {
	return evaluator{Evaluator: generic.NewObjectCountEvaluator(resource, nil, short[resource]), names: append(countNames(resource), byteNames(resource)...)}
}

// Add implements quota.Registry. Get has all.
func (registry) Add(quotav1.Evaluator) {}

// Remove implements quota.Registry.
func (registry) Remove(quotav1.Evaluator) {}

// List implements quota.Registry. It is not called: usage is counted in etcd.
func (registry) List() []quotav1.Evaluator { return nil }

// byteNames are the names that the size of an object counts for.
func byteNames(resource schema.GroupResource) []corev1.ResourceName {
	if resource == quotas {
		return nil // admission writes these, and would wait for itself
	}
	return []corev1.ResourceName{StorageBytes}
}

// evaluator counts objects as that of the library does, and their bytes.
type evaluator struct {
	quotav1.Evaluator
	names []corev1.ResourceName
}

// Handles implements quota.Evaluator. Subresources that change what is stored come
// as the object itself: see wholeOf.
func (e evaluator) Handles(a admission.Attributes) bool {
	if a.GetSubresource() != "" {
		return false
	}
	switch a.GetOperation() {
	case admission.Create:
		return true
	case admission.Update:
		return slices.Contains(e.names, StorageBytes)
	}
	return false
}

// Matches implements quota.Evaluator. No object has a scope.
func (e evaluator) Matches(q *corev1.ResourceQuota, item runtime.Object) (bool, error) {
	return generic.Matches(q, item, e.MatchingResources, generic.MatchesNoScopeFunc)
}

// MatchingResources implements quota.Evaluator.
func (e evaluator) MatchingResources(input []corev1.ResourceName) []corev1.ResourceName {
	return quotav1.Intersection(input, e.names)
}

// Usage implements quota.Evaluator. It is asked for both objects of an update: the
// number does not change then.
func (e evaluator) Usage(item runtime.Object) (corev1.ResourceList, error) {
	used := corev1.ResourceList{}
	for _, name := range e.names {
		n := int64(1)
		if name == StorageBytes {
			n = sizeOf(item)
		}
		used[name] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	return used, nil
}

// envelope is what is stored around the protobuf of an object: a magic number, its
// kind and lengths.
const envelope = 40

// sizeOf returns how many bytes an object is going to take in etcd, before
// encryption.
func sizeOf(item runtime.Object) int64 {
	switch o := item.(type) {
	case nil:
		return 0
	case *object.Object:
		return int64(len(o.JSON()))
	case interface{ Size() int }:
		return int64(o.Size()) + envelope
	}
	return 0
}
