package catalog

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/object"
)

const rich = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",` +
	`"metadata":{"deletionTimestamp":"2026-01-02T03:04:05Z","finalizers":["a.example.com/b"],"generation":7,"name":"widgets.example.com","resourceVersion":"42","uid":"u-1"},` +
	`"spec":{"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://example.com/"},"conversionReviewVersions":["v1"]}},"group":"example.com",` +
	`"names":{"categories":["all"],"kind":"Widget","listKind":"WidgetList","plural":"widgets","shortNames":["w","wd"],"singular":"widget"},"scope":"Namespaced",` +
	`"versions":[` +
	`{"deprecated":true,"deprecationWarning":"use v2","name":"v1","schema":{"openAPIV3Schema":{"type":"object"}},"served":true,"storage":false,"subresources":{"status":{}}},` +
	`{"name":"v2","schema":{"openAPIV3Schema":{"properties":{"spec":{"type":"string"}},"type":"object"}},"selectableFields":[{"jsonPath":".spec"}],"served":true,"storage":true,"subresources":{"scale":{"specReplicasPath":".spec.r","statusReplicasPath":".status.r"}}}]},` +
	`"status":{"acceptedNames":{"kind":"Widget","listKind":"WidgetList","plural":"widgets","singular":"widget"},` +
	`"conditions":[{"lastTransitionTime":"2026-01-01T00:00:00Z","status":"True","type":"Established"},{"status":"True","type":"NamesAccepted"},{"status":"True","type":"Terminating"}],` +
	`"observedGeneration":6,"storedVersions":["v1","v2"]}}`

