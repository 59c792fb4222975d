package scenarios

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// soon is how long the tests about users wait for what the server does by itself.
const soon = 30 * time.Second

// loggedOut is what kubectl prints about an answer of 401.
const loggedOut = "error: You must be logged in to the server (the server has asked for the client to provide credentials)"

// kubectlAs is kubectl with a kubeconfig of a user's own.
func kubectlAs(t *testing.T, s *launch.Server, c *rest.Config) *kubectl {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["server"] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{ClientCertificateData: c.CertData, ClientKeyData: c.KeyData, Token: c.BearerToken}
	config.Contexts["default"] = &clientcmdapi.Context{Cluster: "server", AuthInfo: "user"}
	config.CurrentContext = "default"
	own := *s
	own.Config, own.Kubeconfig = c, filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, own.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	return newKubectl(t, &own)
}

// in returns kubectl for a subtest.
func (k *kubectl) in(t *testing.T) *kubectl { return &kubectl{t, k.server, k.home} }

// person is kubectl of a user with a certificate.
func person(t *testing.T, s *launch.Server, name string, groups ...string) *kubectl {
	t.Helper()
	c, err := s.Client(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return kubectlAs(t, s, c)
}

// bearing is the configuration of a client that has nothing but a token.
func bearing(s *launch.Server, token string) *rest.Config {
	return &rest.Config{Host: s.URL, QPS: -1, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: s.Config.CAData}}
}

