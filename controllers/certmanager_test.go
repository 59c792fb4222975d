package controllers_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const certManagerModule = "github.com/cert-manager/cert-manager"

// certManager is the running cert-manager; the other controllers get their webhooks' certificates from it.
type certManager struct {
	controller, webhook, cainjector *program
	metrics                         int // port
	missing                         []string
}

// withCertManager installs and starts cert-manager, once.
func (w *environment) withCertManager(t *testing.T) *certManager {
	t.Helper()
	if w.certManager != nil {
		return w.certManager
	}
	c := &certManager{}
	programs := map[string]string{}
	for _, name := range []string{"controller", "webhook", "cainjector"} {
		programs[name] = build(t, "certmanager", certManagerModule+"/cmd/"+name, "cert-manager-"+name)
	}
	dir := filepath.Join(moduleDir(t, "certmanager", certManagerModule), "deploy")
	all := w.render(t, chart{
		release:   "cert-manager",
		namespace: "cert-manager",
		values:    map[string]any{"installCRDs": true},
		files: map[string]string{
			filepath.Join(dir, "charts", "cert-manager"): "",
			filepath.Join(dir, "crds"):                   "templates",
		},
	})
	all = append(all, parse(t, []byte(`{apiVersion: v1, kind: Namespace, metadata: {name: cert-manager}}`))...)
	hook := port(t)
	onLocalhost(t, all, hook)
	c.missing = w.install(t, all)
	c.metrics = port(t)
	c.controller = w.run(t, "cert-manager-controller", programs["controller"], nil,
		"--kubeconfig", w.kubeconfig(t, "cert-manager", "cert-manager"), "--v=2",
		"--cluster-resource-namespace=cert-manager", "--leader-election-namespace=kube-system",
		fmt.Sprintf("--metrics-listen-address=127.0.0.1:%d", c.metrics))
	c.webhook = w.run(t, "cert-manager-webhook", programs["webhook"], nil,
		"--kubeconfig", w.kubeconfig(t, "cert-manager", "cert-manager-webhook"), "--v=2",
		fmt.Sprintf("--secure-port=%d", hook), fmt.Sprintf("--healthz-port=%d", port(t)),
		"--dynamic-serving-ca-secret-namespace=cert-manager", "--dynamic-serving-ca-secret-name=cert-manager-webhook-ca",
		"--dynamic-serving-dns-names=cert-manager-webhook.cert-manager.svc", "--dynamic-serving-dns-names=localhost")
	c.cainjector = w.startInjector(t, programs["cainjector"])
	w.certManager = c
	return c
}

// startInjector starts cert-manager's injector twice: without APIServices it ends at once, with a stand-in for them it lives.
func (w *environment) startInjector(t *testing.T, binary string) *program {
	t.Helper()
	args := []string{"--kubeconfig", w.kubeconfig(t, "cert-manager", "cert-manager-cainjector"), "--v=2", "--leader-election-namespace=kube-system"}
	if _, err := w.kubectl(t.Context(), "", "get", "apiservices"); err == nil {
		t.Error("there are APIServices: the stand-in for them is not needed any more")
	}
	w.givesUp(t, `no matches for kind "APIService" in version "apiregistration.k8s.io/v1"`, "cert-manager-cainjector-alone", binary, nil,
		append(args, "--leader-elect=false")...) // or else it would keep its lease for a minute
	w.do(t, file(t, "certmanager", "testdata", "apiservices.yaml"), "apply", "-f", "-")
	w.established(t, "apiservices.apiregistration.k8s.io")
	return w.run(t, "cert-manager-cainjector", binary, nil, args...)
}

const issuers = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: itself, namespace: shop}
spec:
  selfSigned: {}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: root, namespace: shop}
spec:
  isCA: true
  commonName: shop root
  secretName: root
  privateKey: {algorithm: ECDSA}
  issuerRef: {name: itself}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: authority, namespace: shop}
spec:
  ca: {secretName: root}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web, namespace: shop}
spec:
  secretName: web
  dnsNames: [shop.example.com]
  issuerRef: {name: authority}
