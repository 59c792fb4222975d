package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
)

// A right to write bundles is no right to write those of a signer.
func TestTrustBundlesNeedAttest(t *testing.T) {
	t.Parallel()
	r := start(t, func(o *server.Options) { o.Kinds = server.KindsAll })
	write := rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"clustertrustbundles"}}
	attest := func(name string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{"attest"}, APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, ResourceNames: []string{name}}
	}
	r.grant(t, "writers", write)
	r.grant(t, "one", attest("example.com/a"), write)
	r.grant(t, "domain", attest("example.com/*"), write)
	first, second := string(certtest.New(t, time.Hour).PEM()), string(certtest.New(t, time.Hour).PEM())
	const path = "/apis/certificates.k8s.io/v1/clustertrustbundles"
	body := func(name, signer, bundle string) string {
		return fmt.Sprintf(`{"apiVersion":"certificates.k8s.io/v1","kind":"ClusterTrustBundle","metadata":{"name":%q},"spec":{"signerName":%q,"trustBundle":%q}}`, name, signer, bundle)
	}
	try := func(group, method, path, body string, code int, text string) {
		t.Helper()
		tryAs(t, r, group, method, path, body, code, text)
	}
	no := func(signer string) string {
		return fmt.Sprintf(`is forbidden: user not permitted to attest for signerName \"%s\"`, signer)
	}
	try("writers", "POST", path, body("plain", "", first), 201, "")
	try("writers", "POST", path, body("example.com:a:x", "example.com/a", first), 403, no("example.com/a"))
	try("one", "POST", path, body("example.com:b:x", "example.com/b", first), 403, no("example.com/b"))
	try("one", "POST", path, body("example.com:a:x", "example.com/a", first), 201, "")
	try("domain", "POST", path, body("example.com:b:x", "example.com/b", first), 201, "")
	try("domain", "POST", path, body("example.org:b:x", "example.org/b", first), 403, no("example.org/b"))

	change := fmt.Sprintf(`{"spec":{"trustBundle":%q}}`, second)
	try("writers", "PATCH", path+"/plain", change, 200, "")
	try("writers", "PATCH", path+"/example.com:a:x", change, 403, no("example.com/a"))
	try("writers", "PATCH", path+"/example.com:a:x", `{"metadata":{"labels":{"a":"b"}}}`, 403, no("example.com/a"))
	try("writers", "PATCH", path+"/example.com:a:x", `{"metadata":{"finalizers":["example.com/f"]}}`, 200, "")
	try("writers", "PATCH", path+"/example.com:a:x", `{"metadata":{"finalizers":null}}`, 200, "")
	try("one", "PATCH", path+"/example.com:a:x", change, 200, "")
	try("writers", "DELETE", path+"/example.com:a:x", "", 200, "")
}

// tryAs sends a request as a member of a group.
func tryAs(t *testing.T, r *running, group, method, path, body string, code int, text string) {
	t.Helper()
	media := "application/json"
	if method == "PATCH" {
		media = "application/merge-patch+json"
	}
	got, answer := send(t, r.member(t, group), method, r.url+path, media, body)
	if got != code || !strings.Contains(answer, text) {
		t.Errorf("%s %s by %s: %d, not %d with %q: %s", method, path, group, got, code, text, answer)
	}
}

// A right to write the status of requests is no right to sign for every signer.
func TestPodCertificateRequestsNeedSign(t *testing.T) {
	t.Parallel()
	r := start(t, func(o *server.Options) { o.Kinds = server.KindsAll })
	write := rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"podcertificaterequests", "podcertificaterequests/status"}}
	sign := rbacv1.PolicyRule{Verbs: []string{"sign"}, APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, ResourceNames: []string{"example.com/signer"}}
	r.grant(t, "writers", write)
	r.grant(t, "signers", sign, write)
	const (
		path   = "/apis/certificates.k8s.io/v1/namespaces/default/podcertificaterequests"
		denied = `{"status":{"conditions":[{"type":"Denied","status":"True","reason":"r","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	)
	tryAs(t, r, "writers", "POST", path, podRequest(t), 201, "")
	tryAs(t, r, "writers", "PATCH", path+"/pc/status", strings.Replace(denied, "Denied", "Wrong", 1), 422, "Unsupported value")
	tryAs(t, r, "writers", "PATCH", path+"/pc/status", denied, 422,
		`PodCertificateRequest.certificates.k8s.io \"pc\" is invalid: spec.signerName: Forbidden: User \"alice\" is not permitted to \"sign\" for signer \"example.com/signer\"`)
	tryAs(t, r, "writers", "PATCH", path+"/pc/status", `{"status":{}}`, 200, "")
	tryAs(t, r, "signers", "PATCH", path+"/pc/status", denied, 200, "")
}

// podRequest is a request for a certificate of a pod.
func podRequest(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	stub, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"apiVersion":"certificates.k8s.io/v1","kind":"PodCertificateRequest","metadata":{"name":"pc"},"spec":{"signerName":"example.com/signer",
		"podName":"web","podUID":"u","serviceAccountName":"robot","serviceAccountUID":"v","nodeName":"node","nodeUID":"w","stubPKCS10Request":%q}}`,
		base64.StdEncoding.EncodeToString(stub))
}
