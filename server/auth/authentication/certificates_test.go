package authentication

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
)

// trustedCAs are the CAs that a test trusts. They can change.
type trustedCAs struct {
	options atomic.Pointer[x509.VerifyOptions]
}

func trusting(certificates ...*x509.Certificate) *trustedCAs {
	a := &trustedCAs{}
	a.trust(certificates...)
	return a
}

func (a *trustedCAs) trust(certificates ...*x509.Certificate) {
	pool := x509.NewCertPool()
	for _, c := range certificates {
		pool.AddCert(c)
	}
	a.options.Store(&x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

func (a *trustedCAs) VerifyOptions() (x509.VerifyOptions, bool) {
	options := a.options.Load()
	if options == nil {
		return x509.VerifyOptions{}, false
	}
	return *options, true
}

func requestWith(chain ...*x509.Certificate) *http.Request {
	req := &http.Request{Method: http.MethodGet, TLS: &tls.ConnectionState{PeerCertificates: chain}}
	return req.WithContext(context.Background())
}

func TestCertificatesNameUserAndGroups(t *testing.T) {
	ca := certtest.New(t, time.Hour)
	c := newCertificates(trusting(ca.Certificate))
	leaf := ca.Leaf(t, "alice", time.Hour, "developers", user.AllUnauthenticated)
	for i := range 2 { // the second time from memory
		response, ok, err := c.AuthenticateRequest(requestWith(leaf))
		if err != nil || !ok {
			t.Fatalf("%d: %v %v", i, ok, err)
		}
		if name := response.User.GetName(); name != "alice" {
			t.Errorf("%d: name %q", i, name)
		}
		if groups := response.User.GetGroups(); !slices.Equal(groups, []string{"developers", user.AllAuthenticated}) {
			t.Errorf("%d: groups %q", i, groups)
		}
		if len(response.User.GetExtra()[user.CredentialIDKey]) != 1 {
			t.Errorf("%d: no credential id in %v", i, response.User.GetExtra())
		}
	}
}

// A certificate that does not say what it is for may be a server's: the user of its
// common name must not come of it.
func TestCertificateMustBeForClients(t *testing.T) {
	ca := certtest.New(t, time.Hour)
	c := newCertificates(trusting(ca.Certificate))
	for _, test := range []struct {
		name     string
		uses     []x509.ExtKeyUsage
		accepted bool
	}{
		{"none", nil, false},
		{"server", []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, false},
		{"signed code", []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}, false},
		{"client", []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, true},
		{"server and client", []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, true},
		{"any", []x509.ExtKeyUsage{x509.ExtKeyUsageAny}, true},
	} {
		leaf := ca.For(t, "alice", test.uses...)
		for range 2 {
			if _, ok, err := c.AuthenticateRequest(requestWith(leaf)); ok != test.accepted || (err == nil) != test.accepted {
				t.Errorf("extended key usage %s: got %v, %v", test.name, ok, err)
			}
		}
	}
}

func TestNoCertificateIsNoIdentity(t *testing.T) {
	c := newCertificates(trusting(certtest.New(t, time.Hour).Certificate))
	for _, req := range []*http.Request{requestWith(), {}} {
		if _, ok, err := c.AuthenticateRequest(req); ok || err != nil {
			t.Errorf("got %v, %v", ok, err)
		}
	}
}

func TestStrangersAreRefused(t *testing.T) {
	c := newCertificates(trusting(certtest.New(t, time.Hour).Certificate))
	leaf := certtest.New(t, time.Hour).Leaf(t, "alice", time.Hour, "developers")
	if _, ok, err := c.AuthenticateRequest(requestWith(leaf)); ok || err == nil {
		t.Errorf("got %v, %v", ok, err)
	}
	if len(c.known) != 0 {
		t.Error("a refusal was remembered")
	}
}

func TestExpiredCertificateIsRefusedAlthoughRemembered(t *testing.T) {
	for _, test := range []struct {
		name           string
		clientCA, leaf time.Duration
	}{
		{"leaf", time.Hour, time.Minute},
		{"authority", time.Minute, time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			ca := certtest.New(t, test.clientCA)
			c := newCertificates(trusting(ca.Certificate))
			leaf := ca.Leaf(t, "alice", test.leaf)
			if _, ok, err := c.AuthenticateRequest(requestWith(leaf)); !ok || err != nil {
				t.Fatalf("got %v, %v", ok, err)
			}
			if len(c.known) != 1 {
				t.Fatal("nothing is remembered")
			}
			c.now = func() time.Time { return time.Now().Add(2 * time.Minute) }
			if _, ok, err := c.AuthenticateRequest(requestWith(leaf)); ok || err == nil {
				t.Errorf("two minutes later: got %v, %v", ok, err)
			}
		})
	}
}

