package quota

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// batch is how many resources are counted in one request; etcd takes 128
	// operations.
	batch = 100
	// page is how many objects are read at a time for their size: at most that many
	// times 1.5 MiB are in memory, and mostly a megabyte.
	page = 100
)

// count returns how many objects there are of what a quota counts, at a revision or,
// if that is 0, now: etcd counts keys without reading values.
func (c *Controller) count(ctx context.Context, q *corev1.ResourceQuota, revision int64) (map[corev1.ResourceName]int64, error) {
	used := map[corev1.ResourceName]int64{}
	if scoped(q) {
		return used, nil
	}
	var names []corev1.ResourceName
	var folders []string
	for name := range q.Spec.Hard {
		if resource, ok := counted(name); ok {
			if prefix := c.config.Kinds.Prefix(resource); prefix != "" {
				names, folders = append(names, name), append(folders, c.folder(prefix, q.Namespace))
			}
		}
	}
	counts, err := c.countKeys(ctx, folders, revision)
	for i, n := range counts {
		used[names[i]] = n
	}
	return used, err
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
		there[StorageBytes] = bytes
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
	end := clientv3.GetPrefixRangeEnd(folder)
	for key := folder; ; {
		answer, err := c.config.Etcd.Get(ctx, key, clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithRev(revision))
		if err != nil {
			return 0, fmt.Errorf("failed to read the sizes of objects below %s: %w", folder, err)
		}
		for _, kv := range answer.Kvs {
			sum += int64(len(kv.Value))
		}
		if !answer.More || len(answer.Kvs) == 0 {
			return sum, nil
		}
		key = string(answer.Kvs[len(answer.Kvs)-1].Key) + "\x00"
	}
}

// limitsBytes reports whether a quota is about updates as well.
func limitsBytes(q *corev1.ResourceQuota) bool {
	_, wanted := q.Spec.Hard[StorageBytes]
	_, inForce := q.Status.Hard[StorageBytes]
	return wanted || inForce
}
