package store

import (
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/value"
)

// ErrClosed is the error of what needs a part of etcd whose guard is gone.
var ErrClosed error = NothingWritten("this part of etcd is closed, because the tenant is being deleted or moved")

// An Addition is what a [Rule] adds to a transaction that writes.
type Addition struct {
	If   []clientv3.Cmp
	Then []clientv3.Op
	// Else are reads for the case that a condition of the transaction does not hold, and Why
	// returns the error of the write for their answers: nil if it was another condition.
	Else []clientv3.Op
	Why  func(answers []*pb.ResponseOp) error
	// Refused, if not nil, is the error of the write, which is not sent.
	Refused error
}

// A Rule returns what to add to a transaction with some operations.
type Rule func(done []clientv3.Op) Addition

// Part is a part of etcd that moves between etcds as a whole.
type Part struct {
	// Prefix is what its keys begin with.
	Prefix string
	// Guard is a key, and Holder its value while the part is here; if that is empty, the guard may have
	// any value. Nothing is written, and nothing is read that must not be stale, while the guard has
	// another value or is gone. A value that the guard has lost never returns.
	Guard, Holder string
	// Revisions say what revisions of the etcd are to readers of the part.
	Revisions Revisions
	// Rule, if not nil, adds to what is written, with the revisions of the etcd.
	Rule Rule
	// Wrap, if not nil, wraps what reads and writes under the guard, with the revisions of the etcd. It does
	// not see what the rule has added.
	Wrap func(clientv3.KV) clientv3.KV
	// Watcher and Transformers, if not nil, are used in place of those of the whole. The watcher must end
	// with the guard.
	Watcher      clientv3.Watcher
	Transformers value.ResourceTransformers
	// Lost, if not nil, is called when the guard was found to be gone, perhaps more than once.
	Lost func()
}

// Within returns a backend for a part. It shares the connection, the limits of watches and the
// compactor, and costs a few kilobytes.
//
// When the guard is gone, nothing more is written below the prefix by any process, however
// late a write arrives. Writes and reads then fail with ErrClosed, and watches end; they have
// told of nothing that happened after the guard had gone.
func (b *Backend) Within(p Part) *Backend {
	config := b.config
	config.Prefix = p.Prefix
	own := b.client.Client
	g := newGuard(b.plain, p)
	part := clientv3.NewCtxClient(own.Ctx())
	part.Cluster, part.Lease, part.Auth, part.Maintenance = own.Cluster, own.Lease, own.Auth, own.Maintenance
	part.KV = guardedKV{b.plain, g, p.Rule}
	if p.Wrap != nil {
		part.KV = p.Wrap(part.KV)
	}
	if p.Transformers != nil {
		config.Transformers = p.Transformers
	}
	compactor := b.compactor
	if p.Revisions.Offset != 0 || p.Revisions.Since != 0 {
		part.KV = movedKV{part.KV, p.Revisions}
		if compactor != nil {
			compactor = movedCompactor{compactor, p.Revisions}
		}
	}
	if part.Watcher = p.Watcher; p.Watcher == nil {
		part.Watcher = guardedWatcher{own.Watcher, g, p.Revisions}
	}
	client := &kubernetes.Client{Client: part}
	client.Kubernetes = client
	client.KV = etcd3.NewETCDLatencyTracker(pagingKV{newRetryingKV(part, p.Prefix), b.streams})
	within := &Backend{
		config: config, client: client, plain: b.plain, compactor: compactor, stop: func() {}, parent: b, engine: b.engine, bound: b.bound,
		storages: map[*Spec]destroyFunc{}, stopping: map[*Spec]<-chan struct{}{}, limits: b.limits, links: b.links, streams: b.streams,
	}
	within.unreadable.limit = b.unreadable.limit
	return within
}

// A guardedKV reads and writes only while the guard has its value, and writes by a rule.
type guardedKV struct {
	clientv3.KV
	guard *guard
	rule  Rule
}

// Put implements clientv3.KV.
func (g guardedKV) Put(ctx context.Context, key, val string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	resp, err := g.Do(ctx, clientv3.OpPut(key, val, opts...))
	return resp.Put(), err
}

// Get implements clientv3.KV.
func (g guardedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	resp, err := g.Do(ctx, clientv3.OpGet(key, opts...))
	return resp.Get(), err
}

