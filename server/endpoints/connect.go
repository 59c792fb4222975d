package endpoints

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/espalier-dev/espalier/server/endpoints/reply"
)

// Connecter is the storage of a subresource that stands for a connection, such as exec.
// No connection is ever opened: Connect says why not. Nil is an empty answer.
type Connecter interface {
	// Verbs are those of the requests that would connect.
	Verbs() []string
	// Commands reports whether the connection runs something. Web sockets begin with GET,
	// so that a get needs the right to create, too.
	Commands() bool
	Connect(ctx context.Context, name string, query url.Values) error
}

// connect is the handler of requests that would open a connection.
func (e *Endpoint) connect(verb string) http.HandlerFunc {
	s, ok := e.Storage.(Connecter)
	if !ok || !slices.Contains(s.Verbs(), verb) {
		return nil
	}
	return func(w http.ResponseWriter, req *http.Request) {
		ctx := req.Context()
		info, _ := request.RequestInfoFrom(ctx) // it led here
		if verb == "get" && s.Commands() {
			if err := e.mayCreate(ctx); err != nil {
				reply.Error(w, req, err)
				return
			}
		}
		if err := s.Connect(request.WithNamespace(ctx, info.Namespace), info.Name, req.URL.Query()); err != nil {
			reply.Error(w, req, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// mayCreate returns an error for a user who may not create what the request gets.
func (e *Endpoint) mayCreate(ctx context.Context) error {
	a, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return err
	}
	create := creation{a}
	decision, reason, err := e.Scope.Authorizer.Authorize(ctx, create)
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return err
	}
	return responsewriters.ForbiddenStatusError(create, reason)
}

// creation are the attributes of a request with another verb.
type creation struct{ authorizer.Attributes }

// GetVerb implements authorizer.Attributes.
func (creation) GetVerb() string { return "create" }
