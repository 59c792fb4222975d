package builtin

import (
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	known "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/espalier-dev/espalier/server/apis/builtin/models"
	"github.com/espalier-dev/espalier/server/endpoints"
	"github.com/espalier-dev/espalier/server/endpoints/requestinfo"
	"github.com/espalier-dev/espalier/server/storage/fieldmanager"
)

// patchTypes are the patch types of resources with Go types.
var patchTypes = []string{
	string(types.JSONPatchType),
	string(types.MergePatchType),
	string(types.StrategicMergePatchType),
	string(types.ApplyYAMLPatchType),
}

// endpoint is a resource or subresource.
type endpoint struct {
	*endpoints.Endpoint
	resource *Resource
	// prepare adds what only requests need. It must be called before the endpoint serves.
	prepare func() error
}

// reached reports whether the path of a request is one of the resource's. The path of a
// namespace may name that namespace, and no other: rights within one namespace are no
// rights to others.
func (e *endpoint) reached(info *request.RequestInfo) bool {
	if e.resource.Group == "" && e.resource.Plural == "namespaces" && info.Namespace != "" {
		switch info.Verb {
		case "get", "update", "patch", "delete":
			return info.Namespace == info.Name
		}
		return false
	}
	return requestinfo.InScope(info, e.resource.Namespaced)
}

