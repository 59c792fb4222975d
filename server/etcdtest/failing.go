package etcdtest

import (
	"context"
	"errors"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// ErrFailed is the error of a request that [Failing] lets fail.
var ErrFailed = errors.New("the test lets this request to etcd fail")

// Failing is the KV of a client of etcd, and lets requests below a prefix fail before they
// are sent.
type Failing struct {
	clientv3.KV
	prefix string
	mu     sync.Mutex
	left   int // requests until the one that fails; 0 if none does
	sent   []string
	failed string
}

// NewFailing makes the requests of a client fail when the test wants it.
func NewFailing(client *clientv3.Client, prefix string) *Failing {
	f := &Failing{KV: client.KV, prefix: prefix}
	client.KV = f
	return f
}

// Fail lets the request number n from now on fail, counted from 1, and forgets those before.
func (f *Failing) Fail(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.sent, f.failed = n, nil, ""
}

// Stop returns the requests since Fail up to the one that failed, and that one: the verb, and
// the key without the prefix. It is "" if none has failed.
func (f *Failing) Stop() (sent []string, failed string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = 0
	return f.sent, f.failed
}

func (f *Failing) take(verb, key string) error {
	below, ok := strings.CutPrefix(key, f.prefix)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !ok || f.left == 0 {
		return nil
	}
	if f.left--; f.left > 0 {
		f.sent = append(f.sent, verb+" "+below)
		return nil
	}
	f.failed = verb + " " + below
	return ErrFailed
}

// Get implements clientv3.KV.
func (f *Failing) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if err := f.take("get", key); err != nil {
		return nil, err
	}
	return f.KV.Get(ctx, key, opts...)
}

// Put implements clientv3.KV.
func (f *Failing) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	if err := f.take("put", key); err != nil {
		return nil, err
	}
	return f.KV.Put(ctx, key, value, opts...)
}

// Txn implements clientv3.KV.
func (f *Failing) Txn(ctx context.Context) clientv3.Txn {
	return failingTxn{f.KV.Txn(ctx), f, ""}
}

// failingTxn is known by the key of its first change.
type failingTxn struct {
	clientv3.Txn
	f   *Failing
	key string
}

func (t failingTxn) If(cs ...clientv3.Cmp) clientv3.Txn {
	return failingTxn{t.Txn.If(cs...), t.f, t.key}
}

func (t failingTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	if len(ops) > 0 {
		t.key = string(ops[0].KeyBytes())
	}
	return failingTxn{t.Txn.Then(ops...), t.f, t.key}
}

func (t failingTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	return failingTxn{t.Txn.Else(ops...), t.f, t.key}
}

// Commit implements clientv3.Txn.
func (t failingTxn) Commit() (*clientv3.TxnResponse, error) {
	if err := t.f.take("change", t.key); err != nil {
		return nil, err
	}
	return t.Txn.Commit()
}
