package builtin

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/espalier-dev/espalier/server/storage/store"
)

// addStore makes the store of a resource that is stored.
func (r *Resources) addStore(one *Resource) error {
	prefix, ok := one.Key()
	if !ok {
		return nil
	}
	var codec runtime.Codec
	var err error
	if like := r.options.Like; like != nil {
		codec = like.storageCodecs[one.resource()]
	} else if codec, err = newStorageCodec(r, one); err != nil {
		return err
	}
	backend := r.options.Backend
	if r.options.BackendOf != nil {
		backend = r.options.BackendOf(one.resource())
	}
	options := backend.RESTOptions(store.Spec{
		Resource: one.resource(), ResourcePrefix: prefix, Codec: codec, Version: one.version().Version, Cached: true, Complete: one.Complete,
	})
	s := r.newStore(one)
	if err := s.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: attributes(one)}); err != nil {
		return err
	}
	r.stores[one.resource()], r.storageCodecs[one.resource()] = s, codec
	return nil
}

// storeStrategy is what a store needs of a strategy.
type storeStrategy interface {
	rest.RESTCreateStrategy
	rest.CreateUpdateResetFieldsStrategy
	rest.RESTDeleteStrategy
}

// newStore returns the store of a resource, without its storage.
func (r *Resources) newStore(one *Resource) *genericregistry.Store {
	own := restStrategy{r.scheme, names.SimpleNameGenerator, one.Strategy, one.Namespaced}
	var strategy storeStrategy = own // one value for all fields of the store
	get := attributes(one)
	s := &genericregistry.Store{
		NewFunc:     one.New,
		NewListFunc: one.NewList,
		PredicateFunc: func(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
			return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: get}
		},
		DefaultQualifiedResource:  one.resource(),
		SingularQualifiedResource: schema.GroupResource{Group: one.Group, Resource: one.Singular},
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		ResetFieldsStrategy:       strategy,
		TableConvertor:            newTable(one),
	}
	if one.Strategy.Orphans {
		s.DeleteStrategy = orphaning{own}
	}
	if one.TTL != nil {
		s.DeleteStrategy = transient{own}
		s.TTLFunc = func(obj runtime.Object, _ uint64, _ bool) (uint64, error) { return one.TTL(obj), nil }
	}
	return s
}

// attributes returns the function that reads the labels and fields for selectors.
func attributes(one *Resource) storage.AttrFunc {
	return func(obj runtime.Object) (labels.Set, fields.Set, error) {
		m, ok := obj.(interface {
			GetName() string
			GetNamespace() string
			GetLabels() map[string]string
		})
		if !ok {
			return nil, nil, fmt.Errorf("a %T is not a %s", obj, one.Kind)
		}
		set := fields.Set{}
		if one.Fields != nil {
			set = one.Fields(obj)
		}
		set["metadata.name"] = m.GetName()
		if one.Namespaced {
			set["metadata.namespace"] = m.GetNamespace()
		}
		return m.GetLabels(), set, nil
	}
}

// storage returns the storage of the main resource.
func (r *Resources) storage(one *Resource) rest.Storage {
	if one.Virtual != nil {
		return one.Virtual
	}
	if one.Wrap == nil {
		return r.stores[one.resource()]
	}
	return one.Wrap(r.stores[one.resource()])
}
