package main

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	v1 "github.com/espalier-dev/espalier/controllers/sample/v1"
	"github.com/espalier-dev/espalier/controllers/sample/v1alpha1"
)

// wires is how many crossings of wires a trellis may have.
const wires = 100

func setupWebhooks(mgr ctrl.Manager) error {
	spoke := conversion.NewSpokeConverter(&v1alpha1.Trellis{}, v1alpha1.FromV1, v1alpha1.ToV1)
	return ctrl.NewWebhookManagedBy(mgr, &v1.Trellis{}).
		WithDefaulter(gardener{}).WithValidator(gardener{}).
		WithConverter(conversion.NewHubSpokeConverter(&v1.Trellis{}, spoke)).
		Complete()
}

// A gardener knows what grows.
type gardener struct{}

// Default gives a trellis the usual size.
func (gardener) Default(_ context.Context, t *v1.Trellis) error {
	if t.Spec.Size == (v1.Size{}) {
		t.Spec.Size = v1.Size{Rows: 2, Columns: 3}
	}
	return nil
}

// ValidateCreate refuses a trellis that is too high to prune.
func (gardener) ValidateCreate(_ context.Context, t *v1.Trellis) (admission.Warnings, error) {
	if n := int64(t.Spec.Size.Rows) * int64(t.Spec.Size.Columns); n > wires {
		return nil, fmt.Errorf("spec.size has %d crossings: at most %d can be pruned", n, wires)
	}
	if t.Spec.Plant == "ivy" {
		return admission.Warnings{"ivy takes the wall with it"}, nil
	}
	return nil, nil
}

// ValidateUpdate refuses to change the plant: a tree does not become another.
func (g gardener) ValidateUpdate(ctx context.Context, before, t *v1.Trellis) (admission.Warnings, error) {
	if before.Spec.Plant != t.Spec.Plant {
		return nil, fmt.Errorf("spec.plant is %s and stays it: make another trellis for %s", before.Spec.Plant, t.Spec.Plant)
	}
	return g.ValidateCreate(ctx, t)
}

// ValidateDelete refuses nothing.
func (gardener) ValidateDelete(context.Context, *v1.Trellis) (admission.Warnings, error) {
	return nil, nil
}
