package tolerations

import (
	"context"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"
)

const (
	// PluginName is what the plugin is called in Kubernetes.
	PluginName = "DefaultTolerationSeconds"

	// seconds is how long a pod stays on a node that does not answer.
	seconds = 300
)

// taints are those that the control plane puts on nodes that do not answer.
var taints = []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable}

// Plugin adds tolerations to pods.
type Plugin struct{ *admission.Handler }

var _ admission.MutationInterface = (*Plugin)(nil)

// NewPlugin returns a plugin that needs nothing.
func NewPlugin(io.Reader) (admission.Interface, error) {
	return &Plugin{admission.NewHandler(admission.Create, admission.Update)}, nil
}

// Admit implements admission.MutationInterface. An update that leaves out the tolerations
// gets them again: no update may remove one.
func (*Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "" {
		return nil
	}
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok {
		return nil
	}
	given := pod.Spec.Tolerations
	for _, key := range taints {
		if slices.ContainsFunc(given, func(t corev1.Toleration) bool { return tolerates(&t, key) }) {
			continue
		}
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](seconds),
		})
	}
	return nil
}

// tolerates reports whether a toleration is about the eviction of pods by a taint. As in
// kube-apiserver, its operator and value do not matter.
func tolerates(t *corev1.Toleration, key string) bool {
	return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
}
