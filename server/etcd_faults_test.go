package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

// ownEtcd runs an etcd for one test, and returns its URL and how to kill it.
func ownEtcd(t *testing.T, flags ...string) (endpoint string, kill func()) {
	t.Helper()
	binary, err := etcdtest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	client, peer := "http://"+freeAddress(t), "http://"+freeAddress(t)
	cmd := exec.CommandContext(context.Background(), binary, append(flags, "--data-dir", t.TempDir(), "--name", "test", "--log-level", "error", "--unsafe-no-fsync",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "test="+peer)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	t.Cleanup(kill)
	return client, kill
}

// While etcd is away, the health paths tell the reason to authorized users, and errors
// are proper statuses.
func TestWithoutEtcd(t *testing.T) {
	endpoint, kill := ownEtcd(t)
	r := start(t, func(o *server.Options) {
		o.Etcd.StorageConfig.Transport.ServerList = []string{endpoint}
		o.Etcd.StorageConfig.HealthcheckTimeout = 300 * time.Millisecond
		o.Run.RequestTimeout = 3 * time.Second
	})
	log := etcdtest.Capture(t)
	kill()
	masters := r.member(t, "system:masters")
	deadline := time.Now().Add(patience)
	for code := http.StatusOK; code == http.StatusOK && time.Now().Before(deadline); {
		code, _ = get(t, masters, r.url+"/readyz")
	}
	for _, c := range []struct {
		who    string
		client *http.Client
		knows  bool
	}{
		{"system:masters", masters, true},
		{"system:monitoring", r.member(t, "system:monitoring"), true},
		{"anybody with a certificate", r.member(t, "team-a"), false},
		{"anonymous", r.stranger(t), false},
	} {
		for _, path := range []string{"/readyz", "/readyz?verbose", "/healthz?verbose=1"} {
			code, text := get(t, c.client, r.url+path)
			if code != http.StatusInternalServerError {
				t.Errorf("%s as %s: %d %s", path, c.who, code, text)
			}
			if knows := strings.Contains(text, "[-]etcd failed: reading from etcd: ") && !strings.Contains(text, "withheld"); knows != c.knows {
				t.Errorf("%s as %s: %s", path, c.who, text)
			}
			if !c.knows && !strings.Contains(text, "[-]etcd failed: reason withheld\n") {
				t.Errorf("%s as %s: %s", path, c.who, text)
			}
		}
	}
	// Not by client-go: it asks again for half a minute, as it is told to.
	_, text := get(t, masters, r.url+"/api/v1/namespaces/default/configmaps/none")
	var status metav1.Status
	if err := json.Unmarshal([]byte(text), &status); err != nil || status.Reason != metav1.StatusReasonInternalError && status.Reason != metav1.StatusReasonTimeout {
		t.Errorf("%v: %s", err, text)
	}
	if text := log.String(); strings.Contains(text, "not an metav1.Status") {
		t.Errorf("the log has an unhandled error:\n%s", text)
	}
}

// When etcd is full, writes fail with a message that says what to do, reads and deletes
// succeed, and the server stays ready, so that an administrator can free space.
func TestFullEtcd(t *testing.T) {
	endpoint, _ := ownEtcd(t, "--quota-backend-bytes", fmt.Sprint(4<<20))
	r := start(t, func(o *server.Options) { o.Etcd.StorageConfig.Transport.ServerList = []string{endpoint} })
	client := r.typed(t).CoreV1().ConfigMaps("default")
	fill := func(i int) error {
		_, err := client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("filler-", i)}, BinaryData: map[string][]byte{"x": bytes.Repeat([]byte{1}, 300<<10)}}, metav1.CreateOptions{})
		return err
	}
	log := etcdtest.Capture(t)
	var err error
	made := 0
	for ; err == nil && made < 100; made++ {
		err = fill(made)
	}
	var status apierrors.APIStatus
	if !asStatus(err, &status) || status.Status().Code != http.StatusInsufficientStorage || !strings.Contains(err.Error(), "etcd is out of space") {
		t.Fatalf("after %d objects: %v", made, err)
	}
	if _, err := client.Get(t.Context(), "filler-0", metav1.GetOptions{}); err != nil {
		t.Errorf("a read fails: %v", err)
	}
	if _, err := client.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a list fails: %v", err)
	}
	if err := client.Delete(t.Context(), "filler-0", metav1.DeleteOptions{}); err != nil {
		t.Errorf("a delete fails: %v", err)
	}
	code, text := get(t, r.member(t, "system:masters"), r.url+"/readyz?verbose")
	if code != http.StatusOK || !strings.Contains(text, "[!]etcd warning: out of space") {
		t.Errorf("/readyz: %d %s", code, text)
	}
	if code, text := get(t, r.stranger(t), r.url+"/readyz?verbose"); code != http.StatusOK || strings.Contains(text, "space") {
		t.Errorf("/readyz for anybody: %d %s", code, text)
	}
	// The steps of the guide, after something was deleted.
	for i := 1; i < made/2; i++ {
		if err := client.Delete(t.Context(), fmt.Sprint("filler-", i), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	recoverSpace(t, endpoint)
	if err := fill(1); err != nil {
		t.Errorf("after the recovery: %v", err)
	}
	if code, text := get(t, r.member(t, "system:masters"), r.url+"/readyz?verbose"); code != http.StatusOK || strings.Contains(text, "space") {
		t.Errorf("/readyz after the recovery: %d %s", code, text)
	}
	if text := log.String(); strings.Contains(text, "not an metav1.Status") || strings.Count(text, "etcd is out of space and refuses writes") != 1 {
		t.Errorf("the log:\n%s", text)
	}
}

func asStatus(err error, status *apierrors.APIStatus) bool {
	s, ok := err.(apierrors.APIStatus) //nolint:errorlint // the client returns it as it is
	*status = s
	return ok
}

// recoverSpace runs the commands that the guide gives for a full etcd.
func recoverSpace(t *testing.T, endpoint string) {
	t.Helper()
	guide, err := os.ReadFile("../docs/guides/production.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n## When etcd is full\n")
	_, block, _ := strings.Cut(section, "\n```sh\n")
	block, _, found := strings.Cut(block, "\n```\n")
	if !found || !strings.Contains(block, "etcdctl alarm disarm") {
		t.Fatalf("the guide has no commands for a full etcd: %q", block)
	}
	binary, err := etcdtest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", block)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "ETCDCTL_ENDPOINTS="+endpoint)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "alarm:NOSPACE") {
		t.Fatalf("%v\n%s", err, out)
	}
}
