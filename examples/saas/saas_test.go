package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/espaliertest"
)

var databases = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "databases"}

func TestMain(m *testing.M) { espaliertest.Main(m) }

// Two customers sign up, use the product, and cannot see each other; the small one runs into its quota, and buys more.
func TestCustomers(t *testing.T) {
	p := &Platform{Config: espaliertest.Start(t, espaliertest.Configure(func(o *server.Options) { o.Tenants = true }))}
	for range 2 { // the second start finds what the first has made
		if err := p.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	site := httptest.NewServer(p.Handler())
	t.Cleanup(site.Close)

	acme, globex := signUp(t, site, "acme", "small"), signUp(t, site, "globex", "large")
	for name, config := range map[string]*rest.Config{"acme": acme, "globex": globex} {
		client := dynamic.NewForConfigOrDie(config).Resource(databases).Namespace("default")
		database := object("example.com/v1", "Database", name+"-orders", nil, map[string]any{"engine": "postgres"})
		made, err := client.Create(t.Context(), database, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if size, _, _ := unstructured.NestedString(made.Object, "spec", "size"); size != "small" {
			t.Errorf("the size is %q, without its default", size)
		}
		unstructured.SetNestedField(database.Object, "oracle", "spec", "engine") //nolint:errcheck // spec is a map
		database.SetName("other")
		if _, err := client.Create(t.Context(), database, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("another engine: %v", err)
		}
		list, err := client.List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Errorf("%s sees %d databases: %v", name, len(list.Items), err)
		}
	}

	// The provider sees those of all customers at one address.
	all := dynamic.NewForConfigOrDie(rest.CopyConfig(p.in(provider + "/clusters/*"))).Resource(databases)
	list, err := all.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("the provider sees %d databases: %v", len(list.Items), err)
	}

	// The token of a customer is for its own tenant alone.
	stranger := rest.CopyConfig(acme)
	stranger.Host = globex.Host
	if _, err := dynamic.NewForConfigOrDie(stranger).Resource(databases).List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("acme at globex: %v", err)
	}

	if err := fill(t, globex); err != nil {
		t.Errorf("the large plan: %v", err)
	}
	if err := fill(t, acme); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the tenant is full") {
		t.Errorf("the small plan: %v", err)
	}
	// Acme buys the large plan. The server knows it a moment later.
	patch := []byte(`{"metadata": {"labels": {"plan": "large"}}, "spec": {"objects": 100000, "storage": "1Gi", "requests": 50}}`)
	if _, err := dynamic.NewForConfigOrDie(p.Config).Resource(tenants).Patch(t.Context(), "acme", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		err := fill(t, acme)
		return err == nil, nil
	})
	if err != nil {
		t.Errorf("the large plan of acme: %v", err)
	}
}

func TestRefusedSignUps(t *testing.T) {
	p := &Platform{Config: espaliertest.Start(t, espaliertest.Configure(func(o *server.Options) { o.Tenants = true }))}
	if err := p.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(p.Handler())
	t.Cleanup(site.Close)
	signUp(t, site, "acme", "small")
	for _, test := range []struct {
		name, plan string
		status     int
	}{
		{"acme", "large", http.StatusConflict},
		{provider, "large", http.StatusBadRequest},
		{"../platform", "large", http.StatusBadRequest},
		{"globex", "huge", http.StatusBadRequest},
		{strings.Repeat("x", 5000), "small", http.StatusBadRequest},
	} {
		if status, text := post(t, site, test.name, test.plan); status != test.status {
			t.Errorf("%.20s with the plan %s: %d %s", test.name, test.plan, status, text)
		}
	}
}

// fill writes 20 objects of 200 kB, which is more than the small plan has.
func fill(t *testing.T, config *rest.Config) error {
	t.Helper()
	maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
	for range 20 {
		large := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "large-"}, Data: map[string]string{"text": strings.Repeat("x", 200_000)}}
		if _, err := maps.Create(t.Context(), large, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func signUp(t *testing.T, site *httptest.Server, name, plan string) *rest.Config {
	t.Helper()
	status, kubeconfig := post(t, site, name, plan)
	if status != http.StatusCreated {
		t.Fatalf("%s signs up: %d %s", name, status, kubeconfig)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func post(t *testing.T, site *httptest.Server, name, plan string) (int, string) {
	t.Helper()
	answer, err := http.PostForm(site.URL+"/signup", url.Values{"name": {name}, "plan": {plan}})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}
