package attack

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
)

// auth are attempts to act as another user, or to use credentials for longer than allowed.
var auth = []Attack{{
	ID: "C10-server-certificate", What: "authenticate with a server certificate of the client CA",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		return s.withCertificate(ctx, x509.ExtKeyUsageServerAuth)
	},
}, {
	ID: "C10-certificate-without-usage", What: "authenticate with a server certificate that does not say what it is for",
	Run: func(ctx context.Context, s *Site) (Result, error) { return s.withCertificate(ctx) },
}, {
	ID: "token-overlong", What: "get a service account token for ten years",
	Run: overlongToken,
}, {
	ID: "csr-masters", What: "request a client certificate for system:masters",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		user, err := s.csrUser(ctx)
		if err != nil {
			return Result{}, err
		}
		_, code, text, err := s.requestCSR(ctx, user, pkix.Name{CommonName: "mallory", Organization: []string{"system:masters"}})
		return denied(code, text, err)
	},
}, {
	ID: "csr-masters-apply", What: "request a client certificate for system:masters by apply",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		user, err := s.csrUser(ctx)
		if err != nil {
			return Result{}, err
		}
		name, body, err := s.csrOf(pkix.Name{CommonName: "mallory", Organization: []string{"system:masters"}})
		if err != nil {
			return Result{}, err
		}
		return denied(user.Do(ctx, http.MethodPatch, requestsPath+"/"+name+"?fieldManager=mallory", "application/apply-patch+yaml", body))
	},
}, {
	ID: "csr-approve", What: "approve one's own CertificateSigningRequest without the right to approve the signer",
	Run: func(ctx context.Context, s *Site) (Result, error) { return s.approveOwn(ctx, "/approval") },
}, {
	ID: "csr-approve-by-status", What: "approve one's own CertificateSigningRequest through its status",
	Run: func(ctx context.Context, s *Site) (Result, error) { return s.approveOwn(ctx, "/status") },
}, {
	ID: "csr-approve-by-update", What: "approve one's own CertificateSigningRequest by a patch of the whole object",
	Run: func(ctx context.Context, s *Site) (Result, error) { return s.approveOwn(ctx, "") },
}}

// withCertificate reads Secrets with a certificate of an administrator's name that is not for clients.
func (s *Site) withCertificate(ctx context.Context, uses ...x509.ExtKeyUsage) (Result, error) {
	config, err := s.Server.ClientFor(pkix.Name{CommonName: "espalier", Organization: []string{"system:masters"}}, uses...)
	if err != nil {
		return Result{}, err
	}
	client, err := newClient(config)
	if err != nil {
		return Result{}, err
	}
	return denied(client.Do(ctx, http.MethodGet, secrets, "", ""))
}

// overlongToken looks at how long the token lives that is issued.
func overlongToken(ctx context.Context, s *Site) (Result, error) {
	namespace, err := s.Namespace(ctx)
	if err != nil {
		return Result{}, err
	}
	user, err := s.UserWith(ctx, "tokens", namespace, rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"serviceaccounts", "serviceaccounts/token"}})
	if err != nil {
		return Result{}, err
	}
	accounts := "/api/v1/namespaces/" + namespace + "/serviceaccounts"
	if _, err := user.Must(ctx, http.MethodPost, accounts, "application/json", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"robot"}}`); err != nil {
		return Result{}, err
	}
	const years = 10 * 365 * 24 * 3600
	text, err := user.Must(ctx, http.MethodPost, accounts+"/robot/token", "application/json",
		fmt.Sprintf(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":%d}}`, years))
	if err != nil {
		return Result{}, err
	}
	var answer struct{ Status struct{ Token string } }
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return Result{}, err
	}
	parts := strings.Split(answer.Status.Token, ".")
	if len(parts) != 3 {
		return Result{}, fmt.Errorf("no token in %.300s", text)
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Result{}, err
	}
	var claims struct{ Exp, Iat int64 }
	if err := json.Unmarshal(payload, &claims); err != nil {
		return Result{}, err
	}
	lives := time.Duration(claims.Exp-claims.Iat) * time.Second
	if lives > 366*24*time.Hour {
		return Succeeded("valid for %d days", lives/(24*time.Hour)), nil
	}
	return Refused("shortened to %d days", lives/(24*time.Hour)), nil
}

const requestsPath = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

// csrUser returns a user who may write CertificateSigningRequests with all subresources, and has no right to any signer.
func (s *Site) csrUser(ctx context.Context) (*Client, error) {
	return s.UserWith(ctx, "requester", "", rbacv1.PolicyRule{
		Verbs: []string{"create", "get", "update", "patch"}, APIGroups: []string{"certificates.k8s.io"},
		Resources: []string{"certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status"},
	})
}

// csrOf is a CertificateSigningRequest.
func (s *Site) csrOf(subject pkix.Name) (name, body string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		return "", "", err
	}
	name = s.Name("csr")
	return name, fmt.Sprintf(`{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":%q},"spec":{"request":%q,`+
		`"signerName":"kubernetes.io/kube-apiserver-client","usages":["client auth"]}}`, name, base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))), nil
}

// requestCSR creates a CertificateSigningRequest.
func (s *Site) requestCSR(ctx context.Context, user *Client, subject pkix.Name) (name string, code int, text string, err error) {
	name, body, err := s.csrOf(subject)
	if err != nil {
		return "", 0, "", err
	}
	code, text, err = user.Do(ctx, http.MethodPost, requestsPath, "application/json", body)
	return name, code, text, err
}

// approveOwn adds the condition Approved to a request of one's own, and looks whether it is there.
func (s *Site) approveOwn(ctx context.Context, subresource string) (Result, error) {
	user, err := s.csrUser(ctx)
	if err != nil {
		return Result{}, err
	}
	name, code, text, err := s.requestCSR(ctx, user, pkix.Name{CommonName: "mallory"})
	if err != nil || code != http.StatusCreated {
		return Result{}, fmt.Errorf("the request was not created: %d: %.300s: %w", code, text, err)
	}
	code, _, err = user.Do(ctx, http.MethodPatch, requestsPath+"/"+name+subresource, "application/merge-patch+json",
		`{"status":{"conditions":[{"type":"Approved","status":"True","reason":"Mine","message":"mine"}]}}`)
	if err != nil {
		return Result{}, err
	}
	after, err := s.admin.Must(ctx, http.MethodGet, requestsPath+"/"+name, "", "")
	if err != nil {
		return Result{}, err
	}
	if strings.Contains(after, `"Approved"`) {
		return Succeeded("%d, and it is approved", code), nil
	}
	return Refused("%d, and it is not approved", code), nil
}
