package customresource

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/client-go/scale"
	"k8s.io/klog/v2"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/bridge"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/endpoints"
	"github.com/espalier-dev/espalier/server/endpoints/codec"
	"github.com/espalier-dev/espalier/server/storage/fieldmanager"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// crdInfo is a resource at one revision of its CRD.
type crdInfo struct {
	server  *Server
	entry   *catalog.Entry
	details *details
	schemas schemaSet
	convert store.ConvertFunc
	// convertible checks objects that are written; nil if the CRD has no conversion rules.
	convertible *convertible
	storages    map[string]*versionStorage // of the versions that are served or stored
	versions    map[string]*lazyVersion
	// requirement is what must be true of the CRD when an object is stored.
	requirement *store.Requirement

	users    int    // requests under way, without watches; guarded by servedResource.mu
	replaced func() // not nil if there is a newer crdInfo: closes what only this one uses
}

// lazyVersion is a version that is built when it is first asked for.
type lazyVersion struct {
	once    sync.Once
	version *version
	err     error
}

// version is one version of the resource, ready to serve.
type version struct {
	store        *genericregistry.Store
	main         *endpoints.Endpoint
	status       *endpoints.Endpoint // nil if there is no such subresource
	scale        *endpoints.Endpoint
	deprecations []string // for the Warning header
}

// version returns a version that is served or stored.
func (v *crdInfo) version(name string) (*version, error) {
	lazy := v.versions[name]
	if lazy == nil {
		return nil, fmt.Errorf("there is no version %q", name)
	}
	lazy.once.Do(func() { lazy.version, lazy.err = v.build(name) })
	return lazy.version, lazy.err
}

// build makes everything that a version needs. It compiles the schema, so that
// a broken one is found here and not while an object is read.
func (v *crdInfo) build(name string) (*version, error) {
	entry, d, vt := v.entry.Version(name), v.details.versions[name], v.storages[name]
	if entry == nil || d == nil || vt == nil {
		return nil, fmt.Errorf("there is no version %q", name)
	}
	if _, err := v.schemas[name].compiled(); err != nil {
		return nil, err
	}
	b := &builder{crdInfo: v, details: d, versionStorage: vt, decoder: vt.decoder}
	b.selection = newSelection(d, v.entry.Namespaced)
	b.selection.tenants = v.server.options.View != nil
	b.strategy = &strategy{
		ObjectTyper: codec.SharedTyper(vt.decoder.kind), NameGenerator: names.SimpleNameGenerator,
		decoder:     vt.decoder,
		resource:    &request.Resource{Kind: vt.decoder.kind, Namespaced: v.entry.Namespaced, Status: entry.Status, Scale: d.scale},
		convertible: v.convertible,
		bound:       v.entry.Loan != nil,
	}
	var err error
	if b.table, err = newTable(vt.decoder, d.columns); err != nil {
		klog.V(2).InfoS("Failed to parse additionalPrinterColumns, showing only the columns before the first invalid one", "crd", v.entry.Name, "version", name, "err", err)
	}
	out := &version{}
	if out.store, err = b.store(); err != nil {
		return nil, err
	}
	if out.main, err = b.main(out.store); err != nil {
		return nil, err
	}
	if entry.Status {
		if out.status, err = b.status(out.store, out.main.Scope); err != nil {
			return nil, err
		}
	}
	if d.scale != nil {
		if out.scale, err = b.scale(out.store, out.main.Scope); err != nil {
			return nil, err
		}
	}
	if entry.Deprecated {
		out.deprecations = []string{d.deprecation}
		for _, e := range []*endpoints.Endpoint{out.main, out.status, out.scale} {
			if e != nil {
				e.Deprecated = true
			}
		}
	}
	return out, nil
}

// builder builds the endpoints of one version.
type builder struct {
	crdInfo        *crdInfo
	details        *versionDetails
	versionStorage *versionStorage
	decoder        *Decoder
	selection      *selection
	strategy       *strategy
	table          *table
}

func (b *builder) resource() schema.GroupVersionResource {
	return b.decoder.kind.GroupVersion().WithResource(b.crdInfo.entry.Accepted.Plural)
}

// store returns the registry of the main resource.
func (b *builder) store() (*genericregistry.Store, error) {
	e, kind := b.crdInfo.entry, b.decoder.kind
	listType := metav1.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: e.Accepted.ListKind}
	s := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return object.New(kind) },
		NewListFunc:               func() runtime.Object { return &object.List{TypeMeta: listType} },
		PredicateFunc:             b.selection.predicate,
		DefaultQualifiedResource:  b.resource().GroupResource(),
		SingularQualifiedResource: schema.GroupResource{Group: e.Group, Resource: e.Accepted.Singular},
		CreateStrategy:            b.strategy,
		UpdateStrategy:            b.strategy,
		DeleteStrategy:            b.strategy,
		ResetFieldsStrategy:       b.strategy,
		TableConvertor:            b.table,
	}
	if b.selection.tenants {
		s.PredicateFunc = b.selection.ofTenants
		viewKeys(s, s.DefaultQualifiedResource)
	}
	err := s.CompleteWithOptions(&generic.StoreOptions{RESTOptions: b.versionStorage.options, AttrFunc: b.selection.attributes, TriggerFunc: b.selection.triggers()})
	return s, err
}

