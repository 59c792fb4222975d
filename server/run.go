package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
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
	s.joined = nil // leaves by itself
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
				cancel(&stoppedTask{t.name, err})
			}
		})
	}
	// What is given back when the server ends is given back through its own API.
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	ended, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	running.Go(func() {
		<-ctx.Done()
		klog.InfoS("Shutting down", "cause", context.Cause(ctx), "delay", s.generic.ShutdownDelayDuration)
		within(partingTime, early.Wait)
		end()
		// The load balancer has the first half to notice, clients have the second.
		time.Sleep(s.generic.ShutdownDelayDuration / 2)
		close(s.signals.leaving)
		time.Sleep(s.generic.ShutdownDelayDuration - s.generic.ShutdownDelayDuration/2)
		requests, watches := s.signals.requests.Load(), s.signals.watching.Load() // the signal ends watches
		close(s.signals.notAccepting)
		klog.InfoS("Draining", "requests", requests, "watches", watches)
		s.signals.drain(ended)
	})
	klog.InfoS("Starting", "address", s.Address(), "version", s.generic.EffectiveVersion.Info().GitVersion, "etcd", s.backend.Client().Endpoints())
	running.Go(func() { s.announce(ctx) })
	err := s.prepared.RunWithContext(serving)
	finish()
	cancel(errServing)
	early.Wait()
	stop()
	running.Wait()
	err = errors.Join(err, s.failure(ctx), s.Close())
	uptime := time.Since(s.started).Round(time.Millisecond)
	if err != nil {
		klog.ErrorS(err, "Stopped", "cause", context.Cause(ctx), "uptime", uptime)
	} else {
		klog.InfoS("Stopped", "cause", context.Cause(ctx), "uptime", uptime)
	}
	return err
}

// errServing is the cause if the server has ended before it was asked to.
var errServing = errors.New("serving failed")

// readyPoll is how often the server looks whether it is ready, until it is.
const readyPoll = 20 * time.Millisecond

// announce logs when /readyz answers 200 for the first time.
func (s *Server) announce(ctx context.Context) {
	client := s.controlPlane.client.CoreV1().RESTClient()
	ready := func(ctx context.Context) (bool, error) {
		return client.Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	}
	if wait.PollUntilContextCancel(ctx, readyPoll, true, ready) == nil {
		klog.InfoS("Ready", "after", time.Since(s.started).Round(time.Millisecond))
		close(s.ready)
	}
}

// Ready is closed when /readyz has answered 200 for the first time.
func (s *Server) Ready() <-chan struct{} { return s.ready }

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

// stoppedTask is that a task has stopped that requests depend on.
type stoppedTask struct {
	name string
	err  error
}

// Error implements error.
func (s *stoppedTask) Error() string {
	if s.err == nil {
		return fmt.Sprintf("critical task %q stopped", s.name)
	}
	return fmt.Sprintf("critical task %q stopped: %v", s.name, s.err)
}

// Unwrap returns why it has stopped.
func (s *stoppedTask) Unwrap() error { return s.err }

// failure is why the server stopped, unless it was asked to.
func (s *Server) failure(ctx context.Context) error {
	if stopped := (*stoppedTask)(nil); errors.As(context.Cause(ctx), &stopped) {
		return stopped
	}
	return nil
}
