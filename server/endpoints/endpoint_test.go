package endpoints

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// readOnly is a storage that has one verb.
type readOnly struct{}

func (readOnly) New() runtime.Object { return &metav1.Status{} }
func (readOnly) Destroy()            {}
func (readOnly) Get(context.Context, string, *metav1.GetOptions) (runtime.Object, error) {
	return &metav1.Status{}, nil
}

var _ rest.Getter = readOnly{}

func TestVerbsAreThoseOfTheStorage(t *testing.T) {
	e := &Endpoint{Scope: &handlers.RequestScope{}, Storage: readOnly{}}
	for _, verb := range []string{"list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy", ""} {
		if e.Handler(verb) != nil {
			t.Errorf("verb %q is served by a storage that only gets", verb)
		}
	}
	if e.Handler("get") == nil {
		t.Error("get is not served")
	}
}

func TestUnsupportedVerb(t *testing.T) {
	e := &Endpoint{Scope: &handlers.RequestScope{}, Storage: readOnly{}}
	info := &request.RequestInfo{IsResourceRequest: true, Verb: "deletecollection", APIGroup: "example.com", APIVersion: "v1", Resource: "widgets"}
	req := httptest.NewRequest(http.MethodDelete, "/apis/example.com/v1/widgets", nil)
	w := httptest.NewRecorder()
	Serve(w, req, info, e)

	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("status code is %d", w.Code)
	}
	var status metav1.Status
	if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	const want = `deletecollection is not supported on resources of kind "widgets.example.com"`
	if status.Kind != "Status" || status.APIVersion != "v1" || status.Message != want || status.Reason != metav1.StatusReasonMethodNotAllowed {
		t.Errorf("got %s", w.Body)
	}
}

func TestErrorIsNegotiated(t *testing.T) {
	info := &request.RequestInfo{APIGroup: "example.com", APIVersion: "v1", Resource: "widgets", Verb: "x"}
	for accept, want := range map[string]string{
		"":                                    "application/json",
		"application/yaml":                    "application/yaml",
		"application/vnd.kubernetes.protobuf": "application/vnd.kubernetes.protobuf",
	} {
		req := httptest.NewRequest(http.MethodGet, "/apis/example.com/v1/widgets", nil)
		req.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		Serve(w, req, info, &Endpoint{Storage: readOnly{}})
		if got := w.Header().Get("Content-Type"); got != want {
			t.Errorf("Accept %q is answered with %q", accept, got)
		}
	}
}

// resetting is a strategy that resets the spec.
type resetting struct{}

func (resetting) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{"v1": fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))}
}

// A subresource for a part of the objects reads bodies as whole objects.
func TestPartsAreObjects(t *testing.T) {
	s := PartOf(&genericregistry.Store{NewFunc: func() runtime.Object { return &metav1.PartialObjectMetadata{} }})
	if _, ok := s.New().(*metav1.PartialObjectMetadata); !ok {
		t.Errorf("bodies are read as %T", s.New())
	}
	s.Store.ResetFieldsStrategy = resetting{}
	if fields := s.GetResetFields()["v1"]; fields == nil || !fields.Has(fieldpath.MakePathOrDie("spec")) {
		t.Errorf("an apply owns what the strategy resets: %v", fields)
	}
	e := &Endpoint{Scope: &handlers.RequestScope{}, Storage: s}
	for verb, want := range map[string]bool{"get": true, "update": true, "patch": true, "create": false, "delete": false, "list": false, "watch": false} {
		if got := e.Handler(verb) != nil; got != want {
			t.Errorf("%s is served: %t", verb, got)
		}
	}
	if e.Storage = s.Replaced; e.Handler("get") != nil || e.Handler("patch") != nil || e.Handler("update") == nil {
		t.Error("a part that can only be replaced is read")
	}
}
