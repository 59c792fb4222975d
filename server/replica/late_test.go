package replica_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/replica"
)

// late holds requests back: they are not answered, and are executed when the test says so,
// as if they had waited in the socket of a member of etcd that was stopped.
type late struct {
	clientv3.KV
	clientv3.Lease
	mu   sync.Mutex
	hold int            // how many writes are still to be held back
	held []clientv3.Txn // what they are
	lost bool           // revocations are lost
}

var errLate = errors.New("no answer")

// Put implements clientv3.KV.
func (l *late) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	if l.take(l.KV.Txn(context.WithoutCancel(ctx)).Then(clientv3.OpPut(key, value, opts...))) {
		return nil, errLate
	}
	return l.KV.Put(ctx, key, value, opts...)
}

// Txn implements clientv3.KV.
func (l *late) Txn(ctx context.Context) clientv3.Txn {
	return &lateTxn{l.KV.Txn(context.WithoutCancel(ctx)), l}
}

// Revoke implements clientv3.Lease.
func (l *late) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	l.mu.Lock()
	lost := l.lost
	l.mu.Unlock()
	if lost {
		return nil, errLate
	}
	return l.Lease.Revoke(ctx, id)
}

// take holds a write back if it is to be.
func (l *late) take(t clientv3.Txn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold == 0 {
		return false
	}
	l.hold--
	l.held = append(l.held, t)
	return true
}

// holding returns how many writes are held back.
func (l *late) holding() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

// release has all that was held back done.
func (l *late) release(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, held := range l.held {
		if _, err := held.Commit(); err != nil {
			t.Logf("etcd refuses what is late: %v", err)
		}
	}
	l.held = nil
}

type lateTxn struct {
	clientv3.Txn
	l *late
}

func (t *lateTxn) If(cs ...clientv3.Cmp) clientv3.Txn  { t.Txn = t.Txn.If(cs...); return t }
func (t *lateTxn) Then(os ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Then(os...); return t }
func (t *lateTxn) Else(os ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(os...); return t }

func (t *lateTxn) Commit() (*clientv3.TxnResponse, error) {
	if t.l.take(t.Txn) {
		return nil, errLate
	}
	return t.Txn.Commit()
}

// delayed returns a client whose writes can be held back.
func delayed(t *testing.T) (*clientv3.Client, *late) {
	t.Helper()
	client, _ := etcdtest.Client(t)
	l := &late{KV: client.KV, Lease: client.Lease}
	client.KV, client.Lease = l, l
	return client, l
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// A replica loses its lease, and its first attempt to register again is delayed and not
// answered. If etcd executes it after the second one, it must not tie the replica to the
// first lease, which no replica renews.
func TestLateRegistration(t *testing.T) {
	t.Parallel()
	client, prefix := etcdtest.Client(t)
	a, _ := join(t, client, replica.Options{Prefix: prefix})
	slow, l := delayed(t)
	const ttl = 2 * time.Second
	b, err := replica.Join(t.Context(), slow, replica.Options{Prefix: prefix, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the lease does not run out", func() bool { return !b.Current() })
	l.mu.Lock()
	l.hold, l.lost = 1, true
	l.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); b.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	await(t, "does not become current again", b.Current)
	if l.holding() != 1 {
		t.Fatal("nothing was held back")
	}
	l.release(t)

	// By then the lease of the first attempt has run out.
	time.Sleep(3 * ttl)
	a.Saw(9)
	if !b.Current() {
		t.Fatal("is not current, although its lease is renewed")
	}
	if !waits(t, a, 9) {
		t.Error("others do not wait for a replica that relies on it")
	}
	b.Saw(9)
	if hangs(t, a, 9) {
		t.Error("others wait for what the replica has seen")
	}
}

// What a replica tells late does not undo what it has told since.
func TestLateProgress(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	a, _ := join(t, client, replica.Options{Prefix: prefix})
	slow, l := delayed(t)
	b, _ := join(t, slow, replica.Options{Prefix: prefix, TTL: 2 * time.Second})
	b.Saw(1)
	a.Saw(7)
	await(t, "does not tell", func() bool { return !waits(t, a, 1) })
	l.mu.Lock()
	l.hold = 1
	l.mu.Unlock()
	b.Saw(5)
	await(t, "does not tell", func() bool { return l.holding() == 1 })
	b.Saw(7)
	if hangs(t, a, 7) {
		t.Error("others wait for what the replica has seen")
	}
	l.release(t)
	if hangs(t, a, 7) {
		t.Error("what was told late undoes what was told since")
	}
}

// A replica that joins while another one is cut off waits for that one, until its lease
// has expired.
func TestJoiningReplicaWaitsForOneThatIsCutOff(t *testing.T) {
	t.Parallel()
	client, prefix := etcdtest.Client(t)
	b, err := replica.Join(t.Context(), client, replica.Options{Prefix: prefix, TTL: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := join(t, client, replica.Options{Prefix: prefix})
	a.Saw(3)
	if !waits(t, a, 3) || !b.Current() {
		t.Error("does not wait for a replica that was there before")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := a.Wait(ctx, 3); err != nil {
		t.Fatal(err)
	}
	if b.Current() {
		t.Error("is current although nobody waits for it")
	}
	if b.Alone() {
		t.Error("says that it is alone, and has never looked")
	}
}

// The keys of a replica are those of its lease.
func TestKeysNameTheirLease(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	join(t, client, replica.Options{Prefix: prefix, Settings: func() []byte { return nil }, Conflict: func([]byte) error { return nil }})
	keys, err := client.Get(t.Context(), "/"+strings.Trim(prefix, "/")+"/"+replica.OwnFolder, clientv3.WithPrefix())
	if err != nil || len(keys.Kvs) != 2 {
		t.Fatalf("%v, %v", keys, err)
	}
	for _, kv := range keys.Kvs {
		if lease := clientv3.LeaseID(kv.Lease); !strings.HasSuffix(string(kv.Key), fmt.Sprintf("-%x", lease)) {
			t.Errorf("%s is bound to the lease %x", kv.Key, kv.Lease)
		}
	}
}
