package migration

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/server/storage/store"
)

const (
	// maxOps is how many operations etcd allows in a transaction by default, and batchBytes
	// how large ours become. etcd refuses requests of more than 1.5 MiB; an object alone may
	// be as large.
	maxOps, batchBytes = 128, 512 << 10
	// reserved are the operations for the progress, the list of quarantined objects, the CRD, and
	// in a tenant its guard.
	reserved = 4
	// maxTries bounds how often a batch is tried whose objects change all the time.
	maxTries = 16
)

// errAgain says that the progress or the CRD has changed: both must be read again.
var errAgain = errors.New("the migration's progress or its CRD has changed")

// errRetry says that the CRD has another revision, under which objects are stored as
// before. Nothing was written.
var errRetry = errors.New("the CRD has another revision")

// store carries out what is to become of a page, in batches.
func (j *job) store(ctx context.Context, p page) error {
	perObject := 1
	if j.progress.Keep > 0 {
		perObject = 2
	}
	for rest := p.items; len(rest) > 0; {
		n, ops, size := 0, 0, 0
		for ; n < len(rest); n++ {
			one := &rest[n]
			if one.fresh == nil {
				continue
			}
			more := len(one.fresh)
			if perObject == 2 && !one.apart() {
				more += len(one.image)
			}
			if ops > 0 && (ops+perObject > j.throttle.batch(perObject) || size+more > batchBytes) {
				break
			}
			ops, size = ops+perObject, size+more
		}
		if err := cmp.Or(j.interrupted(), j.space(ctx, size)); err != nil {
			return err
		}
		if err := j.commit(ctx, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// apart reports whether the pre-image of an object is stored by a transaction of its own: with the object it could be more
// than etcd accepts.
func (one *item) apart() bool { return len(one.image)+len(one.fresh) > batchBytes }

// errTooLarge is why an object is left that etcd does not accept: defaults and conversion may make it larger than it was.
var errTooLarge = errors.New("rewritten, it is larger than etcd accepts: make it smaller")

// commit writes a batch. It reads objects again that have changed since they were read.
func (j *job) commit(ctx context.Context, batch []item) error {
	for range maxTries {
		next, quarantined := j.advance(batch)
		if !slices.ContainsFunc(batch, func(one item) bool { return one.fresh != nil }) && len(quarantined) == 0 &&
			time.Since(j.saved) < reportEvery {
			// Nothing to write. The progress of etcd may be behind: reading is repeatable.
			next.revision = j.progress.revision
			j.progress = next
			return nil
		}
		changed, err := j.attempt(ctx, batch, next, quarantined)
		switch {
		case errors.Is(err, errRetry):
			continue
		case store.TooLarge(err):
			if len(batch) > 1 {
				if err := j.commit(ctx, batch[:len(batch)/2]); err != nil {
					return err
				}
				return j.commit(ctx, batch[len(batch)/2:])
			}
			batch[0].fresh, batch[0].err = nil, errTooLarge
			continue
		case err != nil || len(changed) == 0:
			return err
		}
		if batch, err = j.reread(ctx, batch, changed); err != nil {
			return err
		}
	}
	return fmt.Errorf("objects between %s and %s have changed %d times while they were rewritten", batch[0].name, batch[len(batch)-1].name, maxTries)
}

// advance is the progress after a batch, and what it quarantines.
func (j *job) advance(batch []item) (next progress, quarantined []Quarantined) {
	next = j.progress
	for i := range batch {
		switch one := &batch[i]; {
		case one.err != nil:
			next.Quarantined++
			quarantined = append(quarantined, Quarantined{one.name, cut(one.err.Error())})
		case one.fresh == nil:
			next.Skipped++
		default:
			next.Migrated++
			next.from(one.version)
			if next.Keep > 0 {
				next.Preimages++
			}
		}
	}
	if len(batch) > 0 {
		next.Next = batch[len(batch)-1].name
	}
	return next, quarantined
}

// transaction collects the parts of one transaction.
type transaction struct {
	conditions      []clientv3.Cmp
	done, otherwise []clientv3.Op
}

// unchanged requires that a key is at a revision. If the transaction fails, the answer
// has the key.
func (t *transaction) unchanged(key string, revision int64) {
	t.conditions = append(t.conditions, clientv3.Compare(clientv3.ModRevision(key), "=", revision))
	t.otherwise = append(t.otherwise, clientv3.OpGet(key, clientv3.WithKeysOnly()))
}

// begin requires what all transactions of a migration do: that the progress and the CRD
// are as they were read.
func (j *job) begin() *transaction {
	t := &transaction{}
	t.unchanged(j.progressKey(), j.progress.revision)
	if r := j.resource.Requirement; r != nil {
		t.unchanged(r.Key, j.crdRevision)
	}
	return t
}

// attempt sends the transaction of a batch. It returns the indexes of the objects that have
// changed; then nothing was written.
func (j *job) attempt(ctx context.Context, batch []item, next progress, quarantined []Quarantined) (changed []int, err error) {
	if next.Keep > 0 {
		if err := j.storeLarge(ctx, batch); err != nil {
			return nil, err
		}
	}
	t := j.begin()
	var at []int
	for i := range batch {
		one := &batch[i]
		if one.fresh == nil {
			continue
		}
		key := j.folder() + one.name
		t.unchanged(key, one.revision)
		at = append(at, i)
		t.done = append(t.done, clientv3.OpPut(key, string(one.fresh), keepLease(one.lease)...))
		if next.Keep > 0 {
			t.done = append(t.done, j.preimage(one))
		}
	}
	listed, put, err := j.list(quarantined)
	if err != nil {
		return nil, err
	}
	t.done = append(t.done, put...)
	changed, err = j.send(ctx, t, at, next)
	if err != nil || len(changed) > 0 {
		return changed, err
	}
	j.listed = listed
	j.quarantine(quarantined)
	j.count(len(at), len(batch)-len(at)-len(quarantined))
	return nil, j.report(ctx, reportEvery)
}

// list adds objects to those that are listed, and returns the write of the list if it has
// changed.
func (j *job) list(more []Quarantined) (listed []Quarantined, put []clientv3.Op, err error) {
	room := maxListed - len(j.listed)
	if len(more) == 0 || room <= 0 {
		return j.listed, nil, nil
	}
	listed = append(slices.Clone(j.listed), more[:min(len(more), room)]...)
	data, err := json.Marshal(listed)
	if err != nil {
		return nil, nil, err
	}
	return listed, []clientv3.Op{clientv3.OpPut(j.key(quarantineFolder, string(j.uid)), string(data))}, nil
}

// send commits a transaction together with the progress. at are the indexes of the objects
// that it has conditions for.
func (j *job) send(ctx context.Context, t *transaction, at []int, next progress) (changed []int, err error) {
	fixed := len(t.otherwise) - len(at)
	began := time.Now()
	resp, err := j.Etcd.Txn(ctx).If(t.conditions...).Then(append(t.done, next.put(j.progressKey()))...).Else(t.otherwise...).Commit()
	if err != nil {
		return nil, j.writing("objects", err)
	}
	if resp.Succeeded {
		next.revision = resp.Header.Revision
		j.progress, j.saved, j.advanced = next, time.Now(), true
		pause := j.throttle.after(time.Since(began), len(at), time.Now())
		j.crowded.Store(j.throttle.level > 0)
		return nil, j.sleep(ctx, pause)
	}
	found := resp.Responses
	if revisionOf(found[0]) != j.progress.revision {
		return nil, errAgain
	}
	if fixed > 1 && revisionOf(found[1]) != j.crdRevision {
		return nil, j.crdChanged(ctx, revisionOf(found[1]))
	}
	for i, k := range at {
		if revisionOf(found[fixed+i]) != conditionOf(t.conditions[fixed+i]) {
			changed = append(changed, k)
		}
	}
	if len(changed) == 0 {
		return nil, errAgain // etcd says that a condition failed, and shows none
	}
	return changed, nil
}

// conditionOf is the revision that a condition asks for.
func conditionOf(c clientv3.Cmp) int64 { return c.GetCompare().GetModRevision() }

// revisionOf is the revision of a key that was read; 0 if it does not exist.
func revisionOf(r *etcdserverpb.ResponseOp) int64 {
	if kvs := r.GetResponseRange().GetKvs(); len(kvs) > 0 {
		return kvs[0].ModRevision
	}
	return 0
}

// keepLease keeps the lease of a key that expires.
func keepLease(lease int64) []clientv3.OpOption {
	if lease == 0 {
		return nil
	}
	return []clientv3.OpOption{clientv3.WithIgnoreLease()}
}

// preimage is the write of an object as it was before the rewrite. An empty one says that
// storeLarge has stored them.
func (j *job) preimage(one *item) clientv3.Op {
	data := one.image
	if one.apart() {
		data = nil
	}
	return clientv3.OpPut(j.key(preimageFolder, string(j.uid))+"/"+one.name, string(data), sameLease(one.lease)...)
}

// storeLarge stores the pre-images that do not fit into the transaction of the rewrite. They
// are of no use until it refers to them.
func (j *job) storeLarge(ctx context.Context, batch []item) error {
	for i := range batch {
		one := &batch[i]
		if one.fresh == nil || !one.apart() {
			continue
		}
		t := j.begin()
		t.done = append(t.done, clientv3.OpPut(j.key(largeFolder, string(j.uid))+"/"+one.name, string(one.image), sameLease(one.lease)...))
		if _, err := j.send(ctx, t, nil, j.progress); err != nil {
			return err
		}
	}
	return nil
}

// sameLease has a pre-image expire with its object.
func sameLease(lease int64) []clientv3.OpOption {
	if lease == 0 {
		return nil
	}
	return []clientv3.OpOption{clientv3.WithLease(clientv3.LeaseID(lease))}
}

// reread reads objects of a batch again, and leaves out those that are gone.
func (j *job) reread(ctx context.Context, batch []item, changed []int) ([]item, error) {
	folder, again := j.folder(), make([]item, 0, len(changed))
	gone := map[int]bool{}
	for _, i := range changed {
		resp, err := j.Etcd.Get(ctx, folder+batch[i].name)
		if err != nil {
			return nil, fmt.Errorf("reading objects from etcd: %w", err)
		}
		if len(resp.Kvs) == 0 {
			gone[i] = true
			continue
		}
		again = append(again, newItem(folder, resp.Kvs[0]))
	}
	if err := j.examine(ctx, again, func(err error) { j.trouble(ctx, err) }); err != nil {
		return nil, err
	}
	kept := make([]item, 0, len(batch))
	for i, one := range batch {
		switch {
		case gone[i]:
		case slices.Contains(changed, i):
			kept, again = append(kept, again[0]), again[1:]
		default:
			kept = append(kept, one)
		}
	}
	return kept, nil
}

// crdChanged is called if etcd has another revision of the CRD. It returns nil if objects
// are stored as before.
func (j *job) crdChanged(ctx context.Context, now int64) error {
	if j.progress.Phase == undoing {
		return errAgain // storedVersions may have changed
	}
	revision, err := j.resource.Requirement.Changed(ctx, now)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errAgain
	}
	j.crdRevision = revision
	return errRetry
}

// cut bounds a reason, and makes it one line.
func cut(reason string) string {
	reason = strings.Join(strings.Fields(strings.ToValidUTF8(reason, "?")), " ")
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	return reason
}
