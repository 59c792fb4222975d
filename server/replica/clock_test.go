package replica

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/server/etcdtest"
)

// The clock goes on, and at the pace of others. That it goes on in sleep a test cannot
// show: the machine would have to sleep.
func TestClock(t *testing.T) {
	before, start := Clock(), time.Now()
	time.Sleep(50 * time.Millisecond)
	passed, want := Clock()-before, time.Since(start)
	if passed < 50*time.Millisecond || passed > want {
		t.Errorf("%v have passed, and %v by another clock", passed, want)
	}
	last := Clock()
	for range 10_000 {
		now := Clock()
		if now < last {
			t.Fatalf("%v came after %v", now, last)
		}
		last = now
	}
}

// A machine sleeps: for the process no time has passed, for etcd the lease has run out.
func TestLeaseRunsOutInSleep(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	m, err := Join(t.Context(), client, Options{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Leave(t.Context())
	if !m.Current() {
		t.Error("is not current before")
	}
	m.clock = func() time.Duration { return Clock() + m.o.TTL }
	if m.Current() {
		t.Error("is current after its machine has slept")
	}
}

// unrevoked is a client whose revocations of leases are lost.
type unrevoked struct{ clientv3.Lease }

func (unrevoked) Revoke(context.Context, clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return nil, errors.New("no answer")
}

// After a sleep a replica registers by another lease, with what it has seen. Keys of the former one do not stay, although
// that holds for long.
func TestRegistersAfterSleep(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	m, err := Join(t.Context(), client, Options{Prefix: prefix, TTL: time.Hour, Settings: func() []byte { return []byte("s") }})
	if err != nil {
		t.Fatal(err)
	}
	former := m.lease
	m.Saw(12)
	client.Lease = unrevoked{client.Lease}
	m.clock = func() time.Duration { return Clock() + 2*m.o.TTL }
	if err := m.renew(t.Context()); err != nil || !m.Current() || m.lease == former {
		t.Fatalf("%v, current %t", err, m.Current())
	}
	all, err := client.Get(t.Context(), "/"+strings.Trim(prefix, "/")+"/"+OwnFolder, clientv3.WithPrefix())
	if err != nil || len(all.Kvs) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	for i, want := range []string{"12", "s"} {
		if kv := all.Kvs[i]; string(kv.Value) != want || clientv3.LeaseID(kv.Lease) != m.lease {
			t.Errorf("%s is %s, of lease %x", kv.Key, kv.Value, kv.Lease)
		}
	}
	// While it is current it keeps its lease.
	if lease := m.lease; m.renew(t.Context()) != nil || m.lease != lease || !m.Current() {
		t.Error("changes its lease without need")
	}
	// What it could not read it does not serve by.
	m.o.CatchUp = func(context.Context) error { return errors.New("no answer") }
	m.clock = func() time.Duration { return Clock() + 4*m.o.TTL }
	if err := m.renew(t.Context()); err == nil || err.Error() != "reading the CRDs from etcd: no answer" || m.Current() {
		t.Errorf("%v, current %t", err, m.Current())
	}
}

// unrenewed is a client whose leases are not renewed, or not granted.
type unrenewed struct{ clientv3.Lease }

func (unrenewed) KeepAliveOnce(context.Context, clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	return nil, errors.New("no answer")
}

func (unrenewed) Grant(context.Context, int64) (*clientv3.LeaseGrantResponse, error) {
	return nil, errors.New("no lease")
}

// A renewal that fails takes nothing away while the lease holds. Both are said, and the replica tries again sooner.
func TestRenewalFails(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	m, err := Join(t.Context(), client, Options{Prefix: prefix, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	lease, usual := m.lease, m.pause(nil)
	client.Lease = unrenewed{client.Lease}
	err = m.renew(t.Context())
	if err == nil || err.Error() != "no answer" || !m.Current() || m.lease != lease || m.pause(err) >= usual {
		t.Errorf("%v, current %t", err, m.Current())
	}
	m.clock = func() time.Duration { return Clock() + 2*m.o.TTL }
	if m.pause(nil) >= usual {
		t.Error("a lease that may have run out is renewed as late as another")
	}
	if err := m.renew(t.Context()); err == nil || err.Error() != "no lease" || m.Current() {
		t.Errorf("%v, current %t", err, m.Current())
	}
}

func TestRenewalsAreLoggedOnce(t *testing.T) {
	m, failure := &Member{}, errors.New("no answer")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	log := etcdtest.Capture(t)
	for i, c := range []struct {
		ctx  context.Context
		err  error
		says string
	}{
		{t.Context(), nil, ""}, {over, failure, ""}, {t.Context(), failure, "Failed to renew the lease"}, {t.Context(), failure, ""},
		{over, nil, ""}, {t.Context(), nil, "The lease of this replica is renewed"}, {t.Context(), nil, ""}, {t.Context(), failure, "Failed to renew the lease"},
	} {
		log.Reset()
		m.log(c.ctx, c.err)
		if text := log.String(); (text == "") != (c.says == "") || !strings.Contains(text, c.says) {
			t.Errorf("%d: %s", i, text)
		}
	}
}

// A replica writes what it has seen once, also if it does not know what became of an earlier attempt.
func TestTellsOnce(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	m, err := Join(t.Context(), client, Options{Prefix: prefix, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	told := func(seen uint64, writes int64) {
		t.Helper()
		if err := m.tell(t.Context()); err != nil {
			t.Error(err)
		}
		key, err := client.Get(t.Context(), m.folder+m.nameOf(m.lease))
		if err != nil || string(key.Kvs[0].Value) != strconv.FormatUint(seen, 10) || key.Kvs[0].Version != writes {
			t.Errorf("%v, %v, want %d after %d writes", key.Kvs, err, seen, writes)
		}
	}
	told(0, 1)
	m.Saw(15)
	told(15, 2)
	told(15, 2)
	m.Saw(16)
	m.told.at-- // an attempt that was not answered
	<-m.wake
	told(15, 2)
	select {
	case <-m.wake:
	default:
		t.Error("does not try again")
	}
	told(16, 3)
	m.others.Store(false)
	m.Saw(17)
	told(16, 3)
	m.others.Store(true)
	if _, err := client.Delete(t.Context(), m.folder+m.nameOf(m.lease)); err != nil {
		t.Fatal(err)
	}
	if err := m.tell(t.Context()); err == nil || m.Current() {
		t.Errorf("without its key: %v, current %t", err, m.Current())
	}
}
