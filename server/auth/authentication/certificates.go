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

// maxRemembered bounds what is remembered. An entry is a certificate, mostly
// of 1 to 2 KB, and only those that an authority has signed get one.
const maxRemembered = 4096

// trust says who signs the certificates of clients.
// dynamiccertificates.CAContentProvider is one.
type trust interface {
	// VerifyOptions returns new Roots whenever the authorities change, and
	// false while there are none.
	VerifyOptions() (x509.VerifyOptions, bool)
}

// certificates authenticates requests by the client certificate of their
// connection: the common name is the user, the organizations are the groups.
//
// k8s.io/apiserver verifies the chain anew for every request, which is a tenth
// of the cost of a small one. The outcome depends on the certificate, on the
// authorities and on the time alone, so it is remembered until one of these
// says otherwise. Refusals are not remembered.
type certificates struct {
	authority trust
	now       func() time.Time

	mu    sync.RWMutex
	roots *x509.CertPool      // the authorities that all entries are verified with
	known map[string]verified // by the certificate's DER
}

// verified is what is remembered of a verification.
type verified struct {
	response *authenticator.Response
	until    time.Time // the first certificate of the chain expires
}

var _ authenticator.Request = (*certificates)(nil)

// newCertificates returns an authenticator for certificates that the
// authority's members have signed.
func newCertificates(authority trust) *certificates {
	return &certificates{authority: authority, now: time.Now, known: map[string]verified{}}
}

// AuthenticateRequest implements authenticator.Request. The response is shared
// by all requests with the same certificate and must not be changed.
func (c *certificates) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	if req.TLS == nil || len(req.TLS.PeerCertificates) == 0 {
		return nil, false, nil
	}
	options, ok := c.authority.VerifyOptions()
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

// recall returns what is known of a certificate and still true, or nil.
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

// verify asks k8s.io/apiserver's authenticator, and remembers a yes.
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

// forClients refuses a certificate that does not say that it is for clients. Go, and
// so k8s.io/apiserver, takes one without any extended key usage as good for every
// use: a server's certificate that the client CA has signed would name a user.
func forClients(leaf *x509.Certificate) error {
	if slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) || slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageAny) {
		return nil
	}
	return fmt.Errorf("the certificate of %q is not for clients: its extended key usage must include clientAuth", leaf.Subject.CommonName)
}

// remember keeps an entry, at the cost of another one if there are too many.
func (c *certificates) remember(leaf *x509.Certificate, roots *x509.CertPool, entry verified, now time.Time) {
	// The authorities may have changed since: what a former one signed must not
	// come back.
	if current, ok := c.authority.VerifyOptions(); !ok || current.Roots != roots {
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
	until := chain[0].NotAfter
	for _, certificate := range chain[1:] {
		if certificate.NotAfter.Before(until) {
			until = certificate.NotAfter
		}
	}
	return until
}

// authenticated adds the group that all have who are known. Nobody can claim to be
// of those who are not.
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
