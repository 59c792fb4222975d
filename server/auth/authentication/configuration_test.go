package authentication

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"

	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
)

// provider is an OpenID provider.
type provider struct {
	*httptest.Server
	keys    atomic.Pointer[jose.JSONWebKeySet]
	fetched atomic.Int64 // how often the keys were
}

func certificateOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func newProvider(t *testing.T, keys ...jose.JSONWebKey) *provider {
	t.Helper()
	p := &provider{}
	p.publish(keys...)
	mux := http.NewServeMux()
	p.Server = httptest.NewTLSServer(mux)
	t.Cleanup(p.Close)
	answer := func(path string, document func() any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(document())
		})
	}
	answer("/.well-known/openid-configuration", func() any {
		return map[string]any{"issuer": p.URL, "jwks_uri": p.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256", "ES256"}}
	})
	answer("/keys", func() any { p.fetched.Add(1); return p.keys.Load() })
	return p
}

// publish has the public halves of the keys verify.
func (p *provider) publish(keys ...jose.JSONWebKey) {
	set := &jose.JSONWebKeySet{}
	for _, key := range keys {
		set.Keys = append(set.Keys, key.Public())
	}
	p.keys.Store(set)
}

// claims are those of a good token.
func (p *provider) claims() map[string]any {
	return map[string]any{
		"iss": p.URL, "aud": "espalier", "sub": "grace", "teams": []string{"navy"},
		"exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(), "jti": "17",
	}
}

func newRSAKey(t *testing.T, kid string) jose.JSONWebKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return jose.JSONWebKey{Key: key, KeyID: kid, Algorithm: "RS256", Use: "sig"}
}

func newECKey(t *testing.T, kid string) jose.JSONWebKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return jose.JSONWebKey{Key: key, KeyID: kid, Algorithm: "ES256", Use: "sig"}
}

