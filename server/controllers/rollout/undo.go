package rollout

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// undo gives the objects and the CRD back what they were before the rollout. It begins with the
// CRD of Expand, which has both versions; then the objects get their pre-images; then the CRD
// is as it was.
func (c *Config) undo(ctx context.Context, r *rollout, s *status) error {
	if s.Before == nil {
		s.enter(Undone) // nothing has been changed
		return nil
	}
	if s.Phase != Undoing {
		s.enter(Undoing)
		return nil // the status says so before anything is changed
	}
	if s.Migration != "" {
		if err := c.apply(ctx, r, s, &r.Spec.Expand, ""); err != nil {
			return err
		}
		if err := c.restore(ctx, s); err != nil {
			return err
		}
	}
	p, err := c.plan(ctx, r, s.Before)
	if err != nil {
		return err
	}
	s.Plan = p.raw
	if len(p.Refused) > 0 {
		return wait("the server refuses the former CRD: %s", p.Refused[0])
	}
	if n := p.lost(); n > 0 {
		return wait("with the former CRD %d objects would lose data (%s); change or delete them", n, p.headline())
	}
	if err := c.apply(ctx, r, s, s.Before, p.ID); err != nil {
		return err
	}
	s.enter(Undone)
	return nil
}

// restore undoes the migration.
func (c *Config) restore(ctx context.Context, s *status) error {
	m, err := c.Client.Resource(migrations).Get(ctx, s.Migration, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // it has not begun, or its pre-images are gone with it
	}
	if err != nil {
		return err
	}
	if m.GetAnnotations()[undoAnnotation] != "true" {
		_, err := c.Client.Resource(migrations).Patch(ctx, s.Migration, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"`+undoAnnotation+`":"true"}}}`), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		return wait("giving objects back what they were: StorageVersionMigration %s", s.Migration)
	}
	if state, message := conditionOf(m); state != "Undone" {
		return wait("giving objects back what they were: %s", message)
	}
	return nil
}

// undoAnnotation has a migration undone.
const undoAnnotation = "migration.espalier.dev/undo"
