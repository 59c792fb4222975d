package catalog_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/server/catalog/catalogtest"
)

// After the call the catalog shows everything that was written before it, also if the
// watch is behind and other keys are written.
func TestCatchUp(t *testing.T) {
	d := catalogtest.Open(t)
	c := start(t, d.Storage)
	for i := range 50 {
		d.Create(t, catalogtest.CRD(fmt.Sprintf("things%d", i), "example.com"))
		if i%2 == 0 {
			if _, err := d.Client.Put(t.Context(), d.Prefix+"/elsewhere", "x"); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.Get(fmt.Sprintf("things%d.example.com", i)) == nil {
			t.Fatalf("there are no things%d", i)
		}
	}
}

// A watch from a future revision stops etcd's progress notifications for all watches of
// its gRPC stream. The catalog's watch has a stream of its own and is not affected.
func TestOtherWatchesDoNotDelayCatchUp(t *testing.T) {
	d := catalogtest.Open(t)
	c := start(t, d.Storage)
	// As clients of the server watch CRDs: with the same client, and as etcd3 does.
	other := d.Client.Watch(clientv3.WithRequireLeader(t.Context()), d.Prefix, clientv3.WithPrefix(),
		clientv3.WithRev(1<<40), clientv3.WithCreatedNotify())
	if first := <-other; !first.Created {
		t.Fatalf("%+v", first)
	}
	for range 5 {
		if _, err := d.Client.Put(t.Context(), d.Prefix+"/elsewhere", "x"); err != nil {
			t.Fatal(err)
		}
		if err := c.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// held is a storage that answers how far it is when it is allowed to.
type held struct {
	storage.Interface
	asked   atomic.Int32
	begun   chan struct{} // an answer is waited for
	proceed chan struct{}
}

func (h *held) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	h.asked.Add(1)
	h.begun <- struct{}{}
	<-h.proceed
	return h.Interface.GetCurrentResourceVersion(ctx)
}

// Concurrent calls share one read of etcd. Calls that come during a read wait for the
// next one.
func TestCatchUpIsShared(t *testing.T) {
	d := catalogtest.Open(t)
	h := &held{Interface: d.Storage, begun: make(chan struct{}, 10), proceed: make(chan struct{})}
	c := start(t, h)
	var all sync.WaitGroup
	ask := func() {
		all.Go(func() {
			if err := c.CatchUp(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	ask()
	<-h.begun
	for range 100 {
		ask()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.CatchUp(ctx); err == nil {
		t.Error("who gives up waits")
	}
	close(h.proceed)
	all.Wait()
	if n := h.asked.Load(); n < 2 || n > 10 {
		t.Errorf("etcd was asked %d times", n)
	}
}
