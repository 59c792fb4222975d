package store

import (
	"context"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A guard is the key that has a certain value while a part of etcd is there.
//
// What a watch tells may have happened after the guard had gone: the part was emptied, or it
// returned with other revisions. So a watch passes on what is known to have happened under the guard:
//
//	a change of a key that was there    cannot happen otherwise: to empty the part deletes keys, to fill it creates them
//	a creation, a deletion, the first   the guard is looked at again, unless an answer has shown it at a later revision
//	progress                            up to the latest revision that an answer has shown
type guard struct {
	kv          clientv3.KV // without conditions
	key, holder string
	lost        func()
	known       atomic.Int64  // the latest revision at which the guard was seen
	reading     chan struct{} // has a place for the caller that reads
}

func newGuard(kv clientv3.KV, p Part) *guard {
	return &guard{kv: kv, key: p.Guard, holder: p.Holder, lost: p.Lost, reading: make(chan struct{}, 1)}
}

// held is the condition that the part is there.
func (g *guard) held() clientv3.Cmp {
	if g.holder == "" {
		return clientv3.Compare(clientv3.CreateRevision(g.key), ">", 0)
	}
	return clientv3.Compare(clientv3.Value(g.key), "=", g.holder)
}

// is reports whether what was read of the key is the guard.
func (g *guard) is(kvs []*mvccpb.KeyValue) bool {
	return len(kvs) > 0 && (g.holder == "" || string(kvs[0].Value) == g.holder)
}

// gone notes that the guard is gone.
func (g *guard) gone() error {
	if g.lost != nil {
		g.lost()
	}
	return ErrClosed
}

// note remembers that the guard was there at a revision.
func (g *guard) note(revision int64) {
	for before := g.known.Load(); revision > before && !g.known.CompareAndSwap(before, revision); before = g.known.Load() {
	}
}

// read returns a revision at which the guard was there, and which has all that was written
// before the call. since is from when on it was there with the same value.
func (g *guard) read(ctx context.Context) (since, revision int64, err error) {
	found, err := g.kv.Get(ctx, g.key)
	if err != nil {
		return 0, 0, err
	}
	if !g.is(found.Kvs) {
		return 0, 0, g.gone()
	}
	g.note(found.Header.Revision)
	return found.Kvs[0].ModRevision, found.Header.Revision, nil
}

// confirm returns nil if the guard was there at a revision that etcd has told of. One caller
// reads for all who wait.
func (g *guard) confirm(ctx context.Context, revision int64) error {
	if g.known.Load() >= revision {
		return nil
	}
	select {
	case g.reading <- struct{}{}:
		defer func() { <-g.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if g.known.Load() >= revision {
		return nil
	}
	_, _, err := g.read(ctx)
	return err
}

// repeatFor is for how long a read is tried again that no member of etcd has answered. etcd's client does the same with
// single reads, and with a transaction only if it has not been sent.
const repeatFor, repeatPause = 2500 * time.Millisecond, 25 * time.Millisecond

// repeated tries a transaction that only reads until a member has answered.
func repeated(ctx context.Context, commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
	for end := time.Now().Add(repeatFor); ; {
		resp, err := commit()
		if err == nil || !unanswered(err) || time.Now().After(end) {
			return resp, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(repeatPause):
		}
	}
}
