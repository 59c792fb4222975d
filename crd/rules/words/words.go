package words

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// OneOf complains about a value that is none of the supported ones, which are
// listed in the order given.
func OneOf[T ~string](at *field.Path, value T, supported ...T) field.ErrorList {
	if slices.Contains(supported, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, supported)}
}

// OneOfIfSet is OneOf for fields that may be left out.
func OneOfIfSet[T ~string](at *field.Path, value *T, supported ...T) field.ErrorList {
	if value == nil {
		return nil
	}
	return OneOf(at, *value, supported...)
}

// OneOfAlways is OneOf for fields that defaulting fills in.
func OneOfAlways[T ~string](at *field.Path, value *T, supported ...T) field.ErrorList {
	if value == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	return OneOf(at, *value, supported...)
}

// LoneStar complains about a list that has other values beside "*".
func LoneStar[T ~string](at *field.Path, values []T, what string) field.ErrorList {
	if len(values) < 2 || !slices.Contains(values, "*") {
		return nil
	}
	return field.ErrorList{field.Invalid(at, values, "if '*' is present, must not specify other "+what)}
}

// Named complains about a name that check finds something wrong with.
func Named(at *field.Path, name string, check func(name string, prefix bool) []string) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range check(name, false) {
		errs = append(errs, field.Invalid(at, name, msg))
	}
	return errs
}

// Selects complains about a label selector, if there is one.
func Selects(at *field.Path, selector *metav1.LabelSelector, opts metavalidation.LabelSelectorValidationOptions) field.ErrorList {
	if selector == nil {
		return nil
	}
	return metavalidation.ValidateLabelSelector(selector, opts, at)
}

// Unique remembers what it has been shown, and complains about what comes again.
type Unique map[string]bool

// Add complains about a value that was added before.
func (u Unique) Add(at *field.Path, value string) field.ErrorList {
	if u[value] {
		return field.ErrorList{field.Duplicate(at, value)}
	}
	u[value] = true
	return nil
}

// AtLeastOne complains about an empty list.
func AtLeastOne[T any](at *field.Path, values []T) field.ErrorList {
	if len(values) > 0 {
		return nil
	}
	return field.ErrorList{field.Required(at, "")}
}
