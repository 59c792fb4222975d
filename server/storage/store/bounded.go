package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// bounded makes requests for an engine that has a part of etcd's API: what kube-apiserver
// asks for. What cannot be said with that is refused.
type bounded struct{ atomic.Bool }

const (
	rangeMethod = "/etcdserverpb.KV/Range"
	txnMethod   = "/etcdserverpb.KV/Txn"
	// putAttempts bounds how often a put without a condition is tried. Such keys have few writers.
	putAttempts = 20
	// ttlBits are those of the number of a lease that have its time in seconds.
	ttlBits = 20
)

// intercept is a grpc.UnaryClientInterceptor.
func (b *bounded) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if !b.Load() {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	e := &exchange{ctx: ctx, call: func(ctx context.Context, method string, req, reply any) error {
		return invoke(ctx, method, req, reply, cc, opts...)
	}}
	switch r := req.(type) {
	case *pb.RangeRequest:
		return e.read(r, reply.(*pb.RangeResponse))
	case *pb.PutRequest:
		return e.put(r, reply.(*pb.PutResponse))
	case *pb.DeleteRangeRequest:
		return e.remove(r, reply.(*pb.DeleteRangeResponse))
	case *pb.TxnRequest:
		return e.txn(r, reply.(*pb.TxnResponse))
	case *pb.LeaseGrantRequest:
		// The engine numbers leases by their time. Ours must differ.
		answer := reply.(*pb.LeaseGrantResponse)
		answer.Header, answer.TTL = &pb.ResponseHeader{}, r.TTL
		answer.ID = (1+rand.Int64N(1<<40))<<ttlBits | r.TTL&(1<<ttlBits-1)
		return nil
	case *pb.LeaseTimeToLiveRequest:
		// What is left is not known. All that was asked for never looks like a lease that is renewed: a replica waits until
		// the keys of a former one have expired, and does not fail.
		answer := reply.(*pb.LeaseTimeToLiveResponse)
		answer.Header, answer.ID, answer.TTL = &pb.ResponseHeader{}, r.ID, r.ID&(1<<ttlBits-1)
		answer.GrantedTTL = answer.TTL
		return nil
	case *pb.LeaseRevokeRequest:
		reply.(*pb.LeaseRevokeResponse).Header = &pb.ResponseHeader{}
		return nil // its keys expire
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

// exchange is one request.
type exchange struct {
	ctx  context.Context
	call func(ctx context.Context, method string, req, reply any) error
}

func lacking(what string) error {
	return status.Error(codes.Unimplemented, "the engine in front of the database does not have "+what+": use etcd for this")
}

// read reads a key, or a folder from a key on: the engine knows no other ranges.
func (e *exchange) read(r *pb.RangeRequest, reply *pb.RangeResponse) error {
	if n := len(r.RangeEnd); n > 0 && r.RangeEnd[n-1] != '/'+1 {
		return lacking("ranges that do not end with a folder")
	}
	q := &pb.RangeRequest{Key: r.Key, RangeEnd: r.RangeEnd, Limit: r.Limit, Revision: r.Revision, KeysOnly: r.KeysOnly, CountOnly: r.CountOnly}
	if len(r.RangeEnd) == 0 {
		q.Limit = 0
	}
	since := r.MinModRevision
	if r.MaxModRevision != 0 || r.MinCreateRevision != 0 || r.MaxCreateRevision != 0 || r.SortOrder != pb.RangeRequest_NONE || since > 0 && (r.Limit > 0 || r.CountOnly) {
		return lacking("reads in another order or of some revisions")
	}
	if err := e.readAt(q, reply); err != nil {
		return err
	}
	if since > 0 {
		reply.Kvs = slices.DeleteFunc(reply.Kvs, func(kv *mvccpb.KeyValue) bool { return kv.ModRevision < since })
		reply.Count = int64(len(reply.Kvs))
	}
	if len(r.RangeEnd) == 0 && r.CountOnly {
		reply.Count, reply.Kvs = int64(len(reply.Kvs)), nil
	}
	return nil
}

// readAt reads, and makes sure that no change is lost to a client that watches from the revision of the answer. Kine asks for
// the newest revision after it has read an empty folder, or a page with more to follow: what was written in between would
// be in neither. So it is read again.
func (e *exchange) readAt(q *pb.RangeRequest, reply *pb.RangeResponse) error {
	if err := e.call(e.ctx, rangeMethod, q, reply); err != nil || q.Revision != 0 || q.CountOnly || len(q.RangeEnd) == 0 {
		return err
	}
	if before := reply.Header; len(reply.Kvs) == 0 {
		if err := e.replace(reply, q); err != nil || len(reply.Kvs) == 0 {
			reply.Header = before // it was named before this read
			return err
		}
	}
	if !reply.More {
		return nil
	}
	at := reply.Header.GetRevision()
	err := e.replace(reply, &pb.RangeRequest{Key: q.Key, RangeEnd: q.RangeEnd, Limit: q.Limit, Revision: at, KeysOnly: q.KeysOnly})
	reply.Header = &pb.ResponseHeader{Revision: at}
	return err
}

// replace replaces an answer by that to another read.
func (e *exchange) replace(reply *pb.RangeResponse, q *pb.RangeRequest) error {
	other := &pb.RangeResponse{}
	err := e.call(e.ctx, rangeMethod, q, other)
	reply.Header, reply.Kvs, reply.More, reply.Count = other.Header, other.Kvs, other.More, other.Count
	return err
}

// get returns what is at a key; nil if there is nothing.
func (e *exchange) get(key []byte) (*mvccpb.KeyValue, *pb.ResponseHeader, error) {
	reply := &pb.RangeResponse{}
	if err := e.call(e.ctx, rangeMethod, &pb.RangeRequest{Key: key}, reply); err != nil {
		return nil, nil, err
	}
	if len(reply.Kvs) == 0 {
		return nil, reply.Header, nil
	}
	return reply.Kvs[0], reply.Header, nil
}

// written is a put as the engine takes it: the lease is a time in seconds.
func written(r *pb.PutRequest) *pb.PutRequest {
	return &pb.PutRequest{Key: r.Key, Value: r.Value, Lease: r.Lease & (1<<ttlBits - 1)}
}

// write does one write, if a key is at a revision; 0 is that it does not exist. Otherwise it returns
// what is there.
//
// There is no retryingKV on such an engine, so that the write itself notes whether it is in doubt.
// Without that, clients would be told that nothing was written whenever a connection breaks.
func (e *exchange) write(key []byte, at int64, op *pb.RequestOp) (*pb.TxnResponse, error) {
	reply, h := &pb.TxnResponse{}, &handover{}
	r := &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: key, Target: pb.Compare_MOD, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_ModRevision{ModRevision: at}}},
		Success: []*pb.RequestOp{op},
		Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}},
	}
	// Kine reads what is there instead of a key to be created at a revision that it remembers. With other writes at the
	// same time it refuses that one as of the future.
	creates := at == 0 && op.GetRequestPut() != nil
	if creates {
		r.Failure = nil
	}
	err := e.call(context.WithValue(e.ctx, handoverKey{}, h), txnMethod, r, reply)
	if !h.unsent() {
		inDoubtOf(e.ctx).set(err != nil || reply.Succeeded)
	}
	if err != nil || reply.Succeeded || !creates {
		return reply, err
	}
	there := &pb.RangeResponse{}
	if err := e.call(e.ctx, rangeMethod, &pb.RangeRequest{Key: key}, there); err != nil {
		return nil, err
	}
	reply.Header = there.Header
	reply.Responses = []*pb.ResponseOp{{Response: &pb.ResponseOp_ResponseRange{ResponseRange: there}}}
	return reply, nil
}

