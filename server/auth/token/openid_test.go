package token

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coreos/go-oidc"
)

// TestOthersVerifyTokens has an OpenID client, which knows nothing but the URL of the
// issuer, verify a token.
func TestOthersVerifyTokens(t *testing.T) {
	mux := http.NewServeMux()
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	former := newRSA(t, 2048)
	signing := writeFile(t, "signing", privatePEM(t, former))
	next := newECDSA(t)
	keys, err := LoadKeys(signing, writeFile(t, "verifying", append(publicPEM(t, former), publicPEM(t, next)...)))
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, func(o *Options) {
		o.Keys, o.Issuers, o.JWKSURI = keys, []string{server.URL}, server.URL+KeysPath
	})
	f.Install(mux)
	account := f.createAccount(t, "robot")

	ctx := oidc.ClientContext(t.Context(), server.Client())
	provider, err := oidc.NewProvider(ctx, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	verifier := provider.Verifier(&oidc.Config{ClientID: testAudience, SupportedSigningAlgs: []string{"RS256", "ES256"}})
	for range 2 {
		id, err := verifier.Verify(ctx, f.issue(t, account))
		if err != nil || id.Subject != "system:serviceaccount:team:robot" {
			t.Errorf("%v, %v", id, err)
		}
		writeFile(t, signing, privatePEM(t, next))
		if _, err := keys.Reload(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDocuments(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.JWKSURI = "https://server.example:6443/openid/v1/jwks" })
	mux := http.NewServeMux()
	f.Install(mux)
	server := httptest.NewServer(mux)
	defer server.Close()
	for path, want := range map[string]struct{ contentType, body string }{
		ConfigurationPath: {"application/json", `{"issuer":"https://issuer.example","jwks_uri":"https://server.example:6443/openid/v1/jwks",` +
			`"response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}`},
		KeysPath: {"application/jwk-set+json", `{"keys":[{"use":"sig","kty":"EC","kid":"` + f.options.Keys.current.Load().all[0].id + `","crv":"P-256","alg":"ES256",`},
	} {
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || !strings.HasPrefix(string(body), want.body) {
			t.Errorf("%s: %s, %v", path, body, err)
		}
		if got := response.Header.Get("Content-Type"); got != want.contentType {
			t.Errorf("%s: %s", path, got)
		}
		if got := response.Header.Get("Cache-Control"); got != "public, max-age=3600" {
			t.Errorf("%s: %s", path, got)
		}
		response, err = http.Post(server.URL+path, "text/plain", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: POST is answered with %d", path, response.StatusCode)
		}
	}
}

func TestNoDocumentsForNamesThatAreNoURLs(t *testing.T) {
	for _, test := range []struct{ issuer, keys string }{
		{"espalier", "https://server.example/openid/v1/jwks"},
		{"http://issuer.example", "https://server.example/openid/v1/jwks"},
		{"https://issuer.example?a=b", "https://server.example/openid/v1/jwks"},
		{"https://issuer.example#a", "https://server.example/openid/v1/jwks"},
		{"https://issuer.example", ""},
		{"https://issuer.example", "http://server.example/openid/v1/jwks"},
		{"https://issuer.example", "https:///openid/v1/jwks"},
		{"https://issuer.example", "https://%"},
		{"https://%", "https://server.example/openid/v1/jwks"},
	} {
		f := newFixture(t, func(o *Options) { o.Issuers, o.JWKSURI = []string{test.issuer}, test.keys })
		mux := http.NewServeMux()
		f.Install(mux)
		recorder := httptest.NewRecorder()
		mux.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, ConfigurationPath, nil))
		if recorder.Code != http.StatusNotFound {
			t.Errorf("%v: %d", test, recorder.Code)
		}
	}
}

// What is wrong with the URLs is said as kube-apiserver says it.
func TestWhyThereAreNoDocuments(t *testing.T) {
	const keys = "https://server.example/openid/v1/jwks"
	for _, test := range []struct{ issuer, keys, want string }{
		{"https://issuer.example/path", keys, ""},
		{"http://issuer.example", keys, "issuer URL must use https scheme, got: http://issuer.example"},
		{"https://issuer.example?a=b", keys, "issuer URL may not include a query, got: https://issuer.example?a=b"},
		{"https://issuer.example#a", keys, "issuer URL may not include a fragment, got: https://issuer.example#a"},
		{"https://%", keys, `parse "https://%": invalid URL escape "%"`},
		{"https://issuer.example", "http://a", `the URI of the keys must be an https URL, got: "http://a"`},
	} {
		got := ""
		if err := discoverable(test.issuer, test.keys); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
}
