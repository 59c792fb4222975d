package trustbundle

import (
	"context"
	"errors"
	"fmt"
	"io"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-dev/espalier/server/admission/signers"
)

// PluginName is what the plugin is called in Kubernetes.
const PluginName = "ClusterTrustBundleAttest"

// Plugin refuses bundles of a signer that the user has no right to attest for.
type Plugin struct {
	*admission.Handler
	authorizer authorizer.UnconditionalAuthorizer
}

var (
	_ admission.ValidationInterface            = (*Plugin)(nil)
	_ initializer.WantsUnconditionalAuthorizer = (*Plugin)(nil)
)

var bundles = certificatesv1.Resource("clustertrustbundles")

// NewPlugin returns a plugin that needs an authorizer.
func NewPlugin(io.Reader) (admission.Interface, error) {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}, nil
}

// SetUnconditionalAuthorizer implements initializer.WantsUnconditionalAuthorizer.
func (p *Plugin) SetUnconditionalAuthorizer(a authorizer.UnconditionalAuthorizer) { p.authorizer = a }

// ValidateInitialization implements admission.InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	if p.authorizer == nil {
		return errors.New("the admission plugin " + PluginName + " needs an authorizer")
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != bundles || a.GetSubresource() != "" {
		return nil
	}
	bundle, ok := a.GetObject().(*certificatesv1.ClusterTrustBundle)
	if !ok {
		return admission.NewForbidden(a, fmt.Errorf("the object is a %T", a.GetObject()))
	}
	if old, ok := a.GetOldObject().(*certificatesv1.ClusterTrustBundle); ok && isCollection(bundle, old) {
		return nil
	}
	name := bundle.Spec.SignerName
	if name != "" && !signers.Allowed(ctx, p.authorizer, a.GetUserInfo(), "attest", name) {
		return admission.NewForbidden(a, fmt.Errorf("user not permitted to attest for signerName %q", name))
	}
	return nil
}

// isCollection reports whether an update changes nothing but what the garbage collector
// changes. It has no right to attest.
func isCollection(bundle, old *certificatesv1.ClusterTrustBundle) bool {
	metadata := bundle.ObjectMeta
	metadata.OwnerReferences, metadata.Finalizers, metadata.ManagedFields = old.OwnerReferences, old.Finalizers, old.ManagedFields
	return bundle.Spec == old.Spec && equality.Semantic.DeepEqual(metadata, old.ObjectMeta)
}
