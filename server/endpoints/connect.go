package endpoints

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/espalier-dev/espalier/server/endpoints/reply"
)

// Connecter is the storage of a subresource that stands for a connection, such as exec.
// No connection is ever opened: Connect says why not. Nil is an empty answer.
type Connecter interface {
	// Verbs are those of the requests that would connect.
	Verbs() []string
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
		if err := s.Connect(request.WithNamespace(ctx, info.Namespace), info.Name, req.URL.Query()); err != nil {
			reply.Error(w, req, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}
