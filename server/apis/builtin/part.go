package builtin

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Part returns a subresource through which a part of the objects is read,
// replaced and patched, such as their status. The strategy is that of an update:
// Update restores all other fields, ValidateUpdate validates the part, and Reset lists
// all other fields.
func Part(strategy Strategy) func(*genericregistry.Store) rest.Storage {
	return func(s *genericregistry.Store) rest.Storage { return part{replacing{withStrategy(s, strategy)}} }
}

// Replaced returns a subresource through which a part of the objects can be
// replaced, and nothing else. The strategy is as for [Part].
func Replaced(strategy Strategy) func(*genericregistry.Store) rest.Storage {
	return func(s *genericregistry.Store) rest.Storage { return replacing{withStrategy(s, strategy)} }
}

// ResetFields is a value for Strategy.Reset: the top-level fields of a version.
func ResetFields(version string, names ...string) map[string]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, name := range names {
		set.Insert(fieldpath.MakePathOrDie(name))
	}
	return map[string]*fieldpath.Set{version: set}
}

// withStrategy returns a store of the same objects with another strategy for updates.
func withStrategy(s *genericregistry.Store, strategy Strategy) *genericregistry.Store {
	own := *s
	changed := s.CreateStrategy.(restStrategy)
	changed.strategy = strategy
	own.CreateStrategy, own.DeleteStrategy = nil, nil
	own.UpdateStrategy, own.ResetFieldsStrategy = changed, changed
	return &own
}

// replacing is a subresource that can be replaced.
type replacing struct{ store *genericregistry.Store }

var (
	_ rest.Updater             = replacing{}
	_ rest.Patcher             = part{}
	_ rest.ResetFieldsStrategy = part{}
)

// New implements rest.Storage.
func (r replacing) New() runtime.Object { return r.store.New() }

// Destroy implements rest.Storage. The store belongs to the resource itself.
func (replacing) Destroy() {}

// Update implements rest.Updater. It creates nothing.
func (r replacing) Update(ctx context.Context, name string, change rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, change, create, update, false, options)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (r replacing) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// part is a subresource that can be read, too, and so patched.
type part struct{ replacing }

// Get implements rest.Getter.
func (p part) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return p.store.Get(ctx, name, options)
}