func signWith(t *testing.T, key jose.JSONWebKey, claims any, headers ...func(*jose.SignerOptions)) string {
	t.Helper()
	options := &jose.SignerOptions{}
	for _, f := range headers {
		f(options)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// configuration is a file for these providers.
func configuration(version string, providers ...*provider) []byte {
	var b strings.Builder
	b.WriteString("apiVersion: apiserver.config.k8s.io/" + version + "\nkind: AuthenticationConfiguration\njwt:\n")
	for _, p := range providers {
		b.WriteString("- issuer:\n    url: " + p.URL + "\n    audiences: [espalier]\n    certificateAuthority: |\n      " +
			strings.ReplaceAll(strings.TrimSpace(string(certificateOf(p.Server))), "\n", "\n      ") + "\n" +
			"  claimMappings:\n    username: {expression: '\"oidc:\" + claims.sub'}\n    groups: {claim: teams, prefix: 'team-'}\n")
	}
	return []byte(b.String())
}

// serveProviders waits until a provider has answered, so that its token is accepted.
func serveProviders(t *testing.T, path, token string) *frontend {
	t.Helper()
	f := serve(t, func(o *Options) { o.ConfigurationFile = path })
	eventually(t, "the provider has answered", func() bool { return f.bearing(t, token) != nil })
	return f
}

func TestProvider(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		for _, key := range []jose.JSONWebKey{newRSAKey(t, "k1"), newECKey(t, "k1")} {
			t.Run(version+" "+key.Algorithm, func(t *testing.T) {
				p := newProvider(t, key)
				token := signWith(t, key, p.claims())
				f := serveProviders(t, certtest.File(t, "config.yaml", configuration(version, p)), token)
				f.knows(t, token, "oidc:grace", "team-navy")
				f.knows(t, token, "oidc:grace", "team-navy")
				if got := f.bearing(t, token).Extra["authentication.kubernetes.io/credential-id"]; len(got) != 1 || got[0] != "JTI=17" {
					t.Errorf("credential %q", got)
				}
				f.knows(t, issue(t, f.Issuer, "robot", "1"), "system:serviceaccount:team:robot", "system:serviceaccounts", "system:serviceaccounts:team")
			})
		}
	}
}

func TestProvidersTokensThatAreRefused(t *testing.T) {
	good, other := newRSAKey(t, "k1"), newRSAKey(t, "k1")
	p := newProvider(t, good)
	token := signWith(t, good, p.claims())
	f := serveProviders(t, certtest.File(t, "config.yaml", configuration("v1", p)), token)
	f.knows(t, token, "oidc:grace", "team-navy")
	parts := strings.Split(token, ".")
	but := func(name string, value any) map[string]any {
		claims := maps.Clone(p.claims())
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
		return claims
	}
	header := func(header map[string]any) string {
		data, err := json.Marshal(header)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(data)
	}
	public := good.Key.(crypto.Signer).Public()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	confused := func(secret []byte) string {
		content := header(map[string]any{"alg": "HS256", "kid": "k1"}) + "." + parts[1]
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(content))
		return content + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	renamed := other
	renamed.KeyID = "k2"
	path := good
	path.KeyID = "../keys"
	for name, token := range map[string]string{
		"another issuer":           signWith(t, good, but("iss", "https://elsewhere.example")),
		"a longer issuer":          signWith(t, good, but("iss", p.URL+"/")),
		"no issuer":                signWith(t, good, but("iss", nil)),
		"the service accounts'":    signWith(t, good, but("iss", DefaultIssuer)),
		"another audience":         signWith(t, good, but("aud", "somebody")),
		"no audience":              signWith(t, good, but("aud", nil)),
		"expired":                  signWith(t, good, but("exp", time.Now().Add(-time.Second*2).Unix())),
		"no expiry":                signWith(t, good, but("exp", nil)),
		"not yet":                  signWith(t, good, but("nbf", time.Now().Add(time.Hour).Unix())),
		"no subject":               signWith(t, good, but("sub", nil)),
		"teams of another type":    signWith(t, good, but("teams", 1)),
		"none":                     header(map[string]any{"alg": "none", "kid": "k1"}) + "." + parts[1] + ".",
		"HMAC with the public PEM": confused(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		"HMAC with the public DER": confused(der),
		"another key as ours":      signWith(t, other, p.claims()),
		"another key":              signWith(t, renamed, p.claims()),
		"a kid that is a path":     signWith(t, path, p.claims()),
		"a key in the token":       signWith(t, other, p.claims(), func(o *jose.SignerOptions) { o.EmbedJWK = true }),
		"keys elsewhere":           signWith(t, other, p.claims(), func(o *jose.SignerOptions) { o.WithHeader("jku", "https://elsewhere.example/keys") }),
		"no signature":             parts[0] + "." + parts[1] + ".",
	} {
		t.Run(name, func(t *testing.T) { f.refuses(t, token) })
	}
}

func TestProviderRotatesKeys(t *testing.T) {
	former, next := newRSAKey(t, "former"), newECKey(t, "next")
	p := newProvider(t, former)
	f := serveProviders(t, certtest.File(t, "config.yaml", configuration("v1", p)), signWith(t, former, p.claims()))
	p.publish(former, next)
	f.knows(t, signWith(t, next, p.claims()), "oidc:grace", "team-navy")
	f.knows(t, signWith(t, former, p.claims()), "oidc:grace", "team-navy")
	p.publish(next)
	third := newECKey(t, "third") // an unknown key makes the keys be fetched
	f.refuses(t, signWith(t, third, p.claims()))
	late := p.claims()
	late["sub"] = "harry"
	f.refuses(t, signWith(t, former, late))
	f.knows(t, signWith(t, next, late), "oidc:harry", "team-navy")
}

func TestRememberedTokenOfProviderExpires(t *testing.T) {
	key := newECKey(t, "k1")
	p := newProvider(t, key)
	f := serveProviders(t, certtest.File(t, "config.yaml", configuration("v1", p)), signWith(t, key, p.claims()))
	claims := p.claims()
	expiry := time.Now().Add(2 * time.Second).Truncate(time.Second)
	claims["exp"] = expiry.Unix()
	token := signWith(t, key, claims)
	f.knows(t, token, "oidc:grace", "team-navy")
	eventually(t, "the token has expired", func() bool { return time.Now().After(expiry.Add(1100 * time.Millisecond)) })
	f.refuses(t, token)
}

func TestConfigurationIsReadAgain(t *testing.T) {
	keyA, keyB := newECKey(t, "a"), newECKey(t, "b")
	a, b := newProvider(t, keyA), newProvider(t, keyB)
	path := certtest.File(t, "config.yaml", configuration("v1", a))
	ofA, ofB := signWith(t, keyA, a.claims()), signWith(t, keyB, b.claims())
	f := serveProviders(t, path, ofA)
	f.knows(t, ofA, "oidc:grace", "team-navy")
	f.refuses(t, ofB)

	replace(t, path, configuration("v1", a, b))
	f.reload(t)
	f.knows(t, ofA, "oidc:grace", "team-navy")
	f.knows(t, ofB, "oidc:grace", "team-navy")

	for _, broken := range []string{"", "kind: nonsense", string(configuration("v1", a)) + "unknown: 1\n", string(configuration("v1alpha1", a)), string(configuration("v1", a, a))} {
		replace(t, path, []byte(broken))
		f.reload(t)
		f.knows(t, ofB, "oidc:grace", "team-navy")
	}

	// A provider that goes takes its users along, at once and remembered or not.
	replace(t, path, configuration("v1", b))
	f.reload(t)
	f.refuses(t, ofA)
	f.knows(t, ofB, "oidc:grace", "team-navy")
	if f.with(t, f.server.Client(), "/livez") == nil {
		t.Error("/livez is closed")
	}
	replace(t, path, append(configuration("v1", b), "anonymous: {enabled: false}\n"...))
	f.reload(t)
	if f.with(t, f.server.Client(), "/livez") != nil {
		t.Error("/livez is open")
	}
}

func TestProviderThatIsDown(t *testing.T) {
	key := newECKey(t, "k1")
	p := newProvider(t, key)
	path := certtest.File(t, "config.yaml", configuration("v1", p))
	p.Close()
	f := serve(t, func(o *Options) { o.ConfigurationFile = path })
	f.refuses(t, signWith(t, key, p.claims()))
	f.knows(t, issue(t, f.Issuer, "robot", "1"), "system:serviceaccount:team:robot", "system:serviceaccounts", "system:serviceaccounts:team")
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	p := newProvider(t, newECKey(t, "k1"))
	good := string(configuration("v1", p))
	for name, test := range map[string]struct{ content, want string }{
		"anonymous everywhere":    {good + "anonymous: {enabled: true}\n", "anonymous.conditions: Required value: anonymous clients can use the health paths only: /healthz, /livez, /readyz"},
		"anonymous on other path": {good + "anonymous: {enabled: true, conditions: [{path: /livez}, {path: /metrics}]}\n", `anonymous.conditions[1].path: Invalid value: "/metrics": anonymous clients can use the health paths only`},
		"unknown field":           {good + "nonsense: 1\n", `unknown field "nonsense"`},
		"alpha":                   {string(configuration("v1alpha1", p)), "apiVersion apiserver.config.k8s.io/v1alpha1 is not supported; write apiserver.config.k8s.io/v1"},
		"another kind":            {"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n", "it holds a AuthorizationConfiguration"},
		"not YAML":                {"{", "give an AuthenticationConfiguration"},
		"empty":                   {"", "give an AuthenticationConfiguration"},
		"the same issuer twice":   {string(configuration("v1", p, p)), "Duplicate value"},
		"our own issuer":          {strings.ReplaceAll(good, p.URL, DefaultIssuer), "URL must not overlap with disallowed issuers"},
		"no encryption":           {strings.ReplaceAll(good, "https://", "http://"), "URL scheme must be https"},
		"broken expression":       {strings.ReplaceAll(good, "claims.sub", "claims.sub +"), "compilation failed"},
		"broken CA":               {strings.ReplaceAll(good, "BEGIN CERTIFICATE", "BEGIN NOTHING"), "certificateAuthority"},
		"too large":               {good + strings.Repeat("#", maxConfiguration), "more than the"},
	} {
		t.Run(name, func(t *testing.T) {
			path := certtest.File(t, "config.yaml", []byte(test.content))
			o := NewOptions()
			o.ConfigurationFile = path
			errs := o.Validate()
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), test.want) || !strings.Contains(errs[0].Error(), "--authentication-config "+path) {
				t.Errorf("%v", errs)
			}
			if _, err := o.Build(t.Context(), Parts{Directory: t.TempDir(), Live: accounts{}}); err == nil {
				t.Error("built all the same")
			}
		})
	}
	largest := NewOptions()
	largest.ConfigurationFile = certtest.File(t, "config.yaml", []byte(good+strings.Repeat("#", maxConfiguration-len(good))))
	if errs := largest.Validate(); len(errs) > 0 {
		t.Errorf("as large as is allowed: %v", errs)
	}
	path := certtest.File(t, "config.yaml", []byte(good+"anonymous: {enabled: true, conditions: [{path: /livez}]}\n"))
	f := serve(t, func(o *Options) { o.ConfigurationFile = path })
	if f.with(t, f.server.Client(), "/livez") == nil || f.with(t, f.server.Client(), "/readyz") != nil {
		t.Error("the conditions do not count")
	}
}

