package openapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/crd"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func crontab(t testing.TB) *crd.CRD {
	t.Helper()
	text, err := os.ReadFile("testdata/crontab.yaml")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	d, err := crd.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestGoldens(t *testing.T) {
	d := crontab(t)
	for _, c := range []struct {
		file string
		make func() ([]byte, error)
	}{
		{"v1.jsonschema.json", func() ([]byte, error) { return JSONSchema(d, d.Version("v1"), Options{}) }},
		{"v1.strict.jsonschema.json", func() ([]byte, error) { return JSONSchema(d, d.Version("v1"), Options{Strict: true}) }},
		{"all.jsonschema.json", func() ([]byte, error) { return Catalog([]*crd.CRD{d, d}, Options{Strict: true}) }},
		{"v1.openapi.json", func() ([]byte, error) { return Document(d, d.Version("v1")) }},
	} {
		got, err := c.make()
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(got) {
			t.Errorf("%s is not JSON", c.file)
		}
		if *update {
			if err := os.WriteFile("testdata/"+c.file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile("testdata/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not as expected (see -update):\n%s", c.file, got)
		}
	}
}

// version wraps a schema in a CRD of one version.
func version(t testing.TB, schema string) (*crd.CRD, *crd.Version) {
	t.Helper()
	d, err := crd.Parse([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"trees.orchard.example"},` +
		`"spec":{"group":"orchard.example","scope":"Cluster","names":{"plural":"trees","kind":"Tree"},"versions":[{"name":"v1","schema":{"openAPIV3Schema":` + schema + `}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	return d, d.Version("v1")
}

// TestDraft checks how the schema of a field is written in JSON Schema.
func TestDraft(t *testing.T) {
	for _, c := range []struct {
		name, schema   string
		lenient, exact string // the latter is what Strict makes of it
	}{
		{"optional", `{"type":"string"}`, `{"type":["string","null"]}`, `{"type":"string"}`},
		{"nullable", `{"type":"string","nullable":true}`, `{"type":["string","null"]}`, `{"type":["string","null"]}`},
		{"enum", `{"type":"string","enum":["a"]}`, `{"type":["string","null"],"enum":["a",null]}`, `{"type":"string","enum":["a"]}`},
		{"nullable enum", `{"type":"string","nullable":true,"enum":["a"]}`, `{"type":["string","null"],"enum":["a"]}`, `{"type":["string","null"],"enum":["a"]}`},
		{"enum with null", `{"type":"string","nullable":true,"enum":["a",null]}`, `{"type":["string","null"],"enum":["a",null]}`, `{"type":["string","null"],"enum":["a",null]}`},
		{"int or string", `{"x-kubernetes-int-or-string":true}`, `{"type":["integer","string","null"]}`, `{"type":["integer","string"]}`},
		{"int or string, spelt out", `{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}`, `{"type":["integer","string","null"]}`, `{"type":["integer","string"]}`},
		{"int or string, and more", `{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"pattern":"^a"}]}`,
			`{"type":["integer","string","null"],"anyOf":[{"type":"integer"},{"pattern":"^a"}]}`, `{"type":["integer","string"],"anyOf":[{"type":"integer"},{"pattern":"^a"}]}`},
		{"exclusive bounds", `{"type":"number","minimum":1,"exclusiveMinimum":true,"maximum":2.5,"exclusiveMaximum":true}`, `{"type":["number","null"],"exclusiveMinimum":1,"exclusiveMaximum":2.5}`, `{"type":"number","exclusiveMinimum":1,"exclusiveMaximum":2.5}`},
		{"inclusive bounds", `{"type":"number","minimum":1,"exclusiveMinimum":false}`, `{"type":["number","null"],"minimum":1}`, `{"type":"number","minimum":1}`},
		{"closed", `{"type":"object","properties":{"a":{"type":"boolean"}}}`, `{"type":["object","null"],"properties":{"a":{"type":["boolean","null"]}}}`, `{"type":"object","properties":{"a":{"type":"boolean"}},"additionalProperties":false}`},
		{"open", `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`, `{"type":["object","null"]}`, `{"type":"object"}`},
		{"closed, and said so", `{"type":"object","x-kubernetes-preserve-unknown-fields":false}`, `{"type":["object","null"]}`, `{"type":"object","additionalProperties":false}`},
		{"closed below open", `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"object"}}}`, `{"type":["object","null"],"properties":{"a":{"type":["object","null"]}}}`, `{"type":"object","properties":{"a":{"type":"object","additionalProperties":false}}}`},
		{"anything", `{"x-kubernetes-preserve-unknown-fields":true}`, `{}`, `{}`},
		{"map", `{"type":"object","additionalProperties":{"type":"integer"}}`, `{"type":["object","null"],"additionalProperties":{"type":["integer","null"]}}`, `{"type":"object","additionalProperties":{"type":"integer"}}`},
		{"set", `{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}`, `{"type":["array","null"],"uniqueItems":true,"items":{"type":"string"}}`, `{"type":"array","uniqueItems":true,"items":{"type":"string"}}`},
		{"required with a default", `{"type":"object","required":["a","b"],"properties":{"a":{"type":"string","default":"x"},"b":{"type":"string"}}}`,
			`{"type":["object","null"],"required":["b"],"properties":{"a":{"type":["string","null"],"default":"x"},"b":{"type":"string"}}}`,
			`{"type":"object","required":["b"],"properties":{"a":{"type":"string","default":"x"},"b":{"type":"string"}},"additionalProperties":false}`},
		{"junctors", `{"type":"object","oneOf":[{"required":["a"]},{"properties":{"a":{"enum":["x"]}}}],"not":{"minProperties":3}}`,
			`{"type":["object","null"],"oneOf":[{"required":["a"]},{"properties":{"a":{"enum":["x"]}}}],"not":{"minProperties":3}}`,
			`{"type":"object","additionalProperties":false,"oneOf":[{"required":["a"]},{"properties":{"a":{"enum":["x"]}}}],"not":{"minProperties":3}}`},
		{"texts", `{"type":"string","title":"T","description":"D","example":"e","format":"email","externalDocs":{"url":"https://example.com"}}`,
			`{"title":"T","description":"D\n\nSee https://example.com","markdownDescription":"D\n\nSee \u003chttps://example.com\u003e","type":["string","null"],"examples":["e"],"format":"email"}`,
			`{"title":"T","description":"D\n\nSee https://example.com","markdownDescription":"D\n\nSee \u003chttps://example.com\u003e","type":"string","examples":["e"],"format":"email"}`},
		{"foreign format", `{"type":"string","format":"duration"}`, `{"description":"A duration such as 1h30m.","type":["string","null"]}`, `{"description":"A duration such as 1h30m.","type":"string"}`},
		{"rules", "{\"type\":\"string\",\"x-kubernetes-validations\":[{\"rule\":\"self != '`'\",\"message\":\"no ticks\"},{\"rule\":\"self ==\\n oldSelf\"}]}",
			"{\"description\":\"Rules:\\n- no ticks: self != '`'\\n- self == oldSelf\",\"markdownDescription\":\"**Rules**\\n\\n- no ticks: `` self != '`' ``\\n- `self == oldSelf`\",\"type\":[\"string\",\"null\"]}",
			"{\"description\":\"Rules:\\n- no ticks: self != '`'\\n- self == oldSelf\",\"markdownDescription\":\"**Rules**\\n\\n- no ticks: `` self != '`' ``\\n- `self == oldSelf`\",\"type\":\"string\"}"},
	} {
		for _, strict := range []bool{false, true} {
			d, v := version(t, `{"type":"object","properties":{"field":`+c.schema+`}}`)
			raw, err := JSONSchema(d, v, Options{Strict: strict})
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Properties struct{ Field json.RawMessage }
			}
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatalf("%v in %s", err, raw)
			}
			var compact bytes.Buffer
			if err := json.Compact(&compact, got.Properties.Field); err != nil {
				t.Fatal(err)
			}
			want := c.lenient
			if strict {
				want = c.exact
			}
			if compact.String() != want {
				t.Errorf("%s, strict %v:\ngot  %s\nwant %s", c.name, strict, compact.Bytes(), want)
			}
		}
	}
}

// TestLenientCRD checks CRDs whose objects keep unknown fields.
func TestLenientCRD(t *testing.T) {
	d, v := version(t, `{"type":"object"}`)
	d.PreserveUnknownFields = true
	raw, err := JSONSchema(d, v, Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	if root, _, _ := strings.Cut(string(raw), `"definitions"`); strings.Contains(root, "additionalProperties") {
		t.Errorf("unknown fields are refused: %s", raw)
	}
	v.Schema = nil
	if raw, err = JSONSchema(d, v, Options{Strict: true}); err != nil || !json.Valid(raw) {
		t.Errorf("%v: %s", err, raw)
	}
}

func TestUnreadable(t *testing.T) {
	d, v := version(t, `{"properties":{"a":{"type":7}}}`)
	const want = `the schema of version "v1" of trees.orchard.example cannot be read: /spec/versions/0/schema/openAPIV3Schema/properties/a/type must be a string, but is a number`
	if _, err := JSONSchema(d, v, Options{}); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err := Document(d, v); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err := AppendModels(nil, d, v, V3); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err := Catalog([]*crd.CRD{d}, Options{}); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// TestNotStructural checks that a server says nothing about schemas that it
// does not understand.
func TestNotStructural(t *testing.T) {
	d, v := version(t, `{"type":"object","properties":{"a":{}}}`)
	raw, err := Document(d, v)
	if err != nil {
		t.Fatal(err)
	}
	var o struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		t.Fatal(err)
	}
	if s, ok := o.Components.Schemas["example.orchard.v1.Tree"]; !ok || len(s.Properties) > 0 {
		t.Errorf("%s", raw)
	}
}

// TestUnions checks that consumers who know nothing of unions are told of them.
func TestUnions(t *testing.T) {
	d, v := version(t, `{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-unions":[{"discriminator":"kind","fields":{"a":"A","b":"B"}}],`+
		`"properties":{"kind":{"type":"string"},"a":{"type":"string"},"b":{"type":"string"}}}}}`)
	for _, make := range []func() ([]byte, error){
		func() ([]byte, error) { return JSONSchema(d, v, Options{}) },
		func() ([]byte, error) { return Document(d, v) },
	} {
		raw, err := make()
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := json.Compact(&text, raw); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), `"oneOf":[{"required":["a"]},{"required":["b"]}]`) {
			t.Errorf("%s", raw)
		}
	}
	raw, err := Document(d, v)
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(raw)), ""), `"x-kubernetes-unions":[{"discriminator":"kind","fields":{"a":"A","b":"B"}}]`) {
		t.Errorf("%v: %s", err, raw)
	}
}

