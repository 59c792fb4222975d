package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/specs"
)

// A side is a running server with what the suite needs beside it.
type side struct {
	*launch.Server
	stops []func() // what to stop, last first
}

// startSide starts a server of a kind on an etcd of its own. A controllers program runs beside kube-apiserver; without one, this
// process creates what the suite waits for.
func startSide(ctx context.Context, kind launch.Kind, dir, controllers, tenant string, flags []string) (*side, error) {
	s := &side{}
	started := false
	defer func() {
		if !started {
			s.stop()
		}
	}()
	etcd, err := launch.StartEtcd(ctx, "--unsafe-no-fsync")
	if err != nil {
		return nil, err
	}
	s.stops = append(s.stops, etcd.Stop)
	spec := launch.Spec{Kind: kind, Etcd: etcd.URL, Prefix: "/registry", Flags: flags, Accounts: true, Tenant: tenant}
	if spec.Binary, err = kind.Program(ctx, dir); err != nil {
		return nil, err
	}
	if s.Server, err = launch.StartServer(ctx, spec); err != nil {
		return nil, err
	}
	s.stops = append(s.stops, s.Stop)
	switch {
	case kind != launch.Kubernetes:
	case controllers != "":
		err = s.runControllers(ctx, dir, controllers)
	default:
		err = s.publish(ctx)
	}
	if err != nil {
		return nil, err
	}
	started = true
	return s, nil
}

func (s *side) stop() {
	for i := len(s.stops) - 1; i >= 0; i-- {
		s.stops[i]()
	}
}

// ours are the controllers of kube-controller-manager that our server has.
const ours = "namespace-controller,storage-version-migrator-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,garbage-collector-controller," +
	"resourcequota-controller,clusterrole-aggregation-controller,validatingadmissionpolicy-status-controller"

// runControllers runs kube-controller-manager with the controllers that our server has.
func (s *side) runControllers(ctx context.Context, dir, program string) error {
	ca := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, s.Config.CAData, 0o600); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(dir, "controllers-")
	if err != nil {
		return err
	}
	p, err := launch.Start(ctx, folder, "kube-controller-manager", program,
		"--kubeconfig="+s.Kubeconfig, "--controllers="+ours, "--root-ca-file="+ca, "--leader-elect=false", "--secure-port=0",
		"--concurrent-gc-syncs=4", "--kube-api-qps=200", "--kube-api-burst=400")
	if err != nil {
		return err
	}
	s.stops = append(s.stops, p.Stop)
	return nil
}

// publish creates the service account and the config map for which the suite waits, once in every namespace. In a cluster
// kube-controller-manager does.
func (s *side) publish(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	namespaces := factory.Core().V1().Namespaces().Informer()
	_, err = namespaces.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		namespace := o.(*corev1.Namespace)
		if namespace.Status.Phase == corev1.NamespaceTerminating {
			return
		}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		_, err := client.CoreV1().ServiceAccounts(namespace.Name).Create(ctx, account, metav1.CreateOptions{})
		complain(ctx, err)
		root := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": string(s.Config.CAData)}}
		_, err = client.CoreV1().ConfigMaps(namespace.Name).Create(ctx, root, metav1.CreateOptions{})
		complain(ctx, err)
	}})
	if err != nil {
		return err
	}
	end := make(chan struct{})
	factory.Start(end)
	s.stops = append(s.stops, func() { close(end); factory.Shutdown() })
	return nil
}

// complain prints an error of creating something, unless it exists, its namespace is being deleted, or the run is over.
func complain(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil && !apierrors.IsAlreadyExists(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		fmt.Fprintln(os.Stderr, "creating what the suite waits for failed:", err)
	}
}

// program returns the suite as a program that talks to a server.
func program(dir, kubeconfig, kubectl string) (specs.Suite, error) {
	binary, err := launch.Tool("e2e")
	if err != nil {
		return specs.Suite{}, fmt.Errorf("no suite: run `make e2e`: %w", err)
	}
	return specs.Suite{
		Name: "the conformance suite", Binary: binary, Dir: dir,
		Args: []string{"--provider=skeleton", "--kubeconfig=" + kubeconfig, "--kubectl-path=" + kubectl, "--dump-logs-on-failure=false",
			// A spec that is interrupted at its time limit must not take half a minute more.
			"--ginkgo.grace-period=15s"},
		// kubectl keeps there what it has discovered.
		Env: []string{"HOME=" + dir},
	}, nil
}
