package tenants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/server/catalog/restmapping"
	"github.com/espalier-dev/espalier/server/controllers/queue"
	"github.com/espalier-dev/espalier/server/storage/scan"
)

const (
	// removers is how many tenants are removed at a time.
	removers = 16
	// removedKeys is how many keys one transaction deletes: etcd does nothing else meanwhile.
	removedKeys = 2000
	// pageTime is how long that may take.
	pageTime = 30 * time.Second
	// listed is how many tenants a page of a list has.
	listed = 500

	firstRetry, lastRetry = 100 * time.Millisecond, time.Minute
)

// Install creates the CRDs of tenants and etcds, or brings them up to date.
func Install(ctx context.Context, client dynamic.Interface) error {
	for _, text := range [][]byte{CRD, EtcdCRD} {
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &crd.Object); err != nil {
			return err
		}
		if _, err := client.Resource(restmapping.CustomResourceDefinitions.Resource).Apply(ctx, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "espalier", Force: true}); err != nil {
			return err
		}
	}
	return nil
}

// remover removes what is left of tenants that are deleted.
type remover struct {
	registry
	queue  queue.Queue[string] // of tenants that may have been deleted
	moving queue.Queue[string] // of those that may have to be moved
	pauses pauses
}

// Remove removes what is left of deleted tenants, and moves tenants, until the context ends. One replica
// does so at a time; several do no harm.
func Remove(ctx context.Context, client dynamic.Interface, pool *Pool, prefix string) error {
	r := &remover{
		registry: registry{client.Resource(Resource), pool.root.Client(), pool, prefix},
		queue:    queue.New[string]("tenants", firstRetry, lastRetry), moving: queue.New[string]("tenant-moves", firstRetry, lastRetry),
	}
	var working sync.WaitGroup
	defer working.Wait()
	for range removers {
		working.Go(func() {
			queue.Work(ctx, r.queue, r.remove, func(name string, err error) {
				klog.ErrorS(err, "Removing a tenant failed, retrying", "tenant", name)
			})
		})
	}
	for range movers {
		working.Go(func() {
			queue.Work(ctx, r.moving, r.move, func(name string, err error) {
				klog.ErrorS(err, "Moving a tenant, or removing what a move has left, failed, retrying", "tenant", name)
			})
		})
	}
	defer r.queue.ShutDown()
	defer r.moving.ShutDown()
	working.Go(func() { r.releaseEtcds(ctx) })
	changes := make(chan string, 16)
	go r.follow(ctx, r.objects(), changes)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case name := <-changes:
			if name != "" {
				r.queue.Add(name)
				continue
			}
			if err := r.all(ctx); err != nil && ctx.Err() == nil {
				klog.ErrorS(err, "Listing tenants failed; those that were deleted before are removed when this succeeds")
				time.AfterFunc(lastRetry, func() {
					select {
					case changes <- "":
					case <-ctx.Done():
					}
				})
			}
		}
	}
}

// all looks at all tenants.
func (r *remover) all(ctx context.Context) error {
	options := metav1.ListOptions{Limit: listed}
	for {
		page, err := r.client.List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if o := &page.Items[i]; o.GetDeletionTimestamp() != nil || moves(o) {
				r.queue.Add(o.GetName())
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// remove removes a tenant, if it was deleted, and has it moved if it is to be.
func (r *remover) remove(ctx context.Context, name string) error {
	o, err := r.client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil && moves(o) {
		r.moving.Add(name)
	}
	if err != nil || o.GetDeletionTimestamp() == nil || !slices.Contains(o.GetFinalizers(), Finalizer) {
		return err
	}
	// What is left of moves has lower numbers. Nothing begins a move now.
	number := last(o) + 1
	all := traces(o)
	if at := placeOf(o).at(); !slices.Contains(all, at) {
		all = append(all, at)
	}
	for _, etcd := range all {
		// In the etcd of the server, a tenant that was never moved needs no fence: without its object no guard is created.
		err := r.emptyAt(ctx, etcd, o.GetUID(), number, etcd != RootEtcd || number > 1)
		if err != nil && (etcd == placeOf(o).at() || !errors.Is(err, errRemoved)) {
			return fmt.Errorf("in the etcd %q: %w", etcd, err)
		}
	}
	o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == Finalizer }))
	if _, err = r.client.Update(ctx, o, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// empty deletes a range under conditions. If they do not hold, nothing more is deleted.
func empty(ctx context.Context, etcd *clientv3.Client, keys keyRange, conditions ...clientv3.Cmp) error {
	for {
		if more, err := emptyPage(ctx, etcd, keys, conditions...); err != nil || !more {
			return err
		}
	}
}

// emptyPage deletes the first keys of a range, and reports whether there are more.
func emptyPage(ctx context.Context, etcd *clientv3.Client, keys keyRange, conditions ...clientv3.Cmp) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	page, more, err := scan.Page(ctx, etcd, keys.begin, keys.end, scan.Limit{Values: removedKeys}, clientv3.WithKeysOnly())
	if err != nil || len(page) == 0 {
		return false, err
	}
	last := keys.end
	if more {
		last = string(page[len(page)-1].Key) + "\x00"
	}
	answer, err := etcd.Txn(ctx).If(conditions...).Then(clientv3.OpDelete(keys.begin, clientv3.WithRange(last))).Commit()
	if err != nil {
		return false, err
	}
	if !answer.Succeeded {
		return false, errFenced
	}
	return more, nil
}

// errFenced is that something else has taken over.
var errFenced = errors.New("another server has taken over")
