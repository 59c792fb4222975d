package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

var (
	crds     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	bindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	webs     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "webs"}
)

func webDefinition() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "webs.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "webs", "kind": "Web"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object",
					"properties": map[string]any{"spec": map[string]any{
						"type": "object",
						"properties": map[string]any{
							"host": map[string]any{"type": "string"},
							"port": map[string]any{"type": "integer", "default": int64(443), "maximum": int64(65535)},
						},
					}},
				}},
			}},
		},
	}}
}

func web(name, host string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Web", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"host": host},
	}}
}

// config is the client-go configuration of a member of the authorized group.
func (r *running) config(t *testing.T) *rest.Config {
	t.Helper()
	certificate, key := r.clients.Client(t, "alice", time.Hour, "system:masters")
	return &rest.Config{
		Host: r.url, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: r.servers.PEM(), CertData: certificate, KeyData: key},
	}
}

func (r *running) dynamic(t *testing.T) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(r.config(t))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// define creates the CRD and waits until it is established.
func define(t *testing.T, client dynamic.Interface) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	created, err := client.Resource(crds).Create(ctx, webDefinition(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := client.Resource(crds).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=webs.example.com", ResourceVersion: created.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		o, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			t.Fatalf("%v: %v", event.Type, event.Object)
		}
		conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
		if err != nil {
			t.Fatal(err)
		}
		for _, condition := range conditions {
			if c, ok := condition.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
				return
			}
		}
	}
	t.Fatal("the definition is not established")
}