// main returns the endpoint of the resource itself.
func (b *builder) main(s *genericregistry.Store) (*endpoints.Endpoint, error) {
	scope := b.scope()
	var err error
	if scope.FieldManager, err = fieldmanager.Manager(types{b.crdInfo.schemas}, scope, b.strategy); err != nil {
		return nil, err
	}
	main := b.endpoint(scope, s, b.gate(request.Object))
	main.ManagedFields, err = b.managedFields(scope)
	if plugins := b.crdInfo.server.options.Admission; plugins != nil {
		main.Attended = func() bool { return !plugins.Idle() }
	}
	return main, err
}

// managedFields writes the managed fields where that is simple; nil if there is no
// schema to go by.
func (b *builder) managedFields(scope *handlers.RequestScope) (*fieldmanager.ManagedFields, error) {
	schema := b.crdInfo.schemas[b.decoder.kind.Version]
	if schema.key.preserve {
		return nil, nil
	}
	var except []string
	if b.strategy.resource.Status {
		except = append(except, "status")
	}
	return fieldmanager.NewManagedFields(scope, types{b.crdInfo.schemas}, bridge.Plan(schema.Normalize), except...)
}

// status returns the endpoint of the status subresource.
func (b *builder) status(s *genericregistry.Store, main *handlers.RequestScope) (*endpoints.Endpoint, error) {
	strategy := statusStrategy{b.strategy}
	own := *s
	own.UpdateStrategy, own.ResetFieldsStrategy = strategy, strategy

	scope := *main
	scope.Subresource = "status"
	var err error
	if scope.FieldManager, err = fieldmanager.Manager(types{b.crdInfo.schemas}, &scope, statusReset{b.crdInfo}); err != nil {
		return nil, err
	}
	return b.endpoint(&scope, endpoints.PartOf(&own), b.gate(request.Status)), nil
}

// statusReset lists the fields that requests to the status subresource do not
// manage, in all versions with that subresource.
type statusReset struct{ crdInfo *crdInfo }

// GetResetFields implements rest.ResetFieldsStrategy.
func (r statusReset) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	reset := map[fieldpath.APIVersion]*fieldpath.Set{}
	for i := range r.crdInfo.entry.Versions {
		if v := &r.crdInfo.entry.Versions[i]; v.Status && r.crdInfo.storages[v.Name] != nil {
			own := statusStrategy{&strategy{decoder: r.crdInfo.storages[v.Name].decoder}}
			for version, set := range own.GetResetFields() {
				reset[version] = set
			}
		}
	}
	return reset
}

// scale returns the endpoint of the scale subresource.
func (b *builder) scale(s *genericregistry.Store, main *handlers.RequestScope) (*endpoints.Endpoint, error) {
	table, err := newTable(nil, scaleColumns(b.details.scale))
	if err != nil {
		return nil, err
	}
	scope := *main
	scope.Subresource = "scale"
	scope.Kind = scaleKind
	scope.Serializer = scaleCodecs()
	scope.TableConvertor = table
	if scope.FieldManager, err = fieldmanager.Manager(types{b.crdInfo.schemas}, &scope, nil); err != nil {
		return nil, err
	}
	storage := &scaleREST{store: s, paths: b.details.scale, version: b.decoder.kind.GroupVersion(),
		managed: replicasPaths(b.crdInfo.entry.Group, b.crdInfo.details)}
	return b.endpoint(&scope, storage, b.gate(request.Object)), nil
}

// scaleCodecs read and write scales; a client may send any version of them.
var scaleCodecs = sync.OnceValue(func() serializer.CodecFactory {
	return serializer.NewCodecFactory(scale.NewScaleConverter().Scheme(),
		serializer.WithStreamingCollectionEncodingToJSON(), serializer.WithStreamingCollectionEncodingToProtobuf())
})

func (b *builder) gate(target request.Target) *gate {
	e := b.crdInfo.entry
	return &gate{plugins: b.crdInfo.server.options.Admission, strategy: b.strategy, target: target, resource: b.resource(),
		terminating: e.Terminating || e.Deleting}
}

func (b *builder) endpoint(scope *handlers.RequestScope, s rest.Storage, g *gate) *endpoints.Endpoint {
	return &endpoints.Endpoint{Scope: scope, Storage: s, Admission: g, MinRequestTimeout: b.crdInfo.server.options.MinRequestTimeout}
}

// scope says how the handlers read and write the objects of the version.
func (b *builder) scope() *handlers.RequestScope {
	kind := b.decoder.kind
	negotiated := codec.Serializer(b.decoder)
	convertor := &convertor{decoder: b.decoder, selection: b.selection, convert: b.crdInfo.convert}
	return &handlers.RequestScope{
		Namer:                    handlers.ContextBasedNaming{Namer: meta.NewAccessor(), ClusterScoped: !b.crdInfo.entry.Namespaced},
		Serializer:               fieldmanager.CheckedSerializer(negotiated),
		ParameterCodec:           codec.SharedParameters(),
		StandardSerializers:      codec.Standard(negotiated),
		Creater:                  codec.Creater(),
		Convertor:                convertor,
		Defaulter:                newDefaulter(b.decoder),
		Typer:                    codec.SharedTyper(kind),
		UnsafeConvertor:          convertor,
		Authorizer:               b.crdInfo.server.options.Authorizer,
		EquivalentResourceMapper: equivalents{b.crdInfo.entry},
		TableConvertor:           b.table,
		Resource:                 b.resource(),
		Kind:                     kind,
		MetaGroupVersion:         metav1.SchemeGroupVersion,
		HubGroupVersion:          kind.GroupVersion(),
		MaxRequestBodyBytes:      b.crdInfo.server.options.MaxRequestBodyBytes,
	}
}
