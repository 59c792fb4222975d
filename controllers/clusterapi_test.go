package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const clusterAPIModule = "sigs.k8s.io/cluster-api"

// startClusterAPI installs what cluster-api ships and starts its manager. cert-manager issues its certificate, and cert-manager's injector
// tells the webhooks and CRDs about it: as in a cluster, only that here the test does what the kubelet would do, and puts the
// secret into a folder.
func (w *environment) startClusterAPI(t *testing.T) *program {
	t.Helper()
	binary := build(t, "clusterapi", clusterAPIModule+"/core", "cluster-api")
	w.withCertManager(t)
	hook := port(t)
	all := w.kustomize(t, filepath.Join(moduleDir(t, "clusterapi", clusterAPIModule), "core", "config", "default"))
	onLocalhost(t, all, hook)
	var missing []string
	eventually(t, "installed, with cert-manager's webhook there", func(context.Context) error {
		var err error
		missing, err = w.tryInstall(t, all)
		return err
	})
	if want := []string{"Deployment.apps", "Service"}; !slices.Equal(missing, want) {
		t.Errorf("cluster-api ships kinds that the server does not have: %v, and not %v", missing, want)
	}
	certs := w.path("cluster-api-certs")
	w.mount(t, "capi-system", "capi-webhook-service-cert", certs)
	w.may(t, "capi-system", "capi-manager", "watch", "clusters.cluster.x-k8s.io", "--all-namespaces")
	env := []string{"KUBECONFIG=" + w.kubeconfig(t, "capi-system", "capi-manager"), "POD_NAMESPACE=capi-system"}
	args := []string{
		fmt.Sprintf("--diagnostics-address=127.0.0.1:%d", port(t)), fmt.Sprintf("--health-addr=127.0.0.1:%d", port(t)),
		fmt.Sprintf("--webhook-port=%d", hook), "--webhook-cert-dir=" + certs,
	}
	// It has no flag for the namespace in which to elect, and asks the file that a pod has. The only replica need not be elected.
	w.givesUp(t, "not running in-cluster, please specify LeaderElectionNamespace", "cluster-api-elected", binary, env, append(args, "--leader-elect")...)
	return w.run(t, "cluster-api", binary, env, args...)
}

// mount waits for a secret and writes it into a folder.
func (w *environment) mount(t *testing.T, namespace, name, dir string) {
	t.Helper()
	eventually(t, "the secret "+name, func(ctx context.Context) error {
		secret, err := w.kube.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		for key, value := range secret.Data {
			if err := os.WriteFile(filepath.Join(dir, key), value, 0o600); err != nil {
				return err
			}
		}
		return nil
	})
}

