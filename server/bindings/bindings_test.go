package bindings_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/bindings"
	"github.com/espalier-dev/espalier/server/espaliertest"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/tenants"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

var (
	crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	webs = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "webs"}
	maps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// A server with tenants, and a test that uses it.
type shop struct {
	testing.TB
	server *espaliertest.TestServer
	config *rest.Config
	etcd   *clientv3.Client
}

func start(t testing.TB, names ...string) *shop {
	t.Helper()
	return startWith(t, func(*server.Options) {}, names...)
}

func startWith(t testing.TB, change func(*server.Options), names ...string) *shop {
	t.Helper()
	var options *server.Options
	ts := espaliertest.New(t, espaliertest.Configure(func(o *server.Options) {
		o.Tenants, o.Controllers, options = true, []string{"*"}, o
		change(o)
	}))
	etcd, err := clientv3.New(clientv3.Config{Endpoints: options.Etcd.StorageConfig.Transport.ServerList})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = etcd.Close() }) // the test is over
	w := &shop{t, ts, ts.Config(), etcd}
	w.config.QPS = -1
	for _, name := range names {
		w.tenant(name, nil)
	}
	return w
}

func (w *shop) tenant(name string, labels map[string]any) {
	w.Helper()
	w.create(w.root().Resource(tenants.Resource), object("espalier.dev/v1alpha1", "Tenant", name, map[string]any{}, labels))
}

func (w *shop) client(path string) dynamic.Interface {
	w.Helper()
	c := rest.CopyConfig(w.config)
	c.Host += path
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		w.Fatal(err)
	}
	return client
}

func (w *shop) root() dynamic.Interface { w.Helper(); return w.client("") }

// in is a client within a tenant; of is one for what a provider sees of a tenant, or of all.
func (w *shop) in(tenant string) dynamic.Interface {
	w.Helper()
	return w.client(tenants.Path(tenant))
}

func (w *shop) of(provider, consumer string) dynamic.Interface {
	w.Helper()
	return w.client(tenants.Path(provider) + tenants.Path(consumer))
}

func object(version, kind, name string, spec, labels map[string]any) *unstructured.Unstructured {
	meta := map[string]any{"name": name}
	if labels != nil {
		meta["labels"] = labels
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}}
}

func (w *shop) create(c dynamic.ResourceInterface, o *unstructured.Unstructured) *unstructured.Unstructured {
	w.Helper()
	made, err := c.Create(w.Context(), o, metav1.CreateOptions{})
	if err != nil {
		w.Fatalf("create %s %s: %v", o.GetKind(), o.GetName(), err)
	}
	return made
}

// crd is a CRD webs.example.com, or another plural.
func crd(plural, kind string) *unstructured.Unstructured {
	text := map[string]any{"type": "string"}
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", plural+".example.com", map[string]any{
		"group": "example.com", "scope": "Namespaced",
		"names": map[string]any{"plural": plural, "singular": strings.ToLower(kind), "kind": kind, "listKind": kind + "List"},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true,
			"subresources":     map[string]any{"status": map[string]any{}, "scale": map[string]any{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
			"selectableFields": []any{map[string]any{"jsonPath": ".spec.image"}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
				"spec": map[string]any{"type": "object", "properties": map[string]any{
					"image": map[string]any{"type": "string", "maxLength": int64(20)}, "replicas": map[string]any{"type": "integer", "default": int64(1)},
				}},
				"status": map[string]any{"type": "object", "properties": map[string]any{"phase": text, "replicas": map[string]any{"type": "integer"}}},
			}}},
		}},
	}, nil)
}

func export(name string, consumers map[string]any, resources ...any) *unstructured.Unstructured {
	return object("apis.espalier.dev/v1alpha1", "APIExport", name, map[string]any{"resources": resources, "consumers": consumers}, nil)
}

func binding(name, provider, export string, accept ...any) *unstructured.Unstructured {
	spec := map[string]any{"export": map[string]any{"tenant": provider, "name": export}}
	if accept != nil {
		spec["accept"] = accept
	}
	return object("apis.espalier.dev/v1alpha1", "APIBinding", name, spec, nil)
}

func accept(verbs []any, resources ...any) map[string]any {
	return map[string]any{"resources": resources, "verbs": verbs}
}

var (
	reads      = []any{"get", "list", "watch"}
	everything = accept([]any{"*"}, "*")
	toAll      = map[string]any{"everyone": true}
)

func web(name, image string) *unstructured.Unstructured {
	return object("example.com/v1", "Web", name, map[string]any{"image": image}, nil)
}

