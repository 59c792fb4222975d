package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/server/admission/quota"
)

// TestQuotaOfBytesAndScale has an object grow through its scale, by a manager of fields
// each time.
func TestQuotaOfBytesAndScale(t *testing.T) {
	t.Parallel()
	const room = 20_000
	l := startLimited(t, 1, corev1.ResourceList{quota.StorageBytes: *resource.NewQuantity(room, resource.DecimalSI)})
	crd := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"sets.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"sets","kind":"Set"},"versions":[{"name":"v1","served":true,"storage":true,
		"subresources":{"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"replicas":{"type":"integer"}}},"status":{"type":"object","properties":{"replicas":{"type":"integer"}}}}}}}]}}`), crd); err != nil {
		t.Fatal(err)
	}
	if _, err := l.dynamic[0].Resource(crds).Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	sets := l.dynamic[0].Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "sets"}).Namespace("default")
	eventually(t, func() bool {
		_, err := sets.List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	one := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Set", "metadata": map[string]any{"name": "s"}, "spec": map[string]any{"replicas": int64(1)},
	}}
	if _, err := sets.Create(t.Context(), one, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	apply := func(manager int) error {
		_, err := sets.Patch(t.Context(), "s", types.ApplyPatchType, []byte(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"s"},"spec":{"replicas":1}}`),
			metav1.PatchOptions{FieldManager: fmt.Sprintf("%0100d", manager)}, "scale")
		return err
	}
	var refused error
	for i := range 120 {
		switch err := apply(i); {
		case err == nil:
		case apierrors.IsForbidden(err) && strings.Contains(err.Error(), exceeded+string(quota.StorageBytes)+"="):
			refused = err
		case !apierrors.IsConflict(err):
			t.Fatal(err)
		}
	}
	o, err := sets.Get(t.Context(), "s", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if refused == nil || len(text) > room+1000 {
		t.Errorf("it has grown to %d bytes, where %d are allowed; refused: %v", len(text), room, refused)
	}
	// What needs no room is not refused.
	if err := apply(0); err != nil {
		t.Error(err)
	}
}

// TestQuotaOfBytesCountsWhatNobodyReserved has an object grow by its deletion, which is
// not refused: the status says so soon, and not at the next count of everything.
func TestQuotaOfBytesCountsWhatNobodyReserved(t *testing.T) {
	t.Parallel()
	l := startLimited(t, 1, corev1.ResourceList{quota.StorageBytes: resource.MustParse("20k")})
	all := l.dynamic[0].Resource(webs).Namespace("default")
	held := web("held", "a.example.com")
	held.SetFinalizers([]string{"example.com/held"})
	if _, err := all.Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	used := func() int64 {
		q, err := l.typed[0].CoreV1().ResourceQuotas("default").Get(t.Context(), "q", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n := q.Status.Used[quota.StorageBytes]
		return n.Value()
	}
	time.Sleep(time.Second) // the object has been counted
	before := used()
	if err := all.Delete(t.Context(), "held", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return used() > before+20 })
}
