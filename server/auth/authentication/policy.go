package authentication

import (
	"context"
	"slices"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// open are the paths that need no identity: load balancers and supervisors ask
// them. What is below them, such as /readyz/etcd, tells more and is not open.
var open = []string{"/healthz", "/livez", "/readyz"}

// anonymousForHealth authenticates requests without credentials, for the health
// paths alone.
func anonymousForHealth() authenticator.Request { return anonymousFor(open...) }

func anonymousFor(paths ...string) authenticator.Request {
	conditions := make([]apiserver.AnonymousAuthCondition, len(paths))
	for i, path := range paths {
		conditions[i].Path = path
	}
	return anonymous.NewAuthenticator(conditions)
}

// IsHealth reports whether a path is one of those that everybody may ask.
func IsHealth(path string) bool { return slices.Contains(open, path) }

// Health lets everybody to the health paths, and has no opinion about the rest.
func Health() authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if !a.IsResourceRequest() && (a.GetVerb() == "get" || a.GetVerb() == "head") && IsHealth(a.GetPath()) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
}
