package store

import (
	"context"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/espalier-dev/espalier/server/etcdtest"
)

// replaced is an etcd in which a part is removed and made again while it is read: a stream is of the moment
// without a guard.
type replaced struct {
	clientv3.KV
	t     *testing.T
	guard string
	with  string // a key that the new part has
}

// GetStream implements clientv3.KV.
func (r replaced) GetStream(ctx context.Context, key string, opts ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	if clientv3.OpGet(key, opts...).Rev() > 0 {
		return r.KV.GetStream(ctx, key, opts...)
	}
	if _, err := r.KV.Delete(ctx, r.guard, clientv3.WithPrefix()); err != nil {
		r.t.Error(err)
	}
	pieces, err := r.KV.GetStream(ctx, key, opts...)
	if err != nil {
		return nil, err
	}
	answer, err := clientv3.GetStreamToGetResponse(pieces)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{r.guard, r.with} {
		if _, err := r.KV.Put(ctx, key, "again"); err != nil {
			r.t.Error(err)
		}
	}
	return piecesOf([]clientv3.RangeStreamResponse{{RangeResponse: (*pb.RangeResponse)(answer)}}), nil
}

// What is read as a stream was there under the guard, whenever the guard is read.
func TestStreamIsUnderTheGuard(t *testing.T) {
	etcd, prefix := etcdtest.Client(t)
	for _, key := range []string{prefix, prefix + "/a"} {
		if _, err := etcd.Put(t.Context(), key, "before"); err != nil {
			t.Fatal(err)
		}
	}
	read := func(kv clientv3.KV) (keys []string, revision int64) {
		t.Helper()
		part := guardedKV{KV: kv, guard: newGuard(kv, Part{Guard: prefix})}
		pieces, err := part.GetStream(t.Context(), prefix+"/", clientv3.WithPrefix())
		if err != nil {
			t.Fatal(err)
		}
		answer, err := clientv3.GetStreamToGetResponse(pieces)
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range answer.Kvs {
			keys = append(keys, string(kv.Key))
		}
		return keys, answer.Header.Revision
	}
	before, err := etcd.Get(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	if keys, revision := read(etcd.KV); len(keys) != 1 || keys[0] != prefix+"/a" || revision < before.Header.Revision {
		t.Errorf("read %v of revision %d", keys, revision)
	}
	if keys, revision := read(replaced{etcd.KV, t, prefix, prefix + "/b"}); len(keys) != 1 || keys[0] != prefix+"/b" || revision < before.Header.Revision+3 {
		t.Errorf("read %v of revision %d: that is of a moment without the guard", keys, revision)
	}
}

// unavailable does not begin a stream of the newest values.
type unavailable struct{ clientv3.KV }

// GetStream implements clientv3.KV.
func (u unavailable) GetStream(ctx context.Context, key string, opts ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	if clientv3.OpGet(key, opts...).Rev() == 0 {
		return nil, status.Error(codes.Unavailable, "the test has no connection")
	}
	return u.KV.GetStream(ctx, key, opts...)
}

// etcd that elects a leader does not answer a stream, and its client does not try it again. A list is tried again, as the read
// of the guard is.
func TestStreamWithoutAnAnswer(t *testing.T) {
	etcd, prefix := etcdtest.Client(t)
	for _, key := range []string{prefix, prefix + "/a"} {
		if _, err := etcd.Put(t.Context(), key, "before"); err != nil {
			t.Fatal(err)
		}
	}
	proxy := etcdtest.NewProxy(t, etcd.Endpoints()[0], 0)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{proxy.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // the test is over
	lost := 0
	proxy.Lose(func(c etcdtest.Call) bool {
		lose := c.Method == "RangeStream" && lost == 0
		if lose {
			lost++
		}
		return lose
	})
	for what, kv := range map[string]clientv3.KV{"lost": client.KV, "not begun": unavailable{client.KV}} {
		part := guardedKV{KV: kv, guard: newGuard(kv, Part{Guard: prefix})}
		pieces, err := part.GetStream(t.Context(), prefix+"/", clientv3.WithPrefix())
		if err != nil {
			t.Fatal(what, err)
		}
		if answer, err := clientv3.GetStreamToGetResponse(pieces); err != nil || len(answer.Kvs) != 1 {
			t.Errorf("%s: %v, %v", what, answer, err)
		}
	}
	if lost != 1 {
		t.Error("no answer was lost")
	}
}
