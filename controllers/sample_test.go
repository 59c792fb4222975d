package controllers_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// replica is one of the sample's processes.
type replica struct {
	*program
	metrics int // port
}

// garden is the sample with two replicas: the first one leads, the second one serves the webhooks.
type garden struct {
	first, second replica
	signer        *launch.CA
}

func (w *environment) startGarden(t *testing.T) garden {
	t.Helper()
	binary := build(t, ".", "./sample", "sample")
	signer, err := launch.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	certs := w.path("garden-certs")
	writePair(t, signer, certs)
	hook := port(t)
	var all objects
	for _, file := range []string{"crd.yaml", "rbac.yaml", "webhooks.yaml"} {
		data, err := os.ReadFile(filepath.Join("sample", "config", file))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, parse(t, data)...)
	}
	onLocalhost(t, all, hook)
	trust(t, all, signer.CA)
	if missing := w.install(t, all); len(missing) > 0 {
		t.Errorf("the sample needs what the server does not have: %v", missing)
	}
	config := "KUBECONFIG=" + w.kubeconfig(t, "garden-system", "trellis")
	start := func(name string, hook int) replica {
		metrics := port(t)
		return replica{w.run(t, name, binary, []string{config},
			fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", metrics), fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", port(t)),
			fmt.Sprintf("--webhook-port=%d", hook), "--webhook-cert-dir="+certs), metrics}
	}
	g := garden{first: start("sample-first", port(t)), signer: signer}
	w.leads(t, "")
	g.second = start("sample-second", hook)
	return g
}

// leads waits until another replica than before leads, and returns who it is.
func (w *environment) leads(t *testing.T, before string) string {
	t.Helper()
	var holder string
	eventually(t, "a leader", func(ctx context.Context) error {
		lease, err := w.kube.CoordinationV1().Leases("garden-system").Get(ctx, "trellis.garden.example.com", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || *lease.Spec.HolderIdentity == before {
			return fmt.Errorf("the lease is held by %v", lease.Spec.HolderIdentity)
		}
		holder = *lease.Spec.HolderIdentity
		return nil
	})
	return holder
}

func writePair(t *testing.T, signer *launch.CA, dir string) {
	t.Helper()
	pair, err := signer.Server("127.0.0.1", "localhost")
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "tls.crt"), pair.Cert, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), pair.Key, 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

// trust writes the CA into everything that calls a webhook.
func trust(t *testing.T, all objects, ca []byte) {
	t.Helper()
	bundle := base64.StdEncoding.EncodeToString(ca)
	for _, o := range all {
		if hooks, found, _ := unstructured.NestedSlice(o.Object, "webhooks"); found {
			for _, hook := range hooks {
				hook.(map[string]any)["clientConfig"].(map[string]any)["caBundle"] = bundle
			}
			o.Object["webhooks"] = hooks
		}
		if config, found, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "conversion", "webhook", "clientConfig"); found {
			config.(map[string]any)["caBundle"] = bundle
		}
	}
}

