package quota

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/espalier-dev/espalier/server/storage/scan"
)

// batch is how many resources are counted in one request; etcd takes 128
// operations.
const batch = 100

// count returns what objects take of what a quota limits, at a revision or, if that is 0,
// now. etcd counts keys without reading values; objects are read for their contents only.
func (c *Controller) count(ctx context.Context, q *corev1.ResourceQuota, revision int64) (corev1.ResourceList, error) {
	used := corev1.ResourceList{}
	var names []corev1.ResourceName
	var folders []string
	for name := range q.Spec.Hard {
		if resource, ok := counted(name); ok && !scoped(q) {
			if prefix := c.config.Kinds.Prefix(resource); prefix != "" {
				names, folders = append(names, name), append(folders, c.folder(prefix, q.Namespace))
			}
		}
	}
	counts, err := c.countKeys(ctx, folders, revision)
	if err != nil {
		return nil, err
	}
	for i, n := range counts {
		used[names[i]] = number(int(n))
	}
	for resource := range measured {
		r := readingOf(resource, q)
		if r == nil {
			continue
		}
		prefix := c.config.Kinds.Prefix(resource)
		if prefix == "" {
			continue
		}
		if err := c.values(ctx, c.folder(prefix, q.Namespace), revision, func(kv *mvccpb.KeyValue) {
			obj := c.object(ctx, resource, kv)
			used = quotav1.Add(used, r.taken(obj))
			// A pod that is being deleted takes nothing after a time, without an event. What
			// ends later is counted with all quotas.
			if end, ok := endOf(obj); ok {
				if left := time.Until(end); left > 0 && left < c.config.Resync {
					c.queue.AddAfter(types.NamespacedName{Namespace: q.Namespace, Name: q.Name}, left+pause)
				}
			}
		}); err != nil {
			return nil, err
		}
	}
	return used, nil
}

// reading is what a quota limits that objects of a resource are read for.
type reading struct {
	*evaluator
	quota *corev1.ResourceQuota
	names []corev1.ResourceName
}

// readingOf returns nil if no object need be read. The number of objects in a scope is
// counted by reading them, and so are their bytes.
func readingOf(resource schema.GroupResource, q *corev1.ResourceQuota) *reading {
	e := newEvaluator(resource)
	r := &reading{evaluator: e, quota: q}
	if e.contents == nil {
		return nil
	}
	for name := range q.Spec.Hard {
		if e.reads(name) || scoped(q) && e.takes(name) {
			r.names = append(r.names, name)
		}
	}
	if len(r.names) == 0 {
		return nil
	}
	return r
}

// taken returns what an object takes of the quota now; nothing if there is none.
func (r *reading) taken(obj runtime.Object) corev1.ResourceList {
	if obj == nil || !r.within(obj, scopesOf(r.quota)) {
		return nil
	}
	used, err := r.Usage(obj)
	if err != nil {
		return nil
	}
	return quotav1.Mask(used, r.names)
}

// object returns the object that is stored under a key, or nil if it cannot be read: it
// takes nothing that could be known.
func (c *Controller) object(ctx context.Context, resource schema.GroupResource, kv *mvccpb.KeyValue) runtime.Object {
	if kv == nil || len(kv.Value) == 0 {
		return nil
	}
	data, err := c.plain(ctx, resource, kv)
	if err != nil {
		return nil
	}
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return nil
	}
	return obj
}

// folder is what the keys of the objects of a resource in a namespace begin with.
func (c *Controller) folder(prefix, namespace string) string {
	return path.Join("/", c.config.Prefix, prefix, namespace) + "/"
}

