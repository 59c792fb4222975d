package migration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	svmv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/controllers/migration"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/local"
	"github.com/espalier-dev/espalier/server/restmappingtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// patience is how long a test waits for what should happen at once.
const patience = 2 * time.Minute

var (
	crds    = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// env is a server with a CRD whose storage version has changed.
type env struct {
	testing.TB
	etcd     *clientv3.Client
	prefix   string
	endpoint string
	typed    kubernetes.Interface
	dynamic  dynamic.Interface
	plane    *local.ControlPlane
	change   []func(*server.Options)
}

func newEnv(t testing.TB, change ...func(*server.Options)) *env {
	t.Helper()
	e := &env{TB: t, change: change}
	e.etcd, e.prefix = etcdtest.Client(t)
	e.endpoint = etcdtest.Endpoint(t)
	e.start()
	t.Cleanup(e.stop)
	return e
}

func (e *env) start() {
	e.Helper()
	plane, err := local.Start(e.Context(), local.Options{Etcd: e.endpoint, Prefix: e.prefix, Configure: func(o *server.Options) {
		o.Kinds = server.KindsControlPlane
		for _, f := range e.change {
			f(o)
		}
	}})
	if err != nil {
		e.Fatal(err)
	}
	e.plane = plane
	if e.typed, err = kubernetes.NewForConfig(plane.Config()); err != nil {
		e.Fatal(err)
	}
	if e.dynamic, err = dynamic.NewForConfig(plane.Config()); err != nil {
		e.Fatal(err)
	}
}

func (e *env) stop() {
	if e.plane != nil {
		if err := e.plane.Stop(); err != nil {
			e.Error(err)
		}
		e.plane = nil
	}
}

// idle are the options of a server that carries out no migrations.
func idle(o *server.Options) { o.Controllers = []string{"*", "-storage-version-migrator-controller"} }

// leader runs a controller beside those of the server, as one that believes to lead, and returns a function that ends it.
func (e *env) leader(change func(*migration.Config)) (stop func()) {
	e.Helper()
	s := restmappingtest.Start(e.TB, restmappingtest.Options{Prefix: e.prefix})
	config := migration.Config{
		Etcd: s.Backend.Client(), Prefix: e.prefix, Client: e.typed, UpdateCRD: s.CRDs.UpdateStatus,
		Lookup: func(ctx context.Context, name schema.GroupResource) (*migration.Resource, error) {
			if err := s.Catalog.CatchUp(ctx); err != nil {
				return nil, err
			}
			entry := s.Catalog.Resource(name.Group, name.Resource)
			if entry == nil || !entry.Established {
				return nil, nil
			}
			return s.Objects.Migration(entry), nil
		},
	}
	if change != nil {
		change(&config)
	}
	ctx, cancel := context.WithCancel(e.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = migration.New(config).Run(ctx)
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	e.Cleanup(stop)
	return stop
}

const widgetCRD = `{
  "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
  "spec": {
    "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
    "versions": [
      {"name": "v1alpha1", "served": true, "storage": %v, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}, "text": {"type": "string"}}}}}}},
      {"name": "v1", "served": true, "storage": %v, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}, "text": {"type": "string"}}}}}}}
    ]
  }
}`

// define creates the CRD with v1alpha1 as the storage version.
func (e *env) define() {
	e.Helper()
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(fmt.Appendf(nil, widgetCRD, true, false), o); err != nil {
		e.Fatal(err)
	}
	if _, err := e.dynamic.Resource(crds).Create(e.Context(), o, metav1.CreateOptions{}); err != nil {
		e.Fatal(err)
	}
	e.until("the CRD is established", func() bool {
		_, err := e.dynamic.Resource(widgets).Namespace("default").List(e.Context(), metav1.ListOptions{})
		return err == nil
	})
}

// changeCRD changes the versions of the CRD.
func (e *env) changeCRD(change func(versions []any) []any) {
	e.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		o, err := e.dynamic.Resource(crds).Get(e.Context(), "widgets.example.com", metav1.GetOptions{})
		if err != nil {
			return err
		}
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		if err := unstructured.SetNestedSlice(o.Object, change(versions), "spec", "versions"); err != nil {
			return err
		}
		_, err = e.dynamic.Resource(crds).Update(e.Context(), o, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		e.Fatal(err)
	}
}

// storeIn makes a version the storage version.
func (e *env) storeIn(version string) {
	e.Helper()
	e.changeCRD(func(versions []any) []any {
		for _, v := range versions {
			v := v.(map[string]any)
			v["storage"] = v["name"] == version
		}
		return versions
	})
}

func (e *env) storedVersions() []string {
	e.Helper()
	o, err := e.dynamic.Resource(crds).Get(e.Context(), "widgets.example.com", metav1.GetOptions{})
	if err != nil {
		e.Fatal(err)
	}
	stored, _, _ := unstructured.NestedStringSlice(o.Object, "status", "storedVersions")
	return stored
}

// key is that of a widget in etcd.
func (e *env) key(name string) string {
	return path.Join("/", e.prefix, "example.com/widgets/default", name)
}

// widget is the JSON that the server stores.
func widget(version, name string, size int) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/%s","kind":"Widget","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","generation":3,"name":%q,"namespace":"default","uid":"uid-of-%s"},"spec":{"size":%d,"text":%q}}`+"\n",
		version, name, name, size, strings.Repeat("x", 700))
}

