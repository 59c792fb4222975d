package lister

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// doubtTime is enough for the informer to hear of a write.
const doubtTime = 10 * time.Second

// Resource says how the objects of a resource are read. T is a pointer to a struct of
// k8s.io/api.
type Resource[T metav1.Object] struct {
	Informer func(informers.SharedInformerFactory) cache.SharedIndexInformer
	// List and Get read from etcd.
	List func(context.Context, kubernetes.Interface) ([]T, error)
	Get  func(ctx context.Context, client kubernetes.Interface, name string) (T, error)
}

// Lister lists the objects of a resource. The fields are set before the first question.
// Its objects must not be changed.
type Lister[T metav1.Object] struct {
	Resource Resource[T]
	Client   kubernetes.Interface
	Stop     <-chan struct{}

	start    sync.Once
	informer cache.SharedIndexInformer
	doubt    atomic.Int64 // until when the informer may be behind, in nanoseconds since 1970
}

// Validate returns an error if a field is not set.
func (l *Lister[T]) Validate() error {
	if l.Client == nil || l.Stop == nil {
		return errors.New("a client and a channel that says when to stop are missing")
	}
	return nil
}

// Doubt has the objects read from etcd for a while: one is being written.
func (l *Lister[T]) Doubt() { l.doubt.Store(time.Now().Add(doubtTime).UnixNano()) }

// All returns all objects, in no order.
func (l *Lister[T]) All(ctx context.Context) ([]T, error) {
	if l.behind() {
		return l.Resource.List(ctx, l.Client)
	}
	there := l.informer.GetStore().List()
	all := make([]T, len(there))
	for i := range there {
		all[i] = there[i].(T)
	}
	return all, nil
}

// Get returns the object of a name, or a NotFound error. Etcd is asked about an object
// that the informer does not know.
func (l *Lister[T]) Get(ctx context.Context, name string) (T, error) {
	if !l.behind() {
		if obj, ok, err := l.informer.GetStore().GetByKey(name); ok && err == nil {
			return obj.(T), nil
		}
	}
	if len(content.IsPathSegmentName(name)) > 0 {
		var none T
		return none, apierrors.NewNotFound(schema.GroupResource{}, name) // the client would refuse to ask
	}
	return l.Resource.Get(ctx, l.Client, name)
}

// behind reports whether the informer may not know what was written through this replica.
func (l *Lister[T]) behind() bool {
	l.start.Do(func() {
		l.informer = l.Resource.Informer(informers.NewSharedInformerFactory(l.Client, 0))
		go l.informer.Run(l.Stop)
	})
	return time.Now().UnixNano() < l.doubt.Load() || !l.informer.HasSynced()
}
