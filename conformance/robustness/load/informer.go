package load

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness/environment"
	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// An informer is client-go's, on the things of a namespace at one replica.
type informer struct {
	replica int
	shared  cache.SharedIndexInformer
}

func newInformer(r *environment.Replica, namespace string) (*informer, error) {
	client, err := dynamic.NewForConfig(r.Config())
	if err != nil {
		return nil, err
	}
	resource := schema.GroupVersionResource{Group: Group, Version: "v1", Resource: Things}
	shared := dynamicinformer.NewFilteredDynamicInformer(client, resource, namespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {}).Informer()
	// What it says about each broken connection is not of interest: it has to have everything in the end.
	if err := shared.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return nil, err
	}
	return &informer{replica: r.ID, shared: shared}, nil
}

func (i *informer) run(ctx context.Context, all *sync.WaitGroup) {
	all.Go(func() { i.shared.RunWithContext(ctx) })
}

// has reports whether a key is in the cache.
func (i *informer) has(key string) bool {
	_, ok, err := i.shared.GetStore().GetByKey(key)
	return ok && err == nil
}

// items is the cache.
func (i *informer) items() []history.Item {
	out := []history.Item{}
	for _, o := range i.shared.GetStore().List() {
		data, err := json.Marshal(o.(*unstructured.Unstructured).Object)
		if err != nil {
			continue
		}
		if it, err := ItemOf(Things, data); err == nil {
			out = append(out, it)
		}
	}
	return out
}

// caches records what informers hold at rest: each gets time to become what etcd is, since the garbage collector may still be at work.
func (r *run) caches(ctx context.Context, informers []*informer) error {
	for _, i := range informers {
		c := history.Cache{Client: informerID + i.replica, Replica: i.replica}
		for end := time.Now().Add(calm); ; launch.Pause(ctx, 10*time.Millisecond) {
			truth, revision, err := r.truth(ctx)
			if err != nil {
				return err
			}
			c.Items, c.At, c.Revision = i.items(), r.rec.now(), revision
			if matches(c.Items, truth) || time.Now().After(end) {
				break
			}
		}
		r.rec.with(func(h *history.History) { h.Caches = append(h.Caches, c) })
	}
	return nil
}

// truth is the revision of each of the run's things in etcd, and etcd's own.
func (r *run) truth(ctx context.Context) (map[string]int64, int64, error) {
	prefix := groupPrefix + Things + "/"
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	resp, err := r.site.Environment.Etcd.Get(ctx, prefix+r.ns+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, 0, err
	}
	truth := map[string]int64{}
	for _, kv := range resp.Kvs {
		truth[strings.TrimPrefix(string(kv.Key), prefix)] = kv.ModRevision
	}
	return truth, resp.Header.Revision, nil
}

func matches(items []history.Item, truth map[string]int64) bool {
	for _, it := range items {
		if truth[it.Name] != it.Revision {
			return false
		}
	}
	return len(items) == len(truth)
}

// informerID is the number of the first informer among clients.
const informerID = 300
