package customresource

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/object"
)

// strategy decides what requests to a resource may change, and validates the
// result. It implements rest.RESTCreateUpdateStrategy, RESTDeleteStrategy
// and ResetFieldsStrategy.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator

	decoder  *Decoder
	resource *request.Resource
	// bound is that another tenant has the CRD.
	bound bool
	// convertible is nil if no conversion rules can fail.
	convertible *convertible
}

// NamespaceScoped implements rest.RESTCreateStrategy.
func (s *strategy) NamespaceScoped() bool { return s.resource.Namespaced }

// GetResetFields implements rest.ResetFieldsStrategy.
func (s *strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	reset := map[fieldpath.APIVersion]*fieldpath.Set{}
	if s.resource.Status {
		reset[apiVersion(s.decoder.kind)] = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	}
	return reset
}

func apiVersion(kind schema.GroupVersionKind) fieldpath.APIVersion {
	return fieldpath.APIVersion(kind.GroupVersion().String())
}

// PrepareForCreate implements rest.RESTCreateStrategy.
func (s *strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	if s.bound {
		withoutTenant(obj.(*object.Object))
	}
	s.resource.PrepareCreate(obj.(*object.Object))
}

// PrepareForUpdate implements rest.RESTUpdateStrategy.
func (s *strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	if s.bound {
		withoutTenant(obj.(*object.Object))
	}
	s.resource.PrepareUpdate(obj.(*object.Object), old.(*object.Object), request.Object)
}

// Validate implements rest.RESTCreateStrategy.
func (s *strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return s.validate(ctx, obj.(*object.Object), request.Options{})
}

// ValidateUpdate implements rest.RESTUpdateStrategy.
func (s *strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return s.validate(ctx, obj.(*object.Object), request.Options{Old: old.(*object.Object)})
}

// validate validates an object by the schema as it is now, and by the conversion rules.
func (s *strategy) validate(ctx context.Context, o *object.Object, options request.Options) field.ErrorList {
	compiled, err := s.decoder.current(s.decoder.kind.Version).compiled()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	if o != options.Old { // which others may hold
		o.Settle() // its metadata is complete: what is validated is what is stored
	}
	found, err := s.resource.Validate(compiled.Schema, o, options)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	for i := range found.Warnings {
		warning.AddWarning(ctx, "", found.Warnings[i].Error())
	}
	errs := found.ErrorList()
	if len(errs) == 0 {
		if err := s.convertible.check(ctx, o, options.Old); err != nil {
			errs = append(errs, err)
		}
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

func finalizerWarnings(finalizers, before []string) []string {
	var texts []string
	for _, w := range request.FinalizerWarnings(finalizers, before) {
		texts = append(texts, w.Text)
	}
	return texts
}

// Canonicalize implements rest.RESTCreateStrategy: objects are canonical.
func (s *strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate implements rest.RESTUpdateStrategy: only POST and
// server-side apply create.
func (s *strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate implements rest.RESTUpdateStrategy.
func (s *strategy) AllowUnconditionalUpdate(context.Context) bool { return false }
