package server_test

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/server"
)

var (
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	allCRDs     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// A server with all kinds has an APIService for each version that it serves, also after
// CRDs have come and gone.
func TestLocalAPIServices(t *testing.T) {
	t.Parallel()
	r := start(t, func(o *server.Options) { o.Kinds, o.ProtectInstances = server.KindsAll, false })
	client := r.dynamic(t)
	services := client.Resource(apiServices)
	eventually := func(name string, want bool) *unstructured.Unstructured {
		t.Helper()
		for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			got, err := services.Get(t.Context(), name, metav1.GetOptions{})
			if want && err == nil || !want && apierrors.IsNotFound(err) {
				return got
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: exists is not %v: %v", name, want, err)
			}
		}
	}
	for name, priority := range map[string]int64{"v1.": 1, "v1.apps": 15, "v2.autoscaling": 30, "v1.apiextensions.k8s.io": 15} {
		got := eventually(name, true)
		version, _, _ := unstructured.NestedInt64(got.Object, "spec", "versionPriority")
		conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
		if version != priority || got.GetLabels()["kube-aggregator.kubernetes.io/automanaged"] != "onstart" || len(conditions) != 1 || conditions[0].(map[string]any)["reason"] != "Local" {
			t.Errorf("%s: %v", name, got.Object)
		}
	}
	define(t, client)
	custom := "v1." + webs.Group
	if got := eventually(custom, true); got.GetLabels()["kube-aggregator.kubernetes.io/automanaged"] != "true" {
		t.Errorf("%v", got.Object)
	}
	if err := services.Delete(t.Context(), custom, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(custom, true) // the CRD exists
	if err := client.Resource(allCRDs).Delete(t.Context(), webs.Resource+"."+webs.Group, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(custom, false)
}

// An APIService with a service is stored. Its condition says that no request is passed on.
func TestAPIServiceOfAnotherServer(t *testing.T) {
	t.Parallel()
	r := start(t, func(o *server.Options) { o.Kinds = server.KindsAll })
	services := r.dynamic(t).Resource(apiServices)
	create := func(name string, spec map[string]any) (*unstructured.Unstructured, error) {
		return services.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": name}, "spec": spec,
		}}, metav1.CreateOptions{})
	}
	got, err := create("v1.metrics.k8s.io", map[string]any{
		"group": "metrics.k8s.io", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
		"service": map[string]any{"namespace": "a", "name": "b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
	port, _, _ := unstructured.NestedInt64(got.Object, "spec", "service", "port")
	if len(conditions) != 1 || conditions[0].(map[string]any)["reason"] != "NotAggregated" || conditions[0].(map[string]any)["status"] != "False" || port != 443 {
		t.Errorf("%v", got.Object)
	}
	status := `{"metadata":{"labels":{"a":"b"}},"spec":{"versionPriority":7},"status":{"conditions":[{"type":"Available","status":"True"}]}}`
	got, err = services.Patch(t.Context(), got.GetName(), types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if priority, _, _ := unstructured.NestedInt64(got.Object, "spec", "versionPriority"); priority != 100 || got.GetLabels() != nil {
		t.Errorf("a write of the status has changed more: %v", got.Object)
	}
	if _, err := services.Patch(t.Context(), got.GetName(), types.MergePatchType, []byte(`{"metadata":{"generateName":"gen"}}`), metav1.PatchOptions{}); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "metadata.generateName: Invalid value: \"gen\": must be `spec.version+\".\"+spec.group`: \"v1.metrics.k8s.io\"") {
		t.Errorf("a prefix of another name: %v", err)
	}
	owners := `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"u"}]}}`
	if got, err = services.Patch(t.Context(), got.GetName(), types.MergePatchType, []byte(owners), metav1.PatchOptions{FieldManager: "owning"}); err != nil {
		t.Fatal(err)
	}
	owned := ""
	for _, entry := range got.GetManagedFields() {
		if entry.Manager == "owning" {
			owned = string(entry.FieldsV1.GetRawBytes())
		}
	}
	if !strings.Contains(owned, `"k:{\"uid\":\"u\"}":{}`) {
		t.Errorf("the owner has no entry of its own in managed fields: %s", owned)
	}
	for name, want := range map[string]string{
		"x":    "metadata.name: Invalid value: \"x\": must be `spec.version+\".\"+spec.group`: \"v1.g\"",
		"v1.g": "[spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000, spec.versionPriority: Invalid value: 0: must be positive and less than 1000]",
	} {
		if _, err := create(name, map[string]any{"group": "g", "version": "v1"}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