// file reads a manifest of a test.
func file(t *testing.T, elem ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// cluster-api's manager admits, converts and reconciles a cluster of machines, as far as one gets without machines: the test takes the
// part of an infrastructure provider.
func TestClusterAPI(t *testing.T) {
	manager := here.startClusterAPI(t)
	here.do(t, "", "create", "namespace", "fleet")
	here.do(t, file(t, "clusterapi", "testdata", "provider.yaml"), "apply", "-f", "-")
	here.do(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	here.do(t, "", "create", "secret", "generic", "boot", "--namespace", "fleet", "--from-literal=value=none")
	here.apply(t, "a cluster and its workers", file(t, "clusterapi", "testdata", "cluster.yaml"))

	t.Run("admission and conversion", clusterAPIAdmission)
	t.Run("cluster", func(t *testing.T) {
		here.shows(t, "cluster/demo", "fleet", "{.metadata.finalizers[0]}", "cluster.cluster.x-k8s.io")
		here.shows(t, "shedcluster/demo", "fleet", "{.metadata.ownerReferences[0].kind} {.metadata.ownerReferences[0].name}", "Cluster demo")
		here.condition(t, "cluster/demo", "fleet", "InfrastructureReady", "False")
		here.do(t, "", "patch", "shedcluster", "demo", "--namespace", "fleet", "--type", "merge", "--patch", `{"spec":{"controlPlaneEndpoint":{"host":"demo.example.com","port":6443}}}`)
		here.do(t, "", "patch", "shedcluster", "demo", "--namespace", "fleet", "--subresource", "status", "--type", "merge", "--patch", `{"status":{"initialization":{"provisioned":true}}}`)
		here.condition(t, "cluster/demo", "fleet", "InfrastructureReady", "True")
		here.shows(t, "cluster/demo", "fleet", "{.spec.controlPlaneEndpoint.host} {.status.phase}", "demo.example.com Provisioned")
	})
	t.Run("machines", clusterAPIMachines)
	t.Run("paused", func(t *testing.T) {
		here.do(t, "", "patch", "cluster", "demo", "--namespace", "fleet", "--type", "merge", "--patch", `{"spec":{"paused":true}}`)
		for _, object := range []string{"cluster/demo", "machinedeployment/workers"} {
			here.condition(t, object, "fleet", "Paused", "True")
		}
		here.do(t, "", "patch", "cluster", "demo", "--namespace", "fleet", "--type", "merge", "--patch", `{"spec":{"paused":false}}`)
		here.condition(t, "machinedeployment/workers", "fleet", "Paused", "False")
	})
	t.Run("end", func(t *testing.T) {
		here.do(t, "", "delete", "cluster", "demo", "--namespace", "fleet", "--timeout=120s")
		for _, kind := range []string{"machinedeployments", "machinesets", "machines", "shedmachines", "shedclusters"} {
			here.shows(t, kind, "fleet", "{.items[*].metadata.name}", "")
		}
	})
	t.Run("rights", func(t *testing.T) {
		here.mayNot(t, "capi-system", "capi-manager", "create", "clusters.cluster.x-k8s.io", "--namespace", "fleet")
		here.mayNot(t, "capi-system", "capi-manager", "delete", "crds")
	})
	manager.account(t)
	if err := manager.stop(); err != nil {
		t.Error(err)
	}
}

func clusterAPIAdmission(t *testing.T) {
	here.shows(t, "machinedeployment/workers", "fleet", "{.spec.rollout.strategy.type} {.spec.selector.matchLabels}",
		`RollingUpdate {"cluster.x-k8s.io/cluster-name":"demo","cluster.x-k8s.io/deployment-name":"workers"}`)
	here.shows(t, "clusters.v1beta2.cluster.x-k8s.io/demo", "fleet", "{.spec.infrastructureRef}",
		`{"apiGroup":"infrastructure.cluster.x-k8s.io","kind":"ShedCluster","name":"demo"}`)
	here.shows(t, "clusters.v1beta1.cluster.x-k8s.io/demo", "fleet", "{.spec.infrastructureRef}",
		`{"apiVersion":"infrastructure.cluster.x-k8s.io/v1","kind":"ShedCluster","name":"demo","namespace":"fleet"}`)
	here.refused(t, strings.NewReplacer("version: v1.37.2", "version: newest").Replace(file(t, "clusterapi", "testdata", "cluster.yaml")),
		[]string{"apply", "-f", "-"}, `The MachineDeployment "workers" is invalid: spec.template.spec.version: Invalid value: "vnewest": must be a valid semantic version`)
	here.refused(t, "", []string{"patch", "machinedeployment", "workers", "--namespace", "fleet", "--type", "merge", "--patch",
		`{"spec":{"clusterName":"other"}}`}, "spec.clusterName: Forbidden: field is immutable")
}

func clusterAPIMachines(t *testing.T) {
	here.shows(t, "machinesets", "fleet", "{.items[*].metadata.ownerReferences[*].kind}", "MachineDeployment")
	here.machines(t, 2)
	here.shows(t, "shedmachines", "fleet", "{.items[*].spec.shelf}", "top top")
	names, err := here.get(t.Context(), "shedmachines", "fleet", "{.items[*].metadata.name}")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range strings.Fields(names) {
		here.do(t, "", "patch", "shedmachine", name, "--namespace", "fleet", "--type", "merge", "--patch", fmt.Sprintf(`{"spec":{"providerID":"shed://%d"}}`, i))
		here.do(t, "", "patch", "shedmachine", name, "--namespace", "fleet", "--subresource", "status", "--type", "merge", "--patch", `{"status":{"initialization":{"provisioned":true}}}`)
	}
	here.shows(t, "machines", "fleet", `{.items[*].status.phase}`, "Provisioned Provisioned")

	here.do(t, "", "scale", "machinedeployment/workers", "--namespace", "fleet", "--replicas=3")
	here.machines(t, 3)
	here.shows(t, "machinedeployment/workers", "fleet", "{.status.replicas}", "3")
	here.do(t, "", "scale", "machinedeployment/workers", "--namespace", "fleet", "--replicas=1")
	here.machines(t, 1)
}

// machines waits until there are so many, each with infrastructure of its own.
func (w *environment) machines(t *testing.T, want int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d machines with infrastructure", want), func(ctx context.Context) error {
		machines, err := w.get(ctx, "machines", "fleet", "{.items[*].spec.infrastructureRef.name}")
		if err != nil {
			return err
		}
		infrastructure, err := w.get(ctx, "shedmachines", "fleet", "{.items[*].metadata.name}")
		if err != nil {
			return err
		}
		if got := strings.Fields(machines); len(got) != want || len(strings.Fields(infrastructure)) != want {
			return errors.New("there are " + machines + " with " + infrastructure)
		}
		return nil
	})
}
