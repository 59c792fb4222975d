package meter

import (
	"bytes"
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// counted is a KV that tells a meter what its writes change.
type counted struct {
	clientv3.KV
	meter *Meter
}

// Put implements clientv3.KV.
func (c counted) Put(ctx context.Context, key, val string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	answer, err := c.Do(ctx, clientv3.OpPut(key, val, opts...))
	return answer.Put(), err
}

// Delete implements clientv3.KV.
func (c counted) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	answer, err := c.Do(ctx, clientv3.OpDelete(key, opts...))
	return answer.Del(), err
}

// Do implements clientv3.KV.
func (c counted) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	if op.IsGet() {
		return c.KV.Do(ctx, op)
	}
	if op.IsTxn() {
		conditions, then, otherwise := op.Txn()
		answer, err := c.Txn(ctx).If(conditions...).Then(then...).Else(otherwise...).Commit()
		if err != nil {
			return clientv3.OpResponse{}, err
		}
		return answer.OpResponse(), nil
	}
	ops := []clientv3.Op{op}
	if err := c.before(ctx, ops, nil); err != nil {
		return clientv3.OpResponse{}, err
	}
	answer, err := c.KV.Do(ctx, ops[0])
	if err == nil {
		switch {
		case op.IsPut():
			c.meter.grown(ctx, put(op, (*pb.PutResponse)(answer.Put())))
		case op.IsDelete():
			c.meter.grown(ctx, deleted((*pb.DeleteRangeResponse)(answer.Del())))
		}
	}
	return answer, err
}

// Txn implements clientv3.KV.
func (c counted) Txn(ctx context.Context) clientv3.Txn { return &txn{ctx: ctx, kv: c} }

// before has the answers of writes say what was there before, and refuses what is too much. The writes are done if the
// conditions hold.
func (c counted) before(ctx context.Context, ops []clientv3.Op, conditions []clientv3.Cmp) error {
	var puts []clientv3.Op
	previous := clientv3.WithPrevKV()
	for i := range ops {
		if ops[i].IsPut() || ops[i].IsDelete() {
			previous(&ops[i])
		}
		if ops[i].IsPut() {
			puts = append(puts, ops[i])
		}
	}
	if len(puts) == 0 {
		return nil
	}
	return c.meter.allow(ctx, puts, conditions)
}

// creates reports whether conditions say of each key that is written that it does not exist.
func creates(puts []clientv3.Op, conditions []clientv3.Cmp) bool {
	for _, op := range puts {
		if !slices.ContainsFunc(conditions, func(c clientv3.Cmp) bool { return absent(c, op.KeyBytes()) }) {
			return false
		}
	}
	return true
}

// absent reports whether a condition says of a key that it does not exist.
func absent(condition clientv3.Cmp, key []byte) bool {
	c := condition.GetCompare()
	if c.Result != pb.Compare_EQUAL || len(c.RangeEnd) > 0 || !bytes.Equal(c.Key, key) {
		return false
	}
	switch u := c.TargetUnion.(type) {
	case *pb.Compare_ModRevision:
		return u.ModRevision == 0
	case *pb.Compare_CreateRevision:
		return u.CreateRevision == 0
	case *pb.Compare_Version:
		return u.Version == 0
	}
	return false
}

// put is by how much a put has made the part larger.
func put(op clientv3.Op, answer *pb.PutResponse) Usage {
	by := Usage{1, int64(len(op.KeyBytes()) + len(op.ValueBytes()))}
	if kv := answer.GetPrevKv(); kv != nil {
		by = by.minus(Usage{1, size(kv)})
	}
	return by
}

// deleted is by how much a delete has made the part larger: less than nothing.
func deleted(answer *pb.DeleteRangeResponse) (by Usage) {
	for _, kv := range answer.GetPrevKvs() {
		by = by.minus(Usage{1, size(kv)})
	}
	return by
}

type txn struct {
	ctx             context.Context
	kv              counted
	conditions      []clientv3.Cmp
	then, otherwise []clientv3.Op
}

// If implements clientv3.Txn.
func (t *txn) If(conditions ...clientv3.Cmp) clientv3.Txn { t.conditions = conditions; return t }

// Then implements clientv3.Txn.
func (t *txn) Then(ops ...clientv3.Op) clientv3.Txn { t.then = append(t.then, ops...); return t }

// Else implements clientv3.Txn.
func (t *txn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.otherwise = append(t.otherwise, ops...)
	return t
}

// Commit implements clientv3.Txn. The conditions are looked at by etcd: a write that would be
// refused for its size is refused, also if a condition does not hold.
func (t *txn) Commit() (*clientv3.TxnResponse, error) {
	if err := t.kv.before(t.ctx, t.then, t.conditions); err != nil {
		return nil, err
	}
	if err := t.kv.before(t.ctx, t.otherwise, nil); err != nil {
		return nil, err
	}
	answer, err := t.kv.KV.Txn(t.ctx).If(t.conditions...).Then(t.then...).Else(t.otherwise...).Commit()
	if err != nil {
		return answer, err
	}
	ops := t.then
	if !answer.Succeeded {
		ops = t.otherwise
	}
	var by Usage
	for i, op := range ops {
		switch {
		case op.IsPut():
			by = by.plus(put(op, answer.Responses[i].GetResponsePut()))
		case op.IsDelete():
			by = by.plus(deleted(answer.Responses[i].GetResponseDeleteRange()))
		}
	}
	if by != (Usage{}) {
		t.kv.meter.grown(t.ctx, by)
	}
	return answer, nil
}
