package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/storage/store"
)

// settingsFolder is where replicas publish their settings. It is not that of the
// replicas' revisions: versions that do not know settings read all of that.
const settingsFolder = OwnFolder + "settings/"

// Met returns the settings of the replicas that were there when this one joined.
func (m *Member) Met() [][]byte { return m.met }

// enter registers the replica unless its settings conflict with those of a
// replica that runs. Of two that start at a time, the first one to register stays.
//
// A replica that was killed leaves its key behind until its lease expires. Its
// successor, whose settings may be others, waits for that. A lease that is renewed
// meanwhile is of a replica that runs: that is found out within a quarter of TTL.
//
// Etcd that elects a leader answers nothing for seconds: a replica that starts
// meanwhile tries again.
func (m *Member) enter(ctx context.Context) (err error) {
	defer func() {
		if err != nil && m.lease != clientv3.NoLease {
			m.Leave(ctx) // a write without an answer may have been done
		}
	}()
	rivals := rivals{m: m, ttl: map[string]int64{}}
	for end, silent := time.Now().Add(m.o.TTL*3/2), false; ; {
		conflict, err := m.tryEnter(ctx, &rivals)
		if errors.Is(err, rpctypes.ErrNoSpace) {
			klog.ErrorS(err, "Failed to register this replica: etcd is full; it serves reads and deletes, and asks etcd for each of them whether CRDs have changed")
			m.failed = true
			return nil
		}
		again := ctx.Err() == nil && time.Now().Before(end)
		switch {
		case err != nil && !(again && store.Unanswered(err)):
			return fmt.Errorf("registering this replica in etcd: %w", err)
		case err == nil && (conflict == nil || rivals.alive || !again):
			return conflict
		case err != nil && !silent:
			klog.ErrorS(err, "Failed to register this replica in etcd, retrying")
			silent = true
		case err == nil && !rivals.logged:
			klog.InfoS("Settings conflict with those of a replica that may have stopped; waiting for its lease to expire", "conflict", conflict)
			rivals.logged = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(m.o.TTL / 40):
		}
	}
}

// tryEnter registers the replica unless there is a conflict.
func (m *Member) tryEnter(ctx context.Context, r *rivals) (conflict, err error) {
	if m.o.Settings == nil {
		return nil, m.enroll(ctx)
	}
	// Not registered yet: no replica waits for one that may not start.
	if _, conflict, err = r.look(ctx); conflict != nil || err != nil {
		return conflict, err
	}
	if err := m.enroll(ctx); err != nil {
		return nil, err
	}
	others, conflict, err := r.look(ctx)
	if conflict != nil || err != nil {
		m.Leave(ctx) // others do not wait for one that waits itself
		return conflict, err
	}
	for _, kv := range others.Kvs {
		if !m.owns(kv) {
			m.met = append(m.met, kv.Value)
		}
	}
	return nil, nil
}

// enroll registers a replica that has not read the CRDs yet: it has nothing to catch
// up with.
func (m *Member) enroll(ctx context.Context) error {
	asked, err := m.register(ctx)
	if err == nil {
		m.held(asked)
	}
	return err
}

// rivals are replicas whose settings conflict.
type rivals struct {
	m      *Member
	ttl    map[string]int64 // what was left of a lease, by key, when last seen
	alive  bool             // one has renewed its lease
	logged bool
}

// look returns the settings of all replicas, and the first conflict.
func (r *rivals) look(ctx context.Context) (others *clientv3.GetResponse, conflict, err error) {
	err = r.m.within(ctx, func(ctx context.Context) (err error) {
		if others, err = r.m.client.Get(ctx, r.m.settingsFolder, clientv3.WithPrefix()); err == nil {
			conflict, err = r.conflict(ctx, others)
		}
		return err
	})
	return others, conflict, err
}

// conflict returns the first conflict with a replica that was there before this
// one, and notes whether that one runs.
func (r *rivals) conflict(ctx context.Context, others *clientv3.GetResponse) (conflict, err error) {
	own := int64(0) // not there yet: all others were there before
	for _, kv := range others.Kvs {
		if string(kv.Key) == r.m.settingsKey() {
			own = kv.CreateRevision
		}
	}
	for _, kv := range others.Kvs {
		key := string(kv.Key)
		if r.m.owns(kv) || own != 0 && kv.CreateRevision > own {
			continue
		}
		found := r.m.o.Conflict(kv.Value)
		if found == nil {
			continue
		}
		lease, err := r.m.client.TimeToLive(ctx, clientv3.LeaseID(kv.Lease))
		if err != nil {
			return nil, err
		}
		last, seen := r.ttl[key]
		r.alive = r.alive || seen && lease.TTL > last
		r.ttl[key] = lease.TTL
		if conflict == nil {
			conflict = found
		}
	}
	return conflict, nil
}

// settingsKey is where this replica publishes its settings.
func (m *Member) settingsKey() string { return m.settingsFolder + m.nameOf(m.lease) }

// write puts the keys of this replica, bound to its lease, in place of those of a former
// lease: others are not to wait for these.
func (m *Member) write(ctx context.Context, former clientv3.LeaseID) error {
	seen := m.seen.Load()
	ops := []clientv3.Op{clientv3.OpPut(m.folder+m.nameOf(m.lease), strconv.FormatUint(seen, 10), clientv3.WithLease(m.lease))}
	var settings []byte
	if m.o.Settings != nil {
		settings = m.o.Settings()
		ops = append(ops, clientv3.OpPut(m.settingsKey(), string(settings), clientv3.WithLease(m.lease)))
	}
	if former != clientv3.NoLease {
		ops = append(ops, clientv3.OpDelete(m.folder+m.nameOf(former)), clientv3.OpDelete(m.settingsFolder+m.nameOf(former)))
	}
	resp, err := m.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return err
	}
	m.published, m.told = settings, told{seen, resp.Header.Revision}
	return nil
}

// publish writes the settings if files that they come from have changed, and
// reports conflicts: a replica that runs is not stopped by them.
func (m *Member) publish(ctx context.Context) error {
	if m.o.Settings == nil || !m.Current() {
		return nil
	}
	settings := m.o.Settings()
	if bytes.Equal(settings, m.published) {
		return nil
	}
	var others *clientv3.GetResponse
	if err := m.within(ctx, func(ctx context.Context) error {
		_, err := m.client.Put(ctx, m.settingsKey(), string(settings), clientv3.WithLease(m.lease))
		if err != nil {
			return err
		}
		m.published = settings
		others, err = m.client.Get(ctx, m.settingsFolder, clientv3.WithPrefix())
		return err
	}); err != nil {
		return err
	}
	for _, kv := range others.Kvs {
		if m.owns(kv) {
			continue
		}
		if err := m.o.Conflict(kv.Value); err != nil {
			klog.ErrorS(err, "Settings changed and conflict with those of another replica")
		}
	}
	return nil
}
