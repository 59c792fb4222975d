package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA is a certificate authority that signs certificates.
type CA struct {
	Certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// New returns a CA whose own certificate is valid from an hour ago for the given time
// from now.
func New(tb testing.TB, validity time.Duration) *CA {
	tb.Helper()
	a := &CA{key: newKey(tb)}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	a.Certificate = sign(tb, template, template, a.key, a.key, validity)
	return a
}

// PEM returns the CA's certificate.
func (a *CA) PEM() []byte { return certificatePEM(a.Certificate) }

// Leaf returns the certificate of a client, as its connection shows it.
func (a *CA) Leaf(tb testing.TB, name string, validity time.Duration, groups ...string) *x509.Certificate {
	tb.Helper()
	return sign(tb, clientTemplate(name, groups), a.Certificate, newKey(tb), a.key, validity)
}

// Client returns the certificate and the key of a client, as PEM.
func (a *CA) Client(tb testing.TB, name string, validity time.Duration, groups ...string) (certificate, key []byte) {
	tb.Helper()
	k := newKey(tb)
	return certificatePEM(sign(tb, clientTemplate(name, groups), a.Certificate, k, a.key, validity)), keyPEM(tb, k)
}

// For returns a certificate for the named uses only, as its connection shows it.
func (a *CA) For(tb testing.TB, name string, uses ...x509.ExtKeyUsage) *x509.Certificate {
	tb.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: uses}
	return sign(tb, template, a.Certificate, newKey(tb), a.key, time.Hour)
}

// Server returns the certificate and the key of a server on the loopback
// address, as PEM.
func (a *CA) Server(tb testing.TB) (certificate, key []byte) {
	tb.Helper()
	return a.ServerFor(tb, time.Hour)
}

// ServerFor is Server with a certificate that is valid for a time from now; a negative
// one makes it expired.
func (a *CA) ServerFor(tb testing.TB, validity time.Duration) (certificate, key []byte) {
	tb.Helper()
	k := newKey(tb)
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "server"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	return certificatePEM(sign(tb, template, a.Certificate, k, a.key, validity)), keyPEM(tb, k)
}

// File writes data into a new folder of the test and returns its path.
func File(tb testing.TB, name string, data []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func clientTemplate(name string, groups []string) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// sign completes the template and signs it for the key's owner.
func sign(tb testing.TB, template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey, validity time.Duration) *x509.Certificate {
	tb.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		tb.Fatal(err)
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(validity)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		tb.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return certificate
}

func certificatePEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

func keyPEM(tb testing.TB, key *ecdsa.PrivateKey) []byte {
	tb.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