func (c *Controller) countKeys(ctx context.Context, folders []string, revision int64) ([]int64, error) {
	var counts []int64
	for len(folders) > 0 {
		some := folders[:min(batch, len(folders))]
		folders = folders[len(some):]
		ops := make([]clientv3.Op, len(some))
		for i, folder := range some {
			ops[i] = clientv3.OpGet(folder, clientv3.WithPrefix(), clientv3.WithCountOnly(), clientv3.WithRev(revision))
		}
		answer, err := c.config.Etcd.Txn(ctx).Then(ops...).Commit()
		if err != nil {
			return nil, fmt.Errorf("failed to count objects: %w", err)
		}
		for _, r := range answer.Responses {
			counts = append(counts, r.GetResponseRange().Count)
		}
	}
	return counts, nil
}

// errAgain says that the watch has begun anew, or that another quota of the
// namespace is being counted.
var errAgain = errors.New("the quota is counted once more")

// prepare finds out what the watch of changes does not tell of a quota: the bytes of
// its namespace, if they are limited, and what was reserved before the watch began.
// For bytes it reads all objects of the namespace, once: the watch brings the
// changes from then on.
func (c *Controller) prepare(ctx context.Context, item types.NamespacedName) error {
	c.mu.Lock()
	l, t := c.ledgers[item.Namespace][item.Name], c.tallies[item.Namespace]
	if l == nil || l.complete && (!limitsBytes(l.quota) || t != nil && t.known) {
		c.mu.Unlock()
		return nil
	}
	if t != nil && !t.known {
		c.mu.Unlock()
		return errAgain
	}
	now, q, revision := time.Now(), l.quota, c.position
	bytewise := limitsBytes(q)
	if bytewise {
		t = &tally{} // notes what changes from now on
		c.tallies[item.Namespace] = t
	}
	c.mu.Unlock()

	there, err := c.count(ctx, q, revision)
	var bytes int64
	if err == nil && bytewise {
		bytes, err = c.measure(ctx, q.Namespace, revision)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ledgers[item.Namespace][item.Name] != l || bytewise && c.tallies[item.Namespace] != t:
		return errAgain
	case err != nil && bytewise:
		delete(c.tallies, item.Namespace)
		return err
	case err != nil:
		return err
	}
	if bytewise {
		t.scanned(revision, bytes)
		there[StorageBytes] = number(int(bytes))
	}
	if !l.complete {
		l.before(q, there, now)
	}
	return nil
}

// measure returns the bytes of all objects of a namespace at a revision.
func (c *Controller) measure(ctx context.Context, namespace string, revision int64) (total int64, err error) {
	var folders []string
	for k := range c.config.Kinds.Namespaced() {
		if k.Resource.GroupResource() != quotas {
			folders = append(folders, c.folder(k.Prefix, namespace))
		}
	}
	counts, err := c.countKeys(ctx, folders, revision)
	if err != nil {
		return 0, err
	}
	for i, folder := range folders {
		if counts[i] == 0 {
			continue
		}
		bytes, err := c.sizes(ctx, folder, revision)
		if err != nil {
			return 0, err
		}
		total += bytes
	}
	return total, nil
}

// sizes returns the sum of the values below a folder at a revision.
func (c *Controller) sizes(ctx context.Context, folder string, revision int64) (sum int64, err error) {
	err = c.values(ctx, folder, revision, func(kv *mvccpb.KeyValue) { sum += int64(len(kv.Value)) })
	return sum, err
}

// values calls a function for all that is stored below a folder, at a revision or, if that
// is 0, now.
func (c *Controller) values(ctx context.Context, folder string, revision int64, f func(*mvccpb.KeyValue)) error {
	_, err := scan.All(ctx, c.config.Etcd, folder, clientv3.GetPrefixRangeEnd(folder), revision, func(kv *mvccpb.KeyValue) error {
		f(kv)
		return nil
	})
	if err != nil {
		return fmt.Errorf("failed to read objects below %s: %w", folder, err)
	}
	return nil
}

// limitsBytes reports whether a quota limits the bytes of all objects of a namespace.
func limitsBytes(q *corev1.ResourceQuota) bool {
	_, wanted := q.Spec.Hard[StorageBytes]
	_, inForce := q.Status.Hard[StorageBytes]
	return (wanted || inForce) && !scoped(q)
}
