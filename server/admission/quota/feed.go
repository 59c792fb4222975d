package quota

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/replica"
	"github.com/espalier-dev/espalier/server/storage/scan"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// errNoQuota ends the watch: nothing is limited any more.
var errNoQuota = errors.New("no ResourceQuota is left")

// follow watches quotas and objects until there is no quota left. After a gap in the
// watch it counts everything again: usage above the number of stored objects may have
// been reserved during the gap.
func (c *Controller) follow(ctx context.Context) {
	ctx = store.OwnStream(ctx, "quota")
	for delay := firstRetry; ctx.Err() == nil; delay = min(2*delay, lastRetry) {
		began := time.Now()
		err := c.watch(ctx)
		if errors.Is(err, errNoQuota) || ctx.Err() != nil {
			return
		}
		if time.Since(began) > lastRetry {
			delay = firstRetry
		}
		klog.FromContext(ctx).V(2).Info("Reading ResourceQuotas again", "reason", err)
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
}

// watch reads all quotas and follows all changes from there.
func (c *Controller) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	revision, err := c.read(ctx)
	if err != nil {
		return err
	}
	resync := time.NewTicker(c.config.Resync)
	defer resync.Stop()
	changes := c.config.Etcd.Watch(clientv3.WithRequireLeader(ctx), c.folder("/", ""), clientv3.WithPrefix(), clientv3.WithPrevKV(),
		clientv3.WithRev(revision+1), clientv3.WithFragment())
	for {
		if c.none() {
			return errNoQuota
		}
		select {
		case <-resync.C:
			c.all()
		case response, ok := <-changes:
			if !ok {
				return errors.New("the watch has ended")
			}
			if err := response.Err(); err != nil {
				return err
			}
			if err := c.applyAll(ctx, response.Events); err != nil {
				return err
			}
		}
	}
}

// applyAll makes the changes of a response, which ends with a revision.
func (c *Controller) applyAll(ctx context.Context, events []*clientv3.Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, event := range events {
		if err := c.apply(ctx, event); err != nil {
			return err
		}
		c.position = event.Kv.ModRevision
	}
	return nil
}

// read brings all quotas, as they are at one revision.
func (c *Controller) read(ctx context.Context) (revision int64, err error) {
	folder := path.Join("/", c.config.Prefix, c.config.Kinds.Prefix(quotas)) + "/"
	ledgers, unread := map[string]map[string]*ledger{}, map[string]bool{}
	revision, err = scan.All(ctx, c.config.Etcd, folder, clientv3.GetPrefixRangeEnd(folder), 0, func(kv *mvccpb.KeyValue) error {
		if q, err := c.decode(ctx, kv); err == nil {
			ledgerOf(ledgers, q.Namespace, q.Name).see(q, time.Now())
		} else {
			unread[string(kv.Key)] = true
			klog.FromContext(ctx).Error(err, "Failed to read a ResourceQuota", "key", string(kv.Key))
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("failed to read ResourceQuotas: %w", err)
	}
	c.mu.Lock()
	c.ledgers, c.tallies, c.unread, c.position = ledgers, map[string]*tally{}, unread, revision
	c.mu.Unlock()
	c.all()
	return revision, nil
}

func ledgerOf(all map[string]map[string]*ledger, namespace, name string) *ledger {
	if all[namespace] == nil {
		all[namespace] = map[string]*ledger{}
	}
	if all[namespace][name] == nil {
		all[namespace][name] = &ledger{}
	}
	return all[namespace][name]
}

// all queues all quotas to be counted.
func (c *Controller) all() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for namespace, names := range c.ledgers {
		for name := range names {
			c.soon(namespace, name)
		}
	}
}

func (c *Controller) none() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ledgers) == 0 && len(c.unread) == 0
}

// apply makes the change that an event tells of.
func (c *Controller) apply(ctx context.Context, event *clientv3.Event) error {
	key := strings.TrimPrefix(string(event.Kv.Key), strings.TrimSuffix(c.folder("/", ""), "/"))
	if strings.HasPrefix(key, "/"+replica.OwnFolder) {
		return nil
	}
	resource, namespace, ok := c.config.Kinds.Namespace(key)
	if !ok {
		return nil
	}
	if resource == quotas {
		return c.applyQuota(ctx, event, namespace, path.Base(key))
	}
	if c.ledgers[namespace] == nil {
		return nil
	}
	if event.PrevKv == nil && !event.IsCreate() {
		return fmt.Errorf("etcd has no former value of %s", event.Kv.Key)
	}
	c.applyObject(event, resource, namespace)
	if measured[resource] != nil {
		c.applyContents(ctx, event, resource, namespace)
	}
	return nil
}