func TestObjects(t *testing.T) {
	t.Parallel()
	r := start(t)
	client := r.dynamic(t)
	define(t, client)
	objects := client.Resource(webs).Namespace("default")
	created, err := objects.Create(t.Context(), web("shop", "shop.example.com"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err) // established means that it is served at once
	}
	if port, _, _ := unstructured.NestedInt64(created.Object, "spec", "port"); port != 443 {
		t.Errorf("the default is missing: %v", created.Object)
	}
	bad := web("bad", "bad.example.com")
	if err := unstructured.SetNestedField(bad.Object, int64(70000), "spec", "port"); err != nil {
		t.Fatal(err)
	}
	if _, err := objects.Create(t.Context(), bad, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("an invalid object: %v", err)
	}
	list, err := objects.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("list: %v %v", list, err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(r.config(t))
	if err != nil {
		t.Fatal(err)
	}
	if resources, err := disco.ServerResourcesForGroupVersion("example.com/v1"); err != nil || len(resources.APIResources) != 1 {
		t.Errorf("discovery: %v %v", resources, err)
	}
	if err := objects.Delete(t.Context(), "shop", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if err := client.Resource(crds).Delete(t.Context(), "webs.example.com", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

func TestFieldValidationOfThoseWhoDoNotSay(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]int{"warn": http.StatusCreated, "ignore": http.StatusCreated, "strict": http.StatusBadRequest} {
		t.Run(mode, func(t *testing.T) {
			r := start(t, func(o *server.Options) { o.FieldValidation = mode })
			define(t, r.dynamic(t))
			for _, test := range []struct{ path, body string }{
				{"/apis/example.com/v1/namespaces/default/webs", `{"apiVersion":"example.com/v1","kind":"Web","metadata":{"name":"x"},"spec":{"hots":"x"}}`},
				{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"as.a.io"},
					"spec":{"nonsense":1,"group":"a.io","scope":"Cluster","names":{"plural":"as","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`},
			} {
				resp := post(t, r.member(t, "system:masters"), r.url+test.path, strings.NewReader(test.body))
				if resp.StatusCode != want {
					t.Errorf("%s: %s", test.path, resp.Status)
				}
				if warned := strings.Contains(resp.Header.Get("Warning"), "unknown field"); warned != (mode == "warn") {
					t.Errorf("%s: warning is %q", test.path, resp.Header.Get("Warning"))
				}
			}
		})
	}
}

func post(t *testing.T, client *http.Client, url string, body io.Reader) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp
}

// TestDrain stops a server with a watch open: the watch ends without an error,
// and the server soon after.
func TestDrain(t *testing.T) {
	t.Parallel()
	r := start(t)
	client := r.dynamic(t)
	define(t, client)
	objects := client.Resource(webs).Namespace("default")
	w, err := objects.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := objects.Create(t.Context(), web("shop", "shop.example.com"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if event := <-w.ResultChan(); event.Type != watch.Added {
		t.Fatalf("got %v", event)
	}
	began := time.Now()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	for event := range w.ResultChan() {
		t.Errorf("after the end: %v", event)
	}
}

// TestTwoServersAtATime has two on one etcd with one prefix: what one
// establishes the other serves.
func TestTwoServersAtATime(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	one, other := start(t, s.replica(nil)), start(t, s.replica(nil))
	define(t, one.dynamic(t))
	if _, err := other.dynamic(t).Resource(webs).Namespace("default").Create(t.Context(), web("shop", "x"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := one.dynamic(t).Resource(webs).Namespace("default").Get(t.Context(), "shop", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestEncryptionAtRest reads what etcd holds.
func TestEncryptionAtRest(t *testing.T) {
	t.Parallel()
	prefix := etcdtest.Prefix(t)
	r := start(t, func(o *server.Options) {
		o.Etcd.StorageConfig.Prefix = prefix
		o.Etcd.EncryptionProviderConfigFilepath = certtest.File(t, "encryption.yaml", fmt.Appendf(nil, `
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [webs.example.com]
  providers:
  - aescbc: {keys: [{name: one, secret: %s}]}
  - identity: {}
`, "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="))
	})
	client := r.dynamic(t)
	define(t, client)
	if _, err := client.Resource(webs).Namespace("default").Create(t.Context(), web("shop", "secret.example.com"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	etcd, _ := etcdtest.Client(t)
	held, err := etcd.Get(t.Context(), prefix+"/example.com/webs/default/shop")
	if err != nil || len(held.Kvs) != 1 {
		t.Fatalf("%v %v", held, err)
	}
	if value := held.Kvs[0].Value; bytes.Contains(value, []byte("secret")) || !bytes.HasPrefix(value, []byte("k8s:enc:aescbc:v1:one:")) {
		t.Errorf("etcd holds %q", value)
	}
}

// An object that does not fit into etcd is the client's mistake: 413, with the limit
// and what to do. The test runs alone: with the race detector, and beside others, such
// patches take longer than requests may.
func TestObjectTooLargeForEtcd(t *testing.T) {
	r := start(t)
	client := r.dynamic(t)
	if _, err := client.Resource(crds).Create(t.Context(), webDefinition(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	objects := client.Resource(webs).Namespace("default")
	small, err := objects.Create(t.Context(), web("small", "x"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1_700_000, 2_500_000} { // etcd refuses the first, its client the second
		data := strings.Repeat("x", size)
		_, create := objects.Create(t.Context(), web("large", data), metav1.CreateOptions{})
		_, patch := objects.Patch(t.Context(), "small", types.MergePatchType, []byte(`{"spec":{"host":"`+data+`"}}`), metav1.PatchOptions{})
		changed := web("small", data)
		changed.SetResourceVersion(small.GetResourceVersion())
		_, update := objects.Update(t.Context(), changed, metav1.UpdateOptions{})
		for what, err := range map[string]error{"create": create, "patch": patch, "update": update} {
			if !apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), "1.5 MiB") || !strings.Contains(err.Error(), "split it") {
				t.Errorf("%s of %d bytes: %.300v", what, size, err)
			}
		}
	}
}

// No key has a namespace of this name; see requestinfo.Check.
func TestNamespaceThatCannotBe(t *testing.T) {
	r := start(t)
	client := r.member(t, "system:masters")
	for _, path := range []string{"/api/v1/namespaces/%2e%2e/configmaps", "/api/v1/namespaces/%2e%2e/configmaps/a", "/api/v1/namespaces/%2e/secrets"} {
		if code, body := get(t, client, r.url+path); code != http.StatusBadRequest || !strings.Contains(body, "Namespace parameter invalid") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}