// put writes without a condition. The engine would lose such a write without an error if there is
// another one at the same time.
func (e *exchange) put(r *pb.PutRequest, reply *pb.PutResponse) error {
	if r.IgnoreLease || r.IgnoreValue {
		return lacking("writes that keep a value or a lease")
	}
	for range putAttempts {
		before, _, err := e.get(r.Key)
		if err != nil {
			return err
		}
		answer, err := e.write(r.Key, before.GetModRevision(), &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: written(r)}})
		if err != nil {
			return err
		}
		if answer.Succeeded {
			reply.Header = answer.Header
			if r.PrevKv {
				reply.PrevKv = before
			}
			return nil
		}
	}
	return status.Error(codes.Aborted, fmt.Sprintf("the key %s changes all the time", r.Key))
}

// remove deletes a key.
func (e *exchange) remove(r *pb.DeleteRangeRequest, reply *pb.DeleteRangeResponse) error {
	if len(r.RangeEnd) > 0 {
		return lacking("deleting of ranges")
	}
	for range putAttempts {
		before, header, err := e.get(r.Key)
		if err != nil {
			return err
		}
		if before == nil {
			reply.Header = header
			return nil
		}
		answer, err := e.write(r.Key, before.ModRevision, &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: r.Key}}})
		if err != nil {
			return err
		}
		if answer.Succeeded {
			reply.Header, reply.Deleted = answer.Header, 1
			if r.PrevKv {
				reply.PrevKvs = []*mvccpb.KeyValue{before}
			}
			return nil
		}
	}
	return status.Error(codes.Aborted, fmt.Sprintf("the key %s changes all the time", r.Key))
}

