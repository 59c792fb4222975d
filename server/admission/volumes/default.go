package volumes

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/server/admission/lister"
)

// DefaultName is what the plugin for default classes is called in Kubernetes.
const DefaultName = "DefaultStorageClass"

var (
	claims  = corev1.Resource("persistentvolumeclaims")
	classes = storagev1.Resource("storageclasses")
)

// defaultMarks are the annotations of a default class.
var defaultMarks = []string{"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"}

// Default gives new claims the default StorageClass.
type Default struct {
	*admission.Handler
	classes lister.Lister[*storagev1.StorageClass]
}

var (
	_ admission.MutationInterface            = (*Default)(nil)
	_ admission.ValidationInterface          = (*Default)(nil)
	_ initializer.WantsDrainedNotification   = (*Default)(nil)
	_ initializer.WantsExternalKubeClientSet = (*Default)(nil)
)

// NewDefault returns a plugin that needs a client.
func NewDefault(io.Reader) (admission.Interface, error) {
	p := &Default{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete)}
	p.classes.Resource = lister.Resource[*storagev1.StorageClass]{
		Informer: func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Storage().V1().StorageClasses().Informer()
		},
		List: func(ctx context.Context, client kubernetes.Interface) ([]*storagev1.StorageClass, error) {
			list, err := client.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			return lister.Pointers(list.Items), nil
		},
		Get: func(ctx context.Context, client kubernetes.Interface, name string) (*storagev1.StorageClass, error) {
			return client.StorageV1().StorageClasses().Get(ctx, name, metav1.GetOptions{})
		},
	}
	return p, nil
}

// SetDrainedNotification implements initializer.WantsDrainedNotification.
func (p *Default) SetDrainedNotification(stop <-chan struct{}) { p.classes.Stop = stop }

// SetExternalKubeClientSet implements initializer.WantsExternalKubeClientSet.
func (p *Default) SetExternalKubeClientSet(c kubernetes.Interface) { p.classes.Client = c }

// ValidateInitialization implements admission.InitializationValidator.
func (p *Default) ValidateInitialization() error {
	if err := p.classes.Validate(); err != nil {
		return fmt.Errorf("the admission plugin %s cannot start: %w", DefaultName, err)
	}
	return nil
}

// Admit implements admission.MutationInterface. A claim with an empty class wants a volume
// without one.
func (p *Default) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != claims || a.GetSubresource() != "" || a.GetOperation() != admission.Create {
		return nil
	}
	claim, ok := a.GetObject().(*corev1.PersistentVolumeClaim)
	if !ok || claim.Spec.StorageClassName != nil {
		return nil
	}
	if _, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return nil
	}
	all, err := p.classes.All(ctx)
	if err != nil {
		return err
	}
	if class, ok := lister.Newest(all, isDefault); ok {
		claim.Spec.StorageClassName = ptr.To(class.Name)
	}
	return nil
}

func isDefault(class *storagev1.StorageClass) bool {
	for _, mark := range defaultMarks {
		if class.Annotations[mark] == "true" {
			return true
		}
	}
	return false
}

// Validate implements admission.ValidationInterface: it learns that a class is written.
func (p *Default) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() == classes {
		p.classes.Doubt()
	}
	return nil
}
