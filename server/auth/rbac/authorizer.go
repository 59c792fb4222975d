package rbac

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/tools/cache"
)

// Authorizer allows what roles allow. It has no opinion about anything else.
type Authorizer struct {
	index  *index
	loaded atomic.Bool
	loads  []cache.DoneChecker // the first lists of everything
}

var (
	_ authorizer.Authorizer   = (*Authorizer)(nil)
	_ authorizer.RuleResolver = (*Authorizer)(nil)
)

const (
	// patience is how long a request waits for the informers of roles and bindings
	// after the start of the server.
	patience = 5 * time.Second
	// maxErrors is how many missing roles are named in a reason.
	maxErrors = 32

	notLoaded = "RBAC: roles and bindings have not been loaded yet"
)

// HasSynced reports whether all roles and bindings have been seen. Nothing is
// allowed before.
func (a *Authorizer) HasSynced() bool {
	if a.loaded.Load() {
		return true
	}
	for _, load := range a.loads {
		if !cache.IsDone(load) {
			return false
		}
	}
	a.loaded.Store(true)
	return true
}

// wait waits for HasSynced, for as long as the request and patience last.
func (a *Authorizer) wait(ctx context.Context) bool {
	if a.HasSynced() {
		return true
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for _, load := range a.loads {
		select {
		case <-load.Done():
		case <-ctx.Done():
			return false
		case <-timer.C:
			return false
		}
	}
	return a.HasSynced()
}

// Authorize implements authorizer.Authorizer.
func (a *Authorizer) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	u := attributes.GetUser()
	if u == nil {
		return authorizer.DecisionNoOpinion, "", nil
	}
	if !a.wait(ctx) {
		return authorizer.DecisionNoOpinion, notLoaded, nil
	}
	q, namespace := requestOf(attributes), attributes.GetNamespace()
	x := a.index
	x.mu.RLock()
	defer x.mu.RUnlock()
	g := x.scopes[""].find(u, &q)
	if g == nil && namespace != "" {
		g = x.scopes[namespace].find(u, &q)
	}
	if g != nil {
		return authorizer.DecisionAllow, g.why(), nil
	}
	if err := x.resolutionError(u, namespace); err != nil {
		return authorizer.DecisionNoOpinion, fmt.Sprintf("RBAC: %v", err), nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// ConditionsAwareAuthorize implements authorizer.Authorizer. Roles have no
// conditions.
func (a *Authorizer) ConditionsAwareAuthorize(ctx context.Context, attributes authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, attributes))
}

// EvaluateConditions implements authorizer.Authorizer. Roles have no conditions.
func (a *Authorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// RulesFor implements authorizer.RuleResolver. A role that is bound twice is in
// the answer once.
func (a *Authorizer) RulesFor(ctx context.Context, u user.Info, namespace string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	var resources []authorizer.ResourceRuleInfo
	var others []authorizer.NonResourceRuleInfo
	rules, err := a.rulesOf(ctx, u, namespace)
	for i := range rules {
		r := &rules[i]
		if len(r.Resources) > 0 {
			resources = append(resources, &authorizer.DefaultResourceRuleInfo{
				Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames,
			})
		}
		if len(r.NonResourceURLs) > 0 {
			others = append(others, &authorizer.DefaultNonResourceRuleInfo{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
		}
	}
	return resources, others, false, err
}

// rulesOf returns the rules of a user, in the cluster and in a namespace. The error
// names missing roles; the rules are valid in spite of it.
func (a *Authorizer) rulesOf(ctx context.Context, u user.Info, namespace string) ([]rbacv1.PolicyRule, error) {
	if !a.wait(ctx) {
		return nil, errors.New(notLoaded)
	}
	x := a.index
	x.mu.RLock()
	defer x.mu.RUnlock()
	var rules []rbacv1.PolicyRule
	x.visit(u, namespace, func(r *role) { rules = append(rules, r.source...) })
	return rules, x.resolutionError(u, namespace)
}

// resolutionError names the missing roles that are bound to a user.
func (x *index) resolutionError(u user.Info, namespace string) error {
	if x.missing == 0 {
		return nil
	}
	var errs []error
	more := 0
	x.visit(u, namespace, func(r *role) {
		switch {
		case r.known:
		case len(errs) < maxErrors:
			errs = append(errs, r.err())
		default:
			more++
		}
	})
	if more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", more))
	}
	return utilerrors.NewAggregate(errs)
}

// why returns the reason for what a grant allows.
func (g *grant) why() string {
	if reason := g.reason.Load(); reason != nil {
		return *reason
	}
	b := g.binding
	kind, name := "ClusterRoleBinding", b.name
	if b.namespace != "" {
		kind, name = "RoleBinding", b.name+"/"+b.namespace
	}
	reason := fmt.Sprintf("RBAC: allowed by %s %q of %s %q to %s", kind, name, b.ref.Kind, b.ref.Name, describe(&b.subjects[g.subject], b.namespace))
	g.reason.Store(&reason)
	return reason
}

func describe(s *rbacv1.Subject, namespace string) string {
	name := s.Name
	if s.Kind == rbacv1.ServiceAccountKind {
		if s.Namespace != "" {
			namespace = s.Namespace
		}
		name += "/" + namespace
	}
	return fmt.Sprintf("%s %q", s.Kind, name)
}
