package store

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/etcd3"
)

// Revisions say what the revisions of an etcd are to readers of a part that was in another etcd
// before. Readers must never see a revision twice, nor go back. So the part is given an offset
// when it moves, and what is from before is as if it were compacted.
//
//	etcd      … 41 │ 42    the copy    57 │ 58 …            Offset 1000, Since 1057
//	readers        │ 1042         1057    │ 1058 …
//	               └ not readable: states that never were ┘
type Revisions struct {
	// Offset is added to the revisions of the etcd.
	Offset int64
	// Since is the first revision, to readers, at which the part was whole in this etcd.
	Since int64
}

// shown is a revision of the etcd, as readers see it.
func (r Revisions) shown(revision int64) int64 {
	if revision == 0 {
		return 0 // of what does not exist
	}
	return revision + r.Offset
}

// show has an answer have the revisions that readers see.
func (r Revisions) show(h *pb.ResponseHeader) {
	if h != nil {
		h.Revision = r.shown(h.Revision)
	}
}

func (r Revisions) showKey(kv *mvccpb.KeyValue) {
	if kv != nil {
		kv.CreateRevision, kv.ModRevision = r.shown(kv.CreateRevision), r.shown(kv.ModRevision)
	}
}

func (r Revisions) showRange(answer *pb.RangeResponse) {
	r.show(answer.GetHeader())
	for _, kv := range answer.GetKvs() {
		r.showKey(kv)
	}
}

func (r Revisions) showPut(answer *pb.PutResponse) {
	r.show(answer.GetHeader())
	r.showKey(answer.GetPrevKv())
}

func (r Revisions) showDelete(answer *pb.DeleteRangeResponse) {
	r.show(answer.GetHeader())
	for _, kv := range answer.GetPrevKvs() {
		r.showKey(kv)
	}
}

func (r Revisions) showTxn(answer *pb.TxnResponse) {
	r.show(answer.GetHeader())
	for _, one := range answer.GetResponses() {
		switch {
		case one.GetResponseRange() != nil:
			r.showRange(one.GetResponseRange())
		case one.GetResponsePut() != nil:
			r.showPut(one.GetResponsePut())
		case one.GetResponseDeleteRange() != nil:
			r.showDelete(one.GetResponseDeleteRange())
		case one.GetResponseTxn() != nil:
			r.showTxn(one.GetResponseTxn())
		}
	}
}

// bound is the lowest revision of the etcd that a reader sees as this one or a higher one. 0 stays 0.
func (r Revisions) bound(revision int64) int64 {
	if revision == 0 {
		return 0
	}
	return max(1, revision-r.Offset)
}

// at is the revision of the etcd that a reader wants to read at, or watch from.
func (r Revisions) at(revision int64) (int64, error) {
	if revision > 0 && revision < r.Since {
		return 0, rpctypes.ErrCompacted
	}
	return r.bound(revision), nil
}

// noRevision is one that no key has.
const noRevision = -1

// same is the revision that a key has if readers see this one.
func (r Revisions) same(revision int64) int64 {
	switch {
	case revision == 0:
		return 0
	case revision <= r.Offset:
		return noRevision
	}
	return revision - r.Offset
}

// condition is a condition about revisions of the etcd. A key that does not exist has revision 0 here and there.
func (r Revisions) condition(shown clientv3.Cmp) clientv3.Cmp {
	c := shown.Clone()
	compare := c.GetCompare()
	translate := func(revision int64) int64 {
		switch compare.GetResult() {
		case pb.Compare_LESS:
			return r.bound(revision)
		case pb.Compare_GREATER: // above none is above 0
			return max(0, revision-r.Offset)
		}
		return r.same(revision)
	}
	switch of := compare.GetTargetUnion().(type) {
	case *pb.Compare_ModRevision:
		compare.TargetUnion = &pb.Compare_ModRevision{ModRevision: translate(of.ModRevision)}
	case *pb.Compare_CreateRevision:
		compare.TargetUnion = &pb.Compare_CreateRevision{CreateRevision: translate(of.CreateRevision)}
	}
	return c
}

func (r Revisions) conditions(shown []clientv3.Cmp) []clientv3.Cmp {
	all := make([]clientv3.Cmp, len(shown))
	for i, c := range shown {
		all[i] = r.condition(c)
	}
	return all
}

// operation is an operation with revisions of the etcd.
func (r Revisions) operation(op clientv3.Op) (clientv3.Op, error) {
	switch {
	case op.IsTxn():
		conditions, done, otherwise := op.Txn()
		done, err := r.operations(done)
		if err != nil {
			return op, err
		}
		if otherwise, err = r.operations(otherwise); err != nil {
			return op, err
		}
		return clientv3.OpTxn(r.conditions(conditions), done, otherwise), nil
	case op.IsGet():
		revision, err := r.at(op.Rev())
		if err != nil {
			return op, err
		}
		clientv3.WithRev(revision)(&op)
		clientv3.WithMinModRev(r.bound(op.MinModRev()))(&op)
		clientv3.WithMinCreateRev(r.bound(op.MinCreateRev()))(&op)
		clientv3.WithMaxModRev(r.same(op.MaxModRev()))(&op)
		clientv3.WithMaxCreateRev(r.same(op.MaxCreateRev()))(&op)
	}
	return op, nil
}

