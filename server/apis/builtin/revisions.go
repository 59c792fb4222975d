package builtin

import (
	"bytes"
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// addRevisions compares the data of ControllerRevisions byte for byte, as kube-apiserver
// does: the same JSON in another order or with other spaces is a change. Trees do not
// have the bytes.
func addRevisions(r *Resource) {
	validate := r.Strategy.ValidateUpdate
	r.Strategy.ValidateUpdate = func(ctx context.Context, obj, old runtime.Object) field.ErrorList {
		now, before := obj.(*appsv1.ControllerRevision).Data, old.(*appsv1.ControllerRevision).Data
		at := field.NewPath("data")
		errs := slices.DeleteFunc(validate(ctx, obj, old), func(err *field.Error) bool { return err.Field == at.String() })
		if !bytes.Equal(now.Raw, before.Raw) {
			errs = append(errs, field.Invalid(at, now, validation.FieldImmutableErrorMsg))
		}
		return errs
	}
}
