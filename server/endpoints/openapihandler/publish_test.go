package openapihandler

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	openapiv3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"
	client "k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	protomodels "k8s.io/kube-openapi/pkg/util/proto"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog/fixtures"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

const (
	protobufV3 = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
	protobufV2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
)

// crdJSON returns an established CRD, with a schema for the spec
// in each of its versions.
func crdJSON(plural, group, spec string, versions ...string) string {
	singular := strings.TrimSuffix(plural, "s")
	kind := strings.ToUpper(singular[:1]) + singular[1:]
	names := fmt.Sprintf(`{"kind":%q,"listKind":%q,"plural":%q,"singular":%q}`, kind, kind+"List", plural, singular)
	var list []string
	for i, v := range versions {
		list = append(list, fmt.Sprintf(`{"name":%q,"schema":{"openAPIV3Schema":{"properties":{"spec":%s},"type":"object"}},"served":true,"storage":%t,`+
			`"subresources":{"scale":{"specReplicasPath":".spec.a","statusReplicasPath":".status.b"},"status":{}}}`, v, spec, i == 0))
	}
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.%[2]s","uid":"uid-%[1]s-%[2]s"},`+
		`"spec":{"conversion":{"strategy":"None"},"group":%[2]q,"names":%[3]s,"scope":"Namespaced","versions":[%[4]s]},`+
		`"status":{"acceptedNames":%[3]s,"conditions":[{"status":"True","type":"Established"}],"storedVersions":["v1"]}}`, plural, group, names, strings.Join(list, ","))
}

const (
	colored = `{"properties":{"color":{"default":"green","description":"of the leaves","type":"string"},"port":{"x-kubernetes-int-or-string":true},"root":{"nullable":true,"type":"string"}},"required":["color","root"],"type":"object"}`
	simple  = `{"type":"object"}`
)

// state is a site with a handler of this package.
type state struct {
	*fixtures.Server
	handler *Handler
}

func start(t testing.TB) *state {
	t.Helper()
	s := &state{Server: fixtures.Open(t)}
	s.handler = New(s.Catalog, APIExtensions()...)
	s.Serve(t, s.handler)
	return s
}

func samples(t testing.TB, s *state) {
	s.Create(t,
		crdJSON("trees", "orchard.example", colored, "v1", "v2"),
		crdJSON("apples", "orchard.example", simple, "v1"),
		crdJSON("clouds", "sky.example", colored, "v1alpha1"),
		strings.Replace(crdJSON("ghosts", "orchard.example", simple, "v3"), "Established", "NamesAccepted", 1),
	)
}

func (s *state) index(t testing.TB) map[string]handler3.OpenAPIV3DiscoveryGroupVersion {
	t.Helper()
	var index handler3.OpenAPIV3Discovery
	if err := json.Unmarshal(s.Do(t, "GET", "/openapi/v3").Content, &index); err != nil {
		t.Fatal(err)
	}
	return index.Paths
}

func TestIndex(t *testing.T) {
	s := start(t)
	s.Run(t)
	samples(t, s)
	index := s.index(t)
	want := []string{"apis/apiextensions.k8s.io/v1", "apis/apiextensions.k8s.io/v1beta1", "apis/orchard.example/v1", "apis/orchard.example/v2", "apis/sky.example/v1alpha1"}
	for _, path := range want {
		url := index[path].ServerRelativeURL
		if !strings.HasPrefix(url, "/openapi/v3/"+path+"?hash=") {
			t.Errorf("%s: %q", path, url)
			continue
		}
		got := s.Do(t, "GET", url)
		if got.StatusCode != http.StatusOK || got.Header.Get("Cache-Control") != "public, immutable" || got.Header.Get("Expires") == "" {
			t.Errorf("%s: %s %v", url, got.Status, got.Header)
		}
		tag := got.Header.Get("ETag")
		if `"`+strings.TrimPrefix(url, "/openapi/v3/"+path+"?hash=")+`"` != tag {
			t.Errorf("%s: tag %s", url, tag)
		}
		for _, method := range []string{"GET", "HEAD"} {
			if again := s.Do(t, method, url, "If-None-Match", tag); again.StatusCode != http.StatusNotModified || len(again.Content) > 0 {
				t.Errorf("%s: %s", url, again.Status)
			}
		}
		stale := s.Do(t, "GET", "/openapi/v3/"+path+"?hash=0123")
		if stale.StatusCode != http.StatusMovedPermanently || stale.Header.Get("Location") != url {
			t.Errorf("%s: %s to %s", path, stale.Status, stale.Header.Get("Location"))
		}
		if bare := s.Do(t, "GET", "/openapi/v3/"+path); bare.Header.Get("Cache-Control") != "" || !bytes.Equal(bare.Content, got.Content) {
			t.Errorf("%s without hash: %v", path, bare.Header)
		}
	}
	if len(index) != len(want) {
		t.Errorf("%d documents: %v", len(index), index)
	}
}

