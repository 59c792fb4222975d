package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/espalier-dev/espalier/server/etcdtest"
)

// lossy loses the answers to some transactions, or the transactions.
type lossy struct {
	clientv3.KV
	lose  []string // in order, for each transaction: request, answer, late, or nothing
	then  func()   // is called after the first loss
	err   error
	count int
	late  []clientv3.Txn // what is still on its way
}

func (l *lossy) Txn(ctx context.Context) clientv3.Txn {
	if slices.Contains(l.lose, "late") {
		ctx = context.WithoutCancel(ctx) // what is in a socket does not end with its context
	}
	return lossyTxn{l.KV.Txn(ctx), l}
}

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
	what := ""
	if l.count <= len(l.lose) {
		what = l.lose[l.count-1]
	}
	var resp *clientv3.TxnResponse
	var err error
	switch what {
	case "late":
		l.late = append(l.late, t.Txn)
	case "", "answer":
		resp, err = t.Txn.Commit()
	}
	if what == "" {
		return resp, err
	}
	if l.count == 1 && l.then != nil {
		l.then()
	}
	return nil, l.err
}

func retryingOn(l *lossy, client *clientv3.Client, prefix string) retryingKV {
	s := newRetryingKV(client, prefix)
	s.KV = l
	return s
}

// What a write answers is what became of it, whatever is lost on the way, and it is
// done once.
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
	remove := func() {
		t.Helper()
		if _, err := client.Delete(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	reset := status.Error(codes.Unavailable, "error reading from server: connection reset by peer")
	dropped := status.Error(codes.Unknown, "raft proposal dropped")
	for name, c := range map[string]struct {
		lose   []string
		exists bool
		remove bool
		then   func()
		err    error
		done   bool // the answer
		doubt  bool // there is none
		now    string
	}{
		"create, request lost":                   {lose: []string{"request"}, err: reset, done: true, now: "new"},
		"create, answer lost":                    {lose: []string{"answer"}, err: reset, done: true, now: "new"},
		"create, still on its way":               {lose: []string{"late"}, err: reset, done: true, now: "new"},
		"create, all lost twice":                 {lose: []string{"request", "late", "answer"}, err: rpctypes.ErrTimeoutDueToLeaderFail, done: true, now: "new"},
		"create, another was first":              {lose: []string{"request"}, err: reset, then: func() { put("another") }, now: "another"},
		"create, and it was changed":             {lose: []string{"answer"}, err: reset, then: func() { put("another") }, done: true, now: "another"},
		"create, and it was deleted":             {lose: []string{"answer"}, err: reset, then: remove, done: true},
		"create, and it was deleted and another": {lose: []string{"answer"}, err: reset, then: func() { remove(); put("another") }, done: true, now: "another"},
		"create, dropped":                        {lose: []string{"request"}, err: dropped, then: func() { put("another") }, now: "another"},
		"update, request lost":                   {lose: []string{"request"}, exists: true, err: reset, done: true, now: "new"},
		"update, still on its way":               {lose: []string{"late"}, exists: true, err: reset, done: true, now: "new"},
		"update, dropped":                        {lose: []string{"request"}, exists: true, err: dropped, done: true, now: "new"},
		"update, dropped, another was first":     {lose: []string{"request"}, exists: true, err: dropped, then: func() { put("another") }, now: "another"},
		"update, answer lost":                    {lose: []string{"answer"}, exists: true, err: rpctypes.ErrTimeout, doubt: true, now: "new"},
		"update, another was first":              {lose: []string{"request"}, exists: true, err: reset, then: func() { put("another") }, now: "another"},
		"update, another deleted it":             {lose: []string{"request"}, exists: true, err: reset, then: remove},
		"update, another did the same":           {lose: []string{"request"}, exists: true, err: reset, then: func() { put("new") }, doubt: true, now: "new"},
		"update, and another after it":           {lose: []string{"answer"}, exists: true, err: reset, then: func() { put("another") }, doubt: true, now: "another"},
		"delete, request lost":                   {lose: []string{"request"}, exists: true, remove: true, err: reset, done: true},
		"delete, still on its way":               {lose: []string{"late"}, exists: true, remove: true, err: reset, done: true},
		"delete, answer lost":                    {lose: []string{"answer"}, exists: true, remove: true, err: reset, doubt: true},
		"delete, another changed it":             {lose: []string{"request"}, exists: true, remove: true, err: reset, then: func() { put("another") }, now: "another"},
		"create, done although etcd is full":     {lose: []string{"answer"}, err: rpctypes.ErrNoSpace, done: true, now: "new"},
		"update, done although etcd is full":     {lose: []string{"answer"}, exists: true, err: rpctypes.ErrNoSpace, doubt: true, now: "new"},
		"create, where nothing gets lost":        {done: true, now: "new"},
		"delete, where it is not there now":      {exists: false, remove: true, done: true},
	} {
		t.Run(name, func(t *testing.T) {
			remove()
			var at int64
			if c.exists {
				at = put("old")
			}
			op := clientv3.OpPut(key, "new")
			if c.remove {
				op = clientv3.OpDelete(key)
			}
			l := &lossy{KV: client.KV, lose: c.lose, then: c.then, err: c.err}
			s := retryingOn(l, client, prefix)
			if _, err := s.Get(ctx, key); err != nil {
				t.Fatal(err)
			}
			resp, err := s.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", at)).Then(op).Else(clientv3.OpGet(key)).Commit()
			var unknown *unansweredError
			switch {
			case c.doubt && (!errors.As(err, &unknown) || unknown.nothing || !errors.Is(err, c.err)):
				t.Fatalf("nobody knows whether it was done, and the answer is %+v, %v", resp, err)
			case !c.doubt && (err != nil || resp.Succeeded != c.done):
				t.Fatalf("%+v, %v", resp, err)
			case !c.doubt && !c.done && len(resp.Responses) != 1:
				t.Errorf("what is there is not in the answer alone: %v", resp.Responses)
			}
			check := func(when string) {
				t.Helper()
				now, err := client.Get(ctx, key)
				if err != nil {
					t.Fatal(err)
				}
				value := ""
				for _, kv := range now.Kvs {
					value = string(kv.Value)
					if c.done && value == "new" && kv.ModRevision != resp.Header.Revision {
						t.Errorf("the write is of revision %d, and there is %v", resp.Header.Revision, kv)
					}
				}
				if value != c.now {
					t.Errorf("%s there is %q, not %q", when, value, c.now)
				}
			}
			check("after it")
			// What waited in a socket arrives, when the condition on the key holds again.
			if len(l.late) == 0 {
				return
			}
			if remove(); c.exists {
				return // at that revision it never is again
			}
			c.now = ""
			for _, late := range l.late {
				if resp, err := late.Commit(); err != nil || resp.Succeeded {
					t.Errorf("what was late is done: %v, %v", resp, err)
				}
			}
			check("after what was late")
		})
	}
}

// A full etcd has not done what it refuses, and that is known at once: also if nothing
// else was written since.
func TestRefusedByAFullEtcd(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	key := prefix + "/full"
	for name, exists := range map[string]bool{"create": false, "update": true} {
		var at int64
		if exists {
			resp, err := client.Put(t.Context(), key, "old")
			if err != nil {
				t.Fatal(err)
			}
			at = resp.Header.Revision
		}
		s := retryingOn(&lossy{KV: client.KV, lose: []string{"request"}, err: rpctypes.ErrNoSpace}, client, prefix)
		if _, err := s.Get(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err := s.Txn(t.Context()).If(clientv3.Compare(clientv3.ModRevision(key), "=", at)).Then(clientv3.OpPut(key, "new")).Else(clientv3.OpGet(key)).Commit()
		if took := time.Since(began); !errors.Is(err, rpctypes.ErrNoSpace) || isDoubtful(err) || took > retryFor/2 {
			t.Errorf("%s: %v after %v", name, err, took)
		}
		if _, err := client.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
}

// A write gets past a fence that is closed in etcd and that this process does not know of.
func TestClosedFence(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	s := newRetryingKV(client, prefix)
	if _, err := client.Put(t.Context(), s.fences.current().key, ""); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{prefix + "/a", prefix + "/b"} {
		resp, err := s.Txn(t.Context()).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).Then(clientv3.OpPut(key, "new")).Commit()
		if err != nil || !resp.Succeeded {
			t.Errorf("%v, %v", resp, err)
		}
	}
	if n := s.fences.current().number; n != 2 {
		t.Errorf("the fence is number %d", n)
	}
}

// A write that its client does not wait for any longer is not done an hour later.
func TestAbandonedWrite(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	key := prefix + "/key"
	ctx, leave := context.WithCancel(t.Context())
	l := &lossy{KV: client.KV, lose: []string{"late"}, then: leave, err: context.Canceled}
	s := retryingOn(l, client, prefix)
	if _, err := s.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).Then(clientv3.OpPut(key, "new")).Commit(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); s.fences.current().number == 1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the fence is not closed")
		}
	}
	// It was made with a context that has ended; what is in a socket has none.
	f := &fence{1, strings.TrimSuffix(s.fences.current().key, "2") + "1"}
	resp, err := client.Txn(t.Context()).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0), f.isOpen()).Then(clientv3.OpPut(key, "new")).Commit()
	if err != nil || resp.Succeeded {
		t.Errorf("it is done: %v, %v", resp, err)
	}
}

