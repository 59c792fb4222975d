package quota

import (
	"context"
	"errors"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/storage/value"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/catalog/restmapping"
)

const (
	workers = 2
	// pause is between two counts of one quota that changes give reason for.
	pause = 100 * time.Millisecond
	// rest is how many times as long as a count the pause is at least: objects are read
	// for their contents.
	rest = 4
	// DefaultResync is how often all quotas are counted, even without changes.
	DefaultResync = 5 * time.Minute
	// margin is how long after its deadline a request may still be written: etcd times
	// out a proposal earlier.
	margin = 15 * time.Second

	firstRetry, lastRetry = 20 * time.Millisecond, 30 * time.Second
)

// Config configures a Controller. All fields are required except where noted.
type Config struct {
	// Etcd and Prefix are where objects are stored.
	Etcd         *clientv3.Client
	Prefix       string
	Transformers value.ResourceTransformers // may be nil
	Kinds        *restmapping.Kinds
	// Client writes the status of quotas.
	Client kubernetes.Interface
	// Quotas is the informer of quotas. The caller runs it.
	Quotas coreinformers.ResourceQuotaInformer
	// RequestTimeout is how long a request may take from its reservation to its write.
	RequestTimeout time.Duration
	// Resync is how often all quotas are counted; 0 is DefaultResync.
	Resync time.Duration
}

// Controller keeps the status of quotas. Several servers have one; only one of them
// runs at a time.
type Controller struct {
	config Config

	mu      sync.Mutex
	ledgers map[string]map[string]*ledger // by namespace and name
	tallies map[string]*tally             // of namespaces whose bytes are limited
	// unread are the keys of quotas that cannot be decoded. While there are any, the
	// informer may miss others.
	unread map[string]bool
	// position is the revision up to which the watch has been read.
	position int64
	queue    workqueue.TypedRateLimitingInterface[types.NamespacedName]
}

// New returns a controller that does nothing until it is run.
func New(c Config) *Controller {
	if c.Resync == 0 {
		c.Resync = DefaultResync
	}
	c.Quotas.Informer() // asked for before the informers are started
	return &Controller{config: c}
}

// Run keeps the status of quotas until the context ends, whose error it returns. It
// may be run again later. Without quotas it reads nothing, once it knows that.
func (c *Controller) Run(ctx context.Context) error {
	c.queue = newQueue()
	some := make(chan struct{}, 1)
	informer := c.config.Quotas.Informer()
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		select {
		case some <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { c.work(ctx) })
	}
	// The informer says nothing as long as one quota cannot be read. What is there is read
	// without it, at first.
	for ctx.Err() == nil {
		c.follow(ctx)
		select {
		case <-ctx.Done():
		case <-some:
		}
	}
	c.queue.ShutDown()
	running.Wait()
	return errors.Join(ctx.Err(), informer.RemoveEventHandler(registration))
}

func newQueue() workqueue.TypedRateLimitingInterface[types.NamespacedName] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry),
		workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: "quota"})
}

// soon queues a quota to be counted. Rapid changes are counted together, the more the
// longer it takes to count. The caller has the lock.
func (c *Controller) soon(namespace, name string) {
	after := pause
	if l := c.ledgers[namespace][name]; l != nil {
		after = max(after, rest*l.took)
	}
	c.queue.AddAfter(types.NamespacedName{Namespace: namespace, Name: name}, after)
}

func (c *Controller) work(ctx context.Context) {
	for {
		item, quit := c.queue.Get()
		if quit {
			return
		}
		err := c.sync(ctx, item)
		switch {
		case err == nil:
			c.queue.Forget(item)
		case ctx.Err() == nil:
			if !apierrors.IsConflict(err) && !errors.Is(err, errAgain) {
				klog.FromContext(ctx).Error(err, "Failed to update the status of a ResourceQuota, retrying", "namespace", item.Namespace, "name", item.Name)
			}
			c.queue.AddRateLimited(item)
		}
		c.queue.Done(item)
	}
}

