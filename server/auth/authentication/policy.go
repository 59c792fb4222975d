package authentication

import (
	"context"
	"slices"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// open are the paths that need no authentication: load balancers and supervisors
// request them. Paths below them, such as /readyz/etcd, show more and need it.
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

// IsHealth reports whether a path is a health path, which all clients may request.
func IsHealth(path string) bool { return slices.Contains(open, path) }

// Health allows all users the health paths, and has no opinion about the rest.
func Health() authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if !a.IsResourceRequest() && (a.GetVerb() == "get" || a.GetVerb() == "head") && IsHealth(a.GetPath()) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
}
