package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/replica"
	"github.com/espalier-dev/espalier/server/storage/scan"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// The delays between attempts to reach etcd.
const firstDelay, lastDelay = 100 * time.Millisecond, 10 * time.Second

// feed brings everything below the prefix into the graph, and keeps it up to date
// with one watch.
type feed struct {
	config *Config
	graph  *graph
	folder string // the prefix with a slash at its end
	synced func() // called after each scan
}

// run does so until the context ends.
func (f *feed) run(ctx context.Context) {
	// No other request waits for this stream, and it waits for none.
	ctx = store.OwnStream(ctx, "garbage")
	for failures := 0; ctx.Err() == nil; {
		revision, err := f.scan(ctx)
		if err == nil {
			failures = 0
			f.synced()
			err = f.follow(ctx, revision)
		}
		if ctx.Err() != nil {
			return
		}
		klog.FromContext(ctx).V(2).Info("Reading owner references again", "reason", err)
		delay := min(firstDelay<<min(failures, 20), lastDelay)
		failures++
		select {
		case <-ctx.Done():
		case <-time.After(delay/2 + rand.N(delay/2)):
		}
	}
}

// scan reads all objects as they are at one revision.
func (f *feed) scan(ctx context.Context) (revision int64, err error) {
	began := time.Now()
	f.graph.begin()
	all := map[id]uint64{}
	revision, err = scan.All(ctx, f.config.Etcd, f.folder, clientv3.GetPrefixRangeEnd(f.folder), 0, func(kv *mvccpb.KeyValue) error {
		if s, key, ok := f.read(ctx, kv); ok {
			all[s.id] = f.graph.sum(key)
			f.graph.put(key, &s)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("reading below %s: %w", f.folder, err)
	}
	f.graph.end(all)
	klog.FromContext(ctx).V(2).Info("Read owner references", "objects", len(all), "kept", f.graph.len(), "revision", revision, "took", time.Since(began))
	return revision, nil
}

// follow watches from after a revision until the watch ends, and says why.
func (f *feed) follow(ctx context.Context, revision int64) error {
	for {
		ended, err := f.watch(ctx, &revision)
		if ended || ctx.Err() != nil {
			return err
		}
		klog.FromContext(ctx).V(2).Info("Resumed the watch for owner references", "revision", revision, "reason", err)
		select {
		case <-ctx.Done():
		case <-time.After(firstDelay):
		}
	}
}

// errNoPast says that etcd does not know any more what has been deleted.
var errNoPast = errors.New("etcd has no previous value of a deleted object")

// watch follows changes and moves the revision along. ended means that another
// watch from there would be of no use.
func (f *feed) watch(ctx context.Context, revision *int64) (ended bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := f.config.Etcd.Watch(clientv3.WithRequireLeader(ctx), f.folder, clientv3.WithPrefix(), clientv3.WithPrevKV(),
		clientv3.WithRev(*revision+1), clientv3.WithFragment(), clientv3.WithProgressNotify())
	for response := range changes {
		if err := response.Err(); err != nil {
			return response.CompactRevision != 0 || errors.Is(err, rpctypes.ErrCompacted), err
		}
		if response.IsProgressNotify() {
			*revision = response.Header.Revision
		}
		for _, event := range response.Events {
			if err := f.apply(ctx, event); err != nil {
				return true, err
			}
			// Several keys may change in one revision, and a response may end between them:
			// seeing one of them twice does no harm.
			*revision = event.Kv.ModRevision - 1
		}
	}
	return false, errors.New("the watch has ended")
}

// apply makes the change that an event tells of.
func (f *feed) apply(ctx context.Context, event *clientv3.Event) error {
	if event.Type == clientv3.EventTypePut {
		if s, key, ok := f.read(ctx, event.Kv); ok {
			f.graph.put(key, &s)
		}
		return nil
	}
	if event.PrevKv == nil {
		return fmt.Errorf("%w: %s", errNoPast, event.Kv.Key)
	}
	if s, _, ok := f.read(ctx, event.PrevKv); ok {
		f.graph.delete(s.id)
	}
	return nil
}

// read returns the relevant parts of an object, and its key without the prefix. It skips
// values that are no object or that it cannot decrypt: the collector reads owners again
// before it deletes dependents.
func (f *feed) read(ctx context.Context, kv *mvccpb.KeyValue) (s seen, key string, ok bool) {
	key = strings.TrimPrefix(string(kv.Key), strings.TrimSuffix(f.folder, "/"))
	if strings.HasPrefix(key, "/"+replica.OwnFolder) {
		return s, key, false
	}
	resource := f.config.Kinds.Resource(key)
	if ignored[resource] {
		return s, key, false
	}
	data := kv.Value
	if f.config.Transformers != nil {
		if t := f.config.Transformers.TransformerForResource(resource); t != nil {
			plain, _, err := t.TransformFromStorage(ctx, data, value.DefaultContext(kv.Key))
			if err != nil {
				unreadable(ctx, kv, err)
				return s, key, false
			}
			data = plain
		}
	}
	s, err := read(data)
	if err != nil {
		unreadable(ctx, kv, err)
		return s, key, false
	}
	return s, key, true
}

func unreadable(ctx context.Context, kv *mvccpb.KeyValue, err error) {
	unread.Inc()
	klog.FromContext(ctx).V(4).Info("Failed to read owner references from a value in etcd", "key", string(kv.Key), "reason", err)
}
