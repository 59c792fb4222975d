package replica_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/replica"
)

// errConflict is why a replica must not run beside one with the settings "bad".
var errConflict = errors.New("these settings conflict")

// with are the options of a replica with settings. It must not run beside "bad".
func with(prefix, settings string) replica.Options {
	return replica.Options{
		Prefix: prefix, TTL: 4 * time.Second, Settings: func() []byte { return []byte(settings) },
		Conflict: func(other []byte) error {
			if string(other) == "bad" {
				return errConflict
			}
			return nil
		},
	}
}

// keys are all that replicas have in etcd, by their values.
func keys(t *testing.T, client *clientv3.Client, prefix string) (values []string) {
	t.Helper()
	all, err := client.Get(t.Context(), "/"+strings.Trim(prefix, "/")+"/"+replica.OwnFolder, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range all.Kvs {
		values = append(values, string(kv.Value))
	}
	slices.Sort(values)
	return values
}

// A replica meets the settings of those that run, and not its own.
func TestSettingsOfOthers(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	first, _ := join(t, client, with(prefix, "first"))
	second, stop := join(t, client, with(prefix, "second"))
	third, _ := join(t, client, with(prefix, "third"))
	for i, want := range []string{"", "first", "first second"} {
		var met []string
		for _, one := range []*replica.Member{first, second, third}[i].Met() {
			met = append(met, string(one))
		}
		if slices.Sort(met); strings.Join(met, " ") != want {
			t.Errorf("replica %d has met %q, not %s", i, met, want)
		}
	}
	stop()
	if got := keys(t, client, prefix); strings.Join(got, " ") != "0 0 first third" {
		t.Errorf("left are %q", got)
	}
}

// A replica whose settings conflict with those of one that runs does not join, and leaves nothing behind that others
// would wait for.
func TestConflictWithARunningReplica(t *testing.T) {
	t.Parallel()
	client, prefix := etcdtest.Client(t)
	a, _ := join(t, client, with(prefix, "bad"))
	events := client.Watch(t.Context(), "/"+strings.Trim(prefix, "/")+"/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-events
	if _, err := replica.Join(t.Context(), client, with(prefix, "good")); !errors.Is(err, errConflict) {
		t.Errorf("joins: %v", err)
	}
	if _, err := client.Put(t.Context(), "/"+strings.Trim(prefix, "/")+"/after", ""); err != nil {
		t.Fatal(err)
	}
	if event := (<-events).Events[0]; !strings.HasSuffix(string(event.Kv.Key), "/after") {
		t.Errorf("has written %s: others wait for a replica that does not start", event.Kv.Key)
	}
	if got := keys(t, client, prefix); strings.Join(got, " ") != "0 bad" {
		t.Errorf("left are %q", got)
	}
	a.Saw(3)
	if hangs(t, a, 3) {
		t.Error("waits for a replica that did not join")
	}
	// One that stops in the meantime says so.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := replica.Join(ctx, client, with(prefix, "good")); !errors.Is(err, context.Canceled) {
		t.Errorf("joins: %v", err)
	}
}

// A replica that was killed leaves its settings behind. Its successor with others waits for its lease, and joins.
func TestConflictWithAKilledReplica(t *testing.T) {
	t.Parallel()
	client, prefix := etcdtest.Client(t)
	killed, err := replica.Join(t.Context(), client, with(prefix, "bad"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := replica.Join(t.Context(), client, with(prefix, "good"))
	if err != nil {
		t.Fatal(err)
	}
	if killed.Current() || !m.Current() || len(m.Met()) > 0 {
		t.Errorf("joined beside it: it is current: %t; the successor is current: %t, and has met %q", killed.Current(), m.Current(), m.Met())
	}
}

// meeting has something happen after the first, or before the second look at the settings of others.
type meeting struct {
	clientv3.KV
	looks       int
	first, then func()
}

func (m *meeting) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if m.looks++; m.looks == 2 {
		m.then()
	}
	answer, err := m.KV.Get(ctx, key, opts...)
	if m.looks == 1 {
		m.first()
	}
	return answer, err
}

// Of two replicas that start at a time and conflict, the first one to register stays.
func TestConflictOfTwoThatStart(t *testing.T) {
	t.Parallel()
	for name, earlier := range map[string]bool{"the other is first": true, "the other is second": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, prefix := etcdtest.Client(t)
			slow, _ := etcdtest.Client(t)
			nothing, other := func() {}, func() { join(t, client, with(prefix, "bad")) }
			meet := &meeting{KV: slow.KV, first: nothing, then: nothing}
			if slow.KV = meet; earlier {
				meet.first = other
			} else {
				meet.then = other
			}
			m, err := replica.Join(t.Context(), slow, with(prefix, "good"))
			if errors.Is(err, errConflict) != earlier || (err != nil) != earlier {
				t.Fatalf("joins: %v", err)
			}
			want := "0 bad"
			if !earlier {
				want = "0 0 bad good"
				defer m.Leave(t.Context())
			}
			if got := keys(t, client, prefix); strings.Join(got, " ") != want {
				t.Errorf("registered are %q, want %s", got, want)
			}
		})
	}
}