// verbs are those that the endpoint has, in order.
func (e *endpoint) verbs() []string {
	var verbs []string
	for _, verb := range []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"} {
		if e.Handler(verb) != nil {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}

// serve makes the endpoints.
func (r *Resources) serve() error {
	for i := range r.all {
		one, of := &r.all[i], &r.all[i]
		if !one.Alias.Empty() {
			of = find(r.all, one.Alias)
			r.stores[one.resource()] = r.stores[of.resource()]
		}
		parts := map[string]rest.Storage{"": r.storage(of)}
		for name, part := range of.Subresources {
			parts[name] = part(r.stores[of.resource()])
		}
		for name, s := range parts {
			if err := r.add(one, name, s, newTable(of)); err != nil {
				return fmt.Errorf("%s: %w", one.resource(), err)
			}
		}
	}
	return nil
}

// add makes one endpoint.
func (r *Resources) add(one *Resource, subresource string, s rest.Storage, t table) error {
	kind, own, err := r.kind(one, subresource, s)
	if err != nil {
		return err
	}
	scope := &handlers.RequestScope{
		Namer:      handlers.ContextBasedNaming{Namer: runtime.Namer(meta.NewAccessor()), ClusterScoped: !one.Namespaced},
		Serializer: r.serializer, ParameterCodec: r.parameters,
		Creater: r.scheme, Convertor: r.scheme, UnsafeConvertor: runtime.UnsafeObjectConvertor(r.scheme), Defaulter: r.scheme, Typer: r.scheme,
		Authorizer: r.options.Authorizer, EquivalentResourceMapper: r, TableConvertor: t,
		Resource: one.version().WithResource(one.Plural), Kind: kind, Subresource: subresource,
		MetaGroupVersion: metav1.SchemeGroupVersion, HubGroupVersion: internal(kind.Group), MaxRequestBodyBytes: r.options.MaxRequestBodyBytes,
	}
	if !own || one.Virtual != nil && !one.listed() {
		scope.TableConvertor = nil // reviews and tokens have no columns: 406, as in Kubernetes
	}
	prepare := sync.OnceValue(func() (err error) {
		scope.FieldManager, err = r.fieldManager(one, scope, own, s)
		return err
	})
	r.endpoints[endpointKey{scope.Resource, subresource}] = &endpoint{resource: one, prepare: prepare, Endpoint: &endpoints.Endpoint{
		Scope: scope, Storage: s, Admission: r.options.Admission, MinRequestTimeout: r.options.MinRequestTimeout, PatchTypes: patchTypes, CheckPatch: r.checkPatch(kind),
	}}
	return nil
}

var _ runtime.EquivalentResourceMapper = (*Resources)(nil)

// EquivalentResourcesFor implements runtime.EquivalentResourceMapper. A resource and its
// aliases have the same objects and the same plural name.
func (r *Resources) EquivalentResourcesFor(resource schema.GroupVersionResource, subresource string) []schema.GroupVersionResource {
	if r.endpoints[endpointKey{resource, subresource}] == nil {
		return nil
	}
	name := r.origin(resource.GroupResource())
	var list []schema.GroupVersionResource
	for i := range r.all {
		one := &r.all[i]
		if one.Plural != resource.Resource || r.origin(one.resource()) != name {
			continue
		}
		if other := one.version().WithResource(one.Plural); r.endpoints[endpointKey{other, subresource}] != nil {
			list = append(list, other)
		}
	}
	return list
}

// origin is the resource that an alias stands for, others themselves.
func (r *Resources) origin(name schema.GroupResource) schema.GroupResource {
	if one := find(r.all, name); one != nil && !one.Alias.Empty() {
		return one.Alias
	}
	return name
}

// KindFor implements runtime.EquivalentResourceMapper.
func (r *Resources) KindFor(resource schema.GroupVersionResource, subresource string) schema.GroupVersionKind {
	if e := r.endpoints[endpointKey{resource, subresource}]; e != nil {
		return e.Scope.Kind
	}
	return schema.GroupVersionKind{}
}

// fieldManager makes the field manager of an endpoint. It is the largest part of one, and
// most endpoints are never used.
func (r *Resources) fieldManager(one *Resource, scope *handlers.RequestScope, own bool, s rest.Storage) (*managedfields.FieldManager, error) {
	var types managedfields.TypeConverter = r.types
	switch {
	case !own:
		types = managedfields.NewDeducedTypeConverter() // client-go knows no types of it
	case one.Virtual != nil || !known.Scheme.Recognizes(scope.Kind):
		types = describedTypes(scope.Kind, one.New())
	}
	var reset map[fieldpath.APIVersion]fieldpath.Filter
	if s, ok := s.(rest.ResetFieldsStrategy); ok {
		reset = fieldpath.NewExcludeFilterSetMap(s.GetResetFields())
	}
	return managedfields.NewDefaultFieldManager(fieldmanager.Limited(types), r.scheme, r.scheme, r.scheme, scope.Kind, scope.HubGroupVersion, scope.Subresource, reset)
}

// kind is the kind that an endpoint serves: mostly that of the resource. Kinds of
// subresources are added to the scheme here.
func (r *Resources) kind(one *Resource, subresource string, s rest.Storage) (kind schema.GroupVersionKind, own bool, err error) {
	kind = one.version().WithKind(one.Kind)
	of := one
	if !one.Alias.Empty() {
		of = find(r.all, one.Alias) // whose type the parts of objects have
	}
	if subresource == "" || reflect.TypeOf(s.New()) == reflect.TypeOf(of.New()) {
		return kind, true, nil
	}
	if p, ok := s.(rest.GroupVersionKindProvider); ok {
		kind = p.GroupVersionKind(one.version())
	} else {
		kinds, _, err := known.Scheme.ObjectKinds(s.New())
		if err != nil {
			return kind, false, fmt.Errorf("subresource %s: %w", subresource, err)
		}
		kind = kinds[0]
	}
	if !r.scheme.Recognizes(kind) {
		metav1.AddToGroupVersion(r.scheme, kind.GroupVersion())
		register(r.scheme, kind, s.New)
		r.scheme.AddKnownTypeWithName(internal(kind.Group).WithKind(kind.Kind), s.New())
	}
	return kind, false, nil
}

// lazyTypes are those of all kinds of Kubernetes. They are read while the server starts,
// before the first write needs them.
type lazyTypes func() managedfields.TypeConverter

func newTypes(scheme *runtime.Scheme) lazyTypes {
	return sync.OnceValue(func() managedfields.TypeConverter {
		return managedfields.NewSchemeTypeConverter(scheme, models.Parser())
	})
}

// ObjectToTyped implements managedfields.TypeConverter.
func (t lazyTypes) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return t().ObjectToTyped(obj, opts...)
}

// TypedToObject implements managedfields.TypeConverter.
func (t lazyTypes) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return t().TypedToObject(value)
}

// subresources are those that a resource has, by name.
func (r *Resources) subresources(one *Resource) map[string]*endpoint {
	all := map[string]*endpoint{}
	for at, e := range r.endpoints {
		if e.resource == one && at.subresource != "" {
			all[at.subresource] = e
		}
	}
	return all
}
