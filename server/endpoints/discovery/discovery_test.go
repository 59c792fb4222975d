package discovery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	client "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/catalog/fixtures"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

const (
	asV2     = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	asV2beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)

// crdJSON returns a CRD with conditions, whose versions are given as JSON.
func crdJSON(plural, group, scope, versions string, conditions ...string) string {
	singular := strings.TrimSuffix(plural, "s")
	kind := strings.ToUpper(singular[:1]) + singular[1:]
	names := fmt.Sprintf(`{"categories":["all"],"kind":%q,"listKind":%q,"plural":%q,"shortNames":[%q],"singular":%q}`, kind, kind+"List", plural, plural[:2], singular)
	var status []string
	for _, c := range conditions {
		status = append(status, fmt.Sprintf(`{"status":"True","type":%q}`, c))
	}
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.%[2]s","uid":"uid-%[1]s-%[2]s"},`+
		`"spec":{"conversion":{"strategy":"None"},"group":%[2]q,"names":%[3]s,"scope":%[4]q,"versions":[%[5]s]},`+
		`"status":{"acceptedNames":%[3]s,"conditions":[%[6]s],"storedVersions":["v1"]}}`, plural, group, names, scope, versions, strings.Join(status, ","))
}

// versionOf is a version as JSON.
func versionOf(name, more string) string {
	return fmt.Sprintf(`{"name":%q,"schema":{"openAPIV3Schema":{"type":"object"}}%s}`, name, more)
}

const (
	stored = `,"served":true,"storage":true`
	served = `,"served":true,"storage":false`
	off    = `,"served":false,"storage":false`
	both   = `,"subresources":{"scale":{"specReplicasPath":".spec.a","statusReplicasPath":".status.b"},"status":{}}`
)

// state is a site with a handler of this package.
type state struct {
	*fixtures.Server
	handler *Handler
}

func start(t testing.TB) *state {
	t.Helper()
	s := &state{Server: fixtures.Open(t)}
	s.handler = New(s.Catalog, APIExtensions())
	s.Serve(t, s.handler)
	return s
}

func samples(t *testing.T, s *state) {
	s.Create(t,
		crdJSON("trees", "orchard.example", "Namespaced", versionOf("v1", stored+both)+","+versionOf("v2", served)+","+versionOf("v1beta1", served)+","+versionOf("v0", off), "Established", "NamesAccepted"),
		crdJSON("apples", "orchard.example", "Cluster", versionOf("v1", stored+`,"subresources":{"status":{}}`), "Established", "Terminating"),
		crdJSON("clouds", "a.example", "Cluster", versionOf("v1alpha1", `,"served":false,"storage":true`)+","+versionOf("v10", served), "Established"),
		crdJSON("hidden", "hidden.example", "Cluster", versionOf("v1", stored), "NamesAccepted"),
		crdJSON("offs", "off.example", "Cluster", versionOf("v1", `,"served":false,"storage":true`), "Established"),
	)
}

func TestResources(t *testing.T) {
	s := start(t)
	s.Run(t)
	samples(t, s)
	for _, c := range []struct{ path, want string }{
		{"/apis/orchard.example", `{"kind":"APIGroup","apiVersion":"v1","name":"orchard.example","versions":[{"groupVersion":"orchard.example/v2","version":"v2"},{"groupVersion":"orchard.example/v1","version":"v1"},{"groupVersion":"orchard.example/v1beta1","version":"v1beta1"}],"preferredVersion":{"groupVersion":"orchard.example/v2","version":"v2"}}`},
		{"/apis/orchard.example/v1", `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"orchard.example/v1","resources":[` +
			`{"name":"apples","singularName":"apple","namespaced":false,"kind":"Apple","verbs":["delete","deletecollection","get","list","watch"],"shortNames":["ap"],"categories":["all"],"storageVersionHash":"Jh1yImmQgIs="},` +
			`{"name":"apples/status","singularName":"","namespaced":false,"kind":"Apple","verbs":["get","patch","update"]},` +
			`{"name":"trees","singularName":"tree","namespaced":true,"kind":"Tree","verbs":["delete","deletecollection","get","list","patch","create","update","watch"],"shortNames":["tr"],"categories":["all"],"storageVersionHash":"xvjiIJnrQTU="},` +
			`{"name":"trees/status","singularName":"","namespaced":true,"kind":"Tree","verbs":["get","patch","update"]},` +
			`{"name":"trees/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","patch","update"]}]}`},
		{"/apis/a.example/v10", `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"a.example/v10","resources":[{"name":"clouds","singularName":"cloud","namespaced":false,"kind":"Cloud","verbs":["delete","deletecollection","get","list","patch","create","update","watch"],"shortNames":["cl"],"categories":["all"]}]}`},
		{"/api", `{"kind":"APIVersions","versions":[],"serverAddressByClientCIDRs":[]}`},
		{"/apis/", `{"kind":"APIGroupList","apiVersion":"v1","groups":[` +
			`{"name":"apiextensions.k8s.io","versions":[{"groupVersion":"apiextensions.k8s.io/v1","version":"v1"},{"groupVersion":"apiextensions.k8s.io/v1beta1","version":"v1beta1"}],"preferredVersion":{"groupVersion":"apiextensions.k8s.io/v1","version":"v1"}},` +
			`{"name":"a.example","versions":[{"groupVersion":"a.example/v10","version":"v10"}],"preferredVersion":{"groupVersion":"a.example/v10","version":"v10"}},` +
			`{"name":"orchard.example","versions":[{"groupVersion":"orchard.example/v2","version":"v2"},{"groupVersion":"orchard.example/v1","version":"v1"},{"groupVersion":"orchard.example/v1beta1","version":"v1beta1"}],"preferredVersion":{"groupVersion":"orchard.example/v2","version":"v2"}}]}`},
	} {
		got := s.Do(t, "GET", c.path)
		if got.StatusCode != http.StatusOK || got.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s, %s", c.path, got.Status, got.Header.Get("Content-Type"))
		}
		if g := strings.TrimSpace(string(got.Content)); g != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.path, g, c.want)
		}
	}
}

