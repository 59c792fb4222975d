package replica

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/storage/store"
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
	// Settings returns what others are to know of the settings of this replica, as
	// they are now; it is asked for every quarter of TTL. Nil publishes nothing.
	Settings func() []byte
	// Conflict says why this replica must not run beside one with other settings.
	Conflict func(other []byte) error
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
	o      Options
	clock  func() time.Duration // Clock

	settingsFolder string

	id     string        // what the names of all keys of this replica begin with
	valid  atomic.Int64  // until when, by the clock, the lease is sure to hold
	seen   atomic.Uint64 // the last revision that this replica serves by
	others atomic.Bool   // there are other replicas, which may wait for this one, or this one has not looked yet
	wake   chan struct{} // seen or others has changed

	progress atomic.Pointer[chan struct{}] // closed, and replaced, when seen changes

	lease     clientv3.LeaseID // Run's
	told      told             // Run's
	published []byte           // Run's: what the key of the settings says
	met       [][]byte         // the settings of the replicas that were there first
	failed    bool             // Run's: the last renewal has failed
}

// told is what the key of a replica says.
type told struct {
	seen uint64
	at   int64 // the revision of the key
}

// Join makes a replica known to the others. It is to be called before the
// CRDs are read. Run keeps the replica known. While etcd is full it cannot be made
// known: it is not Current then, until there is space.
func Join(ctx context.Context, client *clientv3.Client, o Options) (*Member, error) {
	if o.TTL == 0 {
		o.TTL = 10 * time.Second
	}
	m := &Member{client: client, o: o, clock: Clock, id: string(uuid.NewUUID()), wake: make(chan struct{}, 1)}
	m.others.Store(true)
	m.progress.Store(newSignal())
	own := "/" + strings.Trim(o.Prefix, "/") + "/"
	m.folder, m.settingsFolder = own+folder, own+settingsFolder
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// Current reports whether others are sure to wait for this replica. One that is not
// must ask etcd whether CRDs have changed before it serves by what it knows.
func (m *Member) Current() bool {
	return int64(m.clock()) < m.valid.Load()
}

// Alone reports whether no other replica was known when etcd last answered; it must have.
func (m *Member) Alone() bool { return !m.others.Load() }

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
			return fmt.Errorf("listing the replicas in etcd: %w", err)
		}
		behind := m.seen.Load() < revision
		for _, kv := range members.Kvs {
			if m.owns(kv) {
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
	watching, cancel := context.WithCancel(ownStream(ctx))
	defer cancel()
	select {
	case <-m.client.Watch(watching, m.folder, clientv3.WithPrefix(), clientv3.WithRev(revision)):
	case <-progress:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// ownStream keeps the watches of replicas off the gRPC stream of other watches: the
// acknowledgement of changes waits for them.
func ownStream(ctx context.Context) context.Context {
	return store.OwnStream(ctx, "replicas")
}

func newSignal() *chan struct{} {
	c := make(chan struct{})
	return &c
}

// Run renews the lease, tells others what this replica has seen if there are
// any, and leaves when ctx ends.
func (m *Member) Run(ctx context.Context) {
	defer m.Leave(ctx)
	go m.lookAround(ctx)
	renew := time.NewTimer(m.pause(nil))
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-renew.C:
			err := m.renew(ctx)
			m.log(ctx, err)
			renew.Reset(m.pause(err))
			if err != nil {
				continue
			}
		}
		if err := m.tell(ctx); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Failed to tell other replicas which CRDs this one has seen, retrying", "replica", m.id)
		}
		if err := m.publish(ctx); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Failed to publish the settings of this replica, retrying", "replica", m.id)
		}
	}
}

// pause is how long to wait before the lease is renewed again: soon, if that has just
// failed.
func (m *Member) pause(err error) time.Duration {
	if err != nil || !m.Current() {
		return m.o.TTL / 20
	}
	return m.o.TTL / 4
}

// log says once that the lease could not be renewed, and once that it is again.
func (m *Member) log(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err == nil && m.failed:
		m.failed = false
		klog.InfoS("The lease of this replica is renewed: other replicas wait for it again", "replica", m.id)
	case err != nil && !m.failed:
		m.failed = true
		klog.ErrorS(err, "Failed to renew the lease of this replica, retrying; when it has expired, reads ask etcd whether CRDs have changed", "replica", m.id)
	}
}

