package migration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/controllers/migration"
)

// Pre-images get the current encryption key also if they are larger together than a request to etcd may be.
func TestEncryptionKeyOfLargePreimages(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	keys := func(list string) {
		if err := os.WriteFile(file, fmt.Appendf(nil, encryption, list), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keys("{name: one, secret: c2VjcmV0IGlzIHNlY3VyZQ==}")
	e := newEnv(t, func(o *server.Options) { o.Etcd.EncryptionProviderConfigFilepath = file })
	e.define()
	for name, size := range map[string]int{"a": 400 << 10, "b": 1200 << 10} {
		large := strings.Replace(widget("v1alpha1", name, 1), strings.Repeat("x", 700), strings.Repeat("y", size), 1)
		if _, err := e.etcd.Put(t.Context(), e.key(name), large); err != nil {
			t.Fatal(err)
		}
	}
	e.storeIn("v1")
	e.migrate("first", map[string]string{migration.KeepAnnotation: "1h"})
	e.await("first", "Succeeded")
	e.stop()
	keys("{name: two, secret: dGhpcyBpcyBwYXNzd29yZA==}, {name: one, secret: c2VjcmV0IGlzIHNlY3VyZQ==}")
	e.start()
	e.migrate("second", nil)
	e.await("second", "Succeeded")
	resp, err := e.etcd.Get(t.Context(), "/"+strings.Trim(e.prefix, "/")+"/-espalier/large-preimages/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.Kvs) != 2 {
		t.Errorf("%d pre-images, want 2", len(resp.Kvs))
	}
	for _, kv := range resp.Kvs {
		if !strings.HasPrefix(string(kv.Value), "k8s:enc:aescbc:v1:two:") {
			t.Errorf("%s has %.30q", kv.Key, kv.Value)
		}
	}
}
