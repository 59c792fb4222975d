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
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/endpoints"
	"github.com/espalier-dev/espalier/server/endpoints/codec"
	"github.com/espalier-dev/espalier/server/storage/fieldmanager"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// view is a resource as one state of its definition has it.
type view struct {
	server   *Server
	entry    *catalog.Entry
	details  *details
	schemas  schemaSet
	convert  store.ConvertFunc
	vaults   map[string]*vault // of the versions that are served or stored
	versions map[string]*lazyVersion
	// requirement is what must be true of the CRD when an object is stored.
	requirement *store.Requirement

	users    int    // requests under way that are no watches; guarded by serving.mu
	replaced func() // not nil if there is a newer view: closes what only this one uses
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

// version returns a version that the view has a vault of.
func (v *view) version(name string) (*version, error) {
	lazy := v.versions[name]
	if lazy == nil {
		return nil, fmt.Errorf("there is no version %q", name)
	}
	lazy.once.Do(func() { lazy.version, lazy.err = v.build(name) })
	return lazy.version, lazy.err
}

// build makes everything that a version needs. It compiles the schema, so that
// a broken one is found here and not while an object is read.
func (v *view) build(name string) (*version, error) {
	entry, d, vt := v.entry.Version(name), v.details.versions[name], v.vaults[name]
	if entry == nil || d == nil || vt == nil {
		return nil, fmt.Errorf("there is no version %q", name)
	}
	if _, err := v.schemas[name].compiled(); err != nil {
		return nil, err
	}
	b := &builder{view: v, details: d, vault: vt, form: vt.form}
	b.selection = newSelection(d, v.entry.Namespaced)
	b.strategy = &strategy{
		ObjectTyper: typer{vt.form.kind}, NameGenerator: names.SimpleNameGenerator,
		form:     vt.form,
		resource: &request.Resource{Kind: vt.form.kind, Namespaced: v.entry.Namespaced, Status: entry.Status, Scale: d.scale},
	}
	var err error
	if b.table, err = newTable(vt.form, d.columns); err != nil {
		klog.V(2).InfoS("Printer columns cannot be read, those before are shown", "definition", v.entry.Name, "version", name, "err", err)
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
	view      *view
	details   *versionDetails
	vault     *vault
	form      *Form
	selection *selection
	strategy  *strategy
	table     *table
}

func (b *builder) resource() schema.GroupVersionResource {
	return b.form.kind.GroupVersion().WithResource(b.view.entry.Accepted.Plural)
}

// store returns the registry of the main resource.
func (b *builder) store() (*genericregistry.Store, error) {
	e, kind := b.view.entry, b.form.kind
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
	err := s.CompleteWithOptions(&generic.StoreOptions{RESTOptions: b.vault.options, AttrFunc: b.selection.attributes})
	return s, err
}

// main returns the endpoint of the resource itself.
func (b *builder) main(s *genericregistry.Store) (*endpoints.Endpoint, error) {
	scope := b.scope()
	var err error
	if scope.FieldManager, err = fieldmanager.Manager(types{b.view.schemas}, scope, b.strategy); err != nil {
		return nil, err
	}
	main := b.endpoint(scope, s, b.gate(request.Object))
	main.Ownership, err = b.ownership(scope)
	if plugins := b.view.server.options.Admission; plugins != nil {
		main.Attended = func() bool { return !plugins.Idle() }
	}
	return main, err
}

// ownership writes the managed fields where that is simple; nil if there is no
// schema to go by.
func (b *builder) ownership(scope *handlers.RequestScope) (*fieldmanager.Ownership, error) {
	schema := b.view.schemas[b.form.kind.Version]
	if schema.key.preserve {
		return nil, nil
	}
	var except []string
	if b.strategy.resource.Status {
		except = append(except, "status")
	}
	return fieldmanager.NewOwnership(scope, types{b.view.schemas}, schema.Normalize.Plan(), except...)
}

// status returns the endpoint of the status subresource.
func (b *builder) status(s *genericregistry.Store, main *handlers.RequestScope) (*endpoints.Endpoint, error) {
	strategy := statusStrategy{b.strategy}
	own := *s
	own.UpdateStrategy, own.ResetFieldsStrategy = strategy, strategy

	scope := *main
	scope.Subresource = "status"
	var err error
	if scope.FieldManager, err = fieldmanager.Manager(types{b.view.schemas}, &scope, statusReset{b.view}); err != nil {
		return nil, err
	}
	return b.endpoint(&scope, &statusREST{&own}, b.gate(request.Status)), nil
}

// statusReset says what is not managed through the status subresource, in all
// versions that have one.
type statusReset struct{ view *view }

// GetResetFields implements rest.ResetFieldsStrategy.
func (r statusReset) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	reset := map[fieldpath.APIVersion]*fieldpath.Set{}
	for i := range r.view.entry.Versions {
		if v := &r.view.entry.Versions[i]; v.Status && r.view.vaults[v.Name] != nil {
			own := statusStrategy{&strategy{form: r.view.vaults[v.Name].form}}
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
	if scope.FieldManager, err = fieldmanager.Manager(types{b.view.schemas}, &scope, nil); err != nil {
		return nil, err
	}
	storage := &scaleREST{store: s, paths: b.details.scale, version: b.form.kind.GroupVersion(),
		managed: replicasPaths(b.view.entry.Group, b.view.details)}
	return b.endpoint(&scope, storage, b.gate(request.Object)), nil
}

// scaleCodecs read and write scales; a client may send any version of them.
var scaleCodecs = sync.OnceValue(func() serializer.CodecFactory {
	return serializer.NewCodecFactory(scale.NewScaleConverter().Scheme(),
		serializer.WithStreamingCollectionEncodingToJSON(), serializer.WithStreamingCollectionEncodingToProtobuf())
})

func (b *builder) gate(target request.Target) *gate {
	e := b.view.entry
	return &gate{plugins: b.view.server.options.Admission, strategy: b.strategy, target: target, resource: b.resource(),
		terminating: e.Terminating || e.Deleting}
}

func (b *builder) endpoint(scope *handlers.RequestScope, s rest.Storage, g *gate) *endpoints.Endpoint {
	return &endpoints.Endpoint{Scope: scope, Storage: s, Admission: g, MinRequestTimeout: b.view.server.options.MinRequestTimeout}
}

// scope says how the handlers read and write the objects of the version.
func (b *builder) scope() *handlers.RequestScope {
	kind := b.form.kind
	negotiated := codec.Serializer(b.form)
	convertor := &convertor{form: b.form, selection: b.selection, convert: b.view.convert}
	return &handlers.RequestScope{
		Namer:                    handlers.ContextBasedNaming{Namer: meta.NewAccessor(), ClusterScoped: !b.view.entry.Namespaced},
		Serializer:               fieldmanager.CheckedSerializer(negotiated),
		ParameterCodec:           parameters(),
		StandardSerializers:      codec.Standard(negotiated),
		Creater:                  codec.Creater(),
		Convertor:                convertor,
		Defaulter:                newDefaulter(b.form),
		Typer:                    typer{kind},
		UnsafeConvertor:          convertor,
		Authorizer:               b.view.server.options.Authorizer,
		EquivalentResourceMapper: equivalents{b.view.entry},
		TableConvertor:           b.table,
		Resource:                 b.resource(),
		Kind:                     kind,
		MetaGroupVersion:         metav1.SchemeGroupVersion,
		HubGroupVersion:          kind.GroupVersion(),
		MaxRequestBodyBytes:      b.view.server.options.MaxRequestBodyBytes,
	}
}