// sync brings the status of a quota up to date. What is reserved is looked up before
// objects are counted: an object that comes in between is counted twice, and not
// left out.
//
// A new limit comes into force in two steps. The first write adds the limit without
// status.used: from its revision on nothing is admitted without a reservation, and
// requests wait for the second write. The second write sets status.used; it fails if the
// count has changed. With a single write, objects created between the count and the
// write would not be counted. The second write follows at once: requests do not wait for
// the counts of other quotas.
func (c *Controller) sync(ctx context.Context, item types.NamespacedName) error {
	if err := c.prepare(ctx, item); err != nil {
		return err
	}
	q, reserved, bytes := c.look(item)
	if q == nil {
		return nil
	}
	written, err := c.update(ctx, q, reserved, bytes)
	if err != nil || written == nil || !isUncounted(written, anything) {
		return err
	}
	if q, reserved, bytes = c.look(item); q == nil {
		return nil
	}
	_, err = c.update(ctx, written, reserved, bytes)
	return err
}

// update counts what a quota limits and writes its status, on the condition that the
// quota is as given. Names that are not in force yet get no count. It returns nothing
// if there was nothing to write, or if the quota is gone.
func (c *Controller) update(ctx context.Context, q *corev1.ResourceQuota, reserved corev1.ResourceList, bytes int64) (*corev1.ResourceQuota, error) {
	began := time.Now()
	used, err := c.count(ctx, q, 0)
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	if !scoped(q) {
		used[StorageBytes] = number(int(bytes))
	}
	updated := q.DeepCopy()
	updated.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard.DeepCopy(), Used: corev1.ResourceList{}}
	for name := range q.Spec.Hard {
		if _, inForce := q.Status.Hard[name]; !inForce {
			continue
		}
		stored := used[name]
		n := number(0)
		n.Add(stored)
		n.Add(reserved[name])
		// An object that was stored in the meantime is counted twice: as used and as
		// reserved. status.used covers everything that passed admission, so n need not be
		// higher. This does not hold for a name without a count in status.used: it may have
		// been limited, and reserved, before.
		if was, counted := q.Status.Used[name]; counted && stored.Cmp(was) <= 0 && n.Cmp(was) > 0 {
			n = was
		}
		updated.Status.Used[name] = n
	}
	c.mu.Lock()
	if l := c.ledgers[q.Namespace][q.Name]; l != nil {
		l.took = took
	}
	c.mu.Unlock()
	if quotav1.Equals(updated.Status.Hard, q.Status.Hard) && quotav1.Equals(updated.Status.Used, q.Status.Used) {
		return nil, nil
	}
	written, err := c.config.Client.CoreV1().ResourceQuotas(q.Namespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{})
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.ledgers[q.Namespace][q.Name]; l != nil {
		l.wrote(written.ResourceVersion)
	}
	return written, nil
}

// isUncounted reports whether a quota limits something that is asked for and nothing is
// counted for it yet.
func isUncounted(q *corev1.ResourceQuota, asked func(corev1.ResourceName) bool) bool {
	for name := range q.Status.Hard {
		if _, counted := q.Status.Used[name]; !counted && asked(name) {
			return true
		}
	}
	return false
}

func anything(corev1.ResourceName) bool { return true }

// look returns a quota as it was last seen, what is reserved of it, and the bytes of
// its namespace, all as of one moment of the watch.
func (c *Controller) look(item types.NamespacedName) (q *corev1.ResourceQuota, reserved corev1.ResourceList, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.ledgers[item.Namespace][item.Name]
	if l == nil {
		return nil, nil, 0
	}
	now, life := time.Now(), c.config.RequestTimeout+margin
	reserved = corev1.ResourceList{}
	for name := range l.quota.Spec.Hard {
		pending := l.pending(name, now.Add(-life))
		if reserved[name] = pending; !pending.IsZero() {
			c.queue.AddAfter(item, life) // what was reserved in vain is given back then
		}
	}
	if t := c.tallies[item.Namespace]; t != nil && !scoped(l.quota) {
		bytes = t.total
	}
	return l.quota, reserved, bytes
}

// scoped reports whether a quota has scopes. It is about pods and claims then.
func scoped(q *corev1.ResourceQuota) bool {
	return len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil && len(q.Spec.ScopeSelector.MatchExpressions) > 0
}
