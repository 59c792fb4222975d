package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// Run serves until the context ends, and then comes to an orderly end: /readyz
// fails at once; after --shutdown-delay-duration no new requests are accepted,
// watches are closed, and requests that have begun are finished. Run returns
// when all of that is over and nothing of the server is left.
//
// It returns an error if something that requests depend on has failed.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Tasks outlive the context: the last requests need them.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running, early sync.WaitGroup
	for _, t := range s.tasks {
		group, life := &running, background
		if t.early {
			group, life = &early, ctx
		}
		group.Go(func() {
			err := t.run(life)
			if life.Err() == nil {
				cancel(fmt.Errorf("%s has ended: %w", t.name, errors.Join(err, errEnded)))
			}
		})
	}
	// What is given back when the server ends is given back through its own API.
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	running.Go(func() {
		<-ctx.Done()
		within(partingTime, early.Wait)
		end()
		// The load balancer has the first half to notice, clients have the second.
		time.Sleep(s.generic.ShutdownDelayDuration / 2)
		close(s.signals.leaving)
		time.Sleep(s.generic.ShutdownDelayDuration - s.generic.ShutdownDelayDuration/2)
		close(s.signals.notAccepting)
	})
	klog.InfoS("Serving", "address", s.Address(), "version", s.generic.EffectiveVersion.Info().GitVersion)
	err := s.prepared.RunWithContext(serving)
	cancel(nil)
	early.Wait()
	stop()
	running.Wait()
	return errors.Join(err, s.failure(ctx), s.Close())
}

// partingTime is how long those wait who have to, for tasks that end first.
const partingTime = 2 * time.Second

// within waits for something to return, but not longer than a time.
func within(d time.Duration, wait func()) {
	done := make(chan struct{})
	go func() { defer close(done); wait() }()
	select {
	case <-done:
	case <-time.After(d):
	}
}

// errEnded marks the end of a task that has no end.
var errEnded = errors.New("it ought to run as long as the server")

// failure is why the server has come to an end, unless it was asked to.
func (s *Server) failure(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errEnded) {
		return cause
	}
	return nil
}
