package customresourcedefinition

import (
	"bytes"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/apiserver/pkg/warning"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/crd/diff"
	"github.com/espalier-dev/espalier/crd/impact"
	"github.com/espalier-dev/espalier/internal/object"
)

const (
	// RequirePlan is the annotation of a CRD whose changes must not lose data unless a plan was
	// approved, if its value is "true".
	RequirePlan = "espalier.dev/require-plan"
	// ApprovedPlan is the annotation of a CRD with the id of the plan that approves its change.
	ApprovedPlan = "espalier.dev/approved-plan"
)

// PlanRequired is the type of the cause in the error for a change of a CRD that loses data without
// an approved plan.
const PlanRequired metav1.CauseType = "PlanRequired"

const (
	// dryRunTime is how long a dry run counts what a change does.
	dryRunTime = 2 * time.Second
	// checkTime is how long a change without an approval is checked. A change of a CRD with more
	// objects needs a plan.
	checkTime = 5 * time.Second
	// recheckTime is how long the objects are checked that were written after the plan.
	recheckTime = 10 * time.Second
)

// changeGuard keeps changes of CRDs from losing data by mistake: a field that a schema no longer
// has is pruned from all objects, as they are read and for good when they are written.
//
// The answer is 409 Conflict, for the same reason as that of guard: the objects prevent the change,
// and the same request succeeds once they are migrated, or the plan is approved.
//
// The check and the write of the CRD are not one transaction. It runs in the update function, so
// that etcd writes the CRD only if it is still the one that was checked. Objects that are written
// meanwhile are checked again at the end, by their revisions. What remains is an object that is
// written between that and the write of the CRD, which are milliseconds: it was written by the old
// schema, and may lose what the new one prunes. No object is written by the old schema after the
// change: see [store.Requirement].
type changeGuard struct {
	planner *planner
	always  bool // for CRDs without the annotation, too
}

// checking returns the validation of an update that also checks what becomes of stored objects. It
// comes last, after the errors that cost less to find.
func (g *changeGuard) checking(validate rest.ValidateObjectUpdateFunc, options *metav1.UpdateOptions) rest.ValidateObjectUpdateFunc {
	if g == nil {
		return validate
	}
	return func(ctx context.Context, obj, old runtime.Object) error {
		if err := validate(ctx, obj, old); err != nil {
			return err
		}
		now, ok := obj.(*object.Object)
		was, ok2 := old.(*object.Object)
		if !ok || !ok2 || sameEffect(was, now) {
			return nil
		}
		if options != nil && dryrun.IsDryRun(options.DryRun) {
			g.warn(ctx, was, now)
		}
		if _, misfit := approvedSince(was, now); misfit != "" && !g.required(was) {
			return nil
		}
		return g.allows(ctx, was, now)
	}
}

// required reports whether changes of a stored CRD need a plan if they lose data. The new CRD has no
// say: otherwise a change could switch the guard off for itself. A plan that approves the change is
// checked also where none is required: a user names a plan to get what it says, and no more.
func (g *changeGuard) required(old *object.Object) bool {
	return g.always || old.GetAnnotations()[RequirePlan] == "true"
}

// sameEffect reports whether two CRDs do the same to objects by their texts.
func sameEffect(old, now *object.Object) bool {
	return bytes.Equal(old.Member("spec"), now.Member("spec")) && old.GetAnnotations()[conversion.Annotation] == now.GetAnnotations()[conversion.Annotation]
}

// warn says what a change would do, as far as that is known in a moment.
func (g *changeGuard) warn(ctx context.Context, old, now *object.Object) {
	text := ""
	c, err := g.planner.change(old, now)
	if err == nil {
		var found *scanned
		if found, err = g.planner.scan(ctx, old.GetName(), c, scan{time: dryRunTime}); err == nil {
			text = headline(&found.summary, found.More)
		}
	}
	if err != nil {
		text = "what the change does to stored objects is not known: " + err.Error()
	}
	warning.AddWarning(ctx, "", text)
}

// headline says in one sentence what a change does.
func headline(s *impact.Summary, more bool) string {
	if more {
		return "at least: " + s.Headline()
	}
	return s.Headline()
}

