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
	server  *launch.Server
	dir     string // of kubeconfigs and certificates
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper

	programs    []*program
	certManager *certManager // once it is started
}

var here *environment

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
	binary, err := launch.Build(ctx, dir)
	if err != nil {
		return 0, err
	}
	etcd, err := launch.StartEtcd(ctx, "--unsafe-no-fsync")
	if err != nil {
		return 0, err
	}
	defer etcd.Stop()
	server, err := launch.StartServer(ctx, launch.Spec{Kind: launch.Espalier, Binary: binary, Etcd: etcd.URL, Prefix: "/controllers"})
	if err != nil {
		return 0, err
	}
	defer server.Stop()
	if here, err = newEnvironment(server, dir); err != nil {
		return 0, err
	}
	defer here.stop()
	code := run()
	if strings.Contains(server.Output(), "panic") {
		return 0, errors.New("the server has panicked:\n" + server.Output())
	}
	return code, nil
}

func newEnvironment(server *launch.Server, dir string) (*environment, error) {
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
	return &environment{server: server, dir: dir, kube: kube, dynamic: dyn, mapper: mapper}, nil
}

// stop ends the controllers, the last one first: a webhook must run for as long as a client may need it.
func (w *environment) stop() {
	for i := len(w.programs) - 1; i >= 0; i-- {
		_ = w.programs[i].stop()
	}
}

// path returns the name of a file or folder of this environment.
func (w *environment) path(elem ...string) string {
	return filepath.Join(append([]string{w.dir}, elem...)...)
}
