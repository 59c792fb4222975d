package customresource

import (
	"errors"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/server/controllers/migration"
)

const crates = `
metadata: {}
spec:
  group: example.com
  scope: SCOPE
  names: {kind: Crate, plural: crates}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}}}
  - {name: v0, served: false, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}}}
`

// A migration stores objects as a write that changes nothing would. It leaves alone those that
// are stored like that, and names those that are not the object of their key.
func TestRewrittenObjects(t *testing.T) {
	e := start(t)
	crate := func(version, metadata, spec string) string {
		return `{"apiVersion":"example.com/` + version + `","kind":"Crate","metadata":{"generation":1,` + metadata + `},"spec":{` + spec + `}}` + "\n"
	}
	entry := func(versions ...string) string { // of managed fields
		for i, v := range versions {
			versions[i] = `{"apiVersion":"` + v + `","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}},"manager":"m` + v + `","operation":"Update"}`
		}
		return `"managedFields":[` + strings.Join(versions, ",") + `],`
	}
	const inN, alone = `"name":"one","namespace":"n"`, `"name":"one"`
	type test struct{ name, key, from, to, version, fails string }
	for _, of := range []struct {
		scope string
		tests []test
	}{
		{"Namespaced", []test{
			{"as it would be written", "n/one", crate("v1", inN, `"a":"b"`), "", "v1", ""},
			{"in another version", "n/one", crate("v0", inN, `"a":"b"`), crate("v1", inN, `"a":"b"`), "v0", ""},
			{"in another version, with a field that is pruned", "n/one", crate("v0", inN, `"a":"b","x":1`), crate("v1", inN, `"a":"b"`), "v0", ""},
			{"another one in another version", "n/one", crate("v0", inN, `"a":"c"`), crate("v1", inN, `"a":"c"`), "v0", ""},
			{"fields of versions that exist", "n/one", crate("v1", entry("example.com/v0", "example.com/v1")+inN, ""), "", "v1", ""},
			{"fields of versions of other groups", "n/one", crate("v1", entry("example.org/v9", "v9")+inN, ""), "", "v1", ""},
			{"fields of a version that is gone", "n/one", crate("v1", entry("example.com/v1", "example.com/v9", "example.org/v9")+inN, ""), crate("v1", entry("example.com/v1", "example.org/v9")+inN, ""), "v1", ""},
			{"fields of a version that is gone, in another version", "n/one", crate("v0", entry("example.com/v9")+inN, ""), crate("v1", inN, ""), "v0", ""},
			{"a manager that is called like a version", "n/one", crate("v1", `"managedFields":[{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:x":{"k:{\"apiVersion\":\"example.com/v9\"}":{}}},"manager":"m","operation":"Update"}],`+inN, ""), "", "v1", ""},
			{"another kind", "n/one", strings.Replace(crate("v1", inN, ""), "Crate", "Box", 1), "", "", `it is of kind "Box", not "Crate"`},
			{"another name", "n/two", crate("v1", inN, ""), "", "", `its name is "n/one", which differs from the key`},
			{"another namespace", "o/one", crate("v0", inN, ""), "", "", `its name is "n/one", which differs from the key`},
			{"no JSON", "n/one", "{", "", "", "unexpected end"},
		}},
		{"Cluster", []test{
			{"as it would be written", "one", crate("v1", alone, ""), "", "v1", ""},
			{"in another version", "one", crate("v0", alone, ""), crate("v1", alone, ""), "v0", ""},
			{"with a namespace", "one", crate("v1", inN, ""), "", "", "it has a namespace, which objects of a cluster-scoped resource do not have"},
			{"another name", "two", crate("v1", alone, ""), "", "", `its name is "one", which differs from the key`},
		}},
	} {
		scope, tests := of.scope, of.tests
		e.define(strings.Replace(crates, "SCOPE", scope, 1), func(d map[string]any) { d["metadata"].(map[string]any)["uid"] = "uid-" + scope })
		m := e.server.Migration(e.catalog.Get("crates.example.com"))
		if m.Folder != "/example.com/crates" || m.Requirement == nil || !m.Current([]byte(tests[0].from)) || m.Current([]byte(tests[1].from)) {
			t.Errorf("%s: %+v", scope, m)
		}
		var values []migration.Value
		for _, one := range tests {
			values = append(values, migration.Value{Name: one.key, Data: []byte(one.from)})
		}
		got, err := m.Rewrite(t.Context(), values)
		if err != nil || len(got) != len(tests) {
			t.Fatal(scope, got, err)
		}
		for i, one := range tests {
			if one.fails != "" {
				if got[i].Err == nil || !strings.Contains(got[i].Err.Error(), one.fails) || got[i].Data != nil {
					t.Errorf("%s, %s: %s, %v", scope, one.name, got[i].Data, got[i].Err)
				}
				continue
			}
			if string(got[i].Data) != one.to || got[i].Version != one.version || got[i].Err != nil {
				t.Errorf("%s, %s: %s of version %s, %v, not %s", scope, one.name, got[i].Data, got[i].Version, got[i].Err, one.to)
			}
		}
	}
	// The CRD has changed since the migration began.
	before := e.server.Migration(e.catalog.Get("crates.example.com"))
	e.define(strings.NewReplacer("SCOPE", "Cluster", "type: string", "type: integer").Replace(crates), func(d map[string]any) {
		d["metadata"].(map[string]any)["uid"], d["metadata"].(map[string]any)["generation"] = "uid-Cluster", 2
	})
	if got, err := e.server.Migration(e.catalog.Get("crates.example.com")).Rewrite(t.Context(), nil); err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := before.Rewrite(t.Context(), []migration.Value{{Name: "one", Data: []byte(crate("v1", alone, ""))}}); !errors.Is(err, migration.ErrChanged) {
		t.Errorf("%v, %v", got, err)
	}
}

// Whether a value is in a version is known also if it is not canonical.
func TestStoredIn(t *testing.T) {
	in := storedIn("example.com/v1")
	for text, want := range map[string]bool{
		`{"apiVersion":"example.com/v1","kind":"Crate"}`:          true,
		`{"kind":"Crate","apiVersion":"example.com/v1"}`:          true,
		`{"apiVersion":"example.com/v10","kind":"Crate"}`:         false,
		`{"apiVersion":"example.com/v2","kind":"example.com/v1"}`: false,
		`{"kind":"Crate","spec":{"apiVersion":"example.com/v1"}}`: false,
		``: false,
	} {
		if in([]byte(text)) != want {
			t.Errorf("%s: %t", text, !want)
		}
	}
}
