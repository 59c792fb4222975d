package migration_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-dev/espalier/server/controllers/migration"
)

// A migration rewrites the objects in the storage version and nothing else of them, and
// trims storedVersions.
func TestMigrate(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.define()
	e.fill(1000)
	e.storeIn("v1")
	current := widget("v1", "w000007", 7)
	if _, err := e.etcd.Put(t.Context(), e.key("w000007"), current); err != nil {
		t.Fatal(err)
	}
	before := e.values()
	if got := strings.Join(e.storedVersions(), " "); got != "v1alpha1 v1" {
		t.Fatalf("storedVersions before: %s", got)
	}
	e.migrate("widgets", nil)
	m := e.await("widgets", "Succeeded")
	after := e.values()
	if len(after) != len(before) {
		t.Fatalf("%d objects, want %d", len(after), len(before))
	}
	for name, was := range before {
		is := after[name]
		if want := strings.Replace(was.data, "/v1alpha1", "/v1", 1); is.data != want {
			t.Fatalf("%s:\n%s, want\n%s", name, is.data, want)
		}
		if (is.revision == was.revision) != (name == "w000007") {
			t.Errorf("%s: revision %d, was %d", name, is.revision, was.revision)
		}
	}
	if got := strings.Join(e.storedVersions(), " "); got != "v1" {
		t.Errorf("storedVersions after: %s", got)
	}
	if p := progressOf(t, m); p.Migrated != 999 || p.Skipped != 1 || p.Total != 1000 || p.Phase != "Succeeded" {
		t.Errorf("progress: %+v", p)
	}
	if meta.IsStatusConditionTrue(m.Status.Conditions, "Running") || m.Status.ResourceVersion == "" {
		t.Errorf("status: %+v", m.Status)
	}
	if n := e.below("-espalier/preimages"); n != 0 {
		t.Errorf("%d pre-images, want none", n)
	}
}

// Undo gives objects back the bytes that they had, except where they have changed since.
func TestUndo(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.define()
	e.fill(300)
	e.storeIn("v1")
	before := e.values()
	e.migrate("widgets", map[string]string{migration.KeepAnnotation: "24h"})
	m := e.await("widgets", "Succeeded")
	if p := progressOf(t, m); p.Preimages != 300 || p.Expires == nil {
		t.Errorf("progress: %+v", p)
	}
	if n := e.below("-espalier/preimages"); n != 300 {
		t.Errorf("%d pre-images, want 300", n)
	}
	changed := widget("v1", "w000003", 33)
	if _, err := e.etcd.Put(t.Context(), e.key("w000003"), changed); err != nil {
		t.Fatal(err)
	}
	if _, err := e.etcd.Delete(t.Context(), e.key("w000004")); err != nil {
		t.Fatal(err)
	}
	e.annotate("widgets", migration.UndoAnnotation, "true")
	m = e.await("widgets", "Undone")
	after := e.values()
	for name, was := range before {
		want := was.data
		switch name {
		case "w000003":
			want = changed
		case "w000004":
			want = ""
		}
		if after[name].data != want {
			t.Fatalf("%s:\n%s, want\n%s", name, after[name].data, want)
		}
	}
	if got := strings.Join(e.storedVersions(), " "); got != "v1 v1alpha1" {
		t.Errorf("storedVersions after undo: %s", got)
	}
	if p := progressOf(t, m); p.Restored != 298 || p.Left != 2 {
		t.Errorf("progress: %+v", p)
	}
	if left := m.Annotations[migration.QuarantinedAnnotation]; !strings.Contains(left, "default/w000003") || !strings.Contains(left, "default/w000004") {
		t.Errorf("left: %s", left)
	}
	if err := e.typed.StoragemigrationV1().StorageVersionMigrations().Delete(t.Context(), "widgets", deleteNow); err != nil {
		t.Fatal(err)
	}
	e.until("the pre-images are deleted", func() bool {
		return e.below("-espalier/preimages")+e.below("-espalier/migrations")+e.below("-espalier/quarantine") == 0
	})
}

// Objects that cannot be read are listed and left, and storedVersions stays.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.define()
	e.fill(200)
	e.storeIn("v1")
	broken := map[string]string{
		"w000010": "not JSON",
		"w000020": strings.Replace(widget("v1alpha1", "w000020", 1), "/v1alpha1", "/v0", 1),
		"w000030": widget("v1alpha1", "other", 1),
		"w000040": "",
	}
	for name, data := range broken {
		if _, err := e.etcd.Put(t.Context(), e.key(name), data); err != nil {
			t.Fatal(err)
		}
	}
	e.migrate("widgets", nil)
	m := e.await("widgets", "Failed")
	after := e.values()
	for name, data := range broken {
		if after[name].data != data {
			t.Errorf("%s was changed to %q", name, after[name].data)
		}
		if !strings.Contains(m.Annotations[migration.QuarantinedAnnotation], "default/"+name) {
			t.Errorf("%s is not listed: %s", name, m.Annotations[migration.QuarantinedAnnotation])
		}
		delete(after, name)
	}
	if left := notIn(after, "v1"); len(left) > 0 {
		t.Errorf("not migrated: %q", left)
	}
	if got := strings.Join(e.storedVersions(), " "); got != "v1alpha1 v1" {
		t.Errorf("storedVersions: %s", got)
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, "Failed"); !strings.HasPrefix(c.Message, "4 of 200 objects cannot be read") {
		t.Errorf("message: %s", c.Message)
	}
}

// An object that becomes larger than etcd accepts is left and listed, and does not stop the migration. A pre-image that does
// not fit into the transaction of its object is stored before it.
func TestObjectsThatGrow(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.define()
	e.changeCRD(func(versions []any) []any {
		for _, v := range versions {
			parts := map[string]any{"type": "array", "items": map[string]any{"type": "object", "properties": map[string]any{
				"text": map[string]any{"type": "string", "default": strings.Repeat("x", 1000)},
			}}}
			if err := unstructured.SetNestedMap(v.(map[string]any), parts, "schema", "openAPIV3Schema", "properties", "spec", "properties", "parts"); err != nil {
				t.Error(err)
			}
		}
		return versions
	})
	e.storeIn("v1")
	e.fill(20)
	grow := func(name string, parts, text int) string {
		value := strings.Replace(widget("v1alpha1", name, 1), `"size":`, `"parts":[{}`+strings.Repeat(",{}", parts-1)+`],"size":`, 1)
		value = strings.Replace(value, strings.Repeat("x", 700), strings.Repeat("y", text), 1)
		if _, err := e.etcd.Put(t.Context(), e.key(name), value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	grow("w000005", 4000, 1)
	before := grow("w000011", 700, 500_000)
	e.migrate("widgets", map[string]string{migration.KeepAnnotation: "1h"})
	m := e.await("widgets", "Failed")
	if p := progressOf(t, m); p.Migrated != 19 || p.Quarantined != 1 {
		t.Errorf("progress: %+v", p)
	}
	if list := m.Annotations[migration.QuarantinedAnnotation]; !strings.Contains(list, "default/w000005") || !strings.Contains(list, "larger than etcd accepts") {
		t.Errorf("quarantined: %s", list)
	}
	if got := notIn(e.values(), "v1"); len(got) != 1 {
		t.Errorf("not in v1: %v", got)
	}
	e.annotate("widgets", migration.UndoAnnotation, "true")
	e.await("widgets", "Undone")
	if e.values()["w000011"].data != before {
		t.Error("the pre-image did not come back")
	}
}
