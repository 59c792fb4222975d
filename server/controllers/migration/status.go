package migration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	svmv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	conflict "k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

const (
	// undoneCondition says whether an undo that was asked for is done.
	undoneCondition = "Undone"

	// The reasons of conditions, which are upstream's where upstream has them.
	reasonRunning   = "MigrationRunning"
	reasonCompleted = "MigrationCompleted"
	reasonSucceeded = "StorageVersionMigrationSucceeded"
	reasonFailed    = "StorageVersionMigrationFailed"
	reasonPaused    = "Paused"
	reasonUndoing   = "Undoing"
	reasonUndone    = "Undone"
	reasonUndoWaits = "UndoImpossible"
	reasonNoImages  = "NoPreimages"

	// reportEvery is how often the progress is written to the migration.
	reportEvery = time.Second
	// maxLogged is how many quarantined objects are logged.
	maxLogged = 10
)

// Progress is what ProgressAnnotation has.
type Progress struct {
	Phase       string `json:"phase"`
	Total       int64  `json:"total"`
	Migrated    int64  `json:"migrated"`
	Skipped     int64  `json:"skipped"`
	Quarantined int64  `json:"quarantined"`
	Remaining   int64  `json:"remaining"`
	// Rate is how many objects were done with per second lately.
	Rate int64 `json:"rate"`
	// Preimages is how many objects undo can put back, until Expires.
	Preimages int64      `json:"preimages,omitempty"`
	Expires   *time.Time `json:"expires,omitempty"`
	Restored  int64      `json:"restored,omitempty"`
	Left      int64      `json:"left,omitempty"`
}

func (j *job) public() Progress {
	p := &j.progress
	return Progress{
		Phase: string(p.Phase), Total: p.Total, Migrated: p.Migrated, Skipped: p.Skipped, Quarantined: p.Quarantined,
		Remaining: p.remaining(), Rate: int64(j.meter.rate), Preimages: p.Preimages, Expires: p.Expires, Restored: p.Restored, Left: p.Left,
	}
}

// start writes that the migration is running.
func (j *job) start(ctx context.Context) error {
	if j.migration.Status.ResourceVersion == "" {
		j.event(corev1.EventTypeNormal, "MigrationStarted", fmt.Sprintf("Migrating %d objects of %s", j.progress.Total, j.resource.name()))
	}
	if isTrue(j.migration, string(svmv1.MigrationRunning)) {
		return j.report(ctx, reportEvery)
	}
	return j.report(ctx, 0)
}

// count adds to the metrics.
func (j *job) count(migrated, skipped int) {
	objects.WithLabelValues("migrated").Add(float64(migrated))
	objects.WithLabelValues("skipped").Add(float64(skipped))
	j.measure(migrated + skipped)
}

func (j *job) measure(n int) {
	j.meter.add(int64(n), time.Now())
	rate.Set(j.meter.rate)
	remaining.Set(float64(j.progress.remaining()))
}

// quarantine tells of objects that are left as they are. Events of cluster-scoped objects are in the namespace default, and many
// may read them there: they do not name objects of other namespaces, nor say what is in them.
func (j *job) quarantine(found []Quarantined) {
	if len(found) == 0 {
		return
	}
	objects.WithLabelValues("quarantined").Add(float64(len(found)))
	if j.logged == 0 {
		j.event(corev1.EventTypeWarning, "ObjectsQuarantined", fmt.Sprintf("Objects of %s are left as they are: the annotation %s of the StorageVersionMigration lists them", j.resource.name(), QuarantinedAnnotation))
	}
	for _, one := range found {
		if j.logged++; j.logged > maxLogged {
			return
		}
		klog.InfoS("A storage version migration leaves an object as it is", "migration", j.name, "resource", j.resource.name(), "object", one.Name, "reason", one.Reason)
	}
}

func (j *job) event(kind, reason, text string) {
	if j.run.events != nil {
		j.run.events.Event(j.migration, kind, reason, text)
	}
}

// report writes the progress into the migration, unless it did so within a time.
func (j *job) report(ctx context.Context, every time.Duration) error {
	if time.Since(j.reported) < every {
		return nil
	}
	j.reported = time.Now()
	return j.write(ctx, func(status *svmv1.StorageVersionMigrationStatus) {
		if j.progress.Phase == undoing {
			set(status, undoneCondition, metav1.ConditionFalse, reasonUndoing, j.undoMessage())
			return
		}
		if status.ResourceVersion == "" {
			status.ResourceVersion = strconv.FormatInt(j.progress.revision, 10)
		}
		set(status, string(svmv1.MigrationRunning), metav1.ConditionTrue, reasonRunning, j.runningMessage())
	})
}

// runningMessage is like upstream's.
func (j *job) runningMessage() string {
	text := "The migration is running"
	if p := &j.progress; p.Phase == verifying {
		text += fmt.Sprintf(", %d objects are verified", p.seen())
	} else if p.Total > 0 {
		text += fmt.Sprintf(", %d/%d objects not yet migrated", p.remaining(), p.Total)
	}
	if j.progress.Quarantined > 0 {
		text += fmt.Sprintf(", %d quarantined", j.progress.Quarantined)
	}
	if j.problem != "" {
		text += "; transient error: " + j.problem
	}
	return text
}

