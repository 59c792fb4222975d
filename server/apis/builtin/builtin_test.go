package builtin

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applyv1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-dev/espalier/server/endpoints/apitest"
)

// magic is what protobuf in etcd begins with.
var magic = []byte("k8s\x00")

func TestLifeOfAnObject(t *testing.T) {
	e := start(t)
	for name, c := range e.clients() {
		t.Run(name, func(t *testing.T) { lifeOfAConfigMap(t, e, c, "in-"+name) })
	}
}

func lifeOfAConfigMap(t *testing.T, e *env, c kubernetes.Interface, namespace string) {
	ctx, maps := context.Background(), c.CoreV1().ConfigMaps(namespace)
	made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"x": "1"}}, Data: map[string]string{"k": "v"}}, metav1.CreateOptions{FieldManager: "me"})
	if err != nil {
		t.Fatal(err)
	}
	if made.UID == "" || made.ResourceVersion == "" || made.CreationTimestamp.IsZero() || made.Namespace != namespace {
		t.Errorf("metadata is not filled in: %+v", made.ObjectMeta)
	}
	if m := made.ManagedFields; len(m) != 1 || m[0].Manager != "me" || m[0].APIVersion != "v1" || !strings.Contains(m[0].FieldsV1.GetRawString(), `"f:data":{".":{},"f:k":{}}`) {
		t.Errorf("managed fields are %v", m)
	}
	if data := e.stored("/configmaps/" + namespace + "/a"); !bytes.HasPrefix(data, magic) || !bytes.Contains(data, []byte("ConfigMap")) {
		t.Errorf("etcd has %q", data)
	}
	if _, err = maps.Create(ctx, made.DeepCopy(), metav1.CreateOptions{}); err == nil {
		t.Error("an object with a resourceVersion is created")
	}
	again := made.DeepCopy()
	again.ResourceVersion = ""
	if _, err = maps.Create(ctx, again, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) || err.Error() != `configmaps "a" already exists` {
		t.Errorf("creating it again: %v", err)
	}
	dry, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "dry"}}, metav1.CreateOptions{DryRun: []string{"All"}})
	if err != nil || dry.UID == "" || e.stored("/configmaps/"+namespace+"/dry") != nil {
		t.Errorf("dry run: %v, %v", dry, err)
	}

	w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: made.ResourceVersion, FieldSelector: fields.OneTermEqualSelector("metadata.name", "a").String()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	change := made.DeepCopy()
	change.Data["l"] = "w"
	changed, err := maps.Update(ctx, change, metav1.UpdateOptions{})
	if err != nil || changed.Data["l"] != "w" || changed.Kind != "" {
		t.Fatalf("update: %v, %v", changed, err)
	}
	if _, err = maps.Update(ctx, change, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("updating an old object: %v", err)
	}
	expect(t, w, watch.Modified)

	patchConfigMap(t, c, namespace)
	expect(t, w, watch.Modified)

	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "x=1"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Kind != "" {
		t.Errorf("list: %v, %v", list, err)
	}
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	for ev := range w.ResultChan() {
		if ev.Type == watch.Deleted {
			break
		}
	}
	if _, err := maps.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get: %v", err)
	}
}

func expect(t *testing.T, w watch.Interface, kind watch.EventType) {
	t.Helper()
	select {
	case ev := <-w.ResultChan():
		if ev.Type != kind || ev.Object.(*corev1.ConfigMap).Name != "a" {
			t.Errorf("the event is %v", ev)
		}
	case <-time.After(time.Minute):
		t.Fatal("no event after a minute")
	}
}

