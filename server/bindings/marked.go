package bindings

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/server/storage/scan"
)

// readsAtOnce is how many objects one transaction reads; etcd allows 128.
const readsAtOnce = 100

// markedKV reads marks as if the objects were in them. Marks of what the provider may not see are left
// out here, before anything is decoded: errors, conversions and webhooks are the provider's.
type markedKV struct {
	clientv3.KV
	view *View
}

// Get implements clientv3.KV. A page has something if there is more.
func (m markedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	for {
		answer, err := m.KV.Get(ctx, key, opts...)
		op := clientv3.OpGet(key, opts...)
		if err != nil || op.IsCountOnly() || len(answer.Kvs) == 0 {
			return answer, err
		}
		revision, last := revisionOr(op.Rev(), answer.Header.Revision), string(answer.Kvs[len(answer.Kvs)-1].Key)
		if answer.Kvs, err = m.visible(ctx, answer.Kvs); err != nil {
			return nil, err
		}
		if len(answer.Kvs) == 0 && answer.More {
			key, opts = last+"\x00", append(opts[:len(opts):len(opts)], clientv3.WithRange(string(op.RangeBytes())), clientv3.WithRev(revision))
			continue
		}
		answer.Count = countOf(len(answer.Kvs), answer.More)
		if !op.IsKeysOnly() {
			err = m.fill(ctx, answer.Kvs, revision)
		}
		return answer, err
	}
}

// countOf is what an answer says how many there are: no more than one that is not in it, since
// what is hidden must not count.
func countOf(n int, more bool) int64 {
	if more {
		n++
	}
	return int64(n)
}

// visible returns those marks whose objects the provider may see.
func (m markedKV) visible(ctx context.Context, marks []*mvccpb.KeyValue) (some []*mvccpb.KeyValue, err error) {
	for _, kv := range marks {
		seen, err := m.view.seen(ctx, string(kv.Key))
		if err != nil {
			return nil, err
		}
		if seen {
			some = append(some, kv)
		}
	}
	return some, nil
}

func revisionOr(asked, is int64) int64 {
	if asked > 0 {
		return asked
	}
	return is
}

// GetStream implements clientv3.KV.
func (m markedKV) GetStream(ctx context.Context, key string, opts ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	op := clientv3.OpGet(key, opts...)
	if op.IsCountOnly() {
		return m.KV.GetStream(ctx, key, opts...)
	}
	revision := op.Rev()
	if revision == 0 { // a stream names it at its end
		var err error
		if revision, err = scan.Revision(ctx, m.KV, key); err != nil {
			return nil, err
		}
		opts = append(opts, clientv3.WithRev(revision))
	}
	ctx, cancel := context.WithCancel(ctx)
	marks, err := m.KV.GetStream(ctx, key, opts...)
	if err != nil {
		cancel()
		return nil, err
	}
	defer func() {
		cancel()
		for range marks { // the client's goroutine blocks until its last piece is taken
		}
	}()
	// All objects are read before the first piece is passed on: a stream that fails in between could
	// not say so.
	var pieces []clientv3.RangeStreamResponse
	n := 0
	for piece := range marks {
		if err := piece.Err(); err != nil {
			return nil, err
		}
		if piece.Kvs, err = m.visible(ctx, piece.Kvs); err != nil {
			return nil, err
		}
		if !op.IsKeysOnly() {
			if err := m.fill(ctx, piece.Kvs, revision); err != nil {
				return nil, err
			}
		}
		if n += len(piece.Kvs); piece.Header != nil { // the last one
			piece.Count = countOf(n, piece.More)
		} else if len(piece.Kvs) == 0 {
			continue
		}
		pieces = append(pieces, piece)
	}
	filled := make(chan clientv3.RangeStreamResponse, len(pieces))
	for _, piece := range pieces {
		filled <- piece
	}
	close(filled)
	return filled, ctx.Err()
}

