package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	svmv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/controllers/crdcontroller"
)

// job is one migration, or its undo, while this process works on it.
type job struct {
	*Config
	run       *run
	migration *svmv1.StorageVersionMigration
	name      string
	uid       types.UID

	resource    *Resource
	transformer value.Transformer
	crdRevision int64 // that transactions depend on
	progress    progress
	keep        bool      // pre-images; the goroutine that reads pages does not read progress
	saved       time.Time // when the progress was written to etcd
	listed      []Quarantined

	throttle throttle
	// crowded says that there are users: a page is examined at once, which they would wait for.
	crowded  atomic.Bool
	meter    meter
	reported time.Time
	problem  string // a failure that may pass
	advanced bool   // something was written
	evented  int    // events about quarantined objects
}

var (
	errPaused = errors.New("the migration is paused")
	errGone   = errors.New("the migration is deleted")
	errUndo   = errors.New("the migration is to be undone")
)

// maxRounds bounds how often the scan may find objects that the walk has not.
const maxRounds = 5

// do carries out the migration.
func (j *job) do(ctx context.Context) error {
	for {
		done, err := j.step(ctx)
		switch {
		case errors.Is(err, errAgain), errors.Is(err, errRetry), errors.Is(err, errUndo):
			if err := j.sleep(ctx, 5*time.Millisecond); err != nil {
				return err
			}
		case errors.Is(err, errPaused):
			return errors.Join(err, j.rest(ctx))
		case err != nil || done:
			return err
		}
	}
}

// step does one phase.
func (j *job) step(ctx context.Context) (done bool, err error) {
	if err := j.prepare(ctx); err != nil {
		return false, err
	}
	p := &j.progress
	if wantsUndo(j.migration) && p.Phase != undone {
		return false, j.undo(ctx)
	}
	switch p.Phase {
	case rewriting:
		if err := j.start(ctx); err != nil {
			return false, err
		}
		if err := j.rewrite(ctx); err != nil {
			return false, err
		}
		if p.Quarantined > 0 {
			return false, j.end(ctx, failed, fmt.Sprintf("%d of %d objects cannot be read or converted and were left as they are: repair or delete them, and create another StorageVersionMigration", p.Quarantined, p.seen()))
		}
		p.Phase, p.Next = verifying, ""
		return false, j.save(ctx, j.uid, p)
	case verifying:
		return false, j.finish(ctx)
	default:
		return true, j.conclude(ctx)
	}
}

// prepare reads the progress and the CRD, and fails the migration if it cannot go on.
func (j *job) prepare(ctx context.Context) error {
	if err := j.refresh(); err != nil {
		return err
	}
	loaded, err := j.load(ctx, j.uid)
	if err != nil {
		return err
	}
	if j.resource, err = j.Lookup(ctx, groupResource(j.migration)); err != nil {
		return err
	}
	if j.listed, err = j.Config.listed(ctx, j.uid); err != nil {
		return err
	}
	if loaded == nil {
		if loaded, err = j.first(ctx); err != nil {
			return err
		}
	}
	j.progress, j.keep = *loaded, loaded.Keep > 0
	if text := j.obstacle(); text != "" {
		if err := j.end(ctx, failed, text); err != nil {
			return err
		}
	}
	if j.resource == nil {
		return nil
	}
	j.transformer = identity.NewEncryptCheckTransformer()
	if j.Transformers != nil {
		if t := j.Transformers.TransformerForResource(j.resource.Resource); t != nil {
			j.transformer = t
		}
	}
	if e := j.resource.CRD; e != nil {
		j.crdRevision = int64(e.Revision) //nolint:gosec // etcd's revisions are int64
	}
	return nil
}

// refresh takes the latest version of the migration.
func (j *job) refresh() error {
	latest, err := j.run.migrations.Get(j.name)
	if err != nil || latest.UID != j.uid {
		return errGone
	}
	j.migration = latest
	return nil
}

