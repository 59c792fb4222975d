package publish

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/kube-openapi/pkg/handler"

	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/openapi"
)

// shapes are CRDs around a schema: each scope, each set of
// subresources, and names with all that matters for names of operations.
var shapes = []struct {
	group, version, kind, plural, scope, subresources string
}{
	{"orchard.example", "v1", "Tree", "trees", "Namespaced", `{"status":{},"scale":{"specReplicasPath":".spec.a","statusReplicasPath":".status.b"}}`},
	{"a-b.orchard.k8s.io", "v1beta1", "Apple", "apples", "Cluster", `{"status":{}}`},
	{"example", "v2", "Class", "classes", "Cluster", `{}`},
	{"k8s.io", "v1", "News", "news", "Namespaced", `{"scale":{"specReplicasPath":".spec.a","statusReplicasPath":".status.b"}}`},
}

// makeCRD wraps a schema in the CRD of the i-th shape.
func makeCRD(t *testing.T, schema []byte, i int) []byte {
	s := shapes[i%len(shapes)]
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": s.plural + "." + s.group},
		"spec": map[string]any{
			"group": s.group, "scope": s.scope,
			"names": map[string]any{"plural": s.plural, "singular": strings.ToLower(s.kind), "kind": s.kind, "listKind": s.kind + "List"},
			"versions": []any{map[string]any{
				"name": s.version, "served": true, "storage": true, "subresources": json.RawMessage(s.subresources),
				"selectableFields": []any{map[string]any{"jsonPath": ".spec.color"}},
				"schema":           map[string]any{"openAPIV3Schema": json.RawMessage(schema)},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestPathsAndModels compares the paths and the models of a resource with
// those that the reference builds, in both formats.
func TestPathsAndModels(t *testing.T) {
	set, err := corpus.Load(context.Background(), corpus.Options{NoModules: true, Seeds: true})
	if err != nil {
		t.Fatal(err)
	}
	step := 1
	if testing.Short() && len(set.Schemas) > 200 {
		step = 20
	}
	compared := 0
	for i := 0; i < len(set.Schemas); i += step {
		raw := makeCRD(t, set.Schemas[i].JSON, i)
		var theirs v1.CustomResourceDefinition
		if json.Unmarshal(raw, &theirs) != nil {
			continue // not a schema for either
		}
		d, err := crd.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []openapi.Format{openapi.V3, openapi.V2} {
			compare(t, set.Schemas[i].Name, d, ours(t, d, f), reference(t, &theirs, f))
		}
		compared++
		if t.Failed() && compared > 30 {
			break
		}
	}
	t.Logf("%d CRDs compared", compared)
	if compared < 10 {
		t.Error("too few CRDs compared")
	}
}

type document struct {
	Paths, Models, Parameters map[string]any
}

func ours(t *testing.T, d *crd.CRD, f openapi.Format) document {
	v := &d.Versions[0]
	models, err := openapi.AppendModels([]byte("{"), d, v, f)
	if err != nil {
		t.Fatal(err)
	}
	paths := openapi.AppendPaths([]byte("{"), openapi.Resource{
		Group: d.Group, Version: v.Name, Plural: d.Plural, Kind: d.Kind, ListKind: d.ListKind,
		Namespaced: d.Namespaced, Status: v.Status, Scale: v.Scale != nil,
	}, f)
	o := document{Paths: object(t, append(paths, '}')), Models: object(t, append(models, '}'))}
	if f == openapi.V2 {
		o.Parameters = object(t, openapi.AppendParameters(nil))
	}
	return o
}

func object(t *testing.T, data []byte) (m map[string]any) {
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatalf("%v in %.2000s", err, data)
	}
	return m
}

func reference(t *testing.T, d *v1.CustomResourceDefinition, f openapi.Format) document {
	version := d.Spec.Versions[0].Name
	if f == openapi.V2 {
		s, err := builder.BuildOpenAPIV2(d, version, builder.Options{V2: true, IncludeSelectableFields: true})
		if err != nil {
			t.Fatal(err)
		}
		s.Definitions = handler.PruneDefaults(s.Definitions)
		return document{plain(t, s.Paths), plain(t, s.Definitions), plain(t, s.Parameters)}
	}
	s, err := builder.BuildOpenAPIV3(d, version, builder.Options{IncludeSelectableFields: true})
	if err != nil {
		t.Fatal(err)
	}
	return document{Paths: plain(t, s.Paths), Models: plain(t, s.Components.Schemas)}
}

func plain(t *testing.T, value any) map[string]any {
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return object(t, data)
}

func compare(t *testing.T, name string, d *crd.CRD, got, want document) {
	if at := difference(got.Paths, want.Paths); at != "" {
		t.Errorf("%s: paths%s", name, at)
	}
	for _, kind := range []string{d.Kind, d.ListKind} {
		model := openapi.ModelName(d.Group, d.Versions[0].Name, kind)
		if at := difference(got.Models[model], want.Models[model]); at != "" {
			t.Errorf("%s: %s%s", name, model, at)
		}
	}
	for parameter, value := range want.Parameters { // ours has those of all resources
		if at := difference(got.Parameters[parameter], value); at != "" {
			t.Errorf("%s: parameter %s%s", name, parameter, at)
		}
	}
}

// difference is where two values differ first, and how.
func difference(a, b any) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	if ma, ok := a.(map[string]any); ok {
		if mb, ok := b.(map[string]any); ok {
			for k := range mb {
				if _, ok := ma[k]; !ok {
					return "/" + k + ": only the reference has it"
				}
			}
			for k, v := range ma {
				if _, ok := mb[k]; !ok {
					return "/" + k + ": the reference does not have it"
				}
				if at := difference(v, mb[k]); at != "" {
					return "/" + k + at
				}
			}
		}
	}
	if la, ok := a.([]any); ok {
		if lb, ok := b.([]any); ok && len(la) == len(lb) {
			for i := range la {
				if at := difference(la[i], lb[i]); at != "" {
					return "/…" + at
				}
			}
		}
	}
	ja, _ := json.Marshal(a)
	jb, _ := json.Marshal(b)
	return ": " + string(ja) + " and not " + string(jb)
}
