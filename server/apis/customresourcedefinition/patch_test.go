package customresourcedefinition

import (
	"net/http"
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
)

const strategic = "application/strategic-merge-patch+json"

func TestStrategicMergePatch(t *testing.T) {
	s := serve(t)
	x := s.created(t, widgets)
	path := "v1/" + plural + "/" + x.Name
	patch := func(path, body string) (answer, *v1.CustomResourceDefinition) {
		t.Helper()
		a := s.do(t, "PATCH", path, strategic, []byte(body))
		return a, s.stored(t, x.Name)
	}
	// Finalizers are merged, unlike with a merge patch; short names, which have no such tag, are replaced.
	if a, _ := patch(path, `{"metadata":{"finalizers":["example.com/a"],"labels":{"a":"1","b":"2"}}}`); a.code != http.StatusOK {
		t.Fatalf("%d %s", a.code, a.body)
	}
	a, x := patch(path, `{"metadata":{"finalizers":["example.com/b"],"labels":{"a":null}},"spec":{"names":{"shortNames":["x"]}}}`)
	if a.code != http.StatusOK || len(x.Finalizers) != 2 || len(x.Labels) != 1 || x.Spec.Names.ShortNames[0] != "x" || len(x.Spec.Names.ShortNames) != 1 || x.Generation != 2 {
		t.Errorf("%d %s", a.code, a.body)
	}
	if a, x = patch(path, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/a"]}}`); a.code != http.StatusOK || len(x.Finalizers) != 1 {
		t.Errorf("%d %s", a.code, a.body)
	}
	if n := len(x.ManagedFields); n != 1 || !strings.Contains(string(x.ManagedFields[0].FieldsV1.GetRawBytes()), `f:finalizers`) {
		t.Errorf("%d managers: %+v", n, x.ManagedFields)
	}
	if a, x = patch(path+"/status", `{"metadata":{"annotations":{"c":"d"}},"spec":{"scope":"Cluster"},"status":{"conditions":[{"type":"Test","status":"True","lastTransitionTime":null,"reason":"r","message":"m"}]}}`); a.code != http.StatusOK || x.Spec.Scope != v1.NamespaceScoped || len(x.Status.Conditions) != 1 || x.Annotations["c"] != "" {
		t.Errorf("%d %s", a.code, a.body)
	}
	if a, _ = patch(path, `{"metadata":{"resourceVersion":"1"}}`); a.code != http.StatusConflict {
		t.Errorf("%d %s", a.code, a.body)
	}
	version := x.ResourceVersion
	if a, x = patch(path, `{"metadata":{"labels":{"b":"2"}}}`); a.code != http.StatusOK || x.ResourceVersion != version {
		t.Errorf("a patch that changes nothing: %d %s instead of %s", a.code, x.ResourceVersion, version)
	}
	a = s.do(t, "PATCH", "v1beta1/"+plural+"/"+x.Name, strategic, []byte(`{"spec":{"additionalPrinterColumns":[{"name":"Size","type":"integer","JSONPath":".spec.size"}]}}`))
	old := &v1beta1.CustomResourceDefinition{}
	a.decode(t, old)
	if x = s.stored(t, x.Name); a.code != http.StatusOK || len(old.Spec.AdditionalPrinterColumns) != 1 || x.Spec.Versions[0].AdditionalPrinterColumns[0].JSONPath != ".spec.size" {
		t.Errorf("%d %s", a.code, a.body)
	}
	if a := s.do(t, "PATCH", "v1/"+plural+"/others.example.com", strategic, []byte(`{}`)); a.code != http.StatusNotFound {
		t.Errorf("%d %s", a.code, a.body)
	}
}

func TestStrategicMergePatchKeepsKeywords(t *testing.T) {
	s := serve(t)
	x := sent(t, unions)
	if a := s.do(t, "POST", "v1/"+plural, asYAMLBody, []byte(unions)); a.code != http.StatusCreated {
		t.Fatal(a.body)
	}
	path := "v1/" + plural + "/" + x.GetName()
	a := s.do(t, "PATCH", path+"?fieldValidation=Strict", strategic, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	if a.code != http.StatusOK || !strings.Contains(a.body, "x-kubernetes-unions") || len(a.warnings) > 0 {
		t.Errorf("%d %s %s", a.code, a.warnings, a.body)
	}
}

func TestFieldValidationOfStrategicMergePatch(t *testing.T) {
	s := serve(t)
	x := s.created(t, widgets)
	const unknown = `{"metadata":{"labels":{"a":"b"}},"spec":{"foo":1,"names":{"bar":true}}}`
	for _, version := range []string{"v1", "v1beta1"} {
		path := version + "/" + plural + "/" + x.Name
		if a := s.do(t, "PATCH", path+"?fieldValidation=Strict", strategic, []byte(unknown)); a.code != http.StatusUnprocessableEntity ||
			!strings.Contains(a.message(), `strict decoding error: unknown field "spec.foo", unknown field "spec.names.bar"`) || !strings.HasPrefix(a.message(), ` "" is invalid: patch: Invalid value: "{`) {
			t.Errorf("%d %s", a.code, a.message())
		}
		if a := s.do(t, "PATCH", path+"?fieldValidation=Ignore", strategic, []byte(unknown)); a.code != http.StatusOK || len(a.warnings) != 0 {
			t.Errorf("%d %s", a.code, a.warnings)
		}
		a := s.do(t, "PATCH", path, strategic, []byte(unknown))
		if a.code != http.StatusOK || len(a.warnings) != 2 || !strings.Contains(a.warnings[0], `unknown field \"spec.foo\"`) || strings.Contains(a.body, "foo") {
			t.Errorf("%d %s %s", a.code, a.warnings, a.body)
		}
		for body, want := range map[string]int{
			`{"spec":{"group":5}}`:                     http.StatusUnprocessableEntity,
			`{"spec":[]}`:                              http.StatusUnprocessableEntity,
			`{"metadata":{"finalizers":{}}}`:           http.StatusUnprocessableEntity,
			`{"kind":"Other"}`:                         http.StatusUnprocessableEntity,
			`{"status":null,"$retainKeys":["status"]}`: http.StatusUnprocessableEntity,
			`{"metadata":null,"spec":null}`:            http.StatusBadRequest,
			`{"metadata":{"name":"x"}}`:                http.StatusBadRequest,
			`[`:                                        http.StatusBadRequest,
			`{"metadata":{"$patch":"x"}}`:              http.StatusInternalServerError, // what the library says has no code
			`{"a":1,"a":2,"metadata":{}}`:              http.StatusOK,
		} {
			if a := s.do(t, "PATCH", path, strategic, []byte(body)); a.code != want {
				t.Errorf("%s: %d %.300s", body, a.code, a.body)
			}
		}
	}
}
