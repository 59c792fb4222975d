package requests_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/conformance/mutate"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/server/crdinstall"
)

const group = "requests.example"

// generatedCRDs is how many CRDs mutate makes beside those of testdata.
const generatedCRDs = 14

//go:embed testdata/definitions.yaml
var handwritten []byte

// testCRD is a CRD in short form.
type testCRD struct {
	Kind     string          `json:"kind"`
	Cluster  bool            `json:"cluster"`
	Status   bool            `json:"status"`
	Scale    *scalePaths     `json:"scale"`
	Versions []version       `json:"versions"`
	Schema   json.RawMessage `json:"schema"` // of the versions that have none of their own

	olds []*stored
}

type scalePaths struct {
	Spec     string `json:"spec"`
	Status   string `json:"status"`
	Selector string `json:"selector"`
}

type version struct {
	Name       string          `json:"name"`
	Unserved   bool            `json:"unserved"`
	Storage    bool            `json:"storage"`
	Deprecated bool            `json:"deprecated"`
	Warning    *string         `json:"warning"`
	Schema     json.RawMessage `json:"schema"`

	plan *generate.Plan
}

func (d *testCRD) plural() string { return strings.ToLower(d.Kind) + "s" }

func (d *testCRD) apiVersion(v *version) string { return group + "/" + v.Name }

func (d *testCRD) served() []*version {
	var list []*version
	for i := range d.Versions {
		if !d.Versions[i].Unserved {
			list = append(list, &d.Versions[i])
		}
	}
	return list
}

func (d *testCRD) storage() *version {
	i := slices.IndexFunc(d.Versions, func(v version) bool { return v.Storage })
	return &d.Versions[i]
}

func (d *testCRD) version(name string) *version {
	for i := range d.Versions {
		if d.Versions[i].Name == name {
			return &d.Versions[i]
		}
	}
	return nil
}

// complete fills in what the short form leaves out, and prepares the writing of objects.
func (d *testCRD) complete() error {
	if len(d.Versions) == 0 {
		d.Versions = []version{{Name: "v1", Storage: true}}
	}
	for i := range d.Versions {
		v := &d.Versions[i]
		if v.Schema == nil {
			v.Schema = d.Schema
		}
		var err error
		if v.plan, err = generate.Compile(v.Schema); err != nil {
			return fmt.Errorf("reading the schema of %s failed: %w", d.Kind, err)
		}
	}
	return nil
}

// anything is a schema that lets everything be stored.
const anything = `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`

// crd is the whole CRD. A lax one has the same versions and subresources, and accepts every object: to test
// ratcheting, there must be stored objects that the strict CRD refuses.
func (d *testCRD) crd(lax bool) []byte {
	type object = map[string]any
	var versions []object
	for i := range d.Versions {
		v := &d.Versions[i]
		schema := v.Schema
		if lax {
			schema = json.RawMessage(anything)
		}
		one := object{"name": v.Name, "served": !v.Unserved, "storage": v.Storage, "schema": object{"openAPIV3Schema": schema}}
		if v.Deprecated {
			one["deprecated"] = true
		}
		if v.Warning != nil {
			one["deprecationWarning"] = *v.Warning
		}
		sub := object{}
		if d.Status {
			sub["status"] = object{}
		}
		if d.Scale != nil {
			scale := object{"specReplicasPath": d.Scale.Spec, "statusReplicasPath": d.Scale.Status}
			if d.Scale.Selector != "" {
				scale["labelSelectorPath"] = d.Scale.Selector
			}
			sub["scale"] = scale
		}
		one["subresources"] = sub
		versions = append(versions, one)
	}
	scope := "Namespaced"
	if d.Cluster {
		scope = "Cluster"
	}
	text, err := json.Marshal(object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": d.plural() + "." + group},
		"spec": object{"group": group, "scope": scope, "versions": versions,
			"names": object{"plural": d.plural(), "singular": strings.ToLower(d.Kind), "kind": d.Kind, "listKind": d.Kind + "List"}},
	})
	if err != nil {
		panic(err) // it is made of strings, booleans and JSON
	}
	return text
}

func (d *testCRD) install(lax bool) crdinstall.Definition {
	return crdinstall.Definition{Name: d.plural() + "." + group, Source: d.Kind, JSON: d.crd(lax)}
}

// numbers is a schema in which the form of numbers matters. YAML cannot tell 1.0 from 1.
const numbers = `{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{
"object":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"enum":[{"size":1.0},{"size":2}]},
"zero":{"type":"integer","enum":[-0,4]},"list":{"type":"array","items":{"type":"number"},"enum":[[1.0],[2.5]]}}}}}`

// canonical has numbers in a schema in the form in which servers store them: what the form of a number leads to is for
// the one schema above.
func canonical(schema []byte) []byte {
	doc, err := jsondoc.Parse(schema, jsondoc.Limits{})
	if err != nil {
		panic(err) // mutate writes JSON
	}
	defer doc.Release()
	return doc.AppendCanonical(nil, jsondoc.Root)
}

// testCRDs are those of testdata, and some that mutate grows out of their schemas.
func testCRDs(t *testing.T, seed uint64) []*testCRD {
	t.Helper()
	var all []*testCRD
	if err := yaml.UnmarshalStrict(handwritten, &all); err != nil {
		t.Fatal(err)
	}
	all = append(all, &testCRD{Kind: "Numbers", Schema: json.RawMessage(numbers)})
	pool := &mutate.Pool{}
	for _, d := range all {
		if err := d.complete(); err != nil {
			t.Fatal(err)
		}
		for i := range d.Versions {
			if err := pool.Add(d.Kind, d.Versions[i].Schema, 4); err != nil {
				t.Fatal(err)
			}
		}
		if fault := refusal(d); fault != "" {
			t.Fatalf("%s: %s", d.Kind, fault)
		}
	}
	want := len(all) + generatedCRDs
	for tried := uint64(0); len(all) < want; tried++ {
		if tried == 50*generatedCRDs {
			t.Fatalf("mutate makes too few CRDs: %d are missing", want-len(all))
		}
		d := &testCRD{
			Kind: fmt.Sprintf("Mutant%d", tried), Status: tried%3 != 0, Cluster: tried%7 == 3,
			Schema: canonical(pool.Enrich(seed<<16 + tried).Schema),
		}
		if err := d.complete(); err != nil {
			t.Fatal(err)
		}
		if refusal(d) == "" {
			all = append(all, d)
		}
	}
	return all
}

// refusal is why a server refuses the CRD, empty if it accepts it.
func refusal(d *testCRD) string {
	parsed, err := crd.Parse(d.crd(false))
	if err != nil {
		return err.Error()
	}
	defer parsed.Release()
	found, err := crd.Validate(parsed, crd.ValidateOptions{})
	if err != nil {
		return err.Error()
	}
	for _, f := range found {
		if f.Severity == finding.Error {
			return f.Error()
		}
	}
	return ""
}

// write has the CRD in a file, for the command line.
func (d *testCRD) write(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, d.Kind+".json")
	if err := os.WriteFile(path, d.crd(false), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
