package espaliertest_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

var webs = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "webs"}

// A controller gives every Web a page, which is a config map, an entry in the
// sitemap, and a port that no other Web has.
type controller struct {
	dynamic dynamic.Interface
	typed   kubernetes.Interface
	cached  cache.GenericLister
	queue   workqueue.TypedRateLimitingInterface[cache.ObjectName]

	createPage func(ctx context.Context, web *unstructured.Unstructured) error
	enlist     func(ctx context.Context, web *unstructured.Unstructured) error
	list       func(ctx context.Context) ([]*unstructured.Unstructured, error) // all Webs
}

func newController(config *rest.Config) *controller {
	c := &controller{dynamic: dynamic.NewForConfigOrDie(config), typed: kubernetes.NewForConfigOrDie(config)}
	c.createPage, c.enlist, c.list = c.createNamed, c.enlistOrFail, c.listOnServer
	return c
}

// run runs the controller until the context ends.
func (c *controller) run(ctx context.Context) {
	c.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	factory := dynamicinformer.NewDynamicSharedInformerFactory(c.dynamic, 0)
	informer := factory.ForResource(webs)
	c.cached = informer.Lister()
	enqueue := func(object any) {
		if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
			c.queue.Add(key)
		}
	}
	_, _ = informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) }, DeleteFunc: enqueue,
	})
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	context.AfterFunc(ctx, c.queue.ShutDown)
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			break
		}
		if err := c.reconcile(ctx, key); err != nil {
			c.queue.AddRateLimited(key)
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
	factory.Shutdown()
}

func (c *controller) reconcile(ctx context.Context, key cache.ObjectName) error {
	object, err := c.cached.ByNamespace(key.Namespace).Get(key.Name)
	if err != nil {
		return ignore(apierrors.IsNotFound, err)
	}
	web := object.(*unstructured.Unstructured).DeepCopy()
	if portOf(web) != 0 {
		return nil
	}
	if err := c.createPage(ctx, web); err != nil {
		return err
	}
	if err := c.enlist(ctx, web); err != nil {
		return err
	}
	all, err := c.list(ctx)
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(web.Object, freePort(all), "status", "port"); err != nil {
		return err
	}
	_, err = c.dynamic.Resource(webs).Namespace(key.Namespace).UpdateStatus(ctx, web, metav1.UpdateOptions{})
	return err
}

// freePort returns the first port that no Web has.
func freePort(all []*unstructured.Unstructured) int64 {
	taken := map[int64]bool{}
	for _, web := range all {
		taken[portOf(web)] = true
	}
	port := int64(8000)
	for taken[port] {
		port++
	}
	return port
}

func portOf(web *unstructured.Unstructured) int64 {
	port, _, _ := unstructured.NestedInt64(web.Object, "status", "port")
	return port
}

// ignore takes errors of a kind for success.
func ignore(is func(error) bool, err error) error {
	if is(err) {
		return nil
	}
	return err
}

// listFromCache is wrong: the cache does not have the port of a moment ago.
func (c *controller) listFromCache(context.Context) ([]*unstructured.Unstructured, error) {
	objects, err := c.cached.List(labels.Everything())
	var all []*unstructured.Unstructured
	for _, object := range objects {
		all = append(all, object.(*unstructured.Unstructured))
	}
	return all, err
}

// listOnServer asks the server, whose answer is never older than the question.
func (c *controller) listOnServer(ctx context.Context) ([]*unstructured.Unstructured, error) {
	list, err := c.dynamic.Resource(webs).List(ctx, metav1.ListOptions{})
	var all []*unstructured.Unstructured
	if err == nil {
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	}
	return all, err
}

// createGenerated is wrong: a second run creates a second page.
func (c *controller) createGenerated(ctx context.Context, web *unstructured.Unstructured) error {
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: web.GetName() + "-", Labels: map[string]string{"web": web.GetName()}}}
	_, err := c.typed.CoreV1().ConfigMaps(web.GetNamespace()).Create(ctx, page, metav1.CreateOptions{})
	return err
}

// createNamed can be done twice: the second time the page is there.
func (c *controller) createNamed(ctx context.Context, web *unstructured.Unstructured) error {
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: web.GetName(), Labels: map[string]string{"web": web.GetName()}}}
	_, err := c.typed.CoreV1().ConfigMaps(web.GetNamespace()).Create(ctx, page, metav1.CreateOptions{})
	return ignore(apierrors.IsAlreadyExists, err)
}

// enlistOnce is wrong: it never writes the entry later.
func (c *controller) enlistOnce(ctx context.Context, web *unstructured.Unstructured) error {
	return ignore(apierrors.IsConflict, c.enlistOrFail(ctx, web))
}

// enlistOrFail fails if another client has written the sitemap meanwhile. The controller
// tries again then, as after every error.
func (c *controller) enlistOrFail(ctx context.Context, web *unstructured.Unstructured) error {
	maps := c.typed.CoreV1().ConfigMaps(web.GetNamespace())
	sitemap, err := maps.Get(ctx, "sitemap", metav1.GetOptions{})
	if err != nil || sitemap.Data[web.GetName()] != "" {
		return err
	}
	if sitemap.Data == nil {
		sitemap.Data = map[string]string{}
	}
	sitemap.Data[web.GetName()] = "https://" + web.GetName() + ".example.com"
	_, err = maps.Update(ctx, sitemap, metav1.UpdateOptions{})
	return err
}