func TestNewAuthoritiesForgetTheOld(t *testing.T) {
	former, later := certtest.New(t, time.Hour), certtest.New(t, time.Hour)
	trusted := trusting(former.Certificate)
	c := newCertificates(trusted)
	leaf := former.Leaf(t, "alice", time.Hour)
	if _, ok, _ := c.AuthenticateRequest(requestWith(leaf)); !ok {
		t.Fatal("refused")
	}
	trusted.trust(later.Certificate)
	if _, ok, err := c.AuthenticateRequest(requestWith(leaf)); ok || err == nil {
		t.Errorf("got %v, %v", ok, err)
	}
	if _, ok, err := c.AuthenticateRequest(requestWith(later.Leaf(t, "bob", time.Hour))); !ok {
		t.Errorf("the new CA's: %v", err)
	}
	if len(c.known) != 1 {
		t.Errorf("%d remembered", len(c.known))
	}
	trusted.options.Store(nil)
	if _, ok, err := c.AuthenticateRequest(requestWith(leaf)); ok || err != nil {
		t.Errorf("without CAs: got %v, %v", ok, err)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	clientCA := trusting(certtest.New(t, time.Hour).Certificate)
	options, _ := clientCA.VerifyOptions()
	c := newCertificates(clientCA)
	now := time.Now()
	for i := range maxRemembered {
		until := now.Add(time.Hour)
		if i%2 == 0 {
			until = now.Add(-time.Hour)
		}
		c.remember(&x509.Certificate{Raw: fmt.Append(nil, i)}, options.Roots, verified{until: until}, now)
	}
	c.remember(&x509.Certificate{Raw: []byte("one more")}, options.Roots, verified{until: now.Add(time.Hour)}, now)
	if n := len(c.known); n != maxRemembered/2+1 {
		t.Errorf("%d remembered: the expired ones ought to go first", n)
	}
	for i := range maxRemembered/2 + 100 {
		c.remember(&x509.Certificate{Raw: fmt.Append(nil, "valid", i)}, options.Roots, verified{until: now.Add(time.Hour)}, now)
	}
	if n := len(c.known); n > maxRemembered {
		t.Errorf("%d remembered", n)
	}
}

// TestConcurrentUse is for the race detector: clients authenticate while the CAs
// change.
func TestConcurrentUse(t *testing.T) {
	a, b := certtest.New(t, time.Hour), certtest.New(t, time.Hour)
	trusted := trusting(a.Certificate)
	c := newCertificates(trusted)
	leaves := []*x509.Certificate{a.Leaf(t, "alice", time.Hour), b.Leaf(t, "bob", time.Hour)}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for range 50 {
				_, _, _ = c.AuthenticateRequest(requestWith(leaves[worker%2]))
			}
		})
	}
	for i := range 20 {
		trusted.trust([]*x509.Certificate{a.Certificate, b.Certificate}[i%2])
	}
	wg.Wait()
	trusted.trust(a.Certificate)
	if _, ok, _ := c.AuthenticateRequest(requestWith(leaves[1])); ok {
		t.Error("bob is let in by an CA that is gone")
	}
}

func BenchmarkCertificates(b *testing.B) {
	ca := certtest.New(b, time.Hour)
	c := newCertificates(trusting(ca.Certificate))
	req := requestWith(ca.Leaf(b, "alice", time.Hour, "developers"))
	b.Run("remembered", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok, err := c.AuthenticateRequest(req); !ok {
				b.Fatal(err)
			}
		}
	})
	b.Run("verified", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			clear(c.known)
			if _, ok, err := c.AuthenticateRequest(req); !ok {
				b.Fatal(err)
			}
		}
	})
}
