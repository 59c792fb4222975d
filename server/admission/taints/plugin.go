package taints

import (
	"context"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
)

// PluginName is what the plugin is called in Kubernetes.
const PluginName = "TaintNodesByCondition"

// Plugin adds a taint to new nodes.
type Plugin struct{ *admission.Handler }

var _ admission.MutationInterface = (*Plugin)(nil)

// NewPlugin returns a plugin that needs nothing.
func NewPlugin(io.Reader) (admission.Interface, error) {
	return &Plugin{admission.NewHandler(admission.Create)}, nil
}

// Admit implements admission.MutationInterface.
func (*Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1.Resource("nodes") || a.GetSubresource() != "" {
		return nil
	}
	node, ok := a.GetObject().(*corev1.Node)
	if !ok {
		return nil
	}
	want := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == want.Key && t.Effect == want.Effect }) {
		node.Spec.Taints = append(node.Spec.Taints, want)
	}
	return nil
}
