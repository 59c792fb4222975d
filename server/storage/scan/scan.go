package scan

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Page reads the first values of the range [begin, end), at most limit, and reports whether there are more. etcd before
// 3.7 has no streams, and counts.
func Page(ctx context.Context, kv clientv3.KV, begin, end string, limit int64, opts ...clientv3.OpOption) (values []*mvccpb.KeyValue, more bool, err error) {
	values, more, err = stream(ctx, kv, begin, end, limit, opts)
	if status.Code(err) != codes.Unimplemented {
		return values, more, err
	}
	answer, err := kv.Get(ctx, begin, append(opts, clientv3.WithRange(end), clientv3.WithLimit(limit))...)
	if err != nil {
		return nil, false, err
	}
	return answer.Kvs, answer.More, nil
}

func stream(ctx context.Context, kv clientv3.KV, begin, end string, limit int64, opts []clientv3.OpOption) (values []*mvccpb.KeyValue, more bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pieces, err := kv.GetStream(ctx, begin, append(opts, clientv3.WithRange(end))...)
	if err != nil {
		return nil, false, err
	}
	defer func() {
		cancel()
		for range pieces { // the client's goroutine blocks until its last piece is taken
		}
	}()
	for piece := range pieces {
		if err := piece.Err(); err != nil {
			return nil, false, err
		}
		values = append(values, piece.Kvs...)
		if int64(len(values)) > limit {
			return values[:limit:limit], true, nil
		}
	}
	return values, false, ctx.Err()
}