// TestAsUpstream compares the aggregated document with the one of the manager
// in k8s.io/apiserver, byte for byte.
func TestAsUpstream(t *testing.T) {
	s := start(t)
	s.Run(t)
	samples(t, s)
	manager := aggregated.NewResourceManager("apis")
	add := func(source aggregated.Source, g Group, groupPriority, versionPriority int) {
		for _, v := range g.aggregated().Versions {
			m := manager.WithSource(source)
			m.AddGroupVersion(g.Name, v)
			m.SetGroupVersionPriority(metav1.GroupVersion{Group: g.Name, Version: v.Version}, groupPriority, versionPriority)
		}
	}
	for _, name := range s.Catalog.Groups() {
		if g, ok := s.handler.group(name, s.Catalog.Group(name)); ok {
			add(aggregated.CRDSource, g, 1000, 100)
		}
	}
	add(aggregated.BuiltinSource, APIExtensions(), 16700, 15)
	beta := s.Do(t, "GET", "/apis", "Accept", asV2beta) // which other servers no longer have
	if want := strings.Replace(string(s.Do(t, "GET", "/apis", "Accept", asV2).Content), "k8s.io/v2", "k8s.io/v2beta1", 1); string(beta.Content) != want || beta.Header.Get("Content-Type") != asV2beta {
		t.Errorf("v2beta1: %s %s", beta.Header.Get("Content-Type"), beta.Content)
	}
	for _, accept := range []string{asV2, strings.Replace(asV2, "/json", "/yaml", 1), strings.Replace(asV2, "/json", "/vnd.kubernetes.protobuf", 1), "application/xml," + asV2} {
		want := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodGet, "/apis", nil)
		req.Header.Set("Accept", accept)
		manager.ServeHTTP(want, req)
		got := s.Do(t, "GET", "/apis", "Accept", accept)
		if !bytes.Equal(got.Content, want.Body.Bytes()) {
			t.Errorf("%s:\n got %s\nwant %s", accept, got.Content, want.Body)
		}
		for _, name := range []string{"Content-Type", "Vary", "Cache-Control"} {
			if g, w := got.Header.Get(name), want.Header().Get(name); g != w {
				t.Errorf("%s: %s is %q, want %q", accept, name, g, w)
			}
		}
	}
}

func TestClientGo(t *testing.T) {
	s := start(t)
	s.Run(t)
	samples(t, s)
	var seen [2]string
	for i, legacy := range []bool{false, true} {
		c, err := client.NewDiscoveryClientForConfig(&rest.Config{Host: s.URL})
		if err != nil {
			t.Fatal(err)
		}
		c.UseLegacyDiscovery = legacy
		groups, lists, err := c.ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		// From /api without versions, the client makes a group without versions.
		groups = slices.DeleteFunc(groups, func(g *metav1.APIGroup) bool { return g.Name == "" && len(g.Versions) == 0 })
		if len(groups) != 3 || len(lists) != 6 {
			t.Errorf("legacy %t: %d groups, %d versions", legacy, len(groups), len(lists))
		}
		var lines []string
		for _, l := range lists {
			for _, r := range l.APIResources {
				lines = append(lines, fmt.Sprintln(l.GroupVersion, r.Name, r.Kind, r.Namespaced, r.Verbs, r.ShortNames, r.Categories))
			}
		}
		slices.Sort(lines)
		seen[i] = strings.Join(lines, "")
	}
	if seen[0] != seen[1] || !strings.Contains(seen[0], "orchard.example/v1 trees/scale Scale true") {
		t.Errorf("aggregated:\n%s\nlegacy:\n%s", seen[0], seen[1])
	}
}

