package espaliertest_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server/espaliertest"
)

func TestWebs(t *testing.T) {
	espaliertest.Explore(t, 100, func(t *testing.T, config *rest.Config) {
		checkWebs(t, config, newController(config))
	}, espaliertest.CRDs("testdata/webs.yaml"))
}

// checkWebs has a controller look after three Webs.
func checkWebs(t *testing.T, config *rest.Config, c *controller) {
	t.Helper()
	go c.run(t.Context())

	steady := espaliertest.WithoutFaults(config) // the test's own requests succeed
	all := dynamic.NewForConfigOrDie(steady).Resource(webs).Namespace("default")
	maps := kubernetes.NewForConfigOrDie(steady).CoreV1().ConfigMaps("default")
	sitemap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "sitemap"}}
	if _, err := maps.Create(t.Context(), sitemap, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"blog", "news", "shop"} {
		web := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Web", "metadata": map[string]any{"name": name},
		}}
		if _, err := all.Create(t.Context(), web, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// Minutes of the test's own time: they pass in an instant.
	owner := map[int64]string{}
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
		list, err := all.List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		clear(owner)
		for _, web := range list.Items {
			port := portOf(&web)
			if port == 0 {
				return false, nil
			}
			owner[port] = web.GetName()
		}
		return true, nil
	})
	if err != nil {
		t.Fatalf("a Web has no port: %v", err)
	}
	if len(owner) != 3 {
		t.Errorf("three Webs have %d ports: %v", len(owner), owner)
	}
	pages, err := maps.List(t.Context(), metav1.ListOptions{LabelSelector: "web"})
	if err != nil || len(pages.Items) != 3 {
		t.Errorf("three Webs have %d pages (%v)", len(pages.Items), err)
	}
	sitemap, err = maps.Get(t.Context(), "sitemap", metav1.GetOptions{})
	if err != nil || len(sitemap.Data) != 3 {
		t.Errorf("three Webs have %d entries in the sitemap (%v)", len(sitemap.Data), err)
	}
}