// fill writes widgets into etcd, in v1alpha1.
func (e *env) fill(n int) {
	e.Helper()
	for i := 0; i < n; {
		var ops []clientv3.Op
		for ; i < n && len(ops) < 100; i++ {
			name := fmt.Sprintf("w%06d", i)
			ops = append(ops, clientv3.OpPut(e.key(name), widget("v1alpha1", name, i)))
		}
		if _, err := e.etcd.Txn(e.Context()).Then(ops...).Commit(); err != nil {
			e.Fatal(err)
		}
	}
}

// kept is a value of etcd.
type kept struct {
	data     string
	revision int64
}

// values are all widgets in etcd, by name.
func (e *env) values() map[string]kept {
	e.Helper()
	resp, err := e.etcd.Get(e.Context(), e.key("")+"/", clientv3.WithPrefix())
	if err != nil {
		e.Fatal(err)
	}
	all := map[string]kept{}
	for _, kv := range resp.Kvs {
		all[path.Base(string(kv.Key))] = kept{string(kv.Value), kv.ModRevision}
	}
	return all
}

// below counts the keys of a folder.
func (e *env) below(folder string) int64 {
	e.Helper()
	resp, err := e.etcd.Get(e.Context(), path.Join("/", e.prefix, folder)+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		e.Fatal(err)
	}
	return resp.Count
}

// migrate creates a migration of widgets.
func (e *env) migrate(name string, annotations map[string]string) *svmv1.StorageVersionMigration {
	e.Helper()
	return e.migrateResource(name, metav1.GroupResource{Group: "example.com", Resource: "widgets"}, annotations)
}

func (e *env) migrateResource(name string, resource metav1.GroupResource, annotations map[string]string) *svmv1.StorageVersionMigration {
	e.Helper()
	m, err := e.typed.StoragemigrationV1().StorageVersionMigrations().Create(e.Context(), &svmv1.StorageVersionMigration{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec:       svmv1.StorageVersionMigrationSpec{Resource: resource},
	}, metav1.CreateOptions{})
	if err != nil {
		e.Fatal(err)
	}
	return m
}

func (e *env) get(name string) *svmv1.StorageVersionMigration {
	e.Helper()
	m, err := e.typed.StoragemigrationV1().StorageVersionMigrations().Get(e.Context(), name, metav1.GetOptions{})
	if err != nil {
		e.Fatal(err)
	}
	return m
}

// annotate sets an annotation of a migration; nil removes it.
func (e *env) annotate(name, key string, value any) {
	e.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	if err != nil {
		e.Fatal(err)
	}
	if _, err := e.typed.StoragemigrationV1().StorageVersionMigrations().Patch(e.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		e.Fatal(err)
	}
}

// await waits for a condition of a migration to be true. It fails if another end comes.
func (e *env) await(name, condition string) *svmv1.StorageVersionMigration {
	e.Helper()
	var m *svmv1.StorageVersionMigration
	e.until("the migration is "+condition, func() bool {
		m = e.get(name)
		for _, other := range []string{"Succeeded", "Failed"} {
			if condition != other && condition != "Undone" && condition != "Running" && meta.IsStatusConditionTrue(m.Status.Conditions, other) {
				e.Fatalf("the migration is %s: %+v", other, m.Status.Conditions)
			}
		}
		return meta.IsStatusConditionTrue(m.Status.Conditions, condition)
	})
	return m
}

func progressOf(t testing.TB, m *svmv1.StorageVersionMigration) migration.Progress {
	t.Helper()
	var p migration.Progress
	if err := json.Unmarshal([]byte(m.Annotations[migration.ProgressAnnotation]), &p); err != nil {
		t.Fatalf("%v: %q", err, m.Annotations)
	}
	return p
}

func (e *env) until(what string, holds func() bool) {
	e.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			e.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(150 * time.Millisecond) // more than ten requests a second would count as those of users
	}
}

// in returns the names of values that are not in a version.
func notIn(all map[string]kept, version string) (names []string) {
	for name, value := range all {
		if !bytes.HasPrefix([]byte(value.data), fmt.Appendf(nil, `{"apiVersion":"example.com/%s",`, version)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

var deleteNow = metav1.DeleteOptions{}
