package builtin

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func TestLeaderElection(t *testing.T) {
	e := start(t)
	for media, c := range e.clients() {
		t.Run(media, func(t *testing.T) {
			led := make(chan string, 2)
			run := func(name string) (stop func()) {
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan struct{})
				go func() {
					defer close(done)
					leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
						Lock: &resourcelock.LeaseLock{
							LeaseMeta: metav1.ObjectMeta{Namespace: "n", Name: media}, Client: c.CoordinationV1(),
							LockConfig: resourcelock.ResourceLockConfig{Identity: name},
						},
						LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 50 * time.Millisecond, ReleaseOnCancel: true,
						Callbacks: leaderelection.LeaderCallbacks{
							OnStartedLeading: func(context.Context) { led <- name }, OnStoppedLeading: func() {},
						},
					})
				}()
				return func() { cancel(); <-done }
			}
			stopFirst := run("first")
			if got := <-led; got != "first" {
				t.Fatalf("%s leads", got)
			}
			stopSecond := run("second")
			defer stopSecond()
			stopFirst() // releases the lease
			if got := <-led; got != "second" {
				t.Fatalf("%s leads", got)
			}
			lease, err := c.CoordinationV1().Leases("n").Get(context.Background(), media, metav1.GetOptions{})
			if err != nil || *lease.Spec.HolderIdentity != "second" || *lease.Spec.LeaseTransitions != 1 || e.stored("/leases/n/"+media) == nil {
				t.Errorf("%+v, %v", lease, err)
			}
		})
	}
}

func TestLeaseRules(t *testing.T) {
	e := start(t)
	path := "/apis/coordination.k8s.io/v1/namespaces/n/leases"
	e.Do("POST", path, `{"metadata":{"name":"a"},"spec":{"leaseDurationSeconds":0,"leaseTransitions":-1}}`).Is(422).
		Mentions(`Lease.coordination.k8s.io "a" is invalid`).Mentions("spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0").
		Mentions("spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0")
	e.Do("PUT", path+"/a", `{"metadata":{"name":"a"},"spec":{"holderIdentity":"h","strategy":"OldestEmulationVersion","preferredHolder":"p"}}`).Is(201).
		Has("spec", map[string]any{"holderIdentity": "h"})
	e.Do("PUT", path+"/a", `{"metadata":{"name":"a"}}`).Is(422).Mentions("metadata.resourceVersion: Invalid value: ").Mentions("must be specified for an update")
	e.Patch("merge", path+"/a", `{"spec":{"leaseDurationSeconds":-5}}`).Is(422).Mentions("must be greater than 0")
}
