package quota

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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
func (registry) Get(resource schema.GroupResource) quotav1.Evaluator { return newEvaluator(resource) }

// Add implements quota.Registry. Get has all.
func (registry) Add(quotav1.Evaluator) {}

// Remove implements quota.Registry.
func (registry) Remove(quotav1.Evaluator) {}

// List implements quota.Registry. It is not called: usage is counted in etcd.
func (registry) List() []quotav1.Evaluator { return nil }

// evaluator measures what objects take of quotas: their number as that of the library
// does, their bytes and their contents.
type evaluator struct {
	quotav1.Evaluator
	counts   []corev1.ResourceName
	sized    bool      // their bytes count
	contents *contents // nil for most resources
	// onlyBytes says that the request changes nothing else; Handles sets it, which comes
	// first. An evaluator is for one request.
	onlyBytes bool
}

func newEvaluator(resource schema.GroupResource) *evaluator {
	return &evaluator{
		Evaluator: generic.NewObjectCountEvaluator(resource, nil, short[resource]),
		counts:    countNames(resource),
		sized:     resource != quotas, // admission writes these, and would wait for itself
		contents:  measured[resource],
	}
}

// evaluatorOf returns the evaluator of a request, or nil if the request adds to nothing.
func evaluatorOf(a admission.Attributes) *evaluator {
	if e := newEvaluator(a.GetResource().GroupResource()); e.Handles(a) {
		return e
	}
	return nil
}

// Handles implements quota.Evaluator. Subresources that change what is stored come
// as the object itself: see wholeOf.
func (e *evaluator) Handles(a admission.Attributes) bool {
	if a.GetSubresource() != "" {
		return false
	}
	switch a.GetOperation() {
	case admission.Create:
		return true
	case admission.Update:
		e.onlyBytes = e.contents == nil || !e.contents.changedBy(subresourceOf(a), a.GetObject(), a.GetOldObject())
		return e.sized || !e.onlyBytes
	}
	return false
}

// Constraints implements quota.Evaluator.
func (e *evaluator) Constraints(limited []corev1.ResourceName, item runtime.Object) error {
	if e.contents == nil || e.contents.lacks == nil || e.onlyBytes {
		return nil
	}
	return e.contents.lacks(item, limited)
}

// Matches implements quota.Evaluator.
func (e *evaluator) Matches(q *corev1.ResourceQuota, item runtime.Object) (bool, error) {
	for name := range q.Status.Hard {
		if e.takes(name) {
			return e.within(item, scopesOf(q)), nil
		}
	}
	return false, nil
}

// within reports whether an object is in all of the scopes. Only contents have scopes.
func (e *evaluator) within(item runtime.Object, scopes []corev1.ScopedResourceSelectorRequirement) bool {
	for _, s := range scopes {
		if e.contents == nil || e.contents.within == nil || !e.contents.within(item, s) {
			return false
		}
	}
	return true
}

// MatchingScopes implements quota.Evaluator.
func (e *evaluator) MatchingScopes(item runtime.Object, scopes []corev1.ScopedResourceSelectorRequirement) ([]corev1.ScopedResourceSelectorRequirement, error) {
	var matching []corev1.ScopedResourceSelectorRequirement
	for _, s := range scopes {
		if e.within(item, []corev1.ScopedResourceSelectorRequirement{s}) {
			matching = append(matching, s)
		}
	}
	return matching, nil
}

// UncoveredQuotaScopes implements quota.Evaluator.
func (e *evaluator) UncoveredQuotaScopes(limited, covered []corev1.ScopedResourceSelectorRequirement) ([]corev1.ScopedResourceSelectorRequirement, error) {
	var uncovered []corev1.ScopedResourceSelectorRequirement
	for _, s := range limited {
		if !slices.ContainsFunc(covered, func(c corev1.ScopedResourceSelectorRequirement) bool { return equality.Semantic.DeepEqual(s, c) }) {
			uncovered = append(uncovered, s)
		}
	}
	return uncovered, nil
}

// MatchingResources implements quota.Evaluator.
func (e *evaluator) MatchingResources(input []corev1.ResourceName) []corev1.ResourceName {
	return slices.DeleteFunc(slices.Clone(input), func(name corev1.ResourceName) bool { return !e.takes(name) })
}

// takes reports whether the request may take something of a name.
func (e *evaluator) takes(name corev1.ResourceName) bool {
	switch {
	case name == StorageBytes:
		return e.sized
	case e.onlyBytes:
		return false
	}
	return slices.Contains(e.counts, name) || e.reads(name)
}

// reads reports whether objects must be read to count a name.
func (e *evaluator) reads(name corev1.ResourceName) bool {
	return e.contents != nil && e.contents.has(name)
}

// Usage implements quota.Evaluator. It is asked for both objects of an update.
func (e *evaluator) Usage(item runtime.Object) (corev1.ResourceList, error) {
	used := corev1.ResourceList{}
	if e.sized {
		used[StorageBytes] = *resource.NewQuantity(sizeOf(item), resource.DecimalSI)
	}
	if e.onlyBytes || item == nil {
		return used, nil
	}
	for _, name := range e.counts {
		used[name] = number(1)
	}
	if e.contents != nil {
		maps.Copy(used, e.contents.of(item, time.Now()))
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
