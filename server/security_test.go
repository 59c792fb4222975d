package server_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

// secureEtcd runs an etcd that accepts only clients with a certificate of the CA, and
// returns its URL.
func secureEtcd(t *testing.T, authority *certtest.CA) string {
	t.Helper()
	binary, err := etcdtest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	certificate, key := authority.Server(t)
	client, peer := "https://"+freeAddress(t), "http://"+freeAddress(t)
	var log bytes.Buffer
	cmd := exec.CommandContext(context.Background(), binary,
		"--data-dir", t.TempDir(), "--name", "test", "--log-level", "error", "--unsafe-no-fsync",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "test="+peer,
		"--client-cert-auth", "--trusted-ca-file", certtest.File(t, "ca.crt", authority.PEM()),
		"--cert-file", certtest.File(t, "etcd.crt", certificate), "--key-file", certtest.File(t, "etcd.key", key))
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return client
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestEtcdWithCertificatesOnBothSides(t *testing.T) {
	t.Parallel()
	authority := certtest.New(t, time.Hour)
	url := secureEtcd(t, authority)
	r := start(t, func(o *server.Options) {
		certificate, key := authority.Client(t, "espalier", time.Hour)
		o.Etcd.StorageConfig.Transport.ServerList = []string{url}
		o.Etcd.StorageConfig.Transport.TrustedCAFile = certtest.File(t, "etcd-ca.crt", authority.PEM())
		o.Etcd.StorageConfig.Transport.CertFile = certtest.File(t, "client.crt", certificate)
		o.Etcd.StorageConfig.Transport.KeyFile = certtest.File(t, "client.key", key)
	})
	define(t, r.dynamic(t))
}

func TestAudit(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "audit.log")
	r := start(t, func(o *server.Options) {
		o.Audit.LogOptions.Path = log
		o.Audit.PolicyFile = certtest.File(t, "policy.yaml", []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: RequestResponse\n"))
	})
	client := r.dynamic(t)
	define(t, client)
	if _, err := client.Resource(webs).Namespace("default").Create(t.Context(), web("shop", "shop.example.com"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if code, _ := get(t, r.stranger(t), r.url+"/apis"); code != http.StatusUnauthorized {
		t.Errorf("a stranger gets %d", code)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"username":"alice"`, `"resource":"webs"`, `"host":"shop.example.com"`, `"code":401`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the log does not have %s", want)
		}
	}
}

// TestChangedAuthorities replaces --client-ca-file while the server runs.
func TestChangedAuthorities(t *testing.T) {
	var file string
	r := start(t, func(o *server.Options) { file = o.Identity.ClientCAFile })
	former := r.member(t, "system:masters")
	if code, body := get(t, former, r.url+"/version"); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	r.clients = certtest.New(t, time.Hour)
	if err := os.WriteFile(file, r.clients.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for {
		code, _ := get(t, former, r.url+"/version")
		if code == http.StatusUnauthorized {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("whom the former authority has signed still gets %d", code)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if code, body := get(t, r.member(t, "system:masters"), r.url+"/version"); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
}
