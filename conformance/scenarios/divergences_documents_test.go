package scenarios

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

// The documents of a group and of a version have tags; upstream's have none.
func TestDiscoveryHasTags(t *testing.T) {
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			c := dial(t, alike(t, kind, prefix()))
			post(t, c, crdsPath, boatsCRD(t))
			served(t, c)
			for _, path := range []string{"/apis/apiextensions.k8s.io/v1", "/apis/harbour.example.com", "/apis/harbour.example.com/v1"} {
				status, header := ask(t, c, path)
				tag := header.Get("ETag")
				if ours := kind == launch.Espalier; status != http.StatusOK || ours != (tag != "") {
					t.Errorf("%s: %d with the tag %q", path, status, tag)
				}
				want := http.StatusOK
				if tag != "" {
					want = http.StatusNotModified
				}
				if status, _ := ask(t, c, path, wire.Header{Name: "If-None-Match", Value: tag}); status != want {
					t.Errorf("%s for a client that has it: %d", path, status)
				}
			}
		})
	}
}

// The beta of aggregated discovery is served. Upstream's standalone server has no /apis; its handlers, asked here, have given the beta up.
func TestDiscoveryBeta(t *testing.T) {
	sides(t) // skips the test with the others
	const accept = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
	plain := discovery.NewRootAPIsHandler(discovery.DefaultAddresses{}, apiserver.Codecs)
	recorder, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/apis", nil)
	req.Header.Set("Accept", accept)
	aggregated.WrapAggregatedDiscoveryToHandler(plain, aggregated.NewResourceManager("apis"), nil).ServeHTTP(recorder, req)
	if recorder.Code != http.StatusNotAcceptable {
		t.Errorf("upstream's: %d", recorder.Code)
	}
	status, header := ask(t, dial(t, common(t)), "/apis", wire.Header{Name: "Accept", Value: accept})
	if status != http.StatusOK || header.Get("Content-Type") != accept {
		t.Errorf("ours: %d, %s", status, header.Get("Content-Type"))
	}
}

// The server answers 404 for the OpenAPI document of a version that does not exist. Upstream answers with nothing.
func TestOpenAPIDocumentIsNotThere(t *testing.T) {
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			status, _, answer, err := dial(t, alike(t, kind, prefix())).Do(t.Context(), http.MethodGet, "/openapi/v3/apis/nowhere.example.com/v1", nil)
			want := map[launch.Kind]int{launch.Espalier: http.StatusNotFound, launch.Upstream: http.StatusOK}[kind]
			if err != nil || status != want || (len(answer) == 0) != (kind == launch.Upstream) {
				t.Errorf("%d, %v, %s", status, err, answer)
			}
		})
	}
}

// The model of DeleteOptions names one kind. Upstream's builder, which its standalone server does not use, names those of all groups of Kubernetes.
func TestOpenAPIOptionsAreOfOneKind(t *testing.T) {
	sides(t) // skips the test with the others
	const model, kinds = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", "x-kubernetes-group-version-kind"
	count := func(document []byte) int {
		var d struct {
			Components struct {
				Schemas map[string]map[string]json.RawMessage
			}
		}
		decode(t, document, &d)
		var list []any
		decode(t, d.Components.Schemas[model][kinds], &list)
		return len(list)
	}
	var crd v1.CustomResourceDefinition
	decode(t, []byte(boatsCRD(t)), &crd)
	theirs, err := builder.BuildOpenAPIV3(&crd, "v1", builder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := count([]byte(encode(t, theirs))); n < 50 {
		t.Errorf("upstream names %d kinds", n)
	}
	c := dial(t, alike(t, launch.Espalier, prefix()))
	post(t, c, crdsPath, boatsCRD(t))
	served(t, c)
	if n := count(get(t, c, "/openapi/v3/apis/harbour.example.com/v1")); n != 1 {
		t.Errorf("ours names %d kinds", n)
	}
}

// ask gets a page and leaves it unread.
func ask(t *testing.T, c *wire.Conn, path string, headers ...wire.Header) (int, http.Header) {
	t.Helper()
	status, header, _, err := c.Do(t.Context(), http.MethodGet, path, nil, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return status, header
}