// patchConfigMap tries all patches on the config map a.
func patchConfigMap(t *testing.T, c kubernetes.Interface, namespace string) {
	t.Helper()
	ctx, maps := context.Background(), c.CoreV1().ConfigMaps(namespace)
	for kind, patch := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op":"add","path":"/data/json","value":"1"}]`,
		types.MergePatchType:          `{"data":{"merge":"1"}}`,
		types.StrategicMergePatchType: `{"data":{"strategic":"1"},"metadata":{"$deleteFromPrimitiveList/finalizers":["none"]}}`,
	} {
		if _, err := maps.Patch(ctx, "a", kind, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	applied, err := maps.Apply(ctx, applyv1.ConfigMap("a", namespace).WithData(map[string]string{"applied": "1"}), metav1.ApplyOptions{FieldManager: "applier"})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"json", "merge", "strategic", "applied", "k"} {
		if _, ok := applied.Data[key]; !ok {
			t.Errorf("%s is not in %v", key, applied.Data)
		}
	}
	_, err = maps.Apply(ctx, applyv1.ConfigMap("a", namespace).WithData(map[string]string{"k": "other"}), metav1.ApplyOptions{FieldManager: "applier"})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "me" using v1: .data.k`) {
		t.Errorf("applying what is somebody else's: %v", err)
	}
	applied, err = maps.Apply(ctx, applyv1.ConfigMap("a", namespace), metav1.ApplyOptions{FieldManager: "applier"})
	if err != nil || applied.Data["applied"] != "" {
		t.Errorf("what is no longer applied stays: %v, %v", applied, err)
	}
}

func TestStrategicMergePatchMergesLists(t *testing.T) {
	e := start(t)
	path := "/api/v1/namespaces/n/serviceaccounts"
	e.Do("POST", path, `{"metadata":{"name":"s"},"secrets":[{"name":"a","namespace":"dropped"}]}`).Is(201).Has("secrets", []any{map[string]any{"name": "a"}})
	e.Patch("strategic", path+"/s", `{"secrets":[{"name":"b"}]}`).Is(200).Has("secrets", []any{map[string]any{"name": "b"}, map[string]any{"name": "a"}})
	e.Patch("strategic", path+"/s", `{"secrets":[{"name":"a","$patch":"delete"}]}`).Is(200).Has("secrets", []any{map[string]any{"name": "b"}})
	e.Patch("merge", path+"/s", `{"secrets":[{"name":"c"}]}`).Is(200).Has("secrets", []any{map[string]any{"name": "c"}})
}

func TestStoredJSONIsRead(t *testing.T) {
	e := start(t)
	_, err := e.etcd.Put(context.Background(), e.prefix+"/secrets/n/old", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"old","namespace":"n","uid":"u"},"stringData":{"k":"v"}}`)
	if err != nil {
		t.Fatal(err)
	}
	e.Do("GET", "/api/v1/namespaces/n/secrets/old", "").Is(200).Has("type", "Opaque").Has("data.k", "dg==").Has("stringData", nil).Has("kind", "Secret")
}

