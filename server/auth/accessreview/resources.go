package accessreview

import (
	"context"
	"fmt"
	"strings"

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
	local := resource(authorizationv1.GroupName, "LocalSubjectAccessReview", checkLocal, access.local)
	local.Namespaced = true
	return []builtin.Resource{
		resource(authorizationv1.GroupName, "SubjectAccessReview", checkSubject, access.subject),
		resource(authorizationv1.GroupName, "SelfSubjectAccessReview", checkSelf, access.self),
		local,
		resource(authorizationv1.GroupName, "SelfSubjectRulesReview", checkRules, ruleBook{rules: rules}.answer),
		resource(authenticationv1.GroupName, "TokenReview", checkToken, tokens{authn: authn}.answer),
		resource(authenticationv1.GroupName, "SelfSubjectReview", checkWhoAmI, whoAmI),
	}
}

// object is a pointer to a review.
type object[T any] interface {
	*T
	runtime.Object
}

func resource[T any, P object[T]](group, kind string, check func(context.Context, P) error, answer func(context.Context, P) (P, error)) builtin.Resource {
	r, singular := &review[T, P]{kind, check, answer}, strings.ToLower(kind)
	return builtin.Resource{Group: group, Version: "v1", Plural: singular + "s", Singular: singular, Kind: kind, New: r.New, Virtual: r}
}

// review is a resource whose objects are answered and not stored.
type review[T any, P object[T]] struct {
	kind string
	// check says what is wrong with a question.
	check func(ctx context.Context, question P) error
	// answer may change the question and return it.
	answer func(ctx context.Context, question P) (P, error)
}

var _ rest.Creater = (*review[authenticationv1.TokenReview, *authenticationv1.TokenReview])(nil)

// New implements rest.Storage.
func (r *review[T, P]) New() runtime.Object { return P(new(T)) }

// Destroy implements rest.Storage. There is nothing to destroy.
func (r *review[T, P]) Destroy() {}

// Create implements rest.Creater.
func (r *review[T, P]) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	question, ok := obj.(P)
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
