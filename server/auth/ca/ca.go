package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// A CA is a certificate authority that signs certificates.
type CA struct {
	CA   []byte // its own certificate, as PEM
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// A Pair is a certificate and its key, as PEM.
type Pair struct{ Cert, Key []byte }

// New makes a CA whose certificates are valid for a time. The CA's own certificate
// expires last.
func New(name string, validity time.Duration) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t, err := template(pkix.Name{CommonName: name}, validity)
	if err != nil {
		return nil, err
	}
	t.IsCA, t.BasicConstraintsValid = true, true
	t.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return parse(der, key)
}

func parse(der []byte, key *ecdsa.PrivateKey) (*CA, error) {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &CA{encode("CERTIFICATE", der), cert, key}, nil
}

// Load reads the CA that Save has written. It fails with os.ErrNotExist if the files
// do not exist.
func Load(dir string) (*CA, error) {
	cert, err := block(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, err
	}
	der, err := block(filepath.Join(dir, "ca.key"))
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, "ca.key"), err)
	}
	a, err := parse(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, "ca.crt"), err)
	}
	if !key.PublicKey.Equal(a.cert.PublicKey) {
		return nil, fmt.Errorf("%s does not match the certificate in ca.crt", filepath.Join(dir, "ca.key"))
	}
	return a, nil
}

// block reads a file of one PEM block.
func block(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	b, _ := pem.Decode(data)
	if b == nil {
		return nil, fmt.Errorf("%s is not PEM", file)
	}
	return b.Bytes, nil
}

// Save writes the CA into a folder, as ca.crt and ca.key.
func (a *CA) Save(dir string) error {
	der, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		return err
	}
	return Pair{a.CA, encode("EC PRIVATE KEY", der)}.Save(dir, "ca")
}

// Expires is when the CA's own certificate expires.
func (a *CA) Expires() time.Time { return a.cert.NotAfter }

// Server signs a certificate for a server that is known by these names and
// addresses. No server accepts it as a client's.
func (a *CA) Server(hosts ...string) (Pair, error) {
	return a.server(hosts, x509.ExtKeyUsageServerAuth)
}

// Peer signs a certificate for a member of etcd. Members are each other's clients.
func (a *CA) Peer(hosts ...string) (Pair, error) {
	return a.server(hosts, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
}

func (a *CA) server(hosts []string, uses ...x509.ExtKeyUsage) (Pair, error) {
	if len(hosts) == 0 {
		return Pair{}, errors.New("a server certificate needs at least one name or address")
	}
	t, err := template(pkix.Name{CommonName: hosts[0]}, time.Until(a.Expires()))
	if err != nil {
		return Pair{}, err
	}
	t.ExtKeyUsage = uses
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, host)
		}
	}
	return a.sign(t)
}

// Client signs a certificate for a user and its groups.
func (a *CA) Client(user string, groups ...string) (Pair, error) {
	return a.Certificate(pkix.Name{CommonName: user, Organization: groups}, x509.ExtKeyUsageClientAuth)
}

// Certificate signs a certificate for the given extended key usages, which may be none.
func (a *CA) Certificate(subject pkix.Name, uses ...x509.ExtKeyUsage) (Pair, error) {
	t, err := template(subject, time.Until(a.Expires()))
	if err != nil {
		return Pair{}, err
	}
	t.ExtKeyUsage = uses
	return a.sign(t)
}

func (a *CA) sign(t *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{encode("CERTIFICATE", der), encode("EC PRIVATE KEY", private)}, nil
}

// Save writes the pair into a folder, as name.crt and name.key.
func (p Pair) Save(dir, name string) error {
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.Cert, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".key"), p.Key, 0o600)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// template is a certificate that is valid from a while ago: clocks differ.
func template(subject pkix.Name, validity time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		Subject:      subject,
		SerialNumber: serial,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}, nil
}
