package restmapping_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/server/catalog/restmapping"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/restmappingtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

func TestByKey(t *testing.T) {
	s := restmappingtest.Start(t, restmappingtest.Options{})
	s.Define(t, restmappingtest.CRD("widgets", "example.com", true))
	s.Define(t, restmappingtest.CRD("stars", "example.com", false))
	k := restmapping.New(s.Catalog, restmapping.CustomResourceDefinitions,
		restmapping.Kind{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true},
		restmapping.Kind{Resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"},
		restmapping.Kind{Resource: schema.GroupVersionResource{Version: "v1", Resource: "services"}, Kind: "Service", Namespaced: true, Prefix: "/services/specs"},
		restmapping.Kind{Resource: schema.GroupVersionResource{Group: "other.k8s.io", Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true})
	for key, want := range map[string]string{
		"/example.com/widgets/shop/a": "widgets.example.com shop/a", "/example.com/stars/a": "stars.example.com /a",
		"/configmaps/shop/a": "configmaps shop/a", "/namespaces/a": "namespaces /a", "/services/specs/shop/a": "services shop/a",
		"/apiextensions.k8s.io/customresourcedefinitions/a.b": "customresourcedefinitions.apiextensions.k8s.io /a.b",
		"": "", "/": "", "//": "", "/example.com": "", "/example.com/widgets": "", "/example.com/widgets/": "", "/example.com/widgets/a": "",
		"/example.com/widgets//a": "", "/example.com/widgets/shop/": "", "/example.com/widgets/shop/a/b": "", "/example.com/stars/shop/a": "",
		"/example.com/widget/shop/a": "", "/example.org/widgets/shop/a": "", "/configmaps/a": "", "/namespaces/a/b": "", "/services/endpoints/shop/a": "",
		"example.com/widgets/shop/a": "",
	} {
		got := ""
		if p, ok := k.ByKey(key); ok {
			got = p.Kind.String() + " " + p.Namespace + "/" + p.Name
			if back := p.Key(p.Namespace, p.Name); back != key {
				t.Errorf("%q becomes %q", key, back)
			}
		}
		if got != want {
			t.Errorf("%q is %q, not %q", key, got, want)
		}
	}
	if r := k.Resource("/example.org/unknown/a/b"); r.String() != "unknown.example.org" {
		t.Errorf("a resource nobody knows is %s", r)
	}
	for _, ref := range [][3]string{
		{"example.com/v1", "Widget", "widgets.example.com"}, {"example.com/v0gone", "Widget", "widgets.example.com"}, {"v1", "ConfigMap", "configmaps"},
		{"example.com/v1", "WidgetList", ""}, {"example.com/v1", "widget", ""}, {"a/b/c", "Widget", ""}, {"", "", ""},
	} {
		got := ""
		if kind, ok := k.ByOwner(ref[0], ref[1]); ok {
			got = kind.String()
		}
		if got != ref[2] {
			t.Errorf("%s %s is %q", ref[0], ref[1], got)
		}
	}
	mapper := restmapping.Mapper{Kinds: func() *restmapping.Kinds { return k }}
	for _, ref := range [][3]string{
		{"example.com/v1", "Widget", "widgets.example.com namespace"}, {"example.com/v1", "Star", "stars.example.com root"}, {"v1", "ConfigMap", "configmaps namespace"},
		{"example.com/v0gone", "Widget", ""}, {"example.com/v1", "WidgetList", ""}, {"v2", "ConfigMap", ""}, {"", "ConfigMap", ""}, {"", "", ""},
	} {
		got, gv := "", schema.FromAPIVersionAndKind(ref[0], ref[1])
		mappings, err := mapper.RESTMappings(gv.GroupKind(), gv.Version)
		if err == nil {
			got = mappings[0].Resource.GroupResource().String() + " " + string(mappings[0].Scope.Name())
		} else if !meta.IsNoMatchError(err) {
			t.Errorf("%s %s: %v", ref[0], ref[1], err)
		}
		if got != ref[2] {
			t.Errorf("%s %s is mapped to %q", ref[0], ref[1], got)
		}
	}
	if _, err := (restmapping.Mapper{Kinds: func() *restmapping.Kinds { return nil }}).RESTMapping(schema.GroupKind{Kind: "ConfigMap"}, "v1"); !meta.IsNoMatchError(err) {
		t.Errorf("before resources are known: %v", err)
	}
	namespaced := map[string]bool{}
	for kind := range k.Namespaced() {
		namespaced[kind.String()] = true
	}
	if len(namespaced) != 3 || !namespaced["widgets.example.com"] || !namespaced["services"] || !namespaced["configmaps"] {
		t.Errorf("with namespaces: %v", namespaced)
	}
}

// FuzzByKey has any key: what is found has that key.
func FuzzByKey(f *testing.F) {
	s := restmappingtest.Start(f, restmappingtest.Options{})
	s.Define(f, restmappingtest.CRD("widgets", "example.com", true))
	for _, key := range []string{"/example.com/widgets/shop/a", "/configmaps/shop/a", "/namespaces/a", "//", "/example.com/widgets//"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		s.Kinds.Resource(key)
		if p, ok := s.Kinds.ByKey(key); ok && p.Key(p.Namespace, p.Name) != key {
			t.Fatalf("%q is taken for %+v", key, p)
		}
	})
}