func TestFieldValidation(t *testing.T) {
	e := start(t)
	const body = `{"metadata":{"name":"%"},"data":{"a":"1"},"dat":{},"data":{"a":"2"}}`
	path := "/api/v1/namespaces/n/configmaps"
	e.Do("POST", path+"?fieldValidation=Strict", strings.ReplaceAll(body, "%", "strict")).Is(400).
		Mentions(`strict decoding error: unknown field "dat", duplicate field "data"`)
	e.Do("POST", path, strings.ReplaceAll(body, "%", "warn")).Is(201).Warns(`unknown field "dat"`, `duplicate field "data"`)
	e.Do("POST", path+"?fieldValidation=Strict", "metadata:\n  name: yaml\nbogus: 1\n", "Content-Type: application/yaml").Is(400).Mentions(`unknown field "bogus"`)
	e.Patch("strategic", path+"/warn?fieldValidation=Strict", `{"bogus":1}`).Is(422).Mentions(`unknown field "bogus"`)
	e.Patch("apply", path+"/warn?fieldValidation=Strict&fieldManager=m", `{"apiVersion":"v1","kind":"ConfigMap","bogus":1}`).Is(500).Mentions(".bogus: field not declared in schema")
	e.Do("POST", path, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"}}`).Is(400).Mentions(`Secret in version "v1" cannot be handled as a ConfigMap`)
	e.Do("POST", path, `{"data":1}`).Is(400).Mentions("ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string")
	e.Do("POST", path, `{`).Is(400)
	e.Do("POST", path, `x`, "Content-Type: text/plain").Is(415)
}

func TestRepresentations(t *testing.T) {
	e := start(t)
	path := "/api/v1/namespaces/n/configmaps"
	e.Do("POST", path, "metadata:\n  name: a\ndata:\n  k: v\n", "Content-Type: application/yaml").Is(201)
	if a := e.Do("GET", path+"/a", "", "Accept: application/yaml").Is(200); !bytes.Contains(a.Body, []byte("kind: ConfigMap\n")) {
		t.Errorf("as YAML: %s", a.Body)
	}
	e.Do("GET", path, "").Is(200).Has("kind", "ConfigMapList").Has("apiVersion", "v1").Has("items.0.kind", nil).Has("items.0.apiVersion", nil).Has("items.0.data.k", "v")
	e.Do("GET", path, "", "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").Is(200).
		Has("kind", "PartialObjectMetadataList").Has("items.0.metadata.name", "a").Has("items.0.data", nil)
	e.Do("GET", path+"/a", "", "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").Is(200).Has("kind", "PartialObjectMetadata")
	if a := e.Do("GET", path, "", "Accept: application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").Is(200); !bytes.HasPrefix(a.Body, magic) {
		t.Errorf("as protobuf: %q", a.Body)
	}
	if a := e.Do("GET", path+"/none", "", "Accept: application/vnd.kubernetes.protobuf").Is(404); !bytes.HasPrefix(a.Body, magic) {
		t.Errorf("errors as protobuf: %q", a.Body)
	}
	e.Do("GET", path, "", "Accept: image/png").Is(406)
}

// row returns the table of what is at a path: names of the columns, and the
// cells of the first row.
func (e *env) row(path string) (names, cells []any) {
	e.TB.Helper()
	a := e.Do("GET", path, "", "Accept: application/json;as=Table;g=meta.k8s.io;v=v1").Is(200)
	for _, c := range a.At("columnDefinitions").([]any) {
		names = append(names, c.(map[string]any)["name"])
	}
	cells, _ = a.At("rows.0.cells").([]any)
	return names, cells
}

func (e *env) tabled(path, names string, cells ...any) {
	e.TB.Helper()
	gotNames, gotCells := e.row(path)
	var words []string
	for _, name := range gotNames {
		words = append(words, name.(string))
	}
	if strings.Join(words, ",") != names {
		e.TB.Errorf("columns of %s are %q", path, words)
	}
	if len(gotCells) != len(cells) {
		e.TB.Fatalf("cells of %s are %v", path, gotCells)
	}
	for i, want := range cells {
		if want != "*" && gotCells[i] != want {
			e.TB.Errorf("cell %q of %s is %v, not %v", words[i], path, gotCells[i], want)
		}
	}
}

func TestTables(t *testing.T) {
	e := start(t)
	e.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`).Is(201)
	e.tabled("/api/v1/namespaces", "Name,Status,Age", "n", "Active", "*")
	e.tabled("/api/v1/namespaces/n", "Name,Status,Age", "n", "Active", "*")
	e.Do("POST", "/api/v1/namespaces/n/configmaps", `{"metadata":{"name":"c"},"data":{"a":""},"binaryData":{"b":""}}`).Is(201)
	e.tabled("/api/v1/configmaps", "Name,Data,Age", "c", 2.0, "*")
	e.Do("POST", "/api/v1/namespaces/n/secrets", `{"metadata":{"name":"s"},"stringData":{"a":""}}`).Is(201)
	e.tabled("/api/v1/secrets", "Name,Type,Data,Age", "s", "Opaque", 1.0, "*")
	e.Do("POST", "/api/v1/namespaces/n/serviceaccounts", `{"metadata":{"name":"a"}}`).Is(201)
	e.tabled("/api/v1/serviceaccounts", "Name,Age", "a", "*")
	e.Do("POST", "/apis/coordination.k8s.io/v1/namespaces/n/leases", `{"metadata":{"name":"l"},"spec":{"holderIdentity":"h"}}`).Is(201)
	e.tabled("/apis/coordination.k8s.io/v1/leases", "Name,Holder,Age", "l", "h", "*")
	e.Do("POST", "/api/v1/namespaces/n/events", `{"metadata":{"name":"e"},"involvedObject":{"kind":"Pod","name":"p","namespace":"n","fieldPath":"spec"},"reason":"R","message":" m\n","type":"Normal","source":{"component":"c","host":"h"},"count":3,"firstTimestamp":"2020-01-01T00:00:00Z"}`).Is(201)
	for _, group := range []string{"/api/v1", "/apis/events.k8s.io/v1"} {
		e.tabled(group+"/events", "Last Seen,Type,Reason,Object,Subobject,Source,Message,First Seen,Count,Name",
			"*", "Normal", "R", "pod/p", "spec", "c, h", "m", "*", 3.0, "e")
	}
}

func TestWhatIsNotThere(t *testing.T) {
	e := start(t)
	e.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`).Is(201)
	e.Do("POST", "/api/v1/namespaces/n/configmaps", `{"metadata":{"name":"c"}}`).Is(201)
	for _, path := range []string{
		"/api/v1/pods", "/api/v1/namespaces/n/pods", "/api/v1/configmaps/c", "/api/v1/namespaces/n/configmaps/c/status",
		"/api/v1/namespaces/n/status/more", "/api/v2/configmaps", "/apis/rbac.authorization.k8s.io/v1/namespaces/n/none",
	} {
		if a := e.Do("GET", path, "").Is(404); string(a.Body) != "404 page not found\n" {
			t.Errorf("%s is answered with %q", path, a.Body)
		}
	}
	e.Do("GET", "/api/v1/namespaces/n/configmaps/d", "").Is(404).Has("message", `configmaps "d" not found`).Has("kind", "Status")
	e.Do("DELETE", "/api/v1/namespaces", "").Is(405).Has("message", `deletecollection is not supported on resources of kind "namespaces"`)
	e.Do("POST", "/api/v1/namespaces/n/configmaps/x", `{"metadata":{"name":"x"}}`).Is(405)
	e.Do("PUT", "/api/v1/namespaces/n/configmaps", `{"metadata":{"name":"x"}}`).Is(405)
	e.Do("PATCH", "/api/v1/namespaces/n/configmaps", `{}`, "Content-Type: application/merge-patch+json").Is(405)
	e.Do("GET", "/api/v1/namespaces/n/finalize", "").Is(405)
	e.Do("GET", "/api/v1/configmaps?fieldSelector=data.a%3D1", "").Is(400).Mentions(`"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"`)
	e.Do("GET", "/api/v1/secrets?fieldSelector=data.a%3D1", "").Is(400).Mentions("field label not supported: data.a")
}

