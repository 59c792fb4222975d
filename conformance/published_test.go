package conformance

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/openapi"
)

// wrapSchema wraps a schema in a CRD.
func wrapSchema(schema []byte) []byte {
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "trees.orchard.example"},
		"spec": map[string]any{
			"group": "orchard.example", "scope": "Namespaced",
			"names": map[string]any{"plural": "trees", "singular": "tree", "kind": "Tree", "listKind": "TreeList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"selectableFields": []any{map[string]any{"jsonPath": ".spec.color"}},
				"schema":           map[string]any{"openAPIV3Schema": json.RawMessage(schema)},
			}},
		},
	})
	if err != nil {
		panic(err) // the schemas are JSON
	}
	return raw
}

// TestPublished compares the components of OpenAPI documents with those that the reference publishes.
func TestPublished(t *testing.T) {
	schemas := append(seeds(t), archived(t)...)
	compared := 0
	for _, s := range schemas {
		raw := wrapSchema(s.JSON)
		var theirs v1.CustomResourceDefinition
		if err := json.Unmarshal(raw, &theirs); err != nil {
			continue // not a schema for either
		}
		want, err := builder.BuildOpenAPIV3(&theirs, "v1", builder.Options{IncludeSelectableFields: true})
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		d, err := crd.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		got, err := openapi.Document(d, d.Version("v1"))
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		wanted, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		ours, reference := components(t, got), components(t, wanted)
		for name, schema := range ours {
			if reference[name] == nil {
				t.Errorf("%s: %s is not published by the reference", s.Name, name)
			} else if at := difference(schema, reference[name]); at != "" {
				t.Errorf("%s: %s differs at %s", s.Name, name, at)
			}
		}
		for _, needed := range []string{"example.orchard.v1.Tree", "example.orchard.v1.TreeList"} {
			if ours[needed] == nil {
				t.Errorf("%s: %s is missing", s.Name, needed)
			}
		}
		compared++
	}
	t.Logf("%d documents compared", compared)
	if compared < 10 {
		t.Error("too few documents compared")
	}
}

func components(t *testing.T, document []byte) map[string]any {
	var o struct {
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(document, &o); err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	return o.Components.Schemas
}

// difference is the path of the first difference of two values.
func difference(a, b any) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	ma, ok := a.(map[string]any)
	mb, both := b.(map[string]any)
	if ok && both {
		for k := range mb {
			if _, ok := ma[k]; !ok {
				ma[k] = "absent"
			}
		}
		for k, v := range ma {
			if at := difference(v, mb[k]); at != "" {
				return "/" + k + at
			}
		}
	}
	la, ok := a.([]any)
	lb, both := b.([]any)
	if ok && both && len(la) == len(lb) {
		for i := range la {
			if at := difference(la[i], lb[i]); at != "" {
				return "/…" + at
			}
		}
	}
	ja, _ := json.Marshal(a)
	jb, _ := json.Marshal(b)
	return strings.Join([]string{":", string(ja), "and", string(jb)}, " ")
}
