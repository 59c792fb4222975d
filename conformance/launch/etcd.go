package launch

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// An Etcd is a running etcd of one member.
type Etcd struct {
	*Process
	URL  string
	Port int
}

// StartEtcd runs etcd with its data in a temporary folder and waits until it answers. Benchmarks leave fsync on; tests pass "--unsafe-no-fsync".
func StartEtcd(ctx context.Context, flags ...string) (*Etcd, error) {
	binary, err := Tool("etcd")
	if err != nil {
		return nil, err
	}
	client, err := FreePort()
	if err != nil {
		return nil, err
	}
	peer, err := FreePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "espalier-etcd-")
	if err != nil {
		return nil, err
	}
	clientURL, peerURL := fmt.Sprintf("http://127.0.0.1:%d", client), fmt.Sprintf("http://127.0.0.1:%d", peer)
	p, err := Start(ctx, dir, "etcd", append([]string{binary,
		"--data-dir", dir + "/data", "--name", "one", "--log-level", "error",
		"--listen-client-urls", clientURL, "--advertise-client-urls", clientURL,
		"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL,
		"--initial-cluster", "one=" + peerURL,
		"--quota-backend-bytes", "8589934592"}, flags...)...)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	e := &Etcd{p, clientURL, client}
	if err := e.ready(ctx); err != nil {
		e.Stop()
		return nil, err
	}
	return e, nil
}

// Restart ends etcd, if it has not ended, and starts it with the same data and ports.
func (e *Etcd) Restart(ctx context.Context) error {
	e.End()
	process, err := Start(ctx, e.Dir, "etcd", e.cmd.Args...)
	if err != nil {
		return err
	}
	e.Process = process
	return e.ready(ctx)
}

func (e *Etcd) ready(ctx context.Context) error {
	return e.Await(ctx, time.Minute, func(ctx context.Context) error { return Ask(ctx, http.DefaultClient, e.URL+"/readyz") })
}

// Client connects to it.
func (e *Etcd) Client() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{e.URL}, DialTimeout: 10 * time.Second})
}

// Ask returns nil if a GET is answered with 200.
func Ask(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}
