package store

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// fenceFolder has the fences, below the prefix of all keys.
const fenceFolder = "-espalier/fences"

// fenceTTL is how many seconds a closed fence stays closed. No request waits that
// long in a socket, a queue or a stopped process and is proposed after all: etcd gives
// a proposal up after seconds, and a connection does not outlive its process.
const fenceTTL = 24 * 60 * 60

// When a fence is closed for writes whose clients have gone, and how long that may take.
const closePause, closeTime = time.Second, 10 * time.Second

// fences end what may still be on its way. Every write of this process has the
// condition that a key does not exist:
//
//	write if no fence n ── no answer ──▶ create fence n at revision f: the write was done before f, or never will be
//	                                     later writes have the condition of fence n+1
//
// An open fence costs nothing in etcd, not even a key. Nothing depends on time but
// when closed fences are forgotten.
type fences struct {
	client *clientv3.Client
	kv     clientv3.KV // the client's own
	prefix string

	now     atomic.Pointer[fence]
	closing atomic.Bool // soon

	mu      sync.Mutex       // held while a fence is being closed: all who are in doubt need the same
	lease   clientv3.LeaseID // of the fences that are closed within the same hour
	granted time.Time
}

// fence is a key that does not exist while it is open.
type fence struct {
	number int
	key    string
}

func newFences(client *clientv3.Client, prefix string) *fences {
	f := &fences{client: client, kv: client.KV, prefix: path.Join("/", prefix, fenceFolder, string(uuid.NewUUID()))}
	f.open(1)
	return f
}

func (f *fences) open(n int) { f.now.Store(&fence{n, fmt.Sprintf("%s/%d", f.prefix, n)}) }

// current is the fence that a write has to be conditional on.
func (f *fences) current() *fence { return f.now.Load() }

// close makes sure that no write behind a fence is done any more.
func (f *fences) close(ctx context.Context, old *fence) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current().number > old.number {
		return nil // another write was in doubt, too
	}
	if time.Since(f.granted) > fenceTTL*time.Second/24 {
		lease, err := f.client.Grant(ctx, fenceTTL)
		if err != nil {
			return err
		}
		f.lease, f.granted = lease.ID, time.Now()
	}
	if _, err := f.kv.Put(ctx, old.key, "", clientv3.WithLease(f.lease)); err != nil {
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			f.granted = time.Time{} // etcd was restored: the next attempt has a new one
		}
		return err // it may be closed: it is of no use any more in either case, and closed again
	}
	f.open(old.number + 1)
	return nil
}

// closed notes that etcd has said that a fence is closed. The write that closed it may
// have given up before it got the answer.
func (f *fences) closed(old *fence) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current().number == old.number {
		f.open(old.number + 1)
	}
}

// closeSoon closes the fence for a write whose client does not wait for it any longer,
// and for all others of the same second: clients give up more often than etcd does.
func (f *fences) closeSoon() {
	if !f.closing.CompareAndSwap(false, true) {
		return
	}
	time.AfterFunc(closePause, func() {
		f.closing.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		_ = f.close(ctx, f.current()) // if it is not closed now the next one in doubt does
	})
}

// isOpen is the condition of writes.
func (f *fence) isOpen() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(f.key), "=", 0)
}
