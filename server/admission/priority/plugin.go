package priority

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/server/admission/lister"
)

// PluginName is what the plugin is called in Kubernetes.
const PluginName = "Priority"

// Plugin gives pods the priority and the preemption policy of their class.
type Plugin struct {
	*admission.Handler
	classes lister.Lister[*schedulingv1.PriorityClass]
}

var (
	_ admission.MutationInterface            = (*Plugin)(nil)
	_ admission.ValidationInterface          = (*Plugin)(nil)
	_ initializer.WantsDrainedNotification   = (*Plugin)(nil)
	_ initializer.WantsExternalKubeClientSet = (*Plugin)(nil)
)

var (
	pods            = corev1.Resource("pods")
	priorityClasses = schedulingv1.Resource("priorityclasses")
)

// NewPlugin returns a plugin that needs a client.
func NewPlugin(io.Reader) (admission.Interface, error) {
	p := &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete)}
	p.classes.Resource = lister.Resource[*schedulingv1.PriorityClass]{
		Informer: func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Scheduling().V1().PriorityClasses().Informer()
		},
		List: listClasses,
		Get: func(ctx context.Context, client kubernetes.Interface, name string) (*schedulingv1.PriorityClass, error) {
			return client.SchedulingV1().PriorityClasses().Get(ctx, name, metav1.GetOptions{})
		},
	}
	return p, nil
}

func listClasses(ctx context.Context, client kubernetes.Interface) ([]*schedulingv1.PriorityClass, error) {
	list, err := client.SchedulingV1().PriorityClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return lister.Pointers(list.Items), nil
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
	if a.GetResource().GroupResource() != pods || a.GetSubresource() != "" {
		return nil
	}
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok {
		return nil
	}
	switch a.GetOperation() {
	case admission.Create:
		return p.admit(ctx, a, &pod.Spec)
	case admission.Update:
		if old, ok := a.GetOldObject().(*corev1.Pod); ok {
			keep(&pod.Spec, &old.Spec)
		}
	}
	return nil
}

// keep has an update that leaves out the priority or the policy keep it: manifests of
// pods have neither.
func keep(spec, old *corev1.PodSpec) {
	if spec.Priority == nil && old.Priority != nil {
		spec.Priority = ptr.To(*old.Priority)
	}
	if spec.PreemptionPolicy == nil && old.PreemptionPolicy != nil {
		spec.PreemptionPolicy = ptr.To(*old.PreemptionPolicy)
	}
}

// admit sets the priority and the policy of a new pod.
func (p *Plugin) admit(ctx context.Context, a admission.Attributes, spec *corev1.PodSpec) error {
	class, err := p.classOf(ctx, a, spec)
	if err != nil {
		return err
	}
	priority, policy := int32(0), corev1.PreemptLowerPriority
	if class != nil {
		spec.PriorityClassName, priority = class.Name, class.Value
		if class.PreemptionPolicy != nil {
			policy = *class.PreemptionPolicy
		}
	}
	if spec.Priority != nil && *spec.Priority != priority {
		return admission.NewForbidden(a, fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *spec.Priority, priority))
	}
	if spec.PreemptionPolicy != nil && *spec.PreemptionPolicy != policy {
		return admission.NewForbidden(a, fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", *spec.PreemptionPolicy, policy))
	}
	spec.Priority, spec.PreemptionPolicy = &priority, &policy
	return nil
}

// classOf returns the class that a pod names, or the default; nil if there is neither.
func (p *Plugin) classOf(ctx context.Context, a admission.Attributes, spec *corev1.PodSpec) (*schedulingv1.PriorityClass, error) {
	name := spec.PriorityClassName
	if name == "" {
		all, err := p.classes.All(ctx)
		return defaultOf(all, ""), err
	}
	class, err := p.classes.Get(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, admission.NewForbidden(a, fmt.Errorf("no PriorityClass with name %s was found", name))
	}
	return class, err
}

// defaultOf returns the default among classes other than the one of a name, nil if there
// is none.
func defaultOf(all []*schedulingv1.PriorityClass, except string) (found *schedulingv1.PriorityClass) {
	for _, c := range all {
		if c.GlobalDefault && c.Name != except && (found == nil || cmp.Or(cmp.Compare(c.Value, found.Value), cmp.Compare(c.Name, found.Name)) < 0) {
			found = c
		}
	}
	return found
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != priorityClasses || a.GetSubresource() != "" {
		return nil
	}
	p.classes.Doubt()
	class, ok := a.GetObject().(*schedulingv1.PriorityClass)
	if !ok || a.GetOperation() == admission.Delete || !class.GlobalDefault {
		return nil
	}
	all, err := p.classes.All(ctx)
	if err != nil {
		return err
	}
	if other := defaultOf(all, class.Name); other != nil {
		return admission.NewForbidden(a, fmt.Errorf("PriorityClass %s is already marked as default. Only one default can exist", other.Name))
	}
	return nil
}

// System are the classes that a server creates: those of the pods that a cluster needs to
// work.
func System() []*schedulingv1.PriorityClass {
	return []*schedulingv1.PriorityClass{
		{
			ObjectMeta:  metav1.ObjectMeta{Name: "system-node-critical"},
			Value:       2000001000,
			Description: "Used for system critical pods that must not be moved from their current node.",
		},
		{
			ObjectMeta:  metav1.ObjectMeta{Name: "system-cluster-critical"},
			Value:       2000000000,
			Description: "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
		},
	}
}

// EnsureSystem creates the system classes. It does not change existing ones.
func EnsureSystem(ctx context.Context, client kubernetes.Interface) error {
	var errs []error
	for _, class := range System() {
		_, err := client.SchedulingV1().PriorityClasses().Get(ctx, class.Name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
			continue
		}
		_, err = client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
