package request_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/object"
)

const widgets = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[
{"name":"v1","served":true,"storage":true,"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas","labelSelectorPath":".status.selector"}},
"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","required":["size"],"properties":{"size":{"type":"integer","maximum":9},"replicas":{"type":"integer"},"color":{"type":"string","default":"red"}}},
"status":{"type":"object","properties":{"phase":{"type":"string"},"replicas":{"type":"integer"},"selector":{"type":"string"}}}}}}},
{"name":"v1beta1","served":true,"deprecated":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}},
{"name":"v1alpha1","served":true,"deprecated":true,"deprecationWarning":"gone soon","storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}},
{"name":"v2alpha1","served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`

func widget(t *testing.T) (*request.Resource, *request.Schema, *crd.CRD) {
	t.Helper()
	d, err := crd.Parse([]byte(widgets))
	if err != nil {
		t.Fatal(err)
	}
	v := d.Version("v1")
	s, err := request.Compile(v, d.PreserveUnknownFields)
	if err != nil {
		t.Fatal(err)
	}
	return request.New(d, v), s, d
}

func decoded(t *testing.T, s *request.Schema, members string) *object.Object {
	t.Helper()
	o, _, err := s.Decode([]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},`+members+`}`), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func texts(r *request.Result) string {
	var all []string
	for _, p := range r.Problems {
		all = append(all, p.Error.Error())
	}
	return strings.Join(all, "\n")
}

func TestCreate(t *testing.T) {
	r, s, _ := widget(t)
	o := decoded(t, s, `"spec":{"size":12,"replicas":-1,"odd":1},"status":{"phase":"new"}`)
	r.Create(o, "default")
	if o.Member("status") != nil || o.GetGeneration() != 1 || o.GetNamespace() != "default" || o.GetUID() != "" {
		t.Errorf("created as %s", o.JSON())
	}
	if got := string(o.Member("spec")); got != `{"color":"red","replicas":-1,"size":12}` {
		t.Errorf("spec is %s", got)
	}
	found, err := r.Validate(s, o, request.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := "spec.size: Invalid value: 12: spec.size in body should be less than or equal to 9\n" +
		".spec.replicas: Invalid value: -1: should be a non-negative integer"
	if got := texts(&found); got != want {
		t.Errorf("problems:\n%s\nwant:\n%s", got, want)
	}
	if found.Problems[0].Violation == nil || found.Problems[1].Violation != nil {
		t.Error("the schema is violated by the first alone")
	}
	if errs := found.ErrorList(); len(errs) != 2 || errs[0] != found.Problems[0].Error {
		t.Errorf("as a list: %v", errs)
	}
}

func TestGenerateName(t *testing.T) {
	r, s, _ := widget(t)
	o := decoded(t, s, `"spec":{"size":1}`)
	o.SetName("")
	o.SetGenerateName(strings.Repeat("a", 70))
	r.Create(o, "default")
	if len(o.GetName()) != 63 || o.GetGenerateName() == "" {
		t.Errorf("name %q of %d bytes", o.GetName(), len(o.GetName()))
	}
}

func TestForeignTypes(t *testing.T) {
	r, s, _ := widget(t)
	o, err := request.DecodeForeign([]byte(`{"apiVersion":"example.com/v2","kind":"Gadget","metadata":{"name":"a"},"any":1}`))
	if err != nil || string(o.Member("any")) != "1" {
		t.Fatalf("%v, %s", err, o.JSON())
	}
	found, err := r.Validate(s, o, request.Options{})
	want := `kind: Invalid value: "Gadget": must be Widget` + "\n" + `apiVersion: Invalid value: "example.com/v2": must be example.com/v1`
	if got := texts(&found); err != nil || got != want {
		t.Errorf("%v:\n%s", err, got)
	}
}

// What is wrong outside the status does not keep a status from being written, and what is
// wrong within is named as in the status.
func TestStatus(t *testing.T) {
	r, s, _ := widget(t)
	old := decoded(t, s, `"spec":{"size":5,"replicas":3},"status":{"phase":"old"}`)
	old.SetUID("u")
	old.SetResourceVersion("7")
	o := decoded(t, s, `"spec":{"size":99,"replicas":-4},"status":{"phase":7,"replicas":-1,"selector":"a=b"}`)
	o.SetLabels(map[string]string{"x": "y"})
	r.Update(o, old, request.Status, "default")
	if string(o.Member("spec")) != `{"color":"red","replicas":3,"size":5}` || o.GetLabels() != nil || o.GetUID() != "u" {
		t.Errorf("updated to %s", o.JSON())
	}
	found, err := r.Validate(s, o, request.Options{Old: old, Target: request.Status})
	want := `status.phase: Invalid value: "integer": phase in body must be of type string: "integer"` + "\n" +
		`.status.replicas: Invalid value: -1: should be a non-negative integer`
	if got := texts(&found); err != nil || !strings.HasPrefix(got, want) {
		t.Errorf("%v:\n%s\nwant:\n%s", err, got, want)
	}
	errs, err := r.Mistyped(s, o, request.Options{Old: old, Target: request.Status})
	if err != nil || len(errs) < 2 {
		t.Errorf("mistyped: %v, %v", errs, err)
	}
	o = decoded(t, s, `"spec":{"size":"x"}`)
	o.SetName("A") // metadata is looked at later
	errs, err = r.Mistyped(s, o, request.Options{})
	if err != nil || len(errs) != 1 || errs[0].Field != "spec.size" {
		t.Errorf("mistyped: %v, %v", errs, err)
	}
}

func TestUpdate(t *testing.T) {
	r, s, _ := widget(t)
	old := decoded(t, s, `"spec":{"size":5},"status":{"phase":"old"}`)
	old.SetGeneration(4)
	old.SetUID("u")
	same := decoded(t, s, `"spec":{"size":5},"status":{"phase":"new"}`)
	r.Update(same, old, request.Object, "default")
	if same.GetGeneration() != 4 || string(same.Member("status")) != `{"phase":"old"}` || same.GetUID() != "u" || same.GetResourceVersion() == "" {
		t.Errorf("an update of the status alone: %s", same.JSON())
	}
	changed := decoded(t, s, `"spec":{"size":6}`)
	r.Update(changed, old, request.Object, "default")
	if changed.GetGeneration() != 5 || string(changed.Member("status")) != `{"phase":"old"}` {
		t.Errorf("an update of the spec: %s", changed.JSON())
	}
	if errs, err := r.Mistyped(s, changed, request.Options{Old: old}); err != nil || errs != nil {
		t.Errorf("mistyped: %v, %v", errs, err)
	}
}

func TestStrictErrors(t *testing.T) {
	_, s, _ := widget(t)
	body := []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","odd":1},"spec":{"size":1,"b":{"c":1,"c":2},"a":1,"size":2}}`)
	var report espalier.Report
	if _, _, err := s.Decode(body, &report, 0); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, err := range request.StrictErrors(body, request.Pruned(&report)) {
		got = append(got, err.Error())
	}
	want := `duplicate field "spec.b.c"|duplicate field "spec.size"|unknown field "metadata.odd"|unknown field "spec.a"|unknown field "spec.b"`
	if strings.Join(got, "|") != want {
		t.Errorf("%s", strings.Join(got, "|"))
	}
}