// typedClient is client-go for a configuration.
func typedClient(t *testing.T, c *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// can asks `kubectl auth can-i`, whose exit code is the answer, too.
func (k *kubectl) can(want bool, args ...string) {
	k.t.Helper()
	args = append([]string{"auth", "can-i"}, args...)
	out, code := k.do(args...)
	answer, wantCode := "no", 1
	if want {
		answer, wantCode = "yes", 0
	}
	if code != wantCode || !strings.HasPrefix(out, answer) {
		k.t.Errorf("kubectl %s: %q and exit code %d, not %q and %d", strings.Join(args, " "), out, code, answer, wantCode)
	}
}

// succeeds repeats a command until it does what it is to do, such as after roles or files have changed.
func (k *kubectl) succeeds(want string, args ...string) {
	k.t.Helper()
	k.turns(0, want, args...)
}

// turns repeats a command until it has an exit code and prints what is wanted.
func (k *kubectl) turns(code int, want string, args ...string) {
	k.t.Helper()
	var out string
	var got int
	for deadline := time.Now().Add(soon); ; time.Sleep(20 * time.Millisecond) {
		if out, got = k.do(args...); got == code && strings.Contains(out, want) {
			return
		}
		if time.Now().After(deadline) {
			k.t.Fatalf("kubectl %s: exit code %d, not %d with %q\n%s", strings.Join(args, " "), got, code, want, out)
		}
	}
}

// A stranger has nothing but what the test puts into the headers.
type stranger struct {
	t      *testing.T
	client *http.Client
	base   string
}

func newStranger(t *testing.T, s *launch.Server) *stranger {
	t.Helper()
	client, err := rest.HTTPClientFor(bearing(s, ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return &stranger{t, client, s.URL}
}

// ask sends a request with headers, which are names and values in turn.
func (s *stranger) ask(method, path, body string, headers ...string) (int, string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), soon)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", jsonType)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// as asks who has a token: the status, and the name if there is one.
func (s *stranger) as(token string) (int, string) {
	s.t.Helper()
	code, answer := s.ask(http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`,
		"Authorization", "Bearer "+token)
	var review struct {
		Status struct{ UserInfo struct{ Username string } }
	}
	if code == http.StatusCreated {
		decode(s.t, []byte(answer), &review)
	}
	return code, review.Status.UserInfo.Username
}

// known demands that a token authenticates a user.
func (s *stranger) known(token, name string) {
	s.t.Helper()
	if code, got := s.as(token); code != http.StatusCreated || got != name {
		s.t.Errorf("the token of %s: %d, %q", name, code, got)
	}
}

// refused demands that the server rejects a token, at once.
func (s *stranger) refused(what, token string) {
	s.t.Helper()
	if code, got := s.as(token); code != http.StatusUnauthorized {
		s.t.Errorf("%s: %d, %q", what, code, got)
	}
}

// A signer signs tokens with ES256, and has its key in files.
type signer struct {
	t               *testing.T
	key             *ecdsa.PrivateKey
	private, public string // files
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	file := func(kind string, der []byte) string {
		return write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
	}
	return &signer{t, key, file("EC PRIVATE KEY", private), file("PUBLIC KEY", public)}
}

// claims are what a token says.
type claims map[string]any

// but returns the claims with some of them changed, and without those that are nil.
func (c claims) but(others claims) claims {
	changed := maps.Clone(c)
	maps.Copy(changed, others)
	maps.DeleteFunc(changed, func(_ string, value any) bool { return value == nil })
	return changed
}

// sign makes a token.
func (s *signer) sign(header, body claims) string {
	s.t.Helper()
	signed := tokenPart(s.t, header) + "." + tokenPart(s.t, body)
	sum := sha256.Sum256([]byte(signed))
	r, v, err := ecdsa.Sign(rand.Reader, s.key, sum[:])
	if err != nil {
		s.t.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	v.FillBytes(signature[32:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// jwk is the public key as JSON.
func (s *signer) jwk(id string) claims {
	s.t.Helper()
	point, err := s.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		s.t.Fatal(err)
	}
	return claims{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": id,
		"x": base64.RawURLEncoding.EncodeToString(point[1:33]), "y": base64.RawURLEncoding.EncodeToString(point[33:])}
}

func tokenPart(t *testing.T, c claims) string {
	t.Helper()
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// tokenParts takes a token apart: header and body.
func tokenParts(t *testing.T, token string) (header, body claims) {
	t.Helper()
	pieces := strings.Split(token, ".")
	if len(pieces) != 3 {
		t.Fatalf("a token of %d parts: %q", len(pieces), token)
	}
	for i, into := range []*claims{&header, &body} {
		data, err := base64.RawURLEncoding.DecodeString(pieces[i])
		if err != nil {
			t.Fatal(err)
		}
		decode(t, data, into)
	}
	return header, body
}

// signedBy verifies a token with a public key that is given as JSON.
func signedBy(t *testing.T, token string, jwk map[string]string) bool {
	t.Helper()
	signed, last, _ := cutLast(token, ".")
	signature, err := base64.RawURLEncoding.DecodeString(last)
	if err != nil || len(signature) != 64 {
		t.Fatalf("a signature of %d bytes: %v", len(signature), err)
	}
	point := []byte{4}
	for _, name := range []string{"x", "y"} {
		coordinate, err := base64.RawURLEncoding.DecodeString(jwk[name])
		if err != nil {
			t.Fatal(err)
		}
		point = append(point, coordinate...)
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(signed))
	return ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:]))
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}

// tampered changes a bit of a token's signature.
func tampered(token string) string {
	before, signature, _ := cutLast(token, ".")
	first := byte('A')
	if signature[0] == first {
		first = 'B'
	}
	return before + "." + string(first) + signature[1:]
}

// certificateOf is a test server's certificate as PEM.
func certificateOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// swapFile puts a new content in the place of a file's, as a whole.
func swapFile(t *testing.T, path, text string) {
	t.Helper()
	next := path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// indented is a text as a YAML block.
func indented(text, indent string) string {
	return indent + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+indent)
}

// boatIn is a boat for kubectl to create.
func boatIn(namespace, name, owner string) string {
	return fmt.Sprintf(`{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{"name":%q,"namespace":%q},"spec":{"owner":%q}}`, name, namespace, owner)
}
