package migration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	svmv1 "k8s.io/api/storagemigration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/controllers/crdcontroller"
	"github.com/espalier-dev/espalier/server/storage/scan"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// undo puts pre-images back where the object is still as the migration wrote it.
func (j *job) undo(ctx context.Context) error {
	p := &j.progress
	if p.Phase != undoing {
		if text := j.hindrance(); text != "" {
			return j.hinder(ctx, reasonNoImages, text)
		}
		if p.Phase == rewriting && p.Migrated == 0 {
			return j.end(ctx, undone, "")
		}
		p.Phase, p.Next, p.Restored, p.Left = undoing, "", 0, 0
		if err := j.save(ctx, j.uid, p); err != nil {
			return err
		}
	}
	if text := j.missing(); text != "" {
		return j.hinder(ctx, reasonUndoWaits, text)
	}
	if err := j.space(ctx, 0); err != nil {
		return err
	}
	if err := j.extend(ctx); err != nil {
		return err
	}
	if err := j.report(ctx, 0); err != nil {
		return err
	}
	if err := j.restore(ctx); err != nil {
		return err
	}
	return j.end(ctx, undone, "")
}

// hindrance says why nothing can be undone; "" if it can.
func (j *job) hindrance() string {
	switch p := &j.progress; {
	case p.Foreign:
		return foreign
	case p.Migrated == 0:
		return ""
	case p.CRD != "" && (j.resource == nil || j.resource.CRD == nil || j.resource.CRD.UID != p.CRD) && p.Expired:
		return crdGone
	case p.Expires != nil && (p.Expired || j.now().After(*p.Expires)):
		return "the pre-images have expired at " + p.Expires.UTC().Format(time.RFC3339)
	case p.Expired:
		return "the pre-images were deleted"
	case p.Preimages == 0:
		return fmt.Sprintf("there are no pre-images: set the annotation %s when you create a StorageVersionMigration", KeepAnnotation)
	}
	return ""
}

const (
	// foreign is why a migration cannot be undone that another controller began.
	foreign = "another controller has begun or done this migration, and kept no pre-images: change the storage version back, and create another StorageVersionMigration"
	// crdGone is why there is nothing to undo.
	crdGone = "the CustomResourceDefinition was deleted, and its objects with it"
)

// missing says what the CRD lacks for its objects to be stored as before; "" if nothing.
func (j *job) missing() string {
	p := &j.progress
	if p.CRD == "" {
		if j.resource == nil {
			return "the resource does not exist any more"
		}
		return ""
	}
	if j.resource == nil || j.resource.CRD == nil || j.resource.CRD.UID != p.CRD {
		return crdGone
	}
	for _, version := range p.Versions {
		if j.resource.CRD.Version(version) == nil {
			return fmt.Sprintf("the CustomResourceDefinition has no version %s, which the pre-images are stored in: add it to spec.versions, with served: false if clients must not use it", version)
		}
	}
	return ""
}

// hinder writes why the undo does not go on. It is tried again later.
func (j *job) hinder(ctx context.Context, reason, text string) error {
	err := j.write(ctx, func(status *svmv1.StorageVersionMigrationStatus) {
		set(status, undoneCondition, metav1.ConditionFalse, reason, text)
	})
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", errHindered, text)
}

// errHindered says that an undo cannot go on until a user has done something.
var errHindered = errors.New("the migration cannot be undone now")

// extend adds the versions of the pre-images to storedVersions.
func (j *job) extend(ctx context.Context) error {
	e := j.resource.CRD
	if e == nil {
		return nil
	}
	if !slices.ContainsFunc(j.progress.Versions, func(v string) bool { return !slices.Contains(e.StoredVersions, v) }) {
		return nil
	}
	err := j.UpdateCRD(ctx, e.Name, func(o *object.Object) error {
		status, err := crdcontroller.StatusOf(o)
		switch {
		case err != nil:
			return err
		case o.GetUID() != e.UID || o.GetGeneration() != e.Generation:
			return errAgain
		}
		for _, version := range j.progress.Versions {
			if !slices.Contains(status.StoredVersions, version) {
				status.StoredVersions = append(status.StoredVersions, version)
			}
		}
		crdcontroller.SetStatus(o, status)
		return nil
	})
	if err != nil {
		return err
	}
	return errAgain // transactions depend on the CRD as it is now
}

