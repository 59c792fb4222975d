package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	explain "k8s.io/kubectl/pkg/explain/v2"

	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/catalog/catalogtest"
	"github.com/espalier-dev/espalier/server/endpoints/openapihandler"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// serve publishes CRDs with a real catalog on a real etcd.
func serve(t *testing.T, crds []*v1.CustomResourceDefinition) (url string) {
	storage := catalogtest.Open(t)
	for _, d := range crds {
		raw, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		storage.Create(t, canonical(t, raw))
	}
	c := catalog.New(storage.Storage)
	go func() { _ = c.Run(t.Context()) }()
	<-c.Synced()
	server := httptest.NewServer(openapihandler.New(c, openapihandler.APIExtensions()...))
	t.Cleanup(server.Close)
	return server.URL
}

// canonical sorts the keys, as storage has them.
func canonical(t *testing.T, raw []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// established returns CRDs of the corpus as they are when they are served.
func established(t *testing.T) (list []*v1.CustomResourceDefinition) {
	set, err := corpus.Load(context.Background(), corpus.Options{NoModules: true, Seeds: true})
	if err != nil {
		t.Fatal(err)
	}
	const wanted = 60
	seen := map[string]bool{}
	for i := 0; i < len(set.CRDs) && len(list) < wanted; i += max(1, len(set.CRDs)/wanted/2) {
		d := &v1.CustomResourceDefinition{}
		if json.Unmarshal(set.CRDs[i].JSON, d) != nil || d.APIVersion != "apiextensions.k8s.io/v1" || seen[d.Name] {
			continue
		}
		seen[d.Name] = true
		names := &d.Spec.Names
		if names.ListKind == "" {
			names.ListKind = names.Kind + "List"
		}
		if names.Singular == "" {
			names.Singular = strings.ToLower(names.Kind)
		}
		d.Status = v1.CustomResourceDefinitionStatus{
			AcceptedNames: *names, StoredVersions: []string{d.Spec.Versions[0].Name},
			Conditions: []v1.CustomResourceDefinitionCondition{{Type: v1.Established, Status: v1.ConditionTrue}},
		}
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b *v1.CustomResourceDefinition) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func get(t *testing.T, url string) map[string]any {
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	return object(t, body)
}

// forgetOptions takes away in which groups there are options to delete. The
// reference lists all groups that client-go knows. This server has none of them.
func forgetOptions(models map[string]any) {
	if m, ok := models["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"].(map[string]any); ok {
		delete(m, "x-kubernetes-group-version-kind")
	}
}

// TestDocuments compares whole documents, as they are served.
func TestDocuments(t *testing.T) {
	crds := established(t)
	url := serve(t, crds)
	v3 := map[schema.GroupVersion][]*spec3.OpenAPI{}
	var v2 []*spec.Swagger
	for _, d := range crds {
		for _, v := range d.Spec.Versions {
			if !v.Served {
				continue
			}
			one, err := builder.BuildOpenAPIV3(d, v.Name, builder.Options{IncludeSelectableFields: true})
			if err != nil {
				t.Fatal(err)
			}
			gv := schema.GroupVersion{Group: d.Spec.Group, Version: v.Name}
			v3[gv] = append(v3[gv], one)
			two, err := builder.BuildOpenAPIV2(d, v.Name, builder.Options{V2: true, IncludeSelectableFields: true})
			if err != nil {
				t.Fatal(err)
			}
			two.Definitions = handler.PruneDefaults(two.Definitions)
			v2 = append(v2, two)
		}
	}
	for gv, parts := range v3 {
		merged, err := builder.MergeSpecsV3(parts...)
		if err != nil {
			t.Fatal(err)
		}
		want, got := plain(t, merged), get(t, url+"/openapi/v3/apis/"+gv.Group+"/"+gv.Version)
		for _, doc := range []map[string]any{want, got} {
			forgetOptions(doc["components"].(map[string]any)["schemas"].(map[string]any))
		}
		if at := difference(got, want); at != "" {
			t.Errorf("%s: %s", gv, at)
		}
	}
	merged, err := builder.MergeSpecs(&spec.Swagger{SwaggerProps: spec.SwaggerProps{Swagger: "2.0", Info: v2[0].Info, Paths: &spec.Paths{}}}, v2...)
	if err != nil {
		t.Fatal(err)
	}
	want, got := plain(t, merged), get(t, url+"/openapi/v2")
	for part, value := range got {
		all, ok := value.(map[string]any)
		if !ok {
			continue
		}
		for name := range all { // the reference was not given the built-in resources
			if strings.Contains(name, "/apiextensions.k8s.io/") || strings.Contains(name, ".apiextensions-apiserver.") {
				delete(all, name)
			}
		}
		if part == "definitions" {
			forgetOptions(all)
			forgetOptions(want[part].(map[string]any))
		}
	}
	if at := difference(got, want); at != "" {
		t.Errorf("v2: %.2000s", at)
	}
	t.Logf("%d CRDs, %d documents", len(crds), len(v3)+1)
	if len(v3) < 20 {
		t.Error("too few documents")
	}
}

// TestKubectl asks what kubectl asks before it sends something, and for
// explanations.
func TestKubectl(t *testing.T) {
	crds := established(t)[:10]
	url := serve(t, crds)
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: url})
	if err != nil {
		t.Fatal(err)
	}
	for _, param := range []resource.VerifiableQueryParam{resource.QueryParamFieldValidation, "dryRun"} {
		verifiers := map[string]resource.Verifier{
			"v3": resource.NewQueryParamVerifierV3(nil, client.OpenAPIV3(), param),
			"v2": resource.NewQueryParamVerifier(nil, client, param),
		}
		for _, d := range crds {
			gvk := schema.GroupVersionKind{Group: d.Spec.Group, Version: d.Status.StoredVersions[0], Kind: d.Spec.Names.Kind}
			for name, v := range verifiers {
				if err := v.HasSupport(gvk); err != nil {
					t.Errorf("%s: %s of %s: %v", name, param, gvk, err)
				}
			}
		}
		crd := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
		for name, v := range verifiers {
			if err := v.HasSupport(crd); err != nil {
				t.Errorf("%s: %s of CRDs: %v", name, param, err)
			}
		}
	}
	for _, d := range crds {
		gvr := schema.GroupVersionResource{Group: d.Spec.Group, Version: d.Status.StoredVersions[0], Resource: d.Spec.Names.Plural}
		for _, path := range [][]string{nil, {"metadata"}, {"metadata", "ownerReferences"}} {
			var out bytes.Buffer
			if err := explain.PrintModelDescription(path, &out, client.OpenAPIV3(), gvr, false, 0, "plaintext"); err != nil {
				t.Errorf("explain %s %v: %v", gvr, path, err)
			}
			if want := fmt.Sprintf("KIND:       %s\n", d.Spec.Names.Kind); !strings.Contains(out.String(), want) {
				t.Errorf("explain %s: %.300s", gvr, out.String())
			}
		}
	}
}
