package scenarios

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	robot       = "system:serviceaccount:team-a:robot"
	ownAudience = "https://kubernetes.default.svc"
)

// token asks for a token of the robot.
func (k *kubectl) token(args ...string) string {
	k.t.Helper()
	return strings.TrimSpace(k.ok(append([]string{"create", "token", "robot", "-n", "team-a"}, args...)...))
}

// Controllers have service accounts: kubectl makes them and their tokens, and client-go acts with these.
func TestServiceAccounts(t *testing.T) {
	needsDiscovery(t)
	keys := newSigner(t)
	s := serve(t, against, prefix(), "--service-account-signing-key-file="+keys.private)
	admin, stranger := newKubectl(t, s), newStranger(t, s)
	admin.ok("create", "namespace", "team-a")
	admin.says([]string{"condition met"}, "wait", "--for=create", "serviceaccount/default", "-n", "team-a", "--timeout=30s")
	admin.says([]string{"serviceaccount/robot created"}, "create", "serviceaccount", "robot", "-n", "team-a")
	admin.ok("create", "rolebinding", "robot", "--clusterrole=view", "--serviceaccount=team-a:robot", "-n", "team-a")
	admin.ok("create", "secret", "generic", "leash", "-n", "team-a")

	token := admin.token("--duration=20m")
	_, body := tokenParts(t, token)
	if lifetime := body["exp"].(float64) - body["iat"].(float64); lifetime != 1200 || body["iss"] != ownAudience || body["sub"] != robot {
		t.Errorf("a token that lives %v s: %v", lifetime, body)
	}
	stranger.known(token, robot)
	client := typedClient(t, bearing(s, token))
	eventually(t, soon, "the robot may list", func() bool {
		_, err := client.CoreV1().ConfigMaps("team-a").List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	if _, err := client.CoreV1().Secrets("team-a").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "`+robot+`" cannot list resource "secrets"`) {
		t.Errorf("the robot lists secrets: %v", err)
	}
	kubectlAs(t, s, bearing(s, token)).says([]string{robot, "[system:serviceaccounts system:serviceaccounts:team-a system:authenticated]", "credential-id"}, "auth", "whoami")
	admin.fails([]string{"may not specify a duration less than 10 minutes"}, "create", "token", "robot", "-n", "team-a", "--duration=9m")
	admin.fails([]string{`serviceaccounts "nobody" not found`}, "create", "token", "nobody", "-n", "team-a")

	t.Run("forged", func(t *testing.T) { forgedTokens(t, newStranger(t, s), keys, token) })
	t.Run("audiences", func(t *testing.T) {
		admin := admin.in(t)
		elsewhere := admin.token("--audience=https://vault.example.com")
		newStranger(t, s).refused("a token for another audience", elsewhere)
		newStranger(t, s).known(admin.token("--audience=https://vault.example.com", "--audience="+ownAudience), robot)
		if r := reviewToken(t, admin, elsewhere, "https://vault.example.com"); !r.Authenticated || r.User.Username != robot || len(r.Audiences) != 1 || r.Audiences[0] != "https://vault.example.com" {
			t.Errorf("a review for the token's audience: %+v", r)
		}
		if r := reviewToken(t, admin, elsewhere); r.Authenticated || r.Error == "" {
			t.Errorf("a review for the server's audience: %+v", r)
		}
		if r := reviewToken(t, admin, token); !r.Authenticated || r.User.Username != robot || len(r.User.Extra["authentication.kubernetes.io/credential-id"]) != 1 {
			t.Errorf("a review of a good token: %+v", r)
		}
		if r := reviewToken(t, admin, tampered(token)); r.Authenticated {
			t.Errorf("a review of a bad token: %+v", r)
		}
	})
	t.Run("documents", func(t *testing.T) { openIDDocuments(t, admin.in(t), token) })
	t.Run("bound", func(t *testing.T) { boundTokens(t, admin.in(t), newStranger(t, s), token) })
}

// forgedTokens are refused, whatever it is that is wrong with them.
func forgedTokens(t *testing.T, stranger *stranger, keys *signer, token string) {
	header, body := tokenParts(t, token)
	stranger.known(keys.sign(header, body), robot) // what follows is refused for its difference alone
	now := time.Now().Unix()
	long := int64(3600)
	for what, forged := range map[string]string{
		"a changed signature":         tampered(token),
		"no signature":                token[:strings.LastIndex(token, ".")+1],
		"the algorithm none":          tokenPart(t, claims{"alg": "none"}) + "." + tokenPart(t, body) + ".",
		"an unknown key":              newSigner(t).sign(header, body),
		"an expired token":            keys.sign(header, body.but(claims{"iat": now - 2*long, "nbf": now - 2*long, "exp": now - long})),
		"a token of the future":       keys.sign(header, body.but(claims{"iat": now + long, "nbf": now + long, "exp": now + 2*long})),
		"a token that never expires":  keys.sign(header, body.but(claims{"exp": nil})),
		"another issuer":              keys.sign(header, body.but(claims{"iss": "https://elsewhere.example.com"})),
		"another audience":            keys.sign(header, body.but(claims{"aud": []string{"https://elsewhere.example.com"}})),
		"another subject":             keys.sign(header, body.but(claims{"sub": "system:serviceaccount:kube-system:default"})),
		"a user who is not a robot":   keys.sign(header, body.but(claims{"sub": "admin"})),
		"an account that never was":   keys.sign(header, body.but(claims{"sub": "system:serviceaccount:team-a:ghost", "kubernetes.io": claims{"namespace": "team-a", "serviceaccount": claims{"name": "ghost", "uid": "1"}}})),
		"the account of another life": keys.sign(header, body.but(claims{"kubernetes.io": claims{"namespace": "team-a", "serviceaccount": claims{"name": "robot", "uid": "1"}}})),
	} {
		stranger.refused(what, forged)
	}
}

// reviewToken asks the server about a token.
func reviewToken(t *testing.T, admin *kubectl, token string, audiences ...string) authenticationv1.TokenReviewStatus {
	t.Helper()
	r, err := typedClient(t, admin.server.Config).AuthenticationV1().TokenReviews().Create(t.Context(),
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Status
}

// openIDDocuments are what others verify tokens with.
func openIDDocuments(t *testing.T, admin *kubectl, token string) {
	var configuration struct {
		Issuer     string
		KeysURI    string   `json:"jwks_uri"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}
	// Service accounts may read them; others, such as alice, only if they are given the role.
	bearer := kubectlAs(t, admin.server, bearing(admin.server, token))
	decode(t, []byte(bearer.ok("get", "--raw", "/.well-known/openid-configuration")), &configuration)
	if configuration.Issuer != ownAudience || !strings.HasPrefix(configuration.KeysURI, "https://") || !strings.HasSuffix(configuration.KeysURI, "/openid/v1/jwks") ||
		len(configuration.Algorithms) != 1 || configuration.Algorithms[0] != "ES256" {
		t.Errorf("the configuration: %+v", configuration)
	}
	var set struct{ Keys []map[string]string }
	decode(t, []byte(bearer.ok("get", "--raw", "/openid/v1/jwks")), &set)
	header, _ := tokenParts(t, token)
	verified := 0
	for _, key := range set.Keys {
		if key["kid"] != header["kid"] {
			continue
		}
		if key["d"] != "" {
			t.Error("the private key is published")
		}
		if !signedBy(t, token, key) || signedBy(t, tampered(token), key) {
			t.Errorf("the key does not verify the token: %v", key)
		}
		verified++
	}
	if verified != 1 {
		t.Errorf("%d keys have the name %v: %v", verified, header["kid"], set)
	}
	person(t, admin.server, "alice").fails([]string{`User "alice" cannot get path "/openid/v1/jwks"`}, "get", "--raw", "/openid/v1/jwks")
}

// boundTokens end with what they are bound to. Nothing waits for their expiry.
func boundTokens(t *testing.T, admin *kubectl, stranger *stranger, token string) {
	bound := admin.token("--bound-object-kind=Secret", "--bound-object-name=leash")
	stranger.known(bound, robot)
	admin.fails([]string{`secrets "rope" not found`}, "create", "token", "robot", "-n", "team-a", "--bound-object-kind=Secret", "--bound-object-name=rope")
	gone := func(what, token string) {
		t.Helper()
		eventually(t, soon, what+" is refused", func() bool {
			code, _ := stranger.as(token)
			return code == http.StatusUnauthorized
		})
	}
	admin.ok("delete", "secret", "leash", "-n", "team-a")
	gone("a token whose secret is deleted", bound)
	admin.ok("create", "secret", "generic", "leash", "-n", "team-a")
	stranger.refused("a token whose secret is another one", bound)
	stranger.known(token, robot)

	admin.ok("delete", "serviceaccount", "robot", "-n", "team-a")
	gone("a token whose account is deleted", token)
	kubectlAs(t, admin.server, bearing(admin.server, token)).fails([]string{loggedOut}, "get", "configmaps", "-n", "team-a")
	if r := reviewToken(t, admin, token); r.Authenticated {
		t.Errorf("a review of a token whose account is deleted: %+v", r)
	}
	admin.ok("create", "serviceaccount", "robot", "-n", "team-a")
	stranger.known(admin.token(), robot)
	stranger.refused("a token of the account's former life", token)
}

// A key is exchanged for another: tokens of both are accepted as long as the old public key is there, and not when it is gone.
func TestServiceAccountKeysRotate(t *testing.T) {
	needsDiscovery(t)
	prefix, former, next := prefix(), newSigner(t), newSigner(t)
	first := serve(t, against, prefix, "--service-account-signing-key-file="+former.private)
	admin := newKubectl(t, first)
	admin.ok("create", "namespace", "team-a")
	admin.ok("create", "serviceaccount", "robot", "-n", "team-a")
	old := admin.token()
	newStranger(t, first).known(old, robot)
	stop(t, first)

	second := serve(t, against, prefix, "--service-account-signing-key-file="+next.private, "--service-account-key-file="+former.public)
	admin = newKubectl(t, second)
	young := admin.token()
	if a, b := keyID(t, old), keyID(t, young); a == b {
		t.Errorf("both tokens are signed by %s", a)
	}
	newStranger(t, second).known(old, robot)
	newStranger(t, second).known(young, robot)
	for _, token := range []string{old, young} {
		if r := reviewToken(t, admin, token); !r.Authenticated || r.User.Username != robot {
			t.Errorf("a review: %+v", r)
		}
	}
	var set struct{ Keys []json.RawMessage }
	if decode(t, []byte(admin.ok("get", "--raw", "/openid/v1/jwks")), &set); len(set.Keys) != 2 {
		t.Errorf("%d keys are published", len(set.Keys))
	}
	// The file is read again when it changes: the old key is taken out while the server runs.
	nextPublic := readFile(t, next.public)
	swapFile(t, former.public, nextPublic)
	eventually(t, soon, "the old key is forgotten", func() bool {
		code, _ := newStranger(t, second).as(old)
		return code == http.StatusUnauthorized
	})
	newStranger(t, second).known(young, robot)
}

func keyID(t *testing.T, token string) any {
	t.Helper()
	header, _ := tokenParts(t, token)
	return header["kid"]
}
