package crdinstall_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/espalier-dev/espalier/server/crdinstall"
	"github.com/espalier-dev/espalier/server/local"
)

// testCRD returns a CRD in example.com with one property, whose names other CRDs may
// have taken.
func testCRD(plural, kind, property string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: %[1]s, kind: %[2]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          %[3]s: {type: string}
`, plural, kind, property)
}

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadFindsDefinitions(t *testing.T) {
	dir := write(t, map[string]string{
		"a.yaml":      testCRD("as", "A", "x") + "---\n" + testCRD("bs", "B", "x") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
		"deep/c.yml":  "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(testCRD("cs", "C", "x")), "\n", "\n  "),
		"d.json":      `{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"name":"ds.example.com"}}`,
		"ignored.txt": "hello",
	})
	all, err := crdinstall.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range all {
		got = append(got, fmt.Sprintf("%s %s %v", filepath.Base(d.Source), d.Name, d.Beta))
	}
	want := "a.yaml as.example.com false, a.yaml bs.example.com false, d.json ds.example.com true, c.yml cs.example.com false"
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nothing": {map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\n"}, "there is no CustomResourceDefinition in it"},
		"twice":   {map[string]string{"a.yaml": testCRD("as", "A", "x"), "b.yaml": testCRD("as", "A", "y")}, "as.example.com is defined twice, in"},
		"no name": {map[string]string{"a.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"}, "has no metadata.name"},
		"broken":  {map[string]string{"a.yaml": "kind: [\n"}, "a.yaml:"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := crdinstall.Read(write(t, c.files)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestApplied(t *testing.T) {
	plane, err := local.Start(t.Context(), local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plane.Stop() })
	client, err := crdinstall.NewClient(plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	as := objects.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "as"}).Namespace("default")
	apply := func(yaml string) error {
		all, err := crdinstall.Read(write(t, map[string]string{"a.yaml": yaml}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return client.Apply(ctx, all)
	}
	// What is applied is served at once, and so is what replaces it.
	for i, property := range []string{"red", "blue"} {
		if err := apply(testCRD("as", "A", property)); err != nil {
			t.Fatal(err)
		}
		created, err := as.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "A", "metadata": map[string]any{"name": fmt.Sprint("a", i)}, "red": "1", "blue": "1",
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, kept := created.Object[property]; !kept || len(created.Object) != 4 {
			t.Errorf("with the property %s, what is stored is %v", property, created.Object)
		}
	}
	if err := apply(testCRD("aas", "A", "x")); err == nil || !strings.Contains(err.Error(), `its names are not accepted: "A`) {
		t.Errorf("two definitions of one kind: %v", err)
	}
	err = apply(strings.ReplaceAll(testCRD("bs", "B", "x"), "type: string", "type: text") + "---\n" + testCRD("cs", "C", "x"))
	if err == nil || !strings.Contains(err.Error(), "bs.example.com (") || !strings.Contains(err.Error(), `Unsupported value: "text"`) {
		t.Errorf("a definition that is not valid: %v", err)
	}
	cs := objects.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "cs"})
	if _, err := cs.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the one beside it is not served: %v", err)
	}
}

func TestFromObjectLeavesTheObjectAlone(t *testing.T) {
	d := &apiextensions.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "as.example.com"}}
	got, err := crdinstall.FromObject(d)
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "as.example.com" || !strings.Contains(string(got.JSON), `"kind":"CustomResourceDefinition"`) || d.Kind != "" {
		t.Errorf("got %s; the object has become %v", got.JSON, d.TypeMeta)
	}
}
