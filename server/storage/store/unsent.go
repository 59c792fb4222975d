package store

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// handover tells whether a request was handed to a connection. etcd's client has
// requests wait until there is one (WaitForReady), as long as their context lasts. An
// error alone does not tell a request that has waited all the time from one that was
// sent and got no answer.
//
// gRPC asks for the credentials of a call when it builds its headers, before it queues
// anything on a connection, in the goroutine of the call and for each connection that
// it tries. These have nothing to add, and note that they were asked: if they were not,
// nothing of the request has left this process, and nothing will.
type handover struct {
	watched atomic.Bool // the call has these credentials: otherwise nothing is known
	begun   atomic.Bool
}

var _ credentials.PerRPCCredentials = (*handover)(nil)

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (h *handover) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	h.begun.Store(true)
	return nil, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (*handover) RequireTransportSecurity() bool { return false }

// unsent reports whether the request is known not to have left this process.
func (h *handover) unsent() bool { return h.watched.Load() && !h.begun.Load() }

type handoverKey struct{}

// watchHandover is a grpc.UnaryClientInterceptor.
func watchHandover(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if h, ok := ctx.Value(handoverKey{}).(*handover); ok {
		h.watched.Store(true)
		opts = append(slices.Clip(opts), grpc.PerRPCCredentials(h))
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

// errUnsent is why a write was not done that has found no connection.
var errUnsent = errors.New("there is no connection to etcd")

// send calls do, which sends one write. A write that is not handed to a connection by
// the end is given up. The error is errUnsent if it never was.
func send(ctx context.Context, end time.Time, do func(context.Context) error) error {
	h := &handover{}
	own, cancel := context.WithCancelCause(context.WithValue(ctx, handoverKey{}, h))
	defer cancel(nil)
	timer := time.AfterFunc(time.Until(end), func() {
		if !h.begun.Load() {
			cancel(errUnsent)
		}
	})
	defer timer.Stop()
	err := do(own)
	if err != nil && h.unsent() {
		return errUnsent
	}
	inDoubtOf(ctx).set(true)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(own), errUnsent) {
		// It was handed over in the moment in which it was given up.
		return status.Error(codes.Unavailable, errUnsent.Error()+" for long, and the write was given up when there was one")
	}
	return err
}

// inDoubt is whether a request of the API may have written something. Most of its time
// it reads, converts and waits: errors of that are no doubt about a write.
type inDoubt struct{ now atomic.Bool }

type inDoubtKey struct{}

// withDoubt begins a request that is going to write.
func withDoubt(ctx context.Context) context.Context {
	return context.WithValue(ctx, inDoubtKey{}, &inDoubt{})
}

// inDoubtOf returns nil if the caller does not ask.
func inDoubtOf(ctx context.Context) *inDoubt {
	d, _ := ctx.Value(inDoubtKey{}).(*inDoubt)
	return d
}

func (d *inDoubt) set(doubt bool) {
	if d != nil {
		d.now.Store(doubt)
	}
}

// none reports whether it is known that nothing has been written.
func (d *inDoubt) none() bool { return d != nil && !d.now.Load() }
