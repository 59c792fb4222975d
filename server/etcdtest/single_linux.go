package etcdtest

import (
	"bytes"
	"context"
	"os/exec"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Single is an etcd of one process that can be killed, and started again with its data.
type Single struct {
	// Endpoint is its URL, the same after each start.
	Endpoint string
	// Client is closed with the test.
	Client *clientv3.Client

	flags []string
	cmd   *exec.Cmd
	log   *bytes.Buffer
}

// NewSingle starts an etcd that ends with the test, or with this process.
func NewSingle(tb testing.TB, flags ...string) *Single {
	tb.Helper()
	peer := freeURL()
	s := &Single{Endpoint: freeURL()}
	s.flags = append(member(tb.TempDir(), "single", s.Endpoint, peer, "single="+peer), flags...)
	s.Start(tb)
	tb.Cleanup(func() {
		s.end()
		if tb.Failed() && s.log.Len() > 0 {
			tb.Logf("etcd at %s:\n%s", s.Endpoint, s.log)
		}
	})
	var err error
	if s.Client, err = clientv3.New(clientv3.Config{Endpoints: []string{s.Endpoint}, DialTimeout: 10 * time.Second}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Client.Close() })
	return s
}

// Start starts it, and returns when it answers.
func (s *Single) Start(tb testing.TB) {
	tb.Helper()
	binary, err := Binary()
	if err != nil {
		tb.Fatal(err)
	}
	s.log = &bytes.Buffer{}
	s.cmd = exec.CommandContext(context.Background(), binary, s.flags...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	if err := wait(s.Endpoint); err != nil {
		tb.Fatal(err)
	}
}

// Kill ends it at once.
func (s *Single) Kill(tb testing.TB) {
	tb.Helper()
	s.end()
}

// Signal sends it a signal: SIGSTOP freezes it, SIGCONT has it go on.
func (s *Single) Signal(tb testing.TB, signal syscall.Signal) {
	tb.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		tb.Fatal(err)
	}
}

func (s *Single) end() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}
