package tenants

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/endpoints/reply"
)

// AccessVerb is what users of the server must be allowed to do to a tenant's object, to
// enter the tenant.
const AccessVerb = "access"

type guestKey struct{}

// Guest is the user of the server who makes a request to a tenant, nil for others.
func Guest(ctx context.Context) user.Info {
	guest, _ := ctx.Value(guestKey{}).(user.Info)
	return guest
}

// Handler serves what is below /clusters/ and leaves all else to another handler.
func (s *Set) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name, path, raw, ok := split(req.URL.Path, req.URL.RawPath)
		if !ok {
			next.ServeHTTP(w, req)
			return
		}
		if !s.options.Ready() {
			reply.Error(w, req, reply.Unavailable("the server does not know roles and bindings yet, please try again"))
			return
		}
		guest, err := s.admit(req, name)
		if err != nil {
			reply.Error(w, req, err)
			return
		}
		e, err := s.enter(req.Context(), name)
		if err != nil {
			reply.Error(w, req, refusal(req, name, guest, err))
			return
		}
		defer s.leave(e)
		if err := e.serve(w, within(req, guest, path, raw)); err != nil {
			reply.Error(w, req, refusal(req, name, guest, err))
		}
	})
}

// serve has the tenant answer a request. The error is that its etcd does not answer: the request would
// wait for all of its time, and fail.
func (e *entry) serve(w http.ResponseWriter, req *http.Request) error {
	if err := e.use.away(); err != nil {
		return err
	}
	e.requests.Add(1)
	if !strings.Contains(req.URL.RawQuery, "watch") { // watches go on when the etcd is back
		ctx, end := e.use.patient(req.Context())
		defer end()
		req = req.WithContext(ctx)
	}
	e.plane.ServeHTTP(w, req)
	return nil
}

// within is a request as the tenant sees it.
func within(req *http.Request, guest user.Info, path, raw string) *http.Request {
	ctx := req.Context()
	if guest != nil {
		ctx = context.WithValue(ctx, guestKey{}, guest)
	}
	req = req.WithContext(ctx)
	below := *req.URL
	below.Path, below.RawPath = path, raw
	req.URL = &below
	return req
}

// admit says who makes a request, without looking whether there is such a tenant. The
// tenant itself authenticates its service accounts: they are no guests.
func (s *Set) admit(req *http.Request, name string) (guest user.Info, err error) {
	if s.options.Signed(req, Path(name)) {
		return nil, nil
	}
	response, ok, err := s.options.Users.AuthenticateRequest(req)
	if err != nil || !ok {
		return nil, apierrors.NewUnauthorized("Unauthorized")
	}
	decision, _, err := s.options.Authorizer.Authorize(req.Context(), authorizer.AttributesRecord{
		User: response.User, Verb: AccessVerb, APIGroup: Resource.Group, APIVersion: Resource.Version,
		Resource: Resource.Resource, Name: name, ResourceRequest: true, Path: Path(name),
	})
	if err != nil || decision != authorizer.DecisionAllow {
		refusal := apierrors.NewForbidden(Resource.GroupResource(), name, errNoAccess(response.User.GetName()))
		s.options.Denied(req, response.User, name, refusal)
		return nil, refusal
	}
	return response.User, nil
}

// errNoAccess is why a user is refused.
type errNoAccess string

// Error implements error.
func (e errNoAccess) Error() string {
	return `User "` + string(e) + `" cannot access this tenant; a role of the server must allow the verb "access" for tenants.espalier.dev`
}

// refusal is the answer to a request whose tenant cannot be entered.
func refusal(req *http.Request, name string, guest user.Info, err error) error {
	switch {
	case isGone(err) && guest == nil:
		return apierrors.NewUnauthorized("Unauthorized") // its service accounts are gone with it
	case isGone(err):
		return apierrors.NewNotFound(Resource.GroupResource(), name)
	case errors.Is(err, errImporting):
		return reply.Unavailable(err.Error())
	case req.Context().Err() != nil:
		return apierrors.NewTimeoutError("the tenant was not ready in the time of the request", 1)
	}
	var again againError
	if errors.As(err, &again) {
		unavailable := reply.Unavailable(err.Error())
		unavailable.ErrStatus.Details.RetryAfterSeconds = int32(again.after/time.Second) + 1
		return unavailable
	}
	if moving, ok := errors.AsType[*movingError](err); ok {
		return reply.Unavailable(moving.Error())
	}
	if away, ok := errors.AsType[*AwayError](err); ok {
		return reply.Unavailable(fmt.Sprintf("the etcd %q, which has the tenant, does not answer", away.Etcd))
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && apierrors.IsServiceUnavailable(status) {
		return status
	}
	klog.ErrorS(err, "Starting a tenant failed", "tenant", name)
	return reply.Unavailable("the tenant could not be started; the log of the server says why")
}
