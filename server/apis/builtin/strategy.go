package builtin

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// strategy is what the library asks about writing objects, answered by rules.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	rules      Rules
	namespaced bool
}

var (
	_ rest.RESTCreateStrategy              = strategy{}
	_ rest.CreateUpdateResetFieldsStrategy = strategy{}
	_ rest.RESTDeleteStrategy              = strategy{}
	_ rest.GarbageCollectionDeleteStrategy = transient{}
)

// transient is the strategy of objects that go by themselves: nothing waits for
// what depends on them.
type transient struct{ strategy }

// DefaultGarbageCollectionPolicy implements rest.GarbageCollectionDeleteStrategy.
func (transient) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	return rest.Unsupported
}

// NamespaceScoped implements rest.NamespaceScopedStrategy.
func (s strategy) NamespaceScoped() bool { return s.namespaced }

// metaOf is the metadata of an object of k8s.io/api, all of which have some.
func metaOf(obj runtime.Object) metav1.Object {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(fmt.Sprintf("builtin: a %T has no metadata: %v", obj, err))
	}
	return m
}

// PrepareForCreate implements rest.RESTCreateStrategy.
func (s strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	if s.rules.Generation != nil {
		metaOf(obj).SetGeneration(1)
	}
	if s.rules.Create != nil {
		s.rules.Create(ctx, obj)
	}
}

// PrepareForUpdate implements rest.RESTUpdateStrategy. The generation is that
// of the old object already.
func (s strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	if s.rules.Update != nil {
		s.rules.Update(ctx, obj, old)
	}
	if s.rules.Generation != nil && s.rules.Generation(obj, old) {
		metaOf(obj).SetGeneration(metaOf(old).GetGeneration() + 1)
	}
}

// Validate implements rest.RESTCreateStrategy.
func (s strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	errs := s.validateMeta(obj)
	if s.rules.Validate != nil {
		errs = append(errs, s.rules.Validate(ctx, obj)...)
	}
	return s.authorize(ctx, obj, nil, errs)
}

// ValidateUpdate implements rest.RESTUpdateStrategy. That metadata stays what it
// has to stay has been seen to.
func (s strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	var errs field.ErrorList
	if s.rules.ValidateUpdate != nil {
		errs = s.rules.ValidateUpdate(ctx, obj, old)
	}
	return s.authorize(ctx, obj, old, errs)
}

// authorize adds what the author of an object without errors has no right to.
func (s strategy) authorize(ctx context.Context, obj, old runtime.Object, errs field.ErrorList) field.ErrorList {
	if len(errs) > 0 || s.rules.Authorize == nil {
		return errs
	}
	return s.rules.Authorize(ctx, obj, old)
}

func (s strategy) validateMeta(obj runtime.Object) field.ErrorList {
	return validation.ValidateObjectMetaAccessor(metaOf(obj), s.namespaced, s.rules.Name, field.NewPath("metadata"))
}

// WarningsOnCreate implements rest.RESTCreateStrategy.
func (s strategy) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	if s.rules.Warn == nil {
		return nil
	}
	return s.rules.Warn(ctx, obj)
}

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (s strategy) WarningsOnUpdate(ctx context.Context, obj, _ runtime.Object) []string {
	return s.WarningsOnCreate(ctx, obj)
}

// Canonicalize does nothing: defaults and rules have.
func (strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate implements rest.RESTUpdateStrategy.
func (s strategy) AllowCreateOnUpdate(context.Context) bool { return s.rules.CreateOnUpdate }

// AllowUnconditionalUpdate implements rest.RESTUpdateStrategy.
func (s strategy) AllowUnconditionalUpdate(context.Context) bool { return s.rules.Unconditional }

// GetResetFields implements rest.ResetFieldsStrategy.
func (s strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	reset := make(map[fieldpath.APIVersion]*fieldpath.Set, len(s.rules.Reset))
	for version, set := range s.rules.Reset {
		reset[fieldpath.APIVersion(version)] = set
	}
	return reset
}
