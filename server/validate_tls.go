package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/util/cert"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/espalier-dev/espalier/internal/spelling"
)

// validateTLS says what is wrong with certificates, their keys, and how they are
// used.
func (o *Options) validateTLS() []error {
	errs := o.validateProtocol()
	for _, p := range o.pairs() {
		errs = append(errs, p.validate()...)
	}
	for _, file := range []namedFile{
		{flag: "--client-ca-file", path: o.Identity.ClientCAFile},
		{flag: "--requestheader-client-ca-file", path: o.Identity.RequestHeader.ClientCAFile},
		{flag: "--etcd-cafile", path: o.Etcd.StorageConfig.Transport.TrustedCAFile},
	} {
		errs = append(errs, file.validateCA())
	}
	return errs
}

// validateProtocol refuses what Go's own TLS would not use by itself any more.
func (o *Options) validateProtocol() []error {
	var errs []error
	switch v := o.Serving.MinTLSVersion; v {
	case "", "VersionTLS12", "VersionTLS13":
	case "VersionTLS10", "VersionTLS11":
		errs = append(errs, fmt.Errorf("--tls-min-version is %s, which is broken: an attacker on the network could read and change requests; give VersionTLS12 or VersionTLS13", v))
	default:
		errs = append(errs, fmt.Errorf("--tls-min-version has the unknown version %q; give VersionTLS12 or VersionTLS13", v))
	}
	safe, unsafe := cliflag.PreferredTLSCipherNames(), cliflag.InsecureTLSCipherNames()
	for _, suite := range o.Serving.CipherSuites {
		switch {
		case slices.Contains(safe, suite):
		case slices.Contains(unsafe, suite):
			errs = append(errs, fmt.Errorf("--tls-cipher-suites has %s, which is broken: an attacker on the network could read requests; leave it out", suite))
		default:
			hint := "give one of " + strings.Join(safe, ", ")
			if near := spelling.Nearest(suite, slices.Values(safe)); near != "" {
				hint = "did you mean " + near + "?"
			}
			errs = append(errs, fmt.Errorf("--tls-cipher-suites has the unknown suite %q; %s", suite, hint))
		}
	}
	return errs
}

// certificate is one that this server shows to others, with its key.
type certificate struct {
	flag, keyFlag string
	path, keyPath string
	usage         x509.ExtKeyUsage
	renew         string // how to get another one
}

// pairs are all certificates that the options name.
func (o *Options) pairs() []certificate {
	const renew = "have the CA sign another one"
	transport := &o.Etcd.StorageConfig.Transport
	serving := o.Serving.ServerCert.CertKey
	all := []certificate{
		{"--tls-cert-file", "--tls-private-key-file", serving.CertFile, serving.KeyFile, x509.ExtKeyUsageServerAuth, renew},
		{"--etcd-certfile", "--etcd-keyfile", transport.CertFile, transport.KeyFile, x509.ExtKeyUsageClientAuth, renew},
	}
	for _, sni := range o.Serving.SNICertKeys {
		all = append(all, certificate{"--tls-sni-cert-key", "--tls-sni-cert-key", sni.CertFile, sni.KeyFile, x509.ExtKeyUsageServerAuth, renew})
	}
	if path, keyPath, ok := o.ownCertificate(); ok {
		if _, err := os.Stat(path); err == nil {
			all = append(all, certificate{"--cert-dir", "--cert-dir", path, keyPath, x509.ExtKeyUsageServerAuth, "remove it and its key, and the server makes another one"})
		}
	}
	return all
}

// ownCertificate is where the certificate and the key are that the server makes for
// itself, if it does.
func (o *Options) ownCertificate() (path, keyPath string, ok bool) {
	c := &o.Serving.ServerCert
	if c.CertKey.CertFile != "" || c.CertKey.KeyFile != "" || c.GeneratedCert != nil || c.CertDirectory == "" {
		return "", "", false
	}
	base := filepath.Join(c.CertDirectory, c.PairName)
	return base + ".crt", base + ".key", true
}

func (c *certificate) validate() []error {
	switch {
	case c.path == "" && c.keyPath == "":
		return nil
	case c.keyPath == "":
		return []error{fmt.Errorf("%s is given without %s: a certificate is of no use without its key; give both or none", c.flag, c.keyFlag)}
	case c.path == "":
		return []error{fmt.Errorf("%s is given without %s: a key is of no use without its certificate; give both or none", c.keyFlag, c.flag)}
	}
	loaded, err := tls.LoadX509KeyPair(c.path, c.keyPath)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		return []error{fmt.Errorf("%s, %s cannot be read: %w", c.flag, c.keyFlag, err)}
	case err != nil:
		return []error{fmt.Errorf("%s, %s: %s, %s: %w; give a certificate and the key that belongs to it, both as PEM", c.flag, c.keyFlag, c.path, c.keyPath, err)}
	}
	var errs []error
	for _, wrong := range c.validateLeaf(loaded.Leaf) {
		errs = append(errs, fmt.Errorf("%s: %s %s; %s", c.flag, c.path, wrong, c.renew))
	}
	return errs
}

// validateLeaf returns the reasons why clients would reject a certificate.
func (c *certificate) validateLeaf(leaf *x509.Certificate) (wrong []string) {
	if period := outside(leaf); period != "" {
		wrong = append(wrong, period+", so that it is always rejected")
	}
	if c.usage == x509.ExtKeyUsageServerAuth && len(leaf.DNSNames)+len(leaf.IPAddresses) == 0 {
		wrong = append(wrong, "has no names: clients look for the server's name among its subject alternative names, and nowhere else")
	}
	if usages := leaf.ExtKeyUsage; len(usages) > 0 && !slices.Contains(usages, c.usage) && !slices.Contains(usages, x509.ExtKeyUsageAny) {
		side := "a server's"
		if c.usage == x509.ExtKeyUsageClientAuth {
			side = "a client's"
		}
		wrong = append(wrong, "is not for "+side+" use (extended key usage), so that it is always rejected")
	}
	return wrong
}

// outside says that now is not in the time that a certificate is valid in.
func outside(c *x509.Certificate) string {
	switch now := time.Now(); {
	case now.After(c.NotAfter):
		return "has expired, at " + c.NotAfter.UTC().Format(time.RFC3339)
	case now.Before(c.NotBefore):
		return "is not valid before " + c.NotBefore.UTC().Format(time.RFC3339) + " (is the clock right?)"
	}
	return ""
}

// validateCA reports a CA file that has no certificate that is valid now. Other checks
// report a file that is no CA file.
func (f *namedFile) validateCA() error {
	if f.path == "" {
		return nil
	}
	all, err := cert.CertsFromFile(f.path)
	if err != nil || slices.ContainsFunc(all, func(c *x509.Certificate) bool { return outside(c) == "" }) {
		return nil
	}
	return fmt.Errorf("%s: %s has no CA certificate that is valid now: the first one %s, so that no client could be verified; put a valid one there", f.flag, f.path, outside(all[0]))
}
