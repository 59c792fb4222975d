package certificates

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/espalier-dev/espalier/server/apis/builtin"
)

// GuardPodRequests has a user need the verb "sign" on the signer to write the status of a
// PodCertificateRequest, if the resource is among those of the list.
func GuardPodRequests(list []builtin.Resource, authz authorizer.UnconditionalAuthorizer) {
	g := guard{authz}
	for _, r := range list {
		if r.Group == certificatesv1.GroupName && r.Plural == "podcertificaterequests" {
			r.Subresources["status"] = guarded(r.Subresources["status"], g.checkPodStatus)
		}
	}
}

// checkPodStatus answers 422, as kube-apiserver does.
func (g guard) checkPodStatus(ctx context.Context, o, old *certificatesv1.PodCertificateRequest) error {
	if equality.Semantic.DeepEqual(o.Status, old.Status) || g.may(ctx, "sign", old.Spec.SignerName) {
		return nil
	}
	name := ""
	if u, ok := request.UserFrom(ctx); ok {
		name = u.GetName()
	}
	return apierrors.NewInvalid(certificatesv1.Kind("PodCertificateRequest"), old.Name, field.ErrorList{
		field.Forbidden(field.NewPath("spec", "signerName"), fmt.Sprintf(`User %q is not permitted to "sign" for signer %q`, name, old.Spec.SignerName)),
	})
}
