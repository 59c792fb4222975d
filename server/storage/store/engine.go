package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"
)

// ErrIgnoresConditions is that an engine does transactions whose conditions do not hold.
var ErrIgnoresConditions = errors.New("it carries out transactions whose conditions do not hold, so that replicas would overwrite what others have written: use etcd, or a release of this engine that looks at conditions")

// engine is what speaks etcd's API: etcd, or a program in front of another database, which may
// lack a part of it.
type engine struct {
	// bounded engines have no transactions but those of kube-apiserver: one write of one key, on
	// the condition that it is at a revision.
	bounded bool
}

// A lack is a part of etcd's API that an engine does not have, and what users give up by that.
type lack struct{ what, giveUp string }

var (
	lacksTransactions = lack{"transactions with several conditions or operations", "a write whose answer was lost may be done later, writes of objects can pass a change of their CRD or quota, " +
		"and --tenants, --kinds=all and StorageVersionMigrations are refused"}
	lacksLeases   = lack{"renewing leases", "replicas announce themselves again every few seconds, and read CRDs then"}
	lacksStale    = lack{"serializable reads", "health checks and counts ask the whole database"}
	lacksPatience = "the engine in front of the database decides what happens when it fails"
)

// probe finds out what the engine lacks, by requests that write nothing. It costs a round
// trip with etcd.
func (b *Backend) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	absent, other := b.Key(ownProbe+string(uuid.NewUUID())), b.Key(ownProbe+string(uuid.NewUUID()))
	var wg sync.WaitGroup
	var ignores bool
	var errs [3]error
	wg.Go(func() {
		answer, err := b.plain.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(absent), "=", 0), clientv3.Compare(clientv3.CreateRevision(other), ">", 0)).
			Then(clientv3.OpGet(absent), clientv3.OpGet(other)).Else(clientv3.OpGet(other), clientv3.OpGet(absent)).Commit()
		ignores, errs[0] = err == nil && answer.Succeeded, err
	})
	wg.Go(func() { _, errs[1] = b.client.TimeToLive(ctx, 1) })
	wg.Go(func() { _, errs[2] = b.plain.Get(ctx, absent, clientv3.WithSerializable(), clientv3.WithCountOnly()) })
	wg.Wait()
	if ignores {
		return fmt.Errorf("the engine at %s must not be used: %w", strings.Join(b.Endpoints(), ","), ErrIgnoresConditions)
	}
	var all []lack
	for i, one := range []lack{lacksTransactions, lacksLeases, lacksStale} {
		if lacks(errs[i]) {
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		return nil
	}
	var what, giveUp []string
	for _, one := range all {
		what, giveUp = append(what, one.what), append(giveUp, one.giveUp)
	}
	if b.engine.bounded = lacks(errs[0]); b.engine.bounded {
		b.bound.Store(true)
		b.client.Watcher = patientWatcher{b.client.Watcher}
		if err := b.probeWrites(ctx); err != nil {
			return err
		}
		giveUp = append(giveUp, lacksPatience)
	}
	klog.InfoS("This is not etcd, and it lacks a part of its API. Use etcd for what is given up", "endpoints", b.Endpoints(), "lacks", strings.Join(what, "; "), "givenUp", strings.Join(giveUp, "; "))
	return nil
}

// ownProbe is where probes look. It has nothing.
const ownProbe = "-espalier/probe/"

// lacks reports whether an error says that the engine does not have what was asked for.
func lacks(err error) bool {
	if err == nil {
		return false
	}
	text := strings.ToLower(err.Error())
	return status.Code(err) == codes.Unimplemented || strings.Contains(text, "not supported") || strings.Contains(text, "unsupported") || strings.Contains(text, "not implemented")
}

// probeWrites makes sure that an engine without other transactions looks at the conditions of those
// that it has: it creates, changes and deletes a key, and tries each with a wrong revision.
func (b *Backend) probeWrites(ctx context.Context) error {
	key := b.Key(ownProbe + string(uuid.NewUUID()))
	steps := []struct {
		what string
		at   func(last int64) int64
		op   clientv3.Op
		want bool
	}{
		{"create a key", func(int64) int64 { return 0 }, clientv3.OpPut(key, "1"), true},
		{"create a key that exists", func(int64) int64 { return 0 }, clientv3.OpPut(key, "2"), false},
		{"change a key at another revision", func(last int64) int64 { return last + 1000 }, clientv3.OpPut(key, "3"), false},
		{"change a key", func(last int64) int64 { return last }, clientv3.OpPut(key, "4"), true},
		{"delete a key at another revision", func(last int64) int64 { return last + 1000 }, clientv3.OpDelete(key), false},
		{"delete a key", func(last int64) int64 { return last }, clientv3.OpDelete(key), true},
	}
	last := int64(0)
	for _, one := range steps {
		answer, err := b.plain.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", one.at(last))).Then(one.op).Else(clientv3.OpGet(key)).Commit()
		if err != nil {
			return fmt.Errorf("the engine at %s cannot be used: to %s failed: %w", strings.Join(b.Endpoints(), ","), one.what, err)
		}
		if answer.Succeeded != one.want {
			return fmt.Errorf("the engine at %s must not be used: to %s gave %t: %w", strings.Join(b.Endpoints(), ","), one.what, answer.Succeeded, ErrIgnoresConditions)
		}
		if one.want {
			last = answer.Header.Revision
		}
	}
	return nil
}

// Bounded reports whether the engine has no transactions but those of kube-apiserver.
func (b *Backend) Bounded() bool { return b.engine.bounded }
