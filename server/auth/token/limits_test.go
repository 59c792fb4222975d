package token

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// memory is a Getter, and a rest.Getter, that has its objects in memory.
type memory struct {
	account *corev1.ServiceAccount
	secret  *corev1.Secret
	err     error
	obj     runtime.Object
	asked   *[]string
}

func (m memory) ServiceAccount(context.Context, string, string) (*corev1.ServiceAccount, error) {
	return m.account, m.err
}

func (m memory) Secret(context.Context, string, string) (*corev1.Secret, error) {
	return m.secret, m.err
}

func (m memory) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	if info, ok := request.RequestInfoFrom(ctx); ok && m.asked != nil {
		*m.asked = append(*m.asked, info.Resource+" "+request.NamespaceValue(ctx)+"/"+name+" "+o.ResourceVersion)
	}
	return m.obj, m.err
}

// inMemory is an issuer without etcd.
func inMemory(t *testing.T, m memory) *Issuer {
	t.Helper()
	path, err := LoadOrCreateKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := New(Options{Keys: keys, Issuers: []string{testIssuer}, Audiences: authenticator.Audiences{testAudience}, Live: m})
	if err != nil {
		t.Fatal(err)
	}
	return issuer
}

var robot = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "robot", UID: "1"}}

// What a token is bound to counts as deleted a minute after it was marked, not before.
func TestDeletionCountsAfterAMinute(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	marked := func(ago time.Duration) metav1.ObjectMeta {
		at := metav1.NewTime(now.Add(-ago))
		return metav1.ObjectMeta{Namespace: namespace, Name: "x", UID: "1", DeletionTimestamp: &at}
	}
	c := &claims{}
	c.Bound = bound{Namespace: namespace, Account: reference{Name: "robot", UID: "1"}, Secret: &reference{Name: "s", UID: "1"}}
	good := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
	for _, test := range []struct {
		m    memory
		want string
	}{
		{memory{account: robot, secret: good}, ""},
		{memory{account: &corev1.ServiceAccount{ObjectMeta: marked(time.Minute)}, secret: good}, ""},
		{memory{account: &corev1.ServiceAccount{ObjectMeta: marked(time.Minute + 1)}, secret: good}, "service account team/robot has been deleted"},
		{memory{account: robot, secret: &corev1.Secret{ObjectMeta: marked(time.Minute)}}, ""},
		{memory{account: robot, secret: &corev1.Secret{ObjectMeta: marked(time.Minute + 1)}}, "service account token has been invalidated"},
		{memory{account: robot, secret: &corev1.Secret{}}, "secret UID () does not match service account secret ref claim (1)"},
		{memory{err: errors.New("no answer")}, "no answer"},
	} {
		if got := text(c.exists(t.Context(), test.m, now)); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
}

// Objects are looked up by their kind, namespace and name: in the cache or live.
func TestStoresLookUp(t *testing.T) {
	var asked []string
	s := &Stores{}
	s.Bind(memory{obj: robot, asked: &asked}, memory{obj: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, asked: &asked})
	for _, getter := range []Getter{s.Cached(), s.Live()} {
		if a, err := getter.ServiceAccount(t.Context(), "team", "robot"); err != nil || a != robot {
			t.Errorf("%v, %v", a, err)
		}
		if secret, err := getter.Secret(t.Context(), "team", "s"); err != nil || secret.Name != "s" {
			t.Errorf("%v, %v", secret, err)
		}
	}
	if want := []string{"serviceaccounts team/robot 0", "secrets team/s 0", "serviceaccounts team/robot ", "secrets team/s "}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q", asked)
	}
	s.Bind(memory{obj: &corev1.Secret{}}, memory{err: errors.New("no answer")})
	if _, err := s.Live().ServiceAccount(t.Context(), "team", "robot"); text(err) != "team/robot is stored as a *v1.Secret" {
		t.Error(err)
	}
	if _, err := s.Live().Secret(t.Context(), "team", "s"); text(err) != "no answer" {
		t.Error(err)
	}
}

// annotated returns a context for audit, and how to read its annotations.
func annotated(t *testing.T) (context.Context, func() map[string]string) {
	ctx := audit.WithAuditContext(request.WithNamespace(t.Context(), namespace))
	if err := audit.AuditContextFrom(ctx).Init(audit.RequestAuditConfig{Level: "Metadata"}, nil); err != nil {
		t.Fatal(err)
	}
	return ctx, func() map[string]string { return audit.AuditContextFrom(ctx).GetEventAnnotations() }
}

