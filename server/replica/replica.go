package replica

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"
)

// Options say how a replica takes part.
type Options struct {
	// Prefix is the key prefix of the server.
	Prefix string
	// TTL is how long others wait for a replica that does not answer; 10 s if
	// zero. Etcd counts in seconds.
	TTL time.Duration
	// CatchUp returns when the replica has seen all that was changed before the
	// call. It is called after a lease was lost, before the replica is Current
	// again.
	CatchUp func(context.Context) error
}

// OwnFolder has the keys, below the prefix of all, that servers keep for
// themselves. They are not objects, and no group has a name like it.
const OwnFolder = "-espalier/"

// folder is where the keys of replicas are.
const folder = OwnFolder + "replicas/"

// Member is one replica of a server.
type Member struct {
	client *clientv3.Client
	folder string
	key    string
	o      Options

	start  time.Time
	valid  atomic.Int64  // until when, after start, the lease is sure to hold
	seen   atomic.Uint64 // the last revision that this replica serves by
	others atomic.Bool   // there are other replicas, who may wait for this one
	wake   chan struct{} // seen or others has changed

	progress atomic.Pointer[chan struct{}] // closed, and replaced, when seen changes

	lease clientv3.LeaseID // Run's
	told  uint64           // Run's: what the key says
}

// Join makes a replica known to the others. It is to be called before the
// definitions are read. Run keeps the replica known.
func Join(ctx context.Context, client *clientv3.Client, o Options) (*Member, error) {
	if o.TTL == 0 {
		o.TTL = 10 * time.Second
	}
	m := &Member{client: client, o: o, start: time.Now(), wake: make(chan struct{}, 1)}
	m.progress.Store(newSignal())
	m.folder = "/" + strings.Trim(o.Prefix, "/") + "/" + folder
	m.key = m.folder + string(uuid.NewUUID())
	if err := m.register(ctx); err != nil {
		return nil, fmt.Errorf("making this replica known in etcd: %w", err)
	}
	return m, nil
}

// Current reports whether others are sure to wait for this replica. One that is
// not must not serve.
func (m *Member) Current() bool {
	return int64(time.Since(m.start)) < m.valid.Load()
}

// Saw tells that the replica serves by all changes up to a revision.
func (m *Member) Saw(revision uint64) {
	for {
		old := m.seen.Load()
		if revision <= old {
			return
		}
		if m.seen.CompareAndSwap(old, revision) {
			close(*m.progress.Swap(newSignal()))
			if m.others.Load() {
				m.nudge()
			}
			return
		}
	}
}

// Wait returns when all replicas serve by the changes up to a revision, or are
// known to have stopped serving.
func (m *Member) Wait(ctx context.Context, revision uint64) error {
	for {
		progress := *m.progress.Load()
		members, err := m.client.Get(ctx, m.folder, clientv3.WithPrefix())
		if err != nil {
			return fmt.Errorf("asking etcd which replicas there are: %w", err)
		}
		behind := false
		for _, kv := range members.Kvs {
			if string(kv.Key) == m.key {
				behind = behind || m.seen.Load() < revision
				continue
			}
			seen, err := strconv.ParseUint(string(kv.Value), 10, 64)
			behind = behind || err != nil || seen < revision
		}
		if !behind {
			return nil
		}
		if err := m.change(ctx, members.Header.Revision+1, progress); err != nil {
			return err
		}
	}
}

// change returns when a key of a replica changes at a revision or later, or
// progress, that of this replica, is made.
func (m *Member) change(ctx context.Context, revision int64, progress <-chan struct{}) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	select {
	case <-m.client.Watch(watching, m.folder, clientv3.WithPrefix(), clientv3.WithRev(revision)):
	case <-progress:
	case <-ctx.Done():
	}
	return ctx.Err()
}

func newSignal() *chan struct{} {
	c := make(chan struct{})
	return &c
}

