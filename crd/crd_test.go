package crd_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
)

const webs = `{
  "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": {"name": "webs.example.com"},
  "spec": {
    "group": "example.com", "scope": "Namespaced",
    "names": {"plural": "webs", "kind": "Web", "shortNames": ["w", "wb"], "categories": ["all"]},
    "versions": [
      {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}, "scale": {}},
       "schema": {"openAPIV3Schema": {"type": "object", "properties": {"n": {"type": "integer", "default": 3}}}}},
      {"name": "v0", "served": true, "deprecated": true,
       "schema": {"openAPIV3Schema": {"type": "object"}}}
    ]
  }
}`

func TestParse(t *testing.T) {
	d, err := crd.Parse([]byte(webs))
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(d.APIVersion, d.Name, d.Group, d.Kind, d.ListKind, d.Plural, d.Singular, d.ShortNames, d.Categories, d.Namespaced, d.PreserveUnknownFields)
	want := fmt.Sprint("apiextensions.k8s.io/v1", "webs.example.com", "example.com", "Web", "WebList", "webs", "web", []string{"w", "wb"}, []string{"all"}, true, false)
	if got != want {
		t.Errorf("%s\n%s", got, want)
	}
	v := d.Version("v1")
	if v == nil || !v.Served || !v.Storage || v.Deprecated || !v.Status || v.Scale == nil || v.Pointer != "/spec/versions/0/schema/openAPIV3Schema" {
		t.Fatalf("v1 is %+v", v)
	}
	if !strings.HasPrefix(webs[v.Offset:], string(v.Schema)) || !strings.HasPrefix(string(v.Schema), `{"type": "object", "properties"`) {
		t.Errorf("the schema at %d is %s", v.Offset, v.Schema)
	}
	if v0 := d.Version("v0"); v0 == nil || v0.Storage || !v0.Deprecated || v0.Status {
		t.Errorf("v0 is %+v", v0)
	}
	if d.Version("v2") != nil {
		t.Error("there is no v2")
	}
	schema, rules, err := v.Compile(espalier.CompileOptions{})
	if err != nil || rules != nil {
		t.Fatal(rules, err)
	}
	out, err := schema.Normalize([]byte(`{"x":1}`), espalier.NormalizeOptions{})
	if err != nil || string(out.Bytes) != `{"n":3}` {
		t.Errorf("%s, %v", out.Bytes, err)
	}
	if _, _, err := (&crd.Version{Name: "v9"}).Compile(espalier.CompileOptions{}); err == nil || err.Error() != `version "v9" has no schema` {
		t.Errorf("a version without a schema: %v", err)
	}
}

