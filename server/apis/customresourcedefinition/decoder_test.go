package customresourcedefinition

import (
	"encoding/json"
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
)

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wg]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, default: 3}}}
`

const gadgets = `
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  version: v1
  names: {plural: gadgets, kind: Gadget}
  subresources: {status: {}}
  validation:
    openAPIV3Schema: {properties: {spec: {properties: {size: {minimum: 1}}}}}
`

func asJSON(tb testing.TB, text string) []byte {
	tb.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// sent reads a CRD as a request in its own version.
func sent(tb testing.TB, text string) *object.Object {
	tb.Helper()
	o, _, _, err := NewDecoder("v1").FromRequest(asJSON(tb, text), nil, false)
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

func TestRequestsBecomeCanonicalV1WithDefaults(t *testing.T) {
	for _, text := range []string{widgets, gadgets} {
		o := sent(t, text)
		if o.APIVersion() != "apiextensions.k8s.io/v1" || o.Kind() != "CustomResourceDefinition" {
			t.Errorf("%s %s", o.APIVersion(), o.Kind())
		}
		doc, err := jsondoc.Parse(o.JSON(), jsondoc.Limits{})
		if err != nil || !doc.Canonical() {
			t.Errorf("not canonical (%v): %s", err, o.JSON())
		}
		var got v1.CustomResourceDefinition
		if err := json.Unmarshal(o.JSON(), &got); err != nil {
			t.Fatal(err)
		}
		n := got.Spec.Names
		if n.Singular != strings.ToLower(n.Kind) || n.ListKind != n.Kind+"List" || got.Spec.Conversion == nil || got.Spec.Conversion.Strategy != v1.NoneConverter {
			t.Errorf("without defaults: %s", o.JSON())
		}
		if len(got.Status.StoredVersions) != 1 || got.Status.StoredVersions[0] != "v1" {
			t.Errorf("storedVersions: %q", got.Status.StoredVersions)
		}
	}
}

func TestOldRequestsBecomeWhatUpstreamMakesOfThem(t *testing.T) {
	o := sent(t, gadgets)
	var old v1beta1.CustomResourceDefinition
	if err := json.Unmarshal(asJSON(t, gadgets), &old); err != nil {
		t.Fatal(err)
	}
	scheme.Default(&old)
	between, err := internal(&old)
	if err != nil {
		t.Fatal(err)
	}
	want := &v1.CustomResourceDefinition{}
	if err := scheme.Convert(between, want, nil); err != nil {
		t.Fatal(err)
	}
	want.SetGroupVersionKind(stable.WithKind(kind))
	got := &v1.CustomResourceDefinition{}
	if err := json.Unmarshal(o.JSON(), got); err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("%s", o.JSON())
	}
	if !got.Spec.PreserveUnknownFields || got.Spec.Versions[0].Subresources.Status == nil || got.Spec.Versions[0].Schema == nil {
		t.Errorf("%s", o.JSON())
	}
}

func TestStrictReadingUsesTheOrdinaryTexts(t *testing.T) {
	text := strings.NewReplacer(`"scope":"Namespaced"`, `"scope":"Cluster","scope":"Namespaced","colour":"red"`,
		`"type":"integer"`, `"type":"integer","readOnly":true,"minimun":1`).Replace(string(asJSON(t, widgets)))
	_, gvk, complaints, err := NewDecoder("v1").FromRequest([]byte(text), nil, true)
	if err != nil || gvk != stable.WithKind(kind) {
		t.Fatal(gvk, err)
	}
	var got []string
	for _, c := range complaints {
		got = append(got, c.Error())
	}
	want := []string{
		`duplicate field "spec.scope"`, `unknown field "spec.colour"`,
		`unknown field "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.size.minimun"`,
	}
	for _, w := range want {
		if !strings.Contains(strings.Join(got, "\n"), w) {
			t.Errorf("no %s among %q", w, got)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%q", got)
	}
	if _, _, complaints, _ := NewDecoder("v1").FromRequest([]byte(text), nil, false); complaints != nil {
		t.Errorf("complaints without being asked: %q", complaints)
	}
}

func TestOtherThanCRDIsRefused(t *testing.T) {
	for _, c := range []struct{ data, gvk, text string }{
		{`{"kind":"Widget","apiVersion":"apiextensions.k8s.io/v1"}`, "apiextensions.k8s.io/v1, Kind=Widget", `no kind "Widget" is registered for version "apiextensions.k8s.io/v1"`},
		{`{"kind":"CustomResourceDefinition","apiVersion":"apps/v1"}`, "apps/v1, Kind=CustomResourceDefinition", `no kind "CustomResourceDefinition" is registered for version "apps/v1"`},
		{`{"kind":"CustomResourceDefinitionList","apiVersion":"apiextensions.k8s.io/v1"}`, "apiextensions.k8s.io/v1, Kind=CustomResourceDefinitionList", "unknown conversion"},
		{`{"spec":1}`, "apiextensions.k8s.io/v1, Kind=CustomResourceDefinition", "cannot unmarshal number into Go struct field CustomResourceDefinition.spec"},
		{`{`, "", "couldn't get version/kind; json parse error"},
	} {
		defaults := stable.WithKind(kind)
		_, gvk, _, err := NewDecoder("v1").FromRequest([]byte(c.data), &defaults, true)
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.data, err)
		}
		if c.gvk != "" && gvk.String() != c.gvk {
			t.Errorf("%s: %s", c.data, gvk)
		}
	}
}

func TestABodyNeedNotSayWhatItIs(t *testing.T) {
	defaults := stable.WithKind(kind)
	o, gvk, _, err := NewDecoder("v1").FromRequest([]byte(`{"metadata":{"name":"a"}}`), &defaults, true)
	if err != nil || gvk != defaults || o.APIVersion() != "apiextensions.k8s.io/v1" {
		t.Fatal(o, gvk, err)
	}
}

func TestDeepAndLargeRequestsAreRefusedInTime(t *testing.T) {
	deep := strings.Repeat(`{"items":`, 9000) + `{"description":"` + strings.Repeat("x", 2<<20) + `"}` + strings.Repeat("}", 9000)
	data := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"versions":[{"schema":{"openAPIV3Schema":` + deep + `}}]}}`
	if _, _, _, err := NewDecoder("v1").FromRequest([]byte(data), nil, true); err != errCostly {
		t.Error(err)
	}
}

func TestStoredCRDsOfOthersAreRead(t *testing.T) {
	var typed v1.CustomResourceDefinition
	if err := json.Unmarshal(sent(t, widgets).JSON(), &typed); err != nil {
		t.Fatal(err)
	}
	typed.Kind, typed.APIVersion = kind, stable.String()
	theirs, err := json.Marshal(&typed) // in the order of the Go types, as upstream stores it
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewDecoder("v1").FromStorage(theirs)
	if err != nil {
		t.Fatal(err)
	}
	if want := sent(t, widgets).JSON(); string(o.JSON()) != string(want) {
		t.Errorf("got  %s\nwant %s", o.JSON(), want)
	}
	again, err := NewDecoder("v1").FromStorage(o.JSON())
	if err != nil || string(again.JSON()) != string(o.JSON()) {
		t.Error(err)
	}
	ancient, err := NewDecoder("v1").FromStorage(asJSON(t, gadgets))
	if err != nil || string(ancient.JSON()) != string(sent(t, gadgets).JSON()) {
		t.Error(err)
	}
}

const unions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: unions.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: unions, kind: Union}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          id: {type: string, readOnly: true, whatever: 1}
          list: {type: array, items: {type: object, properties: {count: {type: integer, readOnly: true}}}}
          map: {type: object, additionalProperties: {type: string, readOnly: true}}
          one:
            type: object
            x-kubernetes-unions: [{discriminator: kind, fields: {a: A, b: B}}]
            properties: {kind: {type: string}, a: {type: string}, b: {type: string}}
