package accessreview

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/espalier-dev/espalier/server/apis/builtin"
)

// Resources returns the reviews of authorization.k8s.io and
// authentication.k8s.io. authn is the server's complete authenticator; nil means that
// no token authenticates.
func Resources(authz authorizer.UnconditionalAuthorizer, rules authorizer.RuleResolver, authn authenticator.Request) []builtin.Resource {
	access := access{authz: authz}
	return []builtin.Resource{
		resource(review[*authorizationv1.SubjectAccessReview]{
			kind: "SubjectAccessReview", singular: "subjectaccessreview",
			empty:  func() *authorizationv1.SubjectAccessReview { return &authorizationv1.SubjectAccessReview{} },
			check:  checkSubject,
			answer: access.subject,
		}, authorizationv1.GroupName),
		resource(review[*authorizationv1.SelfSubjectAccessReview]{
			kind: "SelfSubjectAccessReview", singular: "selfsubjectaccessreview",
			empty:  func() *authorizationv1.SelfSubjectAccessReview { return &authorizationv1.SelfSubjectAccessReview{} },
			check:  checkSelf,
			answer: access.self,
		}, authorizationv1.GroupName),
		resource(review[*authorizationv1.LocalSubjectAccessReview]{
			kind: "LocalSubjectAccessReview", singular: "localsubjectaccessreview", namespaced: true,
			empty:  func() *authorizationv1.LocalSubjectAccessReview { return &authorizationv1.LocalSubjectAccessReview{} },
			check:  checkLocal,
			answer: access.local,
		}, authorizationv1.GroupName),
		resource(review[*authorizationv1.SelfSubjectRulesReview]{
			kind: "SelfSubjectRulesReview", singular: "selfsubjectrulesreview",
			empty:  func() *authorizationv1.SelfSubjectRulesReview { return &authorizationv1.SelfSubjectRulesReview{} },
			check:  checkRules,
			answer: ruleBook{rules: rules}.answer,
		}, authorizationv1.GroupName),
		resource(review[*authenticationv1.TokenReview]{
			kind: "TokenReview", singular: "tokenreview",
			empty:  func() *authenticationv1.TokenReview { return &authenticationv1.TokenReview{} },
			check:  checkToken,
			answer: tokens{authn: authn}.answer,
		}, authenticationv1.GroupName),
		resource(review[*authenticationv1.SelfSubjectReview]{
			kind: "SelfSubjectReview", singular: "selfsubjectreview",
			empty:  func() *authenticationv1.SelfSubjectReview { return &authenticationv1.SelfSubjectReview{} },
			check:  checkWhoAmI,
			answer: whoAmI,
		}, authenticationv1.GroupName),
	}
}

func resource[T runtime.Object](r review[T], group string) builtin.Resource {
	return builtin.Resource{
		Group: group, Version: "v1",
		Plural: r.singular + "s", Singular: r.singular, Kind: r.kind,
		Namespaced: r.namespaced,
		New:        r.New,
		Virtual:    &r,
	}
}

// review is a resource whose objects are answered and not stored.
type review[T runtime.Object] struct {
	kind, singular string
	namespaced     bool
	empty          func() T
	// check says what is wrong with a question.
	check func(ctx context.Context, question T) error
	// answer may change the question and return it.
	answer func(ctx context.Context, question T) (T, error)
}

var (
	_ rest.Storage              = (*review[*authenticationv1.TokenReview])(nil)
	_ rest.Creater              = (*review[*authenticationv1.TokenReview])(nil)
	_ rest.Scoper               = (*review[*authenticationv1.TokenReview])(nil)
	_ rest.SingularNameProvider = (*review[*authenticationv1.TokenReview])(nil)
)

// New implements rest.Storage.
func (r *review[T]) New() runtime.Object { return r.empty() }

// Destroy implements rest.Storage. There is nothing to destroy.
func (r *review[T]) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (r *review[T]) NamespaceScoped() bool { return r.namespaced }

// GetSingularName implements rest.SingularNameProvider.
func (r *review[T]) GetSingularName() string { return r.singular }

// Create implements rest.Creater.
func (r *review[T]) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	question, ok := obj.(T)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a %s: %#v", r.kind, obj))
	}
	if err := r.check(ctx, question); err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, question.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	answer, err := r.answer(ctx, question)
	if err != nil {
		return nil, err
	}
	return answer, nil
}