// A write is done only while what it relies on is as it was.
func TestRequirement(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	ctx, key, crd := t.Context(), prefix+"/key", prefix+"/crd"
	put := func(key string) int64 {
		resp, err := client.Put(ctx, key, "")
		if err != nil {
			t.Fatal(err)
		}
		return resp.Header.Revision
	}
	s := newRetryingKV(client, prefix)
	refusal := errors.New("refused")
	for name, c := range map[string]struct {
		change func()
		take   bool
		err    error
		calls  int
	}{
		"as it was":              {},
		"changed, does not care": {change: func() { put(crd) }, take: true, calls: 1},
		"changed":                {change: func() { put(crd) }, err: refusal, calls: 1},
		"gone":                   {change: func() { _, _ = client.Delete(ctx, crd) }, err: refusal, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, _ = client.Delete(ctx, key)
			calls := 0
			r := &Requirement{Key: crd, Revision: put(crd), Changed: func(_ context.Context, now int64) (int64, error) {
				calls++
				if (now == 0) != (name == "gone") {
					t.Errorf("the revision is %d", now)
				}
				if c.take {
					return now, nil
				}
				return 0, refusal
			}}
			if c.change != nil {
				c.change()
			}
			resp, err := s.Txn(Require(ctx, r)).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).Then(clientv3.OpPut(key, "new")).Commit()
			if !errors.Is(err, c.err) || calls != c.calls || err == nil && !resp.Succeeded {
				t.Fatalf("%v, %v, asked %d times", resp, err, calls)
			}
			now, err := client.Get(ctx, key)
			if err != nil || (len(now.Kvs) == 1) != (c.err == nil) {
				t.Errorf("there is %v, %v", now, err)
			}
			if _, err := s.Txn(Require(ctx, r)).If(clientv3.Compare(clientv3.ModRevision(key), "=", 1)).Then(clientv3.OpDelete(key)).Commit(); err != nil {
				t.Errorf("a deletion depends on it: %v", err)
			}
		})
	}
}

