package store

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	etcdmetrics "k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// backends are the open ones of the process: nearly always one.
var backends struct {
	sync.Mutex
	open map[*Backend]struct{}
}

var watchesEnded = metrics.NewCounterVec(&metrics.CounterOpts{
	Namespace: "espalier", Subsystem: "watch", Name: "ended_total",
	Help:           "Watches ended because their client reads too slowly, by reason: behind (one watch over --max-watch-behind), memory (all watches over --max-watch-behind-sum)",
	StabilityLevel: metrics.ALPHA,
}, []string{"reason"})

// lagCollector finds out how far watchers are behind, what cannot be read, and how the members of etcd
// are, when it is asked.
type lagCollector struct{ metrics.BaseStableCollector }

func lagDesc(name, help string) *metrics.Desc {
	return metrics.NewDesc("espalier_watch_"+name, help, nil, nil, metrics.ALPHA, "")
}

var (
	behindBytes     = lagDesc("behind_bytes", "Bytes of events that watchers have not taken yet; events that watchers of a resource share count once")
	behindMaxBytes  = lagDesc("behind_max_bytes", "Bytes of events that the watcher furthest behind has not taken yet")
	behindEvents    = lagDesc("behind_events", "Events that watchers have not taken yet, counted for each of them")
	behindMaxEvents = lagDesc("behind_max_events", "Events that the watcher furthest behind has not taken yet")

	unreadableObjects = metrics.NewDesc("espalier_storage_unreadable_objects",
		"Objects in etcd that could not be read when this process last read them; see espalier_storage_unreadable_overflow",
		[]string{"group", "resource"}, nil, metrics.ALPHA, "")
	unreadableOverflow = metrics.NewDesc("espalier_storage_unreadable_overflow",
		"1 if more objects cannot be read than espalier_storage_unreadable_objects counts, 0 otherwise", nil, nil, metrics.ALPHA, "")
)

// DescribeWithStability implements metrics.StableCollector.
func (*lagCollector) DescribeWithStability(ch chan<- *metrics.Desc) {
	ch <- behindBytes
	ch <- behindMaxBytes
	ch <- behindEvents
	ch <- behindMaxEvents
	ch <- unreadableObjects
	ch <- unreadableOverflow
	for _, d := range memberDescs {
		ch <- d
	}
}

// CollectWithStability implements metrics.StableCollector.
func (*lagCollector) CollectWithStability(ch chan<- metrics.Metric) {
	l := processLag()
	ch <- metrics.NewLazyConstMetric(behindBytes, metrics.GaugeValue, float64(l.bytes))
	ch <- metrics.NewLazyConstMetric(behindMaxBytes, metrics.GaugeValue, float64(l.maxBytes))
	ch <- metrics.NewLazyConstMetric(behindEvents, metrics.GaugeValue, float64(l.events))
	ch <- metrics.NewLazyConstMetric(behindMaxEvents, metrics.GaugeValue, float64(l.maxEvents))
	counts, overflow := unreadableCounts()
	for resource, n := range counts {
		ch <- metrics.NewLazyConstMetric(unreadableObjects, metrics.GaugeValue, float64(n), resource.Group, resource.Resource)
	}
	ch <- metrics.NewLazyConstMetric(unreadableOverflow, metrics.GaugeValue, overflow)
	collectMembers(ch)
}

// unreadableCounts are those of all backends. overflow is 1 if one of them has more.
func unreadableCounts() (sum map[schema.GroupResource]int, overflow float64) {
	backends.Lock()
	defer backends.Unlock()
	sum = map[schema.GroupResource]int{}
	for b := range backends.open {
		for resource, n := range b.unreadable.counts() {
			sum[resource] += n
		}
		if b.unreadable.overflowed() {
			overflow = 1
		}
	}
	return sum, overflow
}

var registerMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(watchesEnded)
	legacyregistry.CustomMustRegister(&lagCollector{})
	for _, reason := range []string{"behind", "memory"} {
		watchesEnded.WithLabelValues(reason).Add(0)
	}
})

// opened and closed make a backend part of the metrics, and no longer.
func opened(b *Backend) {
	registerMetrics()
	backends.Lock()
	defer backends.Unlock()
	if backends.open == nil {
		backends.open = map[*Backend]struct{}{}
	}
	backends.open[b] = struct{}{}
	etcdmetrics.SetStorageMonitorGetter(monitors)
}

func closed(b *Backend) {
	backends.Lock()
	defer backends.Unlock()
	delete(backends.open, b)
}

// monitors report the size of etcd. The metric numbers etcds in the order of this list and waits
// for each: backends that are opened and closed beside another one are not in it.
func monitors() (all []etcdmetrics.Monitor, _ error) {
	backends.Lock()
	defer backends.Unlock()
	for b := range backends.open {
		if b.config.Beside == nil {
			all = append(all, monitor{b})
		}
	}
	return all, nil
}

// processLag is how far the watchers of all backends are behind.
func processLag() (sum lag) {
	backends.Lock()
	defer backends.Unlock()
	counted := map[*limits]bool{}
	for b := range backends.open {
		if counted[b.limits] {
			continue // backends that are beside each other share it
		}
		counted[b.limits] = true
		one := b.limits.lag()
		sum.bytes += one.bytes
		sum.events += one.events
		sum.maxBytes = max(sum.maxBytes, one.maxBytes)
		sum.maxEvents = max(sum.maxEvents, one.maxEvents)
	}
	return sum
}
