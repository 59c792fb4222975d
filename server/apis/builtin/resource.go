package builtin

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Resource is a built-in resource in the version that it is served and stored
// in. Each has a file of its own.
type Resource struct {
	Group, Version         string
	Plural, Singular, Kind string
	Namespaced             bool
	ShortNames, Categories []string
	// New and NewList make empty objects of the types of k8s.io/api.
	New, NewList func() runtime.Object
	// Prefix is between the backend's prefix and the rest of a key, as
	// kube-apiserver has it: "/configmaps". Empty is "/" + Plural.
	Prefix   string
	Strategy Strategy
	// Deprecated, if not empty, is a warning for every request.
	Deprecated string
	// Columns and Row are what `kubectl get` shows; both nil: name and age.
	Columns []metav1.TableColumnDefinition
	Row     func(obj runtime.Object) []any
	// Fields are those that can be selected by, besides metadata.name and
	// metadata.namespace. May be nil.
	Fields func(obj runtime.Object) fields.Set
	// TTL, if not nil, is after how many seconds an object expires (events).
	TTL func(obj runtime.Object) uint64
	// Subresources are functions, by name, that make a subresource of the store.
	Subresources map[string]func(*genericregistry.Store) rest.Storage
	// Wrap, if not nil, wraps the store, to change the behaviour of verbs.
	Wrap func(*genericregistry.Store) rest.Storage
	// Complete makes lists and watches fail if an object cannot be decoded. Otherwise
	// they leave it out: see store.Spec. It is set for resources whose objects forbid
	// something, so that a missing object would allow more: policies, webhooks and
	// quotas. Roles and bindings only grant: if one is missing, its subjects lose rights
	// and no user gains any. Without a namespace or service account, requests are
	// rejected. Without a flow schema, requests wait in another queue.
	Complete bool
	// Virtual, if not nil, serves the resource without storing objects (reviews). New
	// must be set, NewList only if it is a rest.Lister.
	Virtual rest.Storage
	// Alias, if not empty, is the resource whose storage this one shares, in another
	// group (events.k8s.io) or in another version (autoscaling/v1). The conversion
	// functions are in the scheme.
	Alias schema.GroupResource

	// columns, if not nil, finds out Columns for the first table.
	columns func() []metav1.TableColumnDefinition
	// convert adds the conversion functions of an alias to the scheme.
	convert func(*runtime.Scheme) error
	// connect is called once all resources have stores. May be nil.
	connect func(*Resources)
	// status is the strategy of the subresource status of a kind that a file describes.
	status *Strategy
	// selectors maps the names of fields in an alias to their names in the resource.
	selectors map[string]string
}

// version is the group and version that the resource is served in.
func (r *Resource) version() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

// resource is the group and the plural name.
func (r *Resource) resource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// stored reports whether the resource has a store of its own.
func (r *Resource) stored() bool { return r.Virtual == nil && r.Alias.Empty() }

// listed reports whether a resource that is not stored has lists.
func (r *Resource) listed() bool {
	_, ok := r.Virtual.(rest.Lister)
	return ok
}

// Key is the prefix of the objects in storage, below the backend's prefix. ok is false
// for resources that are not stored, and for aliases.
func (r *Resource) Key() (key string, ok bool) {
	if r.Prefix != "" {
		return r.Prefix, r.stored()
	}
	return "/" + r.Plural, r.stored()
}

// Strategy prepares and validates objects when they are written. All functions but Name
// may be nil.
type Strategy struct {
	// Name validates a name, or the prefix of one.
	Name func(name string, prefix bool) []string
	// Default sets defaults in objects from clients and from etcd.
	Default func(obj runtime.Object)
	// fill, if not nil, is used instead of Default. It reports whether it has changed the
	// object, and takes so long that objects from etcd need it only once: see complete.
	fill func(obj runtime.Object) (changed bool)
	// Create and Update drop and set the fields that clients may not set.
	Create func(ctx context.Context, obj runtime.Object)
	Update func(ctx context.Context, obj, old runtime.Object)
	// Validate validates new objects, and ValidateUpdate changed ones. Their metadata
	// is validated elsewhere.
	Validate       func(ctx context.Context, obj runtime.Object) field.ErrorList
	ValidateUpdate func(ctx context.Context, obj, old runtime.Object) field.ErrorList
	// Authorize returns errors for references that the author of a valid object has no
	// right to. Old is nil for new objects.
	Authorize func(ctx context.Context, obj, old runtime.Object) field.ErrorList
	// Warn returns warnings for the client on success.
	Warn func(ctx context.Context, obj runtime.Object) []string
	// WarnUpdate returns those of updates, if they differ.
	WarnUpdate     func(ctx context.Context, obj, old runtime.Object) []string
	CreateOnUpdate bool // PUT may create
	Unconditional  bool // PUT may leave out the resourceVersion
	// QualifiedFinalizers refuses objects with finalizers that have no domain, and
	// GenerateNameOnUpdate changed ones with an invalid metadata.generateName.
	QualifiedFinalizers, GenerateNameOnUpdate bool
	// MetadataLast has k8s.io/apiserver validate the metadata of new objects without other
	// errors.
	MetadataLast bool
	// Orphans keeps the dependents of a deleted object, unless a client asks otherwise.
	Orphans bool
	// Generation reports whether to increment metadata.generation. If nil, the objects
	// have none.
	Generation func(obj, old runtime.Object) bool
	// GenerationFirst has Generation see the object before Update has dropped fields.
	GenerationFirst bool
	// Reset is, by "group/version", the fields that this endpoint drops.
	Reset map[string]*fieldpath.Set
}
