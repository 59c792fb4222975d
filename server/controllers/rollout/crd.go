package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/crd/impact"
)

// approvedPlan is the annotation of a CRD that says which plan was approved.
const approvedPlan = "espalier.dev/approved-plan"

// manifestOf returns of a CRD what a rollout sets: the spec, and the annotations that it names.
func manifestOf(crd *unstructured.Unstructured, r *rollout) *manifest {
	m := &manifest{Annotations: map[string]string{}}
	m.Spec, _, _ = unstructured.NestedMap(crd.Object, "spec") // every CRD has one
	for _, set := range []map[string]string{r.Spec.Expand.Annotations, r.Spec.Contract.Annotations} {
		for name := range set {
			if value, ok := crd.GetAnnotations()[name]; ok {
				m.Annotations[name] = value
			}
		}
	}
	return m
}

// sightOf returns what tells the CRD apart.
func sightOf(crd *unstructured.Unstructured, r *rollout) sight {
	data, _ := json.Marshal(manifestOf(crd, r).Annotations) // strings can be marshalled
	sum := sha256.Sum256(data)
	return sight{UID: crd.GetUID(), Generation: crd.GetGeneration(), Annotations: hex.EncodeToString(sum[:8])}
}

// changed returns an error that ends the rollout if the CRD is not the one that it has seen last.
func (s *status) changed(crd *unstructured.Unstructured, r *rollout) error {
	switch now := sightOf(crd, r); {
	case now.UID != s.UID:
		return finally("the CRD was deleted and created again; it stays as it is")
	case now.Generation != s.Generation:
		return finally("the CRD was changed by others (generation %d, expected %d); it stays as it is", now.Generation, s.Generation)
	case now != s.sight:
		return finally("the CRD was changed by others (its annotations); it stays as it is")
	}
	return nil
}

// on returns the CRD as a manifest makes it. Annotations that other phases set, and this one does
// not, go.
func (m *manifest) on(crd *unstructured.Unstructured, r *rollout) *unstructured.Unstructured {
	crd = crd.DeepCopy()
	crd.Object["spec"] = runtime.DeepCopyJSON(m.Spec)
	annotations := crd.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for _, other := range []*manifest{&r.Spec.Expand, &r.Spec.Contract} {
		for name := range other.Annotations {
			delete(annotations, name)
		}
	}
	maps.Copy(annotations, m.Annotations)
	crd.SetAnnotations(annotations)
	return crd
}

