package fieldmanager_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/openapi"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/fieldmanager"
)

// BenchmarkUpdate changes one field of an object. A CRD and an object of
// one's own, in which REVISION stands for what changes, are given by path:
//
//	ESPALIER_BENCH_DEFINITION=crd.yaml ESPALIER_BENCH_OBJECT=object.json go test -bench Update
func BenchmarkUpdate(b *testing.B) {
	m, text := benchmarked(b)
	first := canonical(b, strings.Replace(text, "REVISION", "1", 1))
	created, err := m.Update(object.New(first.GroupVersionKind()), first, "kubectl")
	if err != nil {
		b.Fatal(err)
	}
	live := created.(*object.Object)
	live.SetUID("1")
	next := canonical(b, strings.Replace(text, "REVISION", "2", 1))
	next.SetUID("1")
	next.SetManagedFields(live.GetManagedFields())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Update(live, next.DeepCopy(), "other"); err != nil {
			b.Fatal(err)
		}
	}
}

func canonical(tb testing.TB, text string) *object.Object {
	tb.Helper()
	o := &object.Object{}
	if err := json.Unmarshal([]byte(text), o); err != nil {
		tb.Fatal(err)
	}
	return o
}

// benchmarked returns the field manager and the object of a benchmark.
func benchmarked(b *testing.B) (*managedfields.FieldManager, string) {
	b.Helper()
	path := os.Getenv("ESPALIER_BENCH_DEFINITION")
	if path == "" {
		_, m := manager(b)
		return m, string(read(b, "metadata: {name: a, labels: {x: REVISION}}\nspec: {a: b, list: [{name: one, size: 1.5}]}").JSON())
	}
	data, err := yaml.YAMLToJSON(file(b, path))
	if err != nil {
		b.Fatal(err)
	}
	d, err := crd.Parse(data)
	if err != nil {
		b.Fatal(err)
	}
	document, err := openapi.Document(d, &d.Versions[0])
	if err != nil {
		b.Fatal(err)
	}
	var models struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &models); err != nil {
		b.Fatal(err)
	}
	inner, err := managedfields.NewTypeConverter(models.Components.Schemas, false)
	if err != nil {
		b.Fatal(err)
	}
	gvk := schema.GroupVersionKind{Group: d.Group, Version: d.Versions[0].Name, Kind: d.Kind}
	scope := &handlers.RequestScope{Convertor: asIs{}, Defaulter: asIs{}, Creater: asIs{}, Kind: gvk, HubGroupVersion: gvk.GroupVersion()}
	m, err := fieldmanager.Manager(fieldmanager.Converter(inner), scope, asIs{})
	if err != nil {
		b.Fatal(err)
	}
	return m, string(file(b, os.Getenv("ESPALIER_BENCH_OBJECT")))
}

func file(b *testing.B, path string) []byte {
	b.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	return data
}
