package migration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/controllers/migration"
)

const sizeRules = `conversions:
- between: [v1alpha1, v1]
  rules:
  - move: {from: spec.size, to: spec.replicas}
  - move: {from: spec.text, to: spec.words}
`

// A migration stops when the conversion rules are removed: without them, it would prune fields.
func TestRulesChange(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.define()
	patch := func(body string) {
		if _, err := e.dynamic.Resource(crds).Patch(t.Context(), "widgets.example.com", types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	o, err := e.dynamic.Resource(crds).Get(t.Context(), "widgets.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
	fields := map[string]any{"replicas": map[string]any{"type": "integer"}, "words": map[string]any{"type": "string"}}
	for _, v := range versions {
		if v := v.(map[string]any); v["name"] == "v1" {
			if err := unstructured.SetNestedMap(v, fields, "schema", "openAPIV3Schema", "properties", "spec", "properties"); err != nil {
				t.Fatal(err)
			}
		}
	}
	o.SetAnnotations(map[string]string{"conversion.espalier.dev/rules": sizeRules})
	if err := unstructured.SetNestedSlice(o.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.dynamic.Resource(crds).Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	const n = 4000
	e.fill(n)
	e.storeIn("v1")
	e.half(map[string]string{migration.KeepAnnotation: "1h"})
	patch(`{"metadata":{"annotations":{"conversion.espalier.dev/rules":null}}}`)
	e.annotate("widgets", migration.PausedAnnotation, nil)
	e.until("the migration has ended", func() bool {
		m := e.get("widgets")
		return meta.IsStatusConditionTrue(m.Status.Conditions, "Failed") || meta.IsStatusConditionTrue(m.Status.Conditions, "Succeeded")
	})
	pruned := 0
	for _, is := range e.values() {
		if !strings.Contains(is.data, `"size":`) && !strings.Contains(is.data, `"replicas":`) {
			pruned++
		}
	}
	c := meta.FindStatusCondition(e.get("widgets").Status.Conditions, "Failed")
	if pruned > 0 || c == nil || !strings.Contains(c.Message, "the annotation conversion.espalier.dev/rules changed during the migration") {
		t.Errorf("%d of %d objects have lost fields; %+v", pruned, n, c)
	}
	if got := strings.Join(e.storedVersions(), " "); got != "v1alpha1 v1" {
		t.Errorf("storedVersions: %s", got)
	}
}

// A rotation of keys leaves no pre-image with the old one, also not of earlier migrations.
func TestEncryptionKeyOfEarlierPreimages(t *testing.T) {
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
	e.fill(100)
	large := strings.Replace(widget("v1alpha1", "large", 1), strings.Repeat("x", 700), strings.Repeat("y", 500<<10), 1)
	if _, err := e.etcd.Put(t.Context(), e.key("large"), large); err != nil {
		t.Fatal(err)
	}
	e.storeIn("v1")
	e.migrate("first", map[string]string{migration.KeepAnnotation: "1h"})
	e.await("first", "Succeeded")
	with := func(key string) (n int) {
		for _, folder := range []string{"preimages", "large-preimages"} {
			resp, err := e.etcd.Get(t.Context(), "/"+strings.Trim(e.prefix, "/")+"/-espalier/"+folder+"/", clientv3.WithPrefix())
			if err != nil {
				t.Fatal(err)
			}
			for _, kv := range resp.Kvs {
				if strings.HasPrefix(string(kv.Value), "k8s:enc:aescbc:v1:"+key+":") {
					n++
				}
			}
		}
		return n
	}
	if n := with("one"); n != 101 {
		t.Fatalf("%d pre-images have the first key, want 101", n)
	}
	e.stop()
	keys("two", "one")
	e.start()
	e.migrate("second", nil)
	e.await("second", "Succeeded")
	if one, two := with("one"), with("two"); one != 0 || two != 101 {
		t.Errorf("%d pre-images have the old key and %d the new one, want 0 and 101", one, two)
	}
	e.annotate("first", migration.UndoAnnotation, "true")
	if p := progressOf(t, e.await("first", "Undone")); p.Restored != 0 || p.Left != 101 {
		t.Errorf("objects that were written since have changed: %+v", p)
	}
}

// Pre-images go with their CRD, and an undo says so.
func TestPreimagesOfDeletedCRD(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *server.Options) { o.ProtectInstances = false })
	e.define()
	e.fill(20)
	e.storeIn("v1")
	e.migrate("widgets", map[string]string{migration.KeepAnnotation: "10000h"})
	e.await("widgets", "Succeeded")
	e.stop()
	e.start() // looks at once
	if n := e.below("-espalier/preimages"); n != 20 {
		t.Fatalf("%d pre-images, want 20", n)
	}
	if err := e.dynamic.Resource(crds).Delete(t.Context(), "widgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e.until("the objects are deleted", func() bool { return len(e.values()) == 0 })
	e.until("the CRD is deleted", func() bool {
		_, err := e.dynamic.Resource(crds).Get(t.Context(), "widgets.example.com", metav1.GetOptions{})
		return err != nil
	})
	e.define() // another one
	e.stop()
	e.start()
	e.until("the pre-images are deleted", func() bool { return e.below("-espalier/preimages") == 0 })
	e.annotate("widgets", migration.UndoAnnotation, "true")
	e.until("the undo says so", func() bool {
		c := meta.FindStatusCondition(e.get("widgets").Status.Conditions, "Undone")
		return c != nil && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "the CustomResourceDefinition was deleted")
	})
}

// Events are read by more users than migrations: they name no objects.
func TestEventsNameNoObjects(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.define()
	e.fill(5)
	e.storeIn("v1")
	if _, err := e.etcd.Put(t.Context(), e.key("password"), `not JSON`); err != nil {
		t.Fatal(err)
	}
	e.migrate("widgets", nil)
	m := e.await("widgets", "Failed")
	if !strings.Contains(m.Annotations[migration.QuarantinedAnnotation], "default/password") {
		t.Errorf("not listed: %q", m.Annotations)
	}
	found := ""
	e.until("there is an event", func() bool {
		list, err := e.typed.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		found = ""
		for _, event := range list.Items {
			found += event.Reason + ": " + event.Message + "\n"
		}
		return strings.Contains(found, "Quarantined") && strings.Contains(found, "MigrationFailed")
	})
	if strings.Contains(found, "password") || strings.Contains(found, "JSON") {
		t.Errorf("events name an object, or what is in it:\n%s", found)
	}
}
