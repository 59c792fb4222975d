package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

// A sample is what one side did in one slice of time.
type sample struct {
	ops       int
	took, cpu time.Duration
	latencies []time.Duration
}

// A figure joins the samples of one side and one operation.
type figure struct{ samples []sample }

// rate is the median of the slices' operations per second.
func (f *figure) rate() float64 {
	var rates []float64
	for _, s := range f.samples {
		rates = append(rates, float64(s.ops)/s.took.Seconds())
	}
	return median(rates)
}

// cpu is the server's CPU time per operation, over all slices.
func (f *figure) cpu() time.Duration {
	var cpu time.Duration
	ops := 0
	for _, s := range f.samples {
		cpu += s.cpu
		ops += s.ops
	}
	return cpu / time.Duration(max(ops, 1))
}

// quantile is taken over all operations of all slices.
func (f *figure) quantile(q float64) time.Duration {
	var all []time.Duration
	for _, s := range f.samples {
		all = append(all, s.latencies...)
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(q*float64(len(all))))]
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	if n := len(values); n%2 == 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
	return values[len(values)/2]
}

// slice runs an operation with several workers for a time.
func slice(ctx context.Context, d time.Duration, workers, pid int, operation func(ctx context.Context, worker int) error) (sample, error) {
	before, err := launch.CPU(pid)
	if err != nil {
		return sample{}, err
	}
	began := time.Now()
	latencies, failed := wire.Repeat(ctx, d, workers, operation)
	s := sample{ops: len(latencies), took: time.Since(began), latencies: latencies}
	after, err := launch.CPU(pid)
	s.cpu = after - before
	return s, errors.Join(failed, err)
}
