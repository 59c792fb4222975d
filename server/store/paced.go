package store

import (
	"context"
	"runtime"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

const (
	// perWatcher is about what it takes a core to hand an event to one watcher.
	perWatcher = 10 * time.Microsecond
	// maxPause bounds how long an event waits for the one before it.
	maxPause = 5 * time.Millisecond
	// maxBurst is how many events in a row are passed on slowly. If there is no end
	// to them, the cache has to keep up with etcd and leave slow watchers behind.
	maxBurst = 2000
)

// pacedWatch passes events on to a watch cache no faster than its watchers can take
// them. A cache has room for some ten events per watcher, and ends the watches of
// those who have not taken theirs within a budget of 50 ms per second, none of which is
// there when the cache is new. Without this, a burst of events ends most watches.
type pacedWatch struct {
	inner    watch.Interface
	cancel   context.CancelFunc
	watchers func() int
	results  chan watch.Event
}

func paced(ctx context.Context, w watch.Interface, watchers func() int) watch.Interface {
	ctx, cancel := context.WithCancel(ctx)
	p := &pacedWatch{inner: w, cancel: cancel, watchers: watchers, results: make(chan watch.Event)}
	go p.run(ctx)
	return p
}

// Stop implements watch.Interface.
func (p *pacedWatch) Stop() {
	p.inner.Stop()
	p.cancel()
}

// ResultChan implements watch.Interface.
func (p *pacedWatch) ResultChan() <-chan watch.Event { return p.results }

func (p *pacedWatch) run(ctx context.Context) {
	defer close(p.results)
	defer p.Stop()
	burst := 0
	for event := range p.inner.ResultChan() {
		select {
		case p.results <- event:
		case <-ctx.Done():
			return
		}
		if len(p.inner.ResultChan()) == 0 {
			burst = 0
			continue
		}
		if burst++; burst < maxBurst {
			pause := time.Duration(p.watchers()) * perWatcher / time.Duration(runtime.GOMAXPROCS(0))
			time.Sleep(min(pause, maxPause))
		}
	}
}
