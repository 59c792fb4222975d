package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A retryingKV retries writes across the loss of a member and the election of another
// leader, and knows what became of them. etcd's client tries reads again by itself,
// and writes only if they were never sent: it cannot know whether they were done. A write
// that finds no connection is never sent: see handover.
//
// All our writes are of one key on the condition that it is at a revision. To try such
// a write again is not safe by that alone: a creation whose answer is lost may have
// been done, and undone by a deletion, and would bring the object back; or it is still
// on its way, in the socket of a member that is stopped, and is done an hour later. So
// the first attempt is ended by its fence, and etcd's history of the key tells what
// became of it:
//
//	write at r, if fence n is open ── no answer ──▶ close fence n ──▶ read the key's history since r
//	                                                                    ├ not in it: the same again, with fence n+1
//	                                                                    ├ a creation with our bytes, which have a UID: done
//	                                                                    └ a change or deletion that may be ours: unknown
//
// To take an equal change for its own would give one thing to two clients that compete
// for it, and to report a conflict would have a patch applied twice: the client gets the
// answer that the outcome is unknown.
type retryingKV struct {
	clientv3.KV
	fences *fences
	seen   *atomic.Int64 // the highest revision that an answer had
	client *clientv3.Client
	prefix string // of all keys
}

func newRetryingKV(client *clientv3.Client, prefix string) retryingKV {
	return retryingKV{KV: client.KV, fences: newFences(client, prefix), seen: &atomic.Int64{}, client: client, prefix: prefix}
}

// How long, and how often, a write is tried again. An election takes a second or two.
const (
	retryFor   = 20 * time.Second
	retryPause = 50 * time.Millisecond
)

// Get implements clientv3.KV.
func (s retryingKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	resp, err := s.KV.Get(ctx, key, opts...)
	if err == nil {
		s.note(resp.Header)
	}
	return resp, err
}

// Txn implements clientv3.KV.
func (s retryingKV) Txn(ctx context.Context) clientv3.Txn {
	return &retryingTxn{ctx: ctx, retryingKV: s}
}

// note remembers the revision of an answer.
func (s retryingKV) note(header *pb.ResponseHeader) {
	for now := header.GetRevision(); ; {
		before := s.seen.Load()
		if now <= before || s.seen.CompareAndSwap(before, now) {
			return
		}
	}
}

type retryingTxn struct {
	retryingKV
	ctx             context.Context
	conditions      []clientv3.Cmp
	done, otherwise []clientv3.Op
}

// If implements clientv3.Txn.
func (t *retryingTxn) If(cs ...clientv3.Cmp) clientv3.Txn { t.conditions = cs; return t }

// Then implements clientv3.Txn.
func (t *retryingTxn) Then(ops ...clientv3.Op) clientv3.Txn { t.done = ops; return t }

// Else implements clientv3.Txn.
func (t *retryingTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.otherwise = ops; return t }

// Commit implements clientv3.Txn.
func (t *retryingTxn) Commit() (*clientv3.TxnResponse, error) {
	if !t.guarded() {
		inDoubtOf(t.ctx).set(true)
		resp, err := t.KV.Txn(t.ctx).If(t.conditions...).Then(t.done...).Else(t.otherwise...).Commit()
		if err == nil {
			t.note(resp.Header)
		}
		return resp, err
	}
	w := &write{retryingTxn: t, since: t.seen.Load(), end: time.Now().Add(retryFor)}
	if c := conditionsOf(t.ctx); c != nil {
		w.requirement = c.crd
		if t.done[0].IsPut() {
			w.folders, w.marked = slices.Collect(maps.Values(c.folders)), c.marked
		} else {
			w.requirement = c.crd.bond()
		}
		if w.requirement != nil {
			w.revision = w.requirement.Revision
		}
	}
	return w.commit()
}

