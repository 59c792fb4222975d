package migration

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	svmv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server/storage/store"
)

const (
	// reasonSpace is that of a migration that waits for space in etcd.
	reasonSpace = "EtcdNearlyFull"
	// fullPercent is how much of its quota etcd may use while a migration writes. Every object that is rewritten needs its
	// space twice until etcd is compacted, and three times with its pre-image. A full etcd refuses all writes of all users.
	fullPercent = 90
	// spaceEvery is how often it is looked at, or when spaceBytes were written, and spaceTimeout how long an answer may take.
	spaceEvery, spaceTimeout = time.Second, 2 * time.Second
	spaceBytes               = 1 << 20
)

// errSpace says that etcd has not enough space for the migration to go on.
var errSpace = errors.New("etcd has not enough space")

// space returns an error if a member of etcd is nearly full. Members before 3.6 do not say what their quota is, and one that
// does not answer is left out: then etcd refuses the write. size is how much is to be written.
func (j *job) space(ctx context.Context, size int) error {
	if j.unmeasured += size; j.unmeasured < spaceBytes && time.Since(j.measured) < spaceEvery {
		return nil
	}
	for _, endpoint := range j.Endpoints {
		asking, cancel := context.WithTimeout(ctx, spaceTimeout)
		s, err := j.Etcd.Status(asking, endpoint)
		cancel()
		if err == nil && s.DbSizeQuota > 0 && s.DbSizeInUse > s.DbSizeQuota/100*fullPercent {
			return fmt.Errorf("%w: more than %d %% of its quota of %d MiB are in use; the migration goes on when there is space: compact etcd, delete objects, or raise the quota",
				errSpace, fullPercent, s.DbSizeQuota>>20)
		}
	}
	j.measured, j.unmeasured = time.Now(), 0
	return ctx.Err()
}

// writing explains why etcd has refused a write.
func (j *job) writing(what string, err error) error {
	if store.Full(err) {
		return fmt.Errorf("%w: it refuses writes until the operator makes room (%w)", errSpace, err)
	}
	return fmt.Errorf("writing %s to etcd: %w", what, err)
}

// starve writes that the migration waits for space. A full etcd refuses that, too.
func (j *job) starve(ctx context.Context, cause error) error {
	condition := string(svmv1.MigrationRunning)
	if j.progress.Phase == undoing {
		condition = undoneCondition
	}
	before := meta.FindStatusCondition(j.migration.Status.Conditions, condition)
	if before == nil || before.Reason != reasonSpace {
		j.event(corev1.EventTypeWarning, reasonSpace, cause.Error())
	}
	return j.write(ctx, func(status *svmv1.StorageVersionMigrationStatus) {
		set(status, condition, metav1.ConditionFalse, reasonSpace, cause.Error())
	})
}
