package scenarios

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"
)

var (
	boatKind     = schema.GroupVersionKind{Group: "harbour.example.com", Version: "v1", Kind: "Boat"}
	boatResource = boatKind.GroupVersion().WithResource("boats")
)

// installWithClient makes the CRD of boats and waits until its objects can be listed.
func installWithClient(t *testing.T, config *rest.Config) {
	t.Helper()
	data, err := os.ReadFile("testdata/boats.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		t.Fatal(err)
	}
	client, err := clientset.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	objects := boatsOf(t, config)
	eventually(t, 30*time.Second, "boats are served", func() bool {
		_, err := objects.List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
}

func boatsOf(t *testing.T, config *rest.Config) dynamic.ResourceInterface {
	t.Helper()
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c.Resource(boatResource).Namespace("default")
}

func boat(name, colour string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "harbour.example.com/v1", "kind": "Boat",
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"spec":     map[string]any{"owner": "ada", "colour": colour},
	}}
}

// An informer's view follows the server through creates, updates, deletes and a change of schema.
func TestInformer(t *testing.T) {
	s := alike(t, against, prefix())
	installWithClient(t, s.Config)
	objects := boatsOf(t, s.Config)
	for i := range 20 {
		if _, err := objects.Create(t.Context(), boat(fmt.Sprintf("first-%d", i), "red"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := dynamic.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory := dynamicinformer.NewDynamicSharedInformerFactory(c, 0)
	informer := factory.ForResource(boatResource).Informer()
	var mu sync.Mutex
	seen := map[string]int{}
	count := func(what string) { mu.Lock(); defer mu.Unlock(); seen[what]++ }
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { count("added") },
		UpdateFunc: func(_, _ any) { count("updated") },
		DeleteFunc: func(any) { count("deleted") },
	}); err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer did not sync")
	}
	for i := range 20 {
		name := fmt.Sprintf("first-%d", i)
		o, err := objects.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(o.Object, "green", "spec", "colour"); err != nil {
			t.Fatal(err)
		}
		if _, err := objects.Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := objects.Update(t.Context(), o, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("an update with an old resource version: %v", err)
		}
		if i%2 == 0 {
			if err := objects.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, 30*time.Second, "20 added, 20 updated, 10 deleted", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return seen["added"] == 20 && seen["updated"] == 20 && seen["deleted"] == 10
	})
	if n := len(informer.GetStore().List()); n != 10 {
		t.Errorf("the informer holds %d objects, not 10", n)
	}
}

// moor is a controller that writes a status.
type moor struct{ client.Client }

func (m *moor) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(boatKind)
	if err := m.Get(ctx, r.NamespacedName, o); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase == "Moored" {
		return ctrl.Result{}, nil
	}
	if err := unstructured.SetNestedField(o.Object, "Moored", "status", "phase"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, m.Status().Update(ctx, o)
}

// A manager of controller-runtime finds the kind by discovery, watches it and writes its status.
func TestControllerRuntime(t *testing.T) {
	needsDiscovery(t)
	s := alike(t, against, prefix())
	installWithClient(t, s.Config)
	manager, err := ctrl.NewManager(s.Config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(boatKind)
	if err := ctrl.NewControllerManagedBy(manager).For(kind).Complete(&moor{manager.GetClient()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	objects := boatsOf(t, s.Config)
	for i := range 10 {
		if _, err := objects.Create(t.Context(), boat(fmt.Sprintf("boat-%d", i), "red"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 30*time.Second, "all boats are moored", func() bool {
		list, err := objects.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase != "Moored" {
				return false
			}
		}
		return len(list.Items) == 10
	})
}

// Nothing is open by default: without a certificate, and without a role, there is no access.
func TestStrangersAreRefused(t *testing.T) {
	needsDiscovery(t)
	s := alike(t, against, prefix())
	for _, c := range []struct {
		user   string
		groups []string
		want   int
	}{{"eve", nil, http.StatusForbidden}, {"eve", []string{"pirates"}, http.StatusForbidden}, {"ada", []string{"system:masters"}, http.StatusOK}} {
		config, err := s.Client(c.user, c.groups...)
		if err != nil {
			t.Fatal(err)
		}
		if got := status(t, config, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"); got != c.want {
			t.Errorf("%s of %v: %d, not %d", c.user, c.groups, got, c.want)
		}
	}
	anonymous := &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: s.Config.CAData}}
	if got := status(t, anonymous, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"); got != http.StatusUnauthorized && got != http.StatusForbidden {
		t.Errorf("without a certificate: %d", got)
	}
}

func status(t *testing.T, config *rest.Config, path string) int {
	t.Helper()
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
