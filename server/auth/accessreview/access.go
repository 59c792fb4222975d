package accessreview

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// access answers reviews of access.
type access struct {
	authz authorizer.UnconditionalAuthorizer
}

func (a access) subject(ctx context.Context, r *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error) {
	r.Status = a.ask(ctx, attributesOf(userOf(&r.Spec), r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes))
	return r, nil
}

func (a access) local(ctx context.Context, r *authorizationv1.LocalSubjectAccessReview) (*authorizationv1.LocalSubjectAccessReview, error) {
	r.Status = a.ask(ctx, attributesOf(userOf(&r.Spec), r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes))
	return r, nil
}

func (a access) self(ctx context.Context, r *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error) {
	u, err := askedBy(ctx)
	if err != nil {
		return nil, err
	}
	r.Status = a.ask(ctx, attributesOf(u, r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes))
	return r, nil
}

func (a access) ask(ctx context.Context, attributes authorizer.AttributesRecord) authorizationv1.SubjectAccessReviewStatus {
	decision, reason, err := a.authz.Authorize(ctx, attributes)
	return authorizationv1.SubjectAccessReviewStatus{
		Allowed:         decision == authorizer.DecisionAllow,
		Denied:          decision == authorizer.DecisionDeny,
		Reason:          reason,
		EvaluationError: evaluationError(err, &attributes),
	}
}

// askedBy returns the user of a request.
func askedBy(ctx context.Context) (user.Info, error) {
	u, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewBadRequest("no user present on request")
	}
	return u, nil
}

func userOf(spec *authorizationv1.SubjectAccessReviewSpec) user.Info {
	u := &user.DefaultInfo{Name: spec.User, Groups: spec.Groups, UID: spec.UID}
	if spec.Extra != nil {
		u.Extra = make(map[string][]string, len(spec.Extra))
		for key, values := range spec.Extra {
			u.Extra[key] = values
		}
	}
	return u
}

// metaOf leaves out of an object's metadata what the server adds to it.
func metaOf(m metav1.ObjectMeta) metav1.ObjectMeta {
	m.ManagedFields = nil
	return m
}

func checkSubject(_ context.Context, r *authorizationv1.SubjectAccessReview) error {
	errs := checkSpec(&r.Spec)
	if !equality.Semantic.DeepEqual(metav1.ObjectMeta{}, metaOf(r.ObjectMeta)) {
		errs = append(errs, field.Invalid(field.NewPath("metadata"), r.ObjectMeta, "must be empty"))
	}
	return invalid(errs)
}

func checkSelf(ctx context.Context, r *authorizationv1.SelfSubjectAccessReview) error {
	errs := checkAttributes(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
	errs = append(errs, checkSelectors(r.Spec.ResourceAttributes)...)
	if !equality.Semantic.DeepEqual(metav1.ObjectMeta{}, metaOf(r.ObjectMeta)) {
		errs = append(errs, field.Invalid(field.NewPath("metadata"), r.ObjectMeta, "must be empty"))
	}
	if len(errs) > 0 {
		return invalid(errs)
	}
	_, err := askedBy(ctx)
	return err
}

func checkLocal(ctx context.Context, r *authorizationv1.LocalSubjectAccessReview) error {
	errs := checkSpec(&r.Spec)
	m := metaOf(r.ObjectMeta)
	m.Namespace = ""
	if !equality.Semantic.DeepEqual(metav1.ObjectMeta{}, m) {
		errs = append(errs, field.Invalid(field.NewPath("metadata"), r.ObjectMeta, "must be empty except for namespace"))
	}
	if a := r.Spec.ResourceAttributes; a != nil && a.Namespace != r.Namespace {
		errs = append(errs, field.Invalid(field.NewPath("spec.resourceAttributes.namespace"), a.Namespace, "must match metadata.namespace"))
	}
	if r.Spec.NonResourceAttributes != nil {
		errs = append(errs, field.Invalid(field.NewPath("spec.nonResourceAttributes"), untagged(r.Spec.NonResourceAttributes), "disallowed on this kind of request"))
	}
	if len(errs) > 0 {
		return invalid(errs)
	}
	switch namespace := genericapirequest.NamespaceValue(ctx); namespace {
	case "":
		return apierrors.NewBadRequest(fmt.Sprintf("namespace is required on this type: %v", namespace))
	case r.Namespace:
		return nil
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("spec.resourceAttributes.namespace must match namespace: %v", namespace))
	}
}

// invalid returns nil if there are no errors. kube-apiserver names no kind here,
// and neither do we.
func invalid(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: authorizationv1.GroupName}, "", errs)
}

func checkSpec(spec *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	errs := checkAttributes(spec.ResourceAttributes, spec.NonResourceAttributes)
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "user"), spec.User, "at least one of user or group must be specified"))
	}
	return append(errs, checkSelectors(spec.ResourceAttributes)...)
}

func checkAttributes(resource *authorizationv1.ResourceAttributes, other *authorizationv1.NonResourceAttributes) field.ErrorList {
	if (resource == nil) != (other == nil) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec"), untagged(other), "exactly one of nonResourceAttributes or resourceAttributes must be specified")}
}

// untagged has no names for JSON, so that messages show attributes as kube-apiserver does.
func untagged(a *authorizationv1.NonResourceAttributes) any {
	return (*struct{ Path, Verb string })(a)
}

func checkSelectors(a *authorizationv1.ResourceAttributes) field.ErrorList {
	if a == nil {
		return nil
	}
	var errs field.ErrorList
	at := field.NewPath("spec.resourceAttributes")
	if s := a.FieldSelector; s != nil {
		path := at.Child("fieldSelector")
		errs = append(errs, checkEither(s.RawSelector, len(s.Requirements), path)...)
		// Unknown operators are ignored, which only widens the review.
		options := metavalidation.FieldSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}
		for i, requirement := range s.Requirements {
			errs = append(errs, metavalidation.ValidateFieldSelectorRequirement(requirement, options, path.Child("requirements").Index(i))...)
		}
	}
	if s := a.LabelSelector; s != nil {
		path := at.Child("labelSelector")
		errs = append(errs, checkEither(s.RawSelector, len(s.Requirements), path)...)
		options := metavalidation.LabelSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}
		for i, requirement := range s.Requirements {
			errs = append(errs, metavalidation.ValidateLabelSelectorRequirement(requirement, options, path.Child("requirements").Index(i))...)
		}
	}
	return errs
}

// checkEither asks for a selector as text or as requirements.
func checkEither(raw string, requirements int, path *field.Path) field.ErrorList {
	switch {
	case raw != "" && requirements > 0:
		return field.ErrorList{field.Invalid(path.Child("rawSelector"), raw, "may not specified at the same time as requirements")}
	case raw == "" && requirements == 0:
		return field.ErrorList{field.Required(path.Child("requirements"), fmt.Sprintf("when %s is specified, requirements or rawSelector is required", path))}
	}
	return nil
}
