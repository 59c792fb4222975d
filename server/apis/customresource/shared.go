package customresource

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/endpoints/codec"
)

// What handlers need to know about options and equivalent resources hardly
// depends on the resource, and the library's own takes more memory than all
// else of one that is served.

// parameters read the options of requests. They are of the API of all
// resources, not of one.
var parameters = sync.OnceValue(func() runtime.ParameterCodec { return codec.Parameters(metav1.SchemeGroupVersion) })

var optionTypes = sync.OnceValue(func() runtime.ObjectTyper { return codec.Typer(metav1.SchemeGroupVersion.WithKind("")) })

// typer returns the kinds of objects. An object without a kind has the kind that is
// served.
type typer struct{ kind schema.GroupVersionKind }

// ObjectKinds implements runtime.ObjectTyper.
func (t typer) ObjectKinds(obj runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	if obj.GetObjectKind().GroupVersionKind().Kind == "" {
		switch obj.(type) {
		case *object.Object:
			return []schema.GroupVersionKind{t.kind}, false, nil
		case *object.List:
			return []schema.GroupVersionKind{t.kind.GroupVersion().WithKind(t.kind.Kind + "List")}, false, nil
		}
	}
	return optionTypes().ObjectKinds(obj)
}

// Recognizes implements runtime.ObjectTyper.
func (t typer) Recognizes(kind schema.GroupVersionKind) bool {
	return kind == t.kind || optionTypes().Recognizes(kind)
}

// equivalents tells admission which resources are the same in another version.
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
