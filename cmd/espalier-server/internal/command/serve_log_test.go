//go:build unix

package command

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/cmd/internal/cli"
	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
)

// The log tells start, readiness, signal, drain and end, each in one line.
func TestServeLogsItsLife(t *testing.T) {
	t.Parallel()
	s := startServe(t, "shutdown-delay-duration: 1s")
	s.watch(t, "/api/v1/namespaces?watch=true")
	request := s.begin(t)
	s.await(t, "logged as ready", func() bool { return strings.Contains(s.log.String(), `"Ready"`) })
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.await(t, "draining", func() bool { return strings.Contains(s.log.String(), `"Draining"`) })
	_, _ = io.WriteString(request.body, namespace[20:])
	_ = request.body.Close()
	<-request.answer
	s.ended(t)
	rest := s.log.String()
	for _, line := range []string{
		`"Starting" address="127.0.0.1:\d+" version="[^"]+" etcd=\["http://127.0.0.1:\d+"\]\n`,
		`"Ready" after="[0-9.]+m?s"\n`,
		`"Shutting down" cause="received SIGTERM" delay="1s"\n`,
		`"Draining" requests=1 watches=[1-9]\d*\n`,
		`"Stopped" cause="received SIGTERM" uptime="[0-9.]+s"\n`,
	} {
		at := regexp.MustCompile(line).FindStringIndex(rest)
		if at == nil {
			t.Errorf("the log lacks %s", line)
			continue
		}
		rest = rest[at[1]:]
	}
}

// watch opens a watch until the test ends.
func (s *served) watch(t *testing.T, path string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
}

// A signal ends a server that is not ready because etcd does not run.
func TestServeEndsBeforeItIsReady(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), certtest.New(t, time.Hour).PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "serve", "--etcd-servers", "http://127.0.0.1:1", "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(freePort(t)), "--cert-dir", dir, "--client-ca-file", filepath.Join(dir, "ca.crt"))
	log := &output{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	time.Sleep(2 * time.Second)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-done:
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		t.Error("SIGTERM has no effect")
	}
	<-done
	if !strings.Contains(log.String(), "received SIGTERM") || cmd.ProcessState.ExitCode() != cli.ExitNothing {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), log)
	}
}

// What does not end by itself is ended.
func TestEndWithin(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	exits := make(chan int, 1)
	endWithin(ctx, 10*time.Millisecond, func(code int) { exits <- code })
	cancel()
	if code := <-exits; code != cli.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	ctx, cancel = context.WithCancel(t.Context())
	endWithin(ctx, 10*time.Millisecond, func(code int) { exits <- code })()
	cancel()
	select {
	case <-exits:
		t.Error("what has ended is ended again")
	case <-time.After(50 * time.Millisecond):
	}
}
