package token

import (
	"crypto"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
)

func encoded(t testing.TB, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// signed is a token with arbitrary claims and any key.
func signed(t testing.TB, algorithm jose.SignatureAlgorithm, key crypto.PrivateKey, kid string, claims any, headers ...func(*jose.SignerOptions)) string {
	t.Helper()
	options := &jose.SignerOptions{}
	for _, f := range headers {
		f(options)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, options)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// withHMAC signs with a secret that is no secret.
func withHMAC(header, payload string, secret []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(header + "." + payload))
	return header + "." + payload + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// TestForgeriesAreRefused has the claims of a good token in all of them: what is
// wrong is the signature, or how the token is written.
func TestForgeriesAreRefused(t *testing.T) {
	ours, theirs := newRSA(t, 2048), newRSA(t, 2048)
	keys, err := LoadKeys(writeFile(t, "ours", privatePEM(t, ours)), writeFile(t, "other", publicPEM(t, newECDSA(t))))
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, func(o *Options) { o.Keys = keys })
	good := f.issue(t, f.createAccount(t, "robot"))
	claims, kid := payload(t, good), keyID(t, ours)
	f.accepted(t, good)
	f.accepted(t, signed(t, jose.RS256, ours, kid, claims))
	f.accepted(t, signed(t, jose.RS256, ours, "", claims)) // any of our keys

	parts := strings.Split(good, ".")
	head := func(header map[string]any) string { return encoded(t, header) }
	changed := maps.Clone(claims)
	changed["sub"] = "system:serviceaccount:kube-system:admin"
	const noKey = "invalid signature, no keys found"
	const broken = "go-jose/go-jose: error in cryptographic primitive"
	otherAlgorithm := func(name string) string {
		return `invalid signature, the algorithm "` + name + `" is not that of the key`
	}
	for name, test := range map[string]struct{ token, reason string }{
		"none":                       {head(map[string]any{"alg": "none", "kid": kid}) + "." + parts[1] + ".", otherAlgorithm("none")},
		"none, without a kid":        {head(map[string]any{"alg": "none"}) + "." + parts[1] + ".", otherAlgorithm("none")},
		"None":                       {head(map[string]any{"alg": "None", "kid": kid}) + "." + parts[1] + ".", otherAlgorithm("None")},
		"no algorithm":               {head(map[string]any{"kid": kid}) + "." + parts[1] + "." + parts[2], otherAlgorithm("")},
		"HMAC with the public PEM":   {withHMAC(head(map[string]any{"alg": "HS256", "kid": kid}), parts[1], publicPEM(t, ours)), otherAlgorithm("HS256")},
		"HMAC with the public DER":   {withHMAC(head(map[string]any{"alg": "HS256"}), parts[1], publicDER(t, ours.Public())), otherAlgorithm("HS256")},
		"another algorithm":          {signed(t, jose.PS256, ours, kid, claims), otherAlgorithm("PS256")},
		"a longer sum":               {signed(t, jose.RS512, ours, kid, claims), otherAlgorithm("RS512")},
		"another key":                {signed(t, jose.RS256, theirs, keyID(t, theirs), claims), noKey},
		"another key as ours":        {signed(t, jose.RS256, theirs, kid, claims), broken},
		"kid as a path":              {signed(t, jose.RS256, ours, "../../dev/null", claims), noKey},
		"kid of the other key":       {signed(t, jose.RS256, ours, keys.current.Load().all[1].id, claims), otherAlgorithm("RS256")},
		"key in the token":           {signed(t, jose.RS256, theirs, kid, claims, func(o *jose.SignerOptions) { o.EmbedJWK = true }), otherAlgorithm("RS256")},
		"unknown critical header":    {signed(t, jose.RS256, ours, kid, claims, func(o *jose.SignerOptions) { o.WithHeader("crit", []string{"x"}).WithHeader("x", 1) }), broken},
		"changed claims":             {parts[0] + "." + encoded(t, changed) + "." + parts[2], broken},
		"no signature":               {parts[0] + "." + parts[1] + ".", broken},
		"signature of another token": {parts[0] + "." + parts[1] + "." + strings.Split(signed(t, jose.RS256, ours, kid, changed), ".")[2], broken},
		"a fourth part":              {good + "." + parts[2], ""},
		"two parts":                  {parts[0] + "." + parts[1], ""},
		"JSON":                       {`{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, ""},
		"a line break":               {parts[0] + "." + parts[1] + ".\n" + parts[2], ""},
		"a space":                    {" " + good, ""},
		"padding":                    {good + "==", ""},
		"too long":                   {good + strings.Repeat("A", maxToken), ""},
		"empty":                      {"", ""},
	} {
		t.Run(name, func(t *testing.T) { f.refused(t, test.token, test.reason) })
	}
}

// TestOneSpelling changes the bits of the last character that mean nothing, and inserts
// characters that decoders skip.
func TestOneSpelling(t *testing.T) {
	f := newFixture(t)
	good := f.issue(t, f.createAccount(t, "robot"))
	f.accepted(t, good)
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := len(good) - 1
	for _, c := range alphabet {
		if other := good[:last] + string(c); other != good {
			if _, ok, _ := f.AuthenticateToken(t.Context(), other); ok {
				t.Errorf("%q is as good as %q", c, good[last])
			}
		}
	}
	for _, skipped := range []string{"\n", "\r", "\r\n", "=", " "} {
		for _, at := range []int{0, 5, strings.Index(good, ".") + 3, strings.LastIndex(good, ".") + 3, len(good)} {
			if _, ok, _ := f.AuthenticateToken(t.Context(), good[:at]+skipped+good[at:]); ok {
				t.Errorf("%q is skipped at %d", skipped, at)
			}
		}
	}
}

// TestClaimsThatNoIssuerWrites are signed with our key.
func TestClaimsThatNoIssuerWrites(t *testing.T) {
	f := newFixture(t)
	account := f.createAccount(t, "robot")
	other := f.createAccount(t, "other")
	good := f.issue(t, account)
	set := f.options.Keys.current.Load()
	resign := func(change func(claims, bound map[string]any)) string {
		claims := payload(t, good)
		bound := claims["kubernetes.io"].(map[string]any)
		change(claims, bound)
		token, err := jwt.Signed(set.signer).Claims(claims).CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	type claims = map[string]any
	f.accepted(t, resign(func(_, _ claims) {}))
	f.accepted(t, resign(func(_, b claims) { b["warnafter"] = time.Now().Add(-time.Minute).Unix() }))
	for name, test := range map[string]struct {
		change func(c, b claims)
		reason string
	}{
		"no expiry":         {func(c, _ claims) { delete(c, "exp") }, "service account token has no expiry"},
		"no audience":       {func(c, _ claims) { delete(c, "aud") }, "service account token has no audience"},
		"no kubernetes.io":  {func(c, _ claims) { delete(c, "kubernetes.io") }, "service account token names no service account"},
		"no uid":            {func(_, b claims) { b["serviceaccount"] = claims{"name": "robot"} }, "service account token names no service account"},
		"no namespace":      {func(_, b claims) { delete(b, "namespace") }, "service account token names no service account"},
		"no name":           {func(_, b claims) { b["serviceaccount"] = claims{"uid": "u"} }, "service account token names no service account"},
		"another subject":   {func(c, _ claims) { c["sub"] = "system:admin" }, `service account token is about "system:admin" and names the service account team/robot`},
		"uid of another":    {func(_, b claims) { b["serviceaccount"] = claims{"name": "robot", "uid": other.UID} }, "service account UID (" + string(account.UID) + ") does not match claim (" + string(other.UID) + ")"},
		"bound to a pod":    {func(_, b claims) { b["pod"] = claims{"name": "p", "uid": "u"} }, "service account token is bound to a pod, but this server has no pods"},
		"bound to a node":   {func(_, b claims) { b["node"] = claims{"name": "n"} }, "service account token is bound to a node, but this server has no nodes"},
		"an empty secret":   {func(_, b claims) { b["secret"] = claims{} }, "service account token has been invalidated"},
		"issued later":      {func(c, _ claims) { c["iat"] = time.Now().Add(time.Hour).Unix() }, "service account token is issued in the future"},
		"names that differ": {func(c, _ claims) { c["ISS"] = testIssuer; c["iss"] = "somebody else" }, ""},
	} {
		t.Run(name, func(t *testing.T) { f.refused(t, resign(test.change), test.reason) })
	}
}

// FuzzAuthenticateToken checks that authentication never panics, and accepts only
// issued tokens.
func FuzzAuthenticateToken(f *testing.F) {
	path, err := LoadOrCreateKey(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	keys, err := LoadKeys(path)
	if err != nil {
		f.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "robot", UID: "1"}}
	issuer, err := New(Options{Keys: keys, Issuers: []string{testIssuer}, Audiences: authenticator.Audiences{testAudience}, Live: outdated{account}})
	if err != nil {
		f.Fatal(err)
	}
	x := &fixture{Issuer: issuer}
	good := x.issue(f, account)
	x.accepted(f, good)
	parts := strings.Split(good, ".")
	content := parts[0] + "." + parts[1]
	for _, seed := range []string{
		good, "", ".", "..", "...", "{}", content + ".", parts[0] + ".." + parts[2], "." + parts[1] + "." + parts[2],
		encoded(f, map[string]any{"alg": "none"}) + "." + parts[1] + ".",
		encoded(f, map[string]any{"alg": "ES256", "jwk": map[string]any{"kty": "oct", "k": "AA"}}) + "." + parts[1] + "." + parts[2],
		encoded(f, map[string]any{"alg": "ES256", "crit": []string{"b64"}, "b64": false}) + "." + parts[1] + "." + parts[2],
		encoded(f, map[string]any{"alg": "ES256", "x5c": []string{"AA=="}}) + "." + parts[1] + "." + parts[2],
		parts[0] + "." + encoded(f, map[string]any{"iss": testIssuer}) + "." + parts[2],
	} {
		f.Add(seed, seed, seed)
	}
	f.Fuzz(func(t *testing.T, whole, header, claims string) {
		// As it is, and with parts that are well-formed.
		for _, token := range []string{whole,
			base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "." + parts[2],
			base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString([]byte(claims)),
			parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString([]byte(claims)),
		} {
			_, ok, err := issuer.AuthenticateToken(t.Context(), token)
			if ok && (err != nil || !strings.HasPrefix(token, content+".")) {
				t.Errorf("accepted %q: %v", token, err)
			}
		}
	})
}
