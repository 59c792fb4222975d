package builtin

import (
	"fmt"
	"maps"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/crd/kinds"
)

// TestTreesOfWrites checks that the trees that a write keeps are those of its objects,
// and that they are those of no other objects.
func TestTreesOfWrites(t *testing.T) {
	pods := resourceOf(t, "pods")
	ctx := withWrite(t.Context())
	obj := decodePod(t, &pods)
	obj.(*corev1.Pod).Status.Phase = corev1.PodRunning // to be dropped
	pods.Strategy.Create(ctx, obj)
	w := trees(ctx, obj, nil)
	if got, want := clean(w.tree), clean(kinds.Tree(obj)); !reflect.DeepEqual(got, want) {
		t.Errorf("the tree of a new pod:\n%v\nand of the object:\n%v", got, want)
	}
	if trees(ctx, obj, nil) != w {
		t.Error("a second question made another tree")
	}
	if other := decodePod(t, &pods); reflect.DeepEqual(trees(ctx, other, nil).tree, w.tree) {
		t.Error("another object has the tree of the first")
	}

	changed := obj.DeepCopyObject()
	changed.(*corev1.Pod).Labels["a"] = "b"
	changed.(*corev1.Pod).Status.Phase = corev1.PodFailed // to be restored
	pods.Strategy.Update(ctx, changed, obj)
	w = trees(ctx, changed, obj)
	if got, want := clean(w.tree), clean(kinds.Tree(changed)); !reflect.DeepEqual(got, want) {
		t.Errorf("the tree of a changed pod:\n%v\nand of the object:\n%v", got, want)
	}
	if phase := changed.(*corev1.Pod).Status.Phase; phase != corev1.PodPending {
		t.Errorf("an update made the phase %s", phase)
	}
	if got, want := clean(w.before), clean(kinds.Tree(obj)); !reflect.DeepEqual(got, want) {
		t.Errorf("the tree of the old pod:\n%v\nand of the object:\n%v", got, want)
	}
}

// TestManagedFieldsAreNoPartOfTrees checks that objects keep managed fields nevertheless.
func TestManagedFieldsAreNoPartOfTrees(t *testing.T) {
	pods := resourceOf(t, "pods")
	obj := decodePod(t, &pods).(*corev1.Pod)
	obj.ManagedFields = append(obj.ManagedFields, metav1.ManagedFieldsEntry{Manager: "kubectl"})
	if _, has := kinds.Tree(obj)["metadata"].(map[string]any)["managedFields"]; has {
		t.Error("a tree has managed fields")
	}
	pods.Strategy.Create(t.Context(), obj)
	if len(obj.ManagedFields) != 1 || obj.ManagedFields[0].Manager != "kubectl" {
		t.Errorf("the managed fields have become %v", obj.ManagedFields)
	}
}

// TestSelectorsReadPartsOfTrees checks that field selectors have the same values as with
// a tree of the whole object.
func TestSelectorsReadPartsOfTrees(t *testing.T) {
	count := 0
	for _, k := range kinds.All() {
		if len(k.Selectors) == 0 {
			continue
		}
		r := FromData(k)
		obj := r.New()
		for _, path := range k.SelectorPaths() {
			switch v := at(obj, path); v.Kind() {
			case reflect.String:
				v.SetString("value of " + path)
			case reflect.Bool:
				v.SetBool(true)
			case reflect.Int32, reflect.Int64:
				v.SetInt(7)
			case reflect.Pointer:
				v.Set(reflect.New(v.Type().Elem()))
			default:
				t.Errorf("%s: selectors read %s, which is a %s", k.Plural, path, v.Kind())
			}
		}
		if got, want := map[string]string(r.Fields(obj)), k.Fields(kinds.Tree(obj)); !maps.Equal(got, want) {
			t.Errorf("%s: the fields are %v, not %v", k.Plural, got, want)
		}
		count++
	}
	if count < 5 {
		t.Errorf("%d kinds have selectors", count)
	}
}

func TestDiffer(t *testing.T) {
	a, b := &corev1.Service{}, &corev1.Service{}
	b.Labels, b.Spec.Ports = map[string]string{"a": "b"}, []corev1.ServicePort{}
	for path, want := range map[string]bool{"spec": false, "metadata.labels": true, "spec.sessionAffinityConfig.clientIP": false} {
		if got := differ(a, b, []string{path}, false); got != want {
			t.Errorf("%s: differ is %v", path, got)
		}
	}
}

func resourceOf(tb testing.TB, plural string) Resource {
	tb.Helper()
	for _, one := range Data() {
		if one.Plural == plural {
			return one
		}
	}
	tb.Fatalf("there are no %s", plural)
	return Resource{}
}

func decodePod(tb testing.TB, pods *Resource) runtime.Object {
	tb.Helper()
	scheme, err := newScheme([]Resource{*pods})
	if err != nil {
		tb.Fatal(err)
	}
	obj, _, err := newCodecs(scheme).UniversalDeserializer().Decode(fmt.Appendf(nil, examplePod, "x"), nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return obj
}

// clean returns a tree without what is empty: rules do not tell it from what is absent.
func clean(value any) any {
	switch v := value.(type) {
	case map[string]any:
		m := map[string]any{}
		for name, member := range v {
			if c := clean(member); c != nil {
				m[name] = c
			}
		}
		if len(m) == 0 {
			return nil
		}
		return m
	case []any:
		var list []any
		for _, item := range v {
			list = append(list, clean(item))
		}
		if len(list) == 0 {
			return nil
		}
		return list
	case string:
		if v == "" {
			return nil
		}
	}
	return value
}

// TestPutOfManifest writes the file again that a pod was made of.
func TestPutOfManifest(t *testing.T) {
	c := start(t, Data()...).client("application/json")
	pods := resourceOf(t, "pods")
	first := decodePod(t, &pods).(*corev1.Pod)
	if _, err := c.CoreV1().Pods("default").Create(t.Context(), first, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	again := first.DeepCopy()
	again.Labels["again"] = "yes"
	got, err := c.CoreV1().Pods("default").Update(t.Context(), again, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Spec.Priority == nil || got.Spec.PreemptionPolicy == nil || got.Labels["again"] != "yes" {
		t.Errorf("the pod has become %v", got)
	}
}
