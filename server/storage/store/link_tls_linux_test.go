package store

import (
	"context"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

// With TLS and client certificates a link behaves as without: probes and requests have
// the same credentials, and an unanswered handshake is given up when the link has
// healed.
func TestLinkWithTLS(t *testing.T) {
	t.Parallel()
	binary, err := etcdtest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	servers, clients := certtest.New(t, time.Hour), certtest.New(t, time.Hour)
	certificate, key := servers.Server(t)
	own, ownKey := clients.Client(t, "espalier", time.Hour)
	address, peer := freeAddress(t), "http://"+freeAddress(t)
	cmd := exec.CommandContext(context.Background(), binary, "--data-dir", t.TempDir(), "--name", "test", "--log-level", "error", "--unsafe-no-fsync",
		"--cert-file", certtest.File(t, "server.crt", certificate), "--key-file", certtest.File(t, "server.key", key),
		"--client-cert-auth", "--trusted-ca-file", certtest.File(t, "clients.crt", clients.PEM()),
		"--listen-client-urls", "https://"+address, "--advertise-client-urls", "https://"+address,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "test="+peer)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	cable := newCable(t, address)
	c := Config{Config: storagebackend.Config{Prefix: etcdtest.Prefix(t)}}
	c.Transport = storagebackend.TransportConfig{
		ServerList: []string{"https://" + cable.address}, TrustedCAFile: certtest.File(t, "servers.crt", servers.PEM()),
		CertFile: certtest.File(t, "client.crt", own), KeyFile: certtest.File(t, "client.key", ownKey),
	}
	b, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	read := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), slowly(time.Second))
		defer cancel()
		_, err := b.client.KV.Get(ctx, "x")
		return err == nil
	}
	until(t, slowly(20*time.Second), "a read", read)
	until(t, slowly(20*time.Second), "an answer to a probe", func() bool { b.links.mu.Lock(); defer b.links.mu.Unlock(); return b.links.all[0].answered })
	// The connections break and new ones get no answer to their handshake.
	cable.cut("refuse")
	cable.cut("swallow")
	until(t, slowly(20*time.Second), "etcd is silent", func() bool { return !b.SilentSince().IsZero() })
	cable.heal()
	if after := until(t, slowly(20*time.Second), "a read after the cut", read); after > slowly(3*time.Second) {
		t.Errorf("the link is used %v after it has healed", after)
	}
}
