package launch

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
	"time"
)

// An Authority signs the certificates of one server and of its clients.
type Authority struct {
	CA   []byte // PEM
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// A Pair is a certificate and its key, as PEM.
type Pair struct{ Cert, Key []byte }

// NewAuthority makes a CA.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := template(pkix.Name{CommonName: "espalier conformance"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Authority{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), cert, key}, nil
}

// Server signs a certificate for 127.0.0.1 and localhost.
func (a *Authority) Server() (Pair, error) {
	t := template(pkix.Name{CommonName: "127.0.0.1"})
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	t.IPAddresses, t.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"}
	return a.sign(t)
}

// Client signs a certificate for a user and its groups.
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	t := template(pkix.Name{CommonName: user, Organization: groups})
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(t)
}

func (a *Authority) sign(t *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, err
	}
	bytes, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: bytes}),
	}, nil
}

// write puts the pair into dir as name.crt and name.key.
func (p Pair) write(dir, name string) error {
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.Cert, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".key"), p.Key, 0o600)
}

func template(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:      subject,
		SerialNumber: big.NewInt(now.UnixNano()),
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(48 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}
