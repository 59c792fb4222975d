package espaliertest

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// keys returns the keys of a test server, with their values.
func (ts *TestServer) keys(ctx context.Context) (map[string]string, error) {
	got, err := shared.client.Get(ctx, ts.prefix+"/", withPrefix...)
	if err != nil {
		return nil, err
	}
	keys := make(map[string]string, len(got.Kvs))
	for _, kv := range got.Kvs {
		keys[string(kv.Key)] = string(kv.Value)
	}
	return keys, nil
}

// restore gives a test server the keys that it had before. To the server it looks as if a
// client deleted all new objects and rewrote all changed ones. An object that the server
// writes again each time is its own, which it had not written yet when keys were read (on
// a busy machine it can pause for longer than calm): restore adds it to keys.
func (ts *TestServer) restore(ctx context.Context, keys map[string]string) error {
	for attempt := range 10 {
		if err := ts.settle(ctx); err != nil {
			return err
		}
		now, err := ts.keys(ctx)
		if err != nil {
			return err
		}
		var changes []clientv3.Op
		for key := range now {
			if _, ok := keys[key]; !ok {
				changes = append(changes, clientv3.OpDelete(key))
			}
		}
		for key, value := range keys {
			// Leases are what the server tells the time with.
			if now[key] != value && !strings.Contains(key, "/leases/") {
				changes = append(changes, clientv3.OpPut(key, value))
			}
		}
		if len(changes) == 0 {
			return nil
		}
		if attempt >= insists {
			clear(keys)
			maps.Copy(keys, now)
			continue
		}
		for len(changes) > 0 {
			n := min(len(changes), 100) // etcd takes 128 in a transaction
			if _, err := shared.client.Txn(ctx).Then(changes[:n]...).Commit(); err != nil {
				return err
			}
			changes = changes[n:]
		}
	}
	return errors.New("restoring the test server failed: the server keeps changing its objects")
}

const (
	// calm is how long nothing must change to be settled.
	calm = 20 * time.Millisecond
	// look is how often to look.
	look = 2 * time.Millisecond
	// insists is how often the server undoes a restore of what is its own.
	insists = 3
)

// settle waits until the server changes nothing by itself.
func (ts *TestServer) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	newest := append([]clientv3.OpOption{clientv3.WithKeysOnly(), clientv3.WithLimit(1), clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend)}, withPrefix...)
	var revision, count int64
	for since := time.Now(); time.Since(since) < calm; time.Sleep(look) {
		got, err := shared.client.Get(ctx, ts.prefix+"/", newest...)
		if err != nil {
			return err
		}
		last := int64(0)
		for _, kv := range got.Kvs {
			last = kv.ModRevision
		}
		if last != revision || got.Count != count {
			revision, count, since = last, got.Count, time.Now()
		}
	}
	return nil
}
