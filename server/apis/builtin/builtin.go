package builtin

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/warning"

	"github.com/espalier-dev/espalier/server/catalog/restmapping"
	"github.com/espalier-dev/espalier/server/endpoints"
	"github.com/espalier-dev/espalier/server/endpoints/discovery"
	"github.com/espalier-dev/espalier/server/storage/fieldmanager"
	"github.com/espalier-dev/espalier/server/storage/informer"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// Options configure the resources.
type Options struct {
	Backend *store.Backend
	// BackendOf returns the backend that has a resource; nil if all are in the same.
	BackendOf func(schema.GroupResource) *store.Backend
	// Like, if not nil, are the same resources of another server in the process. What is
	// known of their types is shared: it takes megabytes. So is what clients are told of them.
	Like *Resources
	// Admission may be nil.
	Admission  admission.Interface
	Authorizer authorizer.UnconditionalAuthorizer
	// MaxRequestBodyBytes bounds request bodies; 3 MiB if zero.
	MaxRequestBodyBytes int64
	// MinRequestTimeout is how long watches without timeoutSeconds last at least;
	// half an hour if zero.
	MinRequestTimeout time.Duration
}

// Resources are built-in resources. They are safe for concurrent use.
type Resources struct {
	options  Options
	all      []Resource
	scheme   *runtime.Scheme
	codecs   serializer.CodecFactory
	types    lazyTypes
	complete *complete
	// serializer and parameters are those of all endpoints.
	serializer runtime.NegotiatedSerializer
	parameters runtime.ParameterCodec
	stores     map[schema.GroupResource]*genericregistry.Store
	// storageCodecs are those of what etcd has.
	storageCodecs map[schema.GroupResource]runtime.Codec
	endpoints     map[endpointKey]*endpoint
	groups        func() []discovery.Group // describe, once
}

// endpointKey identifies an endpoint.
type endpointKey struct {
	schema.GroupVersionResource
	subresource string
}