// register gets a lease and writes the key. It returns the latest moment that etcd can
// have counted from: that before the request.
func (m *Member) register(ctx context.Context) (asked time.Duration, err error) {
	former := m.lease
	asked = m.clock()
	err = m.within(ctx, func(ctx context.Context) error {
		lease, err := m.client.Grant(ctx, int64(m.o.TTL.Seconds()+0.999))
		if err == nil {
			m.lease = lease.ID
		}
		return err
	})
	if err != nil {
		return asked, err
	}
	return asked, m.within(ctx, func(ctx context.Context) error { return m.write(ctx, former) })
}

// nameOf is the name of the keys that are bound to a lease of this replica. Each lease has
// its own. A write with an earlier lease may be late, in the socket of a member of etcd that
// was stopped, and would bind the current key to a lease that is no longer renewed. The key
// would expire while the replica relies on others waiting for it.
func (m *Member) nameOf(lease clientv3.LeaseID) string { return fmt.Sprintf("%s-%x", m.id, lease) }

// owns reports whether a key is of this replica, by whatever lease.
func (m *Member) owns(kv *mvccpb.KeyValue) bool {
	return strings.HasPrefix(path.Base(string(kv.Key)), m.id)
}

// within bounds one request: one that hangs must not take the time of the next.
func (m *Member) within(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, m.o.TTL/4)
	defer cancel()
	return do(ctx)
}

// held notes that the lease was good at a moment.
func (m *Member) held(asked time.Duration) { m.valid.Store(int64(asked + m.o.TTL*9/10)) }

// renew keeps the lease, or gets a new one and catches up. A renewal that fails takes
// nothing away: the lease holds until its time is over.
func (m *Member) renew(ctx context.Context) error {
	if m.Current() {
		asked := m.clock()
		var ttl int64
		err := m.within(ctx, func(ctx context.Context) error {
			lease, err := m.client.KeepAliveOnce(ctx, m.lease)
			if err == nil {
				ttl = lease.TTL
			}
			return err
		})
		switch {
		case err == nil && ttl > 0 && m.Current():
			m.held(asked)
			return nil
		case err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) && m.Current():
			return err
		}
	}
	// The lease has run out, or may have: others may not have waited.
	m.valid.Store(0)
	if m.lease != clientv3.NoLease {
		_ = m.within(ctx, m.revoke) // it expires by itself
	}
	asked, err := m.register(ctx)
	if err != nil {
		return err
	}
	// From here on others wait. What was changed before has to be read first.
	if m.o.CatchUp != nil {
		if err := m.within(ctx, m.o.CatchUp); err != nil {
			return fmt.Errorf("reading the CRDs from etcd: %w", err)
		}
	}
	m.held(asked)
	return nil
}

// tell writes what this replica has seen, if others may want to know.
func (m *Member) tell(ctx context.Context) error {
	seen := m.seen.Load()
	if seen == m.told.seen || !m.others.Load() || !m.Current() {
		return nil
	}
	key := m.folder + m.nameOf(m.lease)
	return m.within(ctx, func(ctx context.Context) error {
		// An earlier attempt that was not answered must not undo this one.
		resp, err := m.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", m.told.at)).
			Then(clientv3.OpPut(key, strconv.FormatUint(seen, 10), clientv3.WithLease(m.lease))).
			Else(clientv3.OpGet(key, clientv3.WithKeysOnly())).Commit()
		switch {
		case err != nil:
			return err
		case resp.Succeeded:
			m.told = told{seen, resp.Header.Revision}
			return nil
		}
		if there := resp.Responses[0].GetResponseRange().Kvs; len(there) > 0 {
			m.told.at = there[0].ModRevision
			m.nudge()
			return nil
		}
		m.valid.Store(0) // other replicas do not wait for a replica without key
		return errors.New("the key of this replica is gone")
	})
}

// lookAround keeps others up to date, and has Run report to a replica that joins.
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
		others := slices.ContainsFunc(members.Kvs, func(kv *mvccpb.KeyValue) bool { return !m.owns(kv) })
		if m.others.Swap(others) != others {
			m.nudge()
		}
		m.joining(ctx, members.Header.Revision+1)
	}
}

// joining returns when a replica may have joined or left.
func (m *Member) joining(ctx context.Context, revision int64) {
	ctx, cancel := context.WithCancel(ownStream(ctx))
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

// Leave removes the key, so that no replica waits for this one. Run does so at its end.
func (m *Member) Leave(ctx context.Context) {
	m.valid.Store(0)
	if err := m.within(context.WithoutCancel(ctx), m.revoke); err != nil {
		klog.V(2).InfoS("Failed to revoke the lease of this replica; it expires by itself", "err", err)
	}
}

func (m *Member) revoke(ctx context.Context) error {
	_, err := m.client.Revoke(ctx, m.lease)
	return err
}
