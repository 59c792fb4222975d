package scenarios

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// A certificate authenticates a user only if its extended key usage is client authentication: a server's certificate, or one without
// a usage, authenticates no user.
func TestClientCertificatesSayWhatTheyAreFor(t *testing.T) {
	needsDiscovery(t)
	s := serve(t, against, prefix())
	subject := pkix.Name{CommonName: "espalier", Organization: []string{"system:masters"}}
	for name, uses := range map[string][]x509.ExtKeyUsage{"no use": nil, "a server's": {x509.ExtKeyUsageServerAuth}} {
		c, err := s.ClientFor(subject, uses...)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(name)
		kubectlAs(t, s, c).fails([]string{loggedOut}, "get", "namespaces")
	}
	c, err := s.ClientFor(subject, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	if err != nil {
		t.Fatal(err)
	}
	kubectlAs(t, s, c).says([]string{"default"}, "get", "namespaces")
}

// The server issues no token for longer than a month, whatever the request asks for.
func TestTokensEndWithinAMonth(t *testing.T) {
	needsDiscovery(t)
	s := serve(t, against, prefix())
	admin := newKubectl(t, s)
	admin.ok("create", "serviceaccount", "robot")
	said := admin.ok("create", "token", "robot", "--duration=87600h")
	if want := "requested expiration of 315360000 seconds shortened to 2592000 seconds"; !strings.Contains(said, want) {
		t.Errorf("no %q in %s", want, said)
	}
}

// What kubectl does with a request for a certificate, from the request to the certificate.
func TestCertificateRequests(t *testing.T) {
	needsDiscovery(t)
	signer, err := launch.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := signer.Save(dir); err != nil {
		t.Fatal(err)
	}
	s := serve(t, against, prefix(), "--cluster-signing-cert-file="+filepath.Join(dir, "ca.crt"), "--cluster-signing-key-file="+filepath.Join(dir, "ca.key"))
	admin := newKubectl(t, s)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "carol"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	request := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	for _, name := range []string{"carol", "dan"} {
		admin.ok("apply", "-f", write(t, name+".yaml", fmt.Sprintf("apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {name: %s}\n"+
			"spec: {request: %s, signerName: kubernetes.io/kube-apiserver-client, expirationSeconds: 86400, usages: [client auth]}\n", name, request)))
	}
	admin.says([]string{"NAME", "AGE", "SIGNERNAME", "REQUESTOR", "REQUESTEDDURATION", "CONDITION", "kubernetes.io/kube-apiserver-client   admin       24h                 Pending"}, "get", "csr")
	admin.says([]string{"certificatesigningrequest.certificates.k8s.io/carol approved"}, "certificate", "approve", "carol")
	admin.says([]string{"certificatesigningrequest.certificates.k8s.io/dan denied"}, "certificate", "deny", "dan")
	admin.succeeds("Approved,Issued", "get", "csr", "carol")
	admin.says([]string{"Denied"}, "get", "csr", "dan")
	admin.says([]string{"-----BEGIN CERTIFICATE-----"}, "get", "csr", "carol", "-o", "go-template={{.status.certificate | base64decode}}")
	admin.fails([]string{`certificate signing request "dan" is already Denied`}, "certificate", "approve", "dan")
	admin.says([]string{"kubernetes.io/kube-apiserver-client"}, "describe", "csr", "carol")
	admin.says([]string{"carol"}, "get", "csr", "--field-selector", "spec.signerName=kubernetes.io/kube-apiserver-client")
	admin.says([]string{"FIELDS", "signerName"}, "explain", "csr.spec")
}