// TestHashes changes one CRD and looks which documents change.
func TestHashes(t *testing.T) {
	s := start(t)
	s.Run(t)
	samples(t, s)
	before, all := s.index(t), s.Do(t, "HEAD", "/openapi/v2").Header.Get("ETag")
	s.Settle(t, s.CRDs.Update(t, "clouds.sky.example", func(o *object.Object) {
		o.SetMember("spec", bytes.Replace(o.Member("spec"), []byte("of the leaves"), []byte("of the sky"), 1))
	}))
	after := s.index(t)
	for path := range after {
		if changed := before[path] != after[path]; changed != (path == "apis/sky.example/v1alpha1") {
			t.Errorf("%s: changed: %t", path, changed)
		}
	}
	if !bytes.Contains(s.Do(t, "GET", "/openapi/v3/apis/sky.example/v1alpha1").Content, []byte("of the sky")) {
		t.Error("the change is not published")
	}
	if all == s.Do(t, "HEAD", "/openapi/v2").Header.Get("ETag") {
		t.Error("v2: the tag is the same")
	}
	s.Settle(t, s.CRDs.Update(t, "clouds.sky.example", func(o *object.Object) {
		o.SetLabels(map[string]string{"a": "b"})
	}))
	if again := s.index(t); fmt.Sprint(again) != fmt.Sprint(after) {
		t.Error("a label changes documents")
	}
}

// TestRoot reads every document with client-go.
func TestRoot(t *testing.T) {
	s := start(t)
	s.Run(t)
	samples(t, s)
	c, err := client.NewDiscoveryClientForConfig(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	root := openapi3.NewRoot(c.OpenAPIV3())
	versions, err := root.GroupVersions()
	if err != nil || len(versions) != 5 {
		t.Fatalf("%v, %v", versions, err)
	}
	for _, gv := range versions {
		doc, err := root.GVSpec(gv)
		if err != nil {
			t.Fatalf("%s: %v", gv, err)
		}
		if len(doc.Components.Schemas) < 15 || len(doc.Paths.Paths) < 3 {
			t.Errorf("%s: %d schemas, %d paths", gv, len(doc.Components.Schemas), len(doc.Paths.Paths))
		}
		data, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		var all struct {
			Components struct{ Schemas map[string]any }
		}
		if err := json.Unmarshal(data, &all); err != nil {
			t.Fatal(err)
		}
		for ref := range references(data) {
			if all.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")] == nil {
				t.Errorf("%s: nothing at %s", gv, ref)
			}
		}
	}
	tree := mustSpec(t, root, schema.GroupVersion{Group: "orchard.example", Version: "v1"})
	if !strings.Contains(tree, `"example.orchard.v1.Tree"`) || !strings.Contains(tree, `"example.orchard.v1.Apple"`) || strings.Contains(tree, "Ghost") {
		t.Error("orchard.example/v1 has not the models of all its resources")
	}
}