`

// cert-manager issues a self-signed CA and a certificate of it, issues anew when the secret is deleted and when it is told to renew,
// and its webhooks validate what users write.
func TestCertManager(t *testing.T) {
	c := here.withCertManager(t)
	if want := []string{"Deployment.apps", "Job.batch", "Service"}; !slices.Equal(c.missing, want) {
		t.Errorf("cert-manager ships kinds that the server does not have: %v, and not %v", c.missing, want)
	}
	here.apply(t, "issuers and certificates", issuers)
	for _, object := range []string{"issuer/itself", "certificate/root", "issuer/authority", "certificate/web"} {
		here.condition(t, object, "shop", "Ready", "True")
	}
	root, web := here.certificate(t, "root"), here.certificate(t, "web")
	chains(t, web, root)

	here.do(t, "", "delete", "secret", "web", "--namespace", "shop")
	again := here.reissued(t, web)
	chains(t, again, root)

	// This is what `cmctl renew` does.
	here.do(t, "", "patch", "certificate", "web", "--namespace", "shop", "--subresource", "status", "--type", "json", "--patch",
		`[{"op":"add","path":"/status/conditions/-","value":{"type":"Issuing","status":"True","reason":"ManuallyTriggered","lastTransitionTime":"2026-01-01T00:00:00Z"}}]`)
	chains(t, here.reissued(t, again), root)
	here.shows(t, "certificate/web", "shop", "{.status.revision}", "3")

	t.Run("webhooks", certManagerWebhooks)
	t.Run("rights", func(t *testing.T) {
		here.mayNot(t, "cert-manager", "cert-manager", "delete", "crds")
		here.mayNot(t, "cert-manager", "cert-manager-webhook", "get", "certificates", "--namespace", "shop")
	})
	t.Run("what users see", func(t *testing.T) {
		events := here.do(t, "", "events", "--namespace", "shop", "--for", "certificate/web")
		for _, reason := range []string{"Issuing", "Generated", "Requested"} {
			if !strings.Contains(events, reason) {
				t.Errorf("there is no event %s for the certificate:\n%s", reason, events)
			}
		}
		eventually(t, "the metric of the certificate", func(ctx context.Context) error {
			return shown(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", c.metrics),
				`certmanager_certificate_ready_status{condition="True",issuer_group="",issuer_kind="",issuer_name="authority",name="web",namespace="shop"} 1`)
		})
	})
	for _, p := range []*program{c.controller, c.webhook, c.cainjector} {
		p.account(t)
		if err := p.ended(); err != nil {
			t.Error(err)
		}
	}
}

func certManagerWebhooks(t *testing.T) {
	here.refused(t, `
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: short, namespace: shop}
spec:
  secretName: short
  dnsNames: [short.example.com]
  duration: 30m
  issuerRef: {name: authority}
`, []string{"create", "-f", "-"}, `admission webhook "webhook.cert-manager.io" denied the request`, "spec.duration")

	// A request carries the name of its creator, written by the mutating webhook and not to be changed afterwards.
	name, err := here.get(t.Context(), "certificaterequest", "shop", `{.items[0].metadata.name}`)
	if err != nil {
		t.Fatal(err)
	}
	here.shows(t, "certificaterequest/"+name, "shop", "{.spec.username}", "system:serviceaccount:cert-manager:cert-manager")
	here.refused(t, "", []string{"patch", "certificaterequest", name, "--namespace", "shop", "--type", "merge", "--patch", `{"spec":{"username":"mallory"}}`},
		`admission webhook "webhook.cert-manager.io" denied the request`, "username")
}

// certificate reads the certificate that a secret holds.
func (w *environment) certificate(t *testing.T, name string) *x509.Certificate {
	t.Helper()
	secret, err := w.kube.CoreV1().Secrets("shop").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cert, err := leaf(secret)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func leaf(secret *corev1.Secret) (*x509.Certificate, error) {
	block, _ := pem.Decode(secret.Data[corev1.TLSCertKey])
	if block == nil || len(secret.Data[corev1.TLSPrivateKeyKey]) == 0 || len(secret.Data["ca.crt"]) == 0 {
		return nil, fmt.Errorf("the secret %s is not complete", secret.Name)
	}
	return x509.ParseCertificate(block.Bytes)
}

// reissued waits for another certificate than the one before.
func (w *environment) reissued(t *testing.T, before *x509.Certificate) *x509.Certificate {
	t.Helper()
	var now *x509.Certificate
	eventually(t, "another certificate", func(ctx context.Context) error {
		secret, err := w.kube.CoreV1().Secrets("shop").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if now, err = leaf(secret); err == nil && now.Equal(before) {
			err = errors.New("it is the one from before")
		}
		return err
	})
	w.condition(t, "certificate/web", "shop", "Ready", "True")
	return now
}

func chains(t *testing.T, web, root *x509.Certificate) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(root)
	if _, err := web.Verify(x509.VerifyOptions{Roots: roots, DNSName: "shop.example.com"}); err != nil {
		t.Error(err)
	}
}

// shown asks a page and expects a line of it.
func shown(ctx context.Context, url, line string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return contains(response, line)
}
