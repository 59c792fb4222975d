package customresourcedefinition

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/espalier-dev/espalier/server/endpoints"
	"github.com/espalier-dev/espalier/server/endpoints/codec"
	"github.com/espalier-dev/espalier/server/storage/fieldmanager"
)

// endpointKey identifies an endpoint.
type endpointKey struct{ version, subresource string }

// Endpoint returns the endpoint of a version, v1 or v1beta1, and of a
// subresource, "status", "plan" or none. It is nil if there is none.
func (d *Resource) Endpoint(version, subresource string) *endpoints.Endpoint {
	return d.endpoints[endpointKey{version, subresource}]
}

// serve makes the endpoints.
func (d *Resource) serve() error {
	types, err := converters()
	if err != nil {
		return err
	}
	types = fieldmanager.Converter(types)
	equivalent := runtime.NewEquivalentResourceRegistry()
	for _, version := range Versions {
		for subresource, s := range map[string]rest.Storage{"": d.main, "status": d.status} {
			scope := d.scope(version, subresource, equivalent)
			if scope.FieldManager, err = fieldmanager.Manager(types, scope, s.(rest.ResetFieldsStrategy)); err != nil {
				return err
			}
			scope.UnsafeConvertor = patching{convertor{scope.Kind.GroupVersion()}} // not for the field manager, which has its own by now
			d.endpoints[endpointKey{version, subresource}] = &endpoints.Endpoint{
				Scope: scope, Storage: s, Admission: d.options.Admission, MinRequestTimeout: d.options.MinRequestTimeout,
				PatchTypes: patchTypes,
			}
		}
		if d.main.changes != nil {
			d.endpoints[endpointKey{version, PlanSubresource}] = &endpoints.Endpoint{
				Scope: d.scope(version, PlanSubresource, equivalent), Storage: planStorage{d.main, d.main.changes.planner, d.options.Authorizer},
			}
		}
	}
	return nil
}

// scope returns what the handlers know about a version and a subresource.
func (d *Resource) scope(version, subresource string, equivalent runtime.EquivalentResourceRegistry) *handlers.RequestScope {
	decoder := NewDecoder(version)
	gvk := decoder.Kind()
	c := convertor{gvk.GroupVersion()}
	s := codec.Serializer(decoder)
	scope := &handlers.RequestScope{
		Namer:      handlers.ContextBasedNaming{Namer: runtime.Namer(meta.NewAccessor()), ClusterScoped: true},
		Serializer: fieldmanager.CheckedSerializer(serializer{s, gvk.GroupVersion()}), StandardSerializers: codec.Standard(s),
		ParameterCodec: codec.Parameters(gvk.GroupVersion()),
		Creater:        codec.Creater(), Convertor: c, UnsafeConvertor: c, Defaulter: defaulter{}, Typer: codec.Typer(gvk),
		Authorizer: d.options.Authorizer, EquivalentResourceMapper: equivalent, TableConvertor: table{c},
		Resource: gvk.GroupVersion().WithResource(plural), Kind: gvk, Subresource: subresource,
		MetaGroupVersion: metav1.SchemeGroupVersion, HubGroupVersion: stable, MaxRequestBodyBytes: d.options.MaxRequestBodyBytes,
	}
	equivalent.RegisterKindFor(scope.Resource, subresource, gvk)
	return scope
}