func TestDecodeErrors(t *testing.T) {
	_, s, _ := widget(t)
	for body, want := range map[string]string{
		`{"apiVersion":"example.com/v1"}`:                                                `Object 'Kind' is missing in '{"apiVersion":"example.com/v1"}'`,
		`{"kind":"Widget","apiVersion":"example.com/v1",`:                                "couldn't get version/kind; json parse error: unexpected end of JSON input",
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"labels":{"a":{}}}}`: "json: cannot unmarshal object into Go struct field ObjectMeta.labels of type string",
		`{"apiVersion":"a/b/c","kind":"Widget","ApiVersion":"v1"}`:                       `Object 'Kind' is missing in '{"apiVersion":"a/b/c","kind":"Widget","ApiVersion":"v1"}'`,
		`{"apiVersion":"a/b/c","kind":"Widget","x":1}`:                                   "unexpected GroupVersion string: a/b/c",
		`[]`: "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
	} {
		if _, _, err := s.Decode([]byte(body), nil, 0); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

func TestDecodeStored(t *testing.T) {
	_, s, _ := widget(t)
	text := []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"labels":{"a":{}},"name":"a"},"spec":{"size":1}}`)
	o, err := s.DecodeStored(text)
	if err != nil || o.GetGeneration() != 1 || string(o.Member("spec")) != `{"color":"red","size":1}` || string(o.Source()) != string(text) {
		t.Errorf("%v: %s", err, o.JSON())
	}
}

func TestFinalizerWarnings(t *testing.T) {
	var got []string
	for _, w := range request.FinalizerWarnings([]string{"x.io/b", "zed", "a.io", "zed", "orphan", "known", "/"}, []string{"known"}) {
		got = append(got, w.Finalizer+": "+w.Text)
	}
	want := []string{
		`/: metadata.finalizers: "/": prefix part must be non-empty`,
		`/: metadata.finalizers: "/": name part must be non-empty`,
		`/: metadata.finalizers: "/": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
		`a.io: metadata.finalizers: "a.io": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers`,
		`zed: metadata.finalizers: "zed": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

func TestDeprecationWarning(t *testing.T) {
	_, _, d := widget(t)
	for version, want := range map[string]string{
		"v1beta1":  "example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget",
		"v1alpha1": "gone soon",
		"v1":       "example.com/v1 Widget is deprecated",
	} {
		if got := request.DeprecationWarning(d, d.Version(version)); got != want {
			t.Errorf("%s: %s", version, got)
		}
	}
}
