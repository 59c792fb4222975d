package replica_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/replica"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// join starts a replica; stop makes it leave, and returns when it has.
func join(t *testing.T, client *clientv3.Client, o replica.Options) (m *replica.Member, stop func()) {
	t.Helper()
	m, err := replica.Join(t.Context(), client, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); m.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return m, stop
}

// waits reports whether m still waits for a revision after a moment.
func waits(t *testing.T, m *replica.Member, revision uint64) bool {
	t.Helper()
	return waitsFor(t, m, revision, 300*time.Millisecond)
}

// hangs reports whether m waits for a revision for longer than a busy machine takes. All
// leases in these tests that are not renewed last longer.
func hangs(t *testing.T, m *replica.Member, revision uint64) bool {
	t.Helper()
	return waitsFor(t, m, revision, 5*time.Second)
}

func waitsFor(t *testing.T, m *replica.Member, revision uint64, d time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	err := m.Wait(ctx, revision)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	return err != nil
}

func TestAloneWaitsForItself(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	m, _ := join(t, client, replica.Options{Prefix: prefix})
	if !waits(t, m, 7) {
		t.Error("does not wait for what it has not seen itself")
	}
	m.Saw(7)
	if hangs(t, m, 7) {
		t.Error("waits although it has seen the revision")
	}
	m.Saw(3)
	if hangs(t, m, 7) {
		t.Error("an older revision undoes a later one")
	}
	if !m.Current() {
		t.Error("is not current")
	}
}

func TestWaitsForOthers(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	a, _ := join(t, client, replica.Options{Prefix: prefix})
	a.Saw(100)
	b, stop := join(t, client, replica.Options{Prefix: prefix})
	if !waits(t, a, 100) {
		t.Error("does not wait for a replica that has seen nothing")
	}
	b.Saw(100)
	if hangs(t, a, 100) {
		t.Error("waits for a replica that has seen the revision")
	}
	if hangs(t, b, 100) {
		t.Error("the newcomer waits for what was seen before it came")
	}
	a.Saw(200)
	stop()
	if hangs(t, a, 200) {
		t.Error("waits for a replica that has left")
	}
}

// A replica that is cut off is waited for until its lease has run out, and is
// not current by then.
func TestLostLease(t *testing.T) {
	t.Parallel()
	client, prefix := etcdtest.Client(t)
	a, _ := join(t, client, replica.Options{Prefix: prefix})
	a.Saw(1)

	caught := make(chan bool, 2)
	var b *replica.Member
	failures := 1
	b, err := replica.Join(t.Context(), client, replica.Options{Prefix: prefix, TTL: 2 * time.Second, CatchUp: func(context.Context) error {
		caught <- b.Current()
		if failures--; failures >= 0 {
			return errors.New("etcd does not answer")
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := a.Wait(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(start); waited < time.Second {
		t.Errorf("waited only %v for a replica whose lease held", waited)
	}
	if b.Current() {
		t.Error("is current although nobody waits for it")
	}

	go b.Run(ctx)
	for range 2 {
		select {
		case current := <-caught:
			if current {
				t.Error("is current before it has read what it has missed")
			}
		case <-ctx.Done():
			t.Fatal("does not catch up")
		}
	}
	for !b.Current() {
		if ctx.Err() != nil {
			t.Fatal("does not become current again")
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.Saw(5)
	a.Saw(5)
	if hangs(t, a, 5) {
		t.Error("waits for the replica that came back and has seen the revision")
	}
}
