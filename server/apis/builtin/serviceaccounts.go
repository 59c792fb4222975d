package builtin

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier/crd/rules"
)

// serviceAccounts are the service accounts. Package token, which signs tokens, adds
// their subresource token.
func serviceAccounts() Resource {
	return Resource{
		Version: "v1", Plural: "serviceaccounts", Singular: "serviceaccount", Kind: "ServiceAccount", Namespaced: true, ShortNames: []string{"sa"},
		New:      empty[corev1.ServiceAccount],
		NewList:  empty[corev1.ServiceAccountList],
		Strategy: Ruled(&rules.ServiceAccount, Strategy{Unconditional: true}),
		Wrap:     returnDeleted,
	}
}
