package scenarios

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A provider is who signs the tokens of a company's people, as OpenID has it.
type provider struct {
	*httptest.Server
	keys *signer
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{keys: newSigner(t)}
	document := claims{"keys": []any{p.keys.jwk("first")}}
	mux := http.NewServeMux()
	p.Server = httptest.NewTLSServer(mux)
	t.Cleanup(p.Close)
	for path, content := range map[string]claims{
		"/keys": document,
		"/.well-known/openid-configuration": {
			"issuer": p.URL, "jwks_uri": p.URL + "/keys", "response_types_supported": []string{"id_token"},
			"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"ES256"},
		},
	} {
		data, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", jsonType)
			_, _ = w.Write(data)
		})
	}
	return p
}

// body is what a good token says.
func (p *provider) body() claims {
	return claims{
		"iss": p.URL, "aud": "espalier", "sub": "1", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
		"email": "ada@example.com", "teams": []string{"sailors", "cooks"}, "company": "example.com",
	}
}

// configuration is an AuthenticationConfiguration of the provider.
func (p *provider) configuration(prefix string) string {
	return fmt.Sprintf(`
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: %s
    audiences: [espalier]
    certificateAuthority: |
%s
  claimMappings:
    username: {claim: email, prefix: %q}
    groups: {claim: teams, prefix: %q}
  claimValidationRules:
  - expression: claims.company == "example.com"
    message: people of this company only
`, p.URL, indented(string(certificateOf(p.Server)), "      "), prefix, prefix)
}

var jwtHeader = claims{"alg": "ES256", "typ": "JWT", "kid": "first"}

// People come with tokens of their company's provider. What they may do is given to their groups.
func TestOpenIDProvider(t *testing.T) {
	needsDiscovery(t)
	p := newProvider(t)
	file := write(t, "authentication.yaml", p.configuration("company:"))
	s := serve(t, against, prefix(), "--authentication-config="+file)
	admin, stranger := newKubectl(t, s), newStranger(t, s)
	admin.ok("create", "namespace", "team-a")
	admin.ok("create", "rolebinding", "sailors", "--clusterrole=edit", "--group=company:sailors", "-n", "team-a")
	token := p.keys.sign(jwtHeader, p.body())
	eventually(t, soon, "the provider has been asked for its keys", func() bool {
		code, _ := stranger.as(token)
		return code == http.StatusCreated
	})
	ada := kubectlAs(t, s, bearing(s, token))
	ada.says([]string{"company:ada@example.com", "[company:sailors company:cooks system:authenticated]"}, "auth", "whoami")
	ada.says([]string{"configmap/plan created"}, "create", "configmap", "plan", "-n", "team-a")
	ada.fails([]string{`User "company:ada@example.com" cannot list resource "configmaps" in API group "" in the namespace "default"`}, "get", "configmaps")
	stranger.known(p.keys.sign(jwtHeader, p.body().but(claims{"aud": []string{"others", "espalier"}})), "company:ada@example.com")
	refusedTokens(t, stranger, p)
	// Certificates and service accounts are known as ever.
	admin.says([]string{"admin"}, "auth", "whoami")
	admin.ok("create", "serviceaccount", "robot", "-n", "team-a")
	stranger.known(admin.token(), robot)
	if r := reviewToken(t, admin, token); !r.Authenticated || r.User.Username != "company:ada@example.com" {
		t.Errorf("a review of ada's token: %+v", r)
	}

	// A file that says nothing of use changes nothing; one that does takes effect while the server runs.
	swapFile(t, file, "kind: Nonsense\n")
	eventually(t, soon, "the server complains about the file", func() bool { return strings.Contains(s.Output(), "keeping the former one") })
	stranger.known(token, "company:ada@example.com")
	swapFile(t, file, p.configuration("new:"))
	eventually(t, soon, "the new prefix counts", func() bool {
		_, name := stranger.as(token)
		return name == "new:ada@example.com"
	})
	ada.fails([]string{`User "new:ada@example.com" cannot list resource "configmaps" in API group "" in the namespace "team-a"`}, "get", "configmaps", "-n", "team-a")
}

// refusedTokens have one thing in them that is wrong.
func refusedTokens(t *testing.T, stranger *stranger, p *provider) {
	t.Helper()
	past := time.Now().Add(-time.Hour).Unix()
	for what, token := range map[string]string{
		"another issuer":            p.keys.sign(jwtHeader, p.body().but(claims{"iss": "https://127.0.0.1:1"})),
		"another audience":          p.keys.sign(jwtHeader, p.body().but(claims{"aud": "others"})),
		"no audience":               p.keys.sign(jwtHeader, p.body().but(claims{"aud": nil})),
		"an expired token":          p.keys.sign(jwtHeader, p.body().but(claims{"exp": past})),
		"a token of the future":     p.keys.sign(jwtHeader, p.body().but(claims{"nbf": time.Now().Add(time.Hour).Unix()})),
		"another company":           p.keys.sign(jwtHeader, p.body().but(claims{"company": "example.org"})),
		"no company":                p.keys.sign(jwtHeader, p.body().but(claims{"company": nil})),
		"nobody":                    p.keys.sign(jwtHeader, p.body().but(claims{"email": nil})),
		"an email that is not true": p.keys.sign(jwtHeader, p.body().but(claims{"email_verified": false})),
		"an unknown key":            newSigner(t).sign(claims{"alg": "ES256", "kid": "second"}, p.body()),
		"the name of a known key":   newSigner(t).sign(jwtHeader, p.body()),
		"the algorithm none":        tokenPart(t, claims{"alg": "none"}) + "." + tokenPart(t, p.body()) + ".",
		"a changed signature":       tampered(p.keys.sign(jwtHeader, p.body())),
		"groups of the system":      p.keys.sign(jwtHeader, p.body().but(claims{"iss": ownAudience, "sub": robot, "aud": ownAudience})),
	} {
		stranger.refused(what, token)
	}
}
