package customresource

import (
	"context"
	"crypto/sha256"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/endpoints/codec"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// vault is the storage of one version, with its watch cache and the watches on
// it. It outlives changes of the definition that leave its key alone.
type vault struct {
	key     vaultKey
	form    *Form
	options generic.RESTOptions
	watches watches

	once    sync.Once
	storage storage.Interface
	destroy func()
	err     error
}

// vaultKey is what a vault is built by. If it changes, what the watch cache
// holds may be wrong.
type vaultKey struct {
	storage catalog.Hash
	// schemas is of those of all versions, if what is cached depends on more
	// than the stored bytes and the schema of their version: on selected
	// fields, which are read once, or on what a conversion has made of them.
	schemas catalog.Hash
}

func vaultKeyOf(e *catalog.Entry, v *catalog.Version) vaultKey {
	key := vaultKey{storage: v.StorageHash}
	if !v.SelectableFields && onlyStoredIn(e, v.Name) {
		return key
	}
	h := sha256.New()
	for i := range e.Versions {
		_, _ = h.Write(e.Versions[i].SchemaHash[:])
	}
	h.Sum(key.schemas[:0])
	return key
}

// onlyStoredIn reports whether all objects are stored in the version, so that
// nothing is ever converted to it.
func onlyStoredIn(e *catalog.Entry, version string) bool {
	for _, stored := range e.StoredVersions {
		if stored != version {
			return false
		}
	}
	return e.StorageVersion == version
}

// newVault prepares the storage of a version; it is opened by the first store
// that is made of it.
func newVault(o *Options, e *catalog.Entry, v *catalog.Version, form *Form, convert store.ConvertFunc) *vault {
	resource := schema.GroupResource{Group: e.Group, Resource: e.Accepted.Plural}
	spec := store.Spec{
		Resource:       resource,
		ResourcePrefix: "/" + resource.Group + "/" + resource.Resource,
		Codec:          codec.Storage(form),
		Version:        v.Name,
		StorageVersion: e.StorageVersion,
		Cached:         !o.Uncached,
		Current:        o.Current,
		Deliver:        form.deliver,
	}
	if len(e.Versions) > 1 {
		spec.Convert = convert
	}
	vt := &vault{key: vaultKeyOf(e, v), form: form, options: o.Backend.RESTOptions(spec)}
	open := vt.options.Decorator
	vt.options.Decorator = func(config *storagebackend.ConfigForResource, prefix string, keyFunc func(runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, attrFunc storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		vt.once.Do(func() {
			var s storage.Interface
			s, vt.destroy, vt.err = open(config, prefix, keyFunc, newFunc, newListFunc, attrFunc, triggers, indexers)
			vt.storage = &freshStorage{Interface: s, form: form}
		})
		return vt.storage, func() {}, vt.err
	}
	return vt
}

// close ends the watches and gives up the cache. When it returns, nothing that was
// read by this vault is sent to a watch any more.
func (v *vault) close() {
	v.once.Do(func() { v.err = errGone }) // what has never been opened stays so
	if v.destroy != nil {
		v.destroy()
	}
	v.watches.end(v.options.ResourcePrefix)
}

// renew returns when no event that was encoded by a former schema is written to a watch
// any more. The vault and its other watches go on.
func (v *vault) renew() { v.watches.renew(v.options.ResourcePrefix, v.form) }

// freshStorage has single objects from a watch cache in the form of the current
// schema before anybody works on them. Those of lists and watches go to the
// encoder or into a table, which do it themselves.
type freshStorage struct {
	storage.Interface
	form *Form
}

// Get implements storage.Interface.
func (s *freshStorage) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	if err := s.Interface.Get(ctx, key, opts, out); err != nil {
		return err
	}
	if o, ok := out.(*object.Object); ok {
		if fresh := s.form.Fresh(o); fresh != o {
			*o = *fresh
		}
	}
	return nil
}

// GuaranteedUpdate implements storage.Interface.
func (s *freshStorage) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, try storage.UpdateFunc, cached runtime.Object,
) error {
	fresh := func(input runtime.Object, meta storage.ResponseMeta) (runtime.Object, *uint64, error) {
		if o, ok := input.(*object.Object); ok {
			input = s.form.Fresh(o)
		}
		return try(input, meta)
	}
	return s.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, fresh, cached)
}
