package token

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/keyutil"

	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/store"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

const (
	testIssuer   = "https://issuer.example"
	testAudience = "https://server.example"
	namespace    = "team"
)

// fixture is an issuer whose service accounts and secrets are in etcd.
type fixture struct {
	*Issuer
	accounts, secrets *genericregistry.Store
	stores            *Stores
	keyFile           string
}

// newFixture makes one. The options may be changed before the issuer is made of them.
func newFixture(t testing.TB, change ...func(*Options)) *fixture {
	t.Helper()
	c := store.Config{}
	c.Transport.ServerList = []string{etcdtest.Endpoint(t)}
	c.Prefix = etcdtest.Prefix(t)
	backend, err := store.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})
	f := &fixture{
		accounts: newStore(t, backend, "serviceaccounts", func() runtime.Object { return &corev1.ServiceAccount{} }, func() runtime.Object { return &corev1.ServiceAccountList{} }),
		secrets:  newStore(t, backend, "secrets", func() runtime.Object { return &corev1.Secret{} }, func() runtime.Object { return &corev1.SecretList{} }),
		stores:   &Stores{},
	}
	f.stores.Bind(f.accounts, f.secrets)
	f.keyFile, err = LoadOrCreateKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := LoadKeys(f.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Keys: keys, Issuers: []string{testIssuer}, Audiences: authenticator.Audiences{testAudience},
		Cached: f.stores.Cached(), Live: f.stores.Live(),
	}
	for _, f := range change {
		f(&o)
	}
	if f.Issuer, err = New(o); err != nil {
		t.Fatal(err)
	}
	return f
}

// newStore is a store like that of a built-in resource, without rules.
func newStore(t testing.TB, backend *store.Backend, resource string, newFunc, newListFunc func() runtime.Object) *genericregistry.Store {
	t.Helper()
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	codec := scheme.Codecs.CodecForVersions(info.Serializer, info.Serializer, corev1.SchemeGroupVersion, corev1.SchemeGroupVersion)
	gr := schema.GroupResource{Resource: resource}
	free := strategy{scheme.Scheme, names.SimpleNameGenerator}
	s := &genericregistry.Store{
		NewFunc: newFunc, NewListFunc: newListFunc, DefaultQualifiedResource: gr, SingularQualifiedResource: gr,
		CreateStrategy: free, UpdateStrategy: free, DeleteStrategy: free, TableConvertor: rest.NewDefaultTableConvertor(gr),
	}
	spec := store.Spec{Resource: gr, ResourcePrefix: "/" + resource, Codec: codec, Cached: true}
	if err := s.CompleteWithOptions(&generic.StoreOptions{RESTOptions: backend.RESTOptions(spec)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Destroy)
	return s
}

type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

func (strategy) NamespaceScoped() bool                                            { return true }
func (strategy) PrepareForCreate(context.Context, runtime.Object)                 {}
func (strategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}
func (strategy) Validate(context.Context, runtime.Object) field.ErrorList         { return nil }
func (strategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
func (strategy) Canonicalize(runtime.Object)                   {}
func (strategy) AllowCreateOnUpdate(context.Context) bool      { return false }
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return true }

func inNamespace(t testing.TB) context.Context {
	return request.WithNamespace(t.Context(), namespace)
}

func (f *fixture) createAccount(t testing.TB, name string, finalizers ...string) *corev1.ServiceAccount {
	t.Helper()
	obj, err := f.accounts.Create(inNamespace(t), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: finalizers}},
		rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*corev1.ServiceAccount)
}

func (f *fixture) createSecret(t testing.TB, name string) *corev1.Secret {
	t.Helper()
	obj, err := f.secrets.Create(inNamespace(t), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
		rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*corev1.Secret)
}

func remove(t testing.TB, s *genericregistry.Store, name string) {
	t.Helper()
	if _, _, err := s.Delete(inNamespace(t), name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// issue returns a token of an hour for the server.
func (f *fixture) issue(t testing.TB, account *corev1.ServiceAccount, change ...func(*Order)) string {
	t.Helper()
	o := Order{Account: account, Audiences: []string{testAudience}, Lifetime: time.Hour}
	for _, f := range change {
		f(&o)
	}
	issued, err := f.Issue(o)
	if err != nil {
		t.Fatal(err)
	}
	return issued.Token
}

// accepted fails the test unless a token authenticates.
func (f *fixture) accepted(t testing.TB, token string) *authenticator.Response {
	t.Helper()
	response, ok, err := f.AuthenticateToken(t.Context(), token)
	if err != nil || !ok {
		t.Fatalf("refused: %v, %v", ok, err)
	}
	return response
}

// refused fails the test if a token authenticates, or fails for another reason.
func (f *fixture) refused(t testing.TB, token, reason string) {
	t.Helper()
	response, ok, err := f.AuthenticateToken(t.Context(), token)
	if ok {
		t.Fatalf("accepted as %v", response.User)
	}
	if got := text(err); got != reason {
		t.Errorf("refused because\n\t%s\nand not because\n\t%s", got, reason)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func newECDSA(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newRSA(t testing.TB, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// privatePEM and publicPEM are what files have of a key.
func privatePEM(t testing.TB, key crypto.PrivateKey) []byte {
	t.Helper()
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func publicPEM(t testing.TB, key crypto.Signer) []byte {
	t.Helper()
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicDER(t, key.Public())})
}

func writeFile(t testing.TB, path string, data []byte) string {
	t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.TempDir(), path)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
