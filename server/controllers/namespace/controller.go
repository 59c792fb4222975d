package namespace

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/catalog/restmapping"
	"github.com/espalier-dev/espalier/server/controllers/queue"
)

const (
	// DefaultGrace is how long after the beginning of its deletion a namespace is
	// kept at least. Upstream waits as long.
	DefaultGrace = 5 * time.Second

	workers = 5
	// The delays between two looks at what is left.
	firstPoll, lastPoll = 100 * time.Millisecond, 10 * time.Second
	// patience is how long one look may take.
	patience = 5 * time.Minute
)

// Config is what a Controller works with. All of it must be set except where noted.
type Config struct {
	// Etcd and Prefix are where objects are stored.
	Etcd   *clientv3.Client
	Prefix string
	Kinds  *restmapping.Kinds
	// Client changes namespaces, Metadata deletes objects in them. Turn their own rate
	// limits off.
	Client   kubernetes.Interface
	Metadata metadata.Interface
	// Namespaces is the informer of namespaces. The caller runs it.
	Namespaces coreinformers.NamespaceInformer
	// Unreadable, if not nil, returns an error that names the objects of a kind in a
	// namespace that cannot be read, and so are not deleted; nil if there are none. It is
	// asked after the objects have been listed.
	Unreadable func(ctx context.Context, k restmapping.Kind, namespace string) error
	// Off, if not nil, returns the built-in kinds that the server does not serve. A
	// namespace with objects of them is kept: they would come back with it.
	Off func() []restmapping.Kind
	// Grace is how long a namespace is kept at least; 0 is DefaultGrace.
	Grace time.Duration
}

// Controller empties namespaces. Several servers have one; only one of them runs at a time.
type Controller struct{ config Config }

// New returns a controller that does nothing until it is run.
func New(c Config) *Controller {
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	return &Controller{c}
}

// Run empties namespaces until the context ends, whose error it returns. It may be
// run again later.
func (nc *Controller) Run(ctx context.Context) error {
	q := queue.New[string]("namespace", firstPoll, lastPoll)
	informer := nc.config.Namespaces.Informer()
	add := func(obj any) {
		if ns, ok := obj.(*corev1.Namespace); ok && terminating(ns) {
			q.Add(ns.Name)
		}
	}
	handle, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, updated any) { add(updated) },
	})
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { nc.work(ctx, q) })
	}
	<-ctx.Done()
	q.ShutDown()
	running.Wait()
	return errors.Join(ctx.Err(), informer.RemoveEventHandler(handle))
}

// terminating reports whether there is something to do for a namespace.
func terminating(ns *corev1.Namespace) bool {
	return ns.DeletionTimestamp != nil && slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
}

func (nc *Controller) work(ctx context.Context, q queue.Queue[string]) {
	queue.Work(ctx, q, func(ctx context.Context, name string) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		after, err := nc.sync(ctx, name)
		if err == nil && after > 0 {
			q.AddAfter(name, after)
		}
		return err
	}, func(name string, err error) {
		if !errors.Is(err, errRemains) {
			klog.FromContext(ctx).V(2).Info("Failed to delete the contents of a namespace, retrying", "namespace", name, "reason", strings.TrimSpace(err.Error()))
		}
	})
}

// errRemains says that something is left: when to look again depends on how often it was so.
var errRemains = errors.New("the namespace is not empty yet")

// sync does what is possible for a namespace at the moment, and returns when to
// look again: 0 is never.
func (nc *Controller) sync(ctx context.Context, name string) (after time.Duration, err error) {
	ns, err := nc.config.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || !terminating(ns) {
		return 0, err
	}
	// By when the count began: what was created in the grace period it must not miss.
	early := time.Until(ns.DeletionTimestamp.Add(nc.config.Grace))
	rest, err := nc.empty(ctx, name)
	if err != nil {
		return 0, err
	}
	if err := nc.say(ctx, ns, rest); err != nil {
		return 0, ignoreGone(err)
	}
	if !rest.nothing() {
		return 0, errRemains
	}
	if early > 0 {
		return early, nil
	}
	return 0, ignoreGone(nc.release(ctx, ns))
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || errors.Is(err, errReplaced) {
		return nil
	}
	return err
}

// errReplaced is for a namespace that has gone, and another has its name.
var errReplaced = errors.New("the namespace is another one by now")

// change writes a namespace, whatever else changes about it.
func (nc *Controller) change(ctx context.Context, ns *corev1.Namespace, write func(*corev1.Namespace) error) error {
	current := ns
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if current == nil {
			var err error
			if current, err = nc.config.Client.CoreV1().Namespaces().Get(ctx, ns.Name, metav1.GetOptions{}); err != nil {
				return err
			}
			if current.UID != ns.UID {
				return errReplaced
			}
		}
		o := current.DeepCopy()
		current = nil
		return write(o)
	})
}

// say writes what is left into the status, if it does not say so already. That nothing
// is left corrects only what was said before: a client that finalizes the namespace itself,
// as tests do, must not find it changed.
func (nc *Controller) say(ctx context.Context, ns *corev1.Namespace, r *remains) error {
	return nc.change(ctx, ns, func(o *corev1.Namespace) error {
		if r.nothing() && len(o.Status.Conditions) == 0 && o.Status.Phase == corev1.NamespaceTerminating {
			return nil
		}
		changed := setConditions(&o.Status, r.conditions())
		if o.Status.Phase != corev1.NamespaceTerminating {
			o.Status.Phase, changed = corev1.NamespaceTerminating, true
		}
		if !changed {
			return nil
		}
		_, err := nc.config.Client.CoreV1().Namespaces().UpdateStatus(ctx, o, metav1.UpdateOptions{})
		return err
	})
}

// release lets a namespace go that is empty.
func (nc *Controller) release(ctx context.Context, ns *corev1.Namespace) error {
	return nc.change(ctx, ns, func(o *corev1.Namespace) error {
		before := len(o.Spec.Finalizers)
		o.Spec.Finalizers = slices.DeleteFunc(o.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
		if len(o.Spec.Finalizers) == before {
			return nil
		}
		_, err := nc.config.Client.CoreV1().Namespaces().Finalize(ctx, o, metav1.UpdateOptions{})
		return err
	})
}