// guarded reports whether the transaction writes one key on the condition that it is
// at a revision: only such can be tried again.
func (t *retryingTxn) guarded() bool {
	if len(t.conditions) != 1 || len(t.done) != 1 {
		return false
	}
	c, op := t.conditions[0].GetCompare(), t.done[0]
	return c.GetTarget() == pb.Compare_MOD && c.GetResult() == pb.Compare_EQUAL && string(c.GetKey()) == string(op.KeyBytes()) && (op.IsPut() || op.IsDelete())
}

// write is one write of a key, in as many attempts as it takes.
type write struct {
	*retryingTxn
	requirement *Requirement // nil if there is none
	folders     []*Folder
	marked      bool  // the mark of the key is moved, too
	revision    int64 // of the requirement, as it is now
	since       int64 // a revision before the first attempt
	end         time.Time
}

// commit tries until etcd has answered, or it is known what became of an attempt.
func (w *write) commit() (*clientv3.TxnResponse, error) {
	for {
		fence := w.fences.current()
		resp, err := w.attempt(fence)
		switch {
		case err == nil && resp.Succeeded:
			return resp, nil
		case err == nil:
			inDoubtOf(w.ctx).set(false)
			again, err := w.failed(fence, resp)
			if !again {
				return resp, err
			}
		case errors.Is(err, errUnsent):
			if !w.pause() {
				return nil, &unansweredError{cause: err, nothing: true}
			}
		case Full(err):
			return w.full(err)
		case !unanswered(err):
			if w.ctx.Err() != nil {
				w.fences.closeSoon() // it may still be on its way
			}
			return nil, err
		case dropped(err):
			if !w.pause() {
				return nil, &unansweredError{cause: err, nothing: true}
			}
		default:
			resp, err := w.resolve(fence, err)
			if resp != nil || err != nil {
				return resp, err
			}
		}
	}
}

// attempt sends the transaction, with the conditions of the fence and of the
// requirement. If one of all does not hold, the answer has the keys of these, too.
func (w *write) attempt(f *fence) (*clientv3.TxnResponse, error) {
	conditions := append(make([]clientv3.Cmp, 0, 3), w.conditions[0], f.isOpen())
	otherwise := append(append(make([]clientv3.Op, 0, 3), w.otherwise...), clientv3.OpGet(f.key, clientv3.WithKeysOnly()))
	if r := w.requirement; r != nil {
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(r.Key), "=", w.revision))
		otherwise = append(otherwise, clientv3.OpGet(r.Key, clientv3.WithKeysOnly()))
		if r.Bond != "" {
			conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(r.Bond), "=", r.BondRevision))
			otherwise = append(otherwise, clientv3.OpGet(r.Bond, clientv3.WithKeysOnly()))
		}
	}
	for _, f := range w.folders {
		condition, newer := f.condition(w.prefix)
		conditions, otherwise = append(conditions, condition), append(otherwise, newer)
	}
	done := w.done
	if mark, ok := w.mark(); ok {
		done = append(slices.Clone(done), mark)
	}
	var resp *clientv3.TxnResponse
	err := send(w.ctx, w.end, func(ctx context.Context) (err error) {
		resp, err = w.KV.Txn(ctx).If(conditions...).Then(done...).Else(otherwise...).Commit()
		return err
	})
	if err == nil {
		w.note(resp.Header)
		if resp.Succeeded {
			resp.Responses = resp.Responses[:len(w.done)]
		}
	}
	return resp, err
}

// failed finds out which condition did not hold, and reports whether the write is to
// be tried again. Nothing has been written.
func (w *write) failed(f *fence, resp *clientv3.TxnResponse) (again bool, err error) {
	own := resp.Responses[len(w.otherwise):]
	resp.Responses = resp.Responses[:len(w.otherwise)]
	if len(own[0].GetResponseRange().Kvs) > 0 {
		w.fences.closed(f) // by another write in doubt
		return true, nil
	}
	own = own[1:]
	if w.requirement != nil {
		now := int64(0)
		if kvs := own[0].GetResponseRange().Kvs; len(kvs) > 0 {
			now = kvs[0].ModRevision
		}
		if now != w.revision {
			w.revision, err = w.requirement.Changed(w.ctx, now)
			return err == nil, err
		}
		own = own[1:]
		if w.requirement.Bond != "" {
			if kvs := own[0].GetResponseRange().Kvs; len(kvs) == 0 || kvs[0].ModRevision != w.requirement.BondRevision {
				return false, w.requirement.Unbound
			}
			own = own[1:]
		}
	}
	for i, f := range w.folders {
		if newer := own[i].GetResponseRange().Kvs; len(newer) > 0 {
			w.folders[i], err = f.again(w.ctx, w.prefix, newer)
			return err == nil, err
		}
	}
	return false, nil
}

