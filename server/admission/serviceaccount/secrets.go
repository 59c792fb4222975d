package serviceaccount

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
)

func isMirror(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return ok
}

// mirror refuses a mirror pod that would give its node rights: a kubelet creates them as
// it likes.
func mirror(a admission.Attributes, pod *corev1.Pod) error {
	var why string
	switch {
	case pod.Spec.ServiceAccountName != "":
		why = "a mirror pod may not reference service accounts"
	case refersToSecrets(&pod.Spec):
		why = "a mirror pod may not reference secrets"
	case slices.ContainsFunc(pod.Spec.Volumes, hasToken):
		why = "a mirror pod may not use ServiceAccountToken volume projections"
	default:
		return nil
	}
	return admission.NewForbidden(a, errors.New(why))
}

func hasToken(v corev1.Volume) bool {
	return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil })
}

func refersToSecrets(spec *corev1.PodSpec) bool {
	found := func(use) error { return errors.New("found") }
	return len(spec.ImagePullSecrets) > 0 || slices.ContainsFunc(spec.Volumes, hasSecret) ||
		inContainers("", spec.InitContainers, found) != nil || inContainers("", spec.Containers, found) != nil ||
		inContainers("", debugging(spec), found) != nil
}

// debugging are the debug containers of a pod.
func debugging(spec *corev1.PodSpec) []corev1.Container {
	var list []corev1.Container
	for _, c := range spec.EphemeralContainers {
		list = append(list, corev1.Container(c.EphemeralContainerCommon))
	}
	return list
}

// hasSecret reports whether a volume reads a secret, of whatever type it is.
func hasSecret(v corev1.Volume) bool {
	switch {
	case v.AzureFile != nil:
		return v.AzureFile.SecretName != ""
	case v.CephFS != nil:
		return v.CephFS.SecretRef != nil
	case v.Cinder != nil:
		return v.Cinder.SecretRef != nil
	case v.CSI != nil:
		return v.CSI.NodePublishSecretRef != nil
	case v.FlexVolume != nil:
		return v.FlexVolume.SecretRef != nil
	case v.ISCSI != nil:
		return v.ISCSI.SecretRef != nil
	case v.Projected != nil:
		return slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.Secret != nil })
	case v.RBD != nil:
		return v.RBD.SecretRef != nil
	case v.ScaleIO != nil:
		return v.ScaleIO.SecretRef != nil
	case v.StorageOS != nil:
		return v.StorageOS.SecretRef != nil
	}
	return v.Secret != nil
}

// enforced is the annotation of an account whose pods may only have its own secrets.
const enforced = "kubernetes.io/enforce-mountable-secrets"

// limited refuses a pod with secrets that its account does not allow.
func limited(a admission.Attributes, account *corev1.ServiceAccount, pod *corev1.Pod) error {
	if on, _ := strconv.ParseBool(account.Annotations[enforced]); !on {
		return nil
	}
	if a.GetOperation() == admission.Update {
		// kube-apiserver answers 500 here: its plugin does not say that this is forbidden.
		return limitDebugging(account, pod)
	}
	if err := limit(account, pod); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// limit returns an error for the first secret of a pod that its account does not have.
// kube-apiserver looks at volumes of type secret only.
func limit(account *corev1.ServiceAccount, pod *corev1.Pod) error {
	check := checker(account)
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil {
			if err := check(use{"volume with", v.Secret.SecretName}); err != nil {
				return err
			}
		}
	}
	if err := inContainers("init container", pod.Spec.InitContainers, check); err != nil {
		return err
	}
	if err := inContainers("container", pod.Spec.Containers, check); err != nil {
		return err
	}
	for i, secret := range pod.Spec.ImagePullSecrets {
		if !slices.Contains(account.ImagePullSecrets, secret) {
			return fmt.Errorf("imagePullSecrets[%d].name=%q is not allowed because service account %s does not reference that imagePullSecret", i, secret.Name, account.Name)
		}
	}
	return nil
}

// limitDebugging is limit for debug containers.
func limitDebugging(account *corev1.ServiceAccount, pod *corev1.Pod) error {
	return inContainers("ephemeral container", debugging(&pod.Spec), checker(account))
}

// A use of a secret by a pod.
type use struct{ what, secret string }

func checker(account *corev1.ServiceAccount) func(use) error {
	return func(u use) error {
		if slices.ContainsFunc(account.Secrets, func(r corev1.ObjectReference) bool { return r.Name == u.secret }) {
			return nil
		}
		return fmt.Errorf("%s secret.secretName=%q is not allowed because service account %s does not reference that secret", u.what, u.secret, account.Name)
	}
}

// inContainers calls do for the secrets in the environment of containers, until it
// returns an error.
func inContainers(kind string, containers []corev1.Container, do func(use) error) error {
	for _, c := range containers {
		for _, env := range c.Env {
			if env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil {
				if err := do(use{fmt.Sprintf("%s %s with envVar %s referencing", kind, c.Name, env.Name), env.ValueFrom.SecretKeyRef.Name}); err != nil {
					return err
				}
			}
		}
		for _, from := range c.EnvFrom {
			if from.SecretRef != nil {
				if err := do(use{fmt.Sprintf("%s %s with envFrom referencing", kind, c.Name), from.SecretRef.Name}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
