package limitranger

import (
	"context"
	"errors"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-dev/espalier/server/storage/store"
)

// PluginName is what the plugin is called in Kubernetes.
const PluginName = "LimitRanger"

// Plugin gives the containers of pods the defaults of LimitRanges, and refuses pods and
// claims that are not within them.
type Plugin struct {
	*admission.Handler
	ranges *ranges
}

var (
	_ admission.MutationInterface            = (*Plugin)(nil)
	_ admission.ValidationInterface          = (*Plugin)(nil)
	_ initializer.WantsDrainedNotification   = (*Plugin)(nil)
	_ initializer.WantsExternalKubeClientSet = (*Plugin)(nil)
)

var (
	pods        = corev1.Resource("pods")
	claims      = corev1.Resource("persistentvolumeclaims")
	limitRanges = corev1.Resource("limitranges")
)

// NewPlugin returns a plugin that needs a client.
func NewPlugin(io.Reader) (admission.Interface, error) {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), ranges: newRanges()}, nil
}

// SetDrainedNotification implements initializer.WantsDrainedNotification.
func (p *Plugin) SetDrainedNotification(stop <-chan struct{}) { p.ranges.stop = stop }

// SetExternalKubeClientSet implements initializer.WantsExternalKubeClientSet.
func (p *Plugin) SetExternalKubeClientSet(c kubernetes.Interface) { p.ranges.client = c }

// ValidateInitialization implements admission.InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	if p.ranges.client == nil || p.ranges.stop == nil {
		return errors.New("the admission plugin " + PluginName + " needs a client and a channel that says when to stop")
	}
	return nil
}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !isLimited(a) {
		return nil
	}
	known, revision, err := p.ranges.in(ctx, a.GetNamespace())
	if err != nil {
		return err
	}
	if !a.IsDryRun() {
		// What Validate knows may be newer, and too new for the defaults.
		store.RequireFolder(ctx, p.folder(a.GetNamespace(), revision))
	}
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok {
		return nil
	}
	for _, one := range known {
		// A resize writes no metadata.
		if text := setDefaults(pod, one.Spec.Limits); text != "" && a.GetSubresource() == "" {
			if pod.Annotations == nil {
				pod.Annotations = map[string]string{}
			}
			pod.Annotations[annotation] = text
		}
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() == limitRanges {
		p.ranges.doubt(a.GetNamespace())
		return nil
	}
	if !isLimited(a) {
		return nil
	}
	known, _, err := p.ranges.in(ctx, a.GetNamespace())
	if err != nil {
		return err
	}
	for _, one := range known {
		if err := utilerrors.NewAggregate(check(a.GetObject(), one.Spec.Limits)); err != nil {
			return admission.NewForbidden(a, err)
		}
	}
	return nil
}

// folder is the condition that no LimitRange of a namespace is newer than a revision. If
// one is, the defaults may be wrong, and it is too late to set others.
func (p *Plugin) folder(namespace string, revision int64) store.Folder {
	return store.Folder{
		Name: limitRanges.Resource + "/" + namespace, Revision: revision, Unmarked: true,
		Newer: func(context.Context, []string) (store.Folder, error) {
			p.ranges.doubt(namespace)
			return store.Folder{}, store.NothingWritten("the LimitRanges in the namespace " + namespace + " have just changed")
		},
	}
}

// isLimited reports whether LimitRanges apply to a request: as in kube-apiserver, to new
// pods, to those that are resized, and to every write of a claim but for its status.
func isLimited(a admission.Attributes) bool {
	type request struct {
		resource    schema.GroupResource
		operation   admission.Operation
		subresource string
	}
	switch (request{a.GetResource().GroupResource(), a.GetOperation(), a.GetSubresource()}) {
	case request{pods, admission.Create, ""}, request{pods, admission.Update, "resize"},
		request{claims, admission.Create, ""}, request{claims, admission.Update, ""}:
		return true
	}
	return false
}
