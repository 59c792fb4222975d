package series

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// vector is a metric of k8s.io/component-base with labels.
type vector interface {
	Delete(labels map[string]string) bool
}

var (
	_ vector = (*metrics.CounterVec)(nil)
	_ vector = (*metrics.GaugeVec)(nil)
	_ vector = (*metrics.HistogramVec)(nil)
)

// Drop deletes the series of the resources that gone returns true for. It goes through all series
// once, and returns how many it has deleted. What writes to a series while it is dropped
// is lost.
func Drop(gone func(schema.GroupResource) bool) (dropped int, err error) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil && len(families) == 0 {
		return 0, fmt.Errorf("failed to read the metrics: %w", err)
	}
	for _, f := range families {
		var v vector
		for _, m := range f.GetMetric() {
			labels, resource := labelsOf(m)
			if resource.Resource == "" || !gone(resource) {
				continue
			}
			if v == nil {
				if v = registered(f, m); v == nil {
					break // its collector computes it, and knows what there is
				}
			}
			if v.Delete(labels) {
				dropped++
			}
		}
	}
	return dropped, nil
}

// labelsOf returns the labels of a series, and the resource that it is of, if it is of one. Some
// metrics have the group in a label of its own, and some after the resource.
func labelsOf(m *dto.Metric) (labels map[string]string, resource schema.GroupResource) {
	grouped := false
	for _, l := range m.GetLabel() {
		switch l.GetName() {
		case "group":
			resource.Group, grouped = l.GetValue(), true
		case "resource":
			resource.Resource = l.GetValue()
		}
	}
	if resource.Resource == "" {
		return nil, resource
	}
	if !grouped {
		resource = schema.ParseGroupResource(resource.Resource)
	}
	labels = make(map[string]string, len(m.GetLabel()))
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels, resource
}

// description is a collector that is never registered: there is one with its description.
type description struct{ *prometheus.Desc }

// Describe implements prometheus.Collector.
func (d description) Describe(c chan<- *prometheus.Desc) { c <- d.Desc }

// Collect implements prometheus.Collector.
func (description) Collect(chan<- prometheus.Metric) {}

// registered returns the vector that a family comes from, nil if it comes from something else.
func registered(f *dto.MetricFamily, m *dto.Metric) vector {
	names := make([]string, len(m.GetLabel()))
	for i, l := range m.GetLabel() {
		names[i] = l.GetName()
	}
	again := description{prometheus.NewDesc(f.GetName(), f.GetHelp(), names, nil)}
	err := legacyregistry.Registerer().Register(again)
	if err == nil {
		legacyregistry.Registerer().Unregister(again)
		return nil
	}
	var taken prometheus.AlreadyRegisteredError
	if !errors.As(err, &taken) {
		return nil
	}
	v, _ := taken.ExistingCollector.(vector)
	return v
}
