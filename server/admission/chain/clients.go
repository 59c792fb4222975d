package chain

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/openapi"
)

// The plugin of mutating policies reads the index of all OpenAPI documents
// every five seconds, policies or not. With ten thousand CRDs that is
// megabytes. The client that it gets holds the call back while there is no
// policy.
type quietClient struct {
	kubernetes.Interface
	wait func() error
}

type quietDiscovery struct {
	discovery.DiscoveryInterfaces
	wait func() error
}

type quietDocuments struct {
	openapi.Client
	wait func() error
}

func quiet(ctx context.Context, client kubernetes.Interface, policies *source) kubernetes.Interface {
	if policies == nil {
		return client
	}
	return quietClient{client, func() error { return policies.wait(ctx) }}
}

// Discovery implements kubernetes.Interface.
func (c quietClient) Discovery() discovery.DiscoveryInterfaces {
	return quietDiscovery{c.Interface.Discovery(), c.wait}
}

// OpenAPIV3 implements discovery.DiscoveryInterface.
func (d quietDiscovery) OpenAPIV3() openapi.Client {
	return quietDocuments{d.DiscoveryInterfaces.OpenAPIV3(), d.wait}
}

// Paths implements openapi.Client.
func (d quietDocuments) Paths() (map[string]openapi.GroupVersion, error) {
	if d.wait() != nil {
		return nil, nil // the server is shutting down: no client waits for an error
	}
	return d.Client.Paths()
}

// ownParameters are informers that share none with the parameters of policies.
// The plugins stop an informer of parameters when the last policy with these
// parameters is deleted. A shared informer would stop for all its users, and never
// start again.
type ownParameters struct {
	informers.SharedInformerFactory
}

// ForResource implements informers.SharedInformerFactory. Plugins that get an
// error make an informer of their own.
func (ownParameters) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return nil, fmt.Errorf("informers of %v are not shared with policies", resource)
}