func entryOf(tb testing.TB, crdJSON string) *Entry {
	tb.Helper()
	o, err := object.FromJSON([]byte(crdJSON))
	if err != nil {
		tb.Fatal(err)
	}
	e, err := newEntry(o)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func TestEntry(t *testing.T) {
	e := entryOf(t, rich)
	want := &Entry{
		Name: "widgets.example.com", UID: "u-1", Generation: 7, ResourceVersion: "42", Revision: 42,
		Group: "example.com", Namespaced: true,
		Names:          Names{"widgets", "widget", "Widget", "WidgetList", []string{"w", "wd"}, []string{"all"}},
		Accepted:       Names{"widgets", "widget", "Widget", "WidgetList", nil, nil},
		StorageVersion: "v2", StoredVersions: []string{"v1", "v2"}, Conversion: "Webhook",
		NamesAccepted: true, Established: true, Terminating: true,
		EstablishedAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), ObservedGeneration: 6,
		Deleting: true, Finalizers: []string{"a.example.com/b"},
		Versions: []Version{
			{Name: "v1", Served: true, Deprecated: true, Status: true},
			{Name: "v2", Served: true, Storage: true, Scale: true, SelectableFields: true},
		},
	}
	got := *e
	got.SpecHash, got.packed, got.size = Hash{}, nil, 0
	got.Versions = append([]Version(nil), e.Versions...)
	for i := range got.Versions {
		v := &got.Versions[i]
		if v.Hash == (Hash{}) || v.SchemaHash == (Hash{}) || v.StorageHash == (Hash{}) {
			t.Errorf("version %s lacks a hash", v.Name)
		}
		v.Hash, v.SchemaHash, v.StorageHash = Hash{}, Hash{}, Hash{}
	}
	if !reflect.DeepEqual(&got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if data, err := e.JSON(); err != nil || !strings.Contains(string(data), `"jsonPath":".spec"`) {
		t.Errorf("JSON: %s, %v", data, err)
	}
	if d, err := e.CRD(); err != nil || d.Kind != "Widget" || string(d.Version("v1").Schema) != `{"type":"object"}` {
		t.Errorf("Definition: %+v, %v", d, err)
	}
	if e.Version("v2") != &e.Versions[1] || e.Version("v3") != nil {
		t.Error("Version finds the wrong one")
	}
}

func TestHashes(t *testing.T) {
	base := entryOf(t, rich)
	for _, test := range []struct {
		name, old, new                       string
		published, schema, storage, specHash bool // of v2, whether they change
	}{
		{"label", `"generation":7`, `"generation":7,"labels":{"a":"b"}`, false, false, false, false},
		{"resourceVersion", `"42"`, `"43"`, false, false, false, false},
		{"condition", `"status":"True","type":"Established"`, `"status":"False","type":"Established"`, false, false, false, false},
		{"schema", `{"spec":{"type":"string"}}`, `{"spec":{"type":"integer"}}`, true, true, false, true},
		{"another version's schema", `{"openAPIV3Schema":{"type":"object"}}`, `{"openAPIV3Schema":{"description":"d","type":"object"}}`, false, false, false, true},
		{"conversion", `"url":"https://example.com/"`, `"url":"https://example.org/"`, false, false, true, true},
		{"selectable fields", `".spec"}]`, `".spec"},{"jsonPath":".b"}]`, true, false, true, true},
		{"subresource", `".spec.r"`, `".spec.s"`, true, false, false, true},
		{"short name", `["w","wd"]`, `["w"]`, true, false, true, true},
		{"accepted name", `"acceptedNames":{"kind":"Widget"`, `"acceptedNames":{"kind":"Gadget"`, true, false, true, true},
		{"scope", `"Namespaced"`, `"Cluster"`, true, false, true, true},
		{"served", `"served":true,"storage":true`, `"served":false,"storage":true`, true, false, true, true},
		{"printer columns", `"name":"v2",`, `"additionalPrinterColumns":[{"jsonPath":".spec","name":"Spec","type":"string"}],"name":"v2",`, false, false, true, true},
		{"storage version", `"served":true,"storage":true`, `"served":true,"storage":false`, false, false, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if strings.Count(rich, test.old) != 1 {
				t.Fatalf("%s is not there once", test.old)
			}
			e := entryOf(t, strings.Replace(rich, test.old, test.new, 1))
			a, b := base.Version("v2"), e.Version("v2")
			for _, h := range []struct {
				name          string
				changed, want bool
			}{
				{"Hash", a.Hash != b.Hash, test.published},
				{"SchemaHash", a.SchemaHash != b.SchemaHash, test.schema},
				{"StorageHash", a.StorageHash != b.StorageHash, test.storage},
				{"SpecHash", base.SpecHash != e.SpecHash, test.specHash},
			} {
				if h.changed != h.want {
					t.Errorf("%s: changed is %v", h.name, h.changed)
				}
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	for _, crdJSON := range []string{
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","resourceVersion":"1"}}`,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a","resourceVersion":"x"}}`,
	} {
		o, err := object.FromJSON([]byte(crdJSON))
		if err != nil {
			t.Fatal(err)
		}
		if e, err := newEntry(o); err == nil {
			t.Errorf("%s became %+v", crdJSON, e)
		}
	}
}

func FuzzEntry(f *testing.F) {
	f.Add([]byte(rich))
	f.Add([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a","resourceVersion":"1"},"spec":[],"status":{"conditions":{},"acceptedNames":3}}`))
	f.Add([]byte(`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"resourceVersion":"1"},"spec":{"version":"v1","versions":null,"names":{"shortNames":[1,"a","a"]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := object.FromJSON(data)
		if err != nil {
			return
		}
		o.SetResourceVersion("9")
		e, err := newEntry(o)
		if err != nil {
			return
		}
		if unpacked, err := e.JSON(); err != nil || string(unpacked) != string(o.JSON()) {
			t.Errorf("unpacked %q, %v", unpacked, err)
		}
		// A change to the index and its undoing leave nothing.
		x := index{groups: map[string]*group{}}
		x.replace(nil, e)
		x.replace(e, nil)
		if len(x.groups) != 0 || x.count.Load() != 0 {
			t.Errorf("left behind: %v", x.groups)
		}
	})
}

// TestMemory holds what an entry takes against what the design promises for
// 10,000 CRDs of real size.
func TestMemory(t *testing.T) {
	var crds []string
	if archive := corpusFile(); archive != "" {
		crds = readCorpus(t, archive)
	} else {
		t.Log("no corpus of real CRDs: measuring generated ones")
		for i := range 50 {
			crds = append(crds, generated(i))
		}
	}
	raw := 0
	for _, d := range crds {
		raw += len(d)
	}
	pack([]byte(strings.Repeat(generated(0), 50))) // the packers have their tables before the count begins
	c := New(nil)
	before := heap()
	start := time.Now()
	for _, d := range crds {
		o, err := object.FromJSON([]byte(d)) // bytes of its own, which an entry must not keep
		if err != nil {
			t.Fatal(err)
		}
		o.SetResourceVersion("1")
		e, err := newEntry(o)
		if err != nil {
			t.Fatal(err)
		}
		c.put(e)
	}
	took := time.Since(start)
	n := uint64(c.Len())
	per := (heap() - before) / n
	runtime.KeepAlive(c)
	runtime.KeepAlive(crds)
	t.Logf("%d CRDs of %d bytes on average: %d bytes each, read in %v each", n, raw/len(crds), per, took/time.Duration(len(crds)))
	if per > 16<<10 {
		t.Errorf("an entry takes %d bytes, more than 16 KiB", per)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// corpusFile finds the archive of real CRDs beside the repository, or "" if there is none.
func corpusFile() string {
	path := os.Getenv("ESPALIER_CORPUS")
	if path == "" {
		path = "../../../shared/corpus/crds.tar.gz"
	}
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// readCorpus returns every twentieth CRD, which is enough for an average.
func readCorpus(t *testing.T, archive string) []string {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var crds []string
	files := tar.NewReader(z)
	for i := 0; ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return crds
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(h.Name, ".yaml") {
			continue
		}
		if i++; i%20 != 0 {
			continue
		}
		data, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), "kind: CustomResourceDefinition\n") {
			continue
		}
		doc, err := yaml.YAMLToJSON(data)
		if err != nil {
			continue // several documents in a file
		}
		crds = append(crds, string(doc))
	}
}

// generated is a CRD of about 43 KB with the repetitions that real ones have.
func generated(i int) string {
	var properties strings.Builder
	for p := range 170 {
		if p > 0 {
			properties.WriteByte(',')
		}
		fmt.Fprintf(&properties, `"field%03d":{"description":"Field %d of kind %d selects what the controller does when %x happens; see the documentation of the provider for its values.","properties":{"name%d":{"type":"string"}},"type":"object"}`, p, p, i, p*i*7919, p)
	}
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things%d.example.com","uid":"u%d"},`+
		`"spec":{"group":"example.com","names":{"kind":"Thing%d","listKind":"Thing%dList","plural":"things%d","singular":"thing%d"},"scope":"Cluster",`+
		`"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"properties":{%s},"type":"object"}},"served":true,"storage":true}]}}`, i, i, i, i, i, i, properties.String())
}
