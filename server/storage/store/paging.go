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

	"github.com/espalier-dev/espalier/server/storage/scan"
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
	streams etcdfeature.FeatureSupportChecker // whether this etcd has streams; other backends of the process may have one that has none
}

const (
	// countAhead is how many keys after a page are counted.
	countAhead = 500
	// wholeLimit is the largest limit of a page for which the whole list is read first, without
	// knowing whether it is longer: most lists are short, and that takes one request.
	wholeLimit = 1000
	// wholeBytes bounds what is read in vain, if the list is longer.
	wholeBytes = 4 << 20
	// uncounted is the count of a range that was not counted.
	uncounted = math.MaxInt64
)

// paged reports whether a read is one of a page of a list.
func (p pagingKV) paged(ctx context.Context, op clientv3.Op) bool {
	_, listing := ctx.Value(listingKey{}).(*listing)
	return listing && op.Limit() > 0 && len(op.RangeBytes()) > 0 && p.streams.Supports(storage.RangeStream)
}

// Get implements clientv3.KV.
func (p pagingKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	op := clientv3.OpGet(key, opts...)
	if !p.paged(ctx, op) {
		return p.KV.Get(ctx, key, opts...)
	}
	r := &pageReader{KV: p.KV, op: op}
	answer := &clientv3.GetResponse{}
	err := r.read(ctx, func(piece clientv3.RangeStreamResponse) {
		answer.Kvs = append(answer.Kvs, piece.Kvs...)
		if piece.Header != nil {
			answer.Header, answer.Count, answer.More = piece.Header, piece.Count, piece.More
		}
	})
	if status.Code(err) == codes.Unimplemented {
		p.streams.MarkUnsupported(storage.RangeStream)
		return p.KV.Get(ctx, key, opts...)
	}
	return answer, err
}

// GetStream implements clientv3.KV.
func (p pagingKV) GetStream(ctx context.Context, key string, opts ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	op := clientv3.OpGet(key, opts...)
	if !p.paged(ctx, op) {
		return p.KV.GetStream(ctx, key, opts...)
	}
	r := &pageReader{KV: p.KV, op: op}
	if whole, err := r.prepare(ctx); err != nil || whole {
		return piecesOf(r.pieces), err
	}
	pieces := make(chan clientv3.RangeStreamResponse, 1)
	values, err := r.GetStream(ctx, string(op.KeyBytes()), clientv3.WithRange(r.bound), clientv3.WithRev(r.revision))
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

// read reads the page. visit gets its pieces.
func (r *pageReader) read(ctx context.Context, visit func(clientv3.RangeStreamResponse)) error {
	whole, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	if whole {
		for _, piece := range r.pieces {
			visit(piece)
		}
		return nil
	}
	return r.stream(ctx, r.bound, func(piece clientv3.RangeStreamResponse) (bool, error) {
		r.finish(piece)
		visit(piece)
		return true, nil
	}, clientv3.WithRev(r.revision))
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
		if r.revision, err = scan.Revision(ctx, r.KV, string(r.op.KeyBytes())); err != nil {
			return false, err
		}
	}
	return false, r.keys(ctx)
}

// all reads the range at the newest revision, unless it is longer than a page or has large values.
func (r *pageReader) all(ctx context.Context) (whole bool, err error) {
	read, size := int64(0), 0
	whole = true
	err = r.stream(ctx, string(r.op.RangeBytes()), func(piece clientv3.RangeStreamResponse) (bool, error) {
		read += int64(len(piece.Kvs))
		for _, value := range piece.Kvs {
			size += len(value.Value)
		}
		r.pieces = append(r.pieces, piece)
		whole = read <= r.op.Limit() && (size <= wholeBytes || piece.Header != nil)
		return whole, nil
	})
	if !whole || err != nil {
		r.pieces = nil
		return false, err
	}
	return true, nil
}

// keys reads the keys of the page and some of those after it.
func (r *pageReader) keys(ctx context.Context) error {
	limit := r.op.Limit()
	r.bound, r.more, r.after = string(r.op.RangeBytes()), false, 0
	read := int64(0)
	return r.stream(ctx, r.bound, func(piece clientv3.RangeStreamResponse) (bool, error) {
		if at := limit - read; !r.more && at < int64(len(piece.Kvs)) {
			r.bound, r.more = string(piece.Kvs[at].Key), true
		}
		read += int64(len(piece.Kvs))
		r.after = max(read-limit, 0)
		if r.after > countAhead {
			r.after = uncounted
			return false, nil
		}
		return true, nil
	}, clientv3.WithKeysOnly(), clientv3.WithRev(r.revision))
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

// stream reads the range up to a key, as scan.Stream does.
func (r *pageReader) stream(ctx context.Context, end string, visit func(clientv3.RangeStreamResponse) (bool, error), opts ...clientv3.OpOption) error {
	return scan.Stream(ctx, r.KV, string(r.op.KeyBytes()), end, visit, opts...)
}

// dropUncounted takes the number of remaining objects out of a list if it is not known.
func dropUncounted(list metav1.ListInterface, limit int64) {
	if n := list.GetRemainingItemCount(); n != nil && *n == uncounted-limit {
		list.SetRemainingItemCount(nil)
	}
}
