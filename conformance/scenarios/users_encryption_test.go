package scenarios

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// encryption is a configuration that encrypts secrets and boats with the first of the keys.
func encryption(keys ...string) string {
	var list []string
	for _, key := range keys {
		name, secret, _ := strings.Cut(key, " ")
		list = append(list, fmt.Sprintf("{name: %s, secret: %s}", name, secret))
	}
	return fmt.Sprintf(`
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets, boats.harbour.example.com]
  providers:
  - secretbox: {keys: [%s]}
  - identity: {}
`, strings.Join(list, ", "))
}

// boxKey is a new key of a name.
func boxKey(name string) string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	return name + " " + base64.StdEncoding.EncodeToString(secret)
}

// A vault is what lies in etcd.
type vault struct {
	t      *testing.T
	client *clientv3.Client
	prefix string
}

// value is the raw value of a key.
func (v vault) value(key string) []byte {
	v.t.Helper()
	got, err := v.client.Get(v.t.Context(), v.prefix+key)
	if err != nil || len(got.Kvs) != 1 {
		v.t.Fatalf("%s in etcd: %v, %v", key, got, err)
	}
	return got.Kvs[0].Value
}

// sealed demands that a value is encrypted with a key, and that no word of it can be read.
func (v vault) sealed(key, with string, words ...string) {
	v.t.Helper()
	value := v.value(key)
	if !bytes.HasPrefix(value, []byte("k8s:enc:secretbox:v1:"+with+":")) {
		v.t.Errorf("%s in etcd begins with %.40q", key, value)
	}
	for _, word := range words {
		if bytes.Contains(value, []byte(word)) {
			v.t.Errorf("%s in etcd has %q in it", key, word)
		}
	}
}

// count is how many keys there are under one.
func (v vault) count(key string) int64 {
	v.t.Helper()
	got, err := v.client.Get(v.t.Context(), v.prefix+key, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		v.t.Fatal(err)
	}
	return got.Count
}

// Secrets and boats are encrypted in etcd, and everything that the server does with objects goes on working: reading, rotation of keys,
// garbage collection, the end of a namespace.
func TestEncryptionAtRest(t *testing.T) {
	needsDiscovery(t)
	prefix := prefix()
	v := vault{t, etcdClient(t), prefix}
	one, two := boxKey("one"), boxKey("two")
	s := serve(t, against, prefix, "--encryption-provider-config="+write(t, "encryption.yaml", encryption(one)))
	admin := newKubectl(t, s)
	admin.install("boats.yaml", boats)
	admin.ok("create", "namespace", "team-a")
	admin.ok("create", "secret", "generic", "cave", "--from-literal=word=sesame", "-n", "team-a")
	admin.ok("create", "secret", "generic", "other", "--from-literal=word=sesame", "-n", "team-a")
	admin.ok("create", "configmap", "open", "--from-literal=word=sesame", "-n", "team-a")
	if out, code := admin.feed(boatIn("team-a", "swan", "ada-lovelace"), "create", "-f", "-"); code != 0 {
		t.Fatal(out)
	}
	const cave, other, swan = "/secrets/team-a/cave", "/secrets/team-a/other", "/harbour.example.com/boats/team-a/swan"
	v.sealed(cave, "one", "sesame", "c2VzYW1l", "cave", "team-a", "Secret")
	v.sealed(swan, "one", "ada-lovelace", "swan", "Boat")
	if !bytes.Contains(v.value("/configmaps/team-a/open"), []byte("sesame")) {
		t.Error("config maps are not to be encrypted, and cannot be read")
	}
	reads := func(admin *kubectl) {
		t.Helper()
		admin.says([]string{"c2VzYW1l"}, "get", "secret", "cave", "-n", "team-a", "-o", "jsonpath={.data.word}")
		admin.says([]string{"cave", "other"}, "get", "secrets", "-n", "team-a")
		admin.says([]string{"swan", "ada-lovelace"}, "get", "boats", "-A")
	}
	reads(admin)
	stop(t, s)

	// The second key comes first: what is written from now on is encrypted with it, and what there is can be read.
	s = serve(t, against, prefix, "--encryption-provider-config="+write(t, "encryption.yaml", encryption(two, one)))
	admin = newKubectl(t, s)
	reads(admin)
	v.sealed(cave, "one")
	admin.ok("annotate", "secret", "cave", "seen=yes", "-n", "team-a")
	admin.ok("annotate", "boat", "swan", "seen=yes", "-n", "team-a")
	v.sealed(cave, "two", "sesame", "c2VzYW1l")
	v.sealed(swan, "two", "ada-lovelace")
	v.sealed(other, "one")
	reads(admin)
	collectEncrypted(t, admin, v)
}

// collectEncrypted deletes owners and namespaces of encrypted objects.
func collectEncrypted(t *testing.T, admin *kubectl, v vault) {
	t.Helper()
	client := typedClient(t, admin.server.Config)
	uid := strings.TrimSpace(admin.ok("get", "boat", "swan", "-n", "team-a", "-o", "jsonpath={.metadata.uid}"))
	admin.ok("patch", "secret", "cave", "-n", "team-a", "-p", fmt.Sprintf(
		`{"metadata":{"ownerReferences":[{"apiVersion":"harbour.example.com/v1","kind":"Boat","name":"swan","uid":%q}]}}`, uid))
	raft := strings.Replace(boatIn("team-a", "raft", "ada"), `"name"`, fmt.Sprintf(
		`"ownerReferences":[{"apiVersion":"harbour.example.com/v1","kind":"Boat","name":"swan","uid":%q}],"name"`, uid), 1)
	if out, code := admin.feed(raft, "create", "-f", "-"); code != 0 {
		t.Fatal(out)
	}
	admin.ok("delete", "boat", "swan", "-n", "team-a")
	eventually(t, soon, "what the boat owned is gone", func() bool {
		return v.count("/secrets/team-a/cave") == 0 && v.count("/harbour.example.com/boats/team-a/") == 0
	})
	if _, err := client.CoreV1().Secrets("team-a").Get(t.Context(), "other", metav1.GetOptions{}); err != nil {
		t.Errorf("the secret without an owner: %v", err)
	}
	if out, code := admin.feed(boatIn("team-a", "duck", "ada"), "create", "-f", "-"); code != 0 {
		t.Fatal(out)
	}
	admin.says([]string{`namespace "team-a" deleted`}, "delete", "namespace", "team-a", "--timeout=30s")
	for _, key := range []string{"/secrets/team-a/", "/harbour.example.com/boats/team-a/", "/configmaps/team-a/", "/namespaces/team-a"} {
		if n := v.count(key); n != 0 {
			t.Errorf("%d keys are left under %s", n, key)
		}
	}
}
