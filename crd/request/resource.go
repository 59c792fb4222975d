package request

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/object"
)

// Target is the part of an object that a request writes.
type Target uint8

// The targets.
const (
	Object Target = iota // all of it but the status, if there is a status subresource
	Status               // the status subresource
)

// Resource is one version of a custom resource.
type Resource struct {
	Kind       schema.GroupVersionKind
	Namespaced bool
	Status     bool   // the status subresource is enabled
	Scale      *Scale // nil without a scale subresource
}

// New returns the resource that a version of a CRD defines.
func New(d *crd.CRD, v *crd.Version) *Resource {
	return &Resource{
		Kind:       schema.GroupVersionKind{Group: d.Group, Version: v.Name, Kind: d.Kind},
		Namespaced: d.Namespaced, Status: v.Status, Scale: NewScale(v.Scale),
	}
}

// PrepareCreate removes what clients cannot set on a new object.
func (r *Resource) PrepareCreate(o *object.Object) {
	if r.Status {
		o.ReplaceMember("status", nil)
	}
	o.SetGeneration(1)
}

// PrepareUpdate puts back what an update does not change: the status if the target is the
// object, everything else if it is the status.
func (r *Resource) PrepareUpdate(o, old *object.Object, target Target) {
	if target == Status {
		// The resourceVersion may be the old one: the registry has compared them.
		status, managed := o.Member("status"), o.GetManagedFields()
		*o = *old.DeepCopy()
		o.SetManagedFields(managed)
		o.ReplaceMember("status", status)
		return
	}
	if r.Status {
		o.ReplaceMember("status", old.Member("status"))
	}
	if o.APIVersion() != old.APIVersion() || o.Kind() != old.Kind() || !o.SameBody(old) {
		o.SetGeneration(old.GetGeneration() + 1)
	}
}

// typeErrors refuses an object of another kind or version than the resource's.
func (r *Resource) typeErrors(o *object.Object) []Problem {
	var out []Problem
	if o.Kind() != r.Kind.Kind {
		out = append(out, Problem{Error: field.Invalid(field.NewPath("kind"), o.Kind(), "must be "+r.Kind.Kind)})
	}
	if want := r.Kind.GroupVersion().String(); o.APIVersion() != want {
		out = append(out, Problem{Error: field.Invalid(field.NewPath("apiVersion"), o.APIVersion(), "must be "+want)})
	}
	return out
}