// A controller in kubebuilder's style has everything it needs: webhooks of the three kinds, leader election, a finalizer, owned objects,
// conditions, events, and metrics that only those may read whom the server allows it.
func TestSample(t *testing.T) {
	g := here.startGarden(t)
	here.do(t, "", "create", "namespace", "garden")
	here.apply(t, "a trellis of the first version", `
apiVersion: garden.example.com/v1alpha1
kind: Trellis
metadata: {name: apple, namespace: garden}
spec: {plant: apple, size: 3x4}
`)
	here.condition(t, "trellis/apple", "garden", "Ready", "True")
	here.shows(t, "trellis/apple", "garden", "{.spec.size.rows} {.spec.size.columns} {.status.rows}", "3 4 3")
	here.shows(t, "trellises.v1alpha1.garden.example.com/apple", "garden", "{.spec.size}", "3x4")
	here.shows(t, "configmap/apple-row-2", "garden", "{.data.plant} {.data.columns} {.metadata.ownerReferences[0].kind}", "apple 4 Trellis")
	if table := here.do(t, "", "get", "trellises", "--namespace", "garden"); !strings.Contains(table, "apple   apple   3      True") {
		t.Errorf("kubectl get trellises prints\n%s", table)
	}

	t.Run("webhooks", gardenWebhooks)
	t.Run("owned objects", func(t *testing.T) {
		here.do(t, "", "delete", "configmap", "apple-row-0", "--namespace", "garden")
		here.shows(t, "configmap/apple-row-0", "garden", "{.data.plant}", "apple")
		here.do(t, "", "patch", "trellis", "apple", "--namespace", "garden", "--type", "merge", "--patch", `{"spec":{"size":{"rows":1}}}`)
		here.shows(t, "configmaps --selector=garden.example.com/trellis=apple", "garden", "{.items[*].metadata.name}", "apple-row-0")
		here.shows(t, "trellis/apple", "garden", "{.status.rows} {.status.observedGeneration}", "1 2")
	})
	t.Run("metrics", func(t *testing.T) { gardenMetrics(t, g) })
	t.Run("leader", func(t *testing.T) {
		before := here.leads(t, "")
		g.first.kill()
		here.leads(t, before)
		here.apply(t, "a trellis for the new leader", `
apiVersion: garden.example.com/v1
kind: Trellis
metadata: {name: pear, namespace: garden}
spec: {plant: pear}
`)
		here.condition(t, "trellis/pear", "garden", "Ready", "True")
		here.shows(t, "trellis/pear", "garden", "{.status.rows}", "2")
	})
	t.Run("end", gardenEnd)
	g.first.account(t)
	g.second.account(t)
	if err := g.second.stop(); err != nil {
		t.Error(err)
	}
	here.shows(t, "lease/trellis.garden.example.com", "garden-system", "{.spec.holderIdentity}", "")
}

func gardenWebhooks(t *testing.T) {
	const rose = `
apiVersion: garden.example.com/v1
kind: Trellis
metadata: {name: rose, namespace: garden}
spec: {plant: rose, size: {rows: 1000, columns: 1000}}
`
	here.refused(t, rose, []string{"create", "-f", "-"},
		`admission webhook "validate.garden.example.com" denied the request: spec.size has 1000000 crossings: at most 100 can be pruned`)
	here.refused(t, "", []string{"patch", "trellis", "apple", "--namespace", "garden", "--type", "merge", "--patch", `{"spec":{"plant":"pear"}}`},
		"spec.plant is apple and stays it")
	_, warned, err := here.kubectlWarned(t.Context(), strings.NewReplacer("rose", "ivy", "1000", "2").Replace(rose), "create", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(warned, "Warning: ivy takes the wall with it") {
		t.Errorf("kubectl shows no warning: %s", warned)
	}
}

// gardenMetrics reads metrics without credentials, as a user without the right, and as a user who has it.
func gardenMetrics(t *testing.T, g garden) {
	url := fmt.Sprintf("https://127.0.0.1:%d/metrics", g.first.metrics)
	for account, want := range map[string]int{"": http.StatusUnauthorized, "trellis": http.StatusForbidden, "metrics": http.StatusOK} {
		config := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: g.signer.CA}, Timeout: 30 * time.Second}
		if account != "" {
			token, err := here.kube.CoreV1().ServiceAccounts("garden-system").CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			config.BearerToken = token.Status.Token
		}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != want {
			t.Errorf("metrics for %q: %s, and not %d", account, response.Status, want)
		}
		if want == http.StatusOK {
			if err := contains(response, `controller_runtime_reconcile_total{controller="trellis",result="success"}`); err != nil {
				t.Error(err)
			}
		}
		_ = response.Body.Close()
	}
}

// gardenEnd deletes a trellis: its finalizer lets it go, its event stays, what it owned is collected.
func gardenEnd(t *testing.T) {
	here.do(t, "", "delete", "trellis", "pear", "--namespace", "garden", "--wait=true", "--timeout=60s")
	eventually(t, "the rows are collected", func(ctx context.Context) error {
		_, err := here.kube.CoreV1().ConfigMaps("garden").Get(ctx, "pear-row-0", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("a row is still there"))
	})
	eventually(t, "the event of the end", func(ctx context.Context) error {
		out, err := here.kubectl(ctx, "", "events", "--namespace", "garden")
		if err == nil && !strings.Contains(out, "Uprooted") {
			err = errors.New(out)
		}
		return err
	})
}
