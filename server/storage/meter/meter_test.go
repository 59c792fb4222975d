package meter_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/meter"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// replica is what one server does with a part of etcd.
type replica struct {
	*testing.T
	meter  *meter.Meter
	kv     clientv3.KV
	etcd   *clientv3.Client
	prefix string
}

// replicas are several servers for one part, which has been counted.
func replicas(t *testing.T, n int, limit meter.Usage) []*replica {
	t.Helper()
	etcd, prefix := etcdtest.Client(t)
	all := make([]*replica, n)
	for i := range all {
		m := meter.New(prefix, limit)
		all[i] = &replica{t, m, m.Wrap(etcd.KV), etcd, prefix}
		if err := m.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := m.Count(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

func (r *replica) put(key string, size int) error {
	_, err := r.kv.Put(r.Context(), r.prefix+"/"+key, strings.Repeat("x", size))
	return err
}

// truth is what etcd has, without the sum itself.
func (r *replica) truth() (u meter.Usage) {
	r.Helper()
	found, err := r.etcd.Get(r.Context(), r.prefix+"/", clientv3.WithPrefix())
	if err != nil {
		r.Fatal(err)
	}
	for _, kv := range found.Kvs {
		if !strings.HasSuffix(string(kv.Key), "/usage") {
			u.Keys++
			u.Bytes += int64(len(kv.Key) + len(kv.Value))
		}
	}
	return u
}

// A meter knows what each kind of write changes, whatever was there before.
func TestEveryWriteIsCounted(t *testing.T) {
	r := replicas(t, 1, meter.Usage{Keys: 1 << 30, Bytes: 1 << 40})[0]
	random := rand.New(rand.NewPCG(1, 2))
	key := func() string { return fmt.Sprintf("%s/a/%d", r.prefix, random.IntN(20)) }
	value := func() string { return strings.Repeat("v", random.IntN(500)) }
	ctx := t.Context()
	for i := range 600 {
		k, other := key(), key()
		var err error
		switch random.IntN(9) {
		case 0, 1, 2:
			_, err = r.kv.Put(ctx, k, value())
		case 3:
			_, err = r.kv.Delete(ctx, k)
		case 4:
			_, err = r.kv.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(k), "=", 0)).Then(clientv3.OpPut(k, value())).Else(clientv3.OpGet(k)).Commit()
		case 5:
			_, err = r.kv.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(k), ">", 0)).Then(clientv3.OpDelete(k), clientv3.OpGet(k)).Else(clientv3.OpGet(k), clientv3.OpPut(k, value())).Commit()
		case 6:
			_, err = r.kv.Do(ctx, clientv3.OpPut(k, value()))
		case 7:
			if k != other {
				_, err = r.kv.Do(ctx, clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut(k, value()), clientv3.OpDelete(other)}, nil))
			}
		case 8:
			_, err = r.kv.Delete(ctx, r.prefix+"/a/1", clientv3.WithPrefix())
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, want := r.meter.Usage(), r.truth(); got != want {
			t.Fatalf("after %d writes %+v, want %+v", i+1, got, want)
		}
	}
}

// Answers are as without a meter, but for what was there before.
func TestAnswers(t *testing.T) {
	r := replicas(t, 1, meter.Usage{Keys: 100, Bytes: 1 << 20})[0]
	put, err := r.kv.Put(t.Context(), r.prefix+"/a", "1")
	if err != nil || put.Header.Revision == 0 {
		t.Error(put, err)
	}
	deleted, err := r.kv.Delete(t.Context(), r.prefix+"/a")
	if err != nil || deleted.Deleted != 1 {
		t.Error(deleted, err)
	}
	answer, err := r.kv.Txn(t.Context()).If(clientv3.Compare(clientv3.ModRevision(r.prefix+"/a"), ">", 0)).
		Then(clientv3.OpPut(r.prefix+"/a", "2")).Else(clientv3.OpGet(r.prefix + "/a")).Commit()
	if err != nil || answer.Succeeded || len(answer.Responses) != 1 {
		t.Error(answer, err)
	}
	if found, err := r.kv.Get(t.Context(), r.prefix+"/a"); err != nil || len(found.Kvs) > 0 {
		t.Error(found, err)
	}
}

