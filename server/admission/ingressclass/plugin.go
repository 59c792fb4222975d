package ingressclass

import (
	"context"
	"fmt"
	"io"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/server/admission/lister"
)

const (
	// PluginName is what the plugin is called in Kubernetes.
	PluginName = "DefaultIngressClass"

	// classAnnotation names a class as Ingresses did before they had a field for it.
	classAnnotation = "kubernetes.io/ingress.class"
)

var (
	ingresses = networkingv1.Resource("ingresses")
	classes   = networkingv1.Resource("ingressclasses")
)

// Plugin gives new Ingresses the default class.
type Plugin struct {
	*admission.Handler
	classes lister.Lister[*networkingv1.IngressClass]
}

var (
	_ admission.MutationInterface            = (*Plugin)(nil)
	_ admission.ValidationInterface          = (*Plugin)(nil)
	_ initializer.WantsDrainedNotification   = (*Plugin)(nil)
	_ initializer.WantsExternalKubeClientSet = (*Plugin)(nil)
)

// NewPlugin returns a plugin that needs a client.
func NewPlugin(io.Reader) (admission.Interface, error) {
	p := &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete)}
	p.classes.Resource = lister.Resource[*networkingv1.IngressClass]{
		Informer: func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Networking().V1().IngressClasses().Informer()
		},
		List: func(ctx context.Context, client kubernetes.Interface) ([]*networkingv1.IngressClass, error) {
			list, err := client.NetworkingV1().IngressClasses().List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			return lister.Pointers(list.Items), nil
		},
		Get: func(ctx context.Context, client kubernetes.Interface, name string) (*networkingv1.IngressClass, error) {
			return client.NetworkingV1().IngressClasses().Get(ctx, name, metav1.GetOptions{})
		},
	}
	return p, nil
}

// SetDrainedNotification implements initializer.WantsDrainedNotification.
func (p *Plugin) SetDrainedNotification(stop <-chan struct{}) { p.classes.Stop = stop }

// SetExternalKubeClientSet implements initializer.WantsExternalKubeClientSet.
func (p *Plugin) SetExternalKubeClientSet(c kubernetes.Interface) { p.classes.Client = c }

// ValidateInitialization implements admission.InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	if err := p.classes.Validate(); err != nil {
		return fmt.Errorf("the admission plugin %s cannot start: %w", PluginName, err)
	}
	return nil
}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != ingresses || a.GetSubresource() != "" || a.GetOperation() != admission.Create {
		return nil
	}
	ingress, ok := a.GetObject().(*networkingv1.Ingress)
	if !ok || ingress.Spec.IngressClassName != nil {
		return nil
	}
	if _, ok := ingress.Annotations[classAnnotation]; ok {
		return nil
	}
	all, err := p.classes.All(ctx)
	if err != nil {
		return err
	}
	isDefault := func(c *networkingv1.IngressClass) bool {
		return c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true"
	}
	if class, ok := lister.Newest(all, isDefault); ok {
		ingress.Spec.IngressClassName = ptr.To(class.Name)
	}
	return nil
}

// Validate implements admission.ValidationInterface: it learns that a class is written.
func (p *Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() == classes {
		p.classes.Doubt()
	}
	return nil
}
