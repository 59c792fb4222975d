package converter

import (
	"context"
	"strconv"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
)

// The metrics have the names, labels and buckets of Kubernetes API servers:
// dashboards and alerts exist for them.
var (
	requests = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace:      "apiserver",
		Name:           "conversion_webhook_request_total",
		Help:           "Counter for conversion webhook requests with success/failure and failure error type",
		StabilityLevel: metrics.ALPHA,
	}, []string{"result", "failure_type"})
	latencies = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Namespace:      "apiserver",
		Name:           "conversion_webhook_duration_seconds",
		Help:           "Conversion webhook request latency",
		Buckets:        []float64{0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60},
		StabilityLevel: metrics.ALPHA,
	}, []string{"result", "failure_type"})
	durations = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name:           "apiserver_crd_conversion_webhook_duration_seconds",
		Help:           "CRD webhook conversion duration in seconds",
		Buckets:        metrics.ExponentialBuckets(0.001, 2, 15),
		StabilityLevel: metrics.ALPHA,
	}, []string{"crd_name", "from_version", "to_version", "succeeded"})
)

// register shows the metrics, unless the process has those of a Kubernetes API
// server under the same names.
var register = sync.OnceFunc(func() {
	for _, m := range []metrics.Registerable{requests, latencies, durations} {
		if err := legacyregistry.Register(m); err != nil {
			klog.V(4).InfoS("A metric of conversion is registered elsewhere", "err", err)
		}
	}
})

// failure says what kind of a failure it is, in the words of the metric.
type failure string

const (
	callFailed        failure = "conversion_webhook_call_failure"
	malformedResponse failure = "conversion_webhook_malformed_response_failure"
	partialResponse   failure = "conversion_webhook_partial_response_failure"
	invalidObject     failure = "conversion_webhook_invalid_converted_object_failure"
)

// observe counts a call; f is empty if it has succeeded.
func observe(ctx context.Context, definition, from, to string, took time.Duration, f failure) {
	result := "success"
	if f != "" {
		result = "failure"
	}
	requests.WithContext(ctx).WithLabelValues(result, string(f)).Inc()
	latencies.WithContext(ctx).WithLabelValues(result, string(f)).Observe(took.Seconds())
	durations.WithContext(ctx).WithLabelValues(definition, from, to, strconv.FormatBool(f == "")).Observe(took.Seconds())
}
