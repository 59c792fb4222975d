package store

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/storage/series"
)

// dropAfter is how long the metric series of a resource stay when its last storage is
// gone. Until then all that still writes to them has ended, and Prometheus has read the last
// values.
const dropAfter = 2 * time.Minute

// goneResources are those whose storages are gone, and whose metric series are still there.
var goneResources struct {
	sync.Mutex
	names     map[schema.GroupResource]bool
	scheduled bool
}

// gone notes that a storage of a resource is gone.
func gone(resource schema.GroupResource) {
	g := &goneResources
	g.Lock()
	defer g.Unlock()
	if g.names == nil {
		g.names = map[schema.GroupResource]bool{}
	}
	g.names[resource] = true
	if !g.scheduled {
		g.scheduled = true
		time.AfterFunc(dropAfter, dropSeries)
	}
}

// dropSeries drops the metric series of the resources without a storage. Without that they
// would grow with the names of all CRDs that were ever used. Series of resources in use,
// which the next loss of a storage brings here again, stay.
func dropSeries() {
	g := &goneResources
	g.Lock()
	names := g.names
	g.names, g.scheduled = nil, false
	g.Unlock()
	backends.Lock()
	open := maps.Clone(backends.open)
	backends.Unlock()
	for b := range open {
		b.mu.Lock()
		for s := range b.storages {
			delete(names, s.Resource)
		}
		b.mu.Unlock()
	}
	if len(names) == 0 {
		return
	}
	n, err := series.Drop(func(r schema.GroupResource) bool { return names[r] })
	if err != nil {
		klog.ErrorS(err, "Failed to drop the metric series of resources that are gone; they stay until the process ends", "resources", len(names))
		return
	}
	klog.V(2).InfoS("Dropped the metric series of resources that are gone or idle", "resources", len(names), "series", n)
}
