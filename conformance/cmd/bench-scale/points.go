package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/espalier-dev/espalier/conformance/results"
	"github.com/espalier-dev/espalier/conformance/wire"
)

// crowd is how many tenants a point has.
const crowd = 30

// points measures writes with replicas and etcds.
func points(ctx context.Context) error {
	fmt.Printf("%-22s %10s %14s %14s %14s\n", "", "creates/s", "server CPU", "etcd CPU", "client CPU")
	for _, at := range [][2]int{{1, 1}, {2, 1}, {3, 1}, {1, 3}, {3, 3}} {
		if err := point(ctx, at[0], at[1]); err != nil {
			return fmt.Errorf("%d replicas and %d etcds: %w", at[0], at[1], err)
		}
	}
	return nil
}

func point(ctx context.Context, replicas, etcds int) error {
	s, err := start(ctx, replicas, etcds)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.make(ctx, crowd); err != nil {
		return err
	}
	if _, err := s.each(ctx, crowd*workers, func(ctx context.Context, conn *wire.Conn, n int) error { return s.create(ctx, conn, n%crowd) }); err != nil { // all planes are there then
		return err
	}
	before, err := s.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	times, err := wire.Repeat(ctx, *seconds, workers, func(ctx context.Context, w int) error { return s.create(ctx, s.conns[w], rand.IntN(crowd)) })
	if err != nil {
		return err
	}
	took := time.Since(began)
	after, err := s.cpu()
	if err != nil {
		return err
	}
	var each [3]time.Duration
	for i := range each {
		each[i] = (after[i] - before[i]) / time.Duration(len(times))
	}
	rate := float64(len(times)) / took.Seconds()
	at := fmt.Sprintf("%d replicas %d etcds", replicas, etcds)
	fmt.Printf("%-22s %10.0f %14v %14v %14v\n", at, rate, each[0], each[1], each[2])
	figures.Set(at+".rate", "%s", results.Rate(rate))
	figures.Set(at+".server", "%s", results.Time(each[0]))
	figures.Set(at+".etcd", "%s", results.Time(each[1]))
	figures.Set(at+".client", "%s", results.Time(each[2]))
	return nil
}
