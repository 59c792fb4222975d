package fieldmanager_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/fieldmanager"
)

var gvk = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

const models = `
widget:
  type: object
  x-kubernetes-group-version-kind: [{group: example.com, version: v1, kind: Widget}]
  properties:
    apiVersion: {type: string}
    kind: {type: string}
    metadata: {type: object, x-kubernetes-preserve-unknown-fields: true}
    spec:
      type: object
      properties:
        a: {type: string}
        b: {type: integer}
        list: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}, size: {type: number}}}}
    status: {type: object, properties: {ready: {type: boolean}}}
`

// asIs is a scope's convertor, defaulter, creater and strategy for objects of
// one version.
type asIs struct{}

func (asIs) Convert(any, any, any) error { return nil }
func (asIs) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}
func (asIs) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
func (asIs) Default(runtime.Object) {}
func (asIs) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	return object.New(gvk), nil
}
func (asIs) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{"example.com/v1": fieldpath.NewSet(fieldpath.MakePathOrDie("status"))}
}

func manager(tb testing.TB) (managedfields.TypeConverter, *managedfields.FieldManager) {
	tb.Helper()
	schemas := map[string]*spec.Schema{}
	if err := yaml.Unmarshal([]byte(models), &schemas); err != nil {
		tb.Fatal(err)
	}
	inner, err := managedfields.NewTypeConverter(schemas, false)
	if err != nil {
		tb.Fatal(err)
	}
	types := fieldmanager.Converter(inner)
	scope := &handlers.RequestScope{Convertor: asIs{}, Defaulter: asIs{}, Creater: asIs{}, Kind: gvk, HubGroupVersion: gvk.GroupVersion()}
	m, err := fieldmanager.Manager(types, scope, asIs{})
	if err != nil {
		tb.Fatal(err)
	}
	return types, m
}

func read(tb testing.TB, text string) *object.Object {
	tb.Helper()
	data, err := yaml.YAMLToJSON([]byte("apiVersion: example.com/v1\nkind: Widget\n" + text))
	if err != nil {
		tb.Fatal(err)
	}
	o, err := object.FromJSON(data)
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

func patch(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(read(tb, text).JSON(), &u.Object); err != nil {
		tb.Fatal(err)
	}
	return u
}

func TestCreateAndUpdate(t *testing.T) {
	_, m := manager(t)
	o := read(t, "metadata: {name: a, labels: {x: z}}\nspec: {a: b, list: [{name: one, size: 1.5}]}\nstatus: {ready: true}")
	got, err := m.Update(object.New(gvk), o, "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	entries := got.(*object.Object).GetManagedFields()
	if len(entries) != 1 || entries[0].Manager != "kubectl" || entries[0].Operation != metav1.ManagedFieldsOperationUpdate {
		t.Fatal(entries)
	}
	const want = `{"f:metadata":{"f:labels":{".":{},"f:x":{}}},"f:spec":{".":{},"f:a":{},"f:list":{".":{},"k:{\"name\":\"one\"}":{".":{},"f:name":{},"f:size":{}}}}}`
	if raw := string(entries[0].FieldsV1.GetRawBytes()); raw != want {
		t.Errorf("got  %s\nwant %s", raw, want)
	}

	live := got.(*object.Object).DeepCopy()
	live.SetUID("1")
	next := read(t, "metadata: {name: a, uid: '1', labels: {x: z}}\nspec: {a: c, list: [{name: one, size: 1.5}]}")
	got, err = m.Update(live, next, "other")
	if err != nil {
		t.Fatal(err)
	}
	entries = got.(*object.Object).GetManagedFields()
	if len(entries) != 2 || string(entries[1].FieldsV1.GetRawBytes()) != `{"f:spec":{"f:a":{}}}` {
		t.Error(entries)
	}
}

func TestApply(t *testing.T) {
	_, m := manager(t)
	got, err := m.Apply(object.New(gvk), patch(t, "metadata: {name: a}\nspec: {a: b, b: 7}"), "one", false)
	if err != nil {
		t.Fatal(err)
	}
	live, ok := got.(*object.Object)
	if !ok || string(live.Member("spec")) != `{"a":"b","b":7}` || live.GetName() != "a" {
		t.Fatalf("%T %s", got, live.JSON())
	}
	live.SetUID("1")
	if _, err := m.Apply(live, patch(t, "metadata: {name: a}\nspec: {a: c}"), "two", false); !apierrors.IsConflict(err) {
		t.Errorf("two managers of a field: %v", err)
	}
	got, err = m.Apply(live, patch(t, "metadata: {name: a}\nspec: {list: [{name: x, size: 2}]}"), "two", false)
	if err != nil {
		t.Fatal(err)
	}
	merged := got.(*object.Object)
	if string(merged.Member("spec")) != `{"a":"b","b":7,"list":[{"name":"x","size":2}]}` || len(merged.GetManagedFields()) != 2 {
		t.Errorf("%s", merged.JSON())
	}
	if string(live.Member("spec")) != `{"a":"b","b":7}` {
		t.Error("the live object was changed")
	}
	_, err = m.Apply(live, patch(t, "metadata: {name: a}\nspec: {colour: red}"), "one", false)
	if err == nil || !strings.Contains(err.Error(), ".spec.colour: field not declared in schema") {
		t.Error(err)
	}
}

func TestManagedFieldsAreNotManaged(t *testing.T) {
	types, _ := manager(t)
	o := read(t, "metadata: {name: a}\nspec: {a: b}")
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "x", Operation: "Apply", FieldsV1: metav1.NewFieldsV1("{}")}})
	typed, err := types.ObjectToTyped(o)
	if err != nil {
		t.Fatal(err)
	}
	if m := typed.AsValue().Unstructured().(map[string]any)["metadata"].(map[string]any); m["managedFields"] != nil {
		t.Error(m)
	}
	if len(o.GetManagedFields()) != 1 {
		t.Error("the object lost them")
	}
	back, err := types.TypedToObject(typed)
	if err != nil || string(back.(*object.Object).Member("spec")) != `{"a":"b"}` {
		t.Error(back, err)
	}
	other := object.New(gvk.GroupVersion().WithKind("Gadget"))
	if _, err := types.ObjectToTyped(other); err == nil || !strings.Contains(err.Error(), "no corresponding type") {
		t.Error(err)
	}
}

func BenchmarkCreate(b *testing.B) {
	_, m := manager(b)
	o := read(b, "metadata: {name: a, labels: {x: z}}\nspec: {a: b, list: [{name: one, size: 1.5}]}")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Update(object.New(gvk), o.DeepCopy(), "kubectl"); err != nil {
			b.Fatal(err)
		}
	}
}
