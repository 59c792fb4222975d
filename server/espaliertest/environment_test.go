package espaliertest_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	admission "k8s.io/api/admission/v1"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/server/espaliertest"
)

var pears = schema.GroupVersionResource{Group: "orchard.example.com", Version: "v1", Resource: "pears"}

// pear is a CRD in two versions; conversion is what a manifest says of it.
const pear = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pears.orchard.example.com
spec:
  group: orchard.example.com
  scope: Namespaced
  names: {plural: pears, kind: Pear}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {name: elsewhere, namespace: default}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {ripe: {type: boolean, default: false}, by: {type: string}}
  - name: v1beta1
    served: true
    storage: false
    schema: *schema
---
apiVersion: v1
kind: ConfigMap
metadata: {name: not-a-definition}
`

const hooks = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: pears}
webhooks:
- name: pears.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: webhooks, namespace: system, path: /pears}}
  rules: [{apiGroups: [orchard.example.com], apiVersions: [v1], resources: [pears], operations: [CREATE]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: pears}
webhooks:
- name: pears.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: webhooks, namespace: system}}
  rules: [{apiGroups: [orchard.example.com], apiVersions: [v1], resources: [pears], operations: [UPDATE]}]
`

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// begin starts an environment that ends with the test.
func begin(t *testing.T, e *espaliertest.Environment) *rest.Config {
	t.Helper()
	config, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	return config
}

func create(t *testing.T, config *rest.Config, spec map[string]any) (*unstructured.Unstructured, error) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(pears).Namespace("default").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "orchard.example.com/v1", "kind": "Pear", "metadata": map[string]any{"generateName": "pear-"}, "spec": spec,
	}}, metav1.CreateOptions{})
}

