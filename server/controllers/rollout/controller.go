package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// every is how often rollouts are looked at. What they wait for takes longer: a migration, or a
// person.
const every = time.Second

// absent is how often the controller looks whether CRDRollouts exist, while they do not.
const absent = 10 * time.Second

var (
	crds       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	migrations = schema.GroupVersionResource{Group: "storagemigration.k8s.io", Version: "v1", Resource: "storageversionmigrations"}
)

// Config is what the controller needs.
type Config struct {
	Client dynamic.Interface
	REST   rest.Interface // for the subresource plan
	// Installed reports whether the CRD of CRDRollouts exists. It costs nothing to ask.
	Installed func() bool

	rests map[types.UID]pause
}

// pause is until when a rollout of a generation is left alone that waits.
type pause struct {
	generation int64
	until      time.Time
}

// share is how many times as long as its last step a rollout that waits is left alone, and longest how long at most: a step
// may plan, which reads all objects, and what it waits for may take days.
const share, longest = 9, 5 * time.Minute

// Run does rollouts until the context ends, whose error it returns.
func Run(ctx context.Context, c Config) error {
	for {
		next := absent
		if c.Installed() {
			next = every
			if err := c.all(ctx); err != nil && ctx.Err() == nil {
				klog.V(2).InfoS("Failed to list CRDRollouts, retrying", "err", err)
				next = absent
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(next):
		}
	}
}

// all takes each rollout a step further, in the order of their creation.
func (c *Config) all(ctx context.Context) error {
	list, err := c.Client.Resource(Resource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	slices.SortStableFunc(list.Items, func(a, b unstructured.Unstructured) int {
		return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
	})
	busy := map[string]string{} // CRDs, and the rollouts that change them
	before := c.rests
	c.rests = map[types.UID]pause{}
	for i := range list.Items {
		u := &list.Items[i]
		r, err := read(u)
		if err != nil {
			klog.V(2).InfoS("Failed to read a CRDRollout", "name", u.GetName(), "err", err)
			continue
		}
		if r.idle() {
			continue
		}
		if first := busy[r.Spec.CRD]; first != "" && r.Status.Phase == "" {
			c.write(ctx, u, r, status{Phase: "", Message: "waiting for CRDRollout " + first + ", which changes the same CRD"})
			continue
		}
		busy[r.Spec.CRD] = r.Name
		if last, ok := before[r.UID]; ok && last.generation == r.Generation && time.Now().Before(last.until) {
			c.rests[r.UID] = last
			continue
		}
		began := time.Now()
		if waits := c.advance(ctx, u, r); waits {
			c.rests[r.UID] = pause{r.Generation, time.Now().Add(min(share*time.Since(began), longest))}
		}
	}
	return nil
}

// idle reports whether there is nothing to do.
func (r *rollout) idle() bool {
	if r.DeletionTimestamp != nil {
		return true
	}
	if r.Spec.Undo {
		return r.Status.Phase == Undone
	}
	return r.Status.Phase.ended()
}

// final is an error that trying again does not help.
type final struct{ error }

// finally returns an error that ends a rollout.
func finally(format string, args ...any) error { return final{fmt.Errorf(format, args...)} }

// waiting is an error for what has not come yet; its text says what the rollout waits for.
type waiting struct{ text string }

func (w waiting) Error() string { return w.text }

func wait(format string, args ...any) error { return waiting{fmt.Sprintf(format, args...)} }

// advance takes a step, and writes what came of it. It reports whether the rollout waits for others.
func (c *Config) advance(ctx context.Context, u *unstructured.Unstructured, r *rollout) (waits bool) {
	s := r.Status
	var err error
	if r.Spec.Undo {
		err = c.undo(ctx, r, &s)
	} else {
		err = c.step(ctx, r, &s)
	}
	var ended final
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return false
	case errors.As(err, &ended):
		s.Phase, s.Message = Failed, err.Error()
		if r.Spec.Undo {
			s.Phase = Undoing // it goes on when the cause is gone
		}
	default:
		s.Message = err.Error()
	}
	c.write(ctx, u, r, s)
	return err != nil
}

// write writes the status if it differs. If others have written in between, the next round sees
// that.
func (c *Config) write(ctx context.Context, u *unstructured.Unstructured, r *rollout, s status) {
	s.ObservedGeneration = r.Generation
	changed, err := with(u, &s)
	if err == nil && !same(changed, u) {
		_, err = c.Client.Resource(Resource).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		klog.V(2).InfoS("Failed to write the status of a CRDRollout, retrying", "name", r.Name, "err", err)
	}
}

// step does what the phase of a rollout is for. It changes the status, which is written then:
// whatever is done after a change that must not be lost waits for the next step.
func (c *Config) step(ctx context.Context, r *rollout, s *status) error {
	switch s.Phase {
	case "":
		crd, err := c.Client.Resource(crds).Get(ctx, r.Spec.CRD, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return finally("there is no CRD %s", r.Spec.CRD)
		}
		if err != nil {
			return err
		}
		s.Before = manifestOf(crd, r)
		s.sight = sightOf(crd, r)
		s.enter(Expand)
	case Expand:
		return c.change(ctx, r, s, &r.Spec.Expand, Expand, Backfill)
	case Backfill:
		if r.waits(Backfill) {
			return c.approval(r, Backfill)
		}
		return c.backfill(ctx, r, s)
	case Verify:
		p, err := c.plan(ctx, r, &r.Spec.Contract)
		if err != nil {
			return err
		}
		s.Plan = p.raw
		if n := p.lost(); n > 0 {
			return wait("%d objects would lose data (%s); repair them, or undo", n, p.Summary.Headline())
		}
		s.enter(Contract)
	case Contract:
		return c.change(ctx, r, s, &r.Spec.Contract, Contract, Done)
	}
	return nil
}

func (s *status) enter(p Phase) { s.Phase, s.Message = p, "" }

// approval is the error for a phase that waits.
func (c *Config) approval(r *rollout, p Phase) error {
	return wait("%s waits for approval: kubectl patch crdrollout %s --type=json -p '[{\"op\":\"add\",\"path\":\"/spec/approvals\",\"value\":%s}]'",
		p, r.Name, list(append(slices.Clone(r.Spec.Approvals), p)))
}

// change gives the CRD another spec, if its plan is approved.
func (c *Config) change(ctx context.Context, r *rollout, s *status, m *manifest, phase, next Phase) error {
	p, err := c.plan(ctx, r, m)
	if err != nil {
		return err
	}
	s.Plan = p.raw
	if len(p.Refused) > 0 {
		return finally("%s: the server refuses the CRD: %s", phase, p.Refused[0])
	}
	if r.waits(phase) {
		return c.approval(r, phase)
	}
	if n := p.lost(); n > 0 && !slices.Contains(r.Spec.Approvals, phase) {
		return wait("%s would lose data of %d objects (%s); add %s to spec.approvals if that is wanted", phase, n, p.Summary.Headline(), phase)
	}
	if err := c.apply(ctx, r, s, m, p.ID); err != nil {
		return err
	}
	s.enter(next)
	return nil
}

// backfill rewrites the objects in the storage version.
func (c *Config) backfill(ctx context.Context, r *rollout, s *status) error {
	if s.Migration == "" {
		// The name is in the status before the migration exists, so that none is started twice.
		s.Migration = r.migration()
		return nil
	}
	if err := c.migrate(ctx, r, s, s.Migration); err != nil {
		return err
	}
	s.enter(Verify)
	return nil
}

// migrate creates a StorageVersionMigration, and returns nil when it has succeeded. It rewrites objects for good: only for
// the CRD that was planned.
func (c *Config) migrate(ctx context.Context, r *rollout, s *status, name string) error {
	crd, err := c.Client.Resource(crds).Get(ctx, r.Spec.CRD, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := s.changed(crd, r); err != nil {
		return err
	}
	m, err := c.Client.Resource(migrations).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if _, err := c.Client.Resource(migrations).Create(ctx, migrationOf(r, crd, name), metav1.CreateOptions{}); err != nil {
			return err
		}
		return wait("rewriting objects: StorageVersionMigration %s", name)
	}
	if err != nil {
		return err
	}
	if !r.owns(m) {
		return wait("StorageVersionMigration %s is not of this rollout; delete it, and the rollout goes on", name)
	}
	switch state, message := conditionOf(m); state {
	case "Succeeded":
		return nil
	case "Failed":
		return wait("rewriting objects failed: %s; repair the objects and delete StorageVersionMigration %s, and it begins again", message, name)
	default:
		return wait("rewriting objects: %s", message)
	}
}
