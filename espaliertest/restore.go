package espaliertest

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// keys are those of a world, with their values.
func (w *World) keys(ctx context.Context) (map[string]string, error) {
	got, err := shared.client.Get(ctx, w.prefix+"/", withPrefix...)
	if err != nil {
		return nil, err
	}
	keys := make(map[string]string, len(got.Kvs))
	for _, kv := range got.Kvs {
		keys[string(kv.Key)] = string(kv.Value)
	}
	return keys, nil
}

// restore gives a world the keys that it had once. To its server it is as if
// somebody deleted what is new and wrote what is not as it was. What the server
// writes again each time is its own, which it had not written yet when keys were
// read (on a busy machine it can pause for longer than calm): it becomes what keys say.
func (w *World) restore(ctx context.Context, keys map[string]string) error {
	for attempt := range 10 {
		if err := w.settle(ctx); err != nil {
			return err
		}
		now, err := w.keys(ctx)
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
	return errors.New("the server goes on changing what it has")
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
func (w *World) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	newest := append([]clientv3.OpOption{clientv3.WithKeysOnly(), clientv3.WithLimit(1), clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend)}, withPrefix...)
	var revision, count int64
	for since := time.Now(); time.Since(since) < calm; time.Sleep(look) {
		got, err := shared.client.Get(ctx, w.prefix+"/", newest...)
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
