package tenants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/server/endpoints/reply"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// Place is where a tenant is. The status of its object says it, which only servers write.
type Place struct {
	// Etcd is the name of the etcd; empty is that of the server, as for tenants from before
	// there were others.
	Etcd string
	// Epoch numbers the guards of the tenant: see fence.
	Epoch int64
	// Revisions say what revisions of the etcd are in the tenant.
	Revisions store.Revisions
}

// at is the name of the etcd.
func (p Place) at() string { return cmp.Or(p.Etcd, RootEtcd) }

// placeOf reads an object.
func placeOf(o *unstructured.Unstructured) (p Place) {
	p.Etcd, _, _ = unstructured.NestedString(o.Object, "status", "etcd")
	p.Epoch = number(o, "epoch")
	p.Revisions = store.Revisions{Offset: number(o, "offset"), Since: number(o, "since")}
	return p
}

// number reads a number of the status.
func number(o *unstructured.Unstructured, field string) int64 {
	n, _, _ := unstructured.NestedInt64(o.Object, "status", field)
	return n
}

// wanted is the etcd that the spec names; empty if it names none.
func wanted(o *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(o.Object, "spec", "etcd")
	return name
}

// uses reports whether something of a tenant is in an etcd, or may be.
func uses(o *unstructured.Unstructured, etcd string) bool { return slices.Contains(traces(o), etcd) }

// A range of keys, from begin to before end.
type keyRange struct{ begin, end string }

func below(folder string) keyRange { return keyRange{folder, clientv3.GetPrefixRangeEnd(folder)} }

// ranges are all that belongs to a tenant in the etcd that it is in, besides its guard, and besides
// what providers have of it (see unbind).
func ranges(prefix string, uid types.UID) []keyRange {
	return []keyRange{
		below(Prefix(prefix, uid) + "/"), below(SharedBy(prefix, uid).Folder()),
		{mark(prefix, uid), mark(prefix, uid) + "\x00"},
	}
}

// fences has the fences of a tenant.
//
// A fence with a number ends in an etcd what belongs to smaller numbers, however late it arrives
// there: every transaction that creates a guard, or that moves a tenant, has a number and the
// condition that there is no fence with a higher one. Fences of tenants that are gone expire by a
// lease after fenceTTL; no request is on its way for so long.
func fences(prefix string, uid types.UID) string {
	return folders(prefix) + "-fences/" + string(uid) + "/"
}

// fence is the key of a fence. The order of keys is that of numbers.
func fence(prefix string, uid types.UID, n int64) string {
	return fences(prefix, uid) + fmt.Sprintf("%020d", n)
}

// fenceTTL is in seconds.
const fenceTTL = 24 * 60 * 60

// noFence is the condition that there is no fence with a number above n.
func noFence(prefix string, uid types.UID, n int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(fence(prefix, uid, n+1)), "=", 0).
		WithRange(clientv3.GetPrefixRangeEnd(fences(prefix, uid)))
}

// raise are the operations that make n the only fence.
func raise(prefix string, uid types.UID, n int64, opts ...clientv3.OpOption) []clientv3.Op {
	return []clientv3.Op{
		clientv3.OpDelete(fences(prefix, uid), clientv3.WithRange(fence(prefix, uid, n))),
		clientv3.OpPut(fence(prefix, uid, n), "", opts...),
	}
}

