package rules

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/crd/request"
)

// Namespace are the rules of namespaces.
var Namespace = Rules{
	GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"),
	Name:             validation.ValidateNamespaceName,
	Default:          filled(defaultNamespace),
	Prepare: func(obj, old runtime.Object) {
		if old == nil {
			startNamespace(obj.(*corev1.Namespace))
		} else {
			keepFinalizersAndStatus(obj.(*corev1.Namespace), old.(*corev1.Namespace))
		}
	},
	Validate: func(obj, old runtime.Object) field.ErrorList {
		if old != nil {
			return nil // they cannot change
		}
		return ValidateNamespaceFinalizers(obj.(*corev1.Namespace))
	},
	Status: &StatusRules{
		Prepare: func(obj, old runtime.Object) {
			obj.(*corev1.Namespace).Spec = old.(*corev1.Namespace).Spec
			KeepMetadata(obj.(*corev1.Namespace), old.(*corev1.Namespace))
		},
		Validate: validated(validatePhase),
	},
}

// defaultNamespace labels a namespace with its name, so that selectors find it.
// One whose name is yet to be generated has to wait.
func defaultNamespace(o *corev1.Namespace) {
	if o.Status.Phase == "" {
		o.Status.Phase = corev1.NamespaceActive
	}
	labelWithName(o)
}

func labelWithName(o *corev1.Namespace) {
	if o.Name == "" {
		return
	}
	if o.Labels == nil {
		o.Labels = map[string]string{}
	}
	o.Labels[corev1.LabelMetadataName] = o.Name
}

// startNamespace makes a new namespace active, and adds the finalizer by which it is
// emptied before it is removed.
func startNamespace(o *corev1.Namespace) {
	o.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	if !slices.Contains(o.Spec.Finalizers, corev1.FinalizerKubernetes) {
		o.Spec.Finalizers = append(o.Spec.Finalizers, corev1.FinalizerKubernetes)
	}
	labelWithName(o)
}

func keepFinalizersAndStatus(o, before *corev1.Namespace) {
	o.Spec.Finalizers, o.Status = before.Spec.Finalizers, before.Status
	labelWithName(o)
}

// ValidateNamespaceFinalizers validates the finalizers of the spec.
func ValidateNamespaceFinalizers(o *corev1.Namespace) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec", "finalizers") // without an index, as in kube-apiserver
	for _, finalizer := range o.Spec.Finalizers {
		name := string(finalizer)
		errs = append(errs, validation.ValidateFinalizerName(name, path)...)
		errs = append(errs, request.QualifiedFinalizer(path, name)...)
	}
	return errs
}

// validatePhase checks that the phase agrees with the deletion timestamp.
func validatePhase(o *corev1.Namespace) field.ErrorList {
	path := field.NewPath("status", "Phase")
	switch {
	case o.DeletionTimestamp.IsZero() && o.Status.Phase != corev1.NamespaceActive:
		return field.ErrorList{field.Invalid(path, o.Status.Phase, "may only be 'Active' if `deletionTimestamp` is empty")}
	case !o.DeletionTimestamp.IsZero() && o.Status.Phase != corev1.NamespaceTerminating:
		return field.ErrorList{field.Invalid(path, o.Status.Phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")}
	}
	return nil
}
