package plugins

import (
	"fmt"
	"io"
	"net/http"
	"net/url"

	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
)

// answerLimit is how long the answer of a webhook may be: a patch that replaces
// the largest object there can be, in base64, fits in twice.
const answerLimit = 8 << 20

// NoServices is the resolver of a server that has no services. A name must not be
// looked up elsewhere: in a pod, it would be that of a service of another cluster.
type NoServices struct{}

// ResolveEndpoint implements webhook.ServiceResolver.
func (NoServices) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	return nil, fmt.Errorf("there are no services here, and so no service %s/%s with port %d: give the webhook's clientConfig a url", namespace, name, port)
}

// guarded makes calls of webhooks safe. The configuration that inner returns
// has the credentials that the admission configuration file names, or none.
//
// For one host, that of the API server of a cluster, inner would take the
// credentials of the pod that this process runs in. Nobody has asked for that: it
// is looked up without its port, which inner does not take for the API server.
func guarded(inner webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	const host = "kubernetes.default.svc"
	guard := func(c *rest.Config, err error) (*rest.Config, error) {
		if err == nil {
			c.Wrap(func(next http.RoundTripper) http.RoundTripper { return strict{next} })
		}
		return c, err
	}
	return &webhook.AuthenticationInfoResolverDelegator{
		ClientConfigForFunc: func(hostPort string) (*rest.Config, error) {
			if hostPort == host+":443" {
				hostPort = host
			}
			return guard(inner.ClientConfigFor(hostPort))
		},
		ClientConfigForServiceFunc: func(name, namespace string, port int) (*rest.Config, error) {
			if name == "kubernetes" && namespace == "default" && port == 443 {
				return guard(inner.ClientConfigFor(host))
			}
			return guard(inner.ClientConfigForService(name, namespace, port))
		},
	}
}

// strict refuses redirects and bounds answers. A redirect could lead to where
// only this server can go.
type strict struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s strict) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := s.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("the webhook answers with a redirect (%s), which is not followed", resp.Status)
	}
	resp.Body = &bounded{resp.Body, answerLimit}
	return resp, nil
}

// WrappedRoundTripper lets client-go find what is below.
func (s strict) WrappedRoundTripper() http.RoundTripper { return s.next }

// bounded is a body that may not be longer than left.
type bounded struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the answer of the webhook is longer than %d bytes", answerLimit)
	}
	return n, err
}
