package certificates

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/espalier-dev/espalier/crd/rules"
)

const (
	// backdate is how long ago certificates begin: clocks differ.
	backdate = 5 * time.Minute
	// short certificates are not shortened by backdate at their end.
	short = 8 * time.Hour
	// minDuration is the least that can be asked for.
	minDuration = 10 * time.Minute
)

// errUnfit marks requests that no attempt can sign.
var errUnfit = errors.New("the request cannot be signed")

// errMasters is about a group that no approval can give.
var errMasters = fmt.Errorf("use of %s signer with %s group is not allowed", certificatesv1.KubeAPIServerClientSignerName, user.SystemPrivilegedGroup)

// sign makes the certificate that a request asks for, as PEM. The names are those of
// the request, the rest is ours: no extension is taken over.
func (c *signer) sign(spec *certificatesv1.CertificateSigningRequestSpec, longest time.Duration, now time.Time) ([]byte, error) {
	if err := clientUsages(spec.Usages); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnfit, err)
	}
	parsed, err := rules.ParseCSR(spec.Request)
	if err == nil {
		err = parsed.CheckSignature()
	}
	if err == nil && slices.Contains(parsed.Subject.Organization, user.SystemPrivilegedGroup) {
		err = errMasters // the check at creation was bypassed: the request was written into etcd directly
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnfit, err)
	}
	if !now.Before(c.cert.NotAfter) {
		return nil, fmt.Errorf("the CA has expired, at %s", c.cert.NotAfter.UTC().Format(time.RFC3339))
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: parsed.Subject, BasicConstraintsValid: true,
		DNSNames: parsed.DNSNames, IPAddresses: parsed.IPAddresses, EmailAddresses: parsed.EmailAddresses, URIs: parsed.URIs,
		KeyUsage: keyUsage(spec.Usages), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotBefore: now.Add(-backdate), NotAfter: end(spec, longest, now),
	}
	if template.NotAfter.After(c.cert.NotAfter) {
		template.NotAfter = c.cert.NotAfter
	}
	der, err := c.issue(template, parsed.PublicKey)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// issue makes a certificate. If that fails, and the CA can sign one that has nothing of
// the request, it is the request that is unfit: it would fail each time.
func (c *signer) issue(template *x509.Certificate, key crypto.PublicKey) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, c.cert, key, c.key)
	if err == nil {
		return der, nil
	}
	bare := &x509.Certificate{SerialNumber: template.SerialNumber, NotBefore: template.NotBefore, NotAfter: template.NotAfter}
	if _, failed := x509.CreateCertificate(rand.Reader, bare, c.cert, c.key.Public(), c.key); failed == nil {
		err = fmt.Errorf("%w: %w", errUnfit, err)
	}
	return nil, err
}

// end is when a certificate expires: as asked for, within bounds.
func end(spec *certificatesv1.CertificateSigningRequestSpec, longest time.Duration, now time.Time) time.Time {
	d := longest
	if s := spec.ExpirationSeconds; s != nil {
		d = min(max(time.Duration(*s)*time.Second, minDuration), longest)
	}
	if d < short {
		return now.Add(d)
	}
	return now.Add(d - backdate)
}

// clientUsages refuses what a client of the API does not need.
func clientUsages(usages []certificatesv1.KeyUsage) error {
	for _, u := range usages {
		if u != certificatesv1.UsageDigitalSignature && u != certificatesv1.UsageKeyEncipherment && u != certificatesv1.UsageClientAuth {
			return fmt.Errorf("invalid usage for client certificate: %s", u)
		}
	}
	if !slices.Contains(usages, certificatesv1.UsageClientAuth) {
		return fmt.Errorf("missing required usage for client certificate: %s", certificatesv1.UsageClientAuth)
	}
	return nil
}

func keyUsage(usages []certificatesv1.KeyUsage) (usage x509.KeyUsage) {
	if slices.Contains(usages, certificatesv1.UsageDigitalSignature) {
		usage |= x509.KeyUsageDigitalSignature
	}
	if slices.Contains(usages, certificatesv1.UsageKeyEncipherment) {
		usage |= x509.KeyUsageKeyEncipherment
	}
	return usage
}
