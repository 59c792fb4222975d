package store

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// confirmPause is how long a watch waits before it asks again whether the guard is there.
const confirmPause = 100 * time.Millisecond

// A guardedWatcher tells of what has happened under a guard, with the revisions that readers
// of the part see.
type guardedWatcher struct {
	clientv3.Watcher
	guard     *guard
	revisions Revisions
}

// Watch implements clientv3.Watcher. It ends when the guard is gone.
func (w guardedWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	out := make(chan clientv3.WatchResponse)
	if from := asOp(key, opts).Rev(); from > 0 {
		// What is watched from a revision is to follow the state before it.
		if from <= w.revisions.Since {
			early := make(chan clientv3.WatchResponse, 1)
			early <- clientv3.WatchResponse{Canceled: true, CompactRevision: w.revisions.Since + 1}
			close(early)
			return early
		}
		opts = append(opts[:len(opts):len(opts)], clientv3.WithRev(w.revisions.bound(from)))
	}
	ctx, cancel := context.WithCancel(ctx)
	in := w.Watcher.Watch(ctx, key, opts...)
	go func() {
		defer close(out)
		defer func() {
			cancel()
			for range in { // the client's goroutine must not wait for a reader
			}
		}()
		var passed int64
		for answer := range in {
			if !w.pass(ctx, &answer, &passed) {
				continue
			}
			if answer.Header == nil && answer.Err() == nil {
				return
			}
			select {
			case out <- answer:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// pass makes an answer one for readers. It reports whether there is something to pass on; an answer
// without header or error ends the watch. passed is the highest revision that was passed on.
func (w guardedWatcher) pass(ctx context.Context, answer *clientv3.WatchResponse, passed *int64) bool {
	if h := answer.Header; h != nil { // of progress, it is that of all watches of the stream
		answer.Header = &pb.ResponseHeader{ClusterId: h.ClusterId, MemberId: h.MemberId, Revision: h.Revision, RaftTerm: h.RaftTerm}
	}
	switch {
	case answer.Err() != nil:
		answer.CompactRevision = w.revisions.shown(answer.CompactRevision)
	case answer.IsProgressNotify():
		revision := min(answer.Header.Revision, max(*passed, w.guard.known.Load()))
		if revision < *passed || revision == 0 {
			return false
		}
		*passed, answer.Header.Revision = revision, revision
	case len(answer.Events) > 0:
		if !w.confirmed(ctx, answer.Events, *passed == 0) {
			*answer = clientv3.WatchResponse{}
			return true
		}
		*passed = answer.Events[len(answer.Events)-1].Kv.ModRevision
		answer.Header.Revision = *passed
		w.guard.note(*passed)
	}
	w.revisions.show(answer.Header)
	for _, event := range answer.Events {
		w.revisions.showKey(event.Kv)
		w.revisions.showKey(event.PrevKv)
	}
	return true
}

// confirmed reports whether events have happened under the guard. It waits until etcd says so. The first
// events of a watch are in doubt, whatever they are.
func (w guardedWatcher) confirmed(ctx context.Context, events []*clientv3.Event, first bool) bool {
	var doubtful int64
	for _, event := range events {
		if first || event.Type == clientv3.EventTypeDelete || event.IsCreate() {
			doubtful = event.Kv.ModRevision
		}
	}
	for doubtful > 0 {
		err := w.guard.confirm(ctx, doubtful)
		if err == nil {
			return true
		}
		if errors.Is(err, ErrClosed) || ctx.Err() != nil {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(confirmPause):
		}
	}
	return true
}
