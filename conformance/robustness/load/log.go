package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness/environment"
	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// etcdLog follows etcd itself: all keys of the harness's group.
type etcdLog struct {
	environment *environment.Environment
	mu          sync.Mutex
	list        []history.Write
	err         error
	seen        int64           // all up to this revision was read
	compacted   int64           // up to which etcd had compacted its log when it refused to show it
	end         bool            // the mark was seen
	mark        string          // key whose write ends the log
	last        int64           // revision of the mark
	from        int64           // revision at which it begins
	missed      []history.Write // what the watch of the run has not shown, if it is read again
}

// logPause is between two looks at whether the log has ended.
const logPause = 2 * time.Millisecond

// groupPrefix is where the harness's custom resources are.
const groupPrefix = environment.Prefix + "/" + Group + "/"

// follow reads until the mark, or until ctx ends. It is on no link, and goes on after etcd was away.
func (l *etcdLog) follow(ctx context.Context, from int64) {
	for ctx.Err() == nil && !l.ended() {
		watching, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		for resp := range l.environment.Etcd.Watch(watching, groupPrefix, clientv3.WithPrefix(), clientv3.WithRev(from), clientv3.WithPrevKV()) {
			if err := resp.Err(); err != nil {
				if resp.CompactRevision != 0 {
					l.fail(resp.CompactRevision, fmt.Errorf("etcd's log was compacted at %d before it was read from %d", resp.CompactRevision, from))
				}
				break
			}
			for _, e := range resp.Events {
				l.add(e)
				from = e.Kv.ModRevision + 1
			}
			if resp.IsProgressNotify() {
				l.reach(resp.Header.Revision)
			}
			if l.ended() {
				break
			}
		}
		cancel()
		if !l.ended() {
			launch.Pause(ctx, 50*time.Millisecond)
		}
	}
}

func (l *etcdLog) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end || l.err != nil
}

// reach notes that all up to a revision was read. The lock is not held.
func (l *etcdLog) reach(revision int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = max(l.seen, revision)
}

// progress returns the revision up to which all was read, and gives etcd a moment to say that this is now.
func (l *etcdLog) progress(ctx context.Context) int64 {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if l.environment.Engine.Kine() {
		// Kine may say this before it has sent what was before: only what has arrived counts.
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.seen
	}
	now, err := l.environment.Revision(ctx)
	if err == nil {
		err = l.environment.Etcd.RequestProgress(clientv3.WithRequireLeader(ctx))
	}
	for {
		l.mu.Lock()
		seen := l.seen
		l.mu.Unlock()
		if seen >= now || err != nil || ctx.Err() != nil {
			return seen
		}
		launch.Pause(ctx, 5*time.Millisecond)
	}
}

func (l *etcdLog) fail(compacted int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.compacted, l.err = compacted, err
}

func (l *etcdLog) add(e *clientv3.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := string(e.Kv.Key)
	l.seen = max(l.seen, e.Kv.ModRevision-1) // more of the same transaction may come
	if key == l.mark {
		l.end, l.last = true, e.Kv.ModRevision
		return
	}
	w := history.Write{
		Revision: e.Kv.ModRevision, Key: strings.TrimPrefix(key, groupPrefix),
		Created: e.IsCreate(), Deleted: e.Type == clientv3.EventTypeDelete,
	}
	resource, _, _ := strings.Cut(w.Key, "/")
	kv := e.Kv
	if e.PrevKv != nil {
		w.Previous = e.PrevKv.ModRevision
	}
	if w.Deleted {
		kv = e.PrevKv
	}
	if kv == nil {
		l.err = errors.Join(l.err, fmt.Errorf("etcd did not say what was at %s before its deletion at %d", key, w.Revision))
		return
	}
	var err error
	if w.Item, err = ItemOf(resource, kv.Value); err != nil {
		l.err = errors.Join(l.err, fmt.Errorf("the value of %s at %d is not an object: %w", key, kv.ModRevision, err))
	}
	w.Item.Revision = kv.ModRevision
	l.list = append(l.list, w)
}

// finish writes the mark, waits until it was seen, and returns what was written in the namespaces.
func (l *etcdLog) finish(ctx context.Context, namespaces []string) ([]history.Write, error) {
	ctx, cancel := context.WithTimeout(ctx, environment.Patience)
	defer cancel()
	if err := persist(ctx, func(ctx context.Context) error { return l.environment.Mark(ctx, l.mark) }); err != nil {
		return nil, err
	}
	if err := l.arrive(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []history.Write
	for _, w := range l.list {
		for _, ns := range namespaces {
			if parts := strings.SplitN(w.Key, "/", 3); len(parts) == 3 && parts[1] == ns {
				out = append(out, w)
			}
		}
	}
	return out, l.err
}

// persist tries until it works or ctx ends.
func persist(ctx context.Context, f func(context.Context) error) error {
	for {
		asking, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := f(asking)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		launch.Pause(ctx, 50*time.Millisecond)
	}
}
