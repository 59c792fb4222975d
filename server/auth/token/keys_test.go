package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	jose "gopkg.in/go-jose/go-jose.v2"
)

func publicDER(t testing.TB, public crypto.PublicKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// keyID is that of kube-apiserver: the sum of the public key in DER.
func keyID(t testing.TB, key crypto.Signer) string {
	t.Helper()
	sum := sha256.Sum256(publicDER(t, key.Public()))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func TestKeyIsMadeOnceAndForItsOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	var paths [4]string
	var wg sync.WaitGroup
	for i := range paths { // several processes may start in one directory
		wg.Go(func() {
			path, err := LoadOrCreateKey(dir)
			if err != nil {
				t.Error(err)
			}
			paths[i] = path
		})
	}
	wg.Wait()
	first, err := os.ReadFile(filepath.Join(dir, "sa.key"))
	if err != nil {
		t.Fatal(err)
	}
	path, err := LoadOrCreateKey(dir)
	if err != nil || path != paths[0] {
		t.Fatalf("%q, %v", path, err)
	}
	if again, _ := os.ReadFile(path); string(again) != string(first) {
		t.Error("another key the second time")
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files are left: %v", len(entries), entries)
	}
	keys, err := LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	if all := keys.current.Load().all; len(all) != 1 || all[0].algorithm != jose.ES256 {
		t.Errorf("%v", all)
	}
}

func TestKeyCannotBeMade(t *testing.T) {
	file := writeFile(t, "file", nil)
	if _, err := LoadOrCreateKey(filepath.Join(file, "below")); err == nil {
		t.Error("a key below a file")
	}
}

func TestKeysOfFiles(t *testing.T) {
	signing, former, next := newECDSA(t), newRSA(t, 2048), newECDSA(t)
	larger, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := LoadKeys(
		writeFile(t, "signing", privatePEM(t, signing)),
		writeFile(t, "several", append(publicPEM(t, former), publicPEM(t, next)...)),
		writeFile(t, "private, and the signing one again", append(privatePEM(t, larger), publicPEM(t, signing)...)),
	)
	if err != nil {
		t.Fatal(err)
	}
	set := keys.current.Load()
	want := map[string]jose.SignatureAlgorithm{
		keyID(t, signing): jose.ES256, keyID(t, former): jose.RS256, keyID(t, next): jose.ES256, keyID(t, larger): jose.ES384,
	}
	if len(set.all) != len(want) {
		t.Errorf("%d keys", len(set.all))
	}
	for id, algorithm := range want {
		if got := set.byID[id].algorithm; got != algorithm {
			t.Errorf("%s: %q instead of %q", id, got, algorithm)
		}
	}
	if strings.Contains(string(set.document), `"d"`) {
		t.Error("a private key is published")
	}
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	good := writeFile(t, "good", privatePEM(t, newECDSA(t)))
	for _, test := range []struct {
		name, signing, verifying, want string
	}{
		{"not there", filepath.Join(t.TempDir(), "nothing"), good, "no such file"},
		{"not PEM", writeFile(t, "text", []byte("not a key")), good, "does not contain a valid RSA or ECDSA private key; give a private key as PEM"},
		{"public only", writeFile(t, "public", publicPEM(t, newECDSA(t))), good, "does not contain a valid RSA or ECDSA private key"},
		{"nothing to verify with", good, writeFile(t, "empty", nil), "does not contain any valid RSA or ECDSA public keys; give public keys as PEM"},
		{"short RSA", good, writeFile(t, "short", publicPEM(t, newRSA(t, 1024))), "an RSA key of 1024 bits can be broken"},
		{"a directory", t.TempDir(), good, "is not a file of keys"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := LoadKeys(test.signing, test.verifying); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
		})
	}
	_, err := LoadKeys(writeFile(t, "one", nil), writeFile(t, "two", nil))
	if err == nil || !strings.Contains(err.Error(), "one:") || !strings.Contains(err.Error(), "two:") {
		t.Errorf("not all at once: %v", err)
	}
}

// A folder in place of a file of keys is named, with what it is.
func TestKeysOfAFolder(t *testing.T) {
	dir := t.TempDir()
	if _, err := LoadKeys(dir); err == nil || !strings.Contains(err.Error(), dir+" is not a file of keys: it is a d") {
		t.Errorf("got %v", err)
	}
}