// TestDeep checks that depth does not cost more than linear space.
func TestDeep(t *testing.T) {
	const depth = 3000
	d, v := version(t, strings.Repeat(`{"type":"array","items":`, depth)+`{}`+strings.Repeat(`}`, depth))
	for _, make := range []func() ([]byte, error){
		func() ([]byte, error) { return JSONSchema(d, v, Options{Strict: true}) },
		func() ([]byte, error) { return Document(d, v) },
	} {
		if raw, err := make(); err != nil || len(raw) > depth*1000 {
			t.Errorf("%d bytes, %v", len(raw), err)
		}
	}
}

func FuzzSchemas(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"string","pattern":"(?i)a|\\Qb"}}}`)
	f.Add(`{"x-kubernetes-embedded-resource":true,"properties":{"metadata":{"required":["x"]}},"anyOf":[null],"items":[]}`)
	f.Add(`{"items":{"enum":[null],"default":{},"example":[1]},"required":["a","a"],"not":{},"x-kubernetes-validations":[{}]}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, schema string) {
		if !json.Valid([]byte(schema)) {
			return
		}
		d, err := crd.Parse([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":` + schema + `}}]}}`))
		if err != nil {
			return
		}
		for _, strict := range []bool{false, true} {
			if raw, err := JSONSchema(d, &d.Versions[0], Options{Strict: strict}); err == nil && !json.Valid(raw) {
				t.Errorf("not JSON: %s", raw)
			}
		}
		if raw, err := Catalog([]*crd.CRD{d}, Options{}); err == nil && !json.Valid(raw) {
			t.Errorf("not JSON: %s", raw)
		}
		if raw, err := Document(d, &d.Versions[0]); err == nil && !json.Valid(raw) {
			t.Errorf("not JSON: %s", raw)
		}
	})
}
