package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/espalier-dev/espalier/crd/rules"
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

// Ruled fills a strategy with the rules of a kind. A function that the strategy already
// has stays.
func Ruled(r *rules.Rules, s Strategy) Strategy {
	s.Name, s.QualifiedFinalizers, s.GenerateNameOnUpdate = r.Name, !r.AnyFinalizer, !r.LooseGenerateName
	s.Default, s.MetadataLast = r.Default, r.MetadataLast
	if s.Generation == nil {
		s.Generation = r.Generation
	}
	if r.Prepare != nil {
		if s.Create == nil {
			s.Create = func(_ context.Context, obj runtime.Object) { r.Prepare(obj, nil) }
		}
		s.Update = func(_ context.Context, obj, old runtime.Object) { r.Prepare(obj, old) }
	}
	if r.Validate != nil && s.Validate == nil {
		s.Validate = func(_ context.Context, obj runtime.Object) field.ErrorList { return r.Validate(obj, nil) }
		s.ValidateUpdate = func(_ context.Context, obj, old runtime.Object) field.ErrorList { return r.Validate(obj, old) }
	}
	if r.Warn != nil {
		s.Warn = func(_ context.Context, obj runtime.Object) []string { return r.Warn(obj) }
	}
	return s
}

// PartRuled fills the strategy of a subresource.
func PartRuled(r *rules.StatusRules, s Strategy) Strategy {
	s.Update = func(_ context.Context, obj, old runtime.Object) { r.Prepare(obj, old) }
	s.ValidateUpdate = func(_ context.Context, obj, old runtime.Object) field.ErrorList { return r.Validate(obj, old) }
	return s
}

// withStatus gives a resource the subresource status.
func withStatus(r *Resource, of *rules.StatusRules) {
	r.Strategy.Reset = ResetFields(r.version().String(), "status")
	r.Subresources = map[string]func(*genericregistry.Store) rest.Storage{"status": Part(PartRuled(of, Strategy{
		Unconditional: r.Strategy.Unconditional, Reset: ResetFields(r.version().String(), "metadata", "spec"),
	}))}
}
