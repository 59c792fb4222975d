package limit

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	connectionsOpen = metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "espalier", Subsystem: "connections", Name: "open",
		Help:           "Connections of clients",
		StabilityLevel: metrics.ALPHA,
	})
	connectionsRefused = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "espalier", Subsystem: "connections", Name: "refused_total",
		Help:           "Connections closed at once, by the limit: address (--max-connections-per-address), total (--max-connections)",
		StabilityLevel: metrics.ALPHA,
	}, []string{"limit"})
	answersEnded = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "espalier", Subsystem: "writes", Name: "ended_total",
		Help:           "Answers ended because the client did not read for --client-write-timeout, by what was blocked: connection, stream",
		StabilityLevel: metrics.ALPHA,
	}, []string{"blocked"})
	watchesRefused = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: "espalier", Subsystem: "watch", Name: "refused_total",
		Help:           "Watches refused because their user has --max-watches-per-user open",
		StabilityLevel: metrics.ALPHA,
	})
)

var register = sync.OnceFunc(func() {
	legacyregistry.MustRegister(connectionsOpen, connectionsRefused, answersEnded, watchesRefused)
	for _, limit := range []string{byAddress, inAll} {
		connectionsRefused.WithLabelValues(limit).Add(0)
	}
	for _, blocked := range []string{"connection", "stream"} {
		answersEnded.WithLabelValues(blocked).Add(0)
	}
})
