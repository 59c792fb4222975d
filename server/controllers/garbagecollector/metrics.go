package garbagecollector

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/workqueue" // depth, age and retries of the queues
)

var (
	objects = metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "espalier", Subsystem: "garbage", Name: "graph_objects",
		Help:           "Objects that have owners, or wait for their dependents, in the replica that collects",
		StabilityLevel: metrics.ALPHA,
	})
	actions = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "espalier", Subsystem: "garbage", Name: "actions_total",
		Help:           "What has been done to objects because of their owners or dependents: deleted, orphaned, released (a finalizer removed), disowned (references removed that lead nowhere), unblocked (in a cycle)",
		StabilityLevel: metrics.ALPHA,
	}, []string{"action"})
	failures = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: "espalier", Subsystem: "garbage", Name: "failures_total",
		Help:           "Attempts that failed and are going to be repeated",
		StabilityLevel: metrics.ALPHA,
	})
	unread = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: "espalier", Subsystem: "garbage", Name: "unread_values_total",
		Help:           "Values in etcd that are no object, or could not be decrypted or read",
		StabilityLevel: metrics.ALPHA,
	})
)

var register = sync.OnceFunc(func() {
	legacyregistry.MustRegister(objects, actions, failures, unread)
})