func mustSpec(t *testing.T, root openapi3.Root, gv schema.GroupVersion) string {
	t.Helper()
	doc, err := root.GVSpecAsMap(gv)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// references returns what a document refers to.
func references(data []byte) map[string]bool {
	found := map[string]bool{}
	for _, part := range strings.Split(string(data), `"$ref":"`)[1:] {
		ref, _, _ := strings.Cut(part, `"`)
		found[ref] = true
	}
	return found
}

// TestProtobuf compares the messages of units, one after the other, with the
// message of the whole document.
func TestProtobuf(t *testing.T) {
	s := start(t)
	s.Run(t)
	samples(t, s)
	for _, path := range []string{"/openapi/v3/apis/orchard.example/v1", "/openapi/v3/apis/apiextensions.k8s.io/v1", "/openapi/v2"} {
		accept, convert := protobufV3, handler3.ToV3ProtoBinary
		if path == "/openapi/v2" {
			accept, convert = protobufV2, handler.ToProtoBinary
		}
		whole := s.Do(t, "GET", path)
		want, err := convert(whole.Content)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		got := s.Do(t, "GET", path, "Accept", accept)
		if contentType := strings.Replace(accept, "@", ".", 1); got.Header.Get("Content-Type") != contentType {
			t.Errorf("%s: Content-Type %q", path, got.Header.Get("Content-Type"))
		}
		if got.Header.Get("ETag") != whole.Header.Get("ETag") || got.Header.Values("Vary")[0] != "Accept" {
			t.Errorf("%s: %v", path, got.Header)
		}
		if a, b := message(t, accept, got.Content), message(t, accept, want); a != b {
			t.Errorf("%s: messages of %d and %d bytes differ", path, len(a), len(b))
		}
	}
}

func message(t *testing.T, accept string, data []byte) string {
	t.Helper()
	var d interface {
		proto.Message
		String() string
	} = &openapiv3.Document{}
	if accept == protobufV2 {
		d = &openapiv2.Document{}
	}
	if err := proto.Unmarshal(data, d); err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// TestV2 reads the document of all resources as kubectl does.
func TestV2(t *testing.T) {
	s := start(t)
	s.Run(t)
	samples(t, s)
	c, err := client.NewDiscoveryClientForConfig(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := c.OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	data, err := protomodels.NewOpenAPIData(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"example.orchard.v1.Tree", "example.orchard.v2.Tree", "example.orchard.v1.Apple", "example.sky.v1alpha1.Cloud", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"} {
		if data.LookupModel(name) == nil {
			t.Errorf("no model %s", name)
		}
	}
	got := s.Do(t, "GET", "/openapi/v2")
	var all struct {
		Definitions map[string]any
		Parameters  map[string]any
		Paths       map[string]any
	}
	if err := json.Unmarshal(got.Content, &all); err != nil {
		t.Fatal(err)
	}
	for ref := range references(got.Content) {
		if name, ok := strings.CutPrefix(ref, "#/definitions/"); ok && all.Definitions[name] != nil {
			continue
		}
		if name, ok := strings.CutPrefix(ref, "#/parameters/"); !ok || all.Parameters[name] == nil {
			t.Errorf("nothing at %s", ref)
		}
	}
	if len(all.Paths) != 4*5+2*3 {
		t.Errorf("%d paths", len(all.Paths))
	}
}

func TestErrors(t *testing.T) {
	s := start(t)
	for _, c := range []struct {
		method, path, accept string
		code                 int
	}{
		{"GET", "/openapi/v3", "", 503},
		{"GET", "/openapi/v2", "", 503},
		{"", "", "", 0},
		{"GET", "/openapi/v3", "", 200},
		{"GET", "/openapi/v3/", "", 200},
		{"HEAD", "/openapi/v2", "", 200},
		{"GET", "/openapi/v3/apis/no.example/v1", "", 404},
		{"GET", "/openapi/v3/apis/no.example", "", 404},
		{"GET", "/openapi/v3/apis//v1", "", 404},
		{"GET", "/openapi/v3/api/v1", "", 404},
		{"GET", "/openapi", "", 404},
		{"GET", "/openapi/v4", "", 404},
		{"POST", "/openapi/v2", "", 405},
		{"GET", "/openapi/v2", "text/html", 406},
		{"GET", "/openapi/v3/apis/apiextensions.k8s.io/v1", protobufV2, 406},
	} {
		if c.method == "" {
			s.Run(t)
			continue
		}
		if got := s.Do(t, c.method, c.path, "Accept", c.accept); got.StatusCode != c.code || c.code >= 400 && !bytes.Contains(got.Content, []byte(`"Status"`)) {
			t.Errorf("%s %s: %s %s", c.method, c.path, got.Status, got.Content)
		}
	}
}

// TestOddCRDs publishes CRDs that validation rejects, but that may be stored.
func TestOddCRDs(t *testing.T) {
	s := start(t)
	s.Run(t)
	s.Create(t,
		crdJSON("trees", "orchard.example", `{"type":"object","properties":{"a":{"type":"nonsense"}}}`, "v1"),
		crdJSON("tree", "orchard.example", simple, "v1"), // the same kind
		crdJSON("bushs", "orchard.example", `{"default":[[[1]]],"type":["object",5]}`, "v1"),
		crdJSON("scales", "autoscaling.api.k8s.io", simple, "v1"), // the model of a subresource
		crdJSON("customresourcedefinitions", "apiextensions.k8s.io", simple, "v1"),
	)
	for _, path := range []string{"/openapi/v3/apis/orchard.example/v1", "/openapi/v2"} {
		got := s.Do(t, "GET", path)
		unique(t, path, got.Content)
		if !bytes.Contains(got.Content, []byte(`"example.orchard.v1.Bush":{"type":"object"`)) || !bytes.Contains(got.Content, []byte(`"example.orchard.v1.Tree":{`)) {
			t.Errorf("%s: models are missing", path)
		}
		if accept := map[bool]string{true: protobufV2, false: protobufV3}[path == "/openapi/v2"]; len(s.Do(t, "GET", path, "Accept", accept).Content) == 0 {
			t.Errorf("%s: no protobuf", path)
		}
	}
}

// unique fails if an object in data has a name twice.
func unique(t *testing.T, path string, data []byte) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	var names []map[string]bool
	var isName []bool
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		last := len(isName) - 1
		switch v := token.(type) {
		case json.Delim:
			switch v {
			case '{', '[':
				names, isName = append(names, map[string]bool{}), append(isName, v == '{')
				continue
			default:
				names, isName = names[:last], isName[:last]
				last--
			}
		case string:
			if last >= 0 && isName[last] {
				if names[last][v] {
					t.Errorf("%s: %q is there twice", path, v)
				}
				names[last][v], isName[last] = true, false
				continue
			}
		}
		if last >= 0 && names[last] != nil && len(names[last]) > 0 {
			isName[last] = true
		}
	}
}

// TestEncodings asks for a document compressed and not, made and kept.
func TestEncodings(t *testing.T) {
	s := start(t)
	s.Run(t)
	samples(t, s)
	for _, first := range []string{"gzip", ""} {
		s.handler.cache = cache{}
		var bodies []string
		for _, encoding := range []string{first, "gzip", "", "gzip;q=0, identity", "br, gzip;q=0.5"} {
			got := s.Do(t, "GET", "/openapi/v3/apis/orchard.example/v1", "Accept-Encoding", encoding)
			body := got.Content
			if got.Header.Get("Content-Encoding") == "gzip" {
				unzip, err := gzip.NewReader(bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				if body, err = io.ReadAll(unzip); err != nil {
					t.Fatal(err)
				}
			}
			if zipped, want := got.Header.Get("Content-Encoding") == "gzip", strings.Contains(encoding, "gzip") && !strings.Contains(encoding, "q=0,"); zipped != want {
				t.Errorf("%q: compressed: %t", encoding, zipped)
			}
			bodies = append(bodies, string(body))
		}
		for _, b := range bodies {
			if b != bodies[0] || !json.Valid([]byte(b)) {
				t.Fatalf("bodies of %d and %d bytes", len(b), len(bodies[0]))
			}
		}
		if len(s.handler.cache.byName) != 1 {
			t.Errorf("%d documents are kept", len(s.handler.cache.byName))
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	var c cache
	for i := range 1000 {
		c.put(fmt.Sprint(i), hash{}, make([]byte, 100<<10))
	}
	c.put("large", hash{}, make([]byte, cacheLargest+1))
	if c.size > cacheSize || len(c.byName) != c.order.Len() || c.get("999", hash{}) == nil || c.get("0", hash{}) != nil || c.get("large", hash{}) != nil {
		t.Errorf("%d bytes, %d documents", c.size, c.order.Len())
	}
	c.put("999", hash{1}, make([]byte, 1))
	if c.get("999", hash{}) != nil || c.get("999", hash{1}) == nil || len(c.byName) != c.order.Len() {
		t.Error("a document is kept in two forms")
	}
	for e := c.order.Front(); e != nil; e = e.Next() {
		e.Value.(*kept).used = time.Now().Add(-cacheTime)
	}
	if c.sweep(); c.size != 0 || len(c.byName) != 0 || c.timer != nil {
		t.Errorf("%d bytes are kept that nobody asks for", c.size)
	}
}

// TestConcurrent asks while CRDs come and go.
func TestConcurrent(t *testing.T) {
	s := start(t)
	s.Run(t)
	samples(t, s)
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			for range 10 {
				path := []string{"/openapi/v2", "/openapi/v3", "/openapi/v3/apis/orchard.example/v1", "/openapi/v3/apis/apiextensions.k8s.io/v1"}[i]
				if got := s.Do(t, "GET", path); got.StatusCode != http.StatusOK || !json.Valid(got.Content) {
					t.Errorf("%s: %s", path, got.Status)
				}
			}
		})
	}
	for i := range 10 {
		name := fmt.Sprintf("birds%d", i)
		s.CRDs.Create(t, crdJSON(name, "orchard.example", colored, "v1"))
		s.CRDs.Delete(t, name+".orchard.example")
	}
	wait.Wait()
}
