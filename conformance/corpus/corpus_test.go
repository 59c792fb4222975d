package corpus

import (
	"strings"
	"testing"
)

const twoVersions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pears.orchard.example}
spec:
  versions:
  - name: v1
    schema: {openAPIV3Schema: {type: object, properties: {b: {type: string}, a: {type: integer, maximum: 4294967296}}}}
    subresources: {status: {}}
  - name: v2
    schema: {openAPIV3Schema: {type: object}}
`

func TestConvertReadsEveryVersion(t *testing.T) {
	p := convertAll("test", []document{
		{"a.yaml", []byte("---\nkind: Deployment\n---" + twoVersions)},
		{"again.yaml", []byte("# the same, formatted otherwise" + twoVersions)},
		{"template.yaml", []byte("kind: CustomResourceDefinition\nname: {{ .Values.x }}\n  bad: [")},
		{"other.yaml", []byte("kind: Policy\nspec: CustomResourceDefinition\n")},
	})
	if p.source.CRDs != 1 || p.source.Versions != 2 || p.source.Unparsed != 1 {
		t.Fatalf("%+v", p.source)
	}
	want := `{"properties":{"a":{"maximum":4294967296,"type":"integer"},"b":{"type":"string"}},"type":"object"}`
	if got := string(p.entries[0].JSON); got != want {
		t.Errorf("schema %s, want %s", got, want)
	}
	if !p.entries[0].Status || p.entries[1].Status {
		t.Error("the status subresource belongs to v1 only")
	}
}

func TestConvertReadsV1beta1(t *testing.T) {
	p := convertAll("test", []document{{"b.yaml", []byte(`
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: plums.orchard.example}
spec: {version: v1, validation: {openAPIV3Schema: {type: object}}, subresources: {status: {}}}
`)}})
	if len(p.entries) != 1 || p.entries[0].Name != "plums.orchard.example/v1" || !p.entries[0].Status {
		t.Fatalf("%+v", p.entries)
	}
}

func TestMergeFoldsEqualSchemas(t *testing.T) {
	a := &part{source: Source{Name: "a", CRDs: 1, Versions: 2}, entries: []entry{{Name: "x/v1", JSON: []byte(`{}`)}, {Name: "x/v2", JSON: []byte(`{}`), Status: true}}}
	set := merge([]*part{a, a})
	if len(set.Schemas) != 1 || set.Schemas[0].Copies != 4 || !set.Schemas[0].Status || set.Versions != 4 || set.Total != 2 {
		t.Fatalf("%+v", set)
	}
}

func TestMergeKeepsDistinctCRDs(t *testing.T) {
	beta := strings.ReplaceAll(twoVersions, "k8s.io/v1", "k8s.io/v1beta1")
	p := convertAll("test", []document{{"a.yaml", []byte(twoVersions + "---" + beta)}})
	set := merge([]*part{p, p})
	if len(set.CRDs) != 1 || set.CRDs[0].Name != "pears.orchard.example" || !strings.HasPrefix(string(set.CRDs[0].JSON), `{"apiVersion":`) {
		t.Fatalf("%+v", set.CRDs)
	}
}

func TestCacheRoundTrip(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	p := convertAll("test", []document{{"a.yaml", []byte(twoVersions)}})
	if err := writeCache("module-a/b@v1", p); err != nil {
		t.Fatal(err)
	}
	q, ok := readCache("module-a/b@v1", Options{})
	if !ok || q.source.CRDs != 1 || q.source.Versions != 2 || string(q.entries[0].JSON) != string(p.entries[0].JSON) ||
		string(q.entries[0].CRD) != string(p.entries[0].CRD) || q.entries[1].CRD != nil {
		t.Fatalf("%v %+v", ok, q)
	}
	if _, ok := readCache("module-a/b@v1", Options{NoCache: true}); ok {
		t.Error("NoCache must not read the cache")
	}
}

func TestManifest(t *testing.T) {
	all, short := Modules(false), Modules(true)
	if len(short) == 0 || len(short) >= len(all) {
		t.Errorf("%d of %d modules are short", len(short), len(all))
	}
	for _, m := range all {
		if !strings.Contains(m, "@v") {
			t.Errorf("%s is not pinned", m)
		}
	}
}

func TestSeedsNeedNoArchive(t *testing.T) {
	set, err := Load(t.Context(), Options{NoModules: true, NoArchive: true, Seeds: true})
	if err != nil {
		t.Fatal(err)
	}
	seeds, err := Seeds()
	if err != nil || len(seeds) < 10 || len(set.Schemas) != len(seeds) || len(set.CRDs) != len(seeds) || set.Versions != 2*len(seeds) || set.Unparsed() > 0 || set.WithRules == 0 {
		t.Errorf("%d seeds, %d schemas, %d CRDs with %d versions, %d unparsed: %v", len(seeds), len(set.Schemas), len(set.CRDs), set.Versions, set.Unparsed(), err)
	}
	if _, err := Load(t.Context(), Options{NoModules: true, NoArchive: true}); err == nil {
		t.Error("no source is no error")
	}
}