// restore puts the pre-images back, page by page.
func (j *job) restore(ctx context.Context) error {
	folder := j.key(preimageFolder, string(j.uid)) + "/"
	for {
		if err := cmp.Or(j.interrupted(), j.space(ctx, batchBytes)); err != nil {
			return err
		}
		limit := int64(j.throttle.batch(2) / 2)
		after := j.progress.Next
		values, _, err := scan.Page(ctx, j.Etcd, folder+after+after0(after), clientv3.GetPrefixRangeEnd(folder), scan.Limit{Values: limit, Bytes: batchBytes})
		if err != nil {
			return fmt.Errorf("reading pre-images from etcd: %w", err)
		}
		if len(values) == 0 {
			return nil
		}
		batch := make([]item, 0, len(values))
		size := 0
		for _, kv := range values {
			one := newItem(folder, kv)
			if err := j.image(ctx, &one); err != nil {
				return err
			}
			if size += len(one.fresh); size > batchBytes && len(batch) > 0 {
				break
			}
			batch = append(batch, one)
		}
		if err := j.putBack(ctx, batch); err != nil {
			return err
		}
	}
}

// image makes a pre-image ready to be stored again. One with an old encryption key gets the
// current key: undo must not bring back a key that was replaced.
func (j *job) image(ctx context.Context, one *item) error {
	if len(one.raw) == 0 {
		resp, err := j.Etcd.Get(ctx, j.key(largeFolder, string(j.uid))+"/"+one.name)
		if err != nil {
			return fmt.Errorf("reading pre-images from etcd: %w", err)
		}
		if len(resp.Kvs) == 0 {
			one.err = errors.New("its pre-image is lost")
			return nil
		}
		one.raw = resp.Kvs[0].Value
	}
	data, stale, err := j.decrypt(ctx, one.name, one.raw)
	switch {
	case err != nil && (ctx.Err() != nil || passing(err)):
		return fmt.Errorf("decrypting the pre-image of %s: %w", one.name, err)
	case err != nil:
		one.err = fmt.Errorf("its pre-image cannot be decrypted: %w", err)
		return nil
	case !stale:
		one.fresh = one.raw
		return nil
	}
	if one.fresh, err = j.encrypt(ctx, one.name, data); err != nil {
		return fmt.Errorf("encrypting the pre-image of %s: %w", one.name, err)
	}
	return nil
}

// putBack stores pre-images in place of the objects that still have their revisions.
func (j *job) putBack(ctx context.Context, batch []item) error {
	for range maxTries {
		next := j.progress
		next.Next = batch[len(batch)-1].name
		t := j.begin()
		var at []int
		for i := range batch {
			one := &batch[i]
			if one.err != nil {
				next.Left++
				continue
			}
			next.Restored++
			key := j.folder() + one.name
			t.unchanged(key, one.revision)
			at = append(at, i)
			t.done = append(t.done, clientv3.OpPut(key, string(one.fresh), keepLease(one.lease)...),
				clientv3.OpDelete(j.key(preimageFolder, string(j.uid))+"/"+one.name))
		}
		listed, put, err := j.leave(batch)
		if err != nil {
			return err
		}
		t.done = append(t.done, put...)
		changed, err := j.send(ctx, t, at, next)
		if store.TooLarge(err) && len(batch) == 1 && batch[0].err == nil {
			batch[0].err = errors.New("its pre-image is larger than etcd accepts")
			continue
		}
		if err != nil {
			return err
		}
		if len(changed) == 0 {
			j.listed = listed
			objects.WithLabelValues("restored").Add(float64(len(at)))
			objects.WithLabelValues("left").Add(float64(len(batch) - len(at)))
			j.measure(len(batch))
			return j.report(ctx, reportEvery)
		}
		for _, i := range changed {
			batch[i].err = errors.New("it has changed since the migration, or is deleted")
		}
	}
	return errAgain
}

// leave adds the objects of a batch that are left to the list, and returns the write of the
// list if it has changed.
func (j *job) leave(batch []item) (listed []Quarantined, put []clientv3.Op, err error) {
	var left []Quarantined
	for i := range batch {
		if batch[i].err != nil {
			left = append(left, Quarantined{batch[i].name, cut("not undone: " + batch[i].err.Error())})
		}
	}
	return j.list(left)
}

func (j *job) undoMessage() string {
	p := &j.progress
	return fmt.Sprintf("%d objects have their pre-images back, %d were left because they have changed since or are deleted", p.Restored, p.Left)
}

// sweepPage is how many pre-images are deleted at a time.
const sweepPage = 1000

// sweep deletes what migrations leave behind that are deleted, and pre-images that have
// expired.
func (r *run) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to delete pre-images, retrying")
		}
		select {
		case <-ctx.Done():
		case <-r.sweeping:
		case <-time.After(sweepEvery):
		}
	}
}

