package rules

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
)

// ServiceAccount are the rules of service accounts.
var ServiceAccount = Rules{
	GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), Namespaced: true,
	Name:    validation.ValidateServiceAccountName,
	Prepare: func(obj, _ runtime.Object) { keepSecretNames(obj.(*corev1.ServiceAccount)) },
	Warn:    warnOfServiceAccount,
}

// keepSecretNames drops everything about secrets but their names: they are in
// the namespace of the account.
func keepSecretNames(o *corev1.ServiceAccount) {
	for i, ref := range o.Secrets {
		o.Secrets[i] = corev1.ObjectReference{Name: ref.Name}
	}
}

// mountableSecrets is an annotation that Kubernetes advises against.
const mountableSecrets = "kubernetes.io/enforce-mountable-secrets"

func warnOfServiceAccount(obj runtime.Object) []string {
	if _, ok := obj.(*corev1.ServiceAccount).Annotations[mountableSecrets]; !ok {
		return nil
	}
	return []string{"metadata.annotations[" + mountableSecrets + "]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"}
}
