package rules

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	content "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ConfigMap are the rules of config maps.
var ConfigMap = Rules{
	GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespaced: true,
	Name:     validation.NameIsDNSSubdomain,
	Validate: compared(validateConfigMap),
}

func validateConfigMap(o, before *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	if before != nil && isTrue(before.Immutable) {
		errs = validateImmutable(o.Immutable, maps.Equal(o.Data, before.Data))
		// Unlike data, it changes if it is empty and was left out, as in kube-apiserver.
		if !reflect.DeepEqual(o.BinaryData, before.BinaryData) {
			errs = append(errs, field.Forbidden(field.NewPath("binaryData"), immutableText))
		}
	}
	path := field.NewPath("data")
	size := 0
	for _, key := range slices.Sorted(maps.Keys(o.Data)) {
		errs = append(errs, validateDataKey(path, key)...)
		if _, ok := o.BinaryData[key]; ok {
			errs = append(errs, field.Invalid(path.Key(key), key, "duplicate of key present in binaryData"))
		}
		size += len(o.Data[key])
	}
	path = field.NewPath("binaryData")
	for _, key := range slices.Sorted(maps.Keys(o.BinaryData)) {
		errs = append(errs, validateDataKey(path, key)...)
		size += len(o.BinaryData[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize)) // the object as a whole
	}
	return errs
}

// validateDataKey looks at a key of a config map or a secret.
func validateDataKey(path *field.Path, key string) field.ErrorList {
	var errs field.ErrorList
	for _, text := range content.IsConfigMapKey(key) {
		errs = append(errs, field.Invalid(path.Key(key), key, text))
	}
	return errs
}

// immutableText is said about what may not change once `immutable` is set.
const immutableText = "field is immutable when `immutable` is set"

// validateImmutable is for objects whose field immutable was set.
func validateImmutable(immutable *bool, same bool) (errs field.ErrorList) {
	if !isTrue(immutable) {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), immutableText))
	}
	if !same {
		errs = append(errs, field.Forbidden(field.NewPath("data"), immutableText))
	}
	return errs
}

func isTrue(b *bool) bool { return b != nil && *b }
