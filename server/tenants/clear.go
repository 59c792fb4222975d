package tenants

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// clear removes what is left of a tenant in etcds that it is not in.
func (r *remover) clear(ctx context.Context, name string) error {
	o, err := r.client.Get(ctx, name, metav1.GetOptions{})
	if isGone(err) || err == nil && o.GetDeletionTimestamp() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	var failed error
	n := last(o)
	for _, etcd := range leftovers(o) {
		use, err := r.apart(ctx, o, etcd)
		if err == nil {
			err = r.emptyIn(ctx, use, o.GetUID(), n, true)
		}
		use.Release()
		if errors.Is(err, errRemoved) || errors.Is(err, errSame) { // with all that is in it; it has the tenant itself
			err = nil
		}
		if err == nil {
			_, err = r.change(ctx, name, o.GetUID(), func(s status) error {
				if last(s.Unstructured) != n { // a move that began meanwhile may have left something there
					return errTaken
				}
				s.leave(etcd, false)
				return nil
			})
		}
		if err = taken(err); err != nil {
			failed = errors.Join(failed, fmt.Errorf("remove what is left in the etcd %q: %w", etcd, err))
		}
	}
	return failed
}

// exists returns errRemoved if there is no etcd of a name.
func (r *remover) exists(ctx context.Context, name string) error {
	if name == RootEtcd {
		return nil
	}
	_, err := r.pool.etcds.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the etcd %q: %w", name, errRemoved)
	}
	return err
}

// emptyAt removes everything of a tenant from an etcd, and ends there what has a lower number. The error is errRemoved
// if there is no such etcd.
func (r *remover) emptyAt(ctx context.Context, name string, uid types.UID, n int64, fenced bool) error {
	if err := r.exists(ctx, name); err != nil {
		return err
	}
	use, err := r.pool.Use(ctx, name)
	if err != nil {
		return err
	}
	defer use.Release()
	return r.emptyIn(ctx, use, uid, n, fenced)
}

// emptyIn is emptyAt with the connection to the etcd.
func (r *remover) emptyIn(ctx context.Context, use *Use, uid types.UID, n int64, fenced bool) error {
	ctx, stop := use.patient(ctx) // what waits for it keeps other tenants waiting
	defer stop()
	etcd := use.Client()
	ops := []clientv3.Op{clientv3.OpDelete(Guard(r.prefix, uid))}
	var conditions []clientv3.Cmp
	if fenced {
		lease, err := r.pool.fenceLease(ctx, use)
		if err != nil {
			return err
		}
		conditions = []clientv3.Cmp{noFence(r.prefix, uid, n)}
		ops = append(ops, raise(r.prefix, uid, n, clientv3.WithLease(lease))...)
	} else {
		ops = append(ops, clientv3.OpDelete(fences(r.prefix, uid), clientv3.WithPrefix()))
	}
	left, err := r.dropGuard(ctx, use, uid, conditions, ops)
	if err != nil {
		return err
	}
	if left.small() {
		return r.emptyAtOnce(ctx, etcd, uid, left, conditions)
	}
	if err := unbind(ctx, etcd, r.prefix, uid, left.notes); err != nil {
		return fmt.Errorf("delete what providers have of the tenant: %w", err)
	}
	for _, keys := range ranges(r.prefix, uid) {
		if err := empty(ctx, etcd, keys, conditions...); err != nil {
			return fmt.Errorf("delete keys of the tenant: %w", err)
		}
	}
	return nil
}

// remains is what a tenant had when its guard was deleted. All that is written later has the condition
// that the guard exists, so that it can only become less.
type remains struct {
	notes map[schema.GroupResource]Bound
	keys  int64 // of the tenant, as a consumer, too
	lent  int64 // of its consumers
}

// mostOps is how many operations a transaction has at most; etcd allows 128.
const mostOps = 100

// small reports whether one transaction deletes it all. A mark is written and deleted with its object:
// there are no more of them than keys.
func (l remains) small() bool {
	return 2*len(l.notes)+3 <= mostOps && 2*l.keys+l.lent <= removedKeys
}

// dropGuard deletes the guard of a tenant, under conditions, together with other operations. What
// is left is read in the same transaction.
func (r *remover) dropGuard(ctx context.Context, use *Use, uid types.UID, conditions []clientv3.Cmp, ops []clientv3.Op) (left remains, err error) {
	first := len(ops)
	ops = append(ops,
		ReadBound(r.prefix, uid),
		clientv3.OpGet(Prefix(r.prefix, uid)+"/", clientv3.WithPrefix(), clientv3.WithCountOnly()),
		clientv3.OpGet(SharedBy(r.prefix, uid).Folder(), clientv3.WithPrefix(), clientv3.WithCountOnly()))
	short, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	answer, err := use.Client().Txn(short).If(conditions...).Then(ops...).Commit()
	if err != nil {
		r.pool.forgetLease(use)
		return left, fmt.Errorf("delete the guard: %w", err)
	}
	if !answer.Succeeded {
		return left, errFenced
	}
	found := answer.Responses[first:]
	left.keys, left.lent = found[1].GetResponseRange().Count, found[2].GetResponseRange().Count
	if left.notes, err = BoundIn(r.prefix, uid, found[0].GetResponseRange().Kvs); err != nil {
		return left, err
	}
	return left, nil
}

// emptyAtOnce deletes everything of a tenant whose guard is gone, and what providers have of it, in one
// transaction. If its answer is lost, the next attempt finds the notes, or nothing. Watches of
// providers read what goes as it was one revision before.
func (r *remover) emptyAtOnce(ctx context.Context, etcd *clientv3.Client, uid types.UID, left remains, conditions []clientv3.Cmp) error {
	var ops []clientv3.Op
	for resource, b := range left.notes {
		of := SharedBy(r.prefix, b.Provider)
		ops = append(ops, clientv3.OpDelete(of.Mark(resource, uid, ""), clientv3.WithPrefix()), clientv3.OpDelete(of.Grant(resource, uid)))
	}
	for _, keys := range ranges(r.prefix, uid) {
		ops = append(ops, clientv3.OpDelete(keys.begin, clientv3.WithRange(keys.end)))
	}
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	answer, err := etcd.Txn(ctx).If(conditions...).Then(ops...).Commit()
	if err != nil {
		return fmt.Errorf("delete the keys of the tenant, and what providers have of it: %w", err)
	}
	if !answer.Succeeded {
		return errFenced
	}
	return nil
}