// TestChanges looks for a CRD right after the catalog has seen it.
func TestChanges(t *testing.T) {
	s := start(t)
	s.Run(t)
	tags := map[string]bool{}
	look := func(want bool) {
		t.Helper()
		got := s.Do(t, "GET", "/apis", "Accept", asV2)
		if has := bytes.Contains(got.Content, []byte(`"resource":"trees"`)); has != want {
			t.Fatalf("listed: %t, want %t", has, want)
		}
		tag := got.Header.Get("ETag")
		for _, path := range []string{"/apis", "/apis/apiextensions.k8s.io/v1", "/api"} {
			tag := s.Do(t, "GET", path, "Accept", asV2+",application/json").Header.Get("ETag")
			for _, method := range []string{"GET", "HEAD"} {
				again := s.Do(t, method, path, "Accept", asV2+",application/json", "If-None-Match", `"other", W/`+tag)
				if again.StatusCode != http.StatusNotModified || len(again.Content) > 0 {
					t.Errorf("%s %s: %s", method, path, again.Status)
				}
			}
		}
		tags[tag] = true
		code := s.Do(t, "GET", "/apis/orchard.example/v1").StatusCode
		if (code == http.StatusOK) != want || !want && code != http.StatusNotFound {
			t.Errorf("/apis/orchard.example/v1: %d", code)
		}
	}
	look(false)
	s.Create(t, crdJSON("trees", "orchard.example", "Namespaced", versionOf("v1", stored)))
	look(false)
	s.Settle(t, s.CRDs.Update(t, "trees.orchard.example", func(o *object.Object) {
		o.SetMember("status", bytes.Replace(o.Member("status"), []byte(`"conditions":[]`), []byte(`"conditions":[{"status":"True","type":"Established"}]`), 1))
	}))
	look(true)
	s.CRDs.Delete(t, "trees.orchard.example")
	s.Create(t, crdJSON("others", "orchard.example", "Namespaced", versionOf("v2", stored), "Established"))
	look(false)
	if len(tags) != 3 {
		t.Errorf("%d tags for three states", len(tags))
	}
}

func TestErrors(t *testing.T) {
	s := start(t)
	for _, c := range []struct {
		method, path, accept string
		code                 int
		text                 string
	}{
		{"GET", "/apis", "", 503, "please try again"},
		{"GET", "/apis/orchard.example/v1", "", 503, "please try again"},
		{"GET", "/apis/apiextensions.k8s.io/v1", "", 200, "customresourcedefinitions/status"},
		{"GET", "/api", "", 200, "APIVersions"},
		{"", "", "", 0, ""},
		{"GET", "/apis", "", 200, "apiextensions.k8s.io"},
		{"GET", "/apis/no.example", "", 404, "the server could not find the requested resource"},
		{"GET", "/apis/no.example/v1", "", 404, "the server could not find the requested resource"},
		{"GET", "/apis/apiextensions.k8s.io/v2", "", 404, "the server could not find the requested resource"},
		{"GET", "/apis/a/b/c", "", 404, "the server could not find the requested resource"},
		{"GET", "/apis//v1", "", 404, "the server could not find the requested resource"},
		{"GET", "/api/v1", "", 404, "the server could not find the requested resource"},
		{"POST", "/apis", "", 405, "the server does not allow this method on the requested resource"},
		{"GET", "/apis", "text/html", 406, "only the following media types are accepted"},
		{"GET", "/apis?pretty=1", "", 200, "\n  \"apiVersion\""},
		{"GET", "/apis", "application/yaml", 200, "kind: APIGroupList"},
		{"GET", "/api", asV2, 200, `"items":[]`},
	} {
		if c.method == "" {
			s.Run(t)
			continue
		}
		got := s.Do(t, c.method, c.path, "Accept", c.accept)
		if got.StatusCode != c.code || !strings.Contains(string(got.Content), c.text) {
			t.Errorf("%s %s: %s %s, want %d %s", c.method, c.path, got.Status, got.Content, c.code, c.text)
		}
		if c.code >= 400 {
			var status metav1.Status
			if err := json.Unmarshal(got.Content, &status); err != nil || status.Kind != "Status" || int(status.Code) != c.code {
				t.Errorf("%s %s: %s: %v", c.method, c.path, got.Content, err)
			}
		}
	}
}

