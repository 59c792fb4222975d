package builtin

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

func leases() Resource {
	validate := func(obj runtime.Object) field.ErrorList {
		return validateLeaseSpec(&obj.(*coordinationv1.Lease).Spec, field.NewPath("spec"))
	}
	return Resource{
		Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Singular: "lease", Kind: "Lease", Namespaced: true,
		New:     empty[coordinationv1.Lease],
		NewList: empty[coordinationv1.LeaseList],
		Strategy: Strategy{
			Name:           apivalidation.NameIsDNSSubdomain,
			Create:         func(_ context.Context, obj runtime.Object) { dropStrategy(obj.(*coordinationv1.Lease)) },
			Update:         func(_ context.Context, obj, _ runtime.Object) { dropStrategy(obj.(*coordinationv1.Lease)) },
			Validate:       func(_ context.Context, obj runtime.Object) field.ErrorList { return validate(obj) },
			ValidateUpdate: func(_ context.Context, obj, _ runtime.Object) field.ErrorList { return validate(obj) },
			CreateOnUpdate: true,
		},
		Columns: []metav1.TableColumnDefinition{
			nameColumn,
			{Name: "Holder", Type: "string", Description: coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"]},
			ageColumn,
		},
		Row: row(func(o *coordinationv1.Lease) []any {
			return []any{o.Name, ptr.Deref(o.Spec.HolderIdentity, ""), created(o)}
		}),
	}
}

// dropStrategy drops the fields of coordinated leader election, as Kubernetes
// does where that feature is off: this server has no controller that elects.
func dropStrategy(o *coordinationv1.Lease) {
	o.Spec.Strategy, o.Spec.PreferredHolder = nil, nil
}

func validateLeaseSpec(spec *coordinationv1.LeaseSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if d := spec.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	if n := spec.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(path.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	return errs
}
