package scenarios

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/kms/pkg/service"
)

// A keeper keeps a key that the server never sees, as a key management service does.
type keeper struct {
	seal  cipher.AEAD
	asked atomic.Int64
}

func newKeeper(t *testing.T) *keeper {
	t.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	return &keeper{seal: seal}
}

// Status implements service.Service.
func (k *keeper) Status(context.Context) (*service.StatusResponse, error) {
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: "one"}, nil
}

// Encrypt implements service.Service.
func (k *keeper) Encrypt(_ context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	k.asked.Add(1)
	nonce := make([]byte, k.seal.NonceSize())
	_, _ = rand.Read(nonce) // it never fails
	return &service.EncryptResponse{Ciphertext: k.seal.Seal(nonce, nonce, data, nil), KeyID: "one"}, nil
}

// Decrypt implements service.Service.
func (k *keeper) Decrypt(_ context.Context, _ string, req *service.DecryptRequest) ([]byte, error) {
	k.asked.Add(1)
	n := k.seal.NonceSize()
	if req.KeyID != "one" || len(req.Ciphertext) < n {
		return nil, errors.New("this is not mine")
	}
	return k.seal.Open(nil, req.Ciphertext[:n], req.Ciphertext[n:], nil)
}

// With a key management service (KMS v2) the key of keys is never in the server: what lies in etcd is encrypted, and a server that is started
// anew reads it through the service.
func TestEncryptionByKeyService(t *testing.T) {
	needsDiscovery(t)
	dir, err := os.MkdirTemp("", "kms-") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "kms.sock")
	keeper := newKeeper(t)
	grpc := service.NewGRPCService(socket, 10*time.Second, keeper)
	go func() { _ = grpc.ListenAndServe() }()
	t.Cleanup(grpc.Close)
	file := filepath.Join(dir, "encryption.yaml")
	writeFile(t, file, `
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - kms: {apiVersion: v2, name: keeper, endpoint: "unix://`+socket+`"}
  - identity: {}
`)
	prefix := prefix()
	first := serve(t, against, prefix, "--encryption-provider-config="+file)
	newKubectl(t, first).ok("create", "secret", "generic", "treasure", "--from-literal=island=tortuga")
	value := vault{t, etcdClient(t), prefix}.value("/secrets/default/treasure")
	if !bytes.HasPrefix(value, []byte("k8s:enc:kms:v2:keeper:")) || bytes.Contains(value, []byte("tortuga")) {
		t.Errorf("in etcd there is %.60q", value)
	}
	stop(t, first)
	before := keeper.asked.Load()
	second := serve(t, against, prefix, "--encryption-provider-config="+file)
	newKubectl(t, second).says([]string{"dG9ydHVnYQ=="}, "get", "secret", "treasure", "-o", "jsonpath={.data.island}")
	if keeper.asked.Load() == before {
		t.Error("the second server has not asked for the key")
	}
}
