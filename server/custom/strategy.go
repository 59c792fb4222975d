package custom

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/object"
)

// strategy says what requests to a resource may change, and has the result
// validated. It implements rest.RESTCreateUpdateStrategy, RESTDeleteStrategy
// and ResetFieldsStrategy.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator

	form       *Form
	namespaced bool
	status     bool        // the status subresource is enabled
	scale      *scalePaths // nil if there is no scale subresource
}

// NamespaceScoped implements rest.RESTCreateStrategy.
func (s *strategy) NamespaceScoped() bool { return s.namespaced }

// GetResetFields implements rest.ResetFieldsStrategy.
func (s *strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	reset := map[fieldpath.APIVersion]*fieldpath.Set{}
	if s.status {
		reset[apiVersion(s.form.kind)] = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	}
	return reset
}

func apiVersion(kind schema.GroupVersionKind) fieldpath.APIVersion {
	return fieldpath.APIVersion(kind.GroupVersion().String())
}

// PrepareForCreate implements rest.RESTCreateStrategy.
func (s *strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	o := obj.(*object.Object)
	if s.status {
		dropMember(o, "status")
	}
	o.SetGeneration(1)
}

// dropMember removes a member. The rest has been normalized and stays so.
func dropMember(o *object.Object, name string) {
	if o.Member(name) != nil {
		replaceMember(o, name, nil)
	}
}

// replaceMember sets a member to what is normalized, or removes it.
func replaceMember(o *object.Object, name string, value []byte) {
	stamp := o.Stamp()
	o.SetMember(name, value)
	o.SetStamp(stamp)
}

// PrepareForUpdate implements rest.RESTUpdateStrategy.
func (s *strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	o, before := obj.(*object.Object), old.(*object.Object)
	if s.status {
		if status := before.Member("status"); status != nil {
			replaceMember(o, "status", status)
		} else {
			dropMember(o, "status")
		}
	}
	if o.APIVersion() != before.APIVersion() || o.Kind() != before.Kind() || !o.SameBody(before) {
		o.SetGeneration(before.GetGeneration() + 1)
	}
}

// Validate implements rest.RESTCreateStrategy.
func (s *strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return s.validate(ctx, obj.(*object.Object), nil, allErrors)
}

// ValidateUpdate implements rest.RESTUpdateStrategy.
func (s *strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return s.validate(ctx, obj.(*object.Object), old.(*object.Object), allErrors)
}

// wording makes an error of a violation; nil if it does not count.
type wording func(*espalier.Violation) *field.Error

// validate says what is wrong with an object, as far as it counts.
func (s *strategy) validate(ctx context.Context, o, old *object.Object, word wording) field.ErrorList {
	if errs := s.typeErrors(o); len(errs) > 0 {
		return errs
	}
	verdict, err := s.judge(o, old)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	for i := range verdict.Warnings {
		warning.AddWarning(ctx, "", verdict.Warnings[i].Error())
	}
	return s.fieldErrors(o, &verdict, word)
}

// judge has the schema say what is wrong.
func (s *strategy) judge(o, old *object.Object) (espalier.Validation, error) {
	compiled, err := s.form.current(s.form.kind.Version).compiled()
	if err != nil {
		return espalier.Validation{}, err
	}
	options := espalier.ValidateOptions{Scope: espalier.Cluster, Rules: compiled.rules}
	if s.namespaced {
		options.Scope = espalier.Namespaced
	}
	if old != nil {
		options.Old = old.JSON()
	}
	return compiled.validate.Validate(o.JSON(), options)
}

// allErrors has every violation count, in the words of the schema.
func allErrors(v *espalier.Violation) *field.Error { return v.FieldError() }

// fieldErrors returns the violations that count, in the order of API servers:
// they look at the scale after the values, and before the rest.
func (s *strategy) fieldErrors(o *object.Object, verdict *espalier.Validation, word wording) field.ErrorList {
	var scale field.ErrorList
	if s.scale != nil {
		scale = s.scale.validate(o)
	}
	var errs field.ErrorList
	for i := range verdict.Errors {
		v := &verdict.Errors[i]
		if afterScale(v) {
			errs, scale = append(errs, scale...), nil
		}
		if e := word(v); e != nil {
			errs = append(errs, e)
		}
	}
	return append(errs, scale...)
}

// afterScale reports whether a violation is of embedded resources, lists or
// rules.
func afterScale(v *espalier.Violation) bool {
	switch v.Keyword {
	case "x-kubernetes-validations", "x-kubernetes-list-type":
		return true
	case "metadata":
		return !below(v.At, "metadata")
	}
	return false
}

// below reports whether a path is that of a member of an object or of something
// in it.
func below(path, member string) bool {
	rest, ok := strings.CutPrefix(path, member)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// typeErrors says if an object is not of the kind or version that it is sent to.
func (s *strategy) typeErrors(o *object.Object) field.ErrorList {
	var errs field.ErrorList
	if o.Kind() != s.form.kind.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), o.Kind(), "must be "+s.form.kind.Kind))
	}
	if want := s.form.kind.GroupVersion().String(); o.APIVersion() != want {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), o.APIVersion(), "must be "+want))
	}
	return errs
}

// WarningsOnCreate implements rest.RESTCreateStrategy.
func (s *strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return finalizerWarnings(obj.(*object.Object).GetFinalizers(), nil)
}

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (s *strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	return finalizerWarnings(obj.(*object.Object).GetFinalizers(), old.(*object.Object).GetFinalizers())
}

// Canonicalize implements rest.RESTCreateStrategy: objects are canonical.
func (s *strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate implements rest.RESTUpdateStrategy: only POST and
// server-side apply create.
func (s *strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate implements rest.RESTUpdateStrategy.
func (s *strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// standardFinalizers need no domain.
var standardFinalizers = []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, string(corev1.FinalizerKubernetes)}

// finalizerWarnings warns of new finalizers whose names others might choose too.
func finalizerWarnings(finalizers, before []string) []string {
	if len(finalizers) == 0 {
		return nil
	}
	var warnings []string
	added := slices.Compact(slices.Sorted(slices.Values(finalizers)))
	for _, f := range added {
		if slices.Contains(before, f) {
			continue
		}
		for _, fault := range validation.IsQualifiedName(f) {
			warnings = append(warnings, fmt.Sprintf("metadata.finalizers: %q: %s", f, fault))
		}
		if strings.Contains(f, "/") || slices.Contains(standardFinalizers, f) {
			continue
		}
		better := "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
		if strings.Contains(f, ".") {
			better = "prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers"
		}
		warnings = append(warnings, fmt.Sprintf("metadata.finalizers: %q: %s", f, better))
	}
	return warnings
}
