package launch_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// Upstream's server starts on an etcd, answers an administrator, can be measured, and is gone after Stop.
func TestUpstreamServes(t *testing.T) {
	ctx := t.Context()
	etcd, err := launch.StartEtcd(ctx, "--unsafe-no-fsync")
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Stop()
	binary, err := launch.Tool("upstream")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	server, err := launch.StartServer(ctx, launch.Spec{Kind: launch.Upstream, Binary: binary, Etcd: etcd.URL, Prefix: "/a"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	t.Logf("ready after %v", time.Since(began))
	client, err := clientset.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ApiextensionsV1().CustomResourceDefinitions().List(ctx, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	measure(ctx, t, server, etcd)
	server.Stop()
	if err := syscall.Kill(server.Pid, 0); err == nil {
		t.Error("the server is still there after Stop")
	}
}

func measure(ctx context.Context, t *testing.T, server *launch.Server, etcd *launch.Etcd) {
	t.Helper()
	cpu, err := launch.CPU(server.Pid)
	if err != nil || cpu == 0 {
		t.Errorf("CPU: %v, %v", cpu, err)
	}
	rss, err := launch.RSS(server.Pid)
	if err != nil || rss < 1<<20 {
		t.Errorf("resident memory: %d, %v", rss, err)
	}
	heap, err := server.Heap(ctx)
	if err != nil || heap < 1<<20 || heap > rss {
		t.Errorf("heap: %d of %d resident, %v", heap, rss, err)
	}
	goroutines, err := server.Goroutines(ctx)
	if err != nil || goroutines < 10 {
		t.Errorf("goroutines: %d, %v", goroutines, err)
	}
	connections, err := launch.Connections(server.Pid, etcd.Port)
	if err != nil || connections < 1 {
		t.Errorf("connections to etcd: %d, %v", connections, err)
	}
	t.Logf("CPU %v, %d MB resident, %d MB heap, %d goroutines, %d connections", cpu, rss>>20, heap>>20, goroutines, connections)
}
