package builtin

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Words that several resources have checked in the same way.

// oneOf complains about a value that is none of the supported ones, which are
// listed in the order given.
func oneOf[T ~string](at *field.Path, value T, supported ...T) field.ErrorList {
	if slices.Contains(supported, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, supported)}
}

// oneOfIfSet is oneOf for fields that may be left out.
func oneOfIfSet[T ~string](at *field.Path, value *T, supported ...T) field.ErrorList {
	if value == nil {
		return nil
	}
	return oneOf(at, *value, supported...)
}

// oneOfAlways is oneOf for fields that defaulting fills in.
func oneOfAlways[T ~string](at *field.Path, value *T, supported ...T) field.ErrorList {
	if value == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	return oneOf(at, *value, supported...)
}

// loneStar complains about a list that has other values beside "*".
func loneStar[T ~string](at *field.Path, values []T, what string) field.ErrorList {
	if len(values) < 2 || !slices.Contains(values, "*") {
		return nil
	}
	return field.ErrorList{field.Invalid(at, values, "if '*' is present, must not specify other "+what)}
}

// named complains about a name that check finds something wrong with.
func named(at *field.Path, name string, check func(name string, prefix bool) []string) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range check(name, false) {
		errs = append(errs, field.Invalid(at, name, msg))
	}
	return errs
}

// segmentName is the rule for names that need only fit into a URL.
func segmentName(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// selects complains about a label selector, if there is one.
func selects(at *field.Path, selector *metav1.LabelSelector, opts metavalidation.LabelSelectorValidationOptions) field.ErrorList {
	if selector == nil {
		return nil
	}
	return metavalidation.ValidateLabelSelector(selector, opts, at)
}

// unique remembers what it has been shown, and complains about what comes again.
type unique map[string]bool

func (u unique) add(at *field.Path, value string) field.ErrorList {
	if u[value] {
		return field.ErrorList{field.Duplicate(at, value)}
	}
	u[value] = true
	return nil
}
