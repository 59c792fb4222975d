package request

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// QualifiedFinalizers returns errors for finalizers in the metadata that have no domain.
// Most built-in kinds refuse them, custom resources do not.
func QualifiedFinalizers(m metav1.Object) field.ErrorList {
	var errs field.ErrorList
	for i, name := range m.GetFinalizers() {
		errs = append(errs, QualifiedFinalizer(field.NewPath("metadata", "finalizers").Index(i), name)...)
	}
	return errs
}

// QualifiedFinalizer returns an error for a finalizer that has no domain.
func QualifiedFinalizer(at *field.Path, name string) field.ErrorList {
	if strings.Contains(name, "/") || slices.Contains(standardFinalizers, name) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, name, "name is neither a standard finalizer name nor is it fully qualified")}
}