// New returns the resources, stored by the backend of o. Two of the same name are
// an error.
func New(o Options, resources ...Resource) (*Resources, error) {
	if o.Backend == nil {
		return nil, errors.New("built-in resources need a backend to be stored in")
	}
	o.MaxRequestBodyBytes = cmp.Or(o.MaxRequestBodyBytes, endpoints.DefaultMaxRequestBodyBytes)
	o.MinRequestTimeout = cmp.Or(o.MinRequestTimeout, endpoints.DefaultMinRequestTimeout)
	r := &Resources{
		options: o, all: slices.Clone(resources),
		stores: map[schema.GroupResource]*genericregistry.Store{}, storageCodecs: map[schema.GroupResource]runtime.Codec{}, endpoints: map[endpointKey]*endpoint{},
	}
	r.groups = sync.OnceValue(r.describe)
	if err := check(r.all); err != nil {
		return nil, err
	}
	if err := r.know(o.Like); err != nil {
		return nil, err
	}
	for i := range r.all {
		if err := r.addStore(&r.all[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", r.all[i].resource(), err)
		}
	}
	for i := range r.all {
		if connect := r.all[i].connect; connect != nil {
			connect(r)
		}
	}
	if err := r.serve(); err != nil {
		return nil, err
	}
	if o.Like == nil {
		go r.types()
	}
	return r, nil
}

// know sets what is known of the types: as other resources know them, if they are given.
func (r *Resources) know(like *Resources) (err error) {
	if like != nil {
		r.scheme, r.codecs, r.types, r.complete = like.scheme, like.codecs, like.types, like.complete
		r.serializer, r.parameters = like.serializer, like.parameters
		return nil
	}
	if r.scheme, err = newScheme(r.all); err != nil {
		return err
	}
	r.codecs, r.types, r.complete = newCodecs(r.scheme), newTypes(r.scheme), newComplete()
	r.serializer, r.parameters = fieldmanager.CheckedSerializer(boundedQuantities{r.codecs}), runtime.NewParameterCodec(r.scheme)
	return nil
}

// check validates the descriptions of resources.
func check(resources []Resource) error {
	seen := map[schema.GroupVersionResource]bool{}
	stored := map[schema.GroupResource]bool{}
	for i := range resources {
		r := &resources[i]
		switch {
		case r.Version == "" || r.Plural == "" || r.Singular == "" || r.Kind == "":
			return fmt.Errorf("resource %q of group %q: the version, a name or the kind is missing", r.Plural, r.Group)
		case seen[r.version().WithResource(r.Plural)] || r.stored() && stored[r.resource()]:
			return fmt.Errorf("%s: there are two resources of this name", r.resource())
		case r.New == nil || (r.NewList == nil) != (r.Virtual != nil && !r.listed()):
			return fmt.Errorf("%s: New is needed, and NewList if and only if it is listed", r.resource())
		case r.stored() && r.Strategy.Name == nil:
			return fmt.Errorf("%s: Strategy.Name must be set", r.resource())
		case r.Strategy.Default != nil && r.Strategy.fill != nil:
			return fmt.Errorf("%s: there are two functions that set defaults", r.resource())
		case !r.Alias.Empty() && r.convert == nil:
			return fmt.Errorf("%s: an alias needs conversion functions", r.resource())
		}
		seen[r.version().WithResource(r.Plural)] = true
		stored[r.resource()] = stored[r.resource()] || r.stored()
	}
	return nil
}

// Store returns the store of a resource, nil if there is none. That of an alias
// is the one of what it stands for. Deleting and creating go through the
// endpoints where a resource wraps its store.
func (r *Resources) Store(name schema.GroupResource) *genericregistry.Store { return r.stores[name] }

// All returns the resources. They must not be changed.
func (r *Resources) All() []Resource { return r.all }

// Kinds returns the resources whose objects are stored.
func (r *Resources) Kinds() []restmapping.Kind {
	var list []restmapping.Kind
	for i := range r.all {
		if one := &r.all[i]; one.Virtual == nil {
			list = append(list, restmapping.Kind{Resource: one.version().WithResource(one.Plural), Kind: one.Kind, Namespaced: one.Namespaced, Prefix: one.Prefix})
		}
	}
	return list
}

// Informers says how informers read the resources that are stored.
func (r *Resources) Informers() []informer.Kind {
	var list []informer.Kind
	for i := range r.all {
		one := &r.all[i]
		if codec := r.storageCodecs[one.resource()]; codec != nil && one.Alias.Empty() {
			folder, _ := one.Key()
			list = append(list, informer.Kind{Resource: one.resource(), Folder: folder, New: one.New, Codec: codec, Complete: one.Complete})
		}
	}
	return list
}

// Serves reports whether there are resources of a group and version.
func (r *Resources) Serves(group, version string) bool {
	return slices.ContainsFunc(r.all, func(one Resource) bool { return one.Group == group && one.Version == version })
}

// ServeHTTP answers requests that are for a resource.
func (r *Resources) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	info, ok := request.RequestInfoFrom(req.Context())
	if !ok || !info.IsResourceRequest {
		http.NotFound(w, req)
		return
	}
	e := r.endpoints[endpointKey{schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}, info.Subresource}]
	if e == nil || !e.reached(info) {
		http.NotFound(w, req)
		return
	}
	if err := e.prepare(); err != nil { // a test prepares all
		responsewriters.InternalError(w, req, fmt.Errorf("preparing %s: %w", e.resource.resource(), err))
		return
	}
	if text := e.resource.Deprecated; text != "" {
		warning.AddWarning(req.Context(), "", text)
	}
	switch info.Verb {
	case "create", "update", "patch":
		req = req.WithContext(withWrite(req.Context()))
	}
	endpoints.Serve(w, req, info, e.Endpoint)
}