// apply gives the CRD another spec, and waits until it is served. A CRD that others have changed
// since the rollout has last seen it stays as it is.
func (c *Config) apply(ctx context.Context, r *rollout, s *status, m *manifest, plan string) error {
	crd, err := c.Client.Resource(crds).Get(ctx, r.Spec.CRD, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := s.changed(crd, r); err != nil {
		if crd.GetUID() != s.UID {
			return err
		}
		// Either a former update of this rollout succeeded and its status was lost, or others were here.
		is, failed := c.made(ctx, r, crd, m)
		switch {
		case failed != nil:
			return failed
		case is == nil:
			return err
		case is == m:
			s.sight = sightOf(crd, r)
			return nil
		}
	}
	wanted := m.on(crd, r)
	annotations := wanted.GetAnnotations()
	annotations[approvedPlan] = plan
	wanted.SetAnnotations(annotations)
	if crd, err = c.Client.Resource(crds).Update(ctx, wanted, metav1.UpdateOptions{}); err != nil {
		return err
	}
	s.sight = sightOf(crd, r)
	return nil
}

// made returns the manifest that the CRD is as, m or, for an undo, one that the rollout may have applied before; nil if it is
// none of them. An update that changes nothing does not change the generation.
func (c *Config) made(ctx context.Context, r *rollout, crd *unstructured.Unstructured, m *manifest) (*manifest, error) {
	candidates := []*manifest{m}
	if r.Spec.Undo {
		candidates = append(candidates, &r.Spec.Expand, &r.Spec.Contract)
	}
	var refused error
	for i, one := range candidates {
		tried, err := c.Client.Resource(crds).Update(ctx, one.on(crd, r), metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err != nil && i == 0:
			refused = err
		case err != nil:
		case sightOf(tried, r) == sightOf(crd, r):
			return one, nil
		}
	}
	return nil, refused
}

// plan is the answer of the server.
type plan struct {
	ID       string         `json:"id"`
	Refused  []string       `json:"refused"`
	Continue string         `json:"continue"`
	Summary  impact.Summary `json:"summary"`

	raw json.RawMessage // what the status shows
}

// lost is how many objects lose data.
func (p *plan) lost() int64 { return p.Summary.Losing }

// plan asks the server what a manifest does to the objects.
func (c *Config) plan(ctx context.Context, r *rollout, m *manifest) (*plan, error) {
	crd, err := c.Client.Resource(crds).Get(ctx, r.Spec.CRD, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	body, err := m.on(crd, r).MarshalJSON()
	if err != nil {
		return nil, err
	}
	sum := &plan{}
	for token := ""; ; {
		request := c.REST.Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", r.Spec.CRD, "plan").
			SetHeader("Content-Type", runtime.ContentTypeJSON).Param("list", "0").Body(body)
		if token != "" {
			request.Param("continue", token)
		}
		data, err := request.DoRaw(ctx)
		if err != nil {
			return nil, fmt.Errorf("planning failed: %w", err)
		}
		page := plan{}
		if err := json.Unmarshal(data, &page); err != nil {
			return nil, fmt.Errorf("planning failed: %w", err)
		}
		sum.ID, sum.Refused = page.ID, page.Refused
		sum.Summary.Merge(&page.Summary)
		if token = page.Continue; token == "" {
			break
		}
	}
	sum.raw, err = json.Marshal(map[string]any{"id": sum.ID, "objects": sum.Summary.Objects, "effects": sum.Summary.Counts})
	return sum, err
}

// migrationOf returns the StorageVersionMigration of a rollout.
func migrationOf(r *rollout, crd *unstructured.Unstructured, name string) *unstructured.Unstructured {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	m := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": migrations.GroupVersion().String(), "kind": "StorageVersionMigration",
		"spec": map[string]any{"resource": map[string]any{"group": group, "resource": plural}},
	}}
	m.SetName(name)
	if r.Spec.KeepPreimages != "" {
		m.SetAnnotations(map[string]string{"migration.espalier.dev/keep-preimages": r.Spec.KeepPreimages})
	}
	m.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: Resource.GroupVersion().String(), Kind: "CRDRollout", Name: r.Name, UID: r.UID}})
	return m
}

// migration is the name of the StorageVersionMigration of a rollout.
func (r *rollout) migration() string { return "rollout-" + r.Name }

// owns reports whether the rollout has created a migration. One of the same name may be of a user, or of a rollout that was
// deleted, and for other objects.
func (r *rollout) owns(m *unstructured.Unstructured) bool {
	return slices.ContainsFunc(m.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == r.UID })
}

// conditionOf returns the condition that a migration is in, and its message.
func conditionOf(m *unstructured.Unstructured) (state, message string) {
	list, _, _ := unstructured.NestedSlice(m.Object, "status", "conditions")
	found := map[string]string{}
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && (c["status"] == "True" || c["reason"] == noPreimages) {
			text, _ := c["message"].(string)
			kind, _ := c["type"].(string)
			if c["reason"] == noPreimages {
				kind = noPreimages
			}
			found[kind] = text
		}
	}
	for _, kind := range []string{"Undone", noPreimages, "Succeeded", "Failed", "Running"} {
		if text, ok := found[kind]; ok {
			return kind, text
		}
	}
	return "", "not yet begun"
}

// list is a JSON list of phases.
func list(phases []Phase) string {
	slices.Sort(phases)
	data, _ := json.Marshal(slices.Compact(phases)) // strings can be marshalled
	return string(data)
}

func same(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(a.Object["status"], b.Object["status"])
}
