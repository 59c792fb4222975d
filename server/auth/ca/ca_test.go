package ca

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCertificatesAreThoseOfTheAuthority(t *testing.T) {
	a, err := New("test", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(a.CA) {
		t.Fatal("the CA's certificate is not PEM")
	}
	server := leaf(t, must(t)(a.Server("127.0.0.1", "localhost", "::1")))
	for _, name := range []string{"127.0.0.1", "localhost", "::1"} {
		if _, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: "example.com"}); err == nil {
		t.Error("the certificate is good for a name that was not asked for")
	}
	client := leaf(t, must(t)(a.Client("jane", "a", "b")))
	if _, err := client.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	if _, err := client.Verify(x509.VerifyOptions{Roots: roots}); err == nil {
		t.Error("a client's certificate is good for a server")
	}
	forClients := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := server.Verify(forClients); err == nil {
		t.Error("a server's certificate is good for a client")
	}
	if _, err := leaf(t, must(t)(a.Peer("127.0.0.1"))).Verify(forClients); err != nil {
		t.Errorf("a member of etcd: %v", err)
	}
	if s := client.Subject; s.CommonName != "jane" || strings.Join(s.Organization, ",") != "a,b" {
		t.Errorf("got %v", s)
	}
	if client.NotAfter.After(a.Expires().Add(time.Minute)) {
		t.Errorf("a certificate outlives its authority: %v", client.NotAfter)
	}
	if _, err := a.Server(); err == nil {
		t.Error("a server without a name")
	}
}

func TestAnAuthorityIsKept(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("got %v", err)
	}
	a, err := New("test", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Save(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ca.crt", "ca.key"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	b, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.CA)
	if _, err := leaf(t, must(t)(b.Server("localhost"))).Verify(x509.VerifyOptions{Roots: roots, DNSName: "localhost"}); err != nil {
		t.Error(err)
	}
}

func TestOtherThanCAIsRefused(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	for _, dir := range []string{one, other} {
		a, err := New("test", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Save(dir); err != nil {
			t.Fatal(err)
		}
	}
	key, err := os.ReadFile(filepath.Join(other, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"is not PEM":            "hello",
		"x509: failed to parse": "-----BEGIN EC PRIVATE KEY-----\naGVsbG8=\n-----END EC PRIVATE KEY-----\n",
		"does not match the certificate in ca.crt": string(key),
	} {
		if err := os.WriteFile(filepath.Join(one, "ca.key"), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(one); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}

func must(t *testing.T) func(Pair, error) Pair {
	return func(p Pair, err error) Pair {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
}

// leaf parses a pair, which fails if the key is not the certificate's.
func leaf(t *testing.T, p Pair) *x509.Certificate {
	t.Helper()
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return c.Leaf
}
