package kinds

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
)

// trustAnchors complains about text that is not CA certificates, each once.
func trustAnchors(s string) []string {
	found := map[string]int{}
	rest := []byte(s)
	var texts []string
	for i := 0; ; i++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		before, twice := found[string(block.Bytes)]
		found[string(block.Bytes)] = i
		switch {
		case block.Type != "CERTIFICATE":
			texts = append(texts, fmt.Sprintf("entry %d has bad block type: %s", i, block.Type))
		case len(block.Headers) > 0:
			texts = append(texts, fmt.Sprintf("entry %d has PEM block headers", i))
		case err != nil:
			texts = append(texts, fmt.Sprintf("entry %d does not parse as X.509", i))
		case !cert.IsCA:
			texts = append(texts, fmt.Sprintf("entry %d does not have the CA bit set", i))
		case twice:
			texts = append(texts, fmt.Sprintf("duplicate trust anchor (indices [%d %d])", before, i))
		}
	}
	if len(found) == 0 {
		return []string{"at least one trust anchor must be provided"}
	}
	return texts
}

// certificates complains about text that has no certificate, or another block.
func certificates(s string) []string {
	rest := []byte(s)
	for i := 0; ; i++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if i == 0 {
				return []string{"issued certificate chain must contain at least one certificate"}
			}
			return nil
		}
		if _, err := x509.ParseCertificate(block.Bytes); block.Type != "CERTIFICATE" || err != nil {
			return []string{"issued certificate chain must consist entirely of CERTIFICATE PEM blocks"}
		}
	}
}

// pkcs10 complains about base64 that is not a signed request for a certificate.
func pkcs10(s string) []string {
	der, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return []string{"must be a valid PKCS#10 CSR"}
	}
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return []string{"must be a valid PKCS#10 CSR"}
	}
	if err := request.CheckSignature(); err != nil {
		return []string{"must be a validly-signed PKCS#10 CSR"}
	}
	return nil
}
