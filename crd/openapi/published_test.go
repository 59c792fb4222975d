package openapi

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// everything has all keywords of structural schemas, in fields and in branches.
const everything = `{"type":"object","description":"All.","required":["spec"],"properties":{
	"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":9}}},
	"spec":{"type":"object","title":"T","description":"D","externalDocs":{"url":"https://a.example","description":"docs"},"minProperties":1,"maxProperties":90,
	"x-kubernetes-map-type":"granular",
	"x-kubernetes-validations":[{"rule":"self == oldSelf","message":"m","reason":"FieldValueForbidden","fieldPath":".text","optionalOldSelf":false},{"rule":"true","messageExpression":"'e'"}],
	"allOf":[{"required":["text"]}],"anyOf":[{"required":["number"]},{"properties":{"list":{"minItems":1,"items":{"maxLength":3}}}}],"oneOf":[{"maxProperties":80},{"minProperties":81}],"not":{"required":["other"]},
	"properties":{
	"text":{"type":"string","format":"email","pattern":"^a","minLength":1,"maxLength":9,"example":"e","default":"d"},
	"number":{"type":"number","minimum":1,"exclusiveMinimum":true,"maximum":9.5,"exclusiveMaximum":true,"multipleOf":0.5},
	"bounds":{"type":"integer","minimum":1,"maximum":9,"nullable":true},
	"choice":{"type":"string","enum":["a","b"],"nullable":true,"default":null},
	"list":{"type":"array","minItems":1,"maxItems":9,"items":{"type":"string"},"x-kubernetes-list-type":"set"},
	"items":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"n":{"type":"string","nullable":true}}}},
	"anything":{"x-kubernetes-preserve-unknown-fields":true},
	"open":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"string"}}},
	"values":{"type":"object","additionalProperties":{"type":"string","nullable":true}},
	"any":{"type":"object","additionalProperties":true},
	"either":{"x-kubernetes-int-or-string":true},
	"eitherWritten":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}],"maxLength":3},
	"eitherInAllOf":{"x-kubernetes-int-or-string":true,"allOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]},{"maximum":3}]},
	"eitherBeside":{"x-kubernetes-int-or-string":true,"allOf":[{"maxLength":4}],"anyOf":[{"maximum":3},{"minimum":7}]},
	"embedded":{"type":"object","x-kubernetes-embedded-resource":true,"required":["spec"],"properties":{"kind":{"type":"string","enum":["Pod"]},"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},
	"embeddedOpen":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
	"nullableObject":{"type":"object","nullable":true,"properties":{"a":{"type":"string"}}},
	"nullableList":{"type":"array","nullable":true,"items":{"type":"string"}},
	"required":{"type":"object","required":["a","b","c"],"properties":{"a":{"type":"string","nullable":true},"b":{"type":"string"},"c":{"type":"string","default":"x"}}}
	}}}}`

// shortened cuts long texts, which are those of package metav1.
func shortened(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = shortened(v[name])
		}
	case []any:
		for i := range v {
			v[i] = shortened(v[i])
		}
	case string:
		if len(v) > 120 {
			return v[:40] + "…"
		}
	}
	return v
}

