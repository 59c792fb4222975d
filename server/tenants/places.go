package tenants

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// starts is how many planes start at a time: each takes milliseconds of a processor, and
	// requests to other tenants wait meanwhile.
	starts = 4
	// slowStart is when a start gives its place to the next one, and slowStarts how many may
	// take longer at a time. One more fails: a few tenants with very much in them must not
	// keep all others waiting.
	slowStart  = 2 * time.Second
	slowStarts = 4
	// firstPause is how long a tenant that could not be started, or an etcd that does not answer,
	// is left alone. It doubles with each failure, up to lastPause.
	firstPause, lastPause = time.Second, 10 * time.Second
	// mostFailures is how many failures are remembered.
	mostFailures = 10_000
)

var errSlow = errors.New("too many tenants take long to start")

// places are for starts.
type places struct {
	quick, slow chan struct{}
	patience    time.Duration // slowStart
}

func newPlaces() *places {
	return &places{make(chan struct{}, starts), make(chan struct{}, slowStarts), slowStart}
}

// take waits for a place. The context that it returns ends when the start has to.
func (p *places) take(ctx context.Context) (context.Context, func(), error) {
	select {
	case p.quick <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var mu sync.Mutex
	held := p.quick // nil when the start is over
	timer := time.AfterFunc(p.patience, func() {
		mu.Lock()
		defer mu.Unlock()
		if held == nil {
			return
		}
		select {
		case p.slow <- struct{}{}:
			<-p.quick
			held = p.slow
		default:
			cancel(errSlow)
		}
	})
	return ctx, func() {
		timer.Stop()
		cancel(nil)
		mu.Lock()
		defer mu.Unlock()
		<-held
		held = nil
	}, nil
}

// failures are the tenants that could not be started a moment ago.
type failures struct {
	mu    sync.Mutex
	known map[string]failure
}

type failure struct {
	pause time.Duration
	until time.Time
}

// againError is that a tenant is left alone for a while.
type againError struct {
	after time.Duration
}

// Error implements error.
func (e againError) Error() string {
	return fmt.Sprintf("the tenant could not be started a moment ago; the server tries again after %v", e.after.Round(time.Second))
}

// check returns an error while a tenant is left alone.
func (f *failures) check(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if left := time.Until(f.known[name].until); left > 0 {
		return againError{left}
	}
	return nil
}

// note remembers how a start ended.
func (f *failures) note(name string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.known, name)
		return
	}
	if f.known == nil {
		f.known = map[string]failure{}
	}
	if len(f.known) >= mostFailures { // it forgets what is over, or everything
		for name, one := range f.known {
			if time.Since(one.until) > lastPause {
				delete(f.known, name)
			}
		}
		if len(f.known) >= mostFailures {
			clear(f.known)
		}
	}
	pause := min(max(2*f.known[name].pause, firstPause), lastPause)
	f.known[name] = failure{pause, time.Now().Add(pause)}
}
