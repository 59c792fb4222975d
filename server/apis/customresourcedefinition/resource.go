package customresourcedefinition

import (
	"cmp"
	"context"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	selection "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/endpoints"
	"github.com/espalier-dev/espalier/server/endpoints/codec"
	"github.com/espalier-dev/espalier/server/storage/converter"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// Options configure the resource.
type Options struct {
	Backend *store.Backend
	// Admission may be nil.
	Admission  admission.Interface
	Authorizer authorizer.UnconditionalAuthorizer
	// MaxRequestBodyBytes bounds request bodies; 3 MiB if zero.
	MaxRequestBodyBytes int64
	// MinRequestTimeout is how long watches without timeoutSeconds last at least;
	// half an hour if zero.
	MinRequestTimeout time.Duration
	// ProtectInstances refuses to delete a CRD that has instances, unless
	// it has the annotation AllowDeletion.
	ProtectInstances bool
	// Conversion makes the converters for plans. Without it there is no subresource plan, and
	// changes of CRDs are not checked against the objects that are stored.
	Conversion *converter.Factory
	// RequirePlan refuses changes of CRDs that lose data, unless a plan was approved. Without
	// it that is up to the annotation RequirePlan of each CRD.
	RequirePlan bool
	// Deletable, if not nil, returns an error if something else than its objects forbids to delete
	// the CRD of a resource.
	Deletable func(context.Context, schema.GroupResource) error
}

// Resource is the resource customresourcedefinitions. It is safe for concurrent use.
type Resource struct {
	options    Options
	main       main
	status     statusStorage
	controller *genericregistry.Store // the status and the finalizers, for the server itself
	openAPI    map[string]*spec.Schema
	endpoints  map[endpointKey]*endpoints.Endpoint
}

// New returns the resource, stored by the backend of o.
func New(o Options) (*Resource, error) {
	o.MaxRequestBodyBytes = cmp.Or(o.MaxRequestBodyBytes, endpoints.DefaultMaxRequestBodyBytes)
	o.MinRequestTimeout = cmp.Or(o.MinRequestTimeout, endpoints.DefaultMinRequestTimeout)
	schemas, err := openAPI()
	if err != nil {
		return nil, err
	}
	restStrategy := strategy{codec.Typer(stable.WithKind(kind)), names.SimpleNameGenerator}
	s := &genericregistry.Store{
		NewFunc:     newObject,
		NewListFunc: newList,
		PredicateFunc: func(label labels.Selector, field selection.Selector) storage.SelectionPredicate {
			return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: attributes}
		},
		DefaultQualifiedResource:  groupResource,
		SingularQualifiedResource: v1.Resource("customresourcedefinition"),
		CreateStrategy:            restStrategy,
		UpdateStrategy:            restStrategy,
		DeleteStrategy:            restStrategy,
		ResetFieldsStrategy:       restStrategy,
		TableConvertor:            table{},
	}
	options := o.Backend.RESTOptions(storedAs())
	if err := s.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: attributes}); err != nil {
		return nil, err
	}
	forStatus := *s
	forStatus.CreateStrategy, forStatus.DeleteStrategy = nil, nil
	forStatus.UpdateStrategy, forStatus.ResetFieldsStrategy = statusStrategy{restStrategy}, statusStrategy{restStrategy}
	forController := forStatus
	forController.UpdateStrategy = controllerStrategy{statusStrategy{restStrategy}}
	d := &Resource{
		options: o, main: main{Store: s, others: o.Deletable}, status: statusStorage{endpoints.PartOf(&forStatus)}, controller: &forController,
		openAPI: schemas, endpoints: map[endpointKey]*endpoints.Endpoint{},
	}
	if o.ProtectInstances {
		d.main.guard = &guard{etcd: o.Backend.Client(), prefix: options.StorageConfig.Prefix}
	}
	if o.Conversion != nil {
		d.main.changes = &changeGuard{planner: newPlanner(o.Backend, o.Conversion), always: o.RequirePlan}
	}
	return d, d.serve()
}

// storedAs says how CRDs are stored.
func storedAs() store.Spec {
	return store.Spec{
		Resource: groupResource, ResourcePrefix: "/" + groupResource.Group + "/" + groupResource.Resource,
		Codec: compacting{codec.Storage(NewDecoder(stable.Version))}, Version: stable.Version,
	}
}

// Storage returns the storage of the CRDs of a backend, for reading them, and a function that
// destroys it.
func Storage(b *store.Backend) (storage.Interface, func(), error) {
	s := storedAs()
	s.NewFunc, s.NewListFunc = newObject, newList
	return b.Storage(s)
}

// Store returns the store of CRDs, whose objects are of v1 and of type
// *[object.Object]. It has no watch cache. Deleting goes through the endpoints,
// which know of the finalizer.
func (d *Resource) Store() *genericregistry.Store { return d.main.Store }

// OpenAPI returns the schemas of CRDs, their lists and all that they
// refer to, in both versions, by name. They must not be changed.
func (d *Resource) OpenAPI() map[string]*spec.Schema { return d.openAPI }

// UpdateStatus changes the status, and if need be the metadata, of the
// CRD called name. change may be called again if another change comes
// in between, and its error is returned as it is; nothing is written if it
// changes nothing.
func (d *Resource) UpdateStatus(ctx context.Context, name string, change func(*object.Object) error) error {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		o := old.(*object.Object).DeepCopy()
		return o, change(o)
	})
	ctx = request.WithNamespace(ctx, metav1.NamespaceNone)
	_, _, err := d.controller.Update(ctx, name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}
