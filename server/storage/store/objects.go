package store

import (
	"cmp"
	"context"
	"path"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
)

const (
	// countEvery is how often objects are counted at most, and only when metrics are
	// read.
	countEvery = time.Minute
	// maxCounted bounds the series of apiserver_resource_objects, and the requests to
	// etcd of one reading.
	maxCounted = 500
	// countTime bounds how long all requests may take.
	countTime = 2 * time.Second
)

// counts remembers when objects were counted.
type counts struct {
	mu      sync.Mutex
	at      time.Time
	counted map[schema.GroupResource]bool // have a series
}

// CountObjects sets apiserver_resource_objects for the resources in use. Built-in
// resources always are; an unused CRD costs nothing. etcd counts the keys of a resource
// without reading its objects.
func (b *Backend) CountObjects(ctx context.Context) {
	b.counts.mu.Lock()
	defer b.counts.mu.Unlock()
	if time.Since(b.counts.at) < countEvery {
		return
	}
	b.counts.at = time.Now()
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	counted := map[schema.GroupResource]bool{}
	for _, s := range b.inUse() {
		below := path.Join("/", b.config.Prefix, s.ResourcePrefix) + "/"
		answer, err := b.client.KV.Get(ctx, below, clientv3.WithPrefix(), clientv3.WithCountOnly(), clientv3.WithSerializable())
		if err != nil {
			break // the former numbers stay
		}
		metrics.UpdateStoreStats(s.Resource, storage.Stats{ObjectCount: answer.Count}, nil)
		counted[s.Resource] = true
	}
	for resource := range b.counts.counted {
		if !counted[resource] {
			metrics.DeleteStoreStats(resource)
		}
	}
	b.counts.counted = counted
}

// inUse are the resources that have a storage, by name, each once.
func (b *Backend) inUse() []*Spec {
	b.mu.Lock()
	var all []*Spec
	for s := range b.storages {
		all = append(all, s)
	}
	b.mu.Unlock()
	slices.SortFunc(all, func(a, b *Spec) int {
		return cmp.Or(cmp.Compare(a.Resource.Group, b.Resource.Group), cmp.Compare(a.Resource.Resource, b.Resource.Resource))
	})
	all = slices.CompactFunc(all, func(a, b *Spec) bool { return a.Resource == b.Resource })
	return all[:min(len(all), maxCounted)]
}
