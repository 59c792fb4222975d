package scan_test

import (
	"context"
	"fmt"
	"slices"
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
				if values, more, err = scan.Page(t.Context(), kv, from, end, limit); err != nil {
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
	if _, _, err := scan.Page(ctx, client.KV, begin, end, 10); err == nil {
		t.Error("a page that was cancelled is read")
	}
}
