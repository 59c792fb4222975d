package authentication

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
	"github.com/espalier-dev/espalier/server/auth/token"
)

func TestOnlyCertificatesAndServiceAccountsByDefault(t *testing.T) {
	ca, file := clientCA(t)
	f := serve(t, func(o *Options) { o.ClientCAFile = file })
	certificate, key := ca.Client(t, "alice", time.Hour, "developers")
	who := f.with(t, f.client(t, certificate, key), "/apis")
	if who == nil || who.Name != "alice" || !slices.Equal(who.Groups, []string{"developers", user.AllAuthenticated}) {
		t.Errorf("%+v", who)
	}
	f.knows(t, issue(t, f.Issuer, "robot", "1"), "system:serviceaccount:team:robot", "system:serviceaccounts", "system:serviceaccounts:team")
	f.refuses(t, issue(t, f.Issuer, "robot", "former"))
	f.refuses(t, issue(t, f.Issuer, "nobody", "1"))
	f.refuses(t, "garbage")
	if !slices.Equal(f.Audiences, []string{DefaultIssuer}) {
		t.Errorf("audiences %v", f.Audiences)
	}
	strange, strangeKey := certtest.New(t, time.Hour).Client(t, "alice", time.Hour)
	if who := f.with(t, f.client(t, strange, strangeKey), "/apis"); who != nil {
		t.Errorf("a stranger is %+v", who)
	}
}

func TestAnonymousForHealthPathsAlone(t *testing.T) {
	_, file := clientCA(t)
	f := serve(t, func(o *Options) { o.ClientCAFile = file })
	for path, in := range map[string]bool{"/livez": true, "/readyz": true, "/healthz": true, "/readyz/etcd": false, "/": false, "/apis": false, "/livez/": false} {
		who := f.with(t, f.server.Client(), path)
		if (who != nil) != in {
			t.Errorf("%s: %+v", path, who)
		}
		if who != nil && (who.Name != user.Anonymous || !slices.Equal(who.Groups, []string{user.AllUnauthenticated})) {
			t.Errorf("%s: %+v", path, who)
		}
		// Wrong credentials are an error, not anonymous.
		if who := f.with(t, f.server.Client(), path, "Authorization", "Bearer garbage"); who != nil {
			t.Errorf("%s with garbage: %+v", path, who)
		}
	}
}

func TestTokenOfWebSocket(t *testing.T) {
	_, file := clientCA(t)
	f := serve(t, func(o *Options) { o.ClientCAFile = file })
	good := issue(t, f.Issuer, "robot", "1")
	protocol := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(good))
	who := f.with(t, f.server.Client(), "/apis", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-Websocket-Protocol", protocol+",v4.channel.k8s.io")
	if who == nil || who.Name != "system:serviceaccount:team:robot" {
		t.Errorf("%+v", who)
	}
}

func TestKeysRotate(t *testing.T) {
	_, file := clientCA(t)
	former, err := token.LoadOrCreateKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	next, err := token.LoadOrCreateKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	content := func(paths ...string) (data []byte) {
		for _, path := range paths {
			part, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			data = append(data, part...)
		}
		return data
	}
	signing, verifying := certtest.File(t, "signing", content(former)), certtest.File(t, "verifying", content(former, next))
	f := serve(t, func(o *Options) {
		o.ClientCAFile, o.ServiceAccounts.SigningKeyFile, o.ServiceAccounts.KeyFiles = file, signing, []string{verifying}
	})
	robot := []string{"system:serviceaccounts", "system:serviceaccounts:team"}
	const name = "system:serviceaccount:team:robot"
	old := issue(t, f.Issuer, "robot", "1")
	replace(t, signing, content(next))
	f.reload(t)
	young := issue(t, f.Issuer, "robot", "1")
	f.knows(t, old, name, robot...)
	f.knows(t, young, name, robot...)
	replace(t, verifying, []byte("by mistake"))
	f.reload(t)
	f.knows(t, old, name, robot...)
	replace(t, verifying, content(next))
	f.reload(t)
	f.refuses(t, old)
	f.knows(t, young, name, robot...)
}

// replace puts a file in the place of another, as a whole.
func replace(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestTokenFile(t *testing.T) {
	t.Parallel()
	path := certtest.File(t, "tokens.csv", []byte("secret,carol,7,\"developers,testers\"\nother,dan,8\nsly,eve,9,\"system:unauthenticated,system:authenticated\"\n"))
	f := serve(t, func(o *Options) { o.TokenFile = path })
	f.knows(t, "secret", "carol", "developers", "testers")
	f.knows(t, "other", "dan")
	f.knows(t, "sly", "eve")
	f.refuses(t, "secre")
	f.refuses(t, "secret1")
	f.refuses(t, "carol")
	// Everything beside it is as ever.
	f.knows(t, issue(t, f.Issuer, "robot", "1"), "system:serviceaccount:team:robot", "system:serviceaccounts", "system:serviceaccounts:team")

	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx) })
	replace(t, path, []byte("new,carol,7\n"))
	eventually(t, "the new file counts", func() bool { return f.bearing(t, "new") != nil })
	stop()
	running.Wait()
	f.refuses(t, "secret")
	replace(t, path, []byte("one column\n"))
	f.reload(t)
	f.knows(t, "new", "carol")
}

// reviewer is a webhook.
type reviewer struct {
	*httptest.Server
	asked atomic.Int64
}

