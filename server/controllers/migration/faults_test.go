package migration_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	svmv1 "k8s.io/api/storagemigration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/controllers/migration"
)

// half creates a migration and pauses it before its end.
func (e *env) half(annotations map[string]string) {
	e.Helper()
	e.migrate("widgets", annotations)
	e.until("some objects are migrated", func() bool { return len(notIn(e.values(), "v1alpha1")) > 0 })
	e.annotate("widgets", migration.PausedAnnotation, "true")
	e.until("the migration is paused", func() bool {
		c := meta.FindStatusCondition(e.get("widgets").Status.Conditions, "Running")
		return c != nil && c.Reason == "Paused"
	})
	if left := len(notIn(e.values(), "v1")); left == 0 {
		e.Fatal("the migration was faster than the test")
	}
}

// A migration rests while it is paused, continues in another process where it was, and
// writes no object twice. Users' writes win, and what they delete stays deleted.
func TestPauseAndRestart(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.define()
	const n = 4000
	e.fill(n)
	e.storeIn("v1")
	e.half(map[string]string{migration.KeepAnnotation: "1h"})
	left := notIn(e.values(), "v1")
	e.stop()
	if again := notIn(e.values(), "v1"); len(again) != len(left) {
		t.Fatalf("%d objects left, were %d: a paused migration goes on", len(again), len(left))
	}
	e.start()
	deleted, changed := left[len(left)-1], left[len(left)-2]
	objects := e.dynamic.Resource(widgets).Namespace("default")
	if err := objects.Delete(t.Context(), deleted, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e.annotate("widgets", migration.PausedAnnotation, nil)
	if _, err := objects.Patch(t.Context(), changed, types.MergePatchType, []byte(`{"spec":{"size":-1}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	m := e.await("widgets", "Succeeded")
	resp, err := e.etcd.Get(t.Context(), e.key("")+"/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.Kvs) != n-1 {
		t.Errorf("%d objects, want %d", len(resp.Kvs), n-1)
	}
	for _, kv := range resp.Kvs {
		switch name := filepath.Base(string(kv.Key)); {
		case !strings.HasPrefix(string(kv.Value), `{"apiVersion":"example.com/v1",`):
			t.Fatalf("%s: %s", name, kv.Value)
		case name == deleted:
			t.Errorf("%s came back", name)
		case name == changed:
			if !strings.Contains(string(kv.Value), `"size":-1`) {
				t.Errorf("the change of %s is lost: %s", name, kv.Value)
			}
		case kv.Version != 2:
			t.Errorf("%s was written %d times, want 2", name, kv.Version)
		}
	}
	if p := progressOf(t, m); p.Migrated+p.Skipped < n-1 || p.Migrated+p.Skipped > n || p.Quarantined != 0 {
		t.Errorf("progress: %+v", p)
	}
}

// Another storage version in the middle fails the migration, and storedVersions stays.
func TestStorageVersionChanges(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.define()
	e.fill(4000)
	e.storeIn("v1")
	e.half(nil)
	e.storeIn("v1alpha1")
	e.annotate("widgets", migration.PausedAnnotation, nil)
	m := e.await("widgets", "Failed")
	if c := meta.FindStatusCondition(m.Status.Conditions, "Failed"); !strings.Contains(c.Message, "the storage version changed from v1 to v1alpha1") {
		t.Errorf("message: %s", c.Message)
	}
	if got := strings.Join(e.storedVersions(), " "); got != "v1alpha1 v1" {
		t.Errorf("storedVersions: %s", got)
	}
	e.migrate("back", nil)
	e.await("back", "Succeeded")
	if left := notIn(e.values(), "v1alpha1"); len(left) > 0 {
		t.Errorf("%d are not back", len(left))
	}
	if got := strings.Join(e.storedVersions(), " "); got != "v1alpha1" {
		t.Errorf("storedVersions: %s", got)
	}
}

// A CRD that is deleted in the middle fails the migration, and nothing comes back.
func TestCRDIsDeleted(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *server.Options) { o.ProtectInstances = false })
	e.define()
	e.fill(4000)
	e.storeIn("v1")
	e.half(nil)
	if err := e.dynamic.Resource(crds).Delete(t.Context(), "widgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e.annotate("widgets", migration.PausedAnnotation, nil)
	e.await("widgets", "Failed")
	e.until("the objects are deleted", func() bool { return len(e.values()) == 0 })
}

// Undo in the middle puts everything back, once the CRD has the old version again.
func TestUndoInTheMiddle(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.define()
	e.fill(4000)
	e.storeIn("v1")
	before := e.values()
	e.half(map[string]string{migration.KeepAnnotation: "1h"})
	e.annotate("widgets", migration.UndoAnnotation, "true")
	m := e.await("widgets", "Undone")
	for name, is := range e.values() {
		if is.data != before[name].data {
			t.Fatalf("%s: %s", name, is.data)
		}
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, "Failed"); c == nil || c.Reason != "Undone" {
		t.Errorf("conditions: %+v", m.Status.Conditions)
	}
}

// Undo says what to do if the CRD has lost the version, and waits for it.
func TestUndoNeedsTheVersion(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.define()
	e.fill(50)
	e.storeIn("v1")
	before := e.values()
	e.migrate("widgets", map[string]string{migration.KeepAnnotation: "1h"})
	e.await("widgets", "Succeeded")
	var old any
	e.changeCRD(func(versions []any) []any {
		old = versions[0]
		return versions[1:]
	})
	e.annotate("widgets", migration.UndoAnnotation, "true")
	e.until("the undo says what is missing", func() bool {
		c := meta.FindStatusCondition(e.get("widgets").Status.Conditions, "Undone")
		return c != nil && strings.Contains(c.Message, "has no version v1alpha1") && strings.Contains(c.Message, "add it to spec.versions")
	})
	e.changeCRD(func(versions []any) []any { return append([]any{old}, versions...) })
	e.await("widgets", "Undone")
	for name, is := range e.values() {
		if is.data != before[name].data {
			t.Fatalf("%s: %s", name, is.data)
		}
	}
}

// Without pre-images there is no undo.
func TestUndoWithoutPreimages(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.define()
	e.fill(5)
	e.storeIn("v1")
	e.migrate("widgets", nil)
	e.await("widgets", "Succeeded")
	e.annotate("widgets", migration.UndoAnnotation, "true")
	e.until("the undo says that there are none", func() bool {
		c := meta.FindStatusCondition(e.get("widgets").Status.Conditions, "Undone")
		return c != nil && strings.Contains(c.Message, "there are no pre-images")
	})
	if left := notIn(e.values(), "v1"); len(left) > 0 {
		t.Errorf("changed: %q", left)
	}
}

// Managed fields of versions that are gone are dropped, and nothing else changes.
func TestDeadManagedFields(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.define()
	e.storeIn("v1")
	fields := func(versions ...string) string {
		var entries []string
		for _, v := range versions {
			entries = append(entries, fmt.Sprintf(`{"apiVersion":%q,"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}},"manager":"m-%s","operation":"Update"}`, v, filepath.Base(v)))
		}
		return fmt.Sprintf(`"managedFields":[%s],"name"`, strings.Join(entries, ","))
	}
	with := func(versions ...string) string {
		return strings.Replace(widget("v1", "a", 1), `"name"`, fields(versions...), 1)
	}
	if _, err := e.etcd.Put(t.Context(), e.key("a"), with("example.com/v0", "example.com/v1", "autoscaling/v1")); err != nil {
		t.Fatal(err)
	}
	e.migrate("widgets", nil)
	e.await("widgets", "Succeeded")
	if is, want := e.values()["a"].data, with("example.com/v1", "autoscaling/v1"); is != want {
		t.Errorf("%s, want\n%s", is, want)
	}
}

const encryption = `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets, widgets.example.com]
  providers:
  - aescbc: {keys: [%s]}
  - identity: {}
`

// A migration gives built-in and custom objects the current encryption key, and undo does
// not bring the old one back.
func TestEncryptionKey(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	keys := func(names ...string) {
		var all []string
		for _, name := range names {
			all = append(all, fmt.Sprintf("{name: %s, secret: %s}", name, map[string]string{"one": "c2VjcmV0IGlzIHNlY3VyZQ==", "two": "dGhpcyBpcyBwYXNzd29yZA=="}[name]))
		}
		if err := os.WriteFile(file, fmt.Appendf(nil, encryption, strings.Join(all, ", ")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keys("one")
	e := newEnv(t, func(o *server.Options) { o.Etcd.EncryptionProviderConfigFilepath = file })
	e.define()
	objects := e.dynamic.Resource(widgets).Namespace("default")
	for i := range 10 {
		name := fmt.Sprintf("s%d", i)
		if _, err := e.typed.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name}, "spec": map[string]any{"size": int64(i)}}}
		if _, err := objects.Create(t.Context(), w, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	with := func(folder, key string) (n int) {
		resp, err := e.etcd.Get(t.Context(), "/"+strings.Trim(e.prefix, "/")+folder, clientv3.WithPrefix())
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range resp.Kvs {
			if strings.HasPrefix(string(kv.Value), "k8s:enc:aescbc:v1:"+key+":") {
				n++
			}
		}
		return n
	}
	e.stop()
	keys("two", "one")
	e.start()
	e.migrateResource("secrets", metav1.GroupResource{Resource: "secrets"}, nil)
	e.migrate("widgets", map[string]string{migration.KeepAnnotation: "1h"})
	for _, one := range []struct{ name, folder string }{{"secrets", "/secrets/default/"}, {"widgets", "/example.com/widgets/"}} {
		e.await(one.name, "Succeeded")
		if n := with(one.folder, "two"); n != 10 {
			t.Errorf("%s: %d have the new key, want 10", one.name, n)
		}
	}
	if n := with("/-espalier/preimages/", "two"); n != 10 {
		t.Errorf("%d pre-images have the new key, want 10", n)
	}
	e.stop()
	keys("two")
	e.start()
	e.annotate("widgets", migration.UndoAnnotation, "true")
	if p := progressOf(t, e.await("widgets", "Undone")); p.Restored != 10 || p.Left != 0 {
		t.Errorf("without the old key: %+v", p)
	}
	if n := with("/example.com/widgets/", "two"); n != 10 {
		t.Errorf("after undo %d have the new key, want 10", n)
	}
	if _, err := e.typed.CoreV1().Secrets("default").Get(t.Context(), "s3", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// Pre-images go when their time is over.
func TestPreimagesExpire(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.define()
	e.fill(20)
	e.storeIn("v1")
	e.migrate("widgets", map[string]string{migration.KeepAnnotation: "1ms"})
	e.await("widgets", "Succeeded")
	e.stop()
	e.start() // looks at once
	e.until("the pre-images are deleted", func() bool { return e.below("-espalier/preimages") == 0 })
	e.annotate("widgets", migration.UndoAnnotation, "true")
	e.until("the undo says so", func() bool {
		c := meta.FindStatusCondition(e.get("widgets").Status.Conditions, "Undone")
		return c != nil && c.Status == metav1.ConditionFalse
	})
}

// What Kubernetes' conformance spec asks of the resource: it is created for a resource
// that does not exist, and the controller leaves it alone meanwhile.
func TestConformance(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *server.Options) { o.Kinds = server.KindsCustom })
	client := e.typed.StoragemigrationV1().StorageVersionMigrations()
	m := e.migrateResource("foo", metav1.GroupResource{Resource: "foo"}, nil)
	m.Labels = map[string]string{"a": "b"}
	m, err := client.Update(t.Context(), m, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // the controller has looked
	at := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: "TestCondition", Status: metav1.ConditionTrue, Reason: "TestReason", Message: "TestMessage", LastTransitionTime: at})
	if m, err = client.UpdateStatus(t.Context(), m, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(m.Status.Conditions) != 1 || !m.Status.Conditions[0].LastTransitionTime.Equal(&at) {
		t.Errorf("status: %+v", m.Status)
	}
	const label = `{"metadata":{"labels":{"c":"d"}}}`
	const status = `{"status":{"conditions":[{"type":"TestCondition","status":"True","reason":"TestReason","message":"TestMessage","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	for _, patch := range []struct {
		of   types.PatchType
		text string
		sub  []string
	}{
		{types.StrategicMergePatchType, label, nil}, {types.MergePatchType, label, nil},
		{types.JSONPatchType, `[{"op":"add","path":"/metadata/labels/e","value":"f"}]`, nil},
		{types.StrategicMergePatchType, status, []string{"status"}}, {types.MergePatchType, status, []string{"status"}},
		{types.JSONPatchType, `[{"op":"add","path":"/status/conditions","value":[]}]`, []string{"status"}},
		{types.ApplyYAMLPatchType, `{"apiVersion":"storagemigration.k8s.io/v1","kind":"StorageVersionMigration",` + status[1:], []string{"status"}},
		{types.ApplyYAMLPatchType, `{"apiVersion":"storagemigration.k8s.io/v1","kind":"StorageVersionMigration",` + label[1:], nil},
	} {
		force := true
		options := metav1.PatchOptions{FieldManager: "test"}
		if patch.of == types.ApplyYAMLPatchType {
			options.Force = &force
		}
		if _, err := client.Patch(t.Context(), "foo", patch.of, []byte(patch.text), options, patch.sub...); err != nil {
			t.Errorf("%s %q: %v", patch.of, patch.sub, err)
		}
	}
	m = e.get("foo")
	m.Spec.Resource.Resource = "bar"
	if _, err := client.Update(t.Context(), m, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "field is immutable") {
		t.Errorf("a change of spec: %v", err)
	}
	if _, err := client.Create(t.Context(), &svmv1.StorageVersionMigration{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{}); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "spec.resource.resource: Required value: resource is required to be set") {
		t.Errorf("without a resource: %v", err)
	}
	if err := client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "a=b"}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get(t.Context(), "foo", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after deletion: %v", err)
	}
}

// An object whose pre-image does not fit into the transaction of the rewrite is migrated
// and undone like others.
func TestLargeObject(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.define()
	e.fill(3)
	e.storeIn("v1")
	large := strings.Replace(widget("v1alpha1", "w000001", 1), strings.Repeat("x", 700), strings.Repeat("y", 900<<10), 1)
	if _, err := e.etcd.Put(t.Context(), e.key("w000001"), large); err != nil {
		t.Fatal(err)
	}
	e.migrate("widgets", map[string]string{migration.KeepAnnotation: "1h"})
	e.await("widgets", "Succeeded")
	if left := notIn(e.values(), "v1"); len(left) > 0 {
		t.Fatalf("not migrated: %q", left)
	}
	e.annotate("widgets", migration.UndoAnnotation, "true")
	e.await("widgets", "Undone")
	if is := e.values()["w000001"].data; is != large {
		t.Errorf("%.200s", is)
	}
}

// Two processes that believe to lead write no object twice.
func TestTwoLeaders(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *server.Options) { o.Controllers = nil })
	const n = 600
	e.fill(n)
	resource := &migration.Resource{
		Resource: widgets.GroupResource(), Folder: "/example.com/widgets",
		Current: func(data []byte) bool { return strings.Contains(string(data), `"example.com/v1"`) },
		Rewrite: func(_ context.Context, values []migration.Value) ([]migration.Rewritten, error) {
			results := make([]migration.Rewritten, len(values))
			for i, v := range values {
				if next := strings.Replace(string(v.Data), "/v1alpha1", "/v1", 1); next != string(v.Data) {
					results[i] = migration.Rewritten{Data: []byte(next), Version: "v1alpha1"}
				}
			}
			return results, nil
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 2 {
		c := migration.New(migration.Config{
			Etcd: e.etcd, Prefix: e.prefix, Client: e.typed,
			Lookup: func(context.Context, schema.GroupResource) (*migration.Resource, error) { return resource, nil },
		})
		running.Go(func() { _ = c.Run(ctx) })
	}
	defer running.Wait()
	defer cancel()
	e.migrate("widgets", map[string]string{migration.KeepAnnotation: "1h"})
	m := e.await("widgets", "Succeeded")
	resp, err := e.etcd.Get(t.Context(), e.key("")+"/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range resp.Kvs {
		if kv.Version != 2 {
			t.Errorf("%s was written %d times, want 2", kv.Key, kv.Version)
		}
	}
	if p := progressOf(t, m); p.Migrated != n || p.Skipped != 0 {
		t.Errorf("progress: %+v", p)
	}
}