// pause waits before the next attempt, and reports false if there is to be none.
func (w *write) pause() bool {
	if time.Now().After(w.end) {
		return false
	}
	select {
	case <-w.ctx.Done():
		return false
	case <-time.After(retryPause):
		return true
	}
}

// resolveTime is how long the search for an attempt may take that ended when there was no time left.
const resolveTime = 5 * time.Second

// settling is the context of the search for an attempt. Without a connection, etcd's client would
// wait as long as the request does, which may be for ever.
func (w *write) settling() (context.Context, context.CancelFunc) {
	end := w.end
	if latest := time.Now().Add(resolveTime); end.Before(latest) {
		end = latest
	}
	return context.WithDeadline(w.ctx, end)
}

// resolve finds out what became of an attempt that was not answered. It returns
// nothing if the attempt was not done, and never will be.
func (w *write) resolve(f *fence, cause error) (*clientv3.TxnResponse, error) {
	ctx, cancel := w.settling()
	defer cancel()
	for {
		resp, done, err := w.find(ctx, f)
		switch {
		case err == nil && done:
			return resp, nil
		case err == nil:
			if w.pause() {
				return nil, nil
			}
			return nil, &unansweredError{cause: cause, nothing: true}
		case !unanswered(err) || !w.pause():
			return nil, &unansweredError{cause: cause}
		}
	}
}

// full is for a write that etcd has refused because it is full. It says so, too, of
// writes that it has done as the last ones; but then nothing is on its way any more.
func (w *write) full(cause error) (*clientv3.TxnResponse, error) {
	ctx, cancel := w.settling()
	defer cancel()
	resp, done, err := w.look(ctx)
	switch {
	case err != nil:
		return nil, &unansweredError{cause: cause}
	case done:
		return resp, nil
	}
	return nil, cause
}

// errDoubt says that a change may or may not be ours.
var errDoubt = errors.New("etcd has a change that is indistinguishable from ours")

// find ends an attempt by its fence and looks for it in etcd.
func (w *write) find(ctx context.Context, f *fence) (resp *clientv3.TxnResponse, done bool, err error) {
	if err := w.fences.close(ctx, f); err != nil {
		return nil, false, err
	}
	return w.look(ctx)
}

// look looks in etcd for attempts that cannot be done any more if they are not by now.
func (w *write) look(ctx context.Context) (resp *clientv3.TxnResponse, done bool, err error) {
	op, at := w.done[0], w.conditions[0].GetCompare().GetModRevision()
	now, err := w.KV.Get(ctx, string(op.KeyBytes()))
	if err != nil {
		return nil, false, err
	}
	w.note(now.Header)
	var there *mvccpb.KeyValue
	if len(now.Kvs) > 0 {
		there = now.Kvs[0]
	}
	if at == 0 && there == nil && op.IsDelete() || there != nil && there.ModRevision == at {
		return nil, false, nil // as it was
	}
	since := w.since
	if at > 0 {
		since = at
	}
	events, err := w.history(ctx, string(op.KeyBytes()), since+1, now.Header.Revision)
	if err != nil {
		return nil, false, err
	}
	if at == 0 && op.IsPut() {
		return w.lookForCreate(events, there, now.Header)
	}
	switch {
	case len(events) == 0:
		return nil, false, errDoubt // it has changed, and etcd does not say how
	case op.IsDelete() != (events[0].Type == clientv3.EventTypeDelete), op.IsPut() && string(events[0].Kv.Value) != string(op.ValueBytes()):
		return nil, false, nil // the first change since may be ours, and no other
	}
	return nil, false, errDoubt
}