`

func TestKeywordsBeyondTheTypesSurvive(t *testing.T) {
	o := sent(t, unions)
	for _, want := range []string{
		`"id":{"readOnly":true,"type":"string"}`,
		`"count":{"readOnly":true,"type":"integer"}`,
		`"additionalProperties":{"readOnly":true,"type":"string"}`,
		`"x-kubernetes-unions":[{"discriminator":"kind","fields":{"a":"A","b":"B"}}]`,
	} {
		if !strings.Contains(string(o.JSON()), want) {
			t.Errorf("lost %s: %s", want, o.JSON())
		}
	}
	old, err := convertor{}.ConvertToVersion(o, beta)
	if err != nil {
		t.Fatal(err)
	}
	back, err := convertor{}.ConvertToVersion(old, stable)
	if err != nil {
		t.Fatal(err)
	}
	if string(back.(*object.Object).JSON()) != string(o.JSON()) {
		t.Errorf("there and back:\n%s\n%s", o.JSON(), back.(*object.Object).JSON())
	}
	if !strings.Contains(string(old.(*object.Object).JSON()), `"validation":{"openAPIV3Schema":{`) {
		t.Errorf("not shared: %s", old.(*object.Object).JSON())
	}
}

func TestSchemasThatDifferInKeywordsOnlyStayApart(t *testing.T) {
	text := widgets + `
  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, default: 3, readOnly: true}}}