// TestParseBeta checks that what v1beta1 says once is said of all versions.
func TestParseBeta(t *testing.T) {
	for _, c := range []struct{ name, spec, want string }{
		{"one version", `"version":"v1","validation":{"openAPIV3Schema":{"type":"object"}},"subresources":{"status":{}}`,
			"true true [v1 true true true /spec/validation/openAPIV3Schema]"},
		{"several versions", `"scope":"Cluster","preserveUnknownFields":false,"version":"v1","versions":[{"name":"v1","served":true,"storage":true},{"name":"v2","served":false,"storage":false}],"validation":{"openAPIV3Schema":{}}`,
			"false false [v1 true true false /spec/validation/openAPIV3Schema] [v2 false false false /spec/validation/openAPIV3Schema]"},
		{"subresources of their own", `"subresources":{"scale":{}},"selectableFields":[{"jsonPath":".a"}],"versions":[{"name":"v1","subresources":{"status":{}}}]`, "true true [v1 false false true ]"},
		{"no version", `"scope":"Cluster"`, "false true"},
		{"columns", `"additionalPrinterColumns":[{"JSONPath":".a"},{"jsonPath":".b","JSONPath":".c"}],"version":"v1"`, "true true [v1 true true false ] .a .b"},
		{"schemas of their own", `"versions":[{"name":"v1","schema":{"openAPIV3Schema":{}}},{"name":"v2"}]`,
			"true true [v1 false false false /spec/versions/0/schema/openAPIV3Schema] [v2 false false false ]"},
	} {
		d, err := crd.Parse([]byte(`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","spec":{` + c.spec + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(d.Namespaced, d.PreserveUnknownFields)
		for _, v := range d.Versions {
			got += fmt.Sprintf(" [%s %v %v %v %s]", v.Name, v.Served, v.Storage, v.Status, v.Pointer)
			for _, x := range v.Columns {
				got += " " + x.JSONPath
			}
			if v.Scale != nil || v.SelectableFields != nil {
				got += fmt.Sprint(" ", v.Scale, v.SelectableFields)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, not %s", c.name, got, c.want)
		}
	}
}

// TestParseLeniently checks that Parse reads what it can and refuses only what
// is no CRD.
func TestParseLeniently(t *testing.T) {
	const head = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition"`
	for _, doc := range []string{
		head + `}`, head + `,"spec":null}`, head + `,"spec":[]}`, head + `,"metadata":1,"spec":{"names":7,"versions":{}}}`,
		head + `,"spec":{"group":[],"names":{"shortNames":"x","plural":null},"versions":[1,null,{"name":2,"served":"yes","schema":true}]}}`,
	} {
		if _, err := crd.Parse([]byte(doc)); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
	}
	for _, doc := range []string{`{}`, `[]`, `null`, `{"apiVersion":"v1","kind":"List"}`, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"Web"}`, `{"apiVersion":"apiextensions.k8s.io/v2","kind":"CustomResourceDefinition"}`} {
		if _, err := crd.Parse([]byte(doc)); !errors.Is(err, crd.ErrNotCRD) {
			t.Errorf("%s: %v", doc, err)
		}
	}
	_, err := crd.Parse([]byte(`{"apiVersion":"v1","kind":"List"}`))
	if err == nil || !strings.HasSuffix(err.Error(), `apiVersion is "v1", kind is "List"`) {
		t.Errorf("a list: %v", err)
	}
	var syntax *espalier.SyntaxError
	if _, err := crd.Parse([]byte(head)); !errors.As(err, &syntax) {
		t.Errorf("half a document: %v", err)
	}
	d, err := crd.Parse([]byte(head + `,"metadata":{"annotations":["a","b"]}}`))
	if err != nil || d.Annotations != nil {
		t.Error(d, err)
	}
	d, err = crd.Parse([]byte(head + `,"spec":{"names":{"shortNames":["a",1,"b"]}}}`))
	if err != nil || !slices.Equal(d.ShortNames, []string{"a", "b"}) {
		t.Error(d, err)
	}
	// What only v1beta1 has means nothing in v1.
	d, err = crd.Parse([]byte(head + `,"spec":{"version":"v1","names":{"shortNames":{"a":"b"}},"versions":{"a":{"name":"v1"}}}}`))
	if err != nil || d.Versions != nil || d.ShortNames != nil || d.Namespaced {
		t.Error(d, err)
	}
}

// Release may be called more than once, and for what was not parsed.
func TestRelease(t *testing.T) {
	d, err := crd.Parse([]byte(tree))
	if err != nil {
		t.Fatal(err)
	}
	d.Release()
	d.Release()
	if found, err := crd.Validate(d, crd.ValidateOptions{}); err != nil || len(found) > 0 {
		t.Error(found, err)
	}
	new(crd.CRD).Release()
}

// Everything that a CRD says is read, and what v1beta1 says elsewhere is found there.
func TestParseEverything(t *testing.T) {
	const stable = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.b.c","annotations":{"x":"y"}},
		"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],
			"clientConfig":{"caBundle":"Cg==","service":{"namespace":"n","name":"s","path":"/p"}}}},
		"versions":[{"name":"v1","deprecated":true,"deprecationWarning":"old","selectableFields":[{"jsonPath":".spec.s"}],
			"additionalPrinterColumns":[{"name":"C","type":"string","format":"byte","description":"d","priority":1,"jsonPath":".spec.c"}],
			"subresources":{"status":{},"scale":{"specReplicasPath":".spec.r","statusReplicasPath":".status.r","labelSelectorPath":".status.l"}}}]},
		"status":{"acceptedNames":{"plural":"as"},"storedVersions":["v1"],"observedGeneration":7,
			"conditions":[{"type":"Established","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"},{"type":"NamesAccepted","status":"False"}]}}`
	const beta = `{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"name":"a.b.c","annotations":{"x":"y"}},
		"spec":{"conversion":{"strategy":"Webhook","conversionReviewVersions":["v1"],
			"webhookClientConfig":{"caBundle":"Cg==","service":{"namespace":"n","name":"s","path":"/p"}}},
		"versions":[{"name":"v1","deprecated":true,"deprecationWarning":"old","selectableFields":[{"jsonPath":".spec.s"}]}],
		"additionalPrinterColumns":[{"name":"C","type":"string","format":"byte","description":"d","priority":1,"JSONPath":".spec.c"}],
		"subresources":{"status":{},"scale":{"specReplicasPath":".spec.r","statusReplicasPath":".status.r","labelSelectorPath":".status.l"}}},
		"status":{"acceptedNames":{"plural":"as"},"storedVersions":["v1"],"observedGeneration":7,
			"conditions":[{"type":"Established","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"},{"type":"NamesAccepted","status":"False"}]}}`
	for _, doc := range []string{stable, beta} {
		d, err := crd.Parse([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		v := d.StorageVersion()
		if v != nil {
			t.Errorf("%s is stored", v.Name)
		}
		v = d.Version("v1")
		c, w := v.Columns[0], d.Conversion.Webhook
		got := fmt.Sprint(d.Annotations, d.Conversion.Strategy, d.Conversion.ReviewVersions, w.URL, w.CABundle, w.Service.Namespace, w.Service.Name, *w.Service.Path, w.Service.Port,
			v.Deprecated, *v.DeprecationWarning, v.SelectableFields[0].JSONPath, c.Name, c.Type, c.Format, c.Description, c.Priority, c.JSONPath,
			v.Status, v.Scale.SpecReplicasPath, v.Scale.StatusReplicasPath, *v.Scale.LabelSelectorPath,
			d.Status.AcceptedNames.Plural, d.Status.StoredVersions, d.Status.ObservedGeneration, d.Status.True("Established"), d.Status.True("NamesAccepted"), d.Status.True("Terminating"), d.Status.Conditions[0].LastTransitionTime.Year())
		want := "map[x:y] Webhook [v1] <nil> [10] n s /p 443 true old .spec.s C string byte d 1 .spec.c true .spec.r .status.r .status.l as [v1] 7 true false false 2026"
		if squeeze(got) != squeeze(want) {
			t.Errorf("%s:\n%s\n%s", d.APIVersion, got, want)
		}
	}
}

// Numbers that do not fit are ignored.
func TestParseIntegers(t *testing.T) {
	for text, want := range map[string]int32{"2147483647": math.MaxInt32, "2147483648": 0, "-2147483648": math.MinInt32, "-2147483649": 0, "1.5": 0, `"1"`: 0, "null": 0} {
		d, err := crd.Parse([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"versions":[{"name":"v1","additionalPrinterColumns":[{"priority":` + text + `}]}]}}`))
		if err != nil || d.Version("v1").Columns[0].Priority != want {
			t.Errorf("%s: %+v, %v", text, d, err)
		}
	}
}

// squeeze takes the spaces out: Sprint has them between some operands only.
func squeeze(s string) string { return strings.ReplaceAll(s, " ", "") }

// What Parse ignores in spec is found by Decodable.
func TestDecodable(t *testing.T) {
	for spec, want := range map[string]string{
		`{"conversion":{"webhook":{"clientConfig":{"caBundle":"Cg=="}}},"versions":[{"schema":{"openAPIV3Schema":1}}]}`: "",
		`{"conversion":{"webhook":{"clientConfig":{"caBundle":"?"}}}}`:                                                  "/spec/conversion/webhook/clientConfig/caBundle",
		`{"versions":[{"additionalPrinterColumns":[{"priority":"1"}]}]}`:                                                "/spec/versions/0/additionalPrinterColumns/0/priority",
	} {
		d, err := crd.Parse([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":` + spec + `}`))
		if err != nil {
			t.Fatal(err)
		}
		d.Release()
		err = d.Decodable()
		var syntax *espalier.SyntaxError
		if want == "" && err != nil || want != "" && (!errors.As(err, &syntax) || syntax.Pointer != want) {
			t.Errorf("%s: %v", spec, err)
		}
	}
}
