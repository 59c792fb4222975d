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
// replaced and patched, such as their status. The rules are those of an update:
// Update keeps everything else as it was, ValidateUpdate looks at the part, and
// Reset has everything else.
func Part(rules Rules) func(*genericregistry.Store) rest.Storage {
	return func(s *genericregistry.Store) rest.Storage { return part{replacing{withRules(s, rules)}} }
}

// Replaced returns a subresource through which a part of the objects can be
// replaced, and nothing else. The rules are as for [Part].
func Replaced(rules Rules) func(*genericregistry.Store) rest.Storage {
	return func(s *genericregistry.Store) rest.Storage { return replacing{withRules(s, rules)} }
}

// ResetFields is a value for Rules.Reset: the top-level fields of a version.
func ResetFields(version string, names ...string) map[string]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, name := range names {
		set.Insert(fieldpath.MakePathOrDie(name))
	}
	return map[string]*fieldpath.Set{version: set}
}

// withRules returns a store of the same objects with other rules for updates.
func withRules(s *genericregistry.Store, rules Rules) *genericregistry.Store {
	own := *s
	changed := s.CreateStrategy.(strategy)
	changed.rules = rules
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
