package webhook

import (
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// NoServices is the resolver of a server that has no services. A name must not be
// looked up elsewhere: in a pod, it would be that of a service of another cluster.
type NoServices struct{}

// ResolveEndpoint implements the ServiceResolver of k8s.io/apiserver.
func (NoServices) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	return nil, fmt.Errorf("there are no services here, and so no service %s/%s with port %d: give the webhook's clientConfig a url", namespace, name, port)
}

// ServiceWarning returns the warning for a clientConfig, at the path at, that refers to a
// Service. It is not an error: manifests that are written for
// clusters have such references, and installers replace them later.
func ServiceWarning(at *field.Path) string {
	return fmt.Sprintf("%s: this server has no Services, so every call of this webhook fails; set %s to an https URL at which this server reaches the webhook",
		at.Child("service"), at.Child("url"))
}
