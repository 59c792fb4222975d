package scan_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/scan"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// before37 is an etcd that has no streams.
type before37 struct{ clientv3.KV }

func (before37) GetStream(context.Context, string, ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	return nil, status.Error(codes.Unimplemented, "unknown method RangeStream")
}

// Pages of any size have all keys of the range once and in order, and say whether there are more.
func TestPage(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	const count = 2500
	var want []string
	for i := range count {
		key := fmt.Sprintf("%s/in/%05d", prefix, i)
		want = append(want, key)
		if _, err := client.Put(t.Context(), key, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Put(t.Context(), prefix+"/io", ""); err != nil {
		t.Fatal(err)
	}
	begin := prefix + "/in/"
	end := clientv3.GetPrefixRangeEnd(begin)
	for _, kv := range []clientv3.KV{client.KV, before37{client.KV}} {
		for _, limit := range []int64{7, 480, count - 1, count, count + 1} {
			var got []string
			for from, more := begin, true; more; {
				var values []*mvccpb.KeyValue
				var err error
				if values, more, err = scan.Page(t.Context(), kv, from, end, scan.Limit{Values: limit}); err != nil {
					t.Fatal(err)
				}
				if more != (int64(len(got))+limit < count) || more && int64(len(values)) != limit {
					t.Fatalf("%T, limit %d: %d values after %d, more: %t", kv, limit, len(values), len(got), more)
				}
				for _, v := range values {
					got = append(got, string(v.Key))
					if string(v.Value) != fmt.Sprint(len(got)-1) || v.ModRevision == 0 {
						t.Fatalf("%s: %q at revision %d", v.Key, v.Value, v.ModRevision)
					}
					from = string(v.Key) + "\x00"
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%T, limit %d: %d keys, not %d", kv, limit, len(got), len(want))
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := scan.Page(ctx, client.KV, begin, end, scan.Limit{Values: 10}); err == nil {
		t.Error("a page that was cancelled is read")
	}
}

// A page of large values ends soon after its bytes, and has one value at least.
func TestPageOfLargeValues(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	const count, size = 12, 400 << 10
	for i := range count {
		if _, err := client.Put(t.Context(), fmt.Sprintf("%s/in/%02d", prefix, i), strings.Repeat("x", size)); err != nil {
			t.Fatal(err)
		}
	}
	begin := prefix + "/in/"
	end := clientv3.GetPrefixRangeEnd(begin)
	for _, kv := range []clientv3.KV{client.KV, before37{client.KV}} {
		for bytes, want := range map[int]int{1: 1, size: 1, 2*size + 1000: 3, 100 * size: count} {
			seen := 0
			for from, more := begin, true; more; {
				values, next, err := scan.Page(t.Context(), kv, from, end, scan.Limit{Values: 480, Bytes: bytes})
				if err != nil {
					t.Fatal(err)
				}
				if len(values) != min(want, count-seen) || next != (seen+len(values) < count) {
					t.Fatalf("%T, %d bytes: %d values after %d, more: %t", kv, bytes, len(values), seen, next)
				}
				seen, more, from = seen+len(values), next, string(values[len(values)-1].Key)+"\x00"
			}
		}
	}
}

// counting counts the reads with a limit, after which etcd counts.
type counting struct {
	clientv3.KV
	limited int
}

func (c *counting) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if op := clientv3.OpGet(key, opts...); op.Limit() > 0 {
		c.limited++
	}
	return c.KV.Get(ctx, key, opts...)
}

// All values are those of one revision, also if there are writes meanwhile, and etcd counts none.
func TestAll(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	const count = 300
	for i := range count {
		if _, err := client.Put(t.Context(), fmt.Sprintf("%s/in/%05d", prefix, i), "before"); err != nil {
			t.Fatal(err)
		}
	}
	begin := prefix + "/in/"
	end := clientv3.GetPrefixRangeEnd(begin)
	streaming := &counting{KV: client.KV}
	for _, kv := range []clientv3.KV{streaming, before37{client.KV}} {
		seen := 0
		revision, err := scan.All(t.Context(), kv, begin, end, 0, func(v *mvccpb.KeyValue) error {
			if want := fmt.Sprintf("%s%05d", begin, seen); string(v.Key) != want || string(v.Value) != "before" {
				return fmt.Errorf("%s has %q where %s is due", v.Key, v.Value, want)
			}
			seen++
			if seen == 5 {
				for _, name := range []string{"00200", "00290x"} {
					if _, err := client.Put(t.Context(), begin+name, "after"); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil || seen != count {
			t.Errorf("%T: %d values: %v", kv, seen, err)
		}
		if _, err := client.Put(t.Context(), begin+"00200", "before"); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Delete(t.Context(), begin+"00290x"); err != nil {
			t.Fatal(err)
		}
		again := 0
		if at, err := scan.All(t.Context(), kv, begin, end, revision, func(*mvccpb.KeyValue) error { again++; return nil }); err != nil || at != revision || again != count {
			t.Errorf("%T: %d values at revision %d, not %d: %v", kv, again, at, revision, err)
		}
		enough := errors.New("enough")
		if _, err := scan.All(t.Context(), kv, begin, end, 0, func(*mvccpb.KeyValue) error { return enough }); !errors.Is(err, enough) {
			t.Errorf("%T: the error of a visit is %v", kv, err)
		}
	}
	if streaming.limited > 0 {
		t.Errorf("%d reads with a limit", streaming.limited)
	}
}
