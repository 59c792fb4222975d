package store

import (
	"context"
	"path"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Routed returns a client for reading that finds what is in some folders, given without the
// prefix, in other backends. There it reads what is the newest: a revision of one etcd means
// nothing to another. Everything else, writes and watches among it, is the backend's own.
func (b *Backend) Routed(elsewhere map[string]*Backend) *clientv3.Client {
	if len(elsewhere) == 0 {
		return b.Client()
	}
	own := b.Client()
	client := clientv3.NewCtxClient(own.Ctx())
	client.Cluster, client.Lease, client.Watcher, client.Auth, client.Maintenance = own.Cluster, own.Lease, own.Watcher, own.Auth, own.Maintenance
	routed := routedKV{KV: own.KV}
	for folder, other := range elsewhere {
		routed.routes = append(routed.routes, route{path.Join("/", b.config.Prefix, folder) + "/", other.Client().KV})
	}
	client.KV = routed
	return client
}

type route struct {
	folder string
	kv     clientv3.KV
}

// routedKV is a KV that reads some folders elsewhere.
type routedKV struct {
	clientv3.KV
	routes []route
}

// of returns the KV that has a key, and whether it is another one.
func (r routedKV) of(key string) (clientv3.KV, bool) {
	for _, one := range r.routes {
		if strings.HasPrefix(key, one.folder) {
			return one.kv, true
		}
	}
	return r.KV, false
}

// newest drops the revision of a read.
func newest(opts []clientv3.OpOption) []clientv3.OpOption {
	return append(slices.Clip(opts), clientv3.WithRev(0))
}

// Get implements clientv3.KV.
func (r routedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if kv, other := r.of(key); other {
		return kv.Get(ctx, key, newest(opts)...)
	}
	return r.KV.Get(ctx, key, opts...)
}

// GetStream implements clientv3.KV.
func (r routedKV) GetStream(ctx context.Context, key string, opts ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	if kv, other := r.of(key); other {
		return kv.GetStream(ctx, key, newest(opts)...)
	}
	return r.KV.GetStream(ctx, key, opts...)
}

// Txn implements clientv3.KV.
func (r routedKV) Txn(ctx context.Context) clientv3.Txn {
	return &routedTxn{Txn: r.KV.Txn(ctx), ctx: ctx, kv: r}
}

// routedTxn divides a transaction that only reads.
type routedTxn struct {
	clientv3.Txn
	ctx    context.Context
	kv     routedKV
	bound  bool // it has conditions
	reads  []clientv3.Op
	writes bool
}

// If implements clientv3.Txn.
func (t *routedTxn) If(conditions ...clientv3.Cmp) clientv3.Txn {
	t.bound = t.bound || len(conditions) > 0
	t.Txn = t.Txn.If(conditions...)
	return t
}

// Then implements clientv3.Txn.
func (t *routedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.reads = ops
	t.writes = slices.ContainsFunc(ops, func(op clientv3.Op) bool { return !op.IsGet() })
	return t
}

// Else implements clientv3.Txn.
func (t *routedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Else(ops...)
	return t
}

// Commit implements clientv3.Txn.
func (t *routedTxn) Commit() (*clientv3.TxnResponse, error) {
	var own []clientv3.Op
	found := make([]*pb.ResponseOp, len(t.reads))
	for i, op := range t.reads {
		kv, other := t.kv.of(string(op.KeyBytes()))
		if !other || t.bound || t.writes {
			own = append(own, op)
			continue
		}
		newest := clientv3.WithRev(0)
		newest(&op)
		answer, err := kv.Do(t.ctx, op)
		if err != nil {
			return nil, err
		}
		found[i] = &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: (*pb.RangeResponse)(answer.Get())}}
	}
	answer, err := t.Txn.Then(own...).Commit()
	if err != nil || len(own) == len(t.reads) {
		return answer, err
	}
	next := 0
	for i := range found {
		if found[i] == nil {
			found[i], next = answer.Responses[next], next+1
		}
	}
	answer.Responses = found
	return answer, nil
}