// GetStream implements clientv3.KV. A transaction has no streams: the guard is read beside it. A client may
// ask for a revision that it has seen in another etcd: here it may be one at which the part is being
// emptied.
func (g guardedKV) GetStream(ctx context.Context, key string, opts ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	revision := asOp(key, opts).Rev()
	if revision != 0 {
		if err := g.guard.confirm(ctx, revision); err != nil {
			return nil, err
		}
		return g.streamAt(ctx, revision, key, opts)
	}
	first, since, revision, err := g.newest(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	if err := first.Err(); err != nil && !unanswered(err) {
		return piecesOf([]clientv3.RangeStreamResponse{first}), nil
	}
	if whole := first.RangeResponse != nil && first.Header != nil; whole && since <= first.Header.Revision && first.Header.Revision <= revision {
		return piecesOf([]clientv3.RangeStreamResponse{first}), nil
	}
	return g.streamAt(ctx, revision, key, append(opts[:len(opts):len(opts)], clientv3.WithRev(revision)))
}

// newest reads the first piece of a stream at the newest revision, and the guard at the same time. If the
// piece is the last one, too, it has its revision. The guard was there from since to revision. There may be no
// piece: etcd's client tries the read of the guard again while a leader is elected, but no stream.
func (g guardedKV) newest(ctx context.Context, key string, opts []clientv3.OpOption) (first clientv3.RangeStreamResponse, since, revision int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	pieces, err := g.KV.GetStream(ctx, key, opts...)
	if err != nil {
		pieces = piecesOf(nil)
		if !unanswered(err) {
			cancel()
			return first, 0, 0, err
		}
	}
	defer func() {
		cancel()
		for range pieces { // the client's goroutine blocks until its last piece is taken
		}
	}()
	if since, revision, err = g.guard.read(ctx); err != nil {
		return first, 0, 0, err
	}
	return <-pieces, since, revision, nil
}

// streamAt streams what was there at a revision, which the options have.
func (g guardedKV) streamAt(ctx context.Context, revision int64, key string, opts []clientv3.OpOption) (clientv3.GetStreamChan, error) {
	pieces, err := g.KV.GetStream(ctx, key, opts...)
	if err != nil {
		return nil, err
	}
	return mapPieces(pieces, func(piece clientv3.RangeStreamResponse) {
		if piece.Header != nil { // it has a revision at which the guard may be gone
			piece.Header.Revision = revision
		}
	}), nil
}

// mapPieces changes the pieces of a stream on their way.
func mapPieces(pieces clientv3.GetStreamChan, change func(clientv3.RangeStreamResponse)) clientv3.GetStreamChan {
	changed := make(chan clientv3.RangeStreamResponse, 1)
	go func() {
		defer close(changed)
		for piece := range pieces {
			if piece.RangeResponse != nil {
				change(piece)
			}
			changed <- piece // the reader takes all, as it must of etcd's client
		}
	}()
	return changed
}

// Delete implements clientv3.KV.
func (g guardedKV) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	resp, err := g.Do(ctx, clientv3.OpDelete(key, opts...))
	return resp.Del(), err
}

// Do implements clientv3.KV.
func (g guardedKV) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	switch {
	case op.IsGet() && op.IsSerializable(): // its reader takes what is stale, and no revision
		return g.KV.Do(ctx, op)
	case op.IsTxn():
		conditions, done, otherwise := op.Txn()
		resp, err := g.Txn(ctx).If(conditions...).Then(done...).Else(otherwise...).Commit()
		if err != nil {
			return clientv3.OpResponse{}, err
		}
		return resp.OpResponse(), nil
	}
	resp, err := g.Txn(ctx).Then(op).Commit()
	if err != nil {
		return clientv3.OpResponse{}, err
	}
	switch {
	case op.IsGet():
		got := (*clientv3.GetResponse)(resp.Responses[0].GetResponseRange())
		got.Header = resp.Header
		return got.OpResponse(), nil
	case op.IsPut():
		put := (*clientv3.PutResponse)(resp.Responses[0].GetResponsePut())
		put.Header = resp.Header
		return put.OpResponse(), nil
	}
	deleted := (*clientv3.DeleteResponse)(resp.Responses[0].GetResponseDeleteRange())
	deleted.Header = resp.Header
	return deleted.OpResponse(), nil
}

// Txn implements clientv3.KV.
func (g guardedKV) Txn(ctx context.Context) clientv3.Txn { return &guardedTxn{ctx: ctx, kv: g} }

type guardedTxn struct {
	ctx             context.Context
	kv              guardedKV
	conditions      []clientv3.Cmp
	done, otherwise []clientv3.Op
}

// If implements clientv3.Txn.
func (t *guardedTxn) If(cs ...clientv3.Cmp) clientv3.Txn { t.conditions = cs; return t }

// Then implements clientv3.Txn.
func (t *guardedTxn) Then(ops ...clientv3.Op) clientv3.Txn { t.done = ops; return t }

// Else implements clientv3.Txn.
func (t *guardedTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.otherwise = ops; return t }

// Commit implements clientv3.Txn. If the condition of the guard or of the rule does not hold, the error is
// theirs. The answer has what the transaction asked for, without what they have added.
func (t *guardedTxn) Commit() (*clientv3.TxnResponse, error) {
	g := t.kv.guard
	var more Addition
	if t.kv.rule != nil {
		if more = t.kv.rule(t.done); more.Refused != nil {
			return nil, more.Refused
		}
	}
	conditions := slices.Concat(t.conditions, []clientv3.Cmp{g.held()}, more.If)
	done := slices.Concat(t.done, more.Then)
	otherwise := slices.Concat(t.otherwise, []clientv3.Op{clientv3.OpGet(g.key)}, more.Else)
	commit := func() (*clientv3.TxnResponse, error) {
		return t.kv.KV.Txn(t.ctx).If(conditions...).Then(done...).Else(otherwise...).Commit()
	}
	var resp *clientv3.TxnResponse
	var err error
	if reads(done) && reads(otherwise) {
		resp, err = repeated(t.ctx, commit)
	} else {
		resp, err = commit()
	}
	if err != nil {
		return nil, err
	}
	if resp.Succeeded {
		resp.Responses = resp.Responses[:len(t.done)]
	} else {
		asked := len(t.otherwise)
		if !g.is(resp.Responses[asked].GetResponseRange().Kvs) {
			return nil, g.gone()
		}
		if more.Why != nil {
			if err := more.Why(resp.Responses[asked+1:]); err != nil {
				return nil, err
			}
		}
		resp.Responses = resp.Responses[:asked]
	}
	g.note(resp.Header.Revision)
	return resp, nil
}

// reads reports whether operations write nothing.
func reads(ops []clientv3.Op) bool {
	for _, op := range ops {
		if !op.IsGet() {
			return false
		}
	}
	return true
}