// allows returns an error if a change loses data and no plan of it was approved.
func (g *changeGuard) allows(ctx context.Context, old, now *object.Object) error {
	c, err := g.planner.change(old, now)
	if err != nil {
		return err
	}
	revision, misfit := approvedSince(old, now)
	if misfit == "" {
		return g.recheck(ctx, c, old, revision, "after the plan")
	}
	if harmless(old, now) {
		return nil
	}
	loses := func(s *impact.Summary) bool { return s.Losing > 0 }
	found, err := g.planner.scan(ctx, old.GetName(), c, scan{time: checkTime, enough: loses})
	switch {
	case err != nil:
		return planError(err)
	case found.summary.Losing > 0:
		return planRequired(old.GetName(), "the change would lose data: "+headline(&found.summary, found.More)+"; "+misfit)
	case found.More:
		return planRequired(old.GetName(), fmt.Sprintf("the change may lose data: %v are not enough to check all objects; %s", checkTime, misfit))
	}
	return g.recheck(ctx, c, old, found.Revision, "while it was checked")
}

// approvedSince returns the revision of the plan that approves a change, or why there is none. An
// approval of another change is no error: that annotation may have been there for long.
func approvedSince(old, now *object.Object) (revision int64, misfit string) {
	approval, ok := now.GetAnnotations()[ApprovedPlan]
	if !ok {
		return 0, "no plan was approved"
	}
	id, err := parsePlanID(approval)
	switch sum := digest(old.GetUID(), now)[:digestLength]; {
	case err != nil:
		misfit = err.Error()
	case id.generation != old.GetGeneration():
		misfit = fmt.Sprintf("the plan is of generation %d of the CRD, which has generation %d now", id.generation, old.GetGeneration())
	case id.digest != sum:
		misfit = fmt.Sprintf("the plan is of another spec or of another CRD, and the digest of this change is %s", sum)
	}
	if misfit != "" {
		misfit = fmt.Sprintf("the annotation %s: %.100q does not approve it: %s", ApprovedPlan, approval, misfit)
	}
	return id.revision, misfit
}

// recheck checks the objects that were written after a revision.
func (g *changeGuard) recheck(ctx context.Context, c *impact.Change, old *object.Object, since int64, when string) error {
	found, err := g.planner.scan(ctx, old.GetName(), c, scan{time: recheckTime, since: since, list: 1})
	name := old.GetName()
	switch {
	case err != nil:
		return planError(err)
	case found.Revision < since:
		return planRequired(name, fmt.Sprintf("etcd has no revision %d yet: the plan is not of this server", since))
	case found.summary.Losing > 0:
		return planRequired(name, fmt.Sprintf("objects that were written %s would lose data: %s", when, headline(&found.summary, found.More)))
	case found.More:
		return planRequired(name, fmt.Sprintf("too many objects were written %s to check them", when))
	}
	return nil
}

// harmless reports whether the two CRDs prove that no object loses data, whatever it is. Conversion
// is not compared: what a webhook or rules do is known only from objects.
func harmless(old, now *object.Object) bool {
	was, err := crd.Parse(old.JSON())
	if err != nil {
		return false
	}
	defer was.Release()
	is, err := crd.Parse(now.JSON())
	if err != nil {
		return false
	}
	defer is.Release()
	from, to := was.StorageVersion(), is.StorageVersion()
	if from == nil || to == nil || from.Name != to.Name ||
		!bytes.Equal(old.Lookup("spec", "conversion"), now.Lookup("spec", "conversion")) ||
		old.GetAnnotations()[conversion.Annotation] != now.GetAnnotations()[conversion.Annotation] {
		return false
	}
	for i := range was.Versions {
		// Objects may be stored in any version, whatever status.storedVersions says: clients can
		// change that.
		if is.Version(was.Versions[i].Name) == nil {
			return false
		}
	}
	changes, err := diff.Compare(was, is)
	if err != nil {
		return false
	}
	for i := range changes {
		if c := &changes[i]; c.Level >= diff.Risky && c.Breaks&(diff.Writers|diff.Stored) != 0 {
			return false
		}
	}
	return true
}

// planRequired returns the error: what would happen, and what to do.
func planRequired(name, why string) error {
	err := apierrors.NewConflict(groupResource, name, fmt.Errorf(
		"%s; plan the change (espalier plan -f FILE), and if the plan is what you want, approve it "+
			"(annotation %s: ID in FILE, or kubectl annotate --overwrite crd %s %s=ID) and try again", why, ApprovedPlan, name, ApprovedPlan))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: PlanRequired, Message: why}}
	return err
}