// TestGoldenPublished compares what servers publish with files: models of a CRD with all
// keywords, and paths with all operations.
func TestGoldenPublished(t *testing.T) {
	d, v := version(t, everything)
	members := func(data []byte) []byte { return []byte("{" + string(data) + "}") }
	models := func(f Format) []byte {
		data, err := AppendModels(nil, d, v, f)
		if err != nil {
			t.Fatal(err)
		}
		return members(data)
	}
	schema := func(strict bool) []byte {
		data, err := JSONSchema(d, v, Options{Strict: strict})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	ox := Resource{Group: "b-a.k8s.io", Version: "v1", Plural: "oxen", Kind: "Ox", ListKind: "OxList", Namespaced: true, Status: true, Scale: true}
	class := Resource{Version: "v1", Plural: "classes", Kind: "Class", ListKind: "ClassList", Model: "m.Class", ListModel: "m.ClassList", Typed: true,
		Verbs: []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}, Parts: []Part{{Name: "finalize", Verbs: []string{"update"}}, {Name: "log", Verbs: []string{"get"}}}}
	for file, got := range map[string][]byte{
		"everything.models.v2.json": models(V2), "everything.models.v3.json": models(V3),
		"everything.jsonschema.json": schema(false), "everything.strict.jsonschema.json": schema(true),
		"oxen.paths.v2.json": members(AppendPaths(nil, ox, V2)), "oxen.paths.v3.json": members(AppendPaths(nil, ox, V3)),
		"classes.paths.v2.json": members(AppendPaths(nil, class, V2)), "classes.paths.v3.json": members(AppendPaths(nil, class, V3)),
		"parameters.v2.json": AppendParameters(nil),
	} {
		if strings.Contains(string(got), "\n") == strings.Contains(file, ".v") {
			t.Errorf("%s: what servers publish has no line breaks, and what people read has", file)
		}
		var value any
		if err := json.Unmarshal(got, &value); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if strings.Contains(file, ".v") { // the others are compared as they are
			var b bytes.Buffer
			encoder := json.NewEncoder(&b)
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", " ")
			if err := encoder.Encode(shortened(value)); err != nil {
				t.Fatal(err)
			}
			got = b.Bytes()
		}
		if *update {
			if err := os.WriteFile("testdata/"+file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
		for i := range max(len(a), len(b)) {
			if i >= len(a) || i >= len(b) || a[i] != b[i] {
				t.Errorf("%s:%d is not as expected (see -update): %q", file, i+1, a[min(i, len(a)-1)])
				break
			}
		}
	}
}

// Servers publish members in the order of kube-apiserver.
func TestOrderOfMembers(t *testing.T) {
	d, v := version(t, `{"type":"object","properties":{"b":{"type":"string","description":"D"},"a":{"type":"string"}}}`)
	data, err := AppendModels([]byte("before,"), d, v, V3)
	if err != nil || !strings.HasPrefix(string(data), `before,"example.orchard.v1.Tree":{"type":"object","properties":{"apiVersion":{"description":"APIVersion`) ||
		!strings.Contains(string(data), `"a":{"type":"string"},"b":{"description":"D","type":"string"}},"x-kubernetes-group-version-kind":[{"group":"orchard.example","version":"v1","kind":"Tree"}]},"example.orchard.v1.TreeList":{`) {
		t.Errorf("%v %s", err, data)
	}
	if data := AppendPaths([]byte("before,"), Resource{Group: "a", Version: "v1", Plural: "bs", Kind: "B", Model: "m", ListModel: "l", Verbs: []string{"get"}}, V3); !strings.HasPrefix(string(data), `before,"/apis/a/v1/bs/{name}":{"get":{"tags":["a_v1"],`) {
		t.Errorf("%s", data)
	}
}

func TestWords(t *testing.T) {
	for noun, want := range map[string]string{"": " ", "Pods": " ", "Class": " a ", "Ingress": " an ", "Ox": " an ", "Pod": " a ", "apple": " an "} {
		if got := article(noun); got != want {
			t.Errorf("%q: %q", noun, got)
		}
	}
	for name, want := range map[string]string{"": "", "b-a": "bA", "a.b.c": "aBC", "1a": "A", "a1": "a1", "a_b": "a_b", "-a": "A", "a-1": "a1", "é-é": "éÉ"} {
		if got := identifier(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
	for word, want := range map[string]string{"": "", "a": "A", "éa": "Éa", "ab": "Ab"} {
		if got := capital(word); got != want {
			t.Errorf("%q: %q", word, got)
		}
	}
	if ModelName("", "v1", "Pod") != ".v1.Pod" || ModelName("b.a", "v1", "Ox") != "a.b.v1.Ox" {
		t.Error(ModelName("", "v1", "Pod"))
	}
}
