package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// The steps of an undo, in their order. The status has the one that is done.
const (
	reopened = "Versions"       // the CRD has both versions
	restored = "Preimages"      // objects that have not changed are as they were
	returned = "StorageVersion" // new objects are stored in the former storage version
	migrated = "Migration"      // all others are stored in the former storage version, too
)

// undo gives the objects and the CRD back what they were before the rollout. The CRD has both
// versions until no object is stored in the new one.
func (c *Config) undo(ctx context.Context, r *rollout, s *status) error {
	if s.Before == nil {
		s.enter(Undone) // nothing has been changed
		return nil
	}
	if s.Phase != Undoing {
		if s.Migration == "" {
			// The CRD may be changed all the same: objects are stored in the new version then, and have to go back.
			changed, err := c.expanded(ctx, r, s)
			if err != nil {
				return err
			}
			if !changed {
				s.enter(Undone)
				return nil
			}
			s.Migration = r.migration()
		}
		s.enter(Undoing)
		return nil // the status says so before anything is changed
	}
	switch {
	case s.Migration == "" || s.Step == migrated:
		return c.leave(ctx, r, s)
	case s.Step == "":
		if err := c.apply(ctx, r, s, &r.Spec.Expand, ""); err != nil {
			return err
		}
		s.Step = reopened
	case s.Step == reopened:
		if err := c.restore(ctx, r, s); err != nil {
			return err
		}
		s.Step = restored
	case s.Step == restored:
		if err := c.giveBack(ctx, r, s); err != nil {
			return err
		}
		s.Step = returned
	case s.Step == returned:
		if err := c.migrate(ctx, r, s, s.Migration+"-undo"); err != nil {
			return err
		}
		s.Step = migrated
	}
	return nil
}

// giveBack makes the former storage version the storage version again. Objects that were
// written since the backfill may have what it cannot hold: the next step would remove that.
func (c *Config) giveBack(ctx context.Context, r *rollout, s *status) error {
	both, err := r.Spec.Expand.storedAs(s.Before)
	if err != nil {
		return err
	}
	p, err := c.plan(ctx, r, both)
	if err != nil {
		return err
	}
	s.Plan = p.raw
	if len(p.Refused) > 0 {
		return wait("the server refuses the former storage version: %s", p.Refused[0])
	}
	if n := p.lost(); n > 0 && !slices.Contains(r.Spec.Approvals, Undo) {
		return wait("in the former storage version %d objects would lose data (%s); change or delete them, or add %s to spec.approvals if that is wanted",
			n, p.Summary.Headline(), Undo)
	}
	return c.apply(ctx, r, s, both, p.ID)
}

// expanded reports whether the CRD is not what it was before the rollout.
func (c *Config) expanded(ctx context.Context, r *rollout, s *status) (bool, error) {
	crd, err := c.Client.Resource(crds).Get(ctx, r.Spec.CRD, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	was, _ := json.Marshal(s.Before) // both come from JSON
	is, _ := json.Marshal(manifestOf(crd, r))
	return !bytes.Equal(was, is), nil
}

// leave gives the CRD the spec that it had.
func (c *Config) leave(ctx context.Context, r *rollout, s *status) error {
	p, err := c.plan(ctx, r, s.Before)
	if err != nil {
		return err
	}
	s.Plan = p.raw
	if len(p.Refused) > 0 {
		return wait("the server refuses the former CRD: %s", p.Refused[0])
	}
	if n := p.lost(); n > 0 {
		return wait("with the former CRD %d objects would lose data (%s); change or delete them", n, p.Summary.Headline())
	}
	if err := c.apply(ctx, r, s, s.Before, p.ID); err != nil {
		return err
	}
	s.enter(Undone)
	return nil
}

// storedAs returns a manifest whose storage version is that of another.
func (m *manifest) storedAs(other *manifest) (*manifest, error) {
	name := storageOf(other.Spec)
	spec := runtime.DeepCopyJSON(m.Spec)
	versions, _, _ := unstructured.NestedSlice(spec, "versions")
	found := false
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok {
			v["storage"] = v["name"] == name
			found = found || v["name"] == name
		}
	}
	if !found {
		return nil, finally("spec.expand has no version %s, in which objects were stored", name)
	}
	return &manifest{Annotations: m.Annotations, Spec: spec}, unstructured.SetNestedSlice(spec, versions, "versions")
}

// storageOf returns the name of the storage version of a CRD.
func storageOf(spec map[string]any) string {
	versions, _, _ := unstructured.NestedSlice(spec, "versions")
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok && v["storage"] == true {
			name, _ := v["name"].(string)
			return name
		}
	}
	return ""
}

// restore undoes the migration.
func (c *Config) restore(ctx context.Context, r *rollout, s *status) error {
	m, err := c.Client.Resource(migrations).Get(ctx, s.Migration, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // it has not begun, or its pre-images are gone with it
	}
	if err != nil {
		return err
	}
	if !r.owns(m) {
		return nil
	}
	if m.GetAnnotations()[undoAnnotation] != "true" {
		_, err := c.Client.Resource(migrations).Patch(ctx, s.Migration, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"`+undoAnnotation+`":"true"}}}`), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		return wait("giving objects back what they were: StorageVersionMigration %s", s.Migration)
	}
	// Without pre-images, objects are converted back by the next step.
	if state, message := conditionOf(m); state != "Undone" && state != noPreimages {
		return wait("giving objects back what they were: %s", message)
	}
	return nil
}

const (
	// undoAnnotation has a migration undone.
	undoAnnotation = "migration.espalier.dev/undo"
	// noPreimages is the reason of a migration that cannot be undone because there is nothing to put back.
	noPreimages = "NoPreimages"
)
