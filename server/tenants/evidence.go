package tenants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// The object of a tenant says where the tenant is, and the object of an etcd how to reach that. Both may be wrong: an etcd
// was restored from a backup, or spec.servers has the address of another one. So before anything is emptied, or a guard is
// created, the etcds themselves are asked.

// fenced is the condition that an etcd has a fence of a tenant. A move leaves one that does not expire where the tenant goes.
func fenced(prefix string, uid types.UID) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(fences(prefix, uid)), ">", 0).WithPrefix()
}

// missing is the error for a tenant that is not where its object says.
func missing(etcd string) error {
	return unavailable(fmt.Sprintf("the etcd %q does not have the tenant that was moved there: restore a later backup of this etcd, or correct its spec.servers", etcd))
}

// arrived returns an error if a tenant was moved to an etcd that does not have it.
func (r *registry) arrived(ctx context.Context, home *Use, t Tenant) error {
	if t.Revisions.Since == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	found, err := home.Client().Get(ctx, fences(r.prefix, t.UID), clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly())
	switch {
	case err != nil:
		return fmt.Errorf("read from the etcd that the tenant is in: %w", err)
	case len(found.Kvs) == 0:
		return missing(home.Name)
	}
	return nil
}

// errNewer is that the object of a tenant is older than what etcds have.
var errNewer = errors.New("the object of the tenant was restored from a backup of before a move; set status.etcd to the etcd that has the tenant, or restore the etcds together")

// older returns errNewer if the target of a move has the tenant rather than its etcd: a guard of an epoch that the object does not
// know, or keys although there are none where they should be.
func (r *remover) older(ctx context.Context, from, to *Use, o *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	guard, err := to.Client().Get(ctx, Guard(r.prefix, o.GetUID()))
	if err != nil {
		return fmt.Errorf("read from the other etcd: %w", err)
	}
	if len(guard.Kvs) > 0 && epochOf(string(guard.Kvs[0].Value)) > placeOf(o).Epoch {
		return fmt.Errorf("the tenant is used in the etcd %q: %w", to.Name, errNewer)
	}
	folder := Prefix(r.prefix, o.GetUID()) + "/"
	for _, use := range []*Use{from, to} {
		found, err := use.Client().Get(ctx, folder, clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly())
		if err != nil {
			return fmt.Errorf("read from the etcd %q: %w", use.Name, err)
		}
		if (len(found.Kvs) > 0) == (use == from) {
			return nil
		}
	}
	return fmt.Errorf("the etcd %q has keys of the tenant, and %q has none: %w", to.Name, from.Name, errNewer)
}

// epochOf reads what Holder has written.
func epochOf(holder string) int64 {
	_, text, _ := strings.Cut(holder, "/")
	n, _ := strconv.ParseInt(text, 10, 64) // 0 without a number
	return n
}

// anchor writes to the etcd that a tenant is in, and returns the condition that this has not been undone: a copy of what
// was there before the etcd was restored is not one of the tenant.
func (r *remover) anchor(ctx context.Context, from *Use, uid types.UID, n int64) (clientv3.Cmp, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	key := mark(r.prefix, uid)
	answer, err := from.Client().Put(ctx, key, fmt.Sprint(n))
	if err != nil {
		return clientv3.Cmp{}, fmt.Errorf("write to the etcd that the tenant is in: %w", err)
	}
	return clientv3.Compare(clientv3.ModRevision(key), "=", answer.Header.Revision), nil
}

// unchanged returns an error if a name is not that of the same etcd any more. Servers would look for the tenant in another one.
func (r *remover) unchanged(ctx context.Context, uses ...*Use) error {
	for _, use := range uses {
		if use.Name == RootEtcd {
			continue
		}
		o, err := r.pool.etcds.Get(ctx, use.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("the etcd %q: %w", use.Name, errRemoved)
		case err != nil:
			return err
		case !slices.Equal(etcdOf(o).Servers, use.Of.Servers):
			return fmt.Errorf("spec.servers of the etcd %q was changed during the move", use.Name)
		}
	}
	return nil
}
