package volumes

import (
	"context"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// ProtectionName is what the plugin for finalizers is called in Kubernetes.
const ProtectionName = "StorageObjectInUseProtection"

// finalizers keep an object that is in use.
var finalizers = map[schema.GroupResource]string{
	claims:                               "kubernetes.io/pvc-protection",
	corev1.Resource("persistentvolumes"): "kubernetes.io/pv-protection",
	storagev1.Resource("volumeattributesclasses"): "kubernetes.io/vac-protection",
}

// Protection adds finalizers to new objects.
type Protection struct{ *admission.Handler }

var _ admission.MutationInterface = (*Protection)(nil)

// NewProtection returns a plugin that needs nothing.
func NewProtection(io.Reader) (admission.Interface, error) {
	return &Protection{admission.NewHandler(admission.Create)}, nil
}

// Admit implements admission.MutationInterface.
func (*Protection) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	finalizer, ok := finalizers[a.GetResource().GroupResource()]
	if !ok || a.GetSubresource() != "" {
		return nil
	}
	m, err := meta.Accessor(a.GetObject())
	if err != nil {
		return err
	}
	if has := m.GetFinalizers(); !slices.Contains(has, finalizer) {
		m.SetFinalizers(append(slices.Clone(has), finalizer))
	}
	return nil
}
