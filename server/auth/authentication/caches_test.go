package authentication

import (
	"context"
	"encoding/base64"
	"errors"
	"testing"
	"time"

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