// trouble writes a failure that may pass. Nothing more can be done if that fails, too.
func (j *job) trouble(ctx context.Context, err error) {
	j.problem = cut(err.Error())
	if j.resource == nil || j.progress.revision == 0 || !slices.Contains([]phase{rewriting, verifying, undoing}, j.progress.Phase) {
		return
	}
	if err := j.report(ctx, 0); err != nil {
		klog.FromContext(ctx).V(2).Info("Failed to write the status of a storage version migration", "migration", j.name, "err", err)
	}
	j.problem = ""
}

// rest writes that the migration is paused.
func (j *job) rest(ctx context.Context) error {
	j.event(corev1.EventTypeNormal, "MigrationPaused", fmt.Sprintf("Paused with %d objects left", j.progress.remaining()))
	return j.write(ctx, func(status *svmv1.StorageVersionMigrationStatus) {
		set(status, string(svmv1.MigrationRunning), metav1.ConditionFalse, reasonPaused,
			fmt.Sprintf("The migration is paused, %d/%d objects not yet migrated", j.progress.remaining(), j.progress.Total))
	})
}

// conclude writes how the migration has ended.
func (j *job) conclude(ctx context.Context) error {
	p := &j.progress
	before := j.migration
	err := j.write(ctx, func(status *svmv1.StorageVersionMigrationStatus) {
		if meta.FindStatusCondition(status.Conditions, string(svmv1.MigrationRunning)) != nil {
			set(status, string(svmv1.MigrationRunning), metav1.ConditionFalse, reasonCompleted, "Migration completed")
		}
		switch p.Phase {
		case succeeded:
			set(status, string(svmv1.MigrationSucceeded), metav1.ConditionTrue, reasonSucceeded, "Migration completed")
		case failed:
			set(status, string(svmv1.MigrationFailed), metav1.ConditionTrue, reasonFailed, p.Message)
		case undone:
			set(status, undoneCondition, metav1.ConditionTrue, reasonUndone, j.undoMessage())
			if !meta.IsStatusConditionTrue(status.Conditions, string(svmv1.MigrationSucceeded)) && !meta.IsStatusConditionTrue(status.Conditions, string(svmv1.MigrationFailed)) {
				set(status, string(svmv1.MigrationFailed), metav1.ConditionTrue, reasonUndone, "the migration was undone before its end")
			}
		}
	})
	if err != nil {
		return err
	}
	switch {
	case p.Phase == succeeded && !ended(before):
		j.event(corev1.EventTypeNormal, "MigrationSucceeded", fmt.Sprintf("%d objects migrated, %d needed nothing", p.Migrated, p.Skipped))
	case p.Phase == failed && !ended(before):
		j.event(corev1.EventTypeWarning, "MigrationFailed", p.Message)
	case p.Phase == undone && !isTrue(before, undoneCondition):
		j.event(corev1.EventTypeNormal, "MigrationUndone", j.undoMessage())
	}
	return nil
}

func set(status *svmv1.StorageVersionMigrationStatus, condition string, is metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: condition, Status: is, Reason: reason, Message: message})
}

// write changes the status of the migration, and brings its annotations up to date.
func (j *job) write(ctx context.Context, change func(*svmv1.StorageVersionMigrationStatus)) error {
	client := j.Client.StoragemigrationV1().StorageVersionMigrations()
	// Clients wait for conditions, and read the annotations then.
	err := j.annotate(ctx)
	if err == nil {
		err = conflict.RetryOnConflict(conflict.DefaultBackoff, func() error {
			m, err := client.Get(ctx, j.name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if m.UID != j.uid {
				return errGone
			}
			before := m.Status.DeepCopy()
			if change(&m.Status); equality.Semantic.DeepEqual(before, &m.Status) {
				return nil
			}
			_, err = client.UpdateStatus(ctx, m, metav1.UpdateOptions{FieldManager: component})
			return err
		})
	}
	if apierrors.IsNotFound(err) {
		return errGone
	}
	if err != nil && !errors.Is(err, errGone) {
		return fmt.Errorf("writing the status of the StorageVersionMigration: %w", err)
	}
	return err
}

// annotate writes the annotations. Updates of the status leave metadata alone.
func (j *job) annotate(ctx context.Context) error {
	if j.progress.Phase == "" {
		return nil // another controller's
	}
	text, err := json.Marshal(j.public())
	if err != nil {
		return err
	}
	annotations := map[string]any{ProgressAnnotation: string(text)}
	if len(j.listed) > 0 {
		list, err := json.Marshal(j.listed)
		if err != nil {
			return err
		}
		annotations[QuarantinedAnnotation] = string(list)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": j.uid, "annotations": annotations}})
	if err != nil {
		return err
	}
	_, err = j.Client.StoragemigrationV1().StorageVersionMigrations().Patch(ctx, j.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: component})
	if apierrors.IsConflict(err) {
		return errGone // the UID is another
	}
	return err
}