// What would make a full part larger is refused; the rest is not.
func TestFull(t *testing.T) {
	const size = 10000
	r := replicas(t, 1, meter.Usage{Keys: 50, Bytes: 100 * size})[0]
	n := 0
	for ; ; n++ {
		err := r.put(fmt.Sprint("keys/", n), 1)
		if errors.Is(err, meter.ErrFull) {
			break
		}
		if err != nil || n > 50 {
			t.Fatal(n, err)
		}
	}
	if n != 50 { // the sum came after the count
		t.Errorf("%d keys", n)
	}
	for what, write := range map[string]func() error{
		"a new key": func() error { return r.put("another", 1) },
		"a new key in a transaction": func() error {
			_, err := r.kv.Txn(t.Context()).Then(clientv3.OpPut(r.prefix+"/another", "")).Commit()
			return err
		},
		"a new key otherwise": func() error {
			_, err := r.kv.Txn(t.Context()).If(clientv3.Compare(clientv3.Version(r.prefix+"/x"), ">", 0)).Else(clientv3.OpPut(r.prefix+"/another", "")).Commit()
			return err
		},
		"a large note of the server": func() error { return r.put("-espalier/preimages/a", 5000) },
	} {
		err := write()
		var known apierrors.APIStatus
		if !errors.Is(err, meter.ErrFull) || !errors.As(err, &known) || known.Status().Code != http.StatusForbidden || !strings.Contains(err.Error(), "50 of 50 objects") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"a change":                   r.put("keys/1", 1),
		"a change that adds bytes":   r.put("keys/1", 100),
		"a small note of the server": r.put("-espalier/marks/a", 100),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range 20 {
		if _, err := r.kv.Delete(t.Context(), fmt.Sprint(r.prefix, "/keys/", i)); err != nil {
			t.Fatal(err)
		}
	}
	var last error
	for i := range 18 {
		last = errors.Join(last, r.put(fmt.Sprint("large/", i), 5*size))
	}
	if last != nil {
		t.Fatal(last)
	}
	if err := r.put("keys/40", 11*size); !errors.Is(err, meter.ErrFull) || !strings.Contains(err.Error(), "of 976Ki") {
		t.Errorf("a change that takes too many bytes: %v", err)
	}
	if err := r.put("large/1", 4*size); err != nil {
		t.Errorf("a change that frees bytes: %v", err)
	}
}

// reads counts what is read from etcd.
type reads struct {
	clientv3.KV
	n atomic.Int64
}

func (r *reads) Txn(ctx context.Context) clientv3.Txn {
	r.n.Add(1)
	return r.KV.Txn(ctx)
}

// Creates of a full part are refused without a read of etcd. One in a while finds out that another replica has made room; the
// room that this replica makes is there at once.
func TestRefusedCreatesReadNothing(t *testing.T) {
	const limit = 20
	etcd, prefix := etcdtest.Client(t)
	counting := &reads{KV: etcd.KV}
	mine, others := meter.New(prefix, meter.Usage{Keys: limit, Bytes: 1 << 20}), meter.New(prefix, meter.Usage{Keys: limit, Bytes: 1 << 20})
	kv, other := mine.Wrap(counting), others.Wrap(etcd.KV)
	ctx := t.Context()
	for _, m := range []*meter.Meter{mine, others} {
		if err := errors.Join(m.Load(ctx), m.Count(ctx), m.Load(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	create := func(name string) error {
		key := prefix + "/" + name
		_, err := kv.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).Then(clientv3.OpPut(key, "x")).Else(clientv3.OpGet(key)).Commit()
		return err
	}
	if err := mine.Full(); err != nil {
		t.Error("an empty part is full:", err)
	}
	for i := range limit + 1 {
		if err := create(fmt.Sprint(i)); err != nil && !errors.Is(err, meter.ErrFull) {
			t.Fatal(err)
		}
	}
	refused := create("another")
	if !errors.Is(refused, meter.ErrFull) {
		t.Fatal(refused)
	}
	before, began := counting.n.Load(), time.Now()
	for range 200 {
		if err := create("another"); !errors.Is(err, meter.ErrFull) || err.Error() != refused.Error() {
			t.Fatal(err)
		}
		if err := mine.Full(); err != nil && (!errors.Is(err, meter.ErrFull) || err.Error() != refused.Error()) {
			t.Fatal(err)
		}
	}
	if n, most := counting.n.Load()-before, int64(time.Since(began)/time.Second)+2; n > most {
		t.Errorf("200 refused creates read etcd %d times, want %d at most", n, most)
	}
	if err := mine.Full(); err == nil && time.Since(began) < time.Second/2 {
		t.Error("a full part is not full")
	}
	before = counting.n.Load()
	if _, err := kv.Put(ctx, prefix+"/1", "y"); err != nil || counting.n.Load() == before { // whether it exists is not known
		t.Error("a change in a full part:", err)
	}
	if _, err := kv.Delete(ctx, prefix+"/1"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(mine.Full(), create("after")); err != nil {
		t.Error("the place of what this replica has deleted is not free:", err)
	}
	if _, err := other.Delete(ctx, prefix+"/2"); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	stop() // the last growth is told
	_ = others.Run(running, func(err error) { t.Log(err) })
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err := errors.Join(mine.Full(), create("last")); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal("the place of what another replica has deleted stays taken:", err)
		}
	}
}

// Several replicas do not go far beyond a limit together, and know of each other's deletes.
func TestReplicasShareALimit(t *testing.T) {
	const limit, n = 1000, 4
	all := replicas(t, n, meter.Usage{Keys: limit, Bytes: 1 << 30})
	var writing sync.WaitGroup
	for i, r := range all {
		writing.Go(func() {
			for k := range limit {
				if err := r.put(fmt.Sprintf("%d/%d", i, k), 1); errors.Is(err, meter.ErrFull) {
					return
				} else if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writing.Wait()
	if keys := all[0].truth().Keys; keys < limit*9/10 || keys > limit*12/10 {
		t.Errorf("%d keys with a limit of %d", keys, limit)
	} else {
		t.Logf("%d keys with a limit of %d", keys, limit)
	}
	if _, err := all[0].kv.Delete(t.Context(), all[0].prefix+"/", clientv3.WithRange(all[0].prefix+"/3")); err != nil {
		t.Fatal(err)
	}
	if err := all[3].put("after", 1); err != nil {
		t.Errorf("another replica does not know what was deleted: %v", err)
	}
}

// A count puts right what a sum has missed, and the growth that a server notes when it ends.
func TestCountAndEnd(t *testing.T) {
	r := replicas(t, 1, meter.Usage{Keys: 1 << 30, Bytes: 1 << 40})[0]
	if _, err := r.etcd.Put(t.Context(), r.prefix+"/missed", "by the meter"); err != nil {
		t.Fatal(err)
	}
	if err := r.meter.Count(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := r.truth()
	if u := r.meter.Usage(); u.Keys < first.Keys || u.Keys > first.Keys+1 {
		t.Errorf("%+v, want %+v and the sum itself", u, first)
	}
	running := make(chan error)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		running <- r.meter.Run(ctx, func(err error) { t.Error(err) })
	}()
	for i := range 3 {
		if err := r.put(fmt.Sprint("k", i), 10); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(50 * time.Millisecond)
	before := r.meter.Usage()
	stop()
	<-running
	next := meter.New(r.prefix, meter.Usage{Keys: 1, Bytes: 1})
	next.Wrap(r.etcd.KV)
	if err := next.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if u := next.Usage(); u != before {
		t.Errorf("the next server knows %+v, want %+v", u, before)
	}
}

// What is stored as the sum may be anything: it is counted again.
func TestBrokenSum(t *testing.T) {
	r := replicas(t, 1, meter.Usage{Keys: 10, Bytes: 1 << 20})[0]
	for _, text := range []string{"", "{", `{"keys":"many"}`, `{"keys":-5,"counted":"2999-01-01T00:00:00Z"}`} {
		if _, err := r.etcd.Put(t.Context(), r.prefix+"/-espalier/usage", text); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		m := meter.New(r.prefix, meter.Usage{Keys: 10, Bytes: 1 << 20})
		m.Wrap(r.etcd.KV)
		if err := m.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		running := make(chan error)
		go func() { running <- m.Run(ctx, func(err error) { t.Error(err) }) }()
		for end := time.Now().Add(5 * time.Second); m.Usage().Keys != 1; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%q: %+v", text, m.Usage())
			}
		}
		stop()
		<-running
	}
}

// BenchmarkPut is a write with and without a meter, in turns.
func BenchmarkPut(b *testing.B) {
	etcd, prefix := etcdtest.Client(b)
	m := meter.New(prefix, meter.Usage{Keys: 1 << 30, Bytes: 1 << 40})
	kv := m.Wrap(etcd.KV)
	if err := m.Load(b.Context()); err != nil {
		b.Fatal(err)
	}
	value := strings.Repeat("v", 2000)
	for name, kv := range map[string]clientv3.KV{"metered": kv, "plain": etcd.KV} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := kv.Put(b.Context(), prefix+"/a", value); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