// provide makes a tenant the provider of webs.
func (w *shop) provide(provider string, consumers map[string]any) {
	w.Helper()
	w.create(w.in(provider).Resource(crds), crd("webs", "Web"))
	w.create(w.in(provider).Resource(bindings.Exports), export("webs", consumers, "webs.example.com"))
}

// bind binds the export webs, and waits for it.
func (w *shop) bind(consumer, provider string, accept ...any) {
	w.Helper()
	w.create(w.in(consumer).Resource(bindings.Bindings), binding("webs", provider, "webs", accept...))
	w.reason(consumer, "webs", "Bound")
}

// reason waits until a binding has a reason.
func (w *shop) reason(consumer, name, reason string) (message string) {
	w.Helper()
	w.eventually(func() error {
		o, err := w.in(consumer).Resource(bindings.Bindings).Get(w.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["reason"] == reason {
				message = fmt.Sprint(c["message"])
				return nil
			}
		}
		return fmt.Errorf("%s of %s: %v, wanted %s", name, consumer, conditions, reason)
	})
	return message
}

func (w *shop) eventually(try func() error) {
	w.Helper()
	var err error
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	w.Fatal(err)
}

func (w *shop) names(c dynamic.ResourceInterface, o metav1.ListOptions) (names []string) {
	w.Helper()
	list, err := c.List(w.Context(), o)
	if err != nil {
		w.Fatal(err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].GetAnnotations()["espalier.dev/tenant"]+"/"+list.Items[i].GetName())
	}
	return names
}

// Two consumers have the resource of a provider, each with objects of its own.
func TestBind(t *testing.T) {
	w := start(t, "provider", "one", "two", "three")
	w.provide("provider", map[string]any{"tenants": []any{"one", "two"}})
	began := time.Now()
	w.bind("one", "provider")
	t.Log("bound after", time.Since(began))
	w.bind("two", "provider")
	w.create(w.in("three").Resource(bindings.Bindings), binding("webs", "provider", "webs"))
	refused := w.reason("three", "webs", "NotFound")
	for _, of := range []string{"provider", "nobody"} { // an export and a tenant that do not exist are refused alike
		w.create(w.in("three").Resource(bindings.Bindings), binding("other-"+of, of, "nothing"))
		got := w.reason("three", "other-"+of, "NotFound")
		if want := strings.ReplaceAll(strings.ReplaceAll(refused, `"webs"`, `"nothing"`), `"provider"`, `"`+of+`"`); got != want {
			t.Errorf("%s\n%s", got, want)
		}
	}
	for _, name := range []string{"one", "two"} {
		c := w.in(name).Resource(webs).Namespace("default")
		made := w.create(c, web("a", name))
		if n, _, _ := unstructured.NestedInt64(made.Object, "spec", "replicas"); n != 1 {
			t.Error("no default", made.Object)
		}
		if _, err := c.Create(t.Context(), web("b", "an image that is too long"), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
			t.Error("not validated:", err)
		}
		made.Object["status"] = map[string]any{"phase": "Ready"}
		if _, err := c.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"one", "two"} {
		got, err := w.in(name).Resource(webs).Namespace("default").Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		image, _, _ := unstructured.NestedString(got.Object, "spec", "image")
		phase, _, _ := unstructured.NestedString(got.Object, "status", "phase")
		if image != name || phase != "Ready" {
			t.Error(name, got.Object)
		}
		if n := w.names(w.in(name).Resource(webs), metav1.ListOptions{}); len(n) != 1 {
			t.Error(name, n)
		}
	}
	for _, name := range []string{"three", "provider"} {
		list, err := w.in(name).Resource(webs).List(t.Context(), metav1.ListOptions{})
		if name == "three" && !apierrors.IsNotFound(err) || name == "provider" && (err != nil || len(list.Items) != 0) {
			t.Error(name, list, err)
		}
	}
}