func (c *Controller) applyQuota(ctx context.Context, event *clientv3.Event, namespace, name string) error {
	delete(c.unread, string(event.Kv.Key)) // or everything is read again
	if event.Type == clientv3.EventTypeDelete {
		delete(c.ledgers[namespace], name)
		if len(c.ledgers[namespace]) == 0 {
			delete(c.ledgers, namespace)
			delete(c.tallies, namespace)
		}
		return nil
	}
	q, err := c.decode(ctx, event.Kv)
	if err != nil {
		return err
	}
	if ledgerOf(c.ledgers, namespace, name).see(q, time.Now()) {
		c.soon(namespace, name)
	}
	c.applyCount(quotas, namespace, event)
	return nil
}

// applyObject notes an object that has come, has changed its size, or has gone.
func (c *Controller) applyObject(event *clientv3.Event, resource schema.GroupResource, namespace string) {
	var bytes int64
	if event.Type == clientv3.EventTypePut {
		bytes = int64(len(event.Kv.Value))
	}
	if event.PrevKv != nil {
		bytes -= int64(len(event.PrevKv.Value))
	}
	if t := c.tallies[namespace]; t != nil {
		t.add(change{event.Kv.ModRevision, bytes})
		for name, l := range c.ledgers[namespace] {
			// An object that shrinks frees quota. One that grows beyond all reservations has
			// used more: deletion marks and encryption do that. pause bounds the counting.
			if !limitsBytes(l.quota) {
				continue
			}
			if rest := l.settle(StorageBytes, number(int(bytes))); !rest.IsZero() {
				c.soon(namespace, name)
			}
		}
	}
	c.applyCount(resource, namespace, event)
}

func (c *Controller) applyCount(resource schema.GroupResource, namespace string, event *clientv3.Event) {
	for _, count := range countNames(resource) {
		for name, l := range c.ledgers[namespace] {
			if _, limited := l.quota.Spec.Hard[count]; !limited || scoped(l.quota) {
				continue
			}
			if event.Type == clientv3.EventTypeDelete {
				c.soon(namespace, name)
			} else if event.IsCreate() {
				l.settle(count, number(1))
			}
		}
	}
}

// applyContents notes that an object takes more or less than before. What was reserved
// for it is settled; anything else gives reason to count.
func (c *Controller) applyContents(ctx context.Context, event *clientv3.Event, resource schema.GroupResource, namespace string) {
	var now, before runtime.Object
	decoded := false
	for name, l := range c.ledgers[namespace] {
		r := readingOf(resource, l.quota)
		if r == nil {
			continue
		}
		if !decoded {
			now, before, decoded = c.object(ctx, resource, event.Kv), c.object(ctx, resource, event.PrevKv), true
		}
		for what, amount := range quotav1.Subtract(r.taken(now), r.taken(before)) {
			if rest := l.settle(what, amount); !rest.IsZero() {
				c.soon(namespace, name)
			}
		}
		if _, ends := endOf(now); ends {
			if _, ended := endOf(before); !ended {
				c.soon(namespace, name) // and once more at the end
			}
		}
	}
}

// decode returns the quota that is stored under a key.
func (c *Controller) decode(ctx context.Context, kv *mvccpb.KeyValue) (*corev1.ResourceQuota, error) {
	data, err := c.plain(ctx, quotas, kv)
	if err != nil {
		return nil, err
	}
	q := &corev1.ResourceQuota{}
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, q); err != nil {
		return nil, err
	}
	q.ResourceVersion = strconv.FormatInt(kv.ModRevision, 10)
	return q, nil
}

// plain returns a value as it is before encryption.
func (c *Controller) plain(ctx context.Context, resource schema.GroupResource, kv *mvccpb.KeyValue) ([]byte, error) {
	if c.config.Transformers == nil {
		return kv.Value, nil
	}
	t := c.config.Transformers.TransformerForResource(resource)
	if t == nil {
		return kv.Value, nil
	}
	data, _, err := t.TransformFromStorage(ctx, kv.Value, value.DefaultContext(kv.Key))
	return data, err
}