// txn does a transaction without conditions step by step, and one with a single condition and a single
// write of the same key as the engine does it. It refuses all others.
func (e *exchange) txn(r *pb.TxnRequest, reply *pb.TxnResponse) error {
	if len(r.Compare) == 0 {
		reply.Succeeded = true
		return e.steps(r.Success, reply)
	}
	c := r.Compare[0]
	if c.Target == pb.Compare_VERSION && c.GetVersion() != 0 || string(c.Key) == compactKey {
		return e.call(e.ctx, txnMethod, r, reply) // of compaction
	}
	if len(r.Compare) > 1 || len(r.Success) != 1 || c.Result != pb.Compare_EQUAL || len(c.RangeEnd) > 0 {
		return lacking("transactions with several conditions or operations")
	}
	var at int64
	switch c.Target {
	case pb.Compare_MOD:
		at = c.GetModRevision()
	case pb.Compare_CREATE:
		if c.GetCreateRevision() != 0 {
			return lacking("conditions about when a key was created")
		}
	case pb.Compare_VERSION: // 0
	default:
		return lacking("conditions about values")
	}
	op := r.Success[0]
	var previous bool
	switch w := op.Request.(type) {
	case *pb.RequestOp_RequestPut:
		if string(w.RequestPut.Key) != string(c.Key) || w.RequestPut.IgnoreLease || w.RequestPut.IgnoreValue || w.RequestPut.PrevKv {
			return lacking("this kind of write")
		}
		op = &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: written(w.RequestPut)}}
	case *pb.RequestOp_RequestDeleteRange:
		if previous = w.RequestDeleteRange.PrevKv; string(w.RequestDeleteRange.Key) != string(c.Key) || len(w.RequestDeleteRange.RangeEnd) > 0 {
			return lacking("deleting another key than that of the condition")
		}
	default:
		return lacking("conditional reads")
	}
	answer, err := e.write(c.Key, at, op)
	if err != nil {
		return err
	}
	reply.Header, reply.Succeeded = answer.Header, answer.Succeeded
	if answer.Succeeded {
		reply.Responses = answer.Responses
		if d := answer.Responses[0].GetResponseDeleteRange(); d != nil && !previous {
			d.PrevKvs = nil
		}
		return nil
	}
	if len(r.Failure) == 1 && isGet(r.Failure[0], c.Key) {
		reply.Responses = answer.Responses
		return nil
	}
	failed := &pb.TxnResponse{}
	if err := e.steps(r.Failure, failed); err != nil {
		return err
	}
	reply.Responses = failed.Responses
	return nil
}

// compactKey is where replicas agree about compaction.
const compactKey = "compact_rev_key"

// isGet reports whether an operation reads a key.
func isGet(op *pb.RequestOp, key []byte) bool {
	r := op.GetRequestRange()
	return r != nil && string(r.Key) == string(key) && len(r.RangeEnd) == 0 && !r.KeysOnly && !r.CountOnly
}

// steps does operations one after the other.
func (e *exchange) steps(ops []*pb.RequestOp, reply *pb.TxnResponse) (err error) {
	for _, op := range ops {
		var done *pb.ResponseOp
		var header *pb.ResponseHeader
		switch r := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			answer := &pb.RangeResponse{}
			err = e.read(r.RequestRange, answer)
			done, header = &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: answer}}, answer.Header
		case *pb.RequestOp_RequestPut:
			answer := &pb.PutResponse{}
			err = e.put(r.RequestPut, answer)
			done, header = &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: answer}}, answer.Header
		case *pb.RequestOp_RequestDeleteRange:
			answer := &pb.DeleteRangeResponse{}
			err = e.remove(r.RequestDeleteRange, answer)
			done, header = &pb.ResponseOp{Response: &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: answer}}, answer.Header
		default:
			return lacking("transactions within transactions")
		}
		if err != nil {
			return err
		}
		reply.Header, reply.Responses = header, append(reply.Responses, done)
	}
	return nil
}

// progressDelay is how long progress is held back.
const progressDelay = 50 * time.Millisecond

// A patientWatcher holds progress back. Kine tells of it as soon as it has polled the database up to a revision: what it
// has polled is still on its way through several of its goroutines. A watch cache that believes it leaves out the events
// that come after it, and lists lack those objects from then on. Kine's revisions also go back at times.
type patientWatcher struct{ clientv3.Watcher }

// Watch implements clientv3.Watcher.
func (w patientWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	out := make(chan clientv3.WatchResponse)
	ctx, cancel := context.WithCancel(ctx)
	in := w.Watcher.Watch(ctx, key, opts...)
	go func() {
		defer close(out)
		defer func() {
			cancel()
			for range in { // the client's goroutine must not wait for a reader
			}
		}()
		relay(ctx, in, out)
	}()
	return out
}

// relay passes on what a watch brings, and progress after a pause in which no event has overtaken it.
func relay(ctx context.Context, in clientv3.WatchChan, out chan<- clientv3.WatchResponse) {
	var held clientv3.WatchResponse
	var due <-chan time.Time // when held is passed on; nil if there is none
	var shown int64          // the revision of the last event or progress
	for {
		var answer clientv3.WatchResponse
		var ok bool
		select {
		case answer, ok = <-in:
			if !ok {
				return
			}
			if answer.IsProgressNotify() {
				if due == nil { // what comes meanwhile is asked for again
					held, due = answer, time.After(progressDelay)
				}
				continue
			}
			if n := len(answer.Events); n > 0 {
				shown = max(shown, answer.Events[n-1].Kv.ModRevision)
			}
		case <-due:
			answer, due = held, nil
			if answer.Header.Revision < shown {
				continue
			}
			shown = answer.Header.Revision
		}
		select {
		case out <- answer:
		case <-ctx.Done():
			return
		}
	}
}
