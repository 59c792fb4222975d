package v1

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	orchardv1 "example.com/orchard/api/v1"
)

// SetupTreeWebhookWithManager has the manager serve the webhooks of trees.
func SetupTreeWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &orchardv1.Tree{}).
		WithDefaulter(&TreeDefaulter{Form: "Cordon"}).
		WithValidator(&TreeValidator{}).
		Complete()
}

// +kubebuilder:webhook:path=/mutate-orchard-example-com-v1-tree,mutating=true,failurePolicy=fail,sideEffects=None,groups=orchard.example.com,resources=trees,verbs=create;update,versions=v1,name=mtree-v1.kb.io,admissionReviewVersions=v1

// TreeDefaulter gives trees a form.
type TreeDefaulter struct{ Form string }

var _ admission.Defaulter[*orchardv1.Tree] = &TreeDefaulter{}

// Default fills in what a tree does not say.
func (d *TreeDefaulter) Default(_ context.Context, tree *orchardv1.Tree) error {
	if tree.Spec.Form == "" {
		tree.Spec.Form = d.Form
	}
	return nil
}

// +kubebuilder:webhook:path=/validate-orchard-example-com-v1-tree,mutating=false,failurePolicy=fail,sideEffects=None,groups=orchard.example.com,resources=trees,verbs=create;update,versions=v1,name=vtree-v1.kb.io,admissionReviewVersions=v1

// TreeValidator knows which trees can grow.
type TreeValidator struct{}

var _ admission.Validator[*orchardv1.Tree] = &TreeValidator{}

// maxCordon is how high a tree can be that has to be reached from the ground.
const maxCordon = 250

// ValidateCreate validates a new tree.
func (v *TreeValidator) ValidateCreate(_ context.Context, tree *orchardv1.Tree) (admission.Warnings, error) {
	var warnings admission.Warnings
	if tree.Spec.Form == "Standard" {
		warnings = append(warnings, "a standard tree needs a ladder")
	}
	return warnings, validate(tree, nil)
}

// ValidateUpdate validates a change of a tree.
func (v *TreeValidator) ValidateUpdate(_ context.Context, old, tree *orchardv1.Tree) (admission.Warnings, error) {
	var errs field.ErrorList
	if old.Spec.Variety != tree.Spec.Variety {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "variety"), "plant another tree instead"))
	}
	return nil, validate(tree, errs)
}

// ValidateDelete lets every tree go.
func (v *TreeValidator) ValidateDelete(context.Context, *orchardv1.Tree) (admission.Warnings, error) {
	return nil, nil
}

func validate(tree *orchardv1.Tree, errs field.ErrorList) error {
	if tree.Spec.Form == "Cordon" && tree.Spec.HeightCentimetres > maxCordon {
		errs = append(errs, field.Invalid(field.NewPath("spec", "heightCentimetres"), tree.Spec.HeightCentimetres, fmt.Sprintf("a cordon is at most %d cm high", maxCordon)))
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(orchardv1.GroupVersion.WithKind("Tree").GroupKind(), tree.Name, errs)
}