// As with envtest, the server has a Service for itself, and nothing that
// kube-controller-manager would create.
func TestEnvironmentCreatesWhatEnvtestDoes(t *testing.T) {
	t.Parallel()
	client := kubernetes.NewForConfigOrDie(begin(t, &espaliertest.Environment{})).CoreV1()
	if _, err := client.Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	time.Sleep(300 * time.Millisecond) // controllers need no longer
	accounts, err := client.ServiceAccounts("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(accounts.Items) > 0 {
		t.Errorf("the service accounts are %v %v", accounts.Items, err)
	}
	maps, err := client.ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(maps.Items) > 0 {
		t.Errorf("the config maps are %v %v", maps.Items, err)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	path := file(t, "pear.yaml", pear)
	e := &espaliertest.Environment{
		CRDDirectoryPaths: []string{filepath.Dir(path), path, filepath.Join(filepath.Dir(path), "missing")},
	}
	if err := e.Stop(); err != nil {
		t.Error("before Start: ", err)
	}
	for range 2 { // one can be started again
		config, err := e.Start()
		if err != nil {
			t.Fatal(err)
		}
		if len(e.CRDs) != 1 || e.CRDs[0].Spec.Conversion != nil {
			t.Errorf("the definitions are %v", e.CRDs)
		}
		made, err := create(t, config, map[string]any{"by": "hand"})
		if err != nil {
			t.Fatal(err)
		}
		if ripe, found, _ := unstructured.NestedBool(made.Object, "spec", "ripe"); ripe || !found {
			t.Errorf("no default in %v", made)
		}
		if _, err := e.Start(); err == nil {
			t.Error("it starts twice")
		}
		loaded, err := clientcmd.RESTConfigFromKubeConfig(e.KubeConfig)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := create(t, loaded, nil); err != nil {
			t.Error("by the kubeconfig: ", err)
		}
		certs := e.WebhookInstallOptions.LocalServingCertDir
		if err := errors.Join(e.Stop(), e.Stop()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(certs); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", certs, err)
		}
	}
}

func TestEnvironmentFails(t *testing.T) {
	t.Parallel()
	broken := strings.Replace(pear, "type: boolean", "type: maybe", 1)
	flag := func(name, value string) *espaliertest.Environment {
		e := &espaliertest.Environment{}
		e.ControlPlane.GetAPIServer().Configure().Set(name, value)
		return e
	}
	for name, test := range map[string]struct {
		e    *espaliertest.Environment
		want string
	}{
		"missing definitions": {&espaliertest.Environment{CRDDirectoryPaths: []string{"nowhere"}, ErrorIfCRDPathMissing: true}, "nowhere: no such file"},
		"missing webhooks":    {&espaliertest.Environment{WebhookInstallOptions: espaliertest.WebhookInstallOptions{Paths: []string{"nowhere"}}}, "nowhere: no such file"},
		"broken definition":   {&espaliertest.Environment{CRDDirectoryPaths: []string{file(t, "pear.yaml", broken)}}, `Unsupported value: "maybe"`},
		"not yaml":            {&espaliertest.Environment{CRDDirectoryPaths: []string{file(t, "pear.yaml", "a: [")}}, "pear.yaml"},
		"old definition":      {&espaliertest.Environment{CRDDirectoryPaths: []string{file(t, "pear.yaml", strings.Replace(pear, "io/v1", "io/v1beta1", 1))}}, "is apiextensions.k8s.io/v1beta1"},
		"old webhook":         {&espaliertest.Environment{WebhookInstallOptions: espaliertest.WebhookInstallOptions{Paths: []string{file(t, "hooks.yaml", strings.ReplaceAll(hooks, "io/v1", "io/v1beta1"))}}}, "its apiVersion is admissionregistration.k8s.io/v1beta1"},
		"unknown flag":        {flag("bark", "1"), "unknown flag: --bark"},
		"feature gates":       {flag("feature-gates", "WatchList=false"), "gates belong to the process"},
		"open port":           {flag("insecure-port", "8080"), "the server speaks TLS only"},
		"no time":             {&espaliertest.Environment{ControlPlaneStartTimeout: 1}, "starting takes more than 1ns"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := test.e.Start()
			if err == nil || !strings.Contains(err.Error(), test.want) || config != nil {
				t.Errorf("%v, not %q", err, test.want)
			}
			if dir := test.e.WebhookInstallOptions.LocalServingCertDir; dir != "" {
				t.Errorf("%s is left", dir)
			}
			if _, err := test.e.AddUser(espaliertest.User{Name: "alice"}, nil); err == nil {
				t.Error("a user of nothing")
			}
			if err := test.e.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEnvironmentUsers(t *testing.T) {
	t.Parallel()
	path := file(t, "pear.yaml", pear)
	e := &espaliertest.Environment{CRDDirectoryPaths: []string{path}}
	config := begin(t, e)
	alice, err := e.AddUser(espaliertest.User{Name: "alice", Groups: []string{"growers"}}, &rest.Config{UserAgent: "growing"})
	if err != nil {
		t.Fatal(err)
	}
	if got := alice.Config(); got.UserAgent != "growing" || got.Host != config.Host {
		t.Errorf("the configuration is %v", got)
	}
	if _, err := create(t, alice.Config(), nil); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "alice" cannot create`) {
		t.Errorf("without a role: %v", err)
	}
	grow(t, config, "growers")
	allowed(t, alice.Config())
	text, err := alice.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	allowed(t, loaded)

	// One test server is the existing cluster of another environment.
	existing := true
	cluster := &espaliertest.Environment{UseExistingCluster: &existing, Config: config, CRDDirectoryPaths: []string{path},
		CRDInstallOptions: espaliertest.CRDInstallOptions{CleanUpAfterUse: true}}
	if _, err := cluster.Start(); err != nil {
		t.Fatal(err)
	}
	bob, err := cluster.AddUser(espaliertest.User{Name: "bob", Groups: []string{"growers"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	allowed(t, bob.Config())
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	definitions := client.Resource(apiextensions.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	eventually(t, "the definition goes, with its objects", func() bool {
		_, err := definitions.Get(t.Context(), "pears.orchard.example.com", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if err := espaliertest.UninstallCRDs(config, espaliertest.CRDInstallOptions{Paths: []string{path}}); err != nil {
		t.Error("what is gone already: ", err)
	}
}

// grow lets a group create pears.
func grow(t *testing.T, config *rest.Config, group string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	name := metav1.ObjectMeta{Name: "grow"}
	if _, err := client.RbacV1().ClusterRoles().Create(t.Context(), &rbac.ClusterRole{ObjectMeta: name,
		Rules: []rbac.PolicyRule{{Verbs: []string{"create"}, APIGroups: []string{pears.Group}, Resources: []string{pears.Resource}}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbac.ClusterRoleBinding{ObjectMeta: name,
		RoleRef:  rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: "grow"},
		Subjects: []rbac.Subject{{APIGroup: rbac.GroupName, Kind: rbac.GroupKind, Name: group}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// allowed waits until a user may create pears: rights are known a moment after they
// are written.
func allowed(t *testing.T, config *rest.Config) {
	t.Helper()
	eventually(t, "the user may create pears", func() bool {
		_, err := create(t, config, nil)
		if err != nil && !apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return so(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestEnvironmentFlags(t *testing.T) {
	t.Parallel()
	e := &espaliertest.Environment{CRDDirectoryPaths: []string{file(t, "pear.yaml", pear)}}
	flags := e.ControlPlane.GetAPIServer().Configure()
	flags.Set("field-validation", "strict").Enable("allow-privileged").Append("enable-admission-plugins", "PodSecurity").
		Append("disable-admission-plugins", "RuntimeClass").Set("bark", "yes").Disable("bark")
	(&espaliertest.Etcd{}).Configure().Set("quota-backend-bytes", "1")
	config := begin(t, e)
	if _, err := create(t, config, map[string]any{"colour": "green"}); err == nil || !strings.Contains(err.Error(), `strict decoding error: unknown field "spec.colour"`) {
		t.Errorf("the flag has no effect: %v", err)
	}
	// Neither of the two plugins is on: there is no such class, and no account.
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{RuntimeClassName: ptr.To("none"), Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if pod, err = client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil || pod.Spec.ServiceAccountName != "" {
		t.Errorf("%v %v", pod.Spec, err)
	}
}

// The server asks the test, by the certificate that it was given, whatever a manifest
// says of services.
func TestEnvironmentWebhooks(t *testing.T) {
	t.Parallel()
	e := &espaliertest.Environment{
		CRDDirectoryPaths:     []string{file(t, "pear.yaml", pear)},
		WebhookInstallOptions: espaliertest.WebhookInstallOptions{Paths: []string{file(t, "hooks.yaml", hooks), "nowhere"}, IgnoreErrorIfPathMissing: true},
	}
	config := begin(t, e)
	o := &e.WebhookInstallOptions
	address := net.JoinHostPort(o.LocalServingHost, strconv.Itoa(o.LocalServingPort))
	if got := *o.MutatingWebhooks[0].Webhooks[0].ClientConfig.URL; got != "https://"+address+"/pears" {
		t.Errorf("the webhook is at %s", got)
	}
	if c := o.ValidatingWebhooks[0].Webhooks[0].ClientConfig; *c.URL != "https://"+address+"/" || c.Service != nil {
		t.Errorf("the webhook is at %v", c)
	}
	listener, err := tls.Listen("tcp", address, certificate(t, o.LocalServingCertDir))
	if err != nil {
		t.Fatal(err)
	}
	hook := &http.Server{Handler: http.HandlerFunc(mutate)}
	go func() { _ = hook.Serve(listener) }()
	defer hook.Close()
	// It is known a moment after it is written.
	eventually(t, "the webhook signs", func() bool {
		made, err := create(t, config, nil)
		if err != nil {
			t.Fatal(err)
		}
		by, _, _ := unstructured.NestedString(made.Object, "spec", "by")
		return by == "webhook"
	})
}

func certificate(t *testing.T, dir string) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}
}

// mutate is a webhook that signs what it sees.
func mutate(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var review admission.AdmissionReview
	if err := errors.Join(err, json.Unmarshal(body, &review)); err != nil || r.URL.Path != "/pears" {
		http.Error(w, fmt.Sprint(r.URL.Path, err), http.StatusBadRequest)
		return
	}
	patch := admission.PatchTypeJSONPatch
	review.Response = &admission.AdmissionResponse{UID: review.Request.UID, Allowed: true, PatchType: &patch,
		Patch: []byte(`[{"op":"add","path":"/spec","value":{"by":"webhook"}}]`)}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// A Pear of controller-runtime's form: one version is the hub, the other a spoke.
type (
	hubPear   struct{ metav1.TypeMeta }
	spokePear struct{ metav1.TypeMeta }
	hub       interface {
		runtime.Object
		Hub()
	}
	lonePear struct{ metav1.TypeMeta } // converts to nothing
)

func (*hubPear) Hub()                               {}
func (p *hubPear) DeepCopyObject() runtime.Object   { return p }
func (*spokePear) ConvertTo(hub) error              { return nil }
func (*spokePear) ConvertFrom(hub) error            { return nil }
func (p *spokePear) DeepCopyObject() runtime.Object { return p }
func (*lonePear) ConvertTo(hub, ...string) error    { return nil }
func (*lonePear) ConvertFrom(string) error          { return nil }
func (p *lonePear) DeepCopyObject() runtime.Object  { return p }

func TestEnvironmentConversion(t *testing.T) {
	t.Parallel()
	old := schema.GroupVersion{Group: pears.Group, Version: "v1beta1"}
	for name, test := range map[string]struct {
		one, other runtime.Object
		ignore     bool
		want       bool
	}{
		"hub and spoke":         {&hubPear{}, &spokePear{}, false, true},
		"two hubs":              {&hubPear{}, &hubPear{}, false, false},
		"no hub":                {&spokePear{}, &spokePear{}, false, false},
		"not quite a spoke":     {&hubPear{}, &lonePear{}, false, false},
		"whatever the types do": {&lonePear{}, &lonePear{}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			types := runtime.NewScheme()
			types.AddKnownTypeWithName(pears.GroupVersion().WithKind("Pear"), test.one)
			types.AddKnownTypeWithName(old.WithKind("Pear"), test.other)
			e := &espaliertest.Environment{Scheme: types, CRDDirectoryPaths: []string{file(t, "pear.yaml", pear)},
				WebhookInstallOptions: espaliertest.WebhookInstallOptions{IgnoreSchemeConvertible: test.ignore}}
			config := begin(t, e)
			conversion := stored(t, config).Spec.Conversion
			if !test.want {
				if conversion.Strategy != apiextensions.NoneConverter {
					t.Errorf("it is converted by %v", conversion)
				}
				return
			}
			o := &e.WebhookInstallOptions
			where := fmt.Sprintf("https://127.0.0.1:%d/convert", o.LocalServingPort)
			if c := conversion.Webhook; c == nil || *c.ClientConfig.URL != where || string(c.ClientConfig.CABundle) != string(o.LocalServingCAData) {
				t.Errorf("it is converted by %v, not at %s", conversion, where)
			}
		})
	}
}

// stored is the CRD as the server has it.
func stored(t *testing.T, config *rest.Config) *apiextensions.CustomResourceDefinition {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	object, err := client.Resource(apiextensions.SchemeGroupVersion.WithResource("customresourcedefinitions")).Get(t.Context(), "pears.orchard.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := &apiextensions.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// What Environment does in Start can be done later, and again.
func TestInstallLater(t *testing.T) {
	t.Parallel()
	config := espaliertest.Start(t)
	path := file(t, "pear.yaml", pear)
	for range 2 {
		installed, err := espaliertest.InstallCRDs(config, espaliertest.CRDInstallOptions{Paths: []string{path}, WebhookOptions: espaliertest.WebhookInstallOptions{LocalServingCAData: []byte("x")}})
		if err != nil || len(installed) != 1 {
			t.Fatal(installed, err)
		}
		o := espaliertest.WebhookInstallOptions{ValidatingWebhooks: []*admissionregistration.ValidatingWebhookConfiguration{{ObjectMeta: metav1.ObjectMeta{Name: "later"}}}, LocalServingCertDir: t.TempDir()}
		if err := o.Install(config); err != nil {
			t.Fatal(err)
		}
		if err := o.Cleanup(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(o.LocalServingCertDir, "tls.key")); err != nil {
			t.Error("a folder that was given is removed: ", err)
		}
	}
	if _, err := create(t, config, nil); err != nil {
		t.Error(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(context.Background(), "later", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
