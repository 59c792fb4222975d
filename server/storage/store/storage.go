package store

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-dev/espalier/internal/object"
)

// ConvertFunc brings objects of any version of a resource into the version of
// that name. It does not change its input and returns objects in the order given.
type ConvertFunc func(ctx context.Context, objs []*object.Object, version string) ([]*object.Object, error)

// Spec says how the objects of one resource are stored. All of it must be set
// except where noted.
type Spec struct {
	Resource schema.GroupResource
	// ResourcePrefix is put between the backend's prefix and the rest of a key:
	// "/group/plural".
	ResourcePrefix string
	// Codec writes and reads what etcd holds.
	Codec                runtime.Codec
	NewFunc, NewListFunc func() runtime.Object

	// KeyFunc returns the key of an object, without the backend's prefix; AttrFunc,
	// its labels and selectable fields. Only watch caches and conversion ask.
	KeyFunc  func(runtime.Object) (string, error)
	AttrFunc storage.AttrFunc
	// Triggers spare watches events that cannot concern them; Indexers speed up
	// lists. Both may be nil.
	Triggers storage.IndexerFuncs
	Indexers *cache.Indexers
	// Indexes are labels and fields of AttrFunc. Lists from a watch cache that select one
	// value of one of them visit only the objects with that value.
	Indexes []Index

	// Convert, if not nil, is called for objects that are not in the wanted
	// version: Version above the storage, StorageVersion in etcd. Both are names
	// of versions of Resource.Group, such as v1beta1. Without Convert, Version is what
	// operators are told to make requests in.
	Convert                 ConvertFunc
	Version, StorageVersion string

	// InTenants says that each key has the folder of a tenant between the prefix and the names.
	InTenants bool
	// Cached allows a watch cache.
	Cached bool
	// Complete has lists and watches fail that meet an object which cannot be decoded.
	// Without it they leave the object out. It is for resources whose objects forbid or
	// limit something: without one of them more would be allowed.
	Complete bool
	// Current, if not nil, reports whether this process knows the schemas of the objects
	// as all others do. Watches hold their events back while it does not: they would
	// be sent by a schema that is known elsewhere to be replaced.
	Current func() bool
	// Deliver, if not nil, is called for every watch with its context. What it returns, if
	// that is not nil, is called with the object of each event but errors and bookmarks, and
	// returns the object that the watcher gets. The object must not be changed.
	Deliver func(context.Context) func(runtime.Object) runtime.Object
}

// delivery is what Deliver returns for a watch.
func (s *Spec) delivery(ctx context.Context) func(runtime.Object) runtime.Object {
	if s.Deliver == nil {
		return nil
	}
	return s.Deliver(ctx)
}

// Storage returns the storage of a resource, and a function that destroys it: open
// watches end without what their watchers have not taken, and no new ones are accepted.
// The function does not wait until the watch cache has stopped; Close does. It may be
// called more than once.
func (b *Backend) Storage(s Spec) (storage.Interface, func(), error) {
	direct, err := b.direct(&s, s.Codec)
	if err != nil {
		return nil, nil, err
	}
	if s.Convert != nil {
		if s.Version == "" || s.StorageVersion == "" {
			return nil, nil, fmt.Errorf("storage of %s: conversion needs a version and a storage version", s.Resource)
		}
		direct = &converting{Interface: direct, backend: b, spec: &s}
	}
	ended, end := context.WithCancel(context.Background())
	direct = &ending{Interface: limiting{direct}, ended: ended, spec: &s}
	if !s.Cached {
		return &uncached{Interface: direct, backend: b, spec: &s, ended: ended.Done()}, b.keep(&s, func() <-chan struct{} { end(); return ended.Done() }), nil
	}
	if s.KeyFunc == nil || s.AttrFunc == nil {
		end()
		return nil, nil, fmt.Errorf("storage of %s: a watch cache needs functions for keys and attributes", s.Resource)
	}
	l := &onDemandCacher{direct: direct, backend: b, spec: &s, ended: ended.Done(), stopped: make(chan struct{})}
	return l, b.keep(&s, func() <-chan struct{} {
		end()
		l.destroy()
		return l.stopped
	}), nil
}

// uncached is a storage without a watch cache whose watchers may be behind only
// so far. etcd's client keeps all that a watcher does not take.
type uncached struct {
	storage.Interface
	backend *Backend
	spec    *Spec
	ended   <-chan struct{} // closed when the storage is destroyed
}

