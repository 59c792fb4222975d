package authentication

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	requestx509 "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
)

// maxRemembered bounds the cache. An entry is a certificate, mostly of 1 to 2 KB, and
// only certificates that a CA has signed get one.
const maxRemembered = 4096

// trust is the set of CAs that sign the certificates of clients.
// dynamiccertificates.CAContentProvider implements it.
type trust interface {
	// VerifyOptions returns new Roots whenever the CAs change, and false while there
	// are none.
	VerifyOptions() (x509.VerifyOptions, bool)
}

// certificates authenticates requests by the client certificate of their
// connection: the common name is the user, the organizations are the groups.
//
// k8s.io/apiserver verifies the chain anew for every request, which is a tenth
// of the cost of a small one. The result depends only on the certificate, the CAs and
// the time, so it is cached until one of these changes it. Failures are not cached.
type certificates struct {
	cas trust
	now func() time.Time

	mu    sync.RWMutex
	roots *x509.CertPool      // the CAs that all entries are verified with
	known map[string]verified // by the certificate's DER
}

// verified is a cached verification.
type verified struct {
	response *authenticator.Response
	until    time.Time // the first certificate of the chain expires
}

var _ authenticator.Request = (*certificates)(nil)

// newCertificates returns an authenticator for certificates that the CAs have
// signed.
func newCertificates(cas trust) *certificates {
	return &certificates{cas: cas, now: time.Now, known: map[string]verified{}}
}

// AuthenticateRequest implements authenticator.Request. The response is shared
// by all requests with the same certificate and must not be changed.
func (c *certificates) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	if req.TLS == nil || len(req.TLS.PeerCertificates) == 0 {
		return nil, false, nil
	}
	options, ok := c.cas.VerifyOptions()
	if !ok {
		return nil, false, nil
	}
	leaf := req.TLS.PeerCertificates[0]
	now := c.now()
	if response := c.recall(leaf, options.Roots, now); response != nil {
		return response, true, nil
	}
	options.CurrentTime = now
	return c.verify(req, options)
}

// recall returns a cached verification that is still valid, or nil.
func (c *certificates) recall(leaf *x509.Certificate, roots *x509.CertPool, now time.Time) *authenticator.Response {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.roots != roots {
		return nil
	}
	entry, ok := c.known[string(leaf.Raw)]
	if !ok || !now.Before(entry.until) {
		return nil
	}
	return entry.response
}

// verify calls k8s.io/apiserver's authenticator, and caches success.
func (c *certificates) verify(req *http.Request, options x509.VerifyOptions) (*authenticator.Response, bool, error) {
	var until time.Time
	convert := func(chain []*x509.Certificate) (*authenticator.Response, bool, error) {
		if err := forClients(chain[0]); err != nil {
			return nil, false, err
		}
		response, ok, err := requestx509.CommonNameUserConversion(chain)
		if !ok || err != nil {
			return nil, false, err
		}
		until = expiry(chain)
		return authenticated(response), true, nil
	}
	response, ok, err := requestx509.New(options, requestx509.UserConversionFunc(convert)).AuthenticateRequest(req)
	if !ok || err != nil {
		return nil, false, err
	}
	c.remember(req.TLS.PeerCertificates[0], options.Roots, verified{response: response, until: until}, options.CurrentTime)
	return response, true, nil
}

// forClients rejects a certificate without the extended key usage clientAuth. Go, and so
// k8s.io/apiserver, accepts a certificate without any extended key usage for every use: a
// server certificate of the client CA would authenticate a user.
func forClients(leaf *x509.Certificate) error {
	if slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) || slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageAny) {
		return nil
	}
	return fmt.Errorf("the certificate of %q is not for clients: its extended key usage must include clientAuth", leaf.Subject.CommonName)
}

// remember adds an entry, and drops another one if there are too many.
func (c *certificates) remember(leaf *x509.Certificate, roots *x509.CertPool, entry verified, now time.Time) {
	// The CAs may have changed since: certificates of a former one must not be
	// accepted again.
	if current, ok := c.cas.VerifyOptions(); !ok || current.Roots != roots {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.roots != roots {
		c.roots = roots
		clear(c.known)
	}
	if len(c.known) >= maxRemembered {
		for key, old := range c.known {
			if !now.Before(old.until) {
				delete(c.known, key)
			}
		}
		for key := range c.known {
			if len(c.known) < maxRemembered {
				break
			}
			delete(c.known, key) // any: it is verified again when it comes back
		}
	}
	c.known[string(leaf.Raw)] = entry
}

// expiry is when a chain ceases to be valid.
func expiry(chain []*x509.Certificate) time.Time {
	return slices.MinFunc(chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }).NotAfter
}

// authenticated adds the group system:authenticated. No client can claim the group
// system:unauthenticated.
func authenticated(response *authenticator.Response) *authenticator.Response {
	u := response.User
	groups := slices.DeleteFunc(slices.Clone(u.GetGroups()), func(group string) bool {
		return group == user.AllAuthenticated || group == user.AllUnauthenticated
	})
	return &authenticator.Response{Audiences: response.Audiences, User: &user.DefaultInfo{
		Name: u.GetName(), UID: u.GetUID(), Extra: u.GetExtra(),
		Groups: append(groups, user.AllAuthenticated),
	}}
}