// A deletion depends on the bond: a replica that does not know yet what a key belongs to deletes nothing.
func TestDeletionRequiresTheBond(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	key, bond := prefix+"/key", prefix+"/bond"
	put := func(key string) int64 {
		t.Helper()
		resp, err := client.Put(t.Context(), key, "")
		if err != nil {
			t.Fatal(err)
		}
		return resp.Header.Revision
	}
	s, unbound := newRetryingKV(client, prefix), errors.New("unbound")
	former, at := put(bond), put(key)
	drop := func(bondRevision int64) error {
		ctx := Require(t.Context(), &Requirement{Key: prefix + "/crd", Bond: bond, BondRevision: bondRevision, Unbound: unbound})
		_, err := s.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", at)).Then(clientv3.OpDelete(key)).Commit()
		return err
	}
	latest := put(bond)
	if err := drop(former); !errors.Is(err, unbound) {
		t.Error("with a former bond:", err)
	}
	if now, err := client.Get(t.Context(), key); err != nil || len(now.Kvs) != 1 {
		t.Errorf("there is %v, %v", now, err)
	}
	if err := drop(latest); err != nil {
		t.Error(err)
	}
	if now, err := client.Get(t.Context(), key); err != nil || len(now.Kvs) != 0 {
		t.Errorf("there is %v, %v", now, err)
	}
}

