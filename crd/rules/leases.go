package rules

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Lease are the rules of leases.
var Lease = Rules{
	GroupVersionKind: coordinationv1.SchemeGroupVersion.WithKind("Lease"), Namespaced: true,
	Name:         validation.NameIsDNSSubdomain,
	AnyFinalizer: true, LooseGenerateName: true,
	Prepare: func(obj, _ runtime.Object) { dropStrategy(obj.(*coordinationv1.Lease)) },
	Validate: validated(func(o *coordinationv1.Lease) field.ErrorList {
		return validateLeaseSpec(&o.Spec, field.NewPath("spec"))
	}),
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