// Watch implements storage.Interface.
func (u *uncached) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	live := always
	if from, err := u.Versioner().ParseResourceVersion(opts.ResourceVersion); err == nil && from == 0 || opts.SendInitialEvents != nil && *opts.SendInitialEvents {
		// It begins with all objects, which may be more than a watcher may be behind.
		now, err := u.GetCurrentResourceVersion(ctx)
		if err != nil {
			return nil, err
		}
		live = later(u.Versioner(), now)
	}
	w, err := u.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	from := source{of: u.backend, live: live, current: u.spec.Current, ended: u.ended, deliver: u.spec.delivery(ctx)}
	if reportOf(ctx) != nil {
		from.seen = func(event watch.Event) watch.Event { return u.spec.reported(u.backend, event) }
	}
	return u.backend.limits.buffered(w, from), nil
}

// ending is a storage whose watches end when it is destroyed. Everything else goes
// on: a request that has begun with it may end with it.
type ending struct {
	storage.Interface
	ended context.Context
	spec  *Spec
}

// Watch implements storage.Interface.
func (e *ending) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	if e.ended.Err() != nil {
		return nil, e.spec.replaced()
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.ended, cancel)
	w, err := e.Interface.Watch(ctx, key, opts)
	return counted(ctx, w, err, func() { stop(); cancel() })
}

// replaced is the error for requests that come too late: when they try again they find
// the storage that replaced this one.
func (s *Spec) replaced() error {
	return apierrors.NewTooManyRequests("the storage of "+s.Resource.String()+" is being replaced", 1)
}

// direct returns the storage that reads and writes etcd.
func (b *Backend) direct(s *Spec, codec runtime.Codec) (storage.Interface, error) {
	if codec == nil || s.NewFunc == nil || s.NewListFunc == nil {
		return nil, errors.New("storage of " + s.Resource.String() + ": codec and constructors are needed")
	}
	transformer := b.transformer(s.Resource)
	versioner := storage.APIObjectVersioner{}
	r := newReading(b, s, codec, transformer, versioner)
	store, err := etcd3.New(b.client, b.compactor, watched{codec, r}, s.NewFunc, s.NewListFunc, b.config.Prefix, s.ResourcePrefix,
		s.Resource, r, b.config.LeaseManagerConfig, r, versioner)
	if err != nil {
		return nil, fmt.Errorf("storage of %s: %w", s.Resource, err)
	}
	return &explained{&surviving{store, b, r}, &b.space}, nil
}

// RESTOptions are what a generic registry's store is completed with. What the
// registry knows better than Spec does, because it knows the strategies, fills in
// what Spec leaves out: KeyFunc, AttrFunc, Triggers, Indexers and constructors.
func (b *Backend) RESTOptions(s Spec) generic.RESTOptions {
	config := b.config.Config
	config.Codec = s.Codec
	if s.StorageVersion != "" {
		config.EncodeVersioner = schema.GroupVersion{Group: s.Resource.Group, Version: s.StorageVersion}
	}
	return generic.RESTOptions{
		StorageConfig:           config.ForResource(s.Resource),
		ResourcePrefix:          s.ResourcePrefix,
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: 1,
		// A goroutine per store that counts objects is what this package is there to
		// avoid: CountMetricPollPeriod stays 0.
		Decorator: func(_ *storagebackend.ConfigForResource, prefix string, keyFunc func(runtime.Object) (string, error),
			newFunc, newListFunc func() runtime.Object, attrFunc storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
		) (storage.Interface, factory.DestroyFunc, error) {
			return b.Storage(s.completed(prefix, keyFunc, newFunc, newListFunc, attrFunc, triggers, indexers))
		},
	}
}

// completed fills in what s leaves out.
func (s Spec) completed(prefix string, keyFunc func(runtime.Object) (string, error), newFunc, newListFunc func() runtime.Object,
	attrFunc storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
) Spec {
	s.ResourcePrefix = prefix
	if s.KeyFunc == nil {
		s.KeyFunc = keyFunc
	}
	if s.NewFunc == nil {
		s.NewFunc = newFunc
	}
	if s.NewListFunc == nil {
		s.NewListFunc = newListFunc
	}
	if s.AttrFunc == nil {
		s.AttrFunc = attrFunc
	}
	if s.Triggers == nil {
		s.Triggers = triggers
	}
	if s.Indexers == nil {
		s.Indexers = indexers
	}
	return s
}
