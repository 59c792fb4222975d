package server

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/catalog/catalogtest"
	"github.com/espalier-dev/espalier/server/replica"
)

// etcd is silent, and answers again when the replica gets a new lease. When that one runs
// out later, because the process was stopped, nothing of the silence is left: another
// replica may have joined since, and what this one knows is not good enough for events.
func TestSilenceEnds(t *testing.T) {
	definitions := catalogtest.Open(t)
	var silent atomic.Bool
	k := &knowledge{index: catalog.New(definitions.Storage), adopted: func(context.Context) error {
		if silent.Load() {
			return errors.New("no answer")
		}
		return nil
	}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = k.index.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	<-k.index.Synced()

	const ttl = 2 * time.Second
	member, err := replica.Join(ctx, definitions.Client, replica.Options{Prefix: definitions.Prefix, TTL: ttl, CatchUp: k.catchUp})
	if err != nil {
		t.Fatal(err)
	}
	k.member.Store(member)
	// run has the replica renew its lease until something is so. Then it gives the lease
	// up: for what is relied on, that is as if it had run out.
	run := func(until func() bool) {
		t.Helper()
		running, stop := context.WithCancel(ctx)
		left := make(chan struct{})
		go func() { defer close(left); member.Run(running) }()
		for end := time.Now().Add(time.Minute); !until(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the lease is not renewed, or nobody looks for other replicas")
			}
		}
		stop()
		<-left
	}
	run(member.Alone)
	silent.Store(true)
	if err := k.check(ctx); err == nil {
		t.Error("etcd is silent, and it is not noticed")
	}
	if !k.stale() || !k.current() {
		t.Error("the only replica does not serve what it knows while etcd is silent")
	}

	silent.Store(false)
	run(member.Current)
	if k.stale() {
		t.Error("etcd answers, and what is known is taken for good enough")
	}
}
