package customresource

import (
	"context"
	"crypto/sha256"
	"slices"
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

// versionStorage is the storage of one version, with its watch cache and the watches on
// it. It outlives changes of the CRD that leave its key alone.
type versionStorage struct {
	key     storageKey
	decoder *Decoder
	options generic.RESTOptions
	watches watches

	once    sync.Once
	storage storage.Interface
	destroy func()
	err     error
}

// storageKey is what a versionStorage depends on. If it changes, the contents of the
// watch cache may be wrong.
type storageKey struct {
	storage catalog.Hash
	// schemas is of those of all versions, if what is cached depends on more
	// than the stored bytes and the schema of their version: on selected
	// fields, which are read once, or on what a conversion has made of them.
	schemas catalog.Hash
}

func storageKeyOf(e *catalog.Entry, v *catalog.Version) storageKey {
	key := storageKey{storage: v.StorageHash}
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
	return e.StorageVersion == version && !slices.ContainsFunc(e.StoredVersions, func(stored string) bool { return stored != version })
}

// newVersionStorage prepares the storage of a version; it is opened by the first store
// that is made of it.
func newVersionStorage(o *Options, e *catalog.Entry, v *catalog.Version, indexes []store.Index, decoder *Decoder, convert store.ConvertFunc) *versionStorage {
	resource := schema.GroupResource{Group: e.Group, Resource: e.Accepted.Plural}
	spec := store.Spec{
		Resource:       resource,
		ResourcePrefix: "/" + resource.Group + "/" + resource.Resource,
		Codec:          codec.Storage(decoder),
		Version:        v.Name,
		StorageVersion: e.StorageVersion,
		Indexes:        indexes,
		Cached:         !o.Uncached,
		Current:        o.Current,
		Deliver:        decoder.deliver,
	}
	if len(e.Versions) > 1 {
		spec.Convert = convert
	}
	if o.View != nil {
		spec.InTenants = true
		spec.KeyFunc = func(obj runtime.Object) (string, error) { return o.View.Key(resource, obj.(*object.Object)) }
	}
	vt := &versionStorage{key: storageKeyOf(e, v), decoder: decoder, options: o.Backend.RESTOptions(spec)}
	open := vt.options.Decorator
	vt.options.Decorator = func(config *storagebackend.ConfigForResource, prefix string, keyFunc func(runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, attrFunc storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		vt.once.Do(func() {
			var s storage.Interface
			s, vt.destroy, vt.err = open(config, prefix, keyFunc, newFunc, newListFunc, attrFunc, triggers, indexers)
			vt.storage = &renormalizingStorage{Interface: s, decoder: decoder}
		})
		return vt.storage, func() {}, vt.err
	}
	return vt
}

// close ends the watches and destroys the cache. When it returns, nothing that was
// read by this storage is sent to a watch any more.
func (v *versionStorage) close() {
	v.once.Do(func() { v.err = errGone }) // what has never been opened stays so
	if v.destroy != nil {
		v.destroy()
	}
	v.watches.end(v.options.ResourcePrefix)
}

// renew returns when no event that was encoded by a former schema is written to a watch
// any more. The storage and its other watches go on.
func (v *versionStorage) renew() { v.watches.renew(v.options.ResourcePrefix, v.decoder) }

// renormalizingStorage normalizes single objects from the watch cache by the current
// schema before handlers use them. For lists and watches the encoder and the table
// do that.
type renormalizingStorage struct {
	storage.Interface
	decoder *Decoder
}

// Get implements storage.Interface.
func (s *renormalizingStorage) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	if err := s.Interface.Get(ctx, key, opts, out); err != nil {
		return err
	}
	if o, ok := out.(*object.Object); ok {
		if renormalized := s.decoder.Renormalize(o); renormalized != o {
			*o = *renormalized
		}
	}
	return nil
}

// GuaranteedUpdate implements storage.Interface.
func (s *renormalizingStorage) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, try storage.UpdateFunc, cached runtime.Object,
) error {
	renormalized := func(input runtime.Object, meta storage.ResponseMeta) (runtime.Object, *uint64, error) {
		if o, ok := input.(*object.Object); ok {
			input = s.decoder.Renormalize(o)
		}
		return try(input, meta)
	}
	return s.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, renormalized, cached)
}
