package openapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd"
)

// members reads members of an object, as they are appended.
func members(t *testing.T, data []byte) map[string]json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte("{"+string(data)+"}"), &m); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return m
}

func TestAppendModels(t *testing.T) {
	d, err := crd.Parse([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"group":"orchard.example",
		"names":{"kind":"Tree","listKind":"TreeList","plural":"trees"},"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object","properties":{
		"a":{"type":"object","required":["b","c"],"properties":{"b":{"type":"string","default":"x"},"c":{"type":"array","nullable":true,"items":{"type":"string"}}}},
		"d":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-embedded-resource":true,"properties":{"e":{"type":"string"}}},
		"f":{"x-kubernetes-int-or-string":true},
		"k":{"x-kubernetes-int-or-string":true,"allOf":[{"maxLength":4}]},
		"g":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}},
		"h":{"type":"object","required":["i"],"additionalProperties":{"type":"string","nullable":true}},
		"j":{"type":"integer","anyOf":[{"minimum":1},{"maximum":-1}]}}}}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for f, want := range map[Format]map[string]string{
		V3: {
			"a": `{"type":"object","required":["b","c"],"properties":{"b":{"type":"string","default":"x"},"c":{"type":"array","nullable":true,"items":{"type":"string"}}}}`,
			"f": `{"anyOf":[{"type":"integer"},{"type":"string"}],"x-kubernetes-int-or-string":true}`,
			"k": `{"allOf":[{"maxLength":4}],"anyOf":[{"type":"integer"},{"type":"string"}],"x-kubernetes-int-or-string":true}`,
			"j": `{"type":"integer","anyOf":[{"minimum":1},{"maximum":-1}]}`,
		},
		V2: {
			"a": `{"type":"object","required":["b"],"properties":{"b":{"type":"string"},"c":{}}}`,
			"d": `{"x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-embedded-resource":true}`,
			"f": `{"x-kubernetes-int-or-string":true}`,
			"h": `{"type":"object","additionalProperties":{}}`,
			"j": `{"type":"integer"}`,
		},
	} {
		data, err := AppendModels(nil, d, &d.Versions[0], f)
		if err != nil {
			t.Fatal(err)
		}
		models := members(t, data)
		var tree struct{ Properties map[string]json.RawMessage }
		if err := json.Unmarshal(models["example.orchard.v1.Tree"], &tree); err != nil || len(models) != 2 {
			t.Fatalf("%v, %s", err, data)
		}
		for name, schema := range want {
			if got := string(tree.Properties[name]); got != schema {
				t.Errorf("format %d, %s:\n got %s\nwant %s", f, name, got, schema)
			}
		}
		if ref := f.ref(metaModel + "ObjectMeta"); !strings.Contains(string(tree.Properties["g"]), ref) || !strings.Contains(string(tree.Properties["metadata"]), ref) {
			t.Errorf("format %d: nothing refers to %s", f, ref)
		}
	}
	d.PreserveUnknownFields = true
	open, v := version(t, `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"string"}}}`)
	for _, c := range []struct {
		d *crd.CRD
		v *crd.Version
	}{{d, &d.Versions[0]}, {open, v}} {
		data, err := AppendModels(nil, c.d, c.v, V2)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(members(t, data)["example.orchard.v1.Tree"]); !strings.HasPrefix(got, `{"type":"object","x-kubernetes-group-version-kind"`) {
			t.Errorf("with unknown fields: %s", got)
		}
	}
}

func TestAppendPaths(t *testing.T) {
	r := Resource{Group: "b-a.k8s.io", Version: "v1", Plural: "oxen", Kind: "Ox", ListKind: "OxList", Namespaced: true, Status: true, Scale: true}
	for _, c := range []struct {
		change func()
		paths  []string
		texts  []string
	}{
		{
			func() {},
			[]string{
				"/apis/b-a.k8s.io/v1/oxen", "/apis/b-a.k8s.io/v1/namespaces/{namespace}/oxen", "/apis/b-a.k8s.io/v1/namespaces/{namespace}/oxen/{name}",
				"/apis/b-a.k8s.io/v1/namespaces/{namespace}/oxen/{name}/status", "/apis/b-a.k8s.io/v1/namespaces/{namespace}/oxen/{name}/scale",
			},
			[]string{`"create an Ox"`, `"bA_v1"`, `"listBAV1OxForAllNamespaces"`, `"patchBAV1NamespacedOxScale"`, `"deleteBAV1CollectionNamespacedOx"`, `"fieldValidation"`, `.OxList"`},
		},
		{
			func() { r.Namespaced, r.Status, r.Scale = false, false, false },
			[]string{"/apis/b-a.k8s.io/v1/oxen", "/apis/b-a.k8s.io/v1/oxen/{name}"},
			[]string{`"listBAV1Ox"`},
		},
		{
			func() { r.Group, r.Model, r.ListModel = "", "own.Model", "own.List" },
			[]string{"/api/v1/oxen", "/api/v1/oxen/{name}"},
			[]string{`"core_v1"`, `"listCoreV1Ox"`, "/own.Model", "/own.List"},
		},
	} {
		c.change()
		for _, f := range []Format{V3, V2} {
			data := AppendPaths(nil, r, f)
			paths := members(t, data)
			for _, p := range c.paths {
				if paths[p] == nil {
					t.Errorf("format %d: no path %s", f, p)
				}
			}
			if len(paths) != len(c.paths) {
				t.Errorf("format %d: %d paths", f, len(paths))
			}
			for _, text := range c.texts {
				if !strings.Contains(string(data), text) {
					t.Errorf("format %d: no %s", f, text)
				}
			}
			for _, ref := range strings.Split(string(data), `"#/parameters/`)[1:] {
				name, _, _ := strings.Cut(ref, `"`)
				if !strings.Contains(string(AppendParameters(nil)), `"`+name+`":{`) {
					t.Errorf("no parameter %s", name)
				}
			}
		}
	}
}
