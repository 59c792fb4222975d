package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// An environment is one server with all the controllers that the tests have started. They share it, as they would share a cluster.
type environment struct {
	ctx     context.Context // of all tests, for processes that outlive one
	server  *launch.Server
	dir     string // of kubeconfigs and certificates
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper

	programs    []*program
	told        string       // the test that has printed the ends of logs
	certManager *certManager // once it is started
}

// here has the kinds that `espalier serve` has by default. A test that needs workloads asks for a cluster.
var here *environment

// shared is what the servers of all environments have in common.
var shared struct {
	binary string
	etcd   *launch.Etcd
}

func TestMain(m *testing.M) {
	code, err := inEnvironment(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func inEnvironment(run func() int) (int, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.MkdirTemp("", "espalier-controllers-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if shared.binary, err = launch.Build(ctx, dir); err != nil {
		return 0, err
	}
	if shared.etcd, err = launch.StartEtcd(ctx, "--unsafe-no-fsync"); err != nil {
		return 0, err
	}
	defer shared.etcd.Stop()
	if here, err = newEnvironment(ctx, dir, "/controllers"); err != nil {
		return 0, err
	}
	defer here.stop()
	defer func() { workloads.stop() }()
	code := run()
	for _, w := range []*environment{here, workloads} {
		if w != nil && strings.Contains(w.server.Output(), "panic") {
			return 0, errors.New("the server has panicked:\n" + w.server.Output())
		}
	}
	return code, nil
}

// newEnvironment starts a server with further flags. Its files are in dir, its keys in etcd below prefix.
func newEnvironment(ctx context.Context, dir, prefix string, flags ...string) (*environment, error) {
	spec := launch.Spec{Kind: launch.Espalier, Binary: shared.binary, Etcd: shared.etcd.URL, Prefix: prefix, Flags: flags}
	server, err := launch.StartServer(ctx, spec)
	if err != nil {
		return nil, err
	}
	w, err := connect(server)
	if err != nil {
		server.Stop()
		return nil, err
	}
	w.ctx, w.dir = ctx, dir
	return w, nil
}

// connect makes the clients of an administrator.
func connect(server *launch.Server) (*environment, error) {
	kube, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfig(server.Config)
	if err != nil {
		return nil, err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(server.Config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))
	return &environment{server: server, kube: kube, dynamic: dyn, mapper: mapper}, nil
}

// stop ends the controllers, the last one first: a webhook must run for as long as a client may need it. Then it ends the server.
func (w *environment) stop() {
	if w == nil {
		return
	}
	for i := len(w.programs) - 1; i >= 0; i-- {
		_ = w.programs[i].stop()
	}
	w.server.Stop()
}

// path returns the name of a file or folder of this environment.
func (w *environment) path(elem ...string) string {
	return filepath.Join(append([]string{w.dir}, elem...)...)
}