// first stores the progress of a migration that begins.
func (j *job) first(ctx context.Context) (*progress, error) {
	p := &progress{Phase: rewriting}
	if text := j.migration.Annotations[KeepAnnotation]; text != "" {
		var err error
		if p.Keep, err = time.ParseDuration(text); err != nil || p.Keep < 0 {
			p.Phase, p.Message = failed, fmt.Sprintf("the annotation %s is %q, which must be a duration such as 24h", KeepAnnotation, cut(text))
		}
	}
	switch {
	case j.resource == nil:
		p.Phase, p.Message = failed, "resource does not exist in discovery"
	case j.resource.CRD != nil:
		e := j.resource.CRD
		p.CRD, p.StorageVersion, p.StoredVersions = e.UID, e.StorageVersion, slices.Clone(e.StoredVersions)
	}
	if p.Phase == rewriting {
		var err error
		if p.Total, err = j.total(ctx); err != nil {
			return nil, err
		}
	}
	return p, j.save(ctx, j.uid, p)
}

// total counts the keys of the resource.
func (j *job) total(ctx context.Context) (int64, error) {
	resp, err := j.Etcd.Get(ctx, j.folder(), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("counting objects in etcd: %w", err)
	}
	return resp.Count, nil
}

// obstacle says why the migration cannot go on; "" if it can.
func (j *job) obstacle() string {
	p := &j.progress
	if p.Phase != rewriting && p.Phase != verifying {
		return ""
	}
	switch {
	case j.resource == nil:
		return "the resource was deleted during the migration"
	case j.resource.CRD == nil && p.CRD == "":
		return ""
	case j.resource.CRD == nil || j.resource.CRD.UID != p.CRD || j.resource.CRD.Deleting:
		return "the CustomResourceDefinition was deleted during the migration"
	case j.resource.CRD.StorageVersion != p.StorageVersion:
		return fmt.Sprintf("the storage version changed from %s to %s during the migration: create another StorageVersionMigration", p.StorageVersion, j.resource.CRD.StorageVersion)
	}
	return ""
}

// interrupted says why to stop; nil to go on.
func (j *job) interrupted() error {
	if err := j.refresh(); err != nil {
		return err
	}
	switch undoes := wantsUndo(j.migration); {
	case j.progress.Phase == undoing:
		return nil
	case undoes:
		return errUndo
	case paused(j.migration):
		return errPaused
	}
	return nil
}

// finish proves that all objects are in the storage version, and trims storedVersions.
func (j *job) finish(ctx context.Context) error {
	p := &j.progress
	found, err := j.verify(ctx)
	if err != nil {
		return err
	}
	if found != "" {
		if p.Round++; p.Round >= maxRounds {
			return j.end(ctx, failed, fmt.Sprintf("objects are written in another version all the time, such as %s: all servers on this etcd must know the CRD", found))
		}
		more, err := j.total(ctx)
		if err != nil {
			return err
		}
		p.Phase, p.Next, p.Total = rewriting, "", p.seen()+more
		return j.save(ctx, j.uid, p)
	}
	if err := j.trim(ctx); err != nil {
		return err
	}
	return j.end(ctx, succeeded, "")
}

// trim removes all versions but the storage version from storedVersions, if the CRD is the
// one that the scan has seen.
func (j *job) trim(ctx context.Context) error {
	e := j.resource.CRD
	if e == nil || slices.Equal(e.StoredVersions, []string{e.StorageVersion}) {
		return nil
	}
	return j.UpdateCRD(ctx, e.Name, func(o *object.Object) error {
		status, err := crdcontroller.StatusOf(o)
		switch {
		case err != nil:
			return err
		case o.GetUID() != e.UID || o.GetGeneration() != e.Generation || o.GetDeletionTimestamp() != nil || !slices.Equal(status.StoredVersions, e.StoredVersions):
			return errAgain
		}
		status.StoredVersions = []string{e.StorageVersion}
		crdcontroller.SetCondition(status, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: apiextensionsv1.StorageMigrating, Status: apiextensionsv1.ConditionFalse, Reason: "MigrationSucceeded",
			Message: "The migration has succeeded and the stored versions have been updated",
		}, e.Generation, time.Now())
		crdcontroller.SetStatus(o, status)
		return nil
	})
}

// end stores how the migration has ended. The status follows.
func (j *job) end(ctx context.Context, how phase, message string) error {
	p := &j.progress
	p.Phase, p.Message = how, message
	if p.Preimages > 0 && p.Expires == nil {
		expires := time.Now().Add(p.Keep)
		p.Expires = &expires
	}
	return j.save(ctx, j.uid, p)
}

// sleep waits, and returns the error of the context if it ends.
func (j *job) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (j *job) progressKey() string { return j.key(progressFolder, string(j.uid)) }