// Files that cannot be read have nothing in common.
func TestSameContent(t *testing.T) {
	file := func(text string) string { return certtest.File(t, "ca.pem", []byte(text)) }
	for _, c := range []struct {
		a, b string
		want bool
	}{{file("a"), file("\na\n"), true}, {file("a"), file("b"), false}, {"none", file(""), false}, {file(""), "none", false}, {"none", "none", false}} {
		if got := sameContent(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %t", c.a, c.b, got)
		}
	}
}

func FuzzConfiguration(f *testing.F) {
	f.Add("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n- issuer: {url: 'https://a', audiences: [b]}\n  claimMappings: {username: {expression: claims.sub}}\nanonymous: {enabled: true}\n")
	f.Add("apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\nanonymous: {enabled: true, conditions: [{path: /livez}]}\n")
	f.Add("{}")
	f.Fuzz(func(t *testing.T, content string) {
		config, err := parseConfiguration([]byte(content), []string{DefaultIssuer})
		if err != nil || config.Anonymous == nil || !config.Anonymous.Enabled {
			return
		}
		for _, condition := range config.Anonymous.Conditions {
			if !strings.HasSuffix(condition.Path, "z") {
				t.Errorf("open: %q", condition.Path)
			}
		}
		if len(config.Anonymous.Conditions) == 0 {
			t.Error("all is open")
		}
	})
}