// choose decides in which etcd a tenant is that was never used, and writes that into its status.
// It returns nothing if the object must be read again.
//
// The object of the etcd is looked at after the status was written: either it is not being
// removed then, and who removes it later finds the tenant; or another one is chosen.
func (r *registry) choose(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if slices.Contains(o.GetFinalizers(), Finalizer) {
		return o, nil
	}
	chosen := placeOf(o).Etcd
	if chosen != "" {
		err := r.pool.keep(ctx, chosen)
		if !errors.Is(err, errRemoved) {
			return o, err
		}
	}
	names := []string{wanted(o)}
	if names[0] == "" {
		var err error
		if names, err = r.pool.candidates(ctx, o.GetUID()); err != nil {
			return nil, err
		}
		if names == nil && chosen == "" {
			return o, nil
		}
		if len(names) == 0 {
			return nil, unavailable("no etcd takes new tenants: spec.full is set for all of them, or they are being removed")
		}
	}
	var err error
	for _, name := range names {
		var use *Use
		if use, err = r.pool.Use(ctx, name); err != nil {
			continue // the next one may answer
		}
		use.Release()
		if err := unstructured.SetNestedField(o.Object, name, "status", "etcd"); err != nil {
			return nil, err
		}
		if _, err := r.client.UpdateStatus(ctx, o, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
			return nil, err
		}
		return nil, nil
	}
	return nil, err
}

// errRemoved is that there is no such etcd, or not for much longer.
var errRemoved = errors.New("there is no such etcd, or it is being removed")

// keep makes sure that the object of an etcd is there while a tenant is in it.
func (p *Pool) keep(ctx context.Context, name string) error {
	for name != RootEtcd {
		o, err := p.etcds.Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && o.GetDeletionTimestamp() != nil:
			return fmt.Errorf("the etcd %q: %w", name, errRemoved)
		case err != nil:
			return err
		case slices.Contains(o.GetFinalizers(), EtcdFinalizer):
			return nil
		}
		o.SetFinalizers(append(o.GetFinalizers(), EtcdFinalizer))
		if _, err = p.etcds.Update(ctx, o, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// unavailable is an error whose text clients get.
func unavailable(why string) error { return reply.Unavailable(why) }

// guard creates the guard of a tenant where it is, unless the tenant awaits an import, or one is
// under way. A guard of a former epoch, which the end of a move has left, is replaced.
func (r *registry) guard(ctx context.Context, use *Use, t Tenant, version string) (bool, error) {
	value, before, err := r.guardOf(ctx, use, t)
	switch {
	case err != nil:
		return false, err
	case t.incomplete(value):
		return false, errImporting
	case value == t.Holder():
		return true, nil
	}
	return r.createGuard(ctx, use, t, version, before, t.Holder())
}

// guardOf is the value of the guard of a tenant, and the revision of its last change. Both are empty if there is
// none.
func (r *registry) guardOf(ctx context.Context, use *Use, t Tenant) (value string, revision int64, err error) {
	found, err := use.Client().Get(ctx, Guard(r.prefix, t.UID))
	if err != nil || len(found.Kvs) == 0 {
		return "", 0, err
	}
	return string(found.Kvs[0].Value), found.Kvs[0].ModRevision, nil
}

// createGuard creates the guard of a tenant where it is, if the object has not changed: a tenant that
// is being deleted must not get it back. Where the object is not in the same etcd, the fences
// see to that. before is the revision of the guard that is replaced, 0 for none.
func (r *registry) createGuard(ctx context.Context, use *Use, t Tenant, version string, before int64, value string) (bool, error) {
	revision, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return false, err
	}
	guard := Guard(r.prefix, t.UID)
	conditions := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(guard), "=", before), noFence(r.prefix, t.UID, t.Epoch)}
	if use.Name == RootEtcd {
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(r.objects()+t.Name), "=", revision))
	}
	if t.Revisions.Since > 0 {
		conditions = append(conditions, fenced(r.prefix, t.UID))
	}
	ops := []clientv3.Op{clientv3.OpPut(guard, value)}
	if t.Epoch > 0 { // what a former epoch has on its way ends here
		ops = append(ops, raise(r.prefix, t.UID, t.Epoch)...)
	}
	answer, err := use.Client().Txn(ctx).If(conditions...).Then(ops...).Commit()
	if err == nil && !answer.Succeeded {
		err = r.arrived(ctx, use, t)
		return false, err
	}
	return err == nil, err
}
