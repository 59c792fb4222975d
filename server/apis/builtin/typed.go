package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// A [Resource] has functions of runtime.Object. The functions here make them from
// functions of the resource's own Go type. The store of a resource holds objects of no
// other type.

// empty makes an empty object of a type: a value for New and NewList.
func empty[T any, P interface {
	*T
	runtime.Object
}]() runtime.Object {
	return P(new(T))
}

// row is a value for Row.
func row[P runtime.Object](cells func(obj P) []any) func(runtime.Object) []any {
	return func(obj runtime.Object) []any { return cells(obj.(P)) }
}

// defaults is a value for Strategy.Default.
func defaults[P runtime.Object](fill func(obj P)) func(runtime.Object) {
	return func(obj runtime.Object) { fill(obj.(P)) }
}

// The types of Strategy.Validate and Strategy.ValidateUpdate.
type (
	onCreate = func(ctx context.Context, obj runtime.Object) field.ErrorList
	onUpdate = func(ctx context.Context, obj, old runtime.Object) field.ErrorList
)

// validated are values for Strategy.Validate and Strategy.ValidateUpdate. What an
// object was before does not matter.
func validated[P runtime.Object](validate func(obj P) field.ErrorList) (onCreate, onUpdate) {
	return compared(func(obj, _ P) field.ErrorList { return validate(obj) })
}

// compared are values for Strategy.Validate and Strategy.ValidateUpdate. A new object
// is compared with nil.
func compared[P runtime.Object](validate func(obj, old P) field.ErrorList) (onCreate, onUpdate) {
	var none P
	return func(_ context.Context, obj runtime.Object) field.ErrorList { return validate(obj.(P), none) },
		func(_ context.Context, obj, old runtime.Object) field.ErrorList { return validate(obj.(P), old.(P)) }
}

// counted is a value for Strategy.Generation: it counts the changes of a part.
func counted[P runtime.Object](part func(obj P) any) func(obj, old runtime.Object) bool {
	return func(obj, old runtime.Object) bool {
		return !equality.Semantic.DeepEqual(part(obj.(P)), part(old.(P)))
	}
}

// withStatus gives a resource the subresource status. Through it nothing but the
// status is written, and elsewhere everything but the status. The generation
// counts the changes of the spec.
func withStatus[P interface {
	runtime.Object
	metav1.Object
}, Spec, Status any](r *Resource, validate func(*Status) field.ErrorList, parts func(obj P) (*Spec, *Status)) {
	spec := func(obj runtime.Object) *Spec { s, _ := parts(obj.(P)); return s }
	status := func(obj runtime.Object) *Status { _, s := parts(obj.(P)); return s }
	r.Strategy.Create = func(_ context.Context, obj runtime.Object) { *status(obj) = *new(Status) }
	r.Strategy.Update = func(_ context.Context, obj, old runtime.Object) { *status(obj) = *status(old) }
	r.Strategy.Generation = counted(func(obj P) any { return *spec(obj) })
	r.Strategy.Reset = ResetFields(r.version().String(), "status")
	r.Subresources = map[string]func(*genericregistry.Store) rest.Storage{"status": Part(Strategy{
		Update: func(_ context.Context, obj, old runtime.Object) {
			*spec(obj) = *spec(old)
			metav1.ResetObjectMetaForStatus(obj.(P), old.(P))
		},
		ValidateUpdate: func(_ context.Context, obj, _ runtime.Object) field.ErrorList { return validate(status(obj)) },
		Unconditional:  r.Strategy.Unconditional,
		Reset:          ResetFields(r.version().String(), "metadata", "spec"),
	})}
}
