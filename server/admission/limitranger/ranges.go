package limitranger

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const (
	// doubted is how many namespaces are in doubt at most. A request in one more may have
	// to be sent again.
	doubted = 1000
	// doubtTime is enough for the informer to hear of a write.
	doubtTime = 10 * time.Second
)

// ranges are the LimitRanges of all namespaces, as an informer knows them.
type ranges struct {
	client   kubernetes.Interface
	stop     <-chan struct{}
	start    sync.Once
	informer cache.SharedIndexInformer
	// changing are the namespaces where the informer may be behind.
	changing *utilcache.LRUExpireCache
}

func newRanges() *ranges { return &ranges{changing: utilcache.NewLRUExpireCache(doubted)} }

// doubt has the LimitRanges of a namespace read from etcd for a while: they are being
// written.
func (r *ranges) doubt(namespace string) { r.changing.Add(namespace, nil, doubtTime) }

// in returns the LimitRanges of a namespace in the order of their names, and the revision
// up to which they are known.
func (r *ranges) in(ctx context.Context, namespace string) (known []*corev1.LimitRange, revision int64, err error) {
	r.start.Do(func() {
		r.informer = informers.NewSharedInformerFactory(r.client, 0).Core().V1().LimitRanges().Informer()
		go r.informer.Run(r.stop)
	})
	if _, doubtful := r.changing.Get(namespace); doubtful || !r.informer.HasSynced() {
		return r.list(ctx, namespace)
	}
	there, err := r.informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil || len(there) == 0 {
		return nil, 0, err
	}
	for _, obj := range there {
		one := obj.(*corev1.LimitRange)
		at, err := storage.APIObjectVersioner{}.ObjectResourceVersion(one)
		if err != nil {
			return nil, 0, err
		}
		known, revision = append(known, one), max(revision, int64(at))
	}
	slices.SortFunc(known, func(a, b *corev1.LimitRange) int { return cmp.Compare(a.Name, b.Name) })
	return known, revision, nil
}

// list reads the LimitRanges of a namespace from etcd.
func (r *ranges) list(ctx context.Context, namespace string) (all []*corev1.LimitRange, revision int64, err error) {
	list, err := r.client.CoreV1().LimitRanges(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, 0, err
	}
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	revision, err = strconv.ParseInt(list.ResourceVersion, 10, 64)
	return all, revision, err
}
