package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	servertesting "k8s.io/apiextensions-apiserver/pkg/cmd/server/testing"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/server/crdinstall"
	"github.com/espalier-dev/espalier/server/espaliertest"
)

const (
	ours     = "espalier"
	upstream = "upstream"
)

var sides = []string{upstream, ours}

// memory of a process, in MB.
type memory struct {
	Process, Heap, Stacks float64
	Goroutines            int
}

// runChild measures one thing and prints it. Servers of tests want a test: a
// benchmark that runs once is one.
func runChild(what, crds, etcd string, servers int) error {
	testing.Init()
	if err := flag.Set("test.benchtime", "1x"); err != nil {
		return err
	}
	var t timing
	var err error
	testing.Benchmark(func(b *testing.B) {
		switch what {
		case "servers":
			t, err = manyServers(b, crds, servers)
		case ours:
			t, err = twice(crds, func() (*rest.Config, error) { return espaliertest.Start(b, espaliertest.CRDs(crds)), nil })
		default:
			t, err = twice(crds, func() (*rest.Config, error) { return startUpstream(b, crds, etcd) })
		}
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(t)
}

// twice times a start and another one, and how long it takes from there to a list of
// the objects of every CRD.
func twice(crds string, start func() (*rest.Config, error)) (t timing, err error) {
	all, err := crdinstall.Read(crds)
	if err != nil {
		return t, err
	}
	before, err := launch.CPU(os.Getpid())
	if err != nil {
		return t, err
	}
	for _, took := range []*time.Duration{&t.First, &t.Further} {
		began := time.Now()
		config, err := start()
		if err != nil {
			return t, err
		}
		*took = time.Since(began)
		if err := served(config, all); err != nil {
			return t, err
		}
		if t.CPU == 0 {
			t.Listed = time.Since(began)
			after, err := launch.CPU(os.Getpid())
			if err != nil {
				return t, err
			}
			t.CPU = after - before
		}
	}
	return t, nil
}

// served returns when a list of the objects of every CRD is answered.
func served(config *rest.Config, all []crdinstall.Definition) error {
	own := rest.CopyConfig(config)
	own.QPS = -1
	client, err := rest.HTTPClientFor(own)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(8)
	for _, d := range all {
		group.Go(func() error {
			resources, err := d.Resources()
			if err != nil || len(resources) == 0 {
				return fmt.Errorf("%s has nothing served: %w", d.Name, err)
			}
			return list(client, config.Host+"/apis/"+resources[0]+"?limit=1")
		})
	}
	return group.Wait()
}

// list asks until there is an answer.
func list(client *http.Client, url string) error {
	for {
		resp, err := client.Get(url)
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusOK:
			return nil
		case http.StatusNotFound, http.StatusServiceUnavailable:
			time.Sleep(5 * time.Millisecond)
		default:
			return fmt.Errorf("%s: %s", url, resp.Status)
		}
	}
}

var prefixes int

// startUpstream runs upstream's test server, as its own integration tests do, and
// has it serve the CRDs.
func startUpstream(b *testing.B, crds, etcd string) (*rest.Config, error) {
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	prefixes++
	// It asks another cluster about rights: one that is nowhere.
	nowhere := filepath.Join(b.TempDir(), "nowhere")
	config := clientcmdapi.NewConfig()
	config.Clusters["x"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "x"}
	config.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*config, nowhere); err != nil {
		return nil, err
	}
	defaults := options.NewCustomResourceDefinitionsServerOptions(io.Discard, io.Discard)
	storage := defaults.RecommendedOptions.Etcd.StorageConfig
	storage.Transport.ServerList = []string{etcd}
	storage.Prefix = fmt.Sprintf("/start-%d-%d", os.Getpid(), prefixes)
	server, err := servertesting.StartTestServer(quiet{b}, nil, []string{
		"--authentication-skip-lookup", "--authentication-kubeconfig=" + nowhere, "--authorization-kubeconfig=" + nowhere, "--kubeconfig=" + nowhere,
		"--disable-admission-plugins=NamespaceLifecycle,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,ValidatingAdmissionPolicy,MutatingAdmissionPolicy",
		"--enable-priority-and-fairness=false",
	}, &storage)
	if err != nil {
		return nil, err
	}
	b.Cleanup(server.TearDownFn)
	all, err := crdinstall.Read(crds)
	if err != nil {
		return nil, err
	}
	client, err := crdinstall.NewClient(server.ClientConfig)
	if err != nil {
		return nil, err
	}
	return server.ClientConfig, client.Apply(context.Background(), all)
}

// quiet is a test that drops its log.
type quiet struct{ *testing.B }

func (quiet) Logf(string, ...any) {}

// manyServers runs many test servers at a time, and measures what they take of the process.
func manyServers(b *testing.B, crds string, count int) (t timing, err error) {
	began := time.Now()
	configs := make([]*rest.Config, count)
	var group sync.WaitGroup
	room := make(chan struct{}, 2*runtime.GOMAXPROCS(0))
	for i := range configs {
		group.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			configs[i] = espaliertest.Start(b, espaliertest.CRDs(crds))
		})
	}
	group.Wait()
	t.First = time.Since(began)
	all, err := crdinstall.Read(crds)
	if err != nil {
		return t, err
	}
	var errs []error
	for _, config := range configs {
		errs = append(errs, served(config, all))
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	resident, err := launch.RSS(os.Getpid())
	const mb = 1 << 20
	t.Memory = memory{Process: float64(resident) / mb, Heap: float64(m.HeapAlloc) / mb, Stacks: float64(m.StackInuse) / mb, Goroutines: runtime.NumGoroutine()}
	return t, errors.Join(append(errs, err)...)
}