// lookForCreate looks for our creation among the changes of a key.
func (w *write) lookForCreate(events []*clientv3.Event, there *mvccpb.KeyValue, header *pb.ResponseHeader) (*clientv3.TxnResponse, bool, error) {
	known := there == nil || there.CreateRevision <= w.since
	for _, e := range events {
		if !e.IsCreate() {
			continue
		}
		if string(e.Kv.Value) == string(w.done[0].ValueBytes()) {
			header := &pb.ResponseHeader{ClusterId: header.ClusterId, MemberId: header.MemberId, RaftTerm: header.RaftTerm, Revision: e.Kv.ModRevision}
			return &clientv3.TxnResponse{Header: header, Succeeded: true}, true, nil
		}
		known = known || e.Kv.ModRevision == there.CreateRevision
	}
	if !known {
		return nil, false, errDoubt // what is there was created, and etcd does not say how
	}
	return nil, false, nil
}

// histories numbers the streams of histories.
var histories atomic.Int64

// history returns all changes of a key from one revision to another.
func (w *write) history(ctx context.Context, key string, from, to int64) ([]*clientv3.Event, error) {
	if from > to {
		return nil, nil // nothing at all was written; and of a watch of the future etcd tells no progress
	}
	// This watch needs a stream of its own: etcd sends a progress notification to all
	// watches of a stream, also to those that have not started.
	own := fmt.Sprintf("history-%d", histories.Add(1))
	ctx, cancel := context.WithCancel(OwnStream(ctx, own))
	defer cancel()
	changes := w.client.Watch(ctx, key, clientv3.WithRev(from), clientv3.WithCreatedNotify(), clientv3.WithProgressNotify())
	var events []*clientv3.Event
	ask := time.NewTicker(retryPause)
	defer ask.Stop()
	for {
		select {
		case response, ok := <-changes:
			if !ok {
				return nil, context.Cause(ctx)
			}
			if err := response.Err(); err != nil {
				return nil, err
			}
			for _, e := range response.Events {
				if e.Kv.ModRevision <= to {
					events = append(events, e)
				}
			}
			// Progress says that all up to a revision has been sent; so does a change after it.
			if response.Header.Revision >= to && response.IsProgressNotify() ||
				len(response.Events) > 0 && response.Events[len(response.Events)-1].Kv.ModRevision >= to {
				return events, nil
			}
			if response.Created {
				_ = w.client.RequestProgress(ctx)
			}
		case <-ask.C:
			_ = w.client.RequestProgress(ctx) // a lost request is made again
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// unansweredError is that etcd has not answered a write.
type unansweredError struct {
	cause   error
	nothing bool // it is known that the write was not done
}

// Error implements error.
func (e *unansweredError) Error() string {
	if e.nothing {
		return fmt.Sprintf("etcd did not take the write: %v", e.cause)
	}
	return fmt.Sprintf("etcd did not confirm the write: %v", e.cause)
}

// Unwrap returns etcd's own error.
func (e *unansweredError) Unwrap() error { return e.cause }

// unanswered reports whether etcd has not said what became of a request.
func unanswered(err error) bool {
	var known rpctypes.EtcdError
	if errors.As(err, &known) {
		return known.Code() == codes.Unavailable
	}
	return status.Code(err) == codes.Unavailable || dropped(err)
}

// Unanswered reports whether etcd has not answered a request, so that it may answer it when it
// is sent again.
func Unanswered(err error) bool { return isTimeout(err) || unanswered(err) }

// dropped reports whether etcd has not even begun with a request: it has no leader.
func dropped(err error) bool {
	return errors.Is(err, rpctypes.ErrNoLeader) || status.Code(err) == codes.Unknown && strings.Contains(err.Error(), "raft proposal dropped")
}
