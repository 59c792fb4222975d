package environment

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// Prefix is that of the servers' keys in etcd.
const Prefix = "/registry"

// Patience is how long something may take that has to happen: machines are slow at times.
const Patience = 2 * time.Minute

// Options say what an environment is made of.
type Options struct {
	Engine    Engine
	Members   int // of etcd; 1 of kine
	Replicas  int
	Kind      launch.Kind
	Binary    string   // of the servers
	EtcdFlags []string // are added to the command lines of members
	// Disk has each member keep its data on a file system of this many bytes; 0: on the machine's.
	Disk int64
}

// An Environment is running processes with links between them.
type Environment struct {
	Options
	Dir      string
	Members  []*Member
	Replicas []*Replica
	// Etcd is a client without links.
	Etcd *clientv3.Client

	signer   *launch.CA
	etcdTLS  *tls.Config
	admin    rest.TLSClientConfig
	database *launch.Postgres // behind kine; nil if there is none
	closing  sync.Once
}

// A Replica is one API server.
type Replica struct {
	*Child
	ID          int
	Port        int
	Client      *Link // clients use it
	Etcd        Links // by member
	spec        launch.Spec
	environment *Environment
}

// New starts an environment and returns when all replicas are ready.
func New(ctx context.Context, o Options) (*Environment, error) {
	if err := o.fits(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "espalier-env-")
	if err != nil {
		return nil, err
	}
	w := &Environment{Options: o, Dir: dir}
	if err := w.start(ctx); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *Environment) start(ctx context.Context) error {
	if err := w.certify(); err != nil {
		return err
	}
	if err := w.startDatabase(ctx); err != nil {
		return err
	}
	if err := w.startMembers(ctx); err != nil {
		return err
	}
	for i := range w.Options.Replicas {
		if err := w.addReplica(i); err != nil {
			return err
		}
	}
	// One after another: the first makes what all need, and a machine with two cores is not faster with three.
	for _, r := range w.Replicas {
		if err := r.Start(); err != nil {
			return err
		}
		if err := r.AwaitReady(ctx, Patience); err != nil {
			return err
		}
	}
	return nil
}

// certify makes the CA, and what the harness and the servers are to etcd and to each other.
func (w *Environment) certify() error {
	var err error
	if w.signer, err = launch.NewCA(); err != nil {
		return err
	}
	peer, err := w.signer.Peer("127.0.0.1", "localhost")
	if err != nil {
		return err
	}
	if err := errors.Join(peer.Save(w.Dir, "etcd"), os.WriteFile(w.file("ca.crt"), w.signer.CA, 0o600)); err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(peer.Cert, peer.Key)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.signer.CA)
	w.etcdTLS = &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
	admin, err := w.signer.Client("admin", "system:masters")
	if err != nil {
		return err
	}
	w.admin = rest.TLSClientConfig{CAData: w.signer.CA, CertData: admin.Cert, KeyData: admin.Key}
	return nil
}

func (w *Environment) file(name string) string { return filepath.Join(w.Dir, name) }

func (w *Environment) addReplica(i int) error {
	port, err := launch.FreePort()
	if err != nil {
		return err
	}
	r := &Replica{ID: i, Port: port, environment: w}
	var urls []string
	for _, m := range w.Members {
		k, err := newLink(strings.TrimPrefix(m.URL, "https://"))
		if err != nil {
			return err
		}
		r.Etcd = append(r.Etcd, k)
		urls = append(urls, "https://"+k.Addr)
	}
	if r.Client, err = newLink(fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
		return err
	}
	dir := w.file(fmt.Sprintf("replica%d", i))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	r.spec = launch.Spec{Kind: w.Kind, Binary: w.Binary, Etcd: strings.Join(urls, ","), Prefix: Prefix, Flags: []string{
		"--etcd-cafile=" + w.file("ca.crt"), "--etcd-certfile=" + w.file("etcd.crt"), "--etcd-keyfile=" + w.file("etcd.key"),
	}}
	r.Child = newChild(dir, fmt.Sprintf("replica%d", i), nil)
	w.Replicas = append(w.Replicas, r)
	return r.Use(w.Binary)
}

// Use has the replica run another program, or the same with other variables ("NAME=value"), from its next start on.
func (r *Replica) Use(binary string, environment ...string) error {
	spec := r.spec
	spec.Binary = binary
	argv, err := spec.Arguments(r.dir, r.environment.signer, r.Port)
	if err != nil {
		return err
	}
	if len(environment) > 0 {
		argv = append(append([]string{"/usr/bin/env"}, environment...), argv...)
	}
	r.command(argv)
	return nil
}

// URL is where clients find the replica: behind the link.
func (r *Replica) URL() string { return "https://" + r.Client.Addr }

// Config is an administrator's, through the link.
func (r *Replica) Config() *rest.Config {
	return &rest.Config{Host: r.URL(), QPS: -1, TLSClientConfig: r.environment.admin}
}

// Ready asks whether the replica is ready, without the link.
func (r *Replica) Ready(ctx context.Context, client *http.Client) error {
	path := "/readyz"
	if r.environment.Kind == launch.Upstream {
		path = "/healthz" // its /readyz waits for Services of a cluster that it has none of
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return launch.Ask(ctx, client, fmt.Sprintf("https://127.0.0.1:%d%s", r.Port, path))
}

// AwaitReady waits until the replica is ready.
func (r *Replica) AwaitReady(ctx context.Context, limit time.Duration) error {
	client, err := r.environment.HTTP()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return r.Await(ctx, limit, func(ctx context.Context) error { return r.Ready(ctx, client) })
}

// HTTP returns an administrator's client with connections of its own.
func (w *Environment) HTTP() (*http.Client, error) {
	// client-go shares transports of equal configurations: a client of the harness must not share its fate with another.
	config := rest.TLSClientConfig{CAData: w.admin.CAData, CertData: w.admin.CertData, KeyData: w.admin.KeyData}
	settings, err := rest.TLSConfigFor(&rest.Config{Host: "https://127.0.0.1", TLSClientConfig: config})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: settings, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 4}}, nil
}

// Heal undoes what was done to links and processes, and starts what has ended. It does not wait until they are ready.
func (w *Environment) Heal() error {
	var errs []error
	for _, m := range w.Members {
		m.Thaw()
		m.Peers.Heal()
		errs = append(errs, m.Start())
	}
	for _, r := range w.Replicas {
		r.Thaw()
		r.Client.Heal()
		r.Etcd.Each((*Link).Heal)
		errs = append(errs, r.Start())
	}
	return errors.Join(errs...)
}

// Close ends all processes and removes their data.
func (w *Environment) Close() {
	w.closing.Do(func() {
		if w.Etcd != nil {
			_ = w.Etcd.Close()
		}
		for _, r := range w.Replicas {
			r.Kill()
			r.Client.close()
			r.Etcd.Each((*Link).close)
		}
		for _, m := range w.Members {
			m.Kill()
			if m.Peers != nil {
				m.Peers.close()
			}
			m.unmount()
		}
		if w.database != nil {
			w.database.Stop()
		}
		_ = os.RemoveAll(w.Dir)
	})
}

func (w *Environment) connect() error {
	var urls []string
	for _, m := range w.Members {
		urls = append(urls, m.URL)
	}
	var err error
	w.Etcd, err = clientv3.New(clientv3.Config{
		Endpoints: urls, TLS: w.etcdTLS, DialTimeout: 10 * time.Second, Logger: zap.NewNop(),
		DialKeepAliveTime: 2 * time.Second, DialKeepAliveTimeout: 2 * time.Second,
	})
	return err
}
