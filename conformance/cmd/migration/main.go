package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

var (
	only   = flag.String("run", "", "run the cases whose name contains this")
	within = flag.Duration("within", 90*time.Second, "time that a migration has")
	on     = flag.String("on", "espalier,kube-apiserver", "the servers to run")
)

func main() {
	flag.Parse()
	launch.Main("migration", run)
}

func run(ctx context.Context, dir string) error {
	var wrong []string
	for _, name := range strings.Split(*on, ",") {
		kind, err := launch.Named(name)
		if err != nil {
			return err
		}
		untrue, err := side(ctx, kind, dir)
		if err != nil {
			return fmt.Errorf("%v: %w", kind, err)
		}
		if kind == launch.Espalier {
			wrong = untrue
		}
	}
	if len(wrong) > 0 {
		return errors.New("our server is wrong in: " + strings.Join(wrong, ", "))
	}
	return nil
}

// side runs the cases on one server, and returns those in which the CRD's status does not say the truth.
func side(ctx context.Context, kind launch.Kind, dir string) (wrong []string, err error) {
	etcd, err := launch.StartEtcd(ctx, "--unsafe-no-fsync")
	if err != nil {
		return nil, err
	}
	defer etcd.Stop()
	spec := launch.Spec{Kind: kind, Etcd: etcd.URL, Prefix: "/registry", Namespaces: []string{"team"}}
	if spec.Binary, err = kind.Program(ctx, dir); err != nil {
		return nil, err
	}
	server, err := launch.StartServer(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	if kind == launch.Kubernetes {
		p, err := manager(ctx, dir, server)
		if err != nil {
			return nil, err
		}
		defer p.Stop()
	}
	w, err := newCluster(server, etcd)
	if err != nil {
		return nil, err
	}
	defer w.etcd.Close()
	fmt.Printf("== %v\n", kind)
	for _, c := range cases {
		if !strings.Contains(c.name, *only) {
			continue
		}
		r, err := w.run(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Println(r)
		if !r.true() {
			wrong = append(wrong, c.name)
		}
	}
	return wrong, nil
}

// manager runs the migrator of kube-controller-manager. It needs the garbage collector's graph.
func manager(ctx context.Context, dir string, server *launch.Server) (*launch.Process, error) {
	program, err := launch.Tool("kube-controller-manager")
	if err != nil {
		return nil, fmt.Errorf("no kube-controller-manager: run `make kube-controller-manager`: %w", err)
	}
	ca := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, server.Config.CAData, 0o600); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(dir, "manager-")
	if err != nil {
		return nil, err
	}
	return launch.Start(ctx, folder, "kube-controller-manager", program,
		"--kubeconfig="+server.Kubeconfig, "--controllers=storage-version-migrator-controller,garbage-collector-controller",
		"--root-ca-file="+ca, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=200", "--kube-api-burst=400")
}
