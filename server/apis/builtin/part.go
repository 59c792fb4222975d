package builtin

import (
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/espalier-dev/espalier/server/endpoints"
)

// Part returns a subresource through which a part of the objects is read,
// replaced and patched, such as their status. The strategy is that of an update:
// Update restores all other fields, ValidateUpdate validates the part, and Reset lists
// all other fields.
func Part(strategy Strategy) func(*genericregistry.Store) rest.Storage {
	return func(s *genericregistry.Store) rest.Storage { return endpoints.PartOf(withStrategy(s, strategy)) }
}

// Replaced returns a subresource through which a part of the objects can be
// replaced, and nothing else. The strategy is as for [Part].
func Replaced(strategy Strategy) func(*genericregistry.Store) rest.Storage {
	return func(s *genericregistry.Store) rest.Storage {
		return endpoints.Replaced{Store: withStrategy(s, strategy)}
	}
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
	var both storeStrategy = changed
	own.CreateStrategy, own.DeleteStrategy = nil, nil
	own.UpdateStrategy, own.ResetFieldsStrategy = both, both
	return &own
}
