package token

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	authenticationjwt "k8s.io/apiserver/pkg/authentication/token/jwt"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"
)

const (
	minSeconds     = 10 * 60
	maxSeconds     = 1 << 32
	defaultSeconds = 60 * 60
)

var kind = authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")

// requests answer token requests: the subresource token of serviceaccounts.
type requests struct {
	issuer   *Issuer
	accounts rest.Getter
}

var (
	_ rest.NamedCreater             = (*requests)(nil)
	_ rest.GroupVersionKindProvider = (*requests)(nil)
)

// Storage is the subresource token of serviceaccounts, which are in the store.
func (i *Issuer) Storage(accounts *genericregistry.Store) rest.Storage {
	return &requests{issuer: i, accounts: accounts}
}

// New implements rest.Storage.
func (r *requests) New() runtime.Object { return &authenticationv1.TokenRequest{} }

// Destroy implements rest.Storage. The store belongs to the resource.
func (r *requests) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (r *requests) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind { return kind }

// Create implements rest.NamedCreater: it issues a token, and stores nothing.
func (r *requests) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	in, ok := obj.(*authenticationv1.TokenRequest)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a TokenRequest: %T", obj))
	}
	out := in.DeepCopy()
	namespace, ok := request.NamespaceFrom(ctx)
	if !ok {
		return nil, apierrors.NewBadRequest("namespace is required")
	}
	if errs := sameName(out, namespace, name); len(errs) > 0 {
		return nil, apierrors.NewInvalid(kind.GroupKind(), name, errs)
	}
	account, err := r.account(ctx, name)
	if err != nil {
		return nil, err
	}
	r.complete(out, account)
	if errs := valid(&out.Spec); len(errs) > 0 {
		return nil, apierrors.NewInvalid(kind.GroupKind(), "", errs)
	}
	if validate != nil {
		if err := validate(ctx, out.DeepCopy()); err != nil {
			return nil, err
		}
	}
	secret, err := r.secret(ctx, namespace, out.Spec.BoundObjectRef)
	if err != nil {
		return nil, err
	}
	return out, r.issue(ctx, out, account, secret)
}

func (r *requests) account(ctx context.Context, name string) (*corev1.ServiceAccount, error) {
	obj, err := r.accounts.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	account, ok := obj.(*corev1.ServiceAccount)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("the service account %s is stored as a %T", name, obj))
	}
	return account, nil
}

// sameName rejects a body with another service account than the URL.
func sameName(in *authenticationv1.TokenRequest, namespace, name string) (errs field.ErrorList) {
	metadata := field.NewPath("metadata")
	if in.Name != "" && in.Name != name {
		return field.ErrorList{field.Invalid(metadata.Child("name"), in.Name, "must match the service account name if specified")}
	}
	if in.Namespace != "" && in.Namespace != namespace {
		return field.ErrorList{field.Invalid(metadata.Child("namespace"), in.Namespace, "must match the service account namespace if specified")}
	}
	return nil
}

// complete sets defaults in the request, and drops fields that it may not set.
func (r *requests) complete(out *authenticationv1.TokenRequest, account *corev1.ServiceAccount) {
	if len(out.Spec.Audiences) == 0 {
		out.Spec.Audiences = r.issuer.options.Audiences
	}
	if out.Spec.ExpirationSeconds == nil {
		out.Spec.ExpirationSeconds = ptr.To[int64](defaultSeconds)
	}
	out.Name, out.Namespace = account.Name, account.Namespace
	out.CreationTimestamp = metav1.NewTime(r.issuer.now())
	out.Status = authenticationv1.TokenRequestStatus{}
}

func valid(spec *authenticationv1.TokenRequestSpec) (errs field.ErrorList) {
	path := field.NewPath("spec")
	seconds := *spec.ExpirationSeconds
	if seconds < minSeconds {
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), seconds, "may not specify a duration less than 10 minutes"))
	}
	if seconds > maxSeconds {
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), seconds, "may not specify a duration larger than 2^32 seconds"))
	}
	if len(spec.Attestations) > 0 {
		errs = append(errs, field.Invalid(path.Child("attestations"), spec.Attestations, "attestations may only be specified with a webhook bound object reference"))
	}
	return errs
}

// secret returns the secret that the token is bound to, or nil if there is none.
func (r *requests) secret(ctx context.Context, namespace string, ref *authenticationv1.BoundObjectReference) (*corev1.Secret, error) {
	if ref == nil {
		return nil, nil
	}
	of := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	switch of.GroupKind() {
	case schema.GroupKind{Kind: "Secret"}:
	case schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Kind: "Node"}:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot bind token to object of type %s: this server has no pods and no nodes; bind it to a Secret, or to nothing", of))
	default:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot bind token to object of type %s", of))
	}
	secret, err := r.issuer.options.Live.Secret(ctx, namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	if ref.UID != "" && secret.UID != ref.UID {
		return nil, apierrors.NewConflict(schema.GroupResource{Group: of.Group, Resource: of.Kind}, ref.Name,
			fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
	}
	return secret, nil
}

// issue fills in the status.
func (r *requests) issue(ctx context.Context, out *authenticationv1.TokenRequest, account *corev1.ServiceAccount, secret *corev1.Secret) error {
	limit := int64(r.issuer.options.MaxExpiration / time.Second)
	if seconds := *out.Spec.ExpirationSeconds; limit > 0 && seconds > limit {
		warning.AddWarning(ctx, "", fmt.Sprintf("requested expiration of %d seconds shortened to %d seconds", seconds, limit))
		out.Spec.ExpirationSeconds = &limit
	}
	issued, err := r.issuer.Issue(Order{
		Account: account, Secret: secret, Audiences: out.Spec.Audiences,
		Lifetime: time.Duration(*out.Spec.ExpirationSeconds) * time.Second,
	})
	if errors.Is(err, errTooLong) {
		return apierrors.NewBadRequest(fmt.Sprintf("failed to generate token: %v; ask for fewer audiences", err))
	}
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("failed to generate token: %w", err))
	}
	out.Status = authenticationv1.TokenRequestStatus{Token: issued.Token, ExpirationTimestamp: metav1.NewTime(issued.Expires)}
	audit.AddAuditAnnotation(ctx, serviceaccount.IssuedCredentialIDAuditAnnotationKey, authenticationjwt.CredentialIDForJTI(issued.ID))
	return nil
}