// The provider sees the objects of all consumers that accept it, in one list and one watch.
func TestProviderSees(t *testing.T) {
	w := start(t, "provider", "one", "two", "hidden")
	w.provide("provider", toAll)
	w.bind("one", "provider", everything)
	w.bind("two", "provider", accept(reads, "webs.example.com"))
	w.bind("hidden", "provider")
	for _, name := range []string{"one", "two", "hidden"} {
		w.create(w.in(name).Resource(webs).Namespace("default"), web("first", "x"))
	}
	all := w.of("provider", "*").Resource(webs)
	list, err := all.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(w.names(all, metav1.ListOptions{})); strings.Contains(got, "hidden") || !strings.Contains(got, "one/first") || !strings.Contains(got, "two/first") || len(list.Items) != 2 {
		t.Error(got)
	}
	if got := w.names(all.Namespace("default"), metav1.ListOptions{FieldSelector: "espalier.dev/tenant=two,spec.image=x"}); fmt.Sprint(got) != "[two/first]" {
		t.Error(got)
	}
	var paged []string
	for options := (metav1.ListOptions{Limit: 1}); ; {
		page, err := all.List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Items {
			paged = append(paged, o.GetAnnotations()["espalier.dev/tenant"])
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	if len(paged) != 2 {
		t.Error("in pages:", paged)
	}
	events, err := all.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	next := func() string {
		t.Helper()
		select {
		case e, ok := <-events.ResultChan():
			if !ok {
				return "closed"
			}
			o, _ := e.Object.(*unstructured.Unstructured)
			return fmt.Sprint(e.Type, " ", o.GetAnnotations()["espalier.dev/tenant"], "/", o.GetName(), o.GetResourceVersion() != "")
		case <-time.After(10 * time.Second):
			return "nothing"
		}
	}
	for _, name := range []string{"hidden", "one"} {
		w.create(w.in(name).Resource(webs).Namespace("default"), web("second", "y"))
	}
	if got := next(); !strings.HasPrefix(got, "ADDED one/second") {
		t.Error(got)
	}
	// It writes as far as it is accepted.
	for name, fails := range map[string]func(error) bool{"one": nil, "two": apierrors.IsForbidden, "hidden": apierrors.IsNotFound, "nobody": apierrors.IsNotFound} {
		c := w.of("provider", name).Resource(webs).Namespace("default")
		o := list.Items[0].DeepCopy()
		if got, err := c.Get(t.Context(), "first", metav1.GetOptions{}); err == nil {
			o = got
			o.SetAnnotations(map[string]string{"espalier.dev/tenant": "forged"})
		} else if name == "one" || name == "two" {
			t.Error(name, err)
		}
		_, err := c.Update(t.Context(), o, metav1.UpdateOptions{})
		if fails == nil && err != nil || fails != nil && !fails(err) {
			t.Error(name, err)
		}
	}
	if err := w.in("one").Resource(webs).Namespace("default").Delete(t.Context(), "second", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	got := next()
	if strings.HasPrefix(got, "MODIFIED one/first") { // by the update
		got = next()
	}
	if !strings.HasPrefix(got, "DELETED one/second") {
		t.Error(got)
	}
	for what, c := range map[string]dynamic.Interface{"all": w.of("provider", "*"), "one": w.of("provider", "one")} {
		if _, err := c.Resource(maps).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			t.Error(what, "shows other resources:", err)
		}
	}
}

// To delete a binding is to delete its objects, which wait for their finalizers.
func TestUnbind(t *testing.T) {
	w := start(t, "provider", "one", "two")
	w.provide("provider", toAll)
	for _, name := range []string{"one", "two"} {
		w.bind(name, "provider", everything)
		w.create(w.in(name).Resource(webs).Namespace("default"), web("a", "x"))
	}
	held := web("held", "x")
	held.SetFinalizers([]string{"example.com/provider"})
	one := w.in("one").Resource(webs).Namespace("default")
	w.create(one, held)
	if err := w.in("one").Resource(bindings.Bindings).Delete(t.Context(), "webs", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.reason("one", "webs", "Deleting")
	if _, err := one.Create(t.Context(), web("late", "x"), metav1.CreateOptions{}); err == nil {
		t.Error("created while the binding is being deleted")
	}
	if _, err := w.of("provider", "one").Resource(webs).Namespace("default").Patch(t.Context(), "held", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	w.eventually(func() error {
		_, err := w.in("one").Resource(bindings.Bindings).Get(t.Context(), "webs", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the binding is there: %w", err)
	})
	if _, err := one.List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	if got := w.names(w.of("provider", "*").Resource(webs), metav1.ListOptions{}); fmt.Sprint(got) != "[two/a]" {
		t.Error(got)
	}
	// Now the name is free.
	w.create(w.in("one").Resource(crds), crd("webs", "Web"))
	w.eventually(func() error {
		_, err := one.Create(context.Background(), web("own", "x"), metav1.CreateOptions{})
		return err
	})
	if got := w.names(w.of("provider", "*").Resource(webs), metav1.ListOptions{}); fmt.Sprint(got) != "[two/a]" {
		t.Error(got)
	}
}
