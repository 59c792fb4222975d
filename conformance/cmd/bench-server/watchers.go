package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/conformance/wire"
)

const (
	watchers = 50
	// patience is how long watchers may take to receive what has been written.
	patience = 30 * time.Second
)

// A delivery is how much of what was written came to the watchers.
type delivery struct {
	written, delivered int64
	ended              int64 // watches that the server closed
	rate               float64
}

func (d delivery) String() string {
	share := 100 * float64(d.delivered) / float64(max(d.written*watchers, 1))
	return fmt.Sprintf("%d written (%.0f/s), %.2f%% of %d events delivered, %d watches closed by the server", d.written, d.rate, share, d.written*watchers, d.ended)
}

// watch has many watchers follow a namespace while all connections write into it.
func (s *side) watch(ctx context.Context, k *kind, d time.Duration) (delivery, error) {
	const namespace = watched
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conns, err := wire.DialAll(s.server.Config, watchers)
	if err != nil {
		return delivery{}, err
	}
	var ready, gone sync.WaitGroup
	ready.Add(watchers)
	var ended atomic.Int64
	counts := make([]atomic.Int64, watchers)
	for w, conn := range conns {
		gone.Go(func() {
			defer conn.Close()
			once := sync.OnceFunc(ready.Done)
			defer once()
			_ = conn.Watch(ctx, k.collection(namespace)+"?watch=1", once, func(line []byte) bool {
				if eventType(line) == "ADDED" {
					counts[w].Add(1)
				}
				return false
			})
			if ctx.Err() == nil {
				ended.Add(1)
			}
		})
	}
	ready.Wait()
	sample, err := slice(ctx, d, connections, s.pid, func(ctx context.Context, worker int) error {
		return s.put(ctx, k, worker, namespace, int(s.serial.Add(1)))
	})
	if err != nil {
		return delivery{}, err
	}
	out := delivery{written: int64(sample.ops), rate: float64(sample.ops) / sample.took.Seconds()}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		out.delivered, out.ended = 0, ended.Load()
		for w := range counts {
			out.delivered += counts[w].Load()
		}
		if out.delivered == out.written*watchers || out.ended == watchers {
			break
		}
	}
	cancel()
	gone.Wait()
	return out, nil
}
