package authentication

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
)

// A certificate is verified once: all requests with it share a response.
func TestCertificateIsVerifiedOnce(t *testing.T) {
	ca := certtest.New(t, time.Hour)
	c := newCertificates(trusting(ca.Certificate))
	leaf := ca.Leaf(t, "alice", time.Minute)
	first, ok, err := c.AuthenticateRequest(requestWith(leaf))
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if again, ok, err := c.AuthenticateRequest(requestWith(leaf)); again != first || !ok || err != nil {
		t.Errorf("verified again: %v, %v", ok, err)
	}
}

func jwtOf(payload string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

func TestExpired(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, test := range []struct {
		name, token string
		want        bool
	}{
		{"earlier", jwtOf(`{"exp":999}`), true},
		{"a part of a second earlier", jwtOf(`{"exp":999.5}`), true},
		{"now", jwtOf(`{"exp":1000}`), false},
		{"later", jwtOf(`{"exp":1001}`), false},
		{"no expiry", jwtOf(`{}`), false},
		{"expiry of zero", jwtOf(`{"exp":0}`), false},
		{"no number", jwtOf(`{"exp":"1"}`), false},
		{"no JSON", jwtOf(`{`), false},
		{"not encoded", "a.!.c", false},
		{"two parts", "a.b", false},
		{"four parts", jwtOf(`{"exp":999}`) + ".d", false},
	} {
		if got := expired(test.token, now); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}

// A token that expires while its verification is cached authenticates no user.
func TestUnexpired(t *testing.T) {
	failure := errors.New("no answer")
	response := &authenticator.Response{User: &user.DefaultInfo{Name: "alice"}}
	late, good := jwtOf(`{"exp":1}`), jwtOf(`{"exp":99999999999}`)
	for _, test := range []struct {
		name, token string
		known       bool
		err         error
		ok          bool
		want        string
	}{
		{"good", good, true, nil, true, ""},
		{"expired", late, true, nil, false, "the token has expired"},
		{"unknown", late, false, nil, false, ""},
		{"failed", late, true, failure, true, "no answer"},
	} {
		inner := authenticator.TokenFunc(func(context.Context, string) (*authenticator.Response, bool, error) {
			return response, test.known, test.err
		})
		got, ok, err := unexpired{inner}.AuthenticateToken(t.Context(), test.token)
		if ok != test.ok || (err == nil) != (test.want == "") || err != nil && err.Error() != test.want || test.name == "expired" && got != nil {
			t.Errorf("%s: %v %t %v", test.name, got, ok, err)
		}
	}
}

// Only users who are authenticated are in the group of those.
func TestAuthenticatedGroup(t *testing.T) {
	response := &authenticator.Response{User: &user.DefaultInfo{Name: "alice", UID: "1", Groups: []string{"system:unauthenticated", "a", "system:authenticated"}}}
	got, ok, err := withAuthenticatedGroup(response, true, nil)
	if groups := got.User.GetGroups(); !ok || err != nil || len(groups) != 2 || groups[0] != "a" || groups[1] != "system:authenticated" || got.User.GetName() != "alice" || got.User.GetUID() != "1" {
		t.Errorf("%v %t %v", got.User, ok, err)
	}
	if got, ok, err := withAuthenticatedGroup(response, false, nil); got != nil || ok || err != nil {
		t.Errorf("not authenticated: %v %t %v", got, ok, err)
	}
	failure := errors.New("failed")
	if got, ok, err := withAuthenticatedGroup(response, true, failure); got != nil || ok || !errors.Is(err, failure) {
		t.Errorf("failed: %v %t %v", got, ok, err)
	}
}

// A file that has not changed starts no providers anew, and one that is wrong is tried
// again after a while only.
func TestUnchangedConfigurationIsKept(t *testing.T) {
	path := certtest.File(t, "config.yaml", configuration("v1", newProvider(t, newECKey(t, "a"))))
	p, err := newProviders(t.Context(), path, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	first := p.current.Load()
	if p.reload(t.Context()); p.current.Load() != first || !p.retryAt.IsZero() {
		t.Error("providers are started anew")
	}
	replace(t, path, []byte("kind: nonsense"))
	before := time.Now()
	p.reload(t.Context())
	at := p.retryAt
	if p.current.Load() != first || at.Before(before.Add(retryPeriod)) || at.After(time.Now().Add(retryPeriod)) {
		t.Errorf("to be tried again in %v", at.Sub(before))
	}
	if p.reload(t.Context()); p.retryAt != at {
		t.Error("tried again at once")
	}
	p.retryAt = before
	if p.reload(t.Context()); !p.retryAt.After(before) {
		t.Error("not tried again")
	}
	replace(t, path, []byte("kind: other nonsense"))
	at = p.retryAt
	if p.reload(t.Context()); !p.retryAt.After(at) {
		t.Error("another content is not tried")
	}
}

// An error is logged once, and again after it was gone.
func TestComplaint(t *testing.T) {
	var c complaint
	for _, test := range []struct {
		err  error
		last string
	}{{errors.New("a"), "a"}, {errors.New("a"), "a"}, {errors.New("b"), "b"}, {nil, ""}} {
		if c.log(test.err, "Failed to test"); c.last != test.last {
			t.Errorf("%v: the last one is %q", test.err, c.last)
		}
	}
}

// A provider that cannot be started is an error, and is not left out.
func TestProvidersThatCannotBeStarted(t *testing.T) {
	p := &providers{lifetime: t.Context()}
	broken := apiserver.JWTAuthenticator{Issuer: apiserver.Issuer{URL: "https://a.example", Audiences: []string{"a"}, CertificateAuthority: "nonsense"}}
	nameless := apiserver.JWTAuthenticator{}
	g, err := p.start(&apiserver.AuthenticationConfiguration{JWT: []apiserver.JWTAuthenticator{broken, nameless}}, [32]byte{})
	if g != nil || err == nil || !strings.Contains(err.Error(), "jwt[0].issuer.certificateAuthority: ") || !strings.Contains(err.Error(), "jwt[1]: ") {
		t.Errorf("%v, %v", g, err)
	}
}

// Providers that do not answer take the place of no others.
func TestProvidersThatDoNotAnswer(t *testing.T) {
	up, down := newProvider(t, newECKey(t, "a")), newProvider(t, newECKey(t, "b"))
	path := certtest.File(t, "config.yaml", configuration("v1", up))
	p, err := newProviders(t.Context(), path, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	first := p.current.Load()
	down.Close()
	replace(t, path, configuration("v1", up, down))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	config, source, err := loadConfiguration(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.replace(ctx, config, source); !errors.Is(err, context.DeadlineExceeded) || p.current.Load() != first {
		t.Errorf("got %v", err)
	}
	// The error of the former attempt does not count once all have answered.
	g := &generation{checks: []func() error{func() error { return nil }}}
	late := 0
	g.checks = append(g.checks, func() error {
		if late++; late < 2 {
			return errors.New("not yet")
		}
		return nil
	})
	if err := g.await(t.Context()); err != nil || late != 2 {
		t.Errorf("after %d attempts: %v", late, err)
	}
}

// A certificate of the proxies' CA that is not for clients makes its owner no proxy.
func TestProxyMustBeAClient(t *testing.T) {
	ca := certtest.New(t, time.Hour)
	asked := 0
	proxy := fromClients(authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		asked++
		return &authenticator.Response{}, true, nil
	}))
	for _, req := range []*http.Request{{}, requestWith(), requestWith(ca.For(t, "proxy", x509.ExtKeyUsageServerAuth)), requestWith(ca.For(t, "proxy"))} {
		if response, ok, err := proxy.AuthenticateRequest(req); response != nil || ok || err != nil || asked != 0 {
			t.Errorf("%v, %t, %v", response, ok, err)
		}
	}
	if _, ok, err := proxy.AuthenticateRequest(requestWith(ca.For(t, "proxy", x509.ExtKeyUsageClientAuth))); !ok || err != nil || asked != 1 {
		t.Errorf("a client: %t, %v", ok, err)
	}
}

// A verification with CAs that have been replaced meanwhile is not cached.
func TestVerificationWithFormerCAsIsForgotten(t *testing.T) {
	former, later := certtest.New(t, time.Hour), certtest.New(t, time.Hour)
	trusted := trusting(former.Certificate)
	options, _ := trusted.VerifyOptions()
	c := newCertificates(trusted)
	leaf := former.Leaf(t, "alice", time.Hour)
	entry := verified{response: &authenticator.Response{}, until: time.Now().Add(time.Hour)}
	trusted.trust(later.Certificate)
	if c.remember(leaf, options.Roots, entry, time.Now()); len(c.known) != 0 {
		t.Error("cached with other CAs")
	}
	trusted.options.Store(nil)
	if c.remember(leaf, nil, entry, time.Now()); len(c.known) != 0 {
		t.Error("cached without CAs")
	}
	// From the moment of its expiry on, an entry does not count.
	at := time.Now()
	c.roots, c.known = options.Roots, map[string]verified{string(leaf.Raw): {response: entry.response, until: at}}
	if c.recall(leaf, options.Roots, at.Add(-1)) == nil || c.recall(leaf, options.Roots, at) != nil || c.recall(leaf, nil, at.Add(-1)) != nil {
		t.Error("the expiry does not count")
	}
}

// The token file is kept if the new one cannot be read.
func TestTokenFileThatGoes(t *testing.T) {
	path := certtest.File(t, "tokens.csv", []byte("secret,carol,7\n"))
	f, err := newTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	first := f.current.Load()
	if f.reload(t.Context()); f.current.Load() != first || f.complaint.last != "" {
		t.Errorf("read again without a change: %s", f.complaint.last)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if f.reload(t.Context()); f.current.Load() != first || !strings.Contains(f.complaint.last, "no such file") {
		t.Errorf("complains %q", f.complaint.last)
	}
	replace(t, path, []byte("other,dan,8\n"))
	if f.reload(t.Context()); f.current.Load() == first || f.complaint.last != "" {
		t.Errorf("complains %q", f.complaint.last)
	}
	if _, err := newTokens(path + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
