package attack

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// secrets is the path that unauthenticated clients try to read.
const secrets = "/api/v1/secrets"

// strangers come without credentials, or with some that they made up.
var strangers = []Attack{{
	ID: "anonymous", What: "read all Secrets without credentials",
	Run: func(ctx context.Context, s *Site) (Result, error) { return s.asStranger(ctx, "") },
}, {
	ID: "token-alg-none", What: "authenticate with an unsigned token",
	Run: func(ctx context.Context, s *Site) (Result, error) { return s.asStranger(ctx, unsignedToken()) },
}, {
	ID: "front-proxy-headers", What: "become system:masters by the headers of a front proxy",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		return s.asStranger(ctx, "", "X-Remote-User", "admin", "X-Remote-Group", "system:masters")
	},
}, {
	ID: "own-ca", What: "authenticate with a certificate of one's own CA",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		elsewhere, err := s.foreignCertificate()
		if err != nil {
			return Result{}, err
		}
		return denied(elsewhere.Do(ctx, http.MethodGet, secrets, "", ""))
	},
}}

// denied is the result of a request that must be answered with 401 or 403.
func denied(code int, text string, err error) (Result, error) {
	switch {
	case err != nil:
		return Result{}, err
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return Refused("%d", code), nil
	case code < http.StatusMultipleChoices:
		return Succeeded("%d", code), nil
	}
	return Result{}, fmt.Errorf("unexpected answer %d: %.300s", code, text)
}

// asStranger reads Secrets without a certificate.
func (s *Site) asStranger(ctx context.Context, token string, headers ...string) (Result, error) {
	stranger, err := newClient(&rest.Config{Host: s.Server.URL, BearerToken: token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: s.Server.Config.CAData}})
	if err != nil {
		return Result{}, err
	}
	return denied(stranger.Do(ctx, http.MethodGet, secrets, "", "", headers...))
}

// unsignedToken claims to be a service account's, by the algorithm "none".
func unsignedToken() string {
	part := base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"iss":"https://kubernetes.default.svc","aud":["https://kubernetes.default.svc"],"sub":"system:serviceaccount:kube-system:default","exp":%d,`+
		`"kubernetes.io":{"namespace":"kube-system","serviceaccount":{"name":"default","uid":"1"}}}`, time.Now().Add(time.Hour).Unix())
	return part([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + part([]byte(claims)) + "."
}
