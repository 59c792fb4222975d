package builtin

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/crd/openapi"
	"github.com/espalier-dev/espalier/server/apis/builtin/models"
	"github.com/espalier-dev/espalier/server/endpoints/openapihandler"
)

// OpenAPI returns what is published about the resources, by group and version.
// Subresources of a kind of their own, such as tokens, are left out.
func (r *Resources) OpenAPI() []openapihandler.BuiltIn {
	var list []openapihandler.BuiltIn
	types := map[int][]any{}
	for i := range r.all {
		one := &r.all[i]
		at := slices.IndexFunc(list, func(b openapihandler.BuiltIn) bool { return b.Group == one.Group && b.Version == one.Version })
		if at < 0 {
			at = len(list)
			list = append(list, openapihandler.BuiltIn{Group: one.Group, Version: one.Version})
		}
		list[at].Resources = append(list[at].Resources, r.published(one))
		types[at] = append(types[at], one.New())
		if one.NewList != nil {
			types[at] = append(types[at], one.NewList())
		}
	}
	for at := range list {
		list[at].Definitions = models.Definitions(types[at]...)
	}
	return list
}

// published is the part of a resource that its paths depend on. A resource that cannot
// be listed gets a list kind too, but nothing refers to it.
func (r *Resources) published(one *Resource) openapi.Resource {
	out := openapi.Resource{
		Group: one.Group, Version: one.Version, Plural: one.Plural, Kind: one.Kind, ListKind: one.Kind, Namespaced: one.Namespaced,
		Model: modelName(one.New()), ListModel: modelName(one.New()), Typed: true,
		Verbs: r.endpoints[endpointKey{one.version().WithResource(one.Plural), ""}].verbs(),
	}
	if one.NewList != nil {
		out.ListKind, out.ListModel = one.Kind+"List", modelName(one.NewList())
	}
	parts := r.subresources(one)
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		switch e := parts[name]; {
		case e.Scope.Kind != one.version().WithKind(one.Kind):
		case name == "status":
			out.Status = true
		default:
			out.Parts = append(out.Parts, openapi.Part{Name: name, Verbs: e.verbs()})
		}
	}
	return out
}

// modelName is what the types of k8s.io/api call themselves.
func modelName(obj runtime.Object) string {
	return obj.(interface{ OpenAPIModelName() string }).OpenAPIModelName()
}
