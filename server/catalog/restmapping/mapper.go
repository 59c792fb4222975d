package restmapping

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/server/catalog"
)

// ByVersionKind returns the resource of a kind in the given version. It finds none if
// that version is not served: callers make requests in this version, or authorize
// them.
func (k *Kinds) ByVersionKind(gvk schema.GroupVersionKind) (Kind, bool) {
	if i, ok := k.byKind[gvk.GroupKind()]; ok {
		found := k.builtin[i]
		served := found.Resource.Version == gvk.Version || k.further[gvk]
		found.Resource.Version = gvk.Version
		return found, served
	}
	found, ok := k.custom(gvk.Group, gvk.Kind, func(e *catalog.Entry) bool {
		v := e.Version(gvk.Version)
		return e.Established && v != nil && v.Served
	})
	if ok {
		found.Resource.Version = gvk.Version
	}
	return found, ok
}

// Mapper is a RESTMapper that looks up kinds in the catalog. One made of discovery
// reads all CRDs whenever it has forgotten them, and does not know new ones until
// then.
type Mapper struct {
	// RESTMapper serves the other methods, which admission plugins do not call.
	meta.RESTMapper
	// Kinds returns the resources, nil while they are not known: admission is built
	// before the resources that it admits to.
	Kinds func() *Kinds
}

// RESTMapping implements meta.RESTMapper.
func (m Mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	all := m.Kinds()
	for _, version := range versions {
		if all == nil {
			break
		}
		gvk := kind.WithVersion(version)
		found, ok := all.ByVersionKind(gvk)
		if !ok {
			continue
		}
		scope := meta.RESTScopeRoot
		if found.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		return &meta.RESTMapping{Resource: found.Resource, GroupVersionKind: gvk, Scope: scope}, nil
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
}

// RESTMappings implements meta.RESTMapper: a kind has one resource.
func (m Mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	mapping, err := m.RESTMapping(kind, versions...)
	if err != nil {
		return nil, err
	}
	return []*meta.RESTMapping{mapping}, nil
}
