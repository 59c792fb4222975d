package garbagecollector

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

const someUID = "0f6a3c1e-58d2-4b7e-9c55-1d2e3f405162"

func someMeta() metav1.ObjectMeta {
	yes, now := true, metav1.Now()
	return metav1.ObjectMeta{
		Name: "a", Namespace: "b", UID: someUID, Labels: map[string]string{"ownerReferences": "x"},
		Finalizers: []string{"x/y", metav1.FinalizerDeleteDependents}, DeletionTimestamp: &now,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "K", Name: "n", UID: "u", BlockOwnerDeletion: &yes}},
	}
}

// forms are an object as it may be stored.
func forms(tb testing.TB) map[string][]byte {
	tb.Helper()
	m := someMeta()
	plain, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "K", "metadata": m})
	if err != nil {
		tb.Fatal(err)
	}
	var canonical any
	if err := json.Unmarshal(plain, &canonical); err != nil {
		tb.Fatal(err)
	}
	sorted, _ := json.Marshal(canonical)
	indented, _ := json.MarshalIndent(map[string]any{"kind": "K", "metadata": m}, "", "  ")
	all := map[string][]byte{"canonical JSON": sorted, "JSON of structs": plain, "indented JSON": indented}
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	for name, o := range map[string]runtime.Object{
		"a config map": &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: m, Data: map[string]string{"k": "v"}},
		"a namespace":  &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: m, Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}}},
		"a role":       &rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"}, ObjectMeta: m, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}},
	} {
		var b bytes.Buffer
		if err := serializer.Encode(o, &b); err != nil {
			tb.Fatal(err)
		}
		all["protobuf of "+name] = b.Bytes()
	}
	return all
}

func TestRead(t *testing.T) {
	for name, stored := range forms(t) {
		s, err := read(stored)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s.id != idOf(someUID) || s.state != deleting|foreground || len(s.owners) != 1 || s.owners[0].UID != "u" || !*s.owners[0].BlockOwnerDeletion {
			t.Errorf("%s: read as %+v", name, s)
		}
	}
	for _, bad := range []string{"", "{}", "x", "k8s\x00", "k8s\x00\xff\xff", `{"metadata":{"uid":""}}`, `{"metadata":[]}`} {
		if s, err := read([]byte(bad)); err == nil {
			t.Errorf("%q is read as %+v", bad, s)
		}
	}
}

func TestIDs(t *testing.T) {
	uids := []types.UID{
		someUID, "0F6A3C1E-58D2-4B7E-9C55-1D2E3F405162", "0f6a3c1e58d24b7e9c551d2e3f405162", "{0f6a3c1e-58d2-4b7e-9c55-1d2e3f40516}",
		"", "u", "0f6a3c1e-58d2-4b7e-9c55-1d2e3f40516g", "0f6a3c1e-58d2-4b7e-9c55-1d2e3f4051622", "0f6a3c1e-58d2-4b7e-9c5-51d2e3f405162",
	}
	var ids []id
	for _, uid := range uids {
		if i := idOf(uid); slices.Contains(ids, i) {
			t.Errorf("%q has the id of another", uid)
		} else {
			ids = append(ids, i)
		}
	}
}

// FuzzRead has any bytes read: they are not changed, and what comes of them is bounded.
func FuzzRead(f *testing.F) {
	for _, stored := range forms(f) {
		f.Add(stored)
	}
	f.Add([]byte(`{"metadata":{"ownerReferences":[{"uid":"\u0061"},null,1],"uid":"x"}}`))
	f.Fuzz(func(t *testing.T, stored []byte) {
		before := bytes.Clone(stored)
		s, err := read(stored)
		if !bytes.Equal(before, stored) {
			t.Fatal("the bytes have been changed")
		}
		if err == nil && len(s.owners) > maxOwners {
			t.Fatal("too many owners")
		}
	})
}
