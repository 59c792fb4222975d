package migration

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/controllers/crdcontroller"
	"github.com/espalier-dev/espalier/server/storage/store"
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
	encrypted   bool  // the configuration names the resource
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
	problem  string    // a failure that may pass
	measured time.Time // when etcd had space
	// unmeasured is how much was written since.
	unmeasured int
	advanced   bool // something was written
	logged     int  // quarantined objects
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
		case errors.Is(err, errSpace):
			return errors.Join(err, j.starve(ctx, err))
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
	if p.Phase == undoing || wantsUndo(j.migration) && p.Phase != undone {
		return false, j.undo(ctx)
	}
	switch p.Phase {
	case rewriting:
		if err := j.space(ctx, 0); err != nil {
			return false, err // before the status says that it runs
		}
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
		if wantsUndo(j.migration) && (ended(j.migration) || j.migration.Status.ResourceVersion != "") {
			return j.hinder(ctx, reasonNoImages, foreign)
		}
		if loaded, err = j.first(ctx); err != nil {
			return err
		}
	}
	j.progress, j.keep = *loaded, loaded.Keep > 0
	text, err := j.obstacle()
	if err != nil {
		return err
	}
	if text != "" {
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
			j.transformer, j.encrypted = t, true
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
	// This controller stores its progress before it writes the status.
	p := &progress{Phase: rewriting, Foreign: j.migration.Status.ResourceVersion != ""}
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
		var err error
		if p.Strategy, p.Rules, err = conversionOf(e); err != nil {
			return nil, err
		}
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

// conversionOf returns what converts the objects of a CRD: the strategy, and a digest of the rules. Their annotation does not
// change the generation. Where a webhook is does not matter: it may move.
func conversionOf(e *catalog.Entry) (strategy, rules string, err error) {
	d, err := e.CRD()
	if err != nil {
		return "", "", fmt.Errorf("reading the CustomResourceDefinition: %w", err)
	}
	defer d.Release()
	if text, ok := d.Annotations[conversion.Annotation]; ok {
		sum := sha256.Sum256([]byte(text))
		rules = hex.EncodeToString(sum[:])
	}
	return e.Conversion, rules, nil
}

// obstacle says why the migration cannot go on; "" if it can.
func (j *job) obstacle() (string, error) {
	p := &j.progress
	if p.Phase != rewriting && p.Phase != verifying {
		return "", nil
	}
	switch {
	case j.resource == nil:
		return "the resource was deleted during the migration", nil
	case j.resource.CRD == nil && p.CRD == "":
		return "", nil
	case j.resource.CRD == nil || j.resource.CRD.UID != p.CRD || j.resource.CRD.Deleting:
		return "the CustomResourceDefinition was deleted during the migration", nil
	case j.resource.CRD.StorageVersion != p.StorageVersion:
		return fmt.Sprintf("the storage version changed from %s to %s during the migration: create another StorageVersionMigration", p.StorageVersion, j.resource.CRD.StorageVersion), nil
	}
	if p.Strategy == "" {
		return "", nil // an earlier release began it
	}
	strategy, rules, err := conversionOf(j.resource.CRD)
	switch {
	case err != nil:
		return "", err
	case rules != p.Rules:
		return "the annotation " + conversion.Annotation + " changed during the migration, and the other objects would be converted differently: " + remedy, nil
	case strategy != p.Strategy:
		return fmt.Sprintf("spec.conversion.strategy changed from %s to %s during the migration, and the other objects would be converted differently: %s", p.Strategy, strategy, remedy), nil
	}
	return "", nil
}

// remedy is what a user can do.
const remedy = "check the CustomResourceDefinition, then undo this StorageVersionMigration if it has pre-images, or create another one"

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
	since, err := j.revision(ctx)
	if err != nil {
		return err
	}
	if err := j.renewImages(ctx); err != nil {
		return err
	}
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
	if err := j.trim(ctx, since); err != nil {
		return err
	}
	return j.end(ctx, succeeded, "")
}

// revision is one of etcd that is not older than the CRD as prepare has read it.
func (j *job) revision(ctx context.Context) (int64, error) {
	resp, err := j.Etcd.Get(ctx, j.progressKey(), clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("reading etcd's revision: %w", err)
	}
	return resp.Header.Revision, nil
}

// trim removes all versions but the storage version from storedVersions. The scan that began
// at a revision proves that no object has another version: the CRD must be the one that the
// scan has seen, since users' writes depend on it, and no other migration may have written
// since, since an undo stores other versions. etcd checks both in the transaction.
func (j *job) trim(ctx context.Context, since int64) error {
	e := j.resource.CRD
	if e == nil || slices.Equal(e.StoredVersions, []string{e.StorageVersion}) {
		return nil
	}
	ctx = store.Conditional(ctx)
	for _, folder := range []string{progressFolder, forgottenFolder} {
		store.RequireFolder(ctx, store.Folder{
			Name: folder, Revision: since, Unmarked: true,
			Newer: func(context.Context, []string) (store.Folder, error) { return store.Folder{}, errAgain },
		})
	}
	return j.UpdateCRD(ctx, e.Name, func(o *object.Object) error {
		if o.GetUID() != e.UID || o.GetResourceVersion() != e.ResourceVersion {
			return errAgain
		}
		status, err := crdcontroller.StatusOf(o)
		if err != nil {
			return err
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
		expires := j.now().Add(p.Keep)
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
