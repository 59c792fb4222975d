package authentication

import (
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server/auth/token"
)

// user returns the name of the user of the server that a token is of; empty if it is of none.
func (f *frontend) user(t *testing.T, token string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	response, ok, err := f.Users.AuthenticateRequest(req)
	if err != nil || !ok {
		return ""
	}
	return response.User.GetName()
}

// Users of the server are those whose tokens are for it. Service accounts are none, also
// if a webhook knows them, and the webhook does not see their tokens.
func TestUsers(t *testing.T) {
	r, path := newReviewer(t, "v1")
	f := serve(t, func(o *Options) { o.Webhook.ConfigFile, o.Webhook.Version = path, "v1" })
	if name := f.user(t, "magic-merlin"); name != "merlin" {
		t.Errorf("a user is %q", name)
	}
	if name := f.user(t, "magic-elsewhere"); name != "" {
		t.Errorf("a token for another audience is %q", name)
	}
	if name := f.user(t, "magic-system:serviceaccount:team:robot"); name != "" {
		t.Errorf("a service account that a webhook vouches for is %q", name)
	}
	n := r.asked.Load()
	if name := f.user(t, issue(t, f.Issuer, "robot", "1")); name != "" {
		t.Errorf("a service account is %q", name)
	}
	if r.asked.Load() != n {
		t.Error("the webhook has seen the token of a service account")
	}
}

// Signed finds tokens where authenticators do, and leaves them to these.
func TestSigned(t *testing.T) {
	_, file := clientCA(t)
	f := serve(t, func(o *Options) { o.ClientCAFile = file })
	const path = "/clusters/one"
	live := accounts{"team/robot": "1"}
	part, err := f.Part(Part{Path: path, Live: live})
	if err != nil {
		t.Fatal(err)
	}
	good := partToken(t, part.Issuer)
	for what, headers := range map[string]http.Header{
		"a bearer":   {"Authorization": {"Bearer " + good}},
		"lower case": {"Authorization": {"bearer " + good}},
		"a websocket": {
			"Connection": {"Upgrade"}, "Upgrade": {"websocket"},
			"Sec-Websocket-Protocol": {"base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(good)) + ",v4.channel.k8s.io"},
		},
	} {
		req := &http.Request{Method: http.MethodGet, Header: headers}
		if !f.Signed(req, path) {
			t.Errorf("%s: not signed", what)
		}
		if f.Signed(req, "/clusters/two") {
			t.Errorf("%s: signed for another part", what)
		}
		if response, ok, err := part.Authenticator.AuthenticateRequest(req); err != nil || !ok || response.User.GetName() != "system:serviceaccount:team:robot" {
			t.Errorf("%s: %v, %v", what, response, err)
		}
	}
	// The signature is remembered by now, which is no reason to take the token anywhere else.
	two, err := f.Part(Part{Path: "/clusters/two", Live: live})
	if err != nil {
		t.Fatal(err)
	}
	for where, issuer := range map[string]*token.Issuer{"the server": f.Issuer, "another part": two.Issuer} {
		if response, ok, err := issuer.AuthenticateToken(t.Context(), good); err != nil || ok {
			t.Errorf("%s takes the token of a part: %v, %v", where, response, err)
		}
	}
}

// BenchmarkSigned is the cost of the check that each request with a token of a part pays before
// the part sees it.
func BenchmarkSigned(b *testing.B) {
	f := serve(b, func(o *Options) { _, o.ClientCAFile = clientCA(b) })
	const path = "/clusters/one"
	part, err := f.Part(Part{Path: path, Live: accounts{"team/robot": "1"}})
	if err != nil {
		b.Fatal(err)
	}
	req := &http.Request{Method: http.MethodGet, Header: http.Header{"Authorization": {"Bearer " + partToken(b, part.Issuer)}}}
	for b.Loop() {
		if !f.Signed(req, path) {
			b.Fatal("not signed")
		}
	}
}

// Tokens of parts are good while the server changes its issuer.
func TestIssuersOfParts(t *testing.T) {
	_, file := clientCA(t)
	former := serve(t, func(o *Options) { o.ClientCAFile, o.ServiceAccounts.Issuers = file, []string{"https://former"} })
	now := serve(t, func(o *Options) {
		o.ClientCAFile, o.ServiceAccounts.Issuers = file, []string{"https://new", "https://former"}
	})
	now.options.Keys = former.options.Keys
	p := Part{Path: "/clusters/one", Live: accounts{"team/robot": "1"}}
	before, err := former.Part(p)
	if err != nil {
		t.Fatal(err)
	}
	after, err := now.Part(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{partToken(t, before.Issuer), partToken(t, after.Issuer)} {
		req := &http.Request{Method: http.MethodGet, Header: http.Header{"Authorization": {"Bearer " + data}}}
		if !now.Signed(req, p.Path) {
			t.Error("not signed")
		}
		if _, ok, err := after.Authenticator.AuthenticateRequest(req); err != nil || !ok {
			t.Error("refused:", err)
		}
	}
}

func partToken(t testing.TB, i *token.Issuer) string {
	t.Helper()
	issued, err := i.Issue(token.Order{
		Account:   &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "robot", UID: "1"}},
		Audiences: i.Audiences(), Lifetime: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	return issued.Token
}