func (r *run) sweepOnce(ctx context.Context) error {
	folder := r.key(progressFolder) + "/"
	resp, err := r.Etcd.Get(ctx, folder, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil || len(resp.Kvs) == 0 {
		return err
	}
	// Not the informer: it may not know yet what another replica has begun.
	all, err := r.Client.StoragemigrationV1().StorageVersionMigrations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	alive := map[types.UID]*svmv1.StorageVersionMigration{}
	for i := range all.Items {
		alive[all.Items[i].UID] = &all.Items[i]
	}
	var errs []error
	for _, kv := range resp.Kvs {
		uid := types.UID(strings.TrimPrefix(string(kv.Key), folder))
		if m := alive[uid]; m != nil {
			errs = append(errs, r.expire(ctx, m))
		} else {
			errs = append(errs, r.forget(ctx, uid))
		}
	}
	return errors.Join(errs...)
}

// expire deletes the pre-images of a migration if their time is over or their CRD is deleted.
// The progress says so first: if an undo has just begun, it is another; and no undo begins
// after that, whatever the clock of its replica says.
func (r *run) expire(ctx context.Context, m *svmv1.StorageVersionMigration) error {
	p, err := r.load(ctx, m.UID)
	if err != nil || p == nil || p.Preimages == 0 {
		return err
	}
	if over := p.Expires != nil && p.Phase != undoing && r.now().After(*p.Expires); !over && !p.Expired {
		if gone, err := r.crdDeleted(ctx, m, p); err != nil || !gone {
			return err
		}
	}
	p.Expired = true
	err = r.save(ctx, m.UID, p)
	if err == nil {
		err = r.deleteImages(ctx, m.UID)
	}
	if err == nil {
		p.Preimages = 0
		err = r.save(ctx, m.UID, p)
	}
	if errors.Is(err, errAgain) {
		return nil // the next sweep looks again
	}
	return err
}

// crdDeleted reports whether the CRD of a migration does not exist any more. Its objects are
// deleted then, and it never comes back: another one of its name has another UID.
func (r *run) crdDeleted(ctx context.Context, m *svmv1.StorageVersionMigration, p *progress) (bool, error) {
	if p.CRD == "" {
		return false, nil
	}
	name := groupResource(m)
	resp, err := r.Etcd.Get(ctx, r.key(catalog.Key, name.String()), clientv3.WithCountOnly())
	if err != nil || resp.Count == 0 {
		return err == nil, err
	}
	now, err := r.Lookup(ctx, name)
	if err != nil || now == nil || now.CRD == nil {
		return false, err
	}
	return now.CRD.UID != p.CRD, nil
}

// forget deletes everything of a migration that is deleted. The progress changes first: no
// transaction of the migration succeeds after that. It is deleted last, so that the next
// sweep finds it if this process ends in between. A leader that verifies learns of it: what the
// progress says of an undo must not go unseen.
func (r *run) forget(ctx context.Context, uid types.UID) error {
	p, err := r.load(ctx, uid)
	if err != nil || p == nil {
		return err
	}
	p.Phase, p.Message = failed, "the StorageVersionMigration was deleted"
	if err := r.save(ctx, uid, p); err != nil {
		return err // the next sweep tries again
	}
	if err := r.deleteImages(ctx, uid); err != nil {
		return err
	}
	if _, err := r.Etcd.Delete(ctx, r.key(quarantineFolder, string(uid))); err != nil {
		return err
	}
	_, err = r.Etcd.Txn(ctx).Then(clientv3.OpDelete(r.key(progressFolder, string(uid))), clientv3.OpPut(r.key(forgottenFolder, "last"), "")).Commit()
	return err
}

// deleteImages deletes the pre-images of a migration, in pages: one deletion of a million
// keys would stop etcd for seconds.
func (r *run) deleteImages(ctx context.Context, uid types.UID) error {
	for _, of := range []string{preimageFolder, largeFolder} {
		folder := r.key(of, string(uid)) + "/"
		for {
			keys, _, err := scan.Page(ctx, r.Etcd, folder, clientv3.GetPrefixRangeEnd(folder), scan.Limit{Values: sweepPage}, clientv3.WithKeysOnly())
			if err != nil {
				return err
			}
			if len(keys) == 0 {
				break
			}
			last := string(keys[len(keys)-1].Key)
			if _, err := r.Etcd.Delete(ctx, string(keys[0].Key), clientv3.WithRange(last+"\x00")); err != nil {
				return err
			}
		}
	}
	return nil
}