func (r Revisions) operations(shown []clientv3.Op) ([]clientv3.Op, error) {
	all := make([]clientv3.Op, len(shown))
	for i, op := range shown {
		var err error
		if all[i], err = r.operation(op); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// asOp is what options make of a read or a watch.
func asOp(key string, opts []clientv3.OpOption) clientv3.Op { return clientv3.OpGet(key, opts...) }

// A movedKV has the revisions that readers of a part see.
type movedKV struct {
	clientv3.KV
	revisions Revisions
}

// Put implements clientv3.KV.
func (m movedKV) Put(ctx context.Context, key, val string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	answer, err := m.KV.Put(ctx, key, val, opts...)
	if err == nil {
		m.revisions.showPut((*pb.PutResponse)(answer))
	}
	return answer, err
}

// Get implements clientv3.KV.
func (m movedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	answer, err := m.Do(ctx, asOp(key, opts))
	return answer.Get(), err
}

// GetStream implements clientv3.KV.
func (m movedKV) GetStream(ctx context.Context, key string, opts ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	op, err := m.revisions.operation(asOp(key, opts))
	if err != nil {
		return nil, err
	}
	pieces, err := m.KV.GetStream(ctx, key, append(opts[:len(opts):len(opts)], clientv3.WithRev(op.Rev()),
		clientv3.WithMinModRev(op.MinModRev()), clientv3.WithMinCreateRev(op.MinCreateRev()),
		clientv3.WithMaxModRev(op.MaxModRev()), clientv3.WithMaxCreateRev(op.MaxCreateRev()))...)
	if err != nil {
		return nil, err
	}
	return mapPieces(pieces, func(piece clientv3.RangeStreamResponse) { m.revisions.showRange(piece.RangeResponse) }), nil
}

// Delete implements clientv3.KV.
func (m movedKV) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	answer, err := m.KV.Delete(ctx, key, opts...)
	if err == nil {
		m.revisions.showDelete((*pb.DeleteRangeResponse)(answer))
	}
	return answer, err
}

// Do implements clientv3.KV.
func (m movedKV) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	op, err := m.revisions.operation(op)
	if err != nil {
		return clientv3.OpResponse{}, err
	}
	answer, err := m.KV.Do(ctx, op)
	if err != nil {
		return answer, err
	}
	switch {
	case answer.Get() != nil:
		m.revisions.showRange((*pb.RangeResponse)(answer.Get()))
	case answer.Put() != nil:
		m.revisions.showPut((*pb.PutResponse)(answer.Put()))
	case answer.Del() != nil:
		m.revisions.showDelete((*pb.DeleteRangeResponse)(answer.Del()))
	case answer.Txn() != nil:
		m.revisions.showTxn((*pb.TxnResponse)(answer.Txn()))
	}
	return answer, nil
}

// Txn implements clientv3.KV.
func (m movedKV) Txn(ctx context.Context) clientv3.Txn {
	return &movedTxn{inner: m.KV.Txn(ctx), revisions: m.revisions}
}

type movedTxn struct {
	inner     clientv3.Txn
	revisions Revisions
	err       error
}

// If implements clientv3.Txn.
func (t *movedTxn) If(cs ...clientv3.Cmp) clientv3.Txn {
	t.inner = t.inner.If(t.revisions.conditions(cs)...)
	return t
}

func (t *movedTxn) operations(ops []clientv3.Op) []clientv3.Op {
	translated, err := t.revisions.operations(ops)
	if err != nil {
		t.err = err
	}
	return translated
}

// Then implements clientv3.Txn.
func (t *movedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.inner = t.inner.Then(t.operations(ops)...)
	return t
}

// Else implements clientv3.Txn.
func (t *movedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.inner = t.inner.Else(t.operations(ops)...)
	return t
}

// Commit implements clientv3.Txn.
func (t *movedTxn) Commit() (*clientv3.TxnResponse, error) {
	if t.err != nil {
		return nil, t.err
	}
	answer, err := t.inner.Commit()
	if err == nil {
		t.revisions.showTxn((*pb.TxnResponse)(answer))
	}
	return answer, err
}

// A movedCompactor says how far etcd is compacted, as readers of a part see it.
type movedCompactor struct {
	etcd3.Compactor
	revisions Revisions
}

// CompactRevision implements etcd3.Compactor.
func (c movedCompactor) CompactRevision() int64 {
	return c.revisions.shown(c.Compactor.CompactRevision())
}
