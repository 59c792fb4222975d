package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/conformance/launch"
)

const trustManagerModule = "github.com/cert-manager/trust-manager"

const bundle = `
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: itself, namespace: cert-manager}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: trusted, namespace: cert-manager}
spec:
  isCA: true
  commonName: trusted root
  secretName: trusted
  privateKey: {algorithm: ECDSA}
  issuerRef: {name: itself}
---
apiVersion: trust.cert-manager.io/v1alpha1
kind: Bundle
metadata: {name: trusted}
spec:
  sources:
  - secret: {name: trusted, key: tls.crt}
  target:
    configMap: {key: roots.pem}
`

// trust-manager copies a CA of cert-manager's into a ConfigMap of each namespace, by server-side apply, and keeps it there.
func TestTrustManager(t *testing.T) {
	binary := build(t, "trustmanager", trustManagerModule+"/cmd/trust-manager", "trust-manager")
	here.withCertManager(t)
	hook := port(t)
	// By default the chart has cert-manager issue the webhook's certificate, with an annotation that cert-manager 1.11 does not allow yet;
	// so Helm makes it, and it is replaced by one that is valid for localhost.
	all := here.render(t, chart{
		release:   "trust-manager",
		namespace: "cert-manager",
		values:    map[string]any{"app": map[string]any{"webhook": map[string]any{"tls": map[string]any{"helmCert": map[string]any{"enabled": true}}}}},
		files:     map[string]string{filepath.Join(moduleDir(t, "trustmanager", trustManagerModule), "deploy", "charts", "trust-manager"): ""},
	})
	onLocalhost(t, all, hook)
	signer, err := launch.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	trust(t, all, signer.CA)
	certs := here.path("trust-manager-certs")
	writePair(t, signer, certs)
	if missing, want := here.install(t, all), []string{"Deployment.apps", "Service"}; !slices.Equal(missing, want) {
		t.Errorf("trust-manager ships kinds that the server does not have: %v, and not %v", missing, want)
	}
	// Outside a cluster it does not know in which namespace to elect, so the only replica leads.
	manager := here.run(t, "trust-manager", binary, nil, "--kubeconfig="+here.kubeconfig(t, "cert-manager", "trust-manager"),
		"--leader-elect=false", fmt.Sprintf("--metrics-port=%d", port(t)), fmt.Sprintf("--readiness-probe-port=%d", port(t)),
		"--webhook-host=127.0.0.1", fmt.Sprintf("--webhook-port=%d", hook), "--webhook-certificate-dir="+certs)

	here.apply(t, "a CA and a bundle of it", bundle)
	here.shows(t, "bundle/trusted", "default", `{.status.conditions[?(@.type=="Synced")].status}`, "True")
	root, err := here.kube.CoreV1().Secrets("cert-manager").Get(t.Context(), "trusted", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	here.do(t, "", "create", "namespace", "orchard")
	here.trusts(t, "orchard", string(root.Data["tls.crt"]))
	here.do(t, "", "delete", "configmap", "trusted", "--namespace", "orchard")
	here.trusts(t, "orchard", string(root.Data["tls.crt"]))
	here.do(t, "", "patch", "configmap", "trusted", "--namespace", "orchard", "--type", "merge", "--patch", `{"data":{"roots.pem":"mallory"}}`)
	here.trusts(t, "orchard", string(root.Data["tls.crt"]))
	here.refused(t, strings.Replace(bundle[strings.LastIndex(bundle, "---"):], "- secret: {name: trusted, key: tls.crt}", "- inLine: nothing\n  - useDefaultCAs: true\n  - useDefaultCAs: true", 1),
		[]string{"apply", "-f", "-"}, `admission webhook "trust.cert-manager.io" denied the request`)
	here.do(t, "", "delete", "bundle", "trusted", "--timeout=60s")
	here.shows(t, "configmaps --field-selector=metadata.name=trusted", "orchard", "{.items[*].metadata.name}", "")
	manager.account(t)
	if err := manager.stop(); err != nil {
		t.Error(err)
	}
}

// trusts waits until a namespace has the root.
func (w *environment) trusts(t *testing.T, namespace, root string) {
	t.Helper()
	eventually(t, "the root in "+namespace, func(ctx context.Context) error {
		target, err := w.kube.CoreV1().ConfigMaps(namespace).Get(ctx, "trusted", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !strings.Contains(target.Data["roots.pem"], strings.TrimSpace(root)) {
			return errors.New("the ConfigMap has something else")
		}
		return nil
	})
}
