package bindings

import (
	"context"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/server/storage/store"
	"github.com/espalier-dev/espalier/server/tenants"
)

// readAll reads the objects of a resource as they are stored. One that cannot be decrypted is an error.
func readAll(ctx context.Context, b *store.Backend, r schema.GroupResource, folder string, visit func(store.Stored) error) error {
	_, err := b.Walk(ctx, store.Walk{Resource: r, Folder: folder}, func(values []store.Stored) error {
		for _, s := range values {
			if s.Err != nil {
				return s.Err
			}
			if err := visit(s); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// Exporting returns the names of the exports that a resource is in, of a tenant with a backend.
func Exporting(ctx context.Context, b *store.Backend, r schema.GroupResource) (names []string, err error) {
	err = readAll(ctx, b, Exports.GroupResource(), exportsFolder, func(s store.Stored) error {
		e, err := exportOf(s.Value)
		if err == nil && e != nil && slices.Contains(e.Resources, r.String()) {
			names = append(names, s.Name)
		}
		return err
	})
	return names, err
}

// ConsumersOf is how many tenants have bound a resource of a provider.
func ConsumersOf(ctx context.Context, etcd clientv3.KV, of tenants.Shared, r schema.GroupResource) (int64, error) {
	found, err := etcd.Get(ctx, of.Grant(r, ""), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return found.Count, nil
}

// ReadGrant reads a grant, nil if there is none.
func ReadGrant(ctx context.Context, etcd clientv3.KV, key string) (*Grant, error) {
	found, err := etcd.Get(ctx, key)
	if err != nil || len(found.Kvs) == 0 {
		return nil, err
	}
	g := readGrant(found.Kvs[0].Value)
	return &g, nil
}

// WhileGranted returns a context that ends when a grant no longer is as it must be, or cannot be
// read.
func WhileGranted(ctx context.Context, etcd *clientv3.Client, key string, is func(*Grant) bool) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	go follow(store.OwnStream(ctx, "grants"), etcd, key, func() {
		if g, err := ReadGrant(ctx, etcd, key); err != nil || g == nil || !is(g) {
			cancel()
		}
	})
	return ctx, cancel
}