// A write is done only while a folder has no newer mark, or if its caller accepts a newer
// one.
func TestRequireFolder(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	s := newRetryingKV(client, prefix)
	refusal := errors.New("refused")
	put := func(key string, marked bool) int64 {
		t.Helper()
		key = prefix + "/" + key
		now, err := client.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		at := int64(0)
		if len(now.Kvs) > 0 {
			at = now.Kvs[0].ModRevision
		}
		ctx := Conditional(t.Context())
		if err := Mark(ctx, marked); err != nil {
			t.Fatal(err)
		}
		resp, err := s.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", at)).Then(clientv3.OpPut(key, "")).Commit()
		if err != nil || !resp.Succeeded || len(resp.Responses) != 1 {
			t.Fatalf("%v, %v", resp, err)
		}
		return resp.Header.Revision
	}
	const unprepared = "in a context that is not prepared"
	for name, c := range map[string]struct {
		there    func(folder string) (known int64)
		answer   error
		asked    int
		unmarked bool
	}{
		"empty":            {there: func(string) int64 { return 0 }},
		"another folder":   {there: func(folder string) int64 { put(folder+"-other/x", true); return 0 }},
		"all known":        {there: func(folder string) int64 { put(folder+"/x", true); return put(folder+"/y", true) }},
		"unknown":          {there: func(folder string) int64 { put(folder+"/x", true); return 0 }, answer: refusal, asked: 1},
		"unknown, allowed": {there: func(folder string) int64 { put(folder+"/x", true); return 0 }, asked: 1},
		"a new key":        {there: func(folder string) int64 { known := put(folder+"/x", true); put(folder+"/y", false); return known }},
		"a new value":      {there: func(folder string) int64 { known := put(folder+"/x", true); put(folder+"/x", false); return known }},
		"a new mark":       {there: func(folder string) int64 { known := put(folder+"/x", false); put(folder+"/x", true); return known }, answer: refusal, asked: 1},
		"a new mark among two": {there: func(folder string) int64 {
			put(folder+"/x", true)
			known := put(folder+"/y", true)
			put(folder+"/x", true)
			return known
		}, answer: refusal, asked: 1},
		unprepared:           {there: func(folder string) int64 { put(folder+"/x", true); return 0 }},
		"keys, all known":    {there: func(folder string) int64 { put(folder+"/x", false); return put(folder+"/y", false) }, unmarked: true},
		"keys, one is newer": {there: func(folder string) int64 { known := put(folder+"/y", false); put(folder+"/x", false); return known }, answer: refusal, asked: 1, unmarked: true},
	} {
		t.Run(name, func(t *testing.T) {
			key, folder, asked := prefix+"/"+name, "folder/"+name, 0
			known := c.there(folder)
			ctx := t.Context()
			if name != unprepared {
				ctx = Conditional(ctx)
			} else if Mark(ctx, true) == nil {
				t.Error("a mark is lost")
			}
			RequireFolder(ctx, Folder{Name: folder, Revision: known, Unmarked: c.unmarked, Newer: func(_ context.Context, marked []string) (Folder, error) {
				if asked++; !slices.Equal(marked, []string{"x"}) {
					t.Errorf("the marks of %v are newer", marked)
				}
				return Folder{Name: folder, Revision: 1 << 60}, c.answer
			}})
			write := func() error {
				resp, err := s.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).Then(clientv3.OpPut(key, "new")).Commit()
				if err == nil && !resp.Succeeded {
					t.Error("it has not succeeded")
				}
				return err
			}
			if err := write(); !errors.Is(err, c.answer) || asked != c.asked {
				t.Errorf("%v, asked %d times", err, asked)
			}
			now, err := client.Get(ctx, key)
			if err != nil || (len(now.Kvs) == 1) != (c.answer == nil) {
				t.Errorf("there is %v, %v", now, err)
			}
			RequireFolder(ctx, Folder{Name: folder})
			if _, err := client.Delete(ctx, key); err != nil {
				t.Fatal(err)
			}
			if err := write(); err != nil || asked != c.asked {
				t.Errorf("it was taken back: %v, asked %d times", err, asked)
			}
		})
	}
}

// A mark goes with its key: a folder without keys has nothing that a cache could know.
func TestMarksGoWithTheirKeys(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	s := newRetryingKV(client, prefix)
	ctx := Conditional(t.Context())
	if err := Mark(ctx, true); err != nil {
		t.Fatal(err)
	}
	key, other := prefix+"/resourcequotas/ns/a", prefix+"/resourcequotas/ns/b"
	revisions := map[string]int64{}
	for _, key := range []string{key, other} {
		resp, err := s.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).Then(clientv3.OpPut(key, "")).Commit()
		if err != nil || !resp.Succeeded {
			t.Fatalf("%v, %v", resp, err)
		}
		revisions[key] = resp.Header.Revision
	}
	resp, err := s.Txn(t.Context()).If(clientv3.Compare(clientv3.ModRevision(key), "=", revisions[key])).Then(clientv3.OpDelete(key)).Commit()
	if err != nil || !resp.Succeeded || len(resp.Responses) != 1 {
		t.Fatalf("%v, %v", resp, err)
	}
	left, err := client.Get(t.Context(), prefix+"/"+markFolder, clientv3.WithPrefix())
	if err != nil || len(left.Kvs) != 1 || left.Kvs[0].ModRevision != revisions[other] {
		t.Errorf("%v, %v", left, err)
	}
}

// Writes whose outcome cannot be found out are not tried again, and neither are writes
// that etcd has refused.
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
		_, err := retryingOn(l, client, prefix).Txn(t.Context()).If(c.guard).Then(clientv3.OpPut(key, "new")).Commit()
		if !errors.Is(err, c.err) || l.count != 1 {
			t.Errorf("%s: %v after %d attempts", name, err, l.count)
		}
	}
}
