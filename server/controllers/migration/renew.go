package migration

import (
	"cmp"
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/espalier-dev/espalier/server/storage/scan"
)

// renewImages gives the pre-images of all migrations of the resource the current encryption
// key: a key that was replaced may have leaked, or may go.
func (j *job) renewImages(ctx context.Context) error {
	if !j.encrypted {
		return nil
	}
	all, err := j.run.migrations.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, m := range all {
		if groupResource(m) != groupResource(j.migration) {
			continue
		}
		for _, of := range []string{preimageFolder, largeFolder} {
			if err := j.renewFolder(ctx, j.key(of, string(m.UID))+"/", of == preimageFolder); err != nil {
				return err
			}
		}
	}
	return nil
}

// renewFolder renews the pre-images of a folder. paired are those that have the revisions of
// their objects.
func (j *job) renewFolder(ctx context.Context, folder string, paired bool) error {
	for after := ""; ; {
		values, more, err := scan.Page(ctx, j.Etcd, folder+after+after0(after), clientv3.GetPrefixRangeEnd(folder), scan.Limit{Values: maxPage, Bytes: batchBytes})
		if err != nil {
			return fmt.Errorf("reading pre-images from etcd: %w", err)
		}
		var batch []item
		size := 0
		for _, kv := range values {
			one := newItem(folder, kv)
			after = one.name
			if err := j.renew(ctx, &one); err != nil {
				return err
			}
			if one.fresh == nil {
				continue
			}
			if len(batch) > 0 && (len(batch) >= j.throttle.batch(2)/2 || size+len(one.fresh) > batchBytes) {
				if err := j.storeRenewed(ctx, folder, batch, paired); err != nil {
					return err
				}
				batch, size = nil, 0
			}
			batch, size = append(batch, one), size+len(one.fresh)
		}
		if err := j.storeRenewed(ctx, folder, batch, paired); err != nil {
			return err
		}
		if !more {
			return ctx.Err()
		}
		if err := cmp.Or(j.interrupted(), j.space(ctx, batchBytes)); err != nil {
			return err
		}
	}
}

// renew encrypts a pre-image with the current key if it has another. One that cannot be read
// stays: an undo lists it.
func (j *job) renew(ctx context.Context, one *item) error {
	if len(one.raw) == 0 {
		return nil // the large one is elsewhere
	}
	data, stale, err := j.decrypt(ctx, one.name, one.raw)
	switch {
	case err != nil && (ctx.Err() != nil || passing(err)):
		return fmt.Errorf("decrypting the pre-image of %s: %w", one.name, err)
	case err != nil || !stale:
		return nil
	}
	if one.fresh, err = j.encrypt(ctx, one.name, data); err != nil {
		return fmt.Errorf("encrypting the pre-image of %s: %w", one.name, err)
	}
	return nil
}

// storeRenewed stores renewed pre-images. A pre-image that has the revision of its object gets a
// new one together with the object: otherwise undo would take the object for changed. Mostly
// this migration has just rewritten the object, for the same key.
func (j *job) storeRenewed(ctx context.Context, folder string, batch []item, paired bool) error {
	if len(batch) == 0 {
		return nil
	}
	t, began := j.begin(), time.Now()
	for i := range batch {
		one := &batch[i]
		t.unchanged(folder+one.name, one.revision)
		t.done = append(t.done, clientv3.OpPut(folder+one.name, string(one.fresh), keepLease(one.lease)...))
		if key := j.folder() + one.name; paired {
			t.conditions = append(t.conditions, clientv3.Compare(clientv3.ModRevision(key), "!=", one.revision))
		}
	}
	ok, err := j.commitRenewed(ctx, t)
	switch {
	case err != nil:
		return err
	case ok:
		return j.sleep(ctx, j.throttle.after(time.Since(began), len(batch), time.Now()))
	case len(batch) > 1:
		if err := j.storeRenewed(ctx, folder, batch[:len(batch)/2], paired); err != nil {
			return err
		}
		return j.storeRenewed(ctx, folder, batch[len(batch)/2:], paired)
	}
	one, key := &batch[0], j.folder()+batch[0].name
	now, err := j.Etcd.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("reading objects from etcd: %w", err)
	}
	if len(now.Kvs) == 0 || now.Kvs[0].ModRevision != one.revision {
		return errAgain
	}
	t = j.begin()
	t.unchanged(folder+one.name, one.revision)
	t.unchanged(key, one.revision)
	t.done = append(t.done, clientv3.OpPut(folder+one.name, string(one.fresh), keepLease(one.lease)...),
		clientv3.OpPut(key, string(now.Kvs[0].Value), keepLease(now.Kvs[0].Lease)...))
	if ok, err = j.commitRenewed(ctx, t); err == nil && !ok {
		err = errAgain
	}
	return err
}

func (j *job) commitRenewed(ctx context.Context, t *transaction) (ok bool, err error) {
	resp, err := j.Etcd.Txn(ctx).If(t.conditions...).Then(t.done...).Commit()
	if err != nil {
		return false, j.writing("pre-images", err)
	}
	return resp.Succeeded, nil
}
