package scan

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// firstPage is how many values All reads first where etcd has no streams. Pages grow to
	// lastPage if their values are small.
	firstPage, lastPage    = 64, 2000
	smallBytes, largeBytes = 1 << 20, 8 << 20
)

// Stream reads the range [begin, end) in pieces. visit gets them in their order, until it
// returns false or an error. If nothing else is asked for, they are all of one revision. The
// error has the code Unimplemented if etcd has no streams.
func Stream(ctx context.Context, kv clientv3.KV, begin, end string, visit func(clientv3.RangeStreamResponse) (more bool, err error), opts ...clientv3.OpOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pieces, err := kv.GetStream(ctx, begin, append(opts[:len(opts):len(opts)], clientv3.WithRange(end))...)
	if err != nil {
		return err
	}
	defer func() {
		cancel()
		for range pieces { // the client's goroutine blocks until its last piece is taken
		}
	}()
	for piece := range pieces {
		if err := piece.Err(); err != nil {
			return err
		}
		if more, err := visit(piece); !more || err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Limit bounds a page.
type Limit struct {
	// Values is how many values it has at most.
	Values int64
	// Bytes is how large the values before the last one are together; 0 is no limit. etcd before 3.7 sends all values at once,
	// and those that are too many are dropped.
	Bytes int
}

// fitting is how many of the first values a page has.
func (l Limit) fitting(values []*mvccpb.KeyValue) int {
	size := 0
	for i, v := range values {
		if int64(i) == l.Values || l.Bytes > 0 && i > 0 && size >= l.Bytes {
			return i
		}
		size += len(v.Key) + len(v.Value)
	}
	return len(values)
}

// Page reads the first values of the range [begin, end), as many as the limit allows, and reports whether there are more. etcd
// before 3.7 has no streams, and counts.
func Page(ctx context.Context, kv clientv3.KV, begin, end string, limit Limit, opts ...clientv3.OpOption) (values []*mvccpb.KeyValue, more bool, err error) {
	err = Stream(ctx, kv, begin, end, func(piece clientv3.RangeStreamResponse) (bool, error) {
		values = append(values, piece.Kvs...)
		n := limit.fitting(values)
		more, values = n < len(values), values[:n:n]
		return !more, nil
	}, opts...)
	switch {
	case err == nil:
		return values, more, nil
	case status.Code(err) != codes.Unimplemented:
		return nil, false, err
	}
	answer, err := kv.Get(ctx, begin, append(opts[:len(opts):len(opts)], clientv3.WithRange(end), clientv3.WithLimit(limit.Values))...)
	if err != nil {
		return nil, false, err
	}
	n := limit.fitting(answer.Kvs)
	return answer.Kvs[:n:n], answer.More || n < len(answer.Kvs), nil
}

// Revision returns the newest revision.
func Revision(ctx context.Context, kv clientv3.KV, key string) (int64, error) {
	answer, err := kv.Get(ctx, key, clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return answer.Header.Revision, nil
}

// All visits the values of the range [begin, end) in the order of their keys, as they are at
// a revision; 0 is the newest. It returns that revision. visit may keep what it gets.
func All(ctx context.Context, kv clientv3.KV, begin, end string, revision int64, visit func(*mvccpb.KeyValue) error) (int64, error) {
	if revision == 0 {
		var err error
		if revision, err = Revision(ctx, kv, begin); err != nil {
			return 0, err
		}
	}
	err := Stream(ctx, kv, begin, end, func(piece clientv3.RangeStreamResponse) (bool, error) {
		for _, value := range piece.Kvs {
			if err := visit(value); err != nil {
				return false, err
			}
		}
		return true, nil
	}, clientv3.WithRev(revision))
	if status.Code(err) == codes.Unimplemented {
		err = pages(ctx, kv, begin, end, revision, visit)
	}
	return revision, err
}

// pages visits values where etcd has no streams, in pages that are larger if the values are small.
func pages(ctx context.Context, kv clientv3.KV, begin, end string, revision int64, visit func(*mvccpb.KeyValue) error) error {
	for limit := int64(firstPage); ; {
		answer, err := kv.Get(ctx, begin, clientv3.WithRange(end), clientv3.WithLimit(limit), clientv3.WithRev(revision))
		if err != nil {
			return err
		}
		size := 0
		for _, value := range answer.Kvs {
			size += len(value.Value)
			begin = string(value.Key) + "\x00"
			if err := visit(value); err != nil {
				return err
			}
		}
		switch {
		case !answer.More || len(answer.Kvs) == 0:
			return nil
		case size > largeBytes:
			limit = max(1, limit/2)
		case size < smallBytes:
			limit = min(lastPage, limit*2)
		}
	}
}
