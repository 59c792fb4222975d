package migration

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	objects = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "espalier", Subsystem: "migration", Name: "objects_total",
		Help:           "Objects that storage version migrations are done with: migrated, skipped (nothing to do), quarantined (cannot be read or converted), restored (by undo), left (by undo, because they have changed since)",
		StabilityLevel: metrics.ALPHA,
	}, []string{"result"})
	remaining = metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "espalier", Subsystem: "migration", Name: "remaining_objects",
		Help:           "Objects that the running storage version migration has still to read",
		StabilityLevel: metrics.ALPHA,
	})
	rate = metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "espalier", Subsystem: "migration", Name: "objects_per_second",
		Help:           "Objects that the running storage version migration is done with per second",
		StabilityLevel: metrics.ALPHA,
	})
	failures = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: "espalier", Subsystem: "migration", Name: "failures_total",
		Help:           "Attempts of storage version migrations that failed and are going to be repeated",
		StabilityLevel: metrics.ALPHA,
	})
)

var register = sync.OnceFunc(func() {
	legacyregistry.MustRegister(objects, remaining, rate, failures)
})
