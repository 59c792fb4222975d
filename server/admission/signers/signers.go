package signers

import (
	"context"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/klog/v2"
)

// Allowed reports whether a user has a verb on a signer, or on all signers of its domain.
func Allowed(ctx context.Context, authz authorizer.UnconditionalAuthorizer, u user.Info, verb, signer string) bool {
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		decision, _, err := authz.Authorize(ctx, authorizer.AttributesRecord{
			User: u, Verb: verb, Name: name, APIGroup: certificatesv1.GroupName, APIVersion: "*", Resource: "signers", ResourceRequest: true,
		})
		if err != nil {
			klog.ErrorS(err, "Failed to authorize a user for a signer", "verb", verb, "signer", name)
		}
		if decision == authorizer.DecisionAllow {
			return true
		}
	}
	return false
}
