package podsecurity

import (
	"context"
	"fmt"
	"io"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/metrics/legacyregistry"
	security "k8s.io/pod-security-admission/admission"
	"k8s.io/pod-security-admission/admission/api/load"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/metrics"
	"k8s.io/pod-security-admission/policy"
)

// PluginName is what the plugin is called in Kubernetes.
const PluginName = "PodSecurity"

// Plugin refuses pods that the level of their namespace does not allow.
type Plugin struct {
	*admission.Handler
	security.Admission
	client kubernetes.Interface
}

var (
	_ admission.ValidationInterface                = (*Plugin)(nil)
	_ initializer.WantsExternalKubeClientSet       = (*Plugin)(nil)
	_ initializer.WantsExternalKubeInformerFactory = (*Plugin)(nil)
)

// recorder counts evaluations. All servers of a process have the same metrics.
var recorder = sync.OnceValue(func() metrics.Recorder {
	r := metrics.NewPrometheusRecorder(api.GetAPIVersion())
	r.MustRegister(legacyregistry.MustRegister)
	return r
})

// NewPlugin returns a plugin with a configuration of
// pod-security.admission.config.k8s.io, which may be nil. It needs a client and informers.
func NewPlugin(config io.Reader) (admission.Interface, error) {
	c, err := load.LoadFromReader(config)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of the admission plugin %s failed: %w", PluginName, err)
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil, err
	}
	p := &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
	p.Admission = security.Admission{Configuration: c, Evaluator: evaluator, Metrics: recorder(), PodSpecExtractor: security.DefaultPodSpecExtractor{}}
	return p, nil
}

// SetExternalKubeClientSet implements initializer.WantsExternalKubeClientSet.
func (p *Plugin) SetExternalKubeClientSet(c kubernetes.Interface) {
	p.client, p.PodLister = c, pods{security.PodListerFromClient(c)}
}

// SetExternalKubeInformerFactory implements initializer.WantsExternalKubeInformerFactory.
func (p *Plugin) SetExternalKubeInformerFactory(f informers.SharedInformerFactory) {
	namespaces := f.Core().V1().Namespaces()
	p.NamespaceGetter = security.NamespaceGetterFromListerAndClient(namespaces.Lister(), p.client)
	p.SetReadyFunc(namespaces.Informer().HasSynced)
}

// ValidateInitialization implements admission.InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	if p.client == nil || p.NamespaceGetter == nil {
		return fmt.Errorf("the admission plugin %s needs a client and informers", PluginName)
	}
	if err := p.CompleteConfiguration(); err != nil {
		return err
	}
	return p.ValidateConfiguration()
}

// pods lists pods. A server that does not serve them has none.
type pods struct{ security.PodLister }

// ListPods implements security.PodLister.
func (p pods) ListPods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	list, err := p.PodLister.ListPods(ctx, namespace)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return list, err
}

var namespaces = corev1.Resource("namespaces")

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if name := a.GetResource().GroupResource(); name != namespaces && !p.PodSpecExtractor.HasPodSpec(name) {
		return nil
	}
	if !p.WaitForReady() {
		return admission.NewForbidden(a, fmt.Errorf("%s has not read the namespaces yet; try again", PluginName))
	}
	answer := p.Admission.Validate(ctx, attributes{a})
	for _, text := range answer.Warnings {
		warning.AddWarning(ctx, "", text)
	}
	for key, value := range answer.AuditAnnotations {
		audit.AddAuditAnnotation(ctx, api.AuditAnnotationPrefix+key, value)
	}
	if answer.Allowed {
		return nil
	}
	refusal := admission.NewForbidden(a, fmt.Errorf("not allowed by %s", PluginName)).(*apierrors.StatusError)
	if answer.Result != nil {
		refusal.ErrStatus = *answer.Result
	}
	return refusal
}

// attributes are those of a request, as the library reads them.
type attributes struct{ admission.Attributes }

// GetOperation implements api.Attributes.
func (a attributes) GetOperation() admissionv1.Operation {
	return admissionv1.Operation(a.Attributes.GetOperation())
}

// GetObject implements api.Attributes.
func (a attributes) GetObject() (runtime.Object, error) { return a.Attributes.GetObject(), nil }

// GetOldObject implements api.Attributes.
func (a attributes) GetOldObject() (runtime.Object, error) { return a.Attributes.GetOldObject(), nil }

// GetUserName implements api.Attributes.
func (a attributes) GetUserName() string { return a.GetUserInfo().GetName() }
