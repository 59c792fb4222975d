package builtin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
)

// serviceAccounts are the service accounts. Package token, which signs tokens, adds
// their subresource token.
func serviceAccounts() Resource {
	return Resource{
		Version: "v1", Plural: "serviceaccounts", Singular: "serviceaccount", Kind: "ServiceAccount", Namespaced: true, ShortNames: []string{"sa"},
		New:     empty[corev1.ServiceAccount],
		NewList: empty[corev1.ServiceAccountList],
		Strategy: Strategy{
			Name:          apivalidation.NameIsDNSSubdomain,
			Create:        func(_ context.Context, obj runtime.Object) { keepSecretNames(obj.(*corev1.ServiceAccount)) },
			Update:        func(_ context.Context, obj, _ runtime.Object) { keepSecretNames(obj.(*corev1.ServiceAccount)) },
			Warn:          warnOfServiceAccount,
			Unconditional: true, QualifiedFinalizers: true, GenerateNameOnUpdate: true,
		},
		Wrap: returnDeleted,
	}
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

func warnOfServiceAccount(_ context.Context, obj runtime.Object) []string {
	if _, ok := obj.(*corev1.ServiceAccount).Annotations[mountableSecrets]; !ok {
		return nil
	}
	return []string{"metadata.annotations[" + mountableSecrets + "]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"}
}
