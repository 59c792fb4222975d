//go:build unix

package command

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/cmd/internal/cli"
	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

// drainPatience is how long a condition is waited for, on a machine that has much to do.
const drainPatience = time.Minute

// served is `espalier serve` as a process of its own, and a client of it.
type served struct {
	*http.Client
	ca   *certtest.CA
	url  string
	cmd  *exec.Cmd
	log  *output
	done chan struct{} // closed when the process has ended
}

// output is what a process prints; it is read while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// startServe runs the program with a settings file and waits until it is ready. Settings with dashes are flags of its etcd.
func startServe(t *testing.T, settings ...string) *served {
	t.Helper()
	const year = 365 * 24 * time.Hour
	dir, authority := t.TempDir(), certtest.New(t, year)
	cert, key := authority.ServerFor(t, year)
	for name, data := range map[string][]byte{"ca.crt": authority.PEM(), "server.crt": cert, "server.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port := freePort(t)
	dashes := func(setting string) bool { return strings.HasPrefix(setting, "--") }
	flags := slices.DeleteFunc(slices.Clone(settings), func(setting string) bool { return !dashes(setting) })
	config := append(slices.DeleteFunc(slices.Clone(settings), dashes), "etcd-servers: ["+startEtcd(t, flags...)+"]", "bind-address: 127.0.0.1", fmt.Sprintf("secure-port: %d", port), "cert-dir: .",
		"client-ca-file: ca.crt", "tls-cert-file: server.crt", "tls-private-key-file: server.key")
	if err := os.WriteFile(filepath.Join(dir, "serve.yaml"), []byte(strings.Join(config, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &served{ca: authority, url: fmt.Sprintf("https://127.0.0.1:%d", port), log: &output{}, done: make(chan struct{})}
	s.Client = clientOf(t, authority)
	s.cmd = command(t, "serve", "--config", "serve.yaml")
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = dir, s.log, s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.cmd.Wait(); close(s.done) }()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.done
		if t.Failed() {
			t.Log(s.log.String())
		}
	})
	s.await(t, "ready", func() bool { return s.status("/readyz") == http.StatusOK })
	return s
}

// command is this test's binary in the part of the program: see TestMain.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &exec.Cmd{Path: self, Args: append([]string{"espalier"}, args...)}
}

// clientOf is an administrator whose requests each have a connection of their own: one
// that the server closes is not noticed too late.
func clientOf(t *testing.T, authority *certtest.CA) *http.Client {
	t.Helper()
	cert, key := authority.Client(t, "admin", time.Hour, "system:masters")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.Certificate)
	return &http.Client{Timeout: drainPatience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}}}
}

func startEtcd(t *testing.T, flags ...string) string {
	t.Helper()
	binary, err := etcdtest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", freePort(t)), fmt.Sprintf("http://127.0.0.1:%d", freePort(t))
	cmd := exec.Command(binary, append(flags, "--data-dir", t.TempDir(), "--name", "one", "--log-level", "error", "--unsafe-no-fsync",
		"--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "one="+peer)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return client
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// status is the status code of a path; 0 without an answer.
func (s *served) status(path string) int {
	resp, err := s.Get(s.url + path)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// await waits for a condition, while the process lives.
func (s *served) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(drainPatience); !is(); time.Sleep(10 * time.Millisecond) {
		select {
		case <-s.done:
			t.Fatalf("it ended before it was %s", what)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("it is not %s after %v", what, drainPatience)
		}
	}
}

// ended waits for the end of the process.
func (s *served) ended(t *testing.T) *os.ProcessState {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(drainPatience):
		t.Fatalf("it has not ended after %v", drainPatience)
	}
	return s.cmd.ProcessState
}

// slow is a request whose body comes in two parts.
type slow struct {
	body   *io.PipeWriter
	answer chan string // the status, or the error
}

const namespace = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"slow"}}`

// begin sends the first part of a request to create a namespace. The server has it
// when begin returns: a pipe holds nothing.
func (s *served) begin(t *testing.T) *slow {
	t.Helper()
	body, w := io.Pipe()
	r := &slow{body: w, answer: make(chan string, 1)}
	reached := make(chan struct{})
	ctx := context.WithoutCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/api/v1/namespaces", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	go func() {
		resp, err := s.Do(req)
		if err != nil {
			r.answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		r.answer <- resp.Status
	}()
	go func() { defer close(reached); _, _ = io.WriteString(w, namespace[:20]) }()
	select {
	case <-reached:
	case answer := <-r.answer:
		t.Fatal(answer)
	}
	// The request is among those that are being served.
	s.await(t, "serving the request", func() bool { return s.inflight(t) > 0 })
	return r
}

// inflight counts requests that change something and have not been answered.
func (s *served) inflight(t *testing.T) int {
	t.Helper()
	resp, err := s.Get(s.url + "/metrics")
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var n int
		if rest, ok := strings.CutPrefix(line, `apiserver_current_inflight_requests{request_kind="mutating"} `); ok {
			if _, err := fmt.Sscan(rest, &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// SIGTERM: /readyz fails while everything is still served, then nothing new is, what
// has begun is finished, and the process ends well.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	s := startServe(t, "shutdown-delay-duration: 3s")
	request := s.begin(t)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.await(t, "not ready", func() bool { return s.status("/readyz") == http.StatusInternalServerError })
	if got := s.status("/api/v1/namespaces"); got != http.StatusOK {
		t.Errorf("while load balancers find out, a request is answered %d", got)
	}
	s.await(t, "closed", func() bool { return s.status("/livez") == 0 })
	if _, err := io.WriteString(request.body, namespace[20:]); err != nil {
		t.Fatal(err)
	}
	_ = request.body.Close()
	if got := <-request.answer; got != "201 Created" {
		t.Errorf("the request that had begun: %s", got)
	}
	if state := s.ended(t); state.ExitCode() != cli.ExitNothing {
		t.Errorf("it ended by %v", state)
	}
}

// The second signal does not wait for a request that would not end.
func TestServeEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := startServe(t, "shutdown-delay-duration: 1h")
	request := s.begin(t)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.await(t, "not ready", func() bool { return s.status("/readyz") == http.StatusInternalServerError })
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status, ok := s.ended(t).Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("it ended by %v", s.cmd.ProcessState)
	}
	_ = request.body.Close() // the client waits for the rest of the body
	if got := <-request.answer; strings.HasPrefix(got, "201") {
		t.Errorf("the request that had begun: %s", got)
	}
}
