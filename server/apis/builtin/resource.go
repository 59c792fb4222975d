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
	Prefix string
	Rules  Rules
	// Columns and Row are what `kubectl get` shows; both nil: name and age.
	Columns []metav1.TableColumnDefinition
	Row     func(obj runtime.Object) []any
	// Fields are those that can be selected by, besides metadata.name and
	// metadata.namespace. May be nil.
	Fields func(obj runtime.Object) fields.Set
	// TTL, if there is one, is after how many seconds an object goes by itself
	// (events).
	TTL func(obj runtime.Object) uint64
	// Subresources by name: how each is made of the store.
	Subresources map[string]func(*genericregistry.Store) rest.Storage
	// Wrap, if not nil, is put around the store, to change what verbs do.
	Wrap func(*genericregistry.Store) rest.Storage
	// Complete has lists and watches fail if an object cannot be decoded, in place of
	// leaving it out: see store.Spec. It is set where an object that is absent would
	// allow more than one that is there: policies, webhooks and quotas. Roles and their
	// bindings only grant. Without one of them its subjects may do less, and the others
	// keep what they have. A namespace or service account that is absent has requests
	// refused, and a flow schema has them wait with all others.
	Complete bool
	// Virtual, if not nil, is all there is: a resource that is answered and not
	// stored (reviews). New must be set, NewList not.
	Virtual rest.Storage
	// Alias, if not empty, is the resource whose storage this one shares, in
	// another group (events.k8s.io). The conversion functions are in the scheme.
	Alias schema.GroupResource

	// convert adds the conversion functions of an alias to the scheme.
	convert func(*runtime.Scheme) error
	// selectors are, by the names that fields have in an alias, those that they
	// have in the resource.
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

// Key is where the objects are in storage, below the backend's prefix. There is
// none for a resource that is not stored, or stored as another.
func (r *Resource) Key() (key string, ok bool) {
	if r.Prefix != "" {
		return r.Prefix, r.stored()
	}
	return "/" + r.Plural, r.stored()
}

// Rules are what is prepared and checked when objects are written. All may be
// nil but Name.
type Rules struct {
	// Name says what is wrong with a name, or with the prefix of one.
	Name func(name string, prefix bool) []string
	// Default fills in what clients and etcd leave out.
	Default func(obj runtime.Object)
	// Create and Update drop and set what clients may not say.
	Create func(ctx context.Context, obj runtime.Object)
	Update func(ctx context.Context, obj, old runtime.Object)
	// Validate looks at new objects, beyond their metadata, and ValidateUpdate
	// at changed ones.
	Validate       func(ctx context.Context, obj runtime.Object) field.ErrorList
	ValidateUpdate func(ctx context.Context, obj, old runtime.Object) field.ErrorList
	// Authorize looks at valid objects, and says what their author has no right to
	// refer to. Old is nil for new ones.
	Authorize func(ctx context.Context, obj, old runtime.Object) field.ErrorList
	// Warn is what clients are told on success.
	Warn           func(ctx context.Context, obj runtime.Object) []string
	CreateOnUpdate bool // PUT may create
	Unconditional  bool // PUT may leave out the resourceVersion
	// Generation reports whether the generation counts up; nil: there is none.
	Generation func(obj, old runtime.Object) bool
	// Reset is, by "group/version", the fields that this endpoint drops.
	Reset map[string]*fieldpath.Set
}
