package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/conformance/results"
	"github.com/espalier-dev/espalier/conformance/wire"
)

// watchSteps are how many watches of one resource there are.
var watchSteps = []int{1, 100, 500, 2000}

const (
	perConn    = 100
	definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	parcels    = "/apis/bench.espalier.dev/v1/namespaces/default/parcels"
	crd        = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"parcels.bench.espalier.dev"},
"spec":{"group":"bench.espalier.dev","scope":"Namespaced","names":{"plural":"parcels","singular":"parcel","kind":"Parcel","listKind":"ParcelList"},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"weight":{"type":"integer"}}}}}}}]}}`
)

// watches measures watches that wait for events.
func watches(ctx context.Context) error {
	s, err := start(ctx, 1, 0)
	if err != nil {
		return err
	}
	defer s.stop()
	conn := s.conns[0]
	if _, err := conn.Expect(ctx, http.StatusCreated, http.MethodPost, definition, []byte(crd)); err != nil {
		return err
	}
	if err := conn.Until(ctx, time.Minute, http.StatusOK, http.MethodGet, parcels, nil); err != nil {
		return err
	}
	var open sync.WaitGroup
	defer open.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	var first state
	there := 0
	for i, n := range watchSteps {
		conns, err := wire.DialAll(s.servers[0].Config, (n-there+perConn-1)/perConn)
		if err != nil {
			return err
		}
		for _, conn := range conns {
			defer conn.Close()
		}
		ready := make(chan error, 2*(n-there))
		for k := range n - there {
			open.Go(func() {
				ready <- conns[k/perConn].Watch(ctx, parcels+"?watch=true", func() { ready <- nil }, func([]byte) bool { return false })
			})
		}
		for range n - there {
			if err := <-ready; err != nil {
				return err
			}
		}
		there = n
		now, err := s.state(ctx)
		if err != nil {
			return err
		}
		if i == 0 {
			first = now
		}
		fmt.Printf("%4d watches: %4d MB resident, %4d MB of heap, %6d goroutines\n", n, now.resident/1e6, now.heap/1e6, now.goroutines)
		figures.Set(fmt.Sprintf("%d watches.resident", n), "%d MB", now.resident/1e6)
		figures.Set(fmt.Sprintf("%d watches.heap", n), "%d MB", now.heap/1e6)
		figures.Set(fmt.Sprintf("%d watches.goroutines", n), "%s", results.Count(int(now.goroutines)))
		if i == len(watchSteps)-1 {
			more := float64(n - watchSteps[0])
			figures.Set("watch.resident", "%.0f KB", float64(now.resident-first.resident)/more/1e3)
			figures.Set("watch.heap", "%.0f KB", float64(now.heap-first.heap)/more/1e3)
			figures.Set("watch.goroutines", "%.1f", float64(now.goroutines-first.goroutines)/more)
		}
	}
	return nil
}
