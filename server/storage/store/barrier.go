package store

import (
	"context"
	"fmt"
	"path"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
)

// A barrier tells requests a revision that has all writes that were acknowledged before
// they came. That takes a read of etcd, which many requests share: those that come while
// one is under way wait for the next one, which begins after they came.
//
//	requests  1      2 3 4          5
//	reads     ├──────┤├──────┤      ├──────┤
//	            1      2 3 4          5
type barrier struct {
	mu      sync.Mutex
	next    *revisionRead // has not begun; requests join it
	current *revisionRead // the last one that has begun

	newest atomic.Uint64 // the highest revision that has been read
}

// revisionRead is one read of etcd's revision.
type revisionRead struct {
	done     chan struct{} // closed when the others are set
	revision uint64
	err      error
}

const (
	// barrierPatience is how long requests wait for the read before theirs: a member of etcd
	// that does not answer must not hold up what others can answer.
	barrierPatience = 50 * time.Millisecond
	// barrierTimeout ends a read.
	barrierTimeout = 30 * time.Second
)

// revision returns one that has all writes that were acknowledged before it is called. The
// metric of the read has the resource of the request that began it.
func (b *barrier) revision(ctx context.Context, of *Backend, resource schema.GroupResource) (uint64, error) {
	b.mu.Lock()
	r := b.next
	if r == nil {
		r = &revisionRead{done: make(chan struct{})}
		b.next = r
		go b.read(r, b.current, of, resource)
	}
	b.mu.Unlock()
	select {
	case <-r.done:
		return r.revision, r.err
	case <-ctx.Done():
		return 0, explainRead(ctx.Err())
	}
}

// read reads the revision, after the read before.
func (b *barrier) read(r, before *revisionRead, of *Backend, resource schema.GroupResource) {
	if before != nil {
		select {
		case <-before.done:
		case <-time.After(barrierPatience):
		}
	}
	b.mu.Lock()
	b.next, b.current = nil, r
	b.mu.Unlock()
	defer close(r.done)
	ctx, cancel := context.WithTimeout(of.client.Ctx(), barrierTimeout)
	defer cancel()
	began := time.Now()
	answer, err := of.client.KV.Get(ctx, path.Join("/", of.config.Prefix, "health"), clientv3.WithCountOnly())
	metrics.RecordEtcdRequest("getCurrentResourceVersion", resource, err, began)
	switch {
	case err != nil:
		r.err = explainRead(fmt.Errorf("reading the revision of etcd: %w", err))
	default:
		r.revision = uint64(answer.Header.Revision)
		for newest := b.newest.Load(); r.revision > newest && !b.newest.CompareAndSwap(newest, r.revision); newest = b.newest.Load() {
		}
	}
}

const (
	// progressPause is how long a cache waits for an answer before it asks etcd again how far
	// its watch is. The member that the watch is at may be behind the one that was read.
	progressPause = 20 * time.Millisecond
	progressMost  = 100 * time.Millisecond
)

// progress are the requests of a cache for the progress of its watch.
type progress struct {
	mu    sync.Mutex
	asked uint64 // the highest revision that was asked for
	at    time.Time
	pause time.Duration
	busy  bool
}

// askProgress asks etcd how far the watch of the cache is, unless it was just asked, and
// returns when to ask again. All requests that wait share this. A client may ask for a revision
// that etcd has not reached, which must not pass for the highest one.
func (f *feed) askProgress(revision uint64) (again time.Duration) {
	revision = min(revision, f.backend.barrier.newest.Load())
	p := &f.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	since := time.Since(p.at)
	switch {
	case revision > p.asked:
		p.asked, p.pause = revision, progressPause
	case since < p.pause:
		return p.pause - since
	default:
		p.pause = min(max(2*p.pause, progressPause), progressMost)
	}
	p.at = time.Now()
	if !p.busy {
		p.busy = true
		go f.requestProgress()
	}
	return p.pause
}

func (f *feed) requestProgress() {
	ctx, cancel := context.WithTimeout(context.Background(), freshTimeout)
	defer cancel()
	_ = f.RequestWatchProgress(ctx) // it is asked again
	f.progress.mu.Lock()
	f.progress.busy = false
	f.progress.mu.Unlock()
}
