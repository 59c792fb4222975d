package webhook

import (
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// NoServices is the resolver of a server that does not route requests to Services: they
// are data, and no node runs their pods. A name must not be looked up elsewhere: in a
// pod, it would be that of a Service of another cluster.
type NoServices struct{}

// ResolveEndpoint implements the ServiceResolver of k8s.io/apiserver.
func (NoServices) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	return nil, fmt.Errorf("this server does not route requests to Services, so it cannot call %s/%s at port %d: set the url of the webhook's clientConfig", namespace, name, port)
}

// ServiceWarning returns the warning for a clientConfig, at the path at, that refers to a
// Service. It is not an error: manifests that are written for
// clusters have such references, and installers replace them later.
func ServiceWarning(at *field.Path) string {
	return fmt.Sprintf("%s: this server does not route requests to Services, so every call of this webhook fails; set %s to an https URL at which this server reaches the webhook",
		at.Child("service"), at.Child("url"))
}
