package leaderelection

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/restmappingtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// TestOneAtATime has three servers, and stops each of them while it leads.
func TestOneAtATime(t *testing.T) {
	s := restmappingtest.Start(t, restmappingtest.Options{})
	var leading, most atomic.Int32
	led := make(chan int, 10)
	var running sync.WaitGroup
	stops := make([]context.CancelFunc, 3)
	for i := range stops {
		ctx, cancel := context.WithCancel(t.Context())
		stops[i] = cancel
		c := Config{Client: s.Client, Name: "test", Identity: fmt.Sprint("server-", i), Lease: 3 * time.Second, Renew: 2 * time.Second, Retry: 100 * time.Millisecond}
		running.Go(func() {
			err := Run(ctx, c, Task{"one", func(ctx context.Context) error {
				if n := leading.Add(1); n > most.Load() {
					most.Store(n)
				}
				led <- i
				<-ctx.Done()
				time.Sleep(50 * time.Millisecond) // it takes a moment to end
				leading.Add(-1)
				return ctx.Err()
			}})
			if ctx.Err() == nil || err == nil {
				t.Errorf("server %d has ended: %v", i, err)
			}
		})
	}
	for range stops {
		stops[<-led]()
	}
	running.Wait()
	if most.Load() != 1 {
		t.Errorf("%d led at a time", most.Load())
	}
	// The lease is given up, not left to run out.
	lease, err := s.Client.CoordinationV1().Leases("kube-system").Get(t.Context(), "test", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
		t.Errorf("the lease is still held: %v %v", lease, err)
	}
}

// TestLost has the lease taken away: the task ends, and begins again later.
func TestLost(t *testing.T) {
	s := restmappingtest.Start(t, restmappingtest.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	began, ended := make(chan struct{}, 10), make(chan struct{}, 10)
	c := Config{Client: s.Client, Name: "test", Identity: "me", Lease: 2 * time.Second, Renew: time.Second, Retry: 100 * time.Millisecond}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = Run(ctx, c, Task{"one", func(ctx context.Context) error {
			began <- struct{}{}
			<-ctx.Done()
			ended <- struct{}{}
			return nil
		}})
	}()
	<-began
	restmappingtest.Eventually(t, "another holds the lease", func() bool {
		leases := s.Client.CoordinationV1().Leases("kube-system")
		lease, err := leases.Get(t.Context(), "test", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		other, now := "another", metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = &other, &now
		_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		return err == nil
	})
	<-ended
	<-began // the other has not renewed it
	cancel()
	<-done
}
