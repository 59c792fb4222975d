package volumes

import (
	"context"
	"errors"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/kubernetes"
)

// ResizeName is what the plugin for claims that grow is called in Kubernetes.
const ResizeName = "PersistentVolumeClaimResize"

// Resize refuses claims that grow although their StorageClass does not allow it.
type Resize struct {
	*admission.Handler
	client kubernetes.Interface
}

var (
	_ admission.ValidationInterface          = (*Resize)(nil)
	_ initializer.WantsExternalKubeClientSet = (*Resize)(nil)
)

// NewResize returns a plugin that needs a client.
func NewResize(io.Reader) (admission.Interface, error) {
	return &Resize{Handler: admission.NewHandler(admission.Update)}, nil
}

// SetExternalKubeClientSet implements initializer.WantsExternalKubeClientSet.
func (p *Resize) SetExternalKubeClientSet(c kubernetes.Interface) { p.client = c }

// ValidateInitialization implements admission.InitializationValidator.
func (p *Resize) ValidateInitialization() error {
	if p.client == nil {
		return errors.New("the admission plugin " + ResizeName + " needs a client")
	}
	return nil
}

// Validate implements admission.ValidationInterface. Validation has refused claims that
// are not bound and grow.
func (p *Resize) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != claims || a.GetSubresource() != "" {
		return nil
	}
	claim, ok := a.GetObject().(*corev1.PersistentVolumeClaim)
	old, wasOne := a.GetOldObject().(*corev1.PersistentVolumeClaim)
	if !ok || !wasOne || claim.Spec.Resources.Requests.Storage().Cmp(*old.Spec.Resources.Requests.Storage()) <= 0 {
		return nil
	}
	allowed, err := p.expands(ctx, classOf(claim))
	if err == nil && !allowed {
		err = admission.NewForbidden(a, errors.New("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"))
	}
	return err
}

// expands reports whether there is a class of a name that allows claims to grow.
func (p *Resize) expands(ctx context.Context, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	class, err := p.client.StorageV1().StorageClasses().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return class.AllowVolumeExpansion != nil && *class.AllowVolumeExpansion, nil
}

// classOf is the StorageClass of a claim. The annotation counts more than the field.
func classOf(claim *corev1.PersistentVolumeClaim) string {
	if name, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return name
	}
	if claim.Spec.StorageClassName == nil {
		return ""
	}
	return *claim.Spec.StorageClassName
}
