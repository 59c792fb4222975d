package token

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

func payload(t testing.TB, token string) map[string]any {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(data, &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

func TestClaimsAreThoseOfKubernetes(t *testing.T) {
	f := newFixture(t)
	account, secret := f.createAccount(t, "robot"), f.createSecret(t, "anchor")
	at := time.Unix(1_900_000_000, 0)
	f.now = func() time.Time { return at }
	issued, err := f.Issue(Order{Account: account, Secret: secret, Audiences: []string{"a", "b"}, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"iss": testIssuer, "sub": "system:serviceaccount:team:robot", "aud": []any{"a", "b"}, "jti": issued.ID,
		"iat": 1.9e9, "nbf": 1.9e9, "exp": 1.9e9 + 3600,
		"kubernetes.io": map[string]any{
			"namespace":      "team",
			"serviceaccount": map[string]any{"name": "robot", "uid": string(account.UID)},
			"secret":         map[string]any{"name": "anchor", "uid": string(secret.UID)},
		},
	}
	if got := payload(t, issued.Token); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n\t%v\nwant\n\t%v", got, want)
	}
	if !issued.Expires.Equal(at.Add(time.Hour)) {
		t.Errorf("expires %v", issued.Expires)
	}
}

func TestTokenIsItsServiceAccount(t *testing.T) {
	f := newFixture(t)
	account := f.createAccount(t, "robot")
	token := f.issue(t, account)
	for range 2 { // the second time, the signature is remembered
		response := f.accepted(t, token)
		want := &user.DefaultInfo{
			Name: "system:serviceaccount:team:robot", UID: string(account.UID),
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:team"},
			Extra:  map[string][]string{"authentication.kubernetes.io/credential-id": {"JTI=" + payload(t, token)["jti"].(string)}},
		}
		if !reflect.DeepEqual(response.User, want) {
			t.Errorf("got\n\t%+v\nwant\n\t%+v", response.User, want)
		}
		if !reflect.DeepEqual(response.Audiences, authenticator.Audiences{testAudience}) {
			t.Errorf("audiences %v", response.Audiences)
		}
	}
	if n := f.verified.Len(); n != 1 {
		t.Errorf("%d remembered", n)
	}
}

// TestTime signs at another time than it verifies at: the clock that verifies is the
// real one.
func TestTime(t *testing.T) {
	f := newFixture(t)
	account := f.createAccount(t, "robot")
	at := func(offset, lifetime time.Duration) string {
		f.now = func() time.Time { return time.Now().Add(offset) }
		defer func() { f.now = time.Now }()
		return f.issue(t, account, func(o *Order) { o.Lifetime = lifetime })
	}
	f.accepted(t, at(-time.Hour, 2*time.Hour))
	f.accepted(t, at(-time.Hour, time.Hour-30*time.Second)) // within the leeway
	f.accepted(t, at(30*time.Second, time.Hour))
	f.refused(t, at(-time.Hour, time.Hour-90*time.Second), "service account token has expired")
	f.refused(t, at(90*time.Second, time.Hour), "service account token is not valid yet")
}

func TestRememberedTokenExpires(t *testing.T) {
	f := newFixture(t)
	token := f.issue(t, f.createAccount(t, "robot"))
	f.accepted(t, token)
	f.now = func() time.Time { return time.Now().Add(time.Hour + 2*time.Minute) }
	f.refused(t, token, "service account token has expired")
}

func TestAudiences(t *testing.T) {
	f := newFixture(t)
	account := f.createAccount(t, "robot")
	token := f.issue(t, account, func(o *Order) { o.Audiences = []string{"vault", "other"} })
	f.refused(t, token, `token audiences ["vault" "other"] is invalid for the target audiences ["https://server.example"]`)
	// A review may ask for other audiences than the server's own.
	ctx := authenticator.WithAudiences(t.Context(), authenticator.Audiences{"other", "third"})
	response, ok, err := f.AuthenticateToken(ctx, token)
	if !ok || err != nil || !reflect.DeepEqual(response.Audiences, authenticator.Audiences{"other"}) {
		t.Errorf("%v, %v, %v", response, ok, err)
	}
}

func TestOtherIssuersAreLeftToOthers(t *testing.T) {
	f := newFixture(t)
	g := newFixture(t, func(o *Options) { o.Issuers = []string{"https://somebody.else", testIssuer} })
	account := f.createAccount(t, "robot")
	foreign := g.issue(t, account)
	f.refused(t, foreign, "")
	// Ours under the other name: the issuer is renamed, and the key stays.
	h := newFixture(t, func(o *Options) { o.Issuers, o.Keys = []string{"new name", "https://somebody.else"}, g.options.Keys })
	h.stores.Bind(f.accounts, f.secrets)
	h.accepted(t, foreign)
	h.accepted(t, h.issue(t, account))
}

func TestAccountGoes(t *testing.T) {
	f := newFixture(t)
	token := f.issue(t, f.createAccount(t, "robot"))
	f.accepted(t, token)
	remove(t, f.accounts, "robot")
	f.refused(t, token, `serviceaccounts "robot" not found`)
	again := f.createAccount(t, "robot")
	f.refused(t, token, fmt.Sprintf("service account UID (%s) does not match claim (%s)", again.UID, payload(t, token)["kubernetes.io"].(map[string]any)["serviceaccount"].(map[string]any)["uid"]))
	f.accepted(t, f.issue(t, again))
}

func TestAccountIsBeingDeleted(t *testing.T) {
	f := newFixture(t)
	token := f.issue(t, f.createAccount(t, "robot", "example.com/wait"))
	remove(t, f.accounts, "robot")
	f.accepted(t, token) // a minute is left for the last words
	f.now = func() time.Time { return time.Now().Add(62 * time.Second) }
	f.refused(t, token, "service account team/robot has been deleted")
}

func TestSecretGoes(t *testing.T) {
	f := newFixture(t)
	account := f.createAccount(t, "robot")
	secret := f.createSecret(t, "anchor")
	token := f.issue(t, account, func(o *Order) { o.Secret = secret })
	f.accepted(t, token)
	remove(t, f.secrets, "anchor")
	f.refused(t, token, "service account token has been invalidated")
	again := f.createSecret(t, "anchor")
	f.refused(t, token, fmt.Sprintf("secret UID (%s) does not match service account secret ref claim (%s)", again.UID, secret.UID))
	f.accepted(t, f.issue(t, account))
}

// outdated is a cache that has not heard of anything yet, or knows a former account.
type outdated struct{ account *corev1.ServiceAccount }

func (o outdated) ServiceAccount(context.Context, string, string) (*corev1.ServiceAccount, error) {
	if o.account == nil {
		return nil, fmt.Errorf("not here yet")
	}
	return o.account, nil
}

func (o outdated) Secret(context.Context, string, string) (*corev1.Secret, error) {
	return nil, fmt.Errorf("not here yet")
}

func TestCacheThatIsLateTurnsNobodyAway(t *testing.T) {
	for _, cache := range []outdated{{}, {&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "robot", UID: "former"}}}} {
		f := newFixture(t, func(o *Options) { o.Cached = cache })
		token := f.issue(t, f.createAccount(t, "robot"))
		f.accepted(t, token)
		remove(t, f.accounts, "robot")
		f.refused(t, token, `serviceaccounts "robot" not found`)
	}
}

