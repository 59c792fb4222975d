package espaliertest_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/espalier-dev/espalier/espaliertest"
)

func TestCronTabs(t *testing.T) {
	config := espaliertest.Start(t, espaliertest.CRDs("testdata/crds"))

	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	crontabs := client.Resource(schema.GroupVersionResource{Group: "stable.example.com", Version: "v1", Resource: "crontabs"})
	created, err := crontabs.Namespace("default").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "stable.example.com/v1",
		"kind":       "CronTab",
		"metadata":   map[string]any{"name": "backup"},
		"spec":       map[string]any{"cronSpec": "0 3 * * *"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n, _, _ := unstructured.NestedInt64(created.Object, "spec", "replicas"); n != 1 {
		t.Errorf("the default of replicas is 1, not %d", n)
	}
}
