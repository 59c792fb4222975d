package namespace

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/catalog/restmapping"
)

const (
	// countBatch is how many kinds are counted in one request; etcd takes 128
	// operations.
	countBatch = 100
	// countWorkers and deleteWorkers are how many requests there are at a time.
	countWorkers  = 4
	deleteWorkers = 8
	// listPage is how many objects are read at a time to see their finalizers, and
	// maxListed how many of a kind at most.
	listPage, maxListed = 500, 10_000
)

// remains are what is left in a namespace.
type remains struct {
	mu         sync.Mutex
	count      map[string]int64 // by resource as upstream writes it
	finalizers map[string]int
	failures   []error
	unknown    []*catalog.Unreadable // CRDs that cannot be read: their objects cannot be deleted
}

// nothing reports whether the namespace is empty.
func (r *remains) nothing() bool {
	return len(r.count) == 0 && len(r.failures) == 0 && len(r.unknown) == 0
}

// empty deletes all that is in a namespace, and returns what is left: what has
// finalizers, and what could not be deleted.
func (nc *Controller) empty(ctx context.Context, namespace string) (*remains, error) {
	var all []restmapping.Kind
	for k := range nc.config.Kinds.Namespaced() {
		all = append(all, k)
	}
	if nc.config.Off != nil {
		all = append(all, nc.config.Off()...)
	}
	r := &remains{count: map[string]int64{}, finalizers: map[string]int{}, unknown: nc.config.Kinds.Unknown()}
	for _, u := range r.unknown {
		plural, group := u.Split()
		all = append(all, restmapping.Kind{
			Resource: schema.GroupVersionResource{Group: group, Resource: plural}, Prefix: "/" + group + "/" + plural, Namespaced: true,
		})
	}
	some, err := nc.count(ctx, namespace, all)
	if err != nil {
		return nil, err
	}
	group := errgroup.Group{}
	group.SetLimit(deleteWorkers)
	for _, c := range some {
		if slices.ContainsFunc(r.unknown, func(u *catalog.Unreadable) bool { return u.Name == c.String() }) {
			r.mu.Lock()
			r.count[c.String()] = c.count
			r.mu.Unlock()
			continue
		}
		group.Go(func() error {
			nc.delete(ctx, namespace, c, r)
			return nil
		})
	}
	return r, group.Wait()
}

// counted is a kind and how many objects of it there are.
type counted struct {
	restmapping.Kind
	count int64
}

// count returns the kinds that have objects in a namespace.
func (nc *Controller) count(ctx context.Context, namespace string, all []restmapping.Kind) (some []counted, err error) {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(countWorkers)
	for len(all) > 0 {
		batch := all[:min(countBatch, len(all))]
		all = all[len(batch):]
		group.Go(func() error {
			ops := make([]clientv3.Op, len(batch))
			for i, k := range batch {
				folder := path.Join("/", nc.config.Prefix, k.Prefix, namespace) + "/"
				ops[i] = clientv3.OpGet(folder, clientv3.WithPrefix(), clientv3.WithCountOnly())
			}
			answer, err := nc.config.Etcd.Txn(ctx).Then(ops...).Commit()
			if err != nil {
				return fmt.Errorf("counting objects in namespace %s: %w", namespace, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for i, k := range batch {
				if n := answer.Responses[i].GetResponseRange().Count; n > 0 {
					some = append(some, counted{k, n})
				}
			}
			return nil
		})
	}
	return some, group.Wait()
}

// delete deletes the objects of a kind, and notes what is left.
func (nc *Controller) delete(ctx context.Context, namespace string, c counted, r *remains) {
	err := nc.deleteCollection(ctx, namespace, c.Kind)
	left, countErr := nc.count(ctx, namespace, []restmapping.Kind{c.Kind})
	if countErr != nil {
		left = []counted{c} // as far as is known
	}
	var finalizers map[string]int
	if len(left) > 0 && err == nil {
		finalizers, err = nc.finalizers(ctx, namespace, c.Kind)
	}
	if len(left) > 0 && err == nil && nc.config.Unreadable != nil {
		err = nc.config.Unreadable(ctx, c.Kind, namespace)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failures = append(r.failures, fmt.Errorf("%s: %w", c.Kind, err))
	}
	for _, l := range left {
		r.count[l.Resource.Resource+"."+l.Resource.Group] = l.count
	}
	for name, n := range finalizers {
		r.finalizers[name] += n
	}
}

func (nc *Controller) deleteCollection(ctx context.Context, namespace string, k restmapping.Kind) error {
	if nc.config.Off != nil && slices.Contains(nc.config.Off(), k) {
		return errors.New("this server does not serve the kind, so that its objects cannot be deleted: start it with --kinds=all")
	}
	if !k.Served() {
		return fmt.Errorf("no version is served, so that its objects cannot be deleted: serve a version of the CRD")
	}
	policy := metav1.DeletePropagationBackground
	return nc.config.Metadata.Resource(k.Resource).Namespace(namespace).
		DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &policy}, metav1.ListOptions{})
}

// finalizers returns how many objects of a kind have each finalizer.
func (nc *Controller) finalizers(ctx context.Context, namespace string, k restmapping.Kind) (map[string]int, error) {
	found := map[string]int{}
	options := metav1.ListOptions{Limit: listPage}
	for listed := 0; listed < maxListed; {
		page, err := nc.config.Metadata.Resource(k.Resource).Namespace(namespace).List(ctx, options)
		if err != nil {
			return found, err
		}
		for i := range page.Items {
			for _, f := range page.Items[i].Finalizers {
				found[f]++
			}
		}
		listed += len(page.Items)
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	return found, nil
}