// A group whose CRD cannot be decoded does not count as a group that does not exist.
func TestUnknown(t *testing.T) {
	s := start(t)
	key := s.CRDs.Prefix + catalog.Key + "/widgets.lost.example"
	if _, err := s.CRDs.Client.Put(t.Context(), key, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"widgets.lost.example"}}`); err != nil {
		t.Fatal(err)
	}
	s.Run(t)
	for path, code := range map[string]int{"/apis/lost.example": 503, "/apis/lost.example/v1": 503, "/apis/no.example": 404, "/apis/no.example/v1": 404, "/apis": 200} {
		got := s.Do(t, "GET", path)
		if got.StatusCode != code || (code == 503) != strings.Contains(string(got.Content), "the CustomResourceDefinition widgets.lost.example is in etcd and cannot be read") {
			t.Errorf("%s: %s %s", path, got.Status, got.Content)
		}
	}
}

// TestBuiltIn has a core group, and a custom resource in a group that is built in.
func TestBuiltIn(t *testing.T) {
	s := start(t)
	core := Group{Versions: []Version{{Name: "v1", Resources: []Resource{{Name: "namespaces", Singular: "namespace", Kind: "Namespace", Verbs: []string{"get"}}}}}}
	s.handler = New(s.Catalog, APIExtensions(), core)
	server := httptest.NewServer(s.handler)
	defer server.Close()
	s.URL = server.URL
	s.Run(t)
	s.Create(t, crdJSON("things", "apiextensions.k8s.io", "Cluster", versionOf("v1", stored)+","+versionOf("v2", served), "Established"))
	c, err := client.NewDiscoveryClientForConfig(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	for _, legacy := range []bool{false, true} {
		c.UseLegacyDiscovery = legacy
		_, lists, err := c.ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, l := range lists {
			for _, r := range l.APIResources {
				found[l.GroupVersion] += r.Name + " "
			}
		}
		if found["v1"] != "namespaces " || found["apiextensions.k8s.io/v2"] != "things " || strings.Contains(found["apiextensions.k8s.io/v1"], "things") {
			t.Errorf("legacy %t: %v", legacy, found)
		}
	}
}

// TestMany measures what CRDs cost, and how soon one more is seen.
func TestMany(t *testing.T) {
	const many = 1000
	s := start(t)
	var wait sync.WaitGroup
	for w := range 10 {
		wait.Go(func() {
			for i := w; i < many; i += 10 {
				s.CRDs.Create(t, crdJSON(fmt.Sprintf("trees%d", i), fmt.Sprintf("g%d.orchard.example", i), "Namespaced", versionOf("v1", stored+both), "Established"))
			}
		})
	}
	wait.Wait()
	s.Run(t)
	first := s.handler.listing()
	size := 0
	for _, f := range first.fragments {
		size += int(unsafe.Sizeof(*f)) + cap(f.aggregated) + cap(f.versions)*int(unsafe.Sizeof(""))
	}
	if size /= many; size > 1000 {
		t.Errorf("%d bytes per CRD", size)
	}
	t.Logf("%d bytes per CRD", size)
	s.Create(t, crdJSON("more", "more.example", "Cluster", versionOf("v1", stored), "Established"))
	begin := time.Now()
	all := s.handler.listing()
	t.Logf("one more after %v", time.Since(begin))
	if len(first.fragments) != many+1 || len(all.fragments) != many+2 || all.fragments[1] != first.fragments[1] {
		t.Errorf("%d, then %d groups", len(first.fragments), len(all.fragments))
	}
	got := s.Do(t, "GET", "/apis", "Accept", asV2, "Accept-Encoding", "gzip")
	if got.Header.Get("Content-Encoding") != "gzip" || got.Header.Get("Vary") != "Accept" {
		t.Errorf("%v", got.Header)
	}
	var list apidiscovery.APIGroupDiscoveryList
	plain := s.Do(t, "GET", "/apis", "Accept", asV2)
	if err := json.Unmarshal(plain.Content, &list); err != nil || len(list.Items) != many+2 {
		t.Errorf("%d items, %v", len(list.Items), err)
	}
}