func TestNothingIsAcceptedBeforeThereAreStores(t *testing.T) {
	f := newFixture(t)
	token := f.issue(t, f.createAccount(t, "robot"))
	f.stores.bound.Store(nil)
	f.refused(t, token, "service accounts cannot be looked up yet: the server is starting")
	f.stores.Bind(f.accounts, f.secrets)
	f.accepted(t, token)
}

func TestRotation(t *testing.T) {
	former, next := newRSA(t, 2048), newECDSA(t)
	signing, verifying := writeFile(t, "signing", privatePEM(t, former)), writeFile(t, "verifying", publicPEM(t, next))
	keys, err := LoadKeys(signing, verifying)
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, func(o *Options) { o.Keys = keys })
	account := f.createAccount(t, "robot")
	reload := func(want bool) {
		t.Helper()
		if changed, err := keys.Reload(); changed != want || err != nil {
			t.Fatalf("reload: %v, %v", changed, err)
		}
	}
	old := f.issue(t, account)
	f.accepted(t, old)
	reload(false)

	// The next key signs, the former one still verifies.
	writeFile(t, verifying, append(publicPEM(t, former), publicPEM(t, next)...))
	writeFile(t, signing, privatePEM(t, next))
	reload(true)
	f.accepted(t, old)
	young := f.issue(t, account)
	f.accepted(t, young)
	if header, _, _ := strings.Cut(young, "."); header == strings.Split(old, ".")[0] {
		t.Error("the former key has signed")
	}

	// Half a file changes nothing.
	if err := os.WriteFile(verifying, publicPEM(t, former)[:40], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Reload(); err == nil {
		t.Error("half a file is good")
	}
	f.accepted(t, old)

	// The former key goes, and with it what is remembered.
	writeFile(t, verifying, publicPEM(t, next))
	reload(true)
	f.refused(t, old, "invalid signature, no keys found")
	f.accepted(t, young)
}

func TestMemoryIsBounded(t *testing.T) {
	f := newFixture(t)
	account := f.createAccount(t, "robot")
	for n := range maxVerified {
		f.verified.Add(n, remembered{}) // costs less than to sign as many
	}
	for range 10 {
		if c, err := f.recall(f.issue(t, account)); c == nil || err != nil {
			t.Fatal(err)
		}
	}
	if n := f.verified.Len(); n != maxVerified {
		t.Errorf("%d remembered", n)
	}
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	first, second := privatePEM(t, newECDSA(t)), privatePEM(t, newECDSA(t))
	signing := writeFile(t, "signing", first)
	both := writeFile(t, "both", append(first, second...))
	keys, err := LoadKeys(signing, both)
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, func(o *Options) { o.Keys = keys })
	account := f.createAccount(t, "robot")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				f.accepted(t, f.issue(t, account))
			}
		})
	}
	for i := range 20 {
		writeFile(t, signing, [][]byte{first, second}[i%2])
		if _, err := keys.Reload(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}

func TestIssuerNeedsItsParts(t *testing.T) {
	keys := newFixture(t).options.Keys
	verifying, err := LoadKeys("", writeFile(t, "public", publicPEM(t, newECDSA(t))))
	if err != nil {
		t.Fatal(err)
	}
	whole := Options{Keys: keys, Issuers: []string{"i"}, Audiences: authenticator.Audiences{"a"}, Live: (&Stores{}).Live()}
	for name, change := range map[string]func(*Options){
		"keys":            func(o *Options) { o.Keys = nil },
		"a key to sign":   func(o *Options) { o.Keys = verifying },
		"an issuer":       func(o *Options) { o.Issuers = nil },
		"issuers' names":  func(o *Options) { o.Issuers = []string{"i", ""} },
		"audiences":       func(o *Options) { o.Audiences = nil },
		"a way to lookup": func(o *Options) { o.Live = nil },
	} {
		o := whole
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("made without %s", name)
		}
	}
	if _, err := New(whole); err != nil {
		t.Error(err)
	}
}
