package authentication

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
	"github.com/espalier-dev/espalier/server/auth/token"
)

// frontend is an HTTP server that answers who one is, behind k8s.io/apiserver's own
// filter.
type frontend struct {
	*Authentication
	server *httptest.Server
}

// serve starts one with these options. What is in change is done to the defaults.
func serve(t testing.TB, change func(*Options)) *frontend {
	t.Helper()
	o := NewOptions()
	change(o)
	if errs := o.Validate(); len(errs) > 0 {
		t.Fatal(errors.Join(errs...))
	}
	a, err := o.Build(t.Context(), Parts{Directory: t.TempDir(), ExternalAddress: "server.example:6443", Live: accounts{"team/robot": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	who := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		u, _ := request.UserFrom(req.Context())
		for header := range req.Header {
			if header == "Authorization" || strings.HasPrefix(header, "X-Remote-") {
				http.Error(w, "the credentials have come through: "+header, http.StatusInternalServerError)
				return
			}
		}
		_ = json.NewEncoder(w).Encode(u)
	})
	failed := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	s := httptest.NewUnstartedServer(filters.WithAuthentication(who, a.Authenticator, failed, a.Audiences, a.RequestHeader))
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.StartTLS()
	t.Cleanup(s.Close)
	return &frontend{a, s}
}

// accounts are service accounts and their uids.
type accounts map[string]types.UID

func (a accounts) ServiceAccount(_ context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	uid, ok := a[namespace+"/"+name]
	if !ok {
		return nil, fmt.Errorf("no service account %s/%s", namespace, name)
	}
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid}}, nil
}

func (a accounts) Secret(context.Context, string, string) (*corev1.Secret, error) {
	return nil, errors.New("no secrets")
}

// with authenticates a request; the user is nil if that fails.
func (f *frontend) with(t testing.TB, client *http.Client, path string, headers ...string) *user.DefaultInfo {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	response, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	switch response.StatusCode {
	case http.StatusUnauthorized:
		return nil
	case http.StatusOK:
	default:
		t.Fatalf("%d: %s", response.StatusCode, body)
	}
	who := &user.DefaultInfo{}
	if err := json.Unmarshal(body, who); err != nil {
		t.Fatal(err)
	}
	return who
}

// bearing asks with a token.
func (f *frontend) bearing(t testing.TB, token string) *user.DefaultInfo {
	t.Helper()
	return f.with(t, f.server.Client(), "/apis", "Authorization", "Bearer "+token)
}

// refuses fails the test if the request is authenticated.
func (f *frontend) refuses(t testing.TB, token string) {
	t.Helper()
	if who := f.bearing(t, token); who != nil {
		t.Errorf("accepted as %+v", who)
	}
}

// knows fails the test unless the token is this user's.
func (f *frontend) knows(t testing.TB, token, name string, groups ...string) {
	t.Helper()
	who := f.bearing(t, token)
	if who == nil {
		t.Fatalf("%s is refused", name)
	}
	if want := append(groups, user.AllAuthenticated); who.Name != name || !slices.Equal(who.Groups, want) {
		t.Errorf("got %s of %q, want %s of %q", who.Name, who.Groups, name, want)
	}
}

// reload looks at all files, once.
func (f *frontend) reload(t testing.TB) {
	t.Helper()
	for _, reload := range f.reloads {
		reload(t.Context())
	}
}

// client has a certificate.
func (f *frontend) client(t testing.TB, certificate, key []byte) *http.Client {
	t.Helper()
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	transport := f.server.Client().Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// eventually waits for a condition that comes from elsewhere.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within half a minute: %s", what)
		}
	}
}

// clientCA is a CA and its file for --client-ca-file.
func clientCA(t testing.TB) (*certtest.CA, string) {
	t.Helper()
	ca := certtest.New(t, time.Hour)
	return ca, certtest.File(t, "ca.pem", ca.PEM())
}

func issue(t testing.TB, issuer *token.Issuer, name string, uid types.UID) string {
	t.Helper()
	issued, err := issuer.Issue(token.Order{
		Account:   &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: uid}},
		Audiences: []string{DefaultIssuer}, Lifetime: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	return issued.Token
}
