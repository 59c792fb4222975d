package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// Config says who takes part in what.
type Config struct {
	Client kubernetes.Interface
	// Name is of the lease. Namespace, if empty, is kube-system.
	Name, Namespace string
	// Identity is different for every server.
	Identity string
	// Lease, Renew and Retry are how long the lease lasts without being renewed, how long
	// renewing is tried, and how often. All are upstream's if Lease is zero: 15 s, 10 s, 2 s.
	Lease, Renew, Retry time.Duration
}

// Task is what the leader does until its context ends.
type Task struct {
	Name string
	Run  func(context.Context) error
}

// Run has the tasks run while this server leads, until the context ends, whose
// error it returns. Nothing of it is left then.
func Run(ctx context.Context, c Config, tasks ...Task) error {
	if c.Namespace == "" {
		c.Namespace = metav1.NamespaceSystem
	}
	if c.Lease == 0 {
		c.Lease, c.Renew, c.Retry = 15*time.Second, 10*time.Second, 2*time.Second
	}
	for ctx.Err() == nil {
		if err := c.once(ctx, tasks); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// once waits for the lease, and runs the tasks until it is lost or the context ends.
func (c *Config) once(ctx context.Context, tasks []Task) error {
	// The election outlives the context, until the tasks have ended.
	election, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	leading := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name},
			Client:     c.Client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.Identity},
		},
		LeaseDuration: c.Lease, RenewDeadline: c.Renew, RetryPeriod: c.Retry,
		ReleaseOnCancel: true,
		Name:            c.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { leading <- ctx },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("the election of %s: %w", c.Name, err)
	}
	over := make(chan struct{})
	go func() { defer close(over); elector.Run(election) }()
	select {
	case held := <-leading:
		running, stop := context.WithCancel(held)
		unhook := context.AfterFunc(ctx, stop)
		c.lead(running, tasks)
		unhook()
		stop()
	case <-ctx.Done():
	case <-over:
	}
	end()
	<-over
	return nil
}

// lead runs the tasks until the context ends.
func (c *Config) lead(ctx context.Context, tasks []Task) {
	klog.FromContext(ctx).Info("Leading", "lease", c.Name, "identity", c.Identity)
	var running sync.WaitGroup
	for _, t := range tasks {
		running.Go(func() {
			if err := t.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				klog.FromContext(ctx).Error(err, "Leader task failed", "task", t.Name)
			}
		})
	}
	running.Wait()
	<-ctx.Done() // without tasks, or if all have failed, the lease is kept all the same
}