// A wanted object is read at a revision into what has its mark.
type wanted struct {
	into     *mvccpb.KeyValue
	revision int64
}

// fill reads the objects of marks, as they were at a revision.
func (m markedKV) fill(ctx context.Context, marks []*mvccpb.KeyValue, revision int64) error {
	all := make([]wanted, len(marks))
	for i, kv := range marks {
		all[i] = wanted{kv, revision}
	}
	return m.read(ctx, all)
}

// read reads objects. A mark without an object, which no write leaves behind, stays empty: as any
// empty value it is left out, and logged.
func (m markedKV) read(ctx context.Context, all []wanted) error {
	for len(all) > 0 {
		some := all[:min(len(all), readsAtOnce)]
		all = all[len(some):]
		ops := make([]clientv3.Op, len(some))
		for i, w := range some {
			key, _ := m.view.of.Object(string(w.into.Key))
			ops[i] = clientv3.OpGet(key, clientv3.WithRev(w.revision))
		}
		answer, err := m.KV.Txn(ctx).Then(ops...).Commit()
		if err != nil {
			return err
		}
		for i, w := range some {
			if found := answer.Responses[i].GetResponseRange().Kvs; len(found) > 0 && found[0].ModRevision == w.into.ModRevision {
				w.into.Value, w.into.CreateRevision, w.into.Version = found[0].Value, found[0].CreateRevision, found[0].Version
			}
		}
	}
	return nil
}

var errExpired = errors.New("the provider sees others than before")

// markedWatcher watches marks as if the objects were in them.
type markedWatcher struct {
	clientv3.Watcher
	kv markedKV
}

// Watch implements clientv3.Watcher. If objects cannot be read any more as they were, or others
// are seen than before, the watch ends as one that etcd has compacted: its client lists again.
func (w markedWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	out := make(chan clientv3.WatchResponse, 1)
	expired := func(revision int64) clientv3.WatchResponse {
		return clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: revision}, Canceled: true, CompactRevision: max(revision, 1)}
	}
	from := clientv3.OpGet(key, opts...).Rev()
	var again <-chan struct{}
	a, err := w.kv.view.members(ctx, w.kv.view.of.Resource(key))
	if err == nil {
		var floor int64
		if floor, again = a.since(); from > 0 && from <= floor {
			err = errExpired
		}
	}
	if err != nil {
		out <- expired(from)
		close(out)
		return out
	}
	ctx, cancel := context.WithCancel(ctx)
	marks := w.Watcher.Watch(ctx, key, opts...)
	go func() {
		defer cancel()
		defer close(out)
		last := from
		for {
			var answer clientv3.WatchResponse
			var ok bool
			select {
			case <-again:
				answer = expired(last)
			case answer, ok = <-marks:
				if !ok {
					return
				}
				last = answer.Header.Revision
				had := len(answer.Events)
				if answer.Events, err = w.fill(ctx, answer.Events); err != nil {
					answer = expired(last)
				} else if had > 0 && len(answer.Events) == 0 {
					continue // an answer without events would say that there are none up to its revision
				}
			}
			select {
			case out <- answer:
			case <-ctx.Done():
				return
			}
			if answer.Canceled {
				return
			}
		}
	}()
	return out
}

// fill reads the objects of those events that the provider may see, and what they were before.
func (w markedWatcher) fill(ctx context.Context, events []*clientv3.Event) (some []*clientv3.Event, err error) {
	var all []wanted
	for _, event := range events {
		seen, err := w.kv.view.seen(ctx, string(event.Kv.Key))
		if err != nil {
			return nil, err
		}
		if !seen {
			continue
		}
		some = append(some, event)
		if event.Type == clientv3.EventTypePut {
			all = append(all, wanted{event.Kv, event.Kv.ModRevision})
		}
		if event.PrevKv != nil {
			all = append(all, wanted{event.PrevKv, event.Kv.ModRevision - 1})
		}
	}
	return some, w.kv.read(ctx, all)
}
