package accessreview

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// ruleBook answers what the user of a request may do.
type ruleBook struct {
	rules authorizer.RuleResolver
}

func checkRules(ctx context.Context, r *authorizationv1.SelfSubjectRulesReview) error {
	if _, err := askedBy(ctx); err != nil {
		return err
	}
	if r.Spec.Namespace == "" {
		return apierrors.NewBadRequest("no namespace on request")
	}
	return nil
}

func (b ruleBook) answer(ctx context.Context, r *authorizationv1.SelfSubjectRulesReview) (*authorizationv1.SelfSubjectRulesReview, error) {
	u, err := askedBy(ctx)
	if err != nil {
		return nil, err
	}
	resources, others, incomplete, err := b.rules.RulesFor(ctx, u, r.Spec.Namespace)
	answer := &authorizationv1.SelfSubjectRulesReview{Status: authorizationv1.SubjectRulesReviewStatus{
		ResourceRules:    make([]authorizationv1.ResourceRule, 0, len(resources)),
		NonResourceRules: make([]authorizationv1.NonResourceRule, 0, len(others)),
		Incomplete:       incomplete,
	}}
	for _, rule := range resources {
		answer.Status.ResourceRules = append(answer.Status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: rule.GetVerbs(), APIGroups: rule.GetAPIGroups(), Resources: rule.GetResources(), ResourceNames: rule.GetResourceNames(),
		})
	}
	for _, rule := range others {
		answer.Status.NonResourceRules = append(answer.Status.NonResourceRules, authorizationv1.NonResourceRule{
			Verbs: rule.GetVerbs(), NonResourceURLs: rule.GetNonResourceURLs(),
		})
	}
	if err != nil {
		answer.Status.EvaluationError = err.Error()
	}
	return answer, nil
}
