package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/auth/ca"
	"github.com/espalier-dev/espalier/server/etcd"
	"github.com/espalier-dev/espalier/server/webhook"
)

// Options say what is kept where. The zero value is a plane that leaves nothing
// behind, on a free port of the loopback address.
type Options struct {
	// Dir has everything that is kept. Empty is a temporary folder.
	Dir string
	// Address is where to listen, as host:port; empty is 127.0.0.1 and a free port.
	Address string
	// Hosts are further names and addresses by which clients know the server.
	Hosts []string
	// Etcd is the URL of an etcd to use instead of one's own, and Prefix that of
	// the keys in it.
	Etcd, Prefix string
	// Configure changes the options of the server, if it is not nil.
	Configure func(*server.Options)
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	dir       string
	remove    bool // the folder
	etcd      *etcd.Etcd
	authority *ca.CA
	listener  net.Listener
	server    *server.Server
	config    *rest.Config
	cancel    context.CancelFunc
	done      chan struct{}
	err       error // of the server, once done is closed
	lost      atomic.Pointer[error]
	stop      func() error
}

// Start runs a plane and returns when it is ready. The context bounds the start
// only.
func Start(ctx context.Context, o Options) (_ *ControlPlane, err error) {
	p := &ControlPlane{done: make(chan struct{})}
	p.stop = sync.OnceValue(p.end)
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Stop())
		}
	}()
	if err := p.folder(o.Dir); err != nil {
		return nil, err
	}
	if o.Etcd == "" {
		if p.etcd, err = etcd.Start(ctx, etcd.Options{Dir: filepath.Join(p.dir, "etcd"), Fleeting: p.remove}); err != nil {
			return nil, err
		}
		o.Etcd = p.etcd.Endpoint()
	}
	if p.listener, err = net.Listen("tcp", cmp.Or(o.Address, "127.0.0.1:0")); err != nil {
		return nil, err
	}
	options := server.NewOptions()
	options.Serving.Listener = p.listener
	options.Webhooks.AllowedNetworks = webhook.Everywhere // those of this machine are what it is for
	if err := p.certify(options, o, p.listener.Addr()); err != nil {
		return nil, err
	}
	options.Etcd.StorageConfig.Transport.ServerList = []string{o.Etcd}
	options.Etcd.StorageConfig.Prefix = cmp.Or(o.Prefix, options.Etcd.StorageConfig.Prefix)
	if o.Configure != nil {
		o.Configure(options)
	}
	if p.server, err = server.New(ctx, options); err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel = cancel
	go func() {
		defer close(p.done)
		p.err = errors.Join(p.server.Run(life), p.loss())
	}()
	go p.mind(cancel)
	return p, p.ready(ctx)
}

// mind ends the server if etcd has ended.
func (p *ControlPlane) mind(cancel func()) {
	if p.etcd == nil {
		return
	}
	select {
	case err := <-p.etcd.Err():
		p.lost.Store(&err)
		cancel()
	case <-p.done:
	}
}

// loss is why etcd has ended, if it has by itself.
func (p *ControlPlane) loss() error {
	if err := p.lost.Load(); err != nil {
		return fmt.Errorf("etcd stopped: %w", *err)
	}
	return nil
}

// folder makes the folder of everything.
func (p *ControlPlane) folder(dir string) (err error) {
	if dir == "" {
		p.remove = true
		p.dir, err = os.MkdirTemp("", "espalier-")
		return err
	}
	p.dir = dir
	return os.MkdirAll(dir, 0o700)
}

// ready waits until the server says so.
func (p *ControlPlane) ready(ctx context.Context) error {
	client, err := rest.HTTPClientFor(p.config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for {
		why, err := ask(ctx, client, p.config.Host+"/readyz")
		if err == nil && why == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server has not become ready: %w: %s", errors.Join(context.Cause(ctx), err), why)
		case <-p.done:
			return cmp.Or(p.err, errors.New("the server stopped"))
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// ask returns why a server is not ready; empty if it is.
func ask(ctx context.Context, client *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil || resp.StatusCode == http.StatusOK {
		return "", err
	}
	return string(body), nil
}

// Config returns the configuration of an administrator's client. It is the
// caller's to change.
func (p *ControlPlane) Config() *rest.Config { return rest.CopyConfig(p.config) }

// Dir is the folder of everything that is kept, or of what is removed by Stop.
func (p *ControlPlane) Dir() string { return p.dir }

// Done is closed when the control plane has ended, by Stop or by itself.
func (p *ControlPlane) Done() <-chan struct{} { return p.done }

// Stop ends the control plane in an orderly way. If the control plane had ended by itself,
// Stop returns why. Further calls return the same.
func (p *ControlPlane) Stop() error { return p.stop() }

// partingTime is how long running requests may take after Stop. Then Stop closes the
// connections: clients keep idle ones open, and a graceful shutdown waits a second for
// them, which tests do not have.
const partingTime = 50 * time.Millisecond

func (p *ControlPlane) end() error {
	var errs []error
	if p.cancel != nil {
		p.cancel()
		late := time.AfterFunc(partingTime, p.server.Disconnect)
		<-p.done
		late.Stop()
		errs = append(errs, p.err)
	}
	if p.listener != nil {
		if err := p.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if p.etcd != nil {
		errs = append(errs, p.etcd.Stop())
	}
	if p.remove {
		errs = append(errs, os.RemoveAll(p.dir))
	}
	return errors.Join(errs...)
}