`
	o := sent(t, text)
	old, err := convertor{}.ConvertToVersion(o, beta)
	if err != nil {
		t.Fatal(err)
	}
	back, err := convertor{}.ConvertToVersion(old, stable)
	if err != nil || string(back.(*object.Object).JSON()) != string(o.JSON()) {
		t.Errorf("%v\n%s\n%s", err, o.JSON(), back.(*object.Object).JSON())
	}
}

func TestListsAreConverted(t *testing.T) {
	l := newList().(*object.List)
	l.Items = []object.Object{*sent(t, widgets), *sent(t, gadgets)}
	l.ResourceVersion = "7"
	out, err := convertor{beta}.any(l)
	if err != nil {
		t.Fatal(err)
	}
	var got v1beta1.CustomResourceDefinitionList
	data, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.ResourceVersion != "7" || got.APIVersion != beta.String() || got.Kind != "CustomResourceDefinitionList" || len(got.Items) != 2 {
		t.Errorf("%s", data)
	}
	if got.Items[1].APIVersion != beta.String() || got.Items[1].Spec.Validation == nil || got.Items[1].Spec.Version != "v1" {
		t.Errorf("%s", data)
	}
	if l.Items[1].APIVersion() != stable.String() {
		t.Error("the list itself was changed")
	}
	if _, err := (convertor{}).ConvertToVersion(&l.Items[0], schema.GroupVersion{Group: stable.Group, Version: "v7"}); err == nil {
		t.Error("converted to a version that is not there")
	}
}

func FuzzFromRequest(f *testing.F) {
	for _, text := range []string{widgets, gadgets, unions} {
		f.Add(asJSON(f, text))
	}
	f.Add([]byte(`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"creationTimestamp":null,"labels":null},"spec":{"validation":{"openAPIV3Schema":{"items":[{"readOnly":1}],"dependencies":{"a":["b"],"c":{"not":{"readOnly":[]}}},"default":null,"x-kubernetes-unions":{}}},"versions":[null,{}],"conversion":{"strategy":"Webhook","webhookClientConfig":{"service":{}}}},"status":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 || strings.Contains(string(data), "-0") {
			return // -0.0 is -0 in canonical JSON, and that is the integer 0 when it is read again
		}
		decoder := NewDecoder("v1")
		o, _, _, err := decoder.FromRequest(data, nil, true)
		if err != nil {
			return
		}
		once := string(o.JSON())
		doc, err := jsondoc.Parse([]byte(once), jsondoc.Limits{})
		if err != nil || !doc.Canonical() {
			t.Fatalf("not canonical: %v\n%s", err, once)
		}
		again, _, _, err := decoder.FromRequest([]byte(once), nil, false)
		if err != nil || string(again.JSON()) != once {
			t.Fatalf("read again (%v):\n%s\n%s", err, once, again.JSON())
		}
		old, err := convertor{beta}.object(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (convertor{stable}).object(old); err != nil {
			t.Fatal(err)
		}
		strategy{}.PrepareForCreate(through("v1beta1"), o)
		strategy{}.Validate(through("v1beta1"), o)
	})
}
