package store

import (
	"context"
	"errors"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A steady KV carries writes over the loss of a member and the election of another
// leader. etcd's client tries reads again by itself, and writes only if they were
// never sent: it cannot know whether they were done. Ours can be tried again, since
// all of them are of one key on the condition that it is at a revision.
//
//	write at r ── no answer ──▶ the same again ─┬ done: the first had not been, and never will be
//	                                            └ the key is not at r any more: by the first, or by somebody else
//
// In the second case a creation is recognised by its bytes, which have a UID. What
// became of any other write is not known: whoever asked is told so by the error, as
// without this. To take equal bytes for one's own would give one thing to two who
// compete for it, and to report a conflict would have a patch applied twice.
type steady struct{ clientv3.KV }

// How long, and how often, a write is tried again. An election takes a second or two.
const (
	steadyFor   = 20 * time.Second
	steadyPause = 50 * time.Millisecond
)

// Txn implements clientv3.KV.
func (s steady) Txn(ctx context.Context) clientv3.Txn { return &steadyTxn{ctx: ctx, kv: s.KV} }

type steadyTxn struct {
	ctx             context.Context
	kv              clientv3.KV
	conditions      []clientv3.Cmp
	done, otherwise []clientv3.Op
}

// If implements clientv3.Txn.
func (t *steadyTxn) If(cs ...clientv3.Cmp) clientv3.Txn { t.conditions = cs; return t }

// Then implements clientv3.Txn.
func (t *steadyTxn) Then(ops ...clientv3.Op) clientv3.Txn { t.done = ops; return t }

// Else implements clientv3.Txn.
func (t *steadyTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.otherwise = ops; return t }

// Commit implements clientv3.Txn.
func (t *steadyTxn) Commit() (*clientv3.TxnResponse, error) {
	resp, err := t.once()
	if err == nil || !t.guarded() || !unanswered(err) {
		return resp, err
	}
	first, doubt := err, false
	for end := time.Now().Add(steadyFor); unanswered(err) && time.Now().Before(end); {
		doubt = doubt || !dropped(err)
		select {
		case <-t.ctx.Done():
			return nil, first
		case <-time.After(steadyPause):
		}
		resp, err = t.once()
	}
	if err == nil && !resp.Succeeded && doubt {
		return t.recognise(resp, first)
	}
	return resp, err
}

func (t *steadyTxn) once() (*clientv3.TxnResponse, error) {
	return t.kv.Txn(t.ctx).If(t.conditions...).Then(t.done...).Else(t.otherwise...).Commit()
}

// guarded reports whether the transaction writes one key on the condition that it is
// at a revision: only such can be tried again.
func (t *steadyTxn) guarded() bool {
	if len(t.conditions) != 1 || len(t.done) != 1 {
		return false
	}
	c, op := t.conditions[0].GetCompare(), t.done[0]
	return c.GetTarget() == pb.Compare_MOD && c.GetResult() == pb.Compare_EQUAL && string(c.GetKey()) == string(op.KeyBytes()) && (op.IsPut() || op.IsDelete())
}

// recognise finds out whether a key is not at its revision any more because an
// attempt that was not answered has been done, and returns the error of that if it
// cannot be known.
func (t *steadyTxn) recognise(resp *clientv3.TxnResponse, doubt error) (*clientv3.TxnResponse, error) {
	op := t.done[0]
	if t.conditions[0].GetCompare().GetModRevision() != 0 || !op.IsPut() {
		return nil, doubt
	}
	now, err := t.kv.Get(t.ctx, string(op.KeyBytes()))
	switch {
	case err != nil:
		return nil, doubt
	case len(now.Kvs) == 0 || now.Kvs[0].Version > 1:
		return nil, doubt // it may have been ours before
	case string(now.Kvs[0].Value) == string(op.ValueBytes()):
		resp.Header.Revision = now.Kvs[0].ModRevision
		resp.Succeeded, resp.Responses = true, nil
	}
	return resp, nil
}

// unanswered reports whether etcd has not said what became of a request.
func unanswered(err error) bool {
	var known rpctypes.EtcdError
	if errors.As(err, &known) {
		return known.Code() == codes.Unavailable
	}
	return status.Code(err) == codes.Unavailable || dropped(err)
}

// dropped reports whether etcd has not even begun with a request: nobody leads.
func dropped(err error) bool {
	return errors.Is(err, rpctypes.ErrNoLeader) || status.Code(err) == codes.Unknown && strings.Contains(err.Error(), "raft proposal dropped")
}
