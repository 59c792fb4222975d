package store

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/espalier-dev/espalier/internal/etcdtest"
)

// lossy loses the answers to some transactions, or the transactions.
type lossy struct {
	clientv3.KV
	lose   []string // in order, for each transaction: request, answer, or nothing
	before func()   // is called before the second one
	err    error
	count  int
}

func (l *lossy) Txn(ctx context.Context) clientv3.Txn { return lossyTxn{l.KV.Txn(ctx), l} }

type lossyTxn struct {
	clientv3.Txn
	l *lossy
}

func (t lossyTxn) If(cs ...clientv3.Cmp) clientv3.Txn  { return lossyTxn{t.Txn.If(cs...), t.l} }
func (t lossyTxn) Then(os ...clientv3.Op) clientv3.Txn { return lossyTxn{t.Txn.Then(os...), t.l} }
func (t lossyTxn) Else(os ...clientv3.Op) clientv3.Txn { return lossyTxn{t.Txn.Else(os...), t.l} }

func (t lossyTxn) Commit() (*clientv3.TxnResponse, error) {
	l := t.l
	l.count++
	if l.count == 2 && l.before != nil {
		l.before()
	}
	what := ""
	if l.count <= len(l.lose) {
		what = l.lose[l.count-1]
	}
	if what == "request" {
		return nil, l.err
	}
	resp, err := t.Txn.Commit()
	if what == "answer" {
		return nil, l.err
	}
	return resp, err
}

// What a write answers is what became of it, whatever is lost on the way, and it is done once.
func TestWritesAreCarriedOver(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	ctx, key := t.Context(), prefix+"/key"
	put := func(value string) int64 {
		t.Helper()
		resp, err := client.Put(ctx, key, value)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Header.Revision
	}
	reset := status.Error(codes.Unavailable, "error reading from server: connection reset by peer")
	dropped := status.Error(codes.Unknown, "raft proposal dropped")
	for name, c := range map[string]struct {
		lose    []string
		exists  bool
		remove  bool
		between func()
		err     error
		done    bool // the answer
		doubt   bool // there is none
	}{
		"create, request lost":               {lose: []string{"request"}, err: reset, done: true},
		"create, answer lost":                {lose: []string{"answer"}, err: reset, done: true},
		"create, all lost twice":             {lose: []string{"answer", "answer", "request"}, err: rpctypes.ErrTimeoutDueToLeaderFail, done: true},
		"create, another was first":          {lose: []string{"request"}, err: reset, between: func() { put("another") }},
		"create, and it was changed":         {lose: []string{"answer"}, err: reset, between: func() { put("another") }, doubt: true},
		"create, dropped":                    {lose: []string{"request"}, err: dropped, between: func() { put("another") }},
		"update, request lost":               {lose: []string{"request"}, exists: true, err: reset, done: true},
		"update, dropped":                    {lose: []string{"request"}, exists: true, err: dropped, done: true},
		"update, dropped, another was first": {lose: []string{"request"}, exists: true, err: dropped, between: func() { put("another") }},
		"update, answer lost":                {lose: []string{"answer"}, exists: true, err: rpctypes.ErrTimeout, doubt: true},
		"update, another was first":          {lose: []string{"request"}, exists: true, err: reset, between: func() { put("another") }, doubt: true},
		"update, another did the same":       {lose: []string{"request"}, exists: true, err: reset, between: func() { put("new") }, doubt: true},
		"update, and another after it":       {lose: []string{"answer"}, exists: true, err: reset, between: func() { put("another") }, doubt: true},
		"delete, request lost":               {lose: []string{"request"}, exists: true, remove: true, err: reset, done: true},
		"delete, answer lost":                {lose: []string{"answer"}, exists: true, remove: true, err: reset, doubt: true},
		"create, where nothing gets lost":    {done: true},
		"delete, where it is not there now":  {exists: false, remove: true, done: true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := client.Delete(ctx, key); err != nil {
				t.Fatal(err)
			}
			var at int64
			if c.exists {
				at = put("old")
			}
			op := clientv3.OpPut(key, "new")
			if c.remove {
				op = clientv3.OpDelete(key)
			}
			l := &lossy{KV: client.KV, lose: c.lose, before: c.between, err: c.err}
			resp, err := steady{l}.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", at)).Then(op).Else(clientv3.OpGet(key)).Commit()
			if c.doubt {
				if !errors.Is(err, c.err) {
					t.Fatalf("nobody knows whether it was done, and the answer is %+v, %v", resp, err)
				}
				return
			}
			if err != nil || resp.Succeeded != c.done {
				t.Fatalf("%+v, %v", resp, err)
			}
			now, err := client.Get(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			if c.done && !c.remove && (len(now.Kvs) != 1 || string(now.Kvs[0].Value) != "new" || now.Kvs[0].ModRevision != resp.Header.Revision) {
				t.Errorf("the write is of revision %d, and there is %v", resp.Header.Revision, now.Kvs)
			}
			if !c.done && len(resp.Responses) != 1 {
				t.Errorf("what is there is not in the answer: %v", resp.Responses)
			}
		})
	}
}

// What cannot be told apart is not tried again, and neither is what etcd has refused.
func TestOtherWritesAreNotCarriedOver(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	key := prefix + "/key"
	for name, c := range map[string]struct {
		err   error
		guard clientv3.Cmp
	}{
		"no guard": {rpctypes.ErrTimeout, clientv3.Compare(clientv3.Version(key), "=", 0)},
		"refused":  {rpctypes.ErrNoSpace, clientv3.Compare(clientv3.ModRevision(key), "=", 0)},
	} {
		l := &lossy{KV: client.KV, lose: []string{"request", "request"}, err: c.err}
		_, err := steady{l}.Txn(t.Context()).If(c.guard).Then(clientv3.OpPut(key, "new")).Commit()
		if !errors.Is(err, c.err) || l.count != 1 {
			t.Errorf("%s: %v after %d attempts", name, err, l.count)
		}
	}
}
