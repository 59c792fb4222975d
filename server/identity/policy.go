package identity

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// open are the paths that need no identity: load balancers and supervisors ask
// them. What is below them, such as /readyz/etcd, tells more and is not open.
var open = []string{"/healthz", "/livez", "/readyz"}

// Anonymous authenticates requests without a certificate, for the health paths
// alone.
func Anonymous() authenticator.Request {
	conditions := make([]apiserver.AnonymousAuthCondition, len(open))
	for i, path := range open {
		conditions[i].Path = path
	}
	return anonymous.NewAuthenticator(conditions)
}

// Only lets in the members of one group, and everybody to the health paths.
func Only(group string) authorizer.Authorizer {
	reason := fmt.Sprintf("only members of the group %q are let in", group)
	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if who := a.GetUser(); who != nil && slices.Contains(who.GetGroups(), group) {
			return authorizer.DecisionAllow, "", nil
		}
		if !a.IsResourceRequest() && a.IsReadOnly() && slices.Contains(open, a.GetPath()) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, reason, nil
	})
}
