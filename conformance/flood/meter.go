package flood

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

const (
	maxMemory  = 1 << 30
	maxLatency = time.Second
	// meterEvery is how often memory is looked at, and another user asks for something.
	meterEvery = 25 * time.Millisecond
)

// meter measures the server's memory and another user's latency.
type meter struct {
	cancel    context.CancelFunc
	wg        sync.WaitGroup
	before    int64
	peak      int64
	latencies []time.Duration
	failed    int
}

func (w *watching) measure(ctx context.Context) (*meter, error) {
	before, err := launch.RSS(w.server.Pid)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	m := &meter{cancel: cancel, before: before, peak: before}
	m.wg.Go(func() {
		for ctx.Err() == nil {
			if rss, err := launch.RSS(w.server.Pid); err == nil {
				m.peak = max(m.peak, rss)
			}
			time.Sleep(meterEvery)
		}
	})
	m.wg.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			code, _, err := w.send(ctx, w.other, http.MethodGet, "/api/v1/namespaces/default/configmaps/bystander", "", "")
			if ctx.Err() != nil {
				return
			}
			if err != nil || code != http.StatusOK {
				m.failed++
			}
			m.latencies = append(m.latencies, time.Since(began))
			time.Sleep(meterEvery)
		}
	})
	return m, nil
}

// stop returns the figures, and an error if they are too high.
func (m *meter) stop() (figures string, tooMuch error) {
	m.cancel()
	m.wg.Wait()
	slices.Sort(m.latencies)
	var p99 time.Duration
	if n := len(m.latencies); n > 0 {
		p99 = m.latencies[n*99/100]
	}
	figures = fmt.Sprintf("memory %d → %d MB, another user's p99 %v of %d requests, %d failed", m.before>>20, m.peak>>20, p99.Round(time.Millisecond), len(m.latencies), m.failed)
	switch {
	case m.peak >= maxMemory:
		tooMuch = fmt.Errorf("resident memory reached %d MB", m.peak>>20)
	case p99 >= maxLatency:
		tooMuch = fmt.Errorf("another user's p99 was %v", p99)
	case m.failed > 0:
		tooMuch = fmt.Errorf("%d requests of another user failed", m.failed)
	}
	return figures, tooMuch
}