func TestDeleteCollection(t *testing.T) {
	e := start(t)
	for _, name := range []string{"a", "b", "c"} {
		e.Do("POST", "/api/v1/namespaces/n/secrets", `{"metadata":{"name":"`+name+`"},"type":"t/`+name+`"}`).Is(201)
	}
	e.Do("DELETE", "/api/v1/namespaces/n/secrets?fieldSelector=type%3Dt/a", "").Is(200)
	e.Do("GET", "/api/v1/namespaces/n/secrets", "").Is(200).Has("items.0.metadata.name", "b")
	e.Do("DELETE", "/api/v1/namespaces/n/secrets", "").Is(200)
	if list := e.Do("GET", "/api/v1/secrets", "").Is(200).At("items").([]any); len(list) != 0 {
		t.Errorf("%v is left", list)
	}
}

// TestIdleResourcesHaveNoGoroutines also looks that informers work: they are
// what makes watch caches.
func TestIdleResourcesHaveNoGoroutines(t *testing.T) {
	etcdOnly := start(t, configMaps())
	etcdOnly.resources.types() // New reads them beside, once
	// The probe of etcd connects beside, too.
	before := 0
	for now := runtime.NumGoroutine(); now != before; now = runtime.NumGoroutine() {
		before = now
		time.Sleep(500 * time.Millisecond)
	}
	rest := slices.Concat(Standard(), Policies(PolicyOptions{}), Events(0))
	for i := range rest {
		if rest[i].Plural == "configmaps" {
			rest = append(rest[:i], rest[i+1:]...)
			break
		}
	}
	all, err := New(etcdOnly.resources.options, rest...)
	if err != nil {
		t.Fatal(err)
	}
	all.types()
	apitest.Eventually(t, func() bool { return runtime.NumGoroutine() <= before })
}

func TestInformer(t *testing.T) {
	e := start(t)
	for name, c := range e.clients() {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			factory := informers.NewSharedInformerFactory(c, 0)
			lister := factory.Core().V1().ConfigMaps().Lister()
			factory.Core().V1().ConfigMaps().Informer()
			factory.Start(ctx.Done())
			for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
				if !synced {
					t.Fatalf("%v is not synced", kind)
				}
			}
			if _, err := c.CoreV1().ConfigMaps("n").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			apitest.Eventually(t, func() bool { _, err := lister.ConfigMaps("n").Get(name); return err == nil })
			cancel()
			factory.Shutdown()
		})
	}
}

func TestMistakesInDescriptions(t *testing.T) {
	good := start(t, configMaps())
	alias := Events(0)[1]
	noName := configMaps()
	noName.Strategy.Name = nil
	for what, list := range map[string][]Resource{
		"two of the same":      {configMaps(), configMaps()},
		"no rule for names":    {noName},
		"alias of nothing":     {alias},
		"nothing at all of it": {{}},
	} {
		if _, err := New(good.resources.options, list...); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if _, err := New(Options{}); err == nil {
		t.Error("no backend: no error")
	}
}

func TestStores(t *testing.T) {
	e := start(t)
	if e.resources.Store(schema.GroupResource{Resource: "pods"}) != nil {
		t.Error("there is a store of pods")
	}
	core, alias := e.resources.Store(schema.GroupResource{Resource: "events"}), e.resources.Store(schema.GroupResource{Group: "events.k8s.io", Resource: "events"})
	if core == nil || core != alias {
		t.Error("events of two groups are not in one store")
	}
	if !e.resources.Serves("", "v1") || !e.resources.Serves("events.k8s.io", "v1") || e.resources.Serves("apps", "v1") {
		t.Error("Serves")
	}
	if len(e.resources.All()) != len(Standard())+len(Policies(PolicyOptions{}))+2 {
		t.Error("All")
	}
}
