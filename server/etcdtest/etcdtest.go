package etcdtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

var (
	endpoint string
	tests    atomic.Int64
)

// Main runs the tests of a package with an etcd beside them, and stops it. The log is dropped unless
// ESPALIER_TEST_LOGS is set.
func Main(m *testing.M) {
	quiet()
	stop, err := start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcdtest:", err)
		os.Exit(1)
	}
	code := m.Run()
	stop()
	os.Exit(code)
}

// Endpoint returns the URL of the etcd of this package's tests.
func Endpoint(tb testing.TB) string {
	tb.Helper()
	if endpoint == "" {
		tb.Fatal("no etcd: the package's TestMain must call etcdtest.Main")
	}
	return endpoint
}

// Prefix returns a key prefix that no other test has.
func Prefix(tb testing.TB) string {
	tb.Helper()
	return fmt.Sprintf("/test-%d-%d", os.Getpid(), tests.Add(1))
}

// Client returns a client that is closed with the test, and a prefix of its own.
func Client(tb testing.TB) (*clientv3.Client, string) {
	tb.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{Endpoint(tb)}, DialTimeout: 10 * time.Second})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c, Prefix(tb)
}

// Binary returns the path of the etcd that `make tools` builds.
func Binary() (string, error) {
	if path := os.Getenv("ESPALIER_ETCD"); path != "" {
		return path, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		path := filepath.Join(dir, ".bin", "etcd")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		if filepath.Dir(dir) == dir {
			return "", errors.New("no .bin/etcd in this folder or above: run `make tools`, or set ESPALIER_ETCD to the path of an etcd of version 3.7")
		}
		dir = filepath.Dir(dir)
	}
}

// start runs etcd on free ports, with its data in a temporary folder.
func start() (stop func(), err error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "etcdtest")
	if err != nil {
		return nil, err
	}
	client, peer := freeURL(), freeURL()
	var log bytes.Buffer
	cmd := exec.Command(binary, member(dir, "test", client, peer, "test="+peer)...)
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	if err := wait(client); err != nil {
		stop()
		return nil, fmt.Errorf("%w\n%s", err, strings.TrimSpace(log.String()))
	}
	endpoint = client
	return stop, nil
}

// member returns the flags of a member of a cluster.
func member(dir, name, client, peer, cluster string) []string {
	return []string{
		"--data-dir", dir, "--name", name, "--log-level", "error", "--unsafe-no-fsync",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster,
	}
}

// wait returns when etcd answers.
func wait(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("etcd is not ready after 30 s: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// freeURL returns a URL on a loopback port that was free a moment ago.
func freeURL() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err) // a machine without loopback runs no test
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}
