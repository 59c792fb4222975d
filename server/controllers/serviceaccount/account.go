package serviceaccount

import (
	"context"
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

// Name is what the account is called.
const Name = "default"

const (
	workers               = 4
	firstRetry, lastRetry = 50 * time.Millisecond, 30 * time.Second
)

// Run creates accounts until the context ends, whose error it returns. The informer
// is the caller's to run, and so is the one of service accounts: if it is nil, Run has one
// of its own, which keeps less.
func Run(ctx context.Context, client kubernetes.Interface, namespaces coreinformers.NamespaceInformer, accounts coreinformers.ServiceAccountInformer) error {
	q := queue.New[string]("account", firstRetry, lastRetry)
	defer q.ShutDown()
	add := func(obj any) {
		if ns, ok := obj.(*corev1.Namespace); ok && ns.DeletionTimestamp == nil {
			q.Add(ns.Name)
		}
	}
	informer := namespaces.Informer()
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
	var running sync.WaitGroup
	synced, err := watch(ctx, client, accounts, q, &running)
	if err != nil {
		return err
	}
	// The watch misses an account that is deleted before the watch begins. The controller
	// creates none until then; the loop below creates the missed ones.
	if cache.WaitForCacheSync(ctx.Done(), synced) {
		create := func(ctx context.Context, namespace string) error { return ensure(ctx, client, namespaces, namespace) }
		failed := func(namespace string, err error) {
			klog.V(2).InfoS("Failed to create the default service account, retrying", "namespace", namespace, "err", err)
		}
		for range workers {
			running.Go(func() { queue.Work(ctx, q, create, failed) })
		}
	}
	<-ctx.Done()
	q.ShutDown()
	running.Wait()
	return ctx.Err()
}

// watch queues the namespaces whose account goes, and returns whether it has begun to.
func watch(ctx context.Context, client kubernetes.Interface, accounts coreinformers.ServiceAccountInformer, q queue.Queue[string], running *sync.WaitGroup) (synced cache.InformerSynced, err error) {
	handler := cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		if gone, err := cache.DeletionHandlingObjectToName(obj); err == nil && gone.Name == Name {
			q.Add(gone.Namespace)
		}
	}}
	if accounts != nil {
		registration, err := accounts.Informer().AddEventHandler(handler)
		if err != nil {
			return nil, err
		}
		running.Go(func() {
			<-ctx.Done()
			_ = accounts.Informer().RemoveEventHandler(registration) // fails only for one that it did not give
		})
		return registration.HasSynced, nil
	}
	named := cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "serviceaccounts", metav1.NamespaceAll,
		func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", Name).String()
		})
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: named, ObjectType: &corev1.ServiceAccount{},
		// Nothing is looked up: what is kept of an account is where it is.
		Transform: func(obj any) (any, error) {
			if a, ok := obj.(*corev1.ServiceAccount); ok {
				return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name, ResourceVersion: a.ResourceVersion}}, nil
			}
			return obj, nil
		},
		Handler: handler,
	})
	running.Go(func() { controller.RunWithContext(ctx) })
	return controller.HasSynced, nil
}

// ensure creates the account of a namespace that is there to stay.
func ensure(ctx context.Context, client kubernetes.Interface, namespaces coreinformers.NamespaceInformer, namespace string) error {
	// The lister has no error but that there is none.
	if ns, err := namespaces.Lister().Get(namespace); err != nil || ns.DeletionTimestamp != nil {
		return nil
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: namespace}}
	_, err := client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	}
	return err
}
