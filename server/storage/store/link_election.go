package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// elections end writes that wait for a leader that is gone. A member hands writes on
// to the leader. If that one is stopped or dies with them, the member does not send
// them to the next: it waits for 7 s and then says that it does not know. The probes
// know of the next leader long before. A write that was on its way when it was elected,
// and has no answer half a second later, is ended as if its connection was lost: retryingKV
// finds out what became of it. Nothing is ended only because it takes long.
type elections struct {
	mu     sync.Mutex
	term   uint64
	leader uint64
	writes map[*inFlight]struct{}
}

type inFlight struct {
	began time.Time
	end   context.CancelCauseFunc
}

// electionGrace is how long a write may take that was on its way in an election.
const electionGrace = 500 * time.Millisecond

var errElection = errors.New("etcd has elected another leader while the request was on its way")

// changing are the requests that members hand on to the leader.
var changing = map[string]bool{
	"/etcdserverpb.KV/Txn":            true,
	"/etcdserverpb.KV/Put":            true,
	"/etcdserverpb.KV/DeleteRange":    true,
	"/etcdserverpb.Lease/LeaseGrant":  true,
	"/etcdserverpb.Lease/LeaseRevoke": true,
}

// intercept is a grpc.UnaryClientInterceptor.
func (e *elections) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if !changing[method] {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	own, end := context.WithCancelCause(ctx)
	defer end(nil)
	w := &inFlight{time.Now(), end}
	e.mu.Lock()
	e.writes[w] = struct{}{}
	e.mu.Unlock()
	err := invoke(own, method, req, reply, cc, opts...)
	e.mu.Lock()
	delete(e.writes, w)
	e.mu.Unlock()
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(own), errElection) {
		return status.Error(codes.Unavailable, errElection.Error())
	}
	return err
}

// leads notes who leads in which term.
func (e *elections) leads(term, leader uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if leader == 0 || term < e.term || term == e.term && leader == e.leader {
		return
	}
	first := e.term == 0
	e.term, e.leader = term, leader
	if first {
		return
	}
	noticed := time.Now()
	time.AfterFunc(electionGrace, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for w := range e.writes {
			if w.began.Before(noticed) {
				w.end(errElection)
			}
		}
	})
}
