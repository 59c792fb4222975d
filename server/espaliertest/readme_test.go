package espaliertest_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/espalier-dev/espalier/server/espaliertest"
)

// The README shows the next function; internal/lint keeps them equal.

func TestCronTabs(t *testing.T) {
	config := espaliertest.Start(t, espaliertest.CRDs("testdata/crds"))
	crontabs := dynamic.NewForConfigOrDie(config).Resource(cronTabs).Namespace("default")
	created, err := crontabs.Create(t.Context(), cronTab("backup"), metav1.CreateOptions{})
	if err != nil || created.GetUID() == "" {
		t.Fatal(created, err)
	}
}

var cronTabs = schema.GroupVersionResource{Group: "stable.example.com", Version: "v1", Resource: "crontabs"}

func cronTab(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "stable.example.com/v1",
		"kind":       "CronTab",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"cronSpec": "0 3 * * *"},
	}}
}
