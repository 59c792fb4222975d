package gctune

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// room is how much a small process allocates between two collections. Go's own
// measure is the size of what is alive: a server of 20 MB would collect ten times a
// second under load, for nothing.
const room = 128 << 20

// normal is Go's default for GOGC.
const normal = 100

// late counts the callers of Late in this process, which has one garbage collector.
var late struct {
	sync.Mutex
	users int
	stop  context.CancelFunc
	done  chan struct{}
}

// Late makes the garbage collector run less often until the returned function is called.
// Several callers may use it at a time. It does nothing if GOGC is set: the operator has
// chosen.
func Late() (normally func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	late.Lock()
	defer late.Unlock()
	if late.users++; late.users == 1 {
		ctx, stop := context.WithCancel(context.Background())
		late.stop, late.done = stop, make(chan struct{})
		last := adjust(normal)
		go keep(ctx, last, late.done)
	}
	return sync.OnceFunc(func() {
		late.Lock()
		defer late.Unlock()
		if late.users--; late.users == 0 {
			late.stop()
			<-late.done
		}
	})
}

// keep follows the size of the heap, until the context ends.
func keep(ctx context.Context, last int, done chan<- struct{}) {
	defer close(done)
	defer debug.SetGCPercent(normal)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			last = adjust(last)
		}
	}
}

// adjust sets the percentage anew if it should be another one than the last, and
// returns it.
func adjust(last int) int {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	percent := normal
	if n := live[0].Value.Uint64(); n < room {
		percent = int(normal * room / max(n, 1<<20))
	}
	if percent <= last*5/4 && percent >= last*4/5 {
		return last
	}
	debug.SetGCPercent(percent)
	return percent
}