// A token that should have been replaced is noted for audit, from the moment after its
// threshold on.
func TestStaleTokensAreNoted(t *testing.T) {
	i := inMemory(t, memory{account: robot})
	now := time.Unix(1_900_000_000, 0)
	const key = "authentication.k8s.io/stale-token"
	for _, test := range []struct {
		after any
		want  string
	}{
		{nil, ""},
		{int64(0), ""},
		{now.Unix(), ""},
		{now.Unix() + 1, ""},
		{now.Unix() - 7, "subject: system:serviceaccount:team:robot, seconds after warning threshold: 7"},
	} {
		i.now = func() time.Time { return now }
		issued, err := i.Issue(Order{Account: robot, Audiences: []string{testAudience}, Lifetime: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		said := payload(t, issued.Token)
		if test.after != nil {
			said["kubernetes.io"].(map[string]any)["warnafter"] = test.after
		}
		token, err := jwt.Signed(i.options.Keys.current.Load().signer).Claims(said).CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		ctx, annotations := annotated(t)
		if _, ok, err := i.AuthenticateToken(ctx, token); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if got := annotations()[key]; got != test.want {
			t.Errorf("%v: %q", test.after, got)
		}
	}
}

// Tokens may be as long as the limit, which is what is issued and what is accepted.
func TestLongestToken(t *testing.T) {
	i := inMemory(t, memory{account: robot})
	of := func(length int) (Issued, error) {
		return i.Issue(Order{Account: robot, Audiences: []string{testAudience, strings.Repeat("a", length)}, Lifetime: time.Hour})
	}
	short, err := of(1)
	if err != nil {
		t.Fatal(err)
	}
	// Three bytes are four characters of a token.
	length := (maxToken - len(short.Token)) * 3 / 4
	longest := Issued{}
	for {
		next, err := of(length)
		if errors.Is(err, errTooLong) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		longest = next
		length++
	}
	if len(longest.Token) != maxToken {
		t.Errorf("%d bytes at most", len(longest.Token))
	}
	if _, ok, err := i.AuthenticateToken(t.Context(), longest.Token); !ok || err != nil {
		t.Error(ok, err)
	}
	// One more character, in the signature, is too long for more work.
	if _, ok, err := i.AuthenticateToken(t.Context(), short.Token+strings.Repeat("A", maxToken+1-len(short.Token))); ok || err != nil {
		t.Error(ok, err)
	}
	if _, ok, err := i.AuthenticateToken(t.Context(), short.Token+strings.Repeat("A", maxToken-len(short.Token))); ok {
		t.Error(ok, err)
	}
}

// The first identifier is that of the key that signs.
func TestKeyIDs(t *testing.T) {
	signing, former := newECDSA(t), newECDSA(t)
	keys, err := LoadKeys(writeFile(t, "a", privatePEM(t, signing)), writeFile(t, "b", publicPEM(t, former)))
	if err != nil {
		t.Fatal(err)
	}
	i := inMemory(t, memory{})
	i.options.Keys = keys
	first, all := i.KeyIDs()
	if first != keyID(t, signing) || !slices.Equal(all, []string{keyID(t, signing), keyID(t, former)}) {
		t.Errorf("%s, %v", first, all)
	}
}

// A key is for one algorithm; keys that tokens have none for are refused.
func TestAlgorithmOfKeys(t *testing.T) {
	for curve, want := range map[elliptic.Curve]jose.SignatureAlgorithm{elliptic.P256(): jose.ES256, elliptic.P384(): jose.ES384, elliptic.P521(): jose.ES512} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := algorithmOf(key.Public()); got != want || err != nil {
			t.Errorf("%v: %s, %v", curve.Params().Name, got, err)
		}
	}
	small, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := algorithmOf(small.Public()); got != "" || text(err) != "the curve P-224 has no algorithm in JSON Web Tokens; give a key of P-256, P-384 or P-521" {
		t.Errorf("%q, %v", got, err)
	}
	other, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := algorithmOf(other); got != "" || text(err) != "a key of type ed25519.PublicKey cannot verify; give one for RSA or ECDSA" {
		t.Errorf("%q, %v", got, err)
	}
	_, err = LoadKeys(writeFile(t, "small", privatePEM(t, small)))
	if err == nil || !strings.Contains(err.Error(), "small: the curve P-224") {
		t.Error(err)
	}
}

// Others learn each algorithm once, sorted.
func TestPublishedAlgorithms(t *testing.T) {
	keys, err := LoadKeys(writeFile(t, "a", privatePEM(t, newRSA(t, 2048))), writeFile(t, "b", slices.Concat(publicPEM(t, newECDSA(t)), publicPEM(t, newECDSA(t)))))
	if err != nil {
		t.Fatal(err)
	}
	if got := keys.current.Load().algorithms; !slices.Equal(got, []string{"ES256", "RS256"}) {
		t.Error(got)
	}
}

// A file of keys may have a megabyte, and no more. The parts of a file are not taken for
// those of another.
func TestFilesOfKeys(t *testing.T) {
	pem := privatePEM(t, newECDSA(t))
	padded := func(size int) string {
		return writeFile(t, "key", append(slices.Clone(pem), strings.Repeat("\n", size-len(pem))...))
	}
	if _, err := LoadKeys(padded(maxKeyFile)); err != nil {
		t.Error(err)
	}
	if _, err := LoadKeys(padded(maxKeyFile + 1)); err == nil || !strings.Contains(err.Error(), "of 1048577 bytes") {
		t.Error(err)
	}
	if digest([][]byte{[]byte("ab"), []byte("c")}) == digest([][]byte{[]byte("a"), []byte("bc")}) {
		t.Error("two files are as two others")
	}
	if digest([][]byte{[]byte("a")}) == digest([][]byte{[]byte("b")}) {
		t.Error("one file is as another")
	}
}

// A key that is there and cannot be read is not replaced, and one that cannot be written is
// an error.
func TestKeyIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	if err := create(filepath.Join(dir, "none", "key"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	path := filepath.Join(dir, "key")
	for _, content := range []string{"first", "second"} {
		if err := create(path, []byte(content)); err != nil {
			t.Error(err)
		}
	}
	if data, err := os.ReadFile(path); string(data) != "first" || err != nil {
		t.Errorf("%s, %v", data, err)
	}
	if err := create(filepath.Join(dir, strings.Repeat("k", 300)), nil); err == nil {
		t.Error("a key whose name is too long for a file is taken for one that another process has made")
	}
	file := writeFile(t, "file", nil)
	if path, err := LoadOrCreateKey(file); err == nil {
		t.Errorf("%s below a file", path)
	}
}

func TestRequestsThatAreNone(t *testing.T) {
	i := inMemory(t, memory{account: robot})
	r := &requests{issuer: i, accounts: memory{obj: robot}}
	ask := func(ctx context.Context, obj runtime.Object) (*authenticationv1.TokenRequest, error) {
		out, err := r.Create(ctx, "robot", obj, nil, &metav1.CreateOptions{})
		token, _ := out.(*authenticationv1.TokenRequest)
		return token, err
	}
	in := request.WithNamespace(t.Context(), namespace)
	if _, err := ask(in, &corev1.Secret{}); !apierrors.IsBadRequest(err) || err.Error() != "not a TokenRequest: *v1.Secret" {
		t.Error(err)
	}
	if _, err := ask(t.Context(), &authenticationv1.TokenRequest{}); !apierrors.IsBadRequest(err) || err.Error() != "namespace is required" {
		t.Error(err)
	}
	// A request may name what it is for.
	named := lasting(600)
	named.Name, named.Namespace = "robot", namespace
	if _, err := ask(in, named); err != nil {
		t.Error(err)
	}
	if _, err := ask(in, lasting(1<<32)); err != nil {
		t.Error(err)
	}
	r.accounts = memory{obj: &corev1.Secret{}}
	if _, err := ask(in, lasting(600)); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "the service account robot is stored as a *v1.Secret") {
		t.Error(err)
	}
	if _, ok := r.New().(*authenticationv1.TokenRequest); !ok || r.GroupVersionKind(schema.GroupVersion{}) != authenticationv1.SchemeGroupVersion.WithKind("TokenRequest") {
		t.Errorf("%T, %v", r.New(), r.GroupVersionKind(schema.GroupVersion{}))
	}
}

// What is issued is what is asked for: its audiences and its lifetime, and audit learns its
// identifier.
func TestIssuedAsAsked(t *testing.T) {
	i := inMemory(t, memory{account: robot})
	for _, test := range []struct {
		most    time.Duration
		seconds int64
		want    int64
	}{
		{0, 1 << 32, 1 << 32},
		{time.Hour, 3600, 3600},
		{time.Hour, 3601, 3600},
		{time.Second / 2, 3600, 3600}, // less than a second is no limit
	} {
		i.options.MaxExpiration = test.most
		i.now = func() time.Time { return time.Unix(1_900_000_000, 0) }
		in := lasting(test.seconds)
		in.Spec.Audiences = []string{"vault"}
		ctx, annotations := annotated(t)
		obj, err := (&requests{issuer: i, accounts: memory{obj: robot}}).Create(ctx, "robot", in, rest.ValidateAllObjectFunc, nil)
		if err != nil {
			t.Fatal(err)
		}
		out := obj.(*authenticationv1.TokenRequest)
		said := payload(t, out.Status.Token)
		if got := int64(said["exp"].(float64)) - 1_900_000_000; got != test.want || *out.Spec.ExpirationSeconds != test.want || out.Status.ExpirationTimestamp.Unix() != 1_900_000_000+test.want {
			t.Errorf("%v: lasts %d s, says %d and %v", test, got, *out.Spec.ExpirationSeconds, out.Status.ExpirationTimestamp)
		}
		if !reflect.DeepEqual(said["aud"], []any{"vault"}) || !out.CreationTimestamp.Time.Equal(i.now()) {
			t.Errorf("for %v, at %v", said["aud"], out.CreationTimestamp)
		}
		if got := annotations()["authentication.kubernetes.io/issued-credential-id"]; got != "JTI="+said["jti"].(string) {
			t.Errorf("audit has %q", got)
		}
		if *in.Spec.ExpirationSeconds != test.seconds || in.Status.Token != "" {
			t.Errorf("the request has become %v", in)
		}
	}
}

// A document is for reading: GET and HEAD.
func TestDocumentMethods(t *testing.T) {
	failure := document("text/plain", func() ([]byte, error) { return []byte("half"), errors.New("no keys") })
	good := document("text/plain", func() ([]byte, error) { return []byte("all"), nil })
	for _, test := range []struct {
		handler     http.Handler
		method      string
		code        int
		body, allow string
	}{
		{good, http.MethodGet, 200, "all", ""},
		{good, http.MethodHead, 200, "all", ""}, // the server leaves the body out
		{good, http.MethodPut, 405, "405: Method Not Allowed\n", "GET, HEAD"},
		{failure, http.MethodGet, 500, "no keys\n", ""},
	} {
		w := httptest.NewRecorder()
		test.handler.ServeHTTP(w, httptest.NewRequest(test.method, "/", nil))
		if w.Code != test.code || w.Body.String() != test.body || w.Header().Get("Allow") != test.allow {
			t.Errorf("%s: %d %q %v", test.method, w.Code, w.Body, w.Header())
		}
	}
}

// Why a token is refused is told by its times, to the second.
func TestTimesOfTokens(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	at := func(offset time.Duration) *jwt.NumericDate { return jwt.NewNumericDate(now.Add(offset)) }
	for _, test := range []struct {
		c    jwt.Claims
		want string
	}{
		{jwt.Claims{Expiry: at(0)}, ""},
		{jwt.Claims{Expiry: at(-61 * time.Second)}, "service account token has expired"},
		{jwt.Claims{NotBefore: at(61 * time.Second)}, "service account token is not valid yet"},
		{jwt.Claims{IssuedAt: at(61 * time.Second)}, "service account token is issued in the future"},
		{jwt.Claims{Expiry: at(-59 * time.Second), NotBefore: at(59 * time.Second), IssuedAt: at(59 * time.Second)}, ""},
	} {
		if got := text((&claims{Claims: test.c}).inTime(now)); got != test.want {
			t.Errorf("%v: %s", test.c, got)
		}
	}
	if got := text(others{Bound: map[string]any{"namespace": 1, "secret": 1, "serviceaccount": 1, "warnafter": 1}}.check()); got != "" {
		t.Error(got)
	}
	if got := text(others{Bound: map[string]any{"thing": 1, "namespace": 1, "pod": 1}}.check()); got != "service account token is bound to a pod, but this server has no pods" {
		t.Error(got)
	}
}
