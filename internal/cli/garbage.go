package cli

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// roomForGarbage is how much a small server allocates between two collections.
// Go's own measure is the size of what is alive: a server of 20 MB would collect
// ten times a second under load, for nothing.
const roomForGarbage = 128 << 20

// collectLate keeps the collector from running all the time while the heap is
// small, until the context ends. It does nothing if GOGC is set: then somebody
// knows better.
func collectLate(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	const normal = 100
	defer debug.SetGCPercent(normal)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	last := normal
	for {
		metrics.Read(live)
		percent := normal
		if n := live[0].Value.Uint64(); n < roomForGarbage {
			percent = int(normal * roomForGarbage / max(n, 1<<20))
		}
		if percent > last*5/4 || percent < last*4/5 {
			last = percent
			debug.SetGCPercent(percent)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