// Without an answer a replica does not join.
func TestEveryRequestOfJoinFailsOnce(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	slow, _ := etcdtest.Client(t)
	failing := etcdtest.NewFailing(slow, "/"+strings.Trim(prefix, "/")+"/")
	for n := 1; ; n++ {
		failing.Fail(n)
		m, err := replica.Join(t.Context(), slow, with(prefix, "good"))
		_, failed := failing.Stop()
		if failed == "" {
			if m.Leave(t.Context()); err != nil || n != 4 {
				t.Errorf("%v, after %d requests", err, n-1)
			}
			return
		}
		if !errors.Is(err, etcdtest.ErrFailed) || !strings.HasPrefix(err.Error(), "registering this replica in etcd: ") {
			t.Errorf("%s: %v", failed, err)
		}
		if got := keys(t, client, prefix); len(got) > 0 {
			t.Errorf("%s: left are %q", failed, got)
		}
	}
}

// A replica that runs publishes settings that change. It reports a conflict, and goes on.
func TestSettingsChange(t *testing.T) {
	t.Parallel()
	client, prefix := etcdtest.Client(t)
	log := etcdtest.Capture(t)
	var now atomic.Value
	now.Store("bad")
	o := with(prefix, "")
	o.Settings = func() []byte { return []byte(now.Load().(string)) }
	m, _ := join(t, client, o)
	join(t, client, replica.Options{Prefix: prefix, TTL: 2 * time.Second, Settings: func() []byte { return []byte("other") }, Conflict: func([]byte) error { return nil }})
	for text, want := range map[string]string{"newer": "0 0 newer other", "newest": "0 0 newest other"} {
		now.Store(text)
		await(t, "does not publish", func() bool { return strings.Join(keys(t, client, prefix), " ") == want })
	}
	const reported = "Settings changed and conflict with those of another replica"
	if strings.Contains(log.String(), reported) {
		t.Errorf("conflicts with itself: %s", log)
	}
	join(t, client, replica.Options{Prefix: prefix, TTL: 2 * time.Second, Settings: func() []byte { return []byte("bad") }, Conflict: func([]byte) error { return nil }})
	now.Store("last")
	await(t, "does not report a conflict", func() bool { return strings.Contains(log.String(), reported) })
	if !m.Current() {
		t.Error("stops because of a conflict")
	}
}

// A replica knows whether it is alone, and tells what it has seen as soon as it is not.
func TestAlone(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	o := replica.Options{Prefix: prefix, TTL: time.Minute} // it is not told by renewing the lease
	a, _ := join(t, client, o)
	await(t, "does not know that it is alone", a.Alone)
	a.Saw(12)
	b, stop := join(t, client, o)
	await(t, "does not know of the other", func() bool { return !a.Alone() && !b.Alone() })
	b.Saw(12)
	for _, m := range []*replica.Member{a, b} {
		if hangs(t, m, 12) {
			t.Error("waits for what both have seen")
		}
	}
	a.Saw(13)
	if b.Saw(14); hangs(t, a, 13) {
		t.Error("waits for what both have seen")
	}
	if stop(); b.Current() {
		t.Error("is current after it has left")
	}
	await(t, "does not know that the other has left", a.Alone)
}

// A replica waits until it has itself seen a revision, whatever others have, and until each of the others has said so.
func TestWaitsForEach(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	a, _ := join(t, client, replica.Options{Prefix: prefix})
	b, _ := join(t, client, replica.Options{Prefix: prefix})
	b.Saw(9)
	if hangs(t, b, 0) || !waits(t, a, 9) {
		t.Error("does not wait for itself")
	}
	waited := make(chan error)
	go func() { waited <- a.Wait(t.Context(), 9) }()
	a.Saw(9)
	select {
	case err := <-waited:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("does not notice that it has seen the revision")
	}
	if _, err := client.Put(t.Context(), "/"+strings.Trim(prefix, "/")+"/"+replica.OwnFolder+"replicas/x", "unknown"); err != nil {
		t.Fatal(err)
	}
	if !waits(t, a, 9) {
		t.Error("does not wait for a replica that says something that it does not understand")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Wait(over, 9); err == nil || !strings.HasPrefix(err.Error(), "listing the replicas in etcd: ") {
		t.Errorf("without an answer: %v", err)
	}
}

// A replica whose key is gone registers again before it is current.
func TestKeyIsGone(t *testing.T) {
	t.Parallel()
	client, prefix := etcdtest.Client(t)
	a, _ := join(t, client, replica.Options{Prefix: prefix})
	caught := make(chan bool, 100)
	var b atomic.Pointer[replica.Member]
	m, _ := join(t, client, replica.Options{Prefix: prefix, TTL: 4 * time.Second, CatchUp: func(context.Context) error {
		caught <- b.Load().Current()
		return nil
	}})
	b.Store(m)
	await(t, "does not know of the other", func() bool { return !m.Alone() })
	all, err := client.Get(t.Context(), "/"+strings.Trim(prefix, "/")+"/"+replica.OwnFolder+"replicas/", clientv3.WithPrefix())
	if err != nil || len(all.Kvs) != 2 {
		t.Fatal(all, err)
	}
	for _, kv := range all.Kvs {
		lease, err := client.TimeToLive(t.Context(), clientv3.LeaseID(kv.Lease))
		if err != nil {
			t.Fatal(err)
		}
		if lease.GrantedTTL == 4 {
			if _, err := client.Delete(t.Context(), string(kv.Key)); err != nil {
				t.Fatal(err)
			}
		}
	}
	m.Saw(15)
	select {
	case current := <-caught:
		if current {
			t.Error("is current before it has read what it has missed")
		}
	case <-time.After(time.Minute):
		t.Fatal("does not register again")
	}
	await(t, "does not become current again", m.Current)
	if a.Saw(15); hangs(t, a, 15) {
		t.Error("waits for what both have seen")
	}
	if a.Saw(16); !waits(t, a, 16) {
		t.Error("does not wait for a replica that has registered again")
	}
}
