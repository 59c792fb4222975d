package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/espalier-dev/espalier/crd/kinds"
	"github.com/espalier-dev/espalier/crd/request"
)

// restStrategy implements the strategies of k8s.io/apiserver with a [Strategy].
type restStrategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	strategy   Strategy
	namespaced bool
}

var (
	_ rest.RESTCreateStrategy              = restStrategy{}
	_ rest.CreateUpdateResetFieldsStrategy = restStrategy{}
	_ rest.RESTDeleteStrategy              = restStrategy{}
	_ rest.GarbageCollectionDeleteStrategy = transient{}
	_ rest.GarbageCollectionDeleteStrategy = orphaning{}
)

// orphaning is the strategy of objects whose dependents stay.
type orphaning struct{ restStrategy }

// DefaultGarbageCollectionPolicy implements rest.GarbageCollectionDeleteStrategy.
func (orphaning) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	return rest.OrphanDependents
}

// transient is the strategy of objects that expire: their deletion does not wait for
// dependents.
type transient struct{ restStrategy }

// DefaultGarbageCollectionPolicy implements rest.GarbageCollectionDeleteStrategy.
func (transient) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	return rest.Unsupported
}

// NamespaceScoped implements rest.NamespaceScopedStrategy.
func (s restStrategy) NamespaceScoped() bool { return s.namespaced }

// PrepareForCreate implements rest.RESTCreateStrategy.
func (s restStrategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	if s.strategy.Generation != nil {
		kinds.Metadata(obj).SetGeneration(1)
	}
	if s.strategy.Create != nil {
		s.strategy.Create(ctx, obj)
	}
}

// PrepareForUpdate implements rest.RESTUpdateStrategy. The generation is that
// of the old object already.
func (s restStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	changed := s.strategy.GenerationFirst && s.strategy.Generation(obj, old)
	if s.strategy.Update != nil {
		s.strategy.Update(ctx, obj, old)
	}
	if changed || !s.strategy.GenerationFirst && s.strategy.Generation != nil && s.strategy.Generation(obj, old) {
		kinds.Metadata(obj).SetGeneration(kinds.Metadata(old).GetGeneration() + 1)
	}
}

// Validate implements rest.RESTCreateStrategy.
func (s restStrategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	errs := s.validateMeta(obj)
	if s.strategy.QualifiedFinalizers {
		errs = append(errs, request.QualifiedFinalizers(kinds.Metadata(obj))...)
	}
	if s.strategy.Validate != nil {
		errs = append(errs, s.strategy.Validate(ctx, obj)...)
	}
	return s.authorize(ctx, obj, nil, errs)
}

// ValidateUpdate implements rest.RESTUpdateStrategy. Immutable metadata was validated
// before.
func (s restStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	var errs field.ErrorList
	if s.strategy.QualifiedFinalizers {
		errs = request.QualifiedFinalizers(kinds.Metadata(obj))
	}
	if s.strategy.GenerateNameOnUpdate {
		errs = append(errs, request.GenerateNameErrors(kinds.Metadata(obj), s.strategy.Name)...)
	}
	if s.strategy.ValidateUpdate != nil {
		errs = append(errs, s.strategy.ValidateUpdate(ctx, obj, old)...)
	}
	return s.authorize(ctx, obj, old, errs)
}

// authorize authorizes the references of an object without errors.
func (s restStrategy) authorize(ctx context.Context, obj, old runtime.Object, errs field.ErrorList) field.ErrorList {
	if len(errs) > 0 || s.strategy.Authorize == nil {
		return errs
	}
	return s.strategy.Authorize(ctx, obj, old)
}

func (s restStrategy) validateMeta(obj runtime.Object) field.ErrorList {
	return validation.ValidateObjectMetaAccessor(kinds.Metadata(obj), s.namespaced, s.strategy.Name, field.NewPath("metadata"))
}

// WarningsOnCreate implements rest.RESTCreateStrategy.
func (s restStrategy) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	if s.strategy.Warn == nil {
		return nil
	}
	return s.strategy.Warn(ctx, obj)
}

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (s restStrategy) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	if s.strategy.WarnUpdate != nil {
		return s.strategy.WarnUpdate(ctx, obj, old)
	}
	return s.WarningsOnCreate(ctx, obj)
}

// Canonicalize does nothing: Default, Create and Update have done it.
func (restStrategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate implements rest.RESTUpdateStrategy.
func (s restStrategy) AllowCreateOnUpdate(context.Context) bool { return s.strategy.CreateOnUpdate }

// AllowUnconditionalUpdate implements rest.RESTUpdateStrategy.
func (s restStrategy) AllowUnconditionalUpdate(context.Context) bool { return s.strategy.Unconditional }

// GetResetFields implements rest.ResetFieldsStrategy.
func (s restStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	reset := make(map[fieldpath.APIVersion]*fieldpath.Set, len(s.strategy.Reset))
	for version, set := range s.strategy.Reset {
		reset[fieldpath.APIVersion(version)] = set
	}
	return reset
}

// returnDeleted makes DELETE answer with the object instead of a status.
func returnDeleted(s *genericregistry.Store) rest.Storage {
	s.ReturnDeletedObject = true
	return s
}
