package customresourcedefinition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/espalier-dev/espalier/internal/object"
)

const (
	// maxPlans is how many plans a server makes at a time: one of a million objects keeps two cores
	// busy for a minute. Checks of changes do not wait for plans.
	maxPlans = 2
	// planWait is how long a plan waits for others to end, and planRetry the seconds after which a
	// client tries again: clients of Kubernetes do so by themselves.
	planWait, planRetry = 5 * time.Second, 5
)

// begin waits until there is room for a plan, and returns the function that makes room for the next.
func (p *planner) begin(ctx context.Context) (end func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, planWait)
	defer cancel()
	select {
	case p.plans <- struct{}{}:
		return func() { <-p.plans }, nil
	case <-ctx.Done():
		return nil, apierrors.NewTooManyRequests("other plans are being made; try again", planRetry)
	}
}

// mayPlan returns why the user of a request, who may create plans, may not plan a change. A user who
// writes the new schema can have messages repeat any value, and so needs the right to list the
// objects. A plan calls the webhook of the new CRD and sends it the objects: that is for users who
// may make it the webhook of the CRD.
func (s planStorage) mayPlan(ctx context.Context, old, now *object.Object) error {
	resource, _ := resourceOf(old.GetName())
	err := s.allowed(ctx, authorizer.AttributesRecord{Verb: "list", APIGroup: resource.Group, APIVersion: "*", Resource: resource.Resource},
		"a plan shows values of objects, and needs the right to list "+resource.String()+" in all namespaces")
	if err != nil || !callsOther(old, now) {
		return err
	}
	return s.allowed(ctx, authorizer.AttributesRecord{Verb: "update", APIGroup: groupResource.Group, APIVersion: stable.Version, Resource: groupResource.Resource, Name: old.GetName()},
		"the plan would send objects to another conversion webhook, and needs the right to update the CRD")
}

func (s planStorage) allowed(ctx context.Context, a authorizer.AttributesRecord, why string) error {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewInternalError(errors.New("the request has no user"))
	}
	a.User, a.ResourceRequest = u, true
	decision, _, err := s.authorizer.Authorize(ctx, a)
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(err)
	}
	return apierrors.NewForbidden(groupResource, a.Name, fmt.Errorf("user %q: %s", u.GetName(), why))
}

// callsOther reports whether the new CRD converts by a webhook that the old one does not have.
func callsOther(old, now *object.Object) bool {
	conversion := now.Lookup("spec", "conversion")
	return string(now.Lookup("spec", "conversion", "strategy")) == `"Webhook"` && !bytes.Equal(conversion, old.Lookup("spec", "conversion"))
}
