package certificates

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/crd/rules"
	"github.com/espalier-dev/espalier/server/apis/builtin"
)

var resource = certificatesv1.Resource("certificatesigningrequests")

// Resource is the resource certificatesigningrequests. Besides the right to write the
// subresource, a user needs the verb "approve" on the signer to approve a request, and
// the verb "sign" to sign it.
func Resource(authz authorizer.UnconditionalAuthorizer) builtin.Resource {
	r, approval, status := builtin.CertificateSigningRequests()
	g := guard{authz}
	r.Wrap = func(s *genericregistry.Store) rest.Storage { return &requests{s} }
	r.Subresources = map[string]func(*genericregistry.Store) rest.Storage{
		"approval": guarded(builtin.Part(approval), g.checkApproval),
		"status":   guarded(builtin.Part(status), g.checkSignature),
	}
	return r
}

// requests is the store. It rejects requests that could never be signed.
type requests struct{ *genericregistry.Store }

// Create implements rest.Creater.
func (s *requests) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return s.Store.Create(ctx, obj, fit(validate), options)
}

// Update implements rest.Updater. Apply creates through it.
func (s *requests) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, force bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return s.Store.Update(ctx, name, info, fit(create), update, force, options)
}

// fit adds the check of the subject to the validation of a new object, which looks at
// it after mutating admission.
func fit(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if err := checkSubject(obj.(*certificatesv1.CertificateSigningRequest)); err != nil {
			return err
		}
		if validate == nil {
			return nil
		}
		return validate(ctx, obj)
	}
}

// checkSubject refuses requests for the group that may do everything.
func checkSubject(o *certificatesv1.CertificateSigningRequest) error {
	if o.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return nil
	}
	parsed, err := rules.ParseCSR(o.Spec.Request)
	if err != nil {
		return forbidden(o.Name, fmt.Errorf("failed to parse CSR: %w", err))
	}
	if slices.Contains(parsed.Subject.Organization, user.SystemPrivilegedGroup) {
		return forbidden(o.Name, errMasters)
	}
	return nil
}

func forbidden(name string, err error) error { return apierrors.NewForbidden(resource, name, err) }

// part is what a subresource of the objects themselves implements.
type part interface {
	rest.Storage
	rest.Patcher
	rest.ResetFieldsStrategy
}

// checked is a subresource with a check before it is written. It is asked about the
// object as it would be stored.
type checked struct {
	part
	check func(ctx context.Context, o, old *certificatesv1.CertificateSigningRequest) error
}

func guarded(of func(*genericregistry.Store) rest.Storage, check func(ctx context.Context, o, old *certificatesv1.CertificateSigningRequest) error) func(*genericregistry.Store) rest.Storage {
	return func(s *genericregistry.Store) rest.Storage { return &checked{of(s).(part), check} }
}

// Update implements rest.Updater. It is the way of patches and of apply, too.
func (c *checked) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, force bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return c.part.Update(ctx, name, info, create, func(ctx context.Context, obj, old runtime.Object) error {
		if err := c.check(ctx, obj.(*certificatesv1.CertificateSigningRequest), old.(*certificatesv1.CertificateSigningRequest)); err != nil {
			return err
		}
		if update == nil {
			return nil
		}
		return update(ctx, obj, old)
	}, force, options)
}

// guard authorizes the verbs approve and sign on signers.
type guard struct {
	authz authorizer.UnconditionalAuthorizer
}

func (g guard) checkApproval(ctx context.Context, _, old *certificatesv1.CertificateSigningRequest) error {
	if !g.may(ctx, "approve", old.Spec.SignerName) {
		return forbidden(old.Name, fmt.Errorf("user not permitted to approve requests with signerName %q", old.Spec.SignerName))
	}
	return nil
}

// checkSignature is about changes of the certificate and of conditions: annotations can
// be written without the right to sign.
func (g guard) checkSignature(ctx context.Context, o, old *certificatesv1.CertificateSigningRequest) error {
	if bytes.Equal(o.Status.Certificate, old.Status.Certificate) && equality.Semantic.DeepEqual(o.Status.Conditions, old.Status.Conditions) {
		return nil
	}
	if !g.may(ctx, "sign", old.Spec.SignerName) {
		return forbidden(old.Name, fmt.Errorf("user not permitted to sign requests with signerName %q", old.Spec.SignerName))
	}
	return nil
}

// may asks for the signer, and for all signers of its domain.
func (g guard) may(ctx context.Context, verb, signer string) bool {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return false
	}
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		decision, _, err := g.authz.Authorize(ctx, authorizer.AttributesRecord{
			User: u, Verb: verb, Name: name, APIGroup: certificatesv1.GroupName, APIVersion: "*", Resource: "signers", ResourceRequest: true,
		})
		if err != nil {
			klog.ErrorS(err, "Failed to authorize a change of a CertificateSigningRequest", "verb", verb, "signer", name)
		}
		if decision == authorizer.DecisionAllow {
			return true
		}
	}
	return false
}