func newReviewer(t *testing.T, version string) (*reviewer, string) {
	r := &reviewer{}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.asked.Add(1)
		review := &authenticationv1.TokenReview{}
		if err := json.NewDecoder(req.Body).Decode(review); err != nil || review.APIVersion != "authentication.k8s.io/"+version || review.Kind != "TokenReview" {
			t.Errorf("asked for %v: %v", review.TypeMeta, err)
		}
		status := authenticationv1.TokenReviewStatus{}
		if name, ok := strings.CutPrefix(review.Spec.Token, "magic-"); ok {
			status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
				Username: name, UID: "5", Groups: []string{"wizards", user.AllUnauthenticated}, Extra: map[string]authenticationv1.ExtraValue{"school": {"north"}},
			}}
		}
		if review.Spec.Token == "magic-elsewhere" {
			status.Audiences = []string{"elsewhere"}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(authenticationv1.TokenReview{TypeMeta: metav1.TypeMeta{APIVersion: review.APIVersion, Kind: review.Kind}, Status: status})
	}))
	t.Cleanup(r.Close)
	clientCA := base64.StdEncoding.EncodeToString(certificateOf(r.Server))
	return r, certtest.File(t, "webhook.yaml", []byte(`
apiVersion: v1
kind: Config
clusters: [{name: w, cluster: {server: "`+r.URL+`/review", certificate-authority-data: `+clientCA+`}}]
users: [{name: u, user: {}}]
contexts: [{name: c, context: {cluster: w, user: u}}]
current-context: c
`))
}

func TestWebhook(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			r, path := newReviewer(t, version)
			f := serve(t, func(o *Options) { o.Webhook.ConfigFile, o.Webhook.Version = path, version })
			f.knows(t, "magic-merlin", "merlin", "wizards")
			f.knows(t, "magic-merlin", "merlin", "wizards")
			f.refuses(t, "no-magic")
			f.refuses(t, "no-magic")
			if n := r.asked.Load(); n != 2 {
				t.Errorf("asked %d times", n)
			}
			f.refuses(t, "magic-elsewhere")
			// Local authenticators come first: the webhook does not see their tokens.
			n := r.asked.Load()
			f.knows(t, issue(t, f.Issuer, "robot", "1"), "system:serviceaccount:team:robot", "system:serviceaccounts", "system:serviceaccounts:team")
			if r.asked.Load() != n {
				t.Error("the webhook has seen the token of a service account")
			}
			r.Close()
			f.refuses(t, "magic-morgana")
			f.knows(t, "magic-merlin", "merlin", "wizards") // as long as the answer is good
		})
	}
}

func TestFrontProxy(t *testing.T) {
	clients, file := clientCA(t)
	proxies, proxyFile := clientCA(t)
	f := serve(t, func(o *Options) {
		o.ClientCAFile = file
		h := o.RequestHeader
		h.ClientCAFile, h.AllowedNames = proxyFile, []string{"proxy"}
		h.UsernameHeaders, h.GroupHeaders, h.ExtraHeaderPrefixes = []string{"X-Remote-User"}, []string{"X-Remote-Group"}, []string{"X-Remote-Extra-"}
	})
	if f.RequestHeader == nil || f.ClientCA == nil {
		t.Fatal("the server would not ask for certificates")
	}
	with := func(ca *certtest.CA, name string) *http.Client {
		certificate, key := ca.Client(t, name, time.Hour)
		return f.client(t, certificate, key)
	}
	headers := []string{"X-Remote-User", "frank", "X-Remote-Group", "guests", "X-Remote-Group", user.AllUnauthenticated}
	who := f.with(t, with(proxies, "proxy"), "/apis", headers...)
	if who == nil || who.Name != "frank" || !slices.Equal(who.Groups, []string{"guests", user.AllAuthenticated}) {
		t.Errorf("through the proxy: %+v", who)
	}
	if who := f.with(t, with(proxies, "impostor"), "/apis", headers...); who != nil {
		t.Errorf("through another proxy: %+v", who)
	}
	if who := f.with(t, with(proxies, "proxy"), "/apis"); who != nil {
		t.Errorf("the proxy itself: %+v", who)
	}
	if who := f.with(t, with(clients, "proxy"), "/apis", headers...); who == nil || who.Name != "proxy" {
		t.Errorf("a client of the proxy's name: %+v", who)
	}
	if who := f.with(t, f.server.Client(), "/apis", headers...); who != nil {
		t.Errorf("without a certificate: %+v", who)
	}
}

func TestKeyIsKept(t *testing.T) {
	_, file := clientCA(t)
	o := NewOptions()
	o.ClientCAFile = file
	dir := t.TempDir()
	parts := Parts{Directory: dir, Live: accounts{"team/robot": "1"}}
	first, err := o.Build(t.Context(), parts)
	if err != nil {
		t.Fatal(err)
	}
	second, err := o.Build(t.Context(), parts)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := second.Issuer.AuthenticateToken(t.Context(), issue(t, first.Issuer, "robot", "1")); !ok {
		t.Errorf("refused after a restart: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, "sa.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestBuildTellsAllThatIsWrong(t *testing.T) {
	o := NewOptions()
	missing := filepath.Join(t.TempDir(), "missing")
	o.ClientCAFile, o.TokenFile, o.ConfigurationFile, o.Webhook.ConfigFile, o.RequestHeader.ClientCAFile = missing, missing, missing, missing, missing
	o.ServiceAccounts.SigningKeyFile = missing
	_, err := o.Build(t.Context(), Parts{})
	for _, flag := range []string{
		"--client-ca-file", "--token-auth-file", "--authentication-config", "--authentication-token-webhook-config-file",
		"--requestheader-client-ca-file", "--service-account-signing-key-file",
	} {
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("not a word about %s: %v", flag, err)
		}
	}
}
