package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

const (
	// PluginName is what the plugin is called in Kubernetes.
	PluginName = "ServiceAccount"

	defaultName  = "default"
	volumePrefix = "kube-api-access-"
	mountPath    = "/var/run/secrets/kubernetes.io/serviceaccount"
	// tokenSeconds is how long a token lives. The odd number tells auditors that the
	// client did not ask for it.
	tokenSeconds = 3607
)

// A controller creates the account of a new namespace, so that the first pod may come
// before it.
const (
	retries = 9
	pause   = 150 * time.Millisecond
)

// Plugin gives new pods what belongs to their account. It reads the account from the
// server: one that was just created must be found, and one that was just changed must
// have its effect.
type Plugin struct {
	*admission.Handler
	client kubernetes.Interface
}

var (
	_ admission.MutationInterface            = (*Plugin)(nil)
	_ admission.ValidationInterface          = (*Plugin)(nil)
	_ initializer.WantsExternalKubeClientSet = (*Plugin)(nil)
)

// NewPlugin returns a plugin that needs a client.
func NewPlugin(io.Reader) (admission.Interface, error) {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}, nil
}

// SetExternalKubeClientSet implements initializer.WantsExternalKubeClientSet.
func (p *Plugin) SetExternalKubeClientSet(c kubernetes.Interface) { p.client = c }

// ValidateInitialization implements admission.InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	if p.client == nil {
		return errors.New("the admission plugin " + PluginName + " needs a client")
	}
	return nil
}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := podOf(a)
	if pod == nil || a.GetSubresource() != "" {
		return nil
	}
	if isMirror(pod) {
		return mirror(a, pod)
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = defaultName
	}
	// The older name of the field always has the same value.
	pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
	account, err := p.account(ctx, a, pod.Spec.ServiceAccountName)
	if err != nil {
		return err
	}
	if err := limited(a, account, pod); err != nil {
		return err
	}
	if mounts(account, pod) {
		mount(&pod.Spec)
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = slices.Clone(account.ImagePullSecrets)
	}
	return nil
}

// Validate implements admission.ValidationInterface: a webhook may have changed the
// account or added secrets. A debug container comes with an update.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := podOf(a)
	switch {
	case pod == nil:
		return nil
	case isMirror(pod):
		return mirror(a, pod)
	}
	account, err := p.account(ctx, a, pod.Spec.ServiceAccountName)
	if err != nil {
		return err
	}
	return limited(a, account, pod)
}

// podOf returns the pod of a request that is about accounts: one that creates a pod or
// adds debug containers. Nil for others.
func podOf(a admission.Attributes) *corev1.Pod {
	if a.GetResource().GroupResource() != corev1.Resource("pods") {
		return nil
	}
	wanted := ""
	if a.GetOperation() == admission.Update {
		wanted = "ephemeralcontainers"
	}
	if a.GetSubresource() != wanted {
		return nil
	}
	pod, _ := a.GetObject().(*corev1.Pod)
	return pod
}

// account reads an account. It waits a moment for the one that every namespace gets.
func (p *Plugin) account(ctx context.Context, a admission.Attributes, name string) (*corev1.ServiceAccount, error) {
	if reasons := content.IsPathSegmentName(name); len(reasons) > 0 {
		return nil, admission.NewForbidden(a, fmt.Errorf("error looking up service account %s/%s: invalid resource name %q: %v", a.GetNamespace(), name, name, reasons))
	}
	for try := 0; ; try++ {
		account, err := p.client.CoreV1().ServiceAccounts(a.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			return account, nil
		case !apierrors.IsNotFound(err):
			return nil, err
		case name != defaultName || try == retries:
			return nil, admission.NewForbidden(a, fmt.Errorf("error looking up service account %s/%s: serviceaccount %q not found", a.GetNamespace(), name, name))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// mounts reports whether containers get a token. The pod decides before the account.
func mounts(account *corev1.ServiceAccount, pod *corev1.Pod) bool {
	if own := pod.Spec.AutomountServiceAccountToken; own != nil {
		return *own
	}
	return ptr.Deref(account.AutomountServiceAccountToken, true)
}

// mount gives containers the volume, unless they have mounted another one at its path.
// The volume is only added if a container needs it.
func mount(spec *corev1.PodSpec) {
	var without []*corev1.Container
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if !slices.ContainsFunc(list[i].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == mountPath }) {
				without = append(without, &list[i])
			}
		}
	}
	if len(without) == 0 {
		return
	}
	var name string
	if i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, volumePrefix) }); i >= 0 {
		name = spec.Volumes[i].Name
	} else {
		name = names.SimpleNameGenerator.GenerateName(volumePrefix)
		spec.Volumes = append(spec.Volumes, volume(name))
	}
	for _, c := range without {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, ReadOnly: true, MountPath: mountPath})
	}
}

// volume has what a program in a pod needs to talk to the server. All defaults are filled
// in: they were set before admission.
func volume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To(corev1.ProjectedVolumeSourceDefaultMode),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To[int64](tokenSeconds)}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		},
	}}}
}
