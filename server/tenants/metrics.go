package tenants

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	movesTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "espalier_tenant_moves_total", StabilityLevel: metrics.ALPHA,
		Help: "Attempts of this replica to move a tenant to another etcd, by their result: moved or failed.",
	}, []string{"result"})
	pauseSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Name: "espalier_tenant_move_pause_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "For how long a tenant took no writes when it was moved to another etcd.",
		Buckets: []float64{0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 5},
	})
)

func init() { legacyregistry.MustRegister(movesTotal, pauseSeconds) }
