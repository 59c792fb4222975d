package endpoints

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Replaced is a subresource through which a part of the objects of a store can be
// replaced, and nothing else. The strategy of the store says which part.
type Replaced struct{ Store *genericregistry.Store }

// Part is a subresource that can be read, too, and so patched.
type Part struct{ Replaced }

// PartOf returns the part of its objects that the strategy of a store is about.
func PartOf(s *genericregistry.Store) Part { return Part{Replaced{s}} }

var (
	_ rest.Patcher             = Part{}
	_ rest.ResetFieldsStrategy = Part{}
)

// New implements rest.Storage.
func (r Replaced) New() runtime.Object { return r.Store.New() }

// Destroy implements rest.Storage. The store belongs to the resource itself.
func (Replaced) Destroy() {}

// Update implements rest.Updater. A subresource never creates.
func (r Replaced) Update(ctx context.Context, name string, change rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.Store.Update(ctx, name, change, create, update, false, options)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (r Replaced) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.Store.GetResetFields()
}

// Get implements rest.Getter.
func (p Part) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return p.Store.Get(ctx, name, options)
}
