package webhook

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server/turns"
)

const (
	// callTimeout bounds a call whose caller has more time.
	callTimeout = 30 * time.Second
	// dialTimeout bounds how long a connection may take to be made.
	dialTimeout = 10 * time.Second
	// headerLimit is how long the header of an answer may be. Go's own limit is
	// 10 MiB, for each of all calls under way.
	headerLimit = 64 << 10
)

// Client calls webhooks. It is safe for concurrent use, and one is enough for a
// server: the bound of answers is that of a client.
type Client struct {
	networks *Networks
	dialer   net.Dialer
	answers  budget
	log      limitedLog
}

// New returns a client for webhooks in these networks.
func New(o Options) (*Client, error) {
	networks, err := NewNetworks(o.AllowedNetworks, o.DeniedNetworks)
	if err != nil {
		return nil, err
	}
	c := &Client{networks: networks}
	c.dialer = net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second, Control: c.control}
	return c, nil
}

// Anonymous gives no webhook credentials.
func (c *Client) Anonymous() webhookutil.AuthenticationInfoResolver {
	config := func() (*rest.Config, error) {
		// Kubernetes' name: webhooks may look at it.
		return c.guard(&rest.Config{UserAgent: "kube-apiserver-admission", Timeout: callTimeout}), nil
	}
	return &webhookutil.AuthenticationInfoResolverDelegator{
		ClientConfigForFunc:        func(string) (*rest.Config, error) { return config() },
		ClientConfigForServiceFunc: func(string, string, int) (*rest.Config, error) { return config() },
	}
}

// Guard makes calls safe whose configuration inner returns: with the credentials
// that the admission configuration file names, or none.
//
// For one host, the API server of the surrounding cluster, inner would use the
// credentials of the pod that this process runs in. That is not intended: Guard looks
// the host up without its port, which inner does not take for the API server.
func (c *Client) Guard(inner webhookutil.AuthenticationInfoResolver) webhookutil.AuthenticationInfoResolver {
	const host = "kubernetes.default.svc"
	guard := func(config *rest.Config, err error) (*rest.Config, error) {
		if err != nil {
			return nil, err
		}
		return c.guard(config), nil
	}
	return &webhookutil.AuthenticationInfoResolverDelegator{
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

// guard returns a configuration whose connections and answers are checked.
func (c *Client) guard(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Dial = c.dialer.DialContext
	// A proxy of the environment would see the objects, and make the connection that
	// the networks forbid. It also keeps client-go from sharing the transport with
	// others: tighten changes it.
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if t, ok := next.(*http.Transport); ok {
			t.MaxResponseHeaderBytes = headerLimit
		}
		return &transport{next: next, client: c}
	})
	return config
}

// control is called with the resolved address before a socket is connected.
func (c *Client) control(network, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("webhook at %s %s: %w", network, address, err)
	}
	if what := c.networks.refusal(at.Addr()); what != "" {
		c.log.printf("Refused to connect to a webhook at %s: it is %s", at, what)
		return &deniedError{what}
	}
	return nil
}

// deniedError is why a webhook is not called. It does not have the address: that of
// a name in a private network is none of the user's business.
type deniedError struct{ what string }

// Error implements error.
func (e *deniedError) Error() string {
	return fmt.Sprintf("the webhook has %s, which this server does not connect to: an operator can allow its network with --%s", e.what, allowedFlag)
}

// transport refuses redirects, bounds answers and keeps the text of those to itself
// that are not reviews.
type transport struct {
	next   http.RoundTripper
	client *Client
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	back := turns.Away(req.Context())
	resp, err := t.next.RoundTrip(req)
	back()
	if err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		_ = resp.Body.Close()
		return nil, fmt.Errorf("the webhook answers with a redirect (%d %s), which is not followed", resp.StatusCode, http.StatusText(resp.StatusCode))
	case resp.StatusCode < http.StatusOK || resp.StatusCode > http.StatusPartialContent:
		t.client.conceal(resp)
		return resp, nil
	}
	resp.Body = t.client.answers.count(req.Context(), req.URL.Host, resp.Body)
	return resp, nil
}

// WrappedRoundTripper lets client-go find what is below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// Limited returns a context with which the answer to a call has at most limit bytes.
func Limited(ctx context.Context, limit int64) context.Context {
	return context.WithValue(ctx, limitKey{}, limit)
}

type limitKey struct{}