// Run renews the lease, tells others what this replica has seen if there are
// any, and leaves when ctx ends.
func (m *Member) Run(ctx context.Context) {
	defer m.leave(ctx)
	go m.lookAround(ctx)
	renew := time.NewTicker(m.o.TTL / 4)
	defer renew.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-renew.C:
			if err := m.renew(ctx); err != nil && ctx.Err() == nil {
				klog.ErrorS(err, "This replica is not known in etcd and stops serving until it is", "key", m.key)
				continue
			}
		}
		if err := m.tell(ctx); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Telling other replicas what this one has seen", "key", m.key)
		}
	}
}

// register gets a lease and writes the key.
func (m *Member) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.o.TTL)
	defer cancel()
	asked := time.Now()
	lease, err := m.client.Grant(ctx, int64(m.o.TTL.Seconds()+0.999))
	if err != nil {
		return err
	}
	m.lease = lease.ID
	told := m.seen.Load()
	if _, err := m.client.Put(ctx, m.key, strconv.FormatUint(told, 10), clientv3.WithLease(m.lease)); err != nil {
		return err
	}
	m.told = told
	m.held(asked)
	return nil
}

// held notes that the lease was good at a moment. The time is that before the
// request: it is the latest that etcd can have counted from.
func (m *Member) held(asked time.Time) {
	m.valid.Store(int64(asked.Sub(m.start) + m.o.TTL*9/10))
}

// renew keeps the lease, or gets a new one and catches up.
func (m *Member) renew(ctx context.Context) error {
	trying, cancel := context.WithTimeout(ctx, m.o.TTL/4)
	defer cancel()
	asked := time.Now()
	lease, err := m.client.KeepAliveOnce(trying, m.lease)
	if err == nil && lease.TTL > 0 && m.Current() {
		m.held(asked)
		return nil
	}
	// The lease has run out, or may have: others may not have waited.
	m.valid.Store(0)
	_, _ = m.client.Revoke(trying, m.lease)
	if err := m.register(trying); err != nil {
		m.valid.Store(0)
		return errors.Join(err, ctx.Err())
	}
	valid := m.valid.Swap(0)
	if m.o.CatchUp != nil {
		if err := m.o.CatchUp(trying); err != nil {
			return fmt.Errorf("catching up with etcd: %w", err)
		}
	}
	m.valid.Store(valid)
	return nil
}

// tell writes what this replica has seen, if others may want to know.
func (m *Member) tell(ctx context.Context) error {
	seen := m.seen.Load()
	if seen == m.told || !m.others.Load() {
		return nil
	}
	_, err := m.client.Put(ctx, m.key, strconv.FormatUint(seen, 10), clientv3.WithLease(m.lease))
	if err == nil {
		m.told = seen
	}
	return err
}

// lookAround keeps others up to date, and has Run tell a newcomer.
func (m *Member) lookAround(ctx context.Context) {
	for ctx.Err() == nil {
		members, err := m.client.Get(ctx, m.folder, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(m.o.TTL / 10):
			}
			continue
		}
		if m.others.Swap(len(members.Kvs) > 1) != (len(members.Kvs) > 1) {
			m.nudge()
		}
		m.newcomers(ctx, members.Header.Revision+1)
	}
}

// newcomers returns when a replica may have come or gone.
func (m *Member) newcomers(ctx context.Context, revision int64) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for w := range m.client.Watch(ctx, m.folder, clientv3.WithPrefix(), clientv3.WithRev(revision)) {
		if w.Err() != nil {
			return
		}
		for _, e := range w.Events {
			if e.IsCreate() || e.Type == clientv3.EventTypeDelete {
				return
			}
		}
	}
}

func (m *Member) nudge() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// leave removes the key, so that nobody waits.
func (m *Member) leave(ctx context.Context) {
	m.valid.Store(0)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.o.TTL/4)
	defer cancel()
	if _, err := m.client.Revoke(ctx, m.lease); err != nil {
		klog.V(2).InfoS("The lease of this replica runs out by itself", "err", err)
	}
}
