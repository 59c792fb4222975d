package store

import (
	"context"
	"math"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage"
	etcdfeature "k8s.io/apiserver/pkg/storage/feature"
)

// A pagingKV reads pages of lists from etcd at the cost of the page. etcd goes through all
// keys from the beginning of a page to the end of the range, in order to count them: half a
// second for a million. It does not count if it is asked for a range that ends with the page,
// and does not go on with a stream whose reader has gone:
//
//	keys    [begin, end)   a stream without values, until the first key after the page
//	values  [begin, that key)
//
// So the number of objects that remain is known only if they are few. The API allows that.
type pagingKV struct {
	clientv3.KV
}

const (
	// countAhead is how many keys after a page are counted.
	countAhead = 500
	// wholeLimit is the largest limit of a page for which the whole list is read first, without
	// knowing whether it is longer: most lists are short, and that takes one request.
	wholeLimit = 1000
	// uncounted is the count of a range that was not counted.
	uncounted = math.MaxInt64
)

// paged reports whether a read is one of a page of a list.
func paged(ctx context.Context, op clientv3.Op) bool {
	_, listing := ctx.Value(listingKey{}).(*listing)
	return listing && op.Limit() > 0 && len(op.RangeBytes()) > 0 && etcdfeature.DefaultFeatureSupportChecker.Supports(storage.RangeStream)
}

// Get implements clientv3.KV.
func (p pagingKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	op := clientv3.OpGet(key, opts...)
	if !paged(ctx, op) {
		return p.KV.Get(ctx, key, opts...)
	}
	r := &pageReader{KV: p.KV, op: op}
	answer := &clientv3.GetResponse{}
	err := r.read(ctx, func(piece clientv3.RangeStreamResponse) bool {
		answer.Kvs = append(answer.Kvs, piece.Kvs...)
		if piece.Header != nil {
			answer.Header, answer.Count, answer.More = piece.Header, piece.Count, piece.More
		}
		return true
	})
	if status.Code(err) == codes.Unimplemented {
		return p.KV.Get(ctx, key, opts...)
	}
	return answer, err
}

// GetStream implements clientv3.KV.
func (p pagingKV) GetStream(ctx context.Context, key string, opts ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	op := clientv3.OpGet(key, opts...)
	if !paged(ctx, op) {
		return p.KV.GetStream(ctx, key, opts...)
	}
	r := &pageReader{KV: p.KV, op: op}
	if whole, err := r.prepare(ctx); err != nil || whole {
		return piecesOf(r.pieces), err
	}
	pieces := make(chan clientv3.RangeStreamResponse, 1)
	values, err := r.values(ctx)
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(pieces)
		for piece := range values {
			r.finish(piece)
			select {
			case pieces <- piece:
			case <-ctx.Done(): // the stream of etcd's client ends, too
			}
		}
	}()
	return pieces, nil
}

func piecesOf(pieces []clientv3.RangeStreamResponse) clientv3.GetStreamChan {
	c := make(chan clientv3.RangeStreamResponse, len(pieces))
	for _, p := range pieces {
		c <- p
	}
	close(c)
	return c
}

// A pageReader reads one page.
type pageReader struct {
	clientv3.KV
	op       clientv3.Op
	revision int64
	pieces   []clientv3.RangeStreamResponse // of the whole range, if it is short
	bound    string                         // the first key after the page, or the end of the range
	more     bool
	after    int64 // how many keys come after the page; uncounted if that is not known
}

// read reads the page. visit gets its pieces, until it returns false.
func (r *pageReader) read(ctx context.Context, visit func(clientv3.RangeStreamResponse) bool) error {
	whole, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	if whole {
		for _, piece := range r.pieces {
			if !visit(piece) {
				return nil
			}
		}
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	values, err := r.values(ctx)
	if err != nil {
		return err
	}
	return each(values, cancel, func(piece clientv3.RangeStreamResponse) bool {
		r.finish(piece)
		return visit(piece)
	})
}

// prepare finds the bound of the page, or reads the whole range if that is no more.
func (r *pageReader) prepare(ctx context.Context) (whole bool, err error) {
	r.revision = r.op.Rev()
	if r.revision == 0 {
		if r.op.Limit() <= wholeLimit {
			if whole, err = r.all(ctx); whole || err != nil {
				return whole, err
			}
		}
		answer, err := r.Get(ctx, string(r.op.KeyBytes()), clientv3.WithCountOnly())
		if err != nil {
			return false, err
		}
		r.revision = answer.Header.Revision
	}
	return false, r.keys(ctx)
}

// all reads the range at the newest revision, unless it is longer than a page.
func (r *pageReader) all(ctx context.Context) (whole bool, err error) {
	read := int64(0)
	whole = true
	err = r.stream(ctx, string(r.op.RangeBytes()), func(piece clientv3.RangeStreamResponse) bool {
		read += int64(len(piece.Kvs))
		r.pieces = append(r.pieces, piece)
		whole = read <= r.op.Limit()
		return whole
	})
	return whole && err == nil, err
}

// keys reads the keys of the page and some of those after it.
func (r *pageReader) keys(ctx context.Context) error {
	limit := r.op.Limit()
	r.bound, r.more, r.after = string(r.op.RangeBytes()), false, 0
	read := int64(0)
	return r.stream(ctx, r.bound, func(piece clientv3.RangeStreamResponse) bool {
		if at := limit - read; !r.more && at < int64(len(piece.Kvs)) {
			r.bound, r.more = string(piece.Kvs[at].Key), true
		}
		read += int64(len(piece.Kvs))
		r.after = max(read-limit, 0)
		if r.after > countAhead {
			r.after = uncounted
			return false
		}
		return true
	}, clientv3.WithKeysOnly(), clientv3.WithRev(r.revision))
}

// values begins the stream of the page's values.
func (r *pageReader) values(ctx context.Context) (clientv3.GetStreamChan, error) {
	return r.GetStream(ctx, string(r.op.KeyBytes()), clientv3.WithRange(r.bound), clientv3.WithRev(r.revision))
}

// finish makes the last piece say what comes after the page.
func (r *pageReader) finish(piece clientv3.RangeStreamResponse) {
	if piece.RangeResponse == nil || piece.Header == nil {
		return
	}
	piece.Header.Revision, piece.More = r.revision, r.more
	if piece.Count += r.after; r.after == uncounted {
		piece.Count = uncounted
	}
}

// stream reads the range up to a key. visit gets its pieces, until it returns false.
func (r *pageReader) stream(ctx context.Context, end string, visit func(clientv3.RangeStreamResponse) bool, opts ...clientv3.OpOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pieces, err := r.GetStream(ctx, string(r.op.KeyBytes()), append(opts, clientv3.WithRange(end))...)
	if err != nil {
		return err
	}
	return each(pieces, cancel, visit)
}

// each visits the pieces of a stream until visit returns false, and then ends the stream.
func each(pieces clientv3.GetStreamChan, end func(), visit func(clientv3.RangeStreamResponse) bool) error {
	defer func() {
		end()
		for range pieces { // the client's goroutine blocks until its last piece is taken
		}
	}()
	for piece := range pieces {
		if err := piece.Err(); err != nil {
			return err
		}
		if !visit(piece) {
			return nil
		}
	}
	return nil
}

// dropUncounted takes the number of remaining objects out of a list if it is not known.
func dropUncounted(list metav1.ListInterface, limit int64) {
	if n := list.GetRemainingItemCount(); n != nil && *n == uncounted-limit {
		list.SetRemainingItemCount(nil)
	}
}
