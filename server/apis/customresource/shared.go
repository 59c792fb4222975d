package customresource

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/server/catalog"
)

// equivalents tells admission which resources are the same in another version. The
// library's own registry takes more memory than all else of a resource that is served.
type equivalents struct{ entry *catalog.Entry }

var _ runtime.EquivalentResourceMapper = equivalents{}

// has reports whether a version has the subresource; all have the resource
// itself.
func has(v *catalog.Version, subresource string) bool {
	switch subresource {
	case "":
		return true
	case "status":
		return v.Status
	case "scale":
		return v.Scale
	}
	return false
}

// EquivalentResourcesFor implements runtime.EquivalentResourceMapper.
func (q equivalents) EquivalentResourcesFor(resource schema.GroupVersionResource, subresource string) []schema.GroupVersionResource {
	e := q.entry
	if resource.Group != e.Group || resource.Resource != e.Accepted.Plural {
		return nil
	}
	var all []schema.GroupVersionResource
	for i := range e.Versions {
		if v := &e.Versions[i]; has(v, subresource) {
			all = append(all, resource.GroupResource().WithVersion(v.Name))
		}
	}
	return all
}

// KindFor implements runtime.EquivalentResourceMapper.
func (q equivalents) KindFor(resource schema.GroupVersionResource, subresource string) schema.GroupVersionKind {
	e := q.entry
	if resource.Group != e.Group || resource.Resource != e.Accepted.Plural {
		return schema.GroupVersionKind{}
	}
	switch v := e.Version(resource.Version); {
	case v == nil || !has(v, subresource):
		return schema.GroupVersionKind{}
	case subresource == "scale":
		return scaleKind
	}
	return resource.GroupVersion().WithKind(e.Accepted.Kind)
}
