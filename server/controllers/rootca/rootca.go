package rootca

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/controllers/queue"
)

const (
	// Name is that of the ConfigMaps.
	Name = "kube-root-ca.crt"
	// Key is that of the certificates in a ConfigMap.
	Key = "ca.crt"

	descriptionKey = "kubernetes.io/description"
	description    = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. " +
		"No other usage is guaranteed across distributions of Kubernetes clusters."
)

const (
	workers               = 4
	firstRetry, lastRetry = 50 * time.Millisecond, 30 * time.Second
)

// controller publishes one bundle.
type controller struct {
	client     kubernetes.Interface
	namespaces coreinformers.NamespaceInformer
	ca         string
	queue      queue.Queue[string]
	known      cache.Store // of what is known about the ConfigMaps
}

// seen is what is kept of a ConfigMap.
type seen struct {
	metav1.ObjectMeta
	right bool
}

// Run publishes the certificates until the context ends, whose error it returns. The
// informer is the caller's to run.
func Run(ctx context.Context, client kubernetes.Interface, namespaces coreinformers.NamespaceInformer, read func() ([]byte, error)) error {
	ca, err := read()
	if err != nil {
		return fmt.Errorf("reading the CA of the server: %w", err)
	}
	c := &controller{client: client, namespaces: namespaces, ca: string(ca), queue: queue.New[string]("root-ca", firstRetry, lastRetry)}
	defer c.queue.ShutDown()
	informer := namespaces.Informer()
	add := func(obj any) {
		if ns, ok := obj.(*corev1.Namespace); ok && ns.DeletionTimestamp == nil {
			c.queue.Add(ns.Name)
		}
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add,
		// The informer reports deletion and recreation during a lost watch as an update.
		UpdateFunc: func(old, obj any) {
			if before, ok := old.(*corev1.Namespace); ok && before.UID != obj.(*corev1.Namespace).UID {
				add(obj)
			}
		},
	})
	if err != nil {
		return err
	}
	defer func() { _ = informer.RemoveEventHandler(registration) }() // fails only for one that it did not give
	var watching cache.Controller
	c.known, watching = c.watch()
	var running sync.WaitGroup
	running.Go(func() { watching.RunWithContext(ctx) })
	if cache.WaitForCacheSync(ctx.Done(), watching.HasSynced) {
		failed := func(namespace string, err error) {
			klog.V(2).InfoS("Failed to publish the CA of the server, retrying", "namespace", namespace, "err", err)
		}
		for range workers {
			running.Go(func() { queue.Work(ctx, c.queue, c.publish, failed) })
		}
	}
	<-ctx.Done()
	c.queue.ShutDown()
	running.Wait()
	return ctx.Err()
}

// watch returns what queues the namespaces whose ConfigMap goes or is wrong.
func (c *controller) watch() (cache.Store, cache.Controller) {
	named := cache.NewFilteredListWatchFromClient(c.client.CoreV1().RESTClient(), "configmaps", metav1.NamespaceAll,
		func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", Name).String()
		})
	check := func(obj any) {
		if s, ok := obj.(*seen); ok && !s.right {
			c.queue.Add(s.Namespace)
		}
	}
	return cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: named, ObjectType: &corev1.ConfigMap{},
		Transform: func(obj any) (any, error) {
			if m, ok := obj.(*corev1.ConfigMap); ok {
				return &seen{metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, ResourceVersion: m.ResourceVersion}, c.right(m)}, nil
			}
			return obj, nil
		},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    check,
			UpdateFunc: func(_, obj any) { check(obj) },
			DeleteFunc: func(obj any) {
				if gone, err := cache.DeletionHandlingObjectToName(obj); err == nil {
					c.queue.Add(gone.Namespace)
				}
			},
		},
	})
}

// right reports whether a ConfigMap has what it should have, and nothing else. As in
// Kubernetes, another description stays.
func (c *controller) right(m *corev1.ConfigMap) bool {
	return maps.Equal(m.Data, c.data()) && len(m.BinaryData) == 0 && m.Annotations[descriptionKey] != ""
}

func (c *controller) data() map[string]string { return map[string]string{Key: c.ca} }

// publish writes the ConfigMap of a namespace that is there to stay.
func (c *controller) publish(ctx context.Context, namespace string) error {
	// The lister has no error but that there is none.
	if ns, err := c.namespaces.Lister().Get(namespace); err != nil || ns.DeletionTimestamp != nil {
		return nil
	}
	known, exists, err := c.known.GetByKey(namespace + "/" + Name)
	if err != nil {
		return err
	}
	if s, ok := known.(*seen); ok && s.right {
		return nil
	}
	if exists {
		err = c.repair(ctx, namespace)
	} else {
		_, err = c.client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: namespace, Annotations: map[string]string{descriptionKey: description}},
			Data:       c.data(),
		}, metav1.CreateOptions{})
	}
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // the watch says what follows
	}
	return err
}

// repair gives an existing ConfigMap its content.
func (c *controller) repair(ctx context.Context, namespace string) error {
	m, err := c.client.CoreV1().ConfigMaps(namespace).Get(ctx, Name, metav1.GetOptions{})
	if err != nil || c.right(m) {
		return err
	}
	m.Data, m.BinaryData = c.data(), nil
	if m.Annotations[descriptionKey] == "" {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, descriptionKey, description)
	}
	_, err = c.client.CoreV1().ConfigMaps(namespace).Update(ctx, m, metav1.UpdateOptions{})
	return err
}
