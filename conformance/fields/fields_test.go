package fields_test

import (
	"encoding/json"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/openapi"
	"github.com/espalier-dev/espalier/internal/bridge"
	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// The fields of a new object are those that the stock field manager finds.
func TestCreatedFieldsEqualTheFieldManagers(t *testing.T) {
	set, err := corpus.Load(t.Context(), corpus.Options{Short: os.Getenv("FIELDS_LONG") == ""})
	if err != nil {
		t.Fatal(err)
	}
	const perVersion = 20
	compared, left := 0, 0
	for i, def := range set.CRDs {
		if testing.Short() && i%10 != 0 {
			continue
		}
		d, err := crd.Parse(def.JSON)
		if err != nil {
			t.Fatal(err)
		}
		v := &d.Versions[0]
		s, _, err := v.Compile(espalier.CompileOptions{Stored: true})
		if err != nil {
			continue // not structural: there are some
		}
		manager := fieldManager(t, d, v)
		plan, err := generate.Compile(v.Schema)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(perVersion) {
			src := plan.Append(nil, seed, generate.Options{APIVersion: d.Group + "/" + v.Name, Kind: d.Kind})
			r, err := s.Normalize(src, espalier.NormalizeOptions{})
			if err != nil {
				t.Fatalf("%s: %v", d.Name, err)
			}
			doc, err := jsondoc.Parse(r.Bytes, jsondoc.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			got, ok := exec.AppendFields(nil, bridge.Plan(s), doc, "status")
			doc.Release()
			if !ok {
				left++
				continue
			}
			compared++
			if want := stock(t, manager, r.Bytes); string(got) != want {
				t.Fatalf("%s, seed %d:\n%s\ngot  %s\nwant %s", d.Name, seed, r.Bytes, got, want)
			}
		}
	}
	t.Logf("%d objects compared, %d left to the field manager", compared, left)
	if compared == 0 || left > compared/5 {
		t.Errorf("%d compared, %d left: too few", compared, left)
	}
}

// stock returns what the field manager says about a new object.
func stock(t *testing.T, m *managedfields.FieldManager, object []byte) string {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(object); err != nil {
		t.Fatal(err)
	}
	u.SetManagedFields(nil)
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	out, err := m.Update(live, u, "manager")
	if err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	entries := out.(*unstructured.Unstructured).GetManagedFields()
	if len(entries) == 0 {
		return "{}"
	}
	var fields any
	if err := json.Unmarshal(entries[0].FieldsV1.GetRawBytes(), &fields); err != nil {
		t.Fatal(err)
	}
	canonical, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(canonical)
}

// typesOf returns how the fields of a version are merged, by its published
// schema.
func typesOf(t *testing.T, d *crd.CRD, v *crd.Version) managedfields.TypeConverter {
	t.Helper()
	document, err := openapi.Document(d, v)
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Components struct{ Schemas map[string]*spec.Schema }
	}
	if err := json.Unmarshal(document, &parsed); err != nil {
		t.Fatal(err)
	}
	types, err := managedfields.NewTypeConverter(parsed.Components.Schemas, false)
	if err != nil {
		t.Fatalf("%s: %v", d.Name, err)
	}
	return types
}

func fieldManager(t *testing.T, d *crd.CRD, v *crd.Version) *managedfields.FieldManager {
	t.Helper()
	gvk := schema.GroupVersionKind{Group: d.Group, Version: v.Name, Kind: d.Kind}
	reset := fieldpath.NewExcludeFilterSetMap(map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(gvk.GroupVersion().String()): fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	})
	m, err := managedfields.NewDefaultCRDFieldManager(typesOf(t, d, v), same{}, same{}, same{}, gvk, gvk.GroupVersion(), "", reset)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// same converts and defaults nothing.
type same struct{}

func (same) Convert(_, _, _ any) error { panic("not called for objects of one version") }
func (same) ConvertToVersion(o runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return o, nil
}
func (same) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
func (same) Default(runtime.Object) {}
func (same) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, nil
}
