package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/transfer"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

const folder, fence = "/of/", "/of-fence"

func options(from, to *clientv3.Client) transfer.Options {
	return transfer.Options{
		From: from, To: to, Begin: folder, End: clientv3.GetPrefixRangeEnd(folder), Marks: "/of",
		Skip:  func(key string) bool { return strings.HasPrefix(key, folder+"skip") },
		While: []clientv3.Cmp{clientv3.Compare(clientv3.Version(fence), "=", 0)}, Stream: "test",
	}
}

func all(t *testing.T, c *clientv3.Client, revision int64) map[string]string {
	t.Helper()
	found, err := c.Get(t.Context(), folder, clientv3.WithPrefix(), clientv3.WithRev(revision))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, kv := range found.Kvs {
		if !strings.HasPrefix(string(kv.Key), folder+"skip") {
			values[string(kv.Key)] = string(kv.Value)
		}
	}
	return values
}

// The target has what the source had at a revision, with leases, although the source is written all the time.
func TestCopy(t *testing.T) {
	from, to := etcdtest.NewSingle(t).Client, etcdtest.NewSingle(t).Client
	put := func(key, value string, opts ...clientv3.OpOption) int64 {
		t.Helper()
		answer, err := from.Put(t.Context(), key, value, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Header.Revision
	}
	for i := range 350 {
		put(fmt.Sprintf("%s%03d", folder, i), "before")
	}
	put(folder+"large", strings.Repeat("x", 1<<20))
	put(folder+"skip/me", "")
	long, err := from.Grant(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		put(fmt.Sprintf("%stimed%d", folder, i), "", clientv3.WithLease(long.ID))
	}
	ctx, stop := context.WithCancel(t.Context())
	var writes atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ctx.Err() == nil; i++ {
			key := fmt.Sprintf("%s%03d", folder, i%400)
			if i%7 == 3 {
				_, _ = from.Delete(ctx, key)
			} else {
				_, _ = from.Put(ctx, key, fmt.Sprint(i))
			}
			writes.Add(1)
		}
	}()
	c := transfer.New(options(from, to))
	defer c.Close()
	if err := c.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Follow(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	for before := writes.Load(); writes.Load() < before+200; {
		time.Sleep(time.Millisecond)
	}
	end := put("/of.mark", "")
	if err := c.Until(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	stop()
	<-ended
	want, got := all(t, from, end), all(t, to, 0)
	if len(want) != len(got) {
		t.Errorf("%d keys, not %d", len(got), len(want))
	}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s is %.20q, not %.20q", key, got[key], value)
		}
	}
	leases, err := to.Leases(t.Context())
	if err != nil || len(leases.Leases) != 1 {
		t.Fatalf("%v, %v", leases, err)
	}
	left, err := to.TimeToLive(t.Context(), leases.Leases[0].ID, clientv3.WithAttachedKeys())
	if err != nil || len(left.Keys) != 5 || left.TTL > 1000 || left.TTL < 900 {
		t.Errorf("%+v, %v", left, err)
	}
	// Something else takes over.
	if _, err := to.Put(t.Context(), fence, ""); err != nil {
		t.Fatal(err)
	}
	end = put(folder+"late", "")
	if err := c.Until(t.Context(), end); !errors.Is(err, transfer.ErrTaken) {
		t.Errorf("after the fence: %v", err)
	}
	if late, err := to.Get(t.Context(), folder+"late"); err != nil || late.Count != 0 {
		t.Errorf("%v, %v", late, err)
	}
}

// A copy whose history is compacted fails.
func TestCompacted(t *testing.T) {
	from, to := etcdtest.NewSingle(t).Client, etcdtest.NewSingle(t).Client
	c := transfer.New(options(from, to))
	defer c.Close()
	if err := c.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := from.Put(t.Context(), folder+"a", ""); err != nil {
			t.Fatal(err)
		}
	}
	now, err := from.Get(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := from.Compact(t.Context(), now.Header.Revision); err != nil {
		t.Fatal(err)
	}
	if err := c.Follow(t.Context(), time.Second); err == nil || !strings.Contains(err.Error(), "compacted") {
		t.Error(err)
	}
}
