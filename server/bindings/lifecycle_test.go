package bindings_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-dev/espalier/server/bindings"
	"github.com/espalier-dev/espalier/server/tenants"
)

var (
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	quotas     = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
)

func (w *shop) patch(c interface {
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (*unstructured.Unstructured, error)
}, name, patch string,
) {
	w.Helper()
	if _, err := c.Patch(w.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
}

// keys are those in etcd that have all of some texts.
func (w *shop) keys(texts ...string) (found []string) {
	w.Helper()
	all, err := w.etcd.Get(w.Context(), "\x00", clientv3.WithFromKey(), clientv3.WithKeysOnly())
	if err != nil {
		w.Fatal(err)
	}
next:
	for _, kv := range all.Kvs {
		for _, text := range texts {
			if !strings.Contains(string(kv.Key), text) {
				continue next
			}
		}
		found = append(found, string(kv.Key))
	}
	return found
}

func (w *shop) uid(tenant string) string {
	w.Helper()
	o, err := w.root().Resource(tenants.Resource).Get(w.Context(), tenant, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return string(o.GetUID())
}

// A name is that of one CRD, in whichever tenant.
func TestConflicts(t *testing.T) {
	w := start(t, "provider", "one")
	w.provide("provider", toAll)
	one := w.in("one")
	w.create(one.Resource(crds), crd("webs", "Site"))
	w.create(one.Resource(bindings.Bindings), binding("webs", "provider", "webs", everything))
	w.reason("one", "webs", "Conflict")
	if n := w.keys("-shared/" + w.uid("provider") + "/grants/"); len(n) > 0 {
		t.Error("granted in spite of the conflict:", n)
	}
	if err := one.Resource(crds).Delete(t.Context(), "webs.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.patch(one.Resource(bindings.Bindings), "webs", `{"metadata": {"labels": {"again": "yes"}}}`)
	w.reason("one", "webs", "Bound")
	if _, err := one.Resource(crds).Create(t.Context(), crd("webs", "Web"), metav1.CreateOptions{}); !apierrors.IsConflict(err) && apierrors.ReasonForError(err) != "Bound" {
		t.Error("a CRD of the name that is bound:", err)
	}
	own := crd("webs", "Web")
	own.SetName("apiexports.apis.espalier.dev")
	own.Object["spec"].(map[string]any)["group"] = "apis.espalier.dev"
	own.Object["spec"].(map[string]any)["names"].(map[string]any)["plural"] = "apiexports"
	if _, err := one.Resource(crds).Create(t.Context(), own, metav1.CreateOptions{}); err == nil {
		t.Error("a CRD of the name that is built in")
	}
	if err := w.in("provider").Resource(crds).Delete(t.Context(), "webs.example.com", metav1.DeleteOptions{}); !apierrors.IsConflict(err) {
		t.Error("a bound CRD was deleted:", err)
	}
	// Another binding of the same, and one to itself.
	w.create(one.Resource(bindings.Bindings), binding("twice", "provider", "webs"))
	w.reason("one", "twice", "Conflict")
	w.create(w.in("provider").Resource(bindings.Bindings), binding("self", "provider", "webs"))
	w.reason("provider", "self", "NotFound")
	// What the server itself has is not bound.
	builtIn := crd("leases", "Lease")
	builtIn.SetName("leases.coordination.k8s.io")
	builtIn.SetAnnotations(map[string]string{"api-approved.kubernetes.io": "unapproved, a test"})
	builtIn.Object["spec"].(map[string]any)["group"] = "coordination.k8s.io"
	w.create(w.in("provider").Resource(crds), builtIn)
	w.create(w.in("provider").Resource(bindings.Exports), export("apps", toAll, "leases.coordination.k8s.io"))
	w.create(one.Resource(bindings.Bindings), binding("apps", "provider", "apps", everything))
	w.reason("one", "apps", "BuiltIn")
}

// A reflector of client-go has the objects of all tenants, though they have the same namespace and name.
func TestReflectorOfAllTenants(t *testing.T) {
	w := start(t, "provider", "one", "two")
	w.provide("provider", toAll)
	for _, name := range []string{"one", "two"} {
		w.bind(name, "provider", everything)
		w.create(w.in(name).Resource(webs).Namespace("default"), web("shop", "image"))
	}
	all := w.of("provider", "*").Resource(webs)
	store := cache.NewStore(func(o any) (string, error) {
		m, err := meta.Accessor(o)
		if err != nil {
			return "", err
		}
		return m.GetAnnotations()["espalier.dev/tenant"] + "/" + m.GetName(), nil
	})
	lists := &cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return all.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return all.Watch(ctx, o) },
	}
	go cache.NewReflectorWithOptions(lists, &unstructured.Unstructured{}, store, cache.ReflectorOptions{}).RunWithContext(t.Context())
	w.eventually(func() error {
		if keys := store.ListKeys(); len(keys) != 2 {
			return fmt.Errorf("the reflector has %v", keys)
		}
		return nil
	})
	yes := true
	if _, err := all.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true}); !apierrors.IsInvalid(err) {
		t.Error("a watch list of all tenants:", err)
	}
}

// A tenant has a bounded number of APIBindings, and can change those that it has.
func TestBindingsAreBounded(t *testing.T) {
	w := start(t, "one")
	all := w.in("one").Resource(bindings.Bindings)
	first := w.create(all, binding("b000", "nobody", "webs"))
	w.reason("one", first.GetName(), "NotFound")
	key := w.keys("-tenants/"+w.uid("one"), "/apibindings/b000")[0]
	stored, err := w.etcd.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	// As many as a tenant may have: the others are being deleted, so that nothing is done about them.
	const most = 250
	gone := strings.Replace(string(stored.Kvs[0].Value), `"metadata":{`, `"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z",`, 1)
	gone = strings.Replace(gone, bindings.Finalizer, "example.com/kept", 1)
	for i := 1; i < most; i++ {
		name := fmt.Sprintf("b%03d", i)
		if _, err := w.etcd.Put(t.Context(), strings.TrimSuffix(key, "b000")+name, strings.ReplaceAll(gone, "b000", name)); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually(func() error {
		_, err := all.Create(t.Context(), binding("more", "nobody", "webs"), metav1.CreateOptions{})
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "250 APIBindings") {
			return nil
		}
		if err == nil {
			err = all.Delete(t.Context(), "more", metav1.DeleteOptions{})
		}
		return fmt.Errorf("one more than %d: %w", most, err)
	})
	w.patch(all, first.GetName(), `{"metadata": {"labels": {"changed": "yes"}}}`)
	w.patch(all, "b007", `{"metadata": {"finalizers": null}}`)
	w.eventually(func() error {
		_, err := all.Create(t.Context(), binding("more", "nobody", "webs"), metav1.CreateOptions{})
		return err
	})
}

// Consumers follow the CRD and the export, and the provider what is accepted.
func TestFollow(t *testing.T) {
	w := start(t, "provider", "one")
	w.provide("provider", map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"plan": "gold"}}})
	w.create(w.in("one").Resource(bindings.Bindings), binding("webs", "provider", "webs", everything))
	w.reason("one", "webs", "NotFound")
	w.patch(w.root().Resource(tenants.Resource), "one", `{"metadata": {"labels": {"plan": "gold"}}}`)
	w.patch(w.in("one").Resource(bindings.Bindings), "webs", `{"metadata": {"labels": {"again": "yes"}}}`)
	w.reason("one", "webs", "Bound")
	one := w.in("one").Resource(webs).Namespace("default")
	w.create(one, web("a", "short"))
	// A new schema.
	o, err := w.in("provider").Resource(crds).Get(t.Context(), "webs.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
	if err := unstructured.SetNestedField(versions[0].(map[string]any), int64(3), "schema", "openAPIV3Schema", "properties", "spec", "properties", "image", "maxLength"); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedSlice(o.Object, versions, "spec", "versions")
	if _, err := w.in("provider").Resource(crds).Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	w.eventually(func() error {
		if _, err := one.Create(t.Context(), web("b", "short"), metav1.CreateOptions{DryRun: []string{"All"}}); !apierrors.IsInvalid(err) {
			return fmt.Errorf("the new schema is not used: %w", err)
		}
		return nil
	})
	t.Log("a new schema is used after", time.Since(began))
	// What was accepted is taken back, while the provider watches both ways.
	var watches []<-chan struct{}
	for _, consumer := range []string{"*", "one"} {
		events, err := w.of("provider", consumer).Resource(webs).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			for range events.ResultChan() {
			}
			close(ended)
		}()
		watches = append(watches, ended)
	}
	w.patch(w.in("one").Resource(bindings.Bindings), "webs", `{"spec": {"accept": null}}`)
	for _, ended := range watches {
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Error("a watch goes on without being accepted")
		}
	}
	w.eventually(func() error {
		if n := w.names(w.of("provider", "*").Resource(webs), metav1.ListOptions{}); len(n) > 0 {
			return fmt.Errorf("seen: %v", n)
		}
		return nil
	})
	if _, err := w.of("provider", "one").Resource(webs).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	// The provider exports it no more, and again.
	w.patch(w.in("provider").Resource(bindings.Exports), "webs", `{"spec": {"consumers": null}}`)
	w.reason("one", "webs", "NotFound")
	w.eventually(func() error {
		if _, err := one.List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("served although it is not exported: %w", err)
		}
		return nil
	})
	w.patch(w.in("provider").Resource(bindings.Exports), "webs", `{"spec": {"consumers": {"everyone": true}}}`)
	w.reason("one", "webs", "Bound")
	w.eventually(func() error {
		_, err := one.Get(t.Context(), "a", metav1.GetOptions{})
		return err
	})
}

// A consumer takes its objects with it, and what the provider has of them; a provider what it has.
func TestTenantsEnd(t *testing.T) {
	w := start(t, "provider", "one", "two")
	w.provide("provider", toAll)
	for _, name := range []string{"one", "two"} {
		w.bind(name, "provider", everything)
		w.create(w.in(name).Resource(webs).Namespace("default"), web("a", "x"))
	}
	one, provider := w.uid("one"), w.uid("provider")
	for _, uid := range []string{one, provider} {
		prefix := strings.TrimPrefix(strings.Split(w.keys("-tenants/" + uid)[0], "-tenants/")[0], "/")
		if why, err := tenants.Stays(t.Context(), w.etcd, prefix, types.UID(uid)); err != nil || why == "" {
			t.Errorf("a tenant that shares an API can be moved: %v", err)
		}
	}
	events, err := w.of("provider", "*").Resource(webs).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	deleted := make(chan string, 10)
	go func() {
		for e := range events.ResultChan() {
			if o, ok := e.Object.(*unstructured.Unstructured); ok && e.Type == "DELETED" {
				deleted <- o.GetAnnotations()["espalier.dev/tenant"] + "/" + o.GetName()
			}
		}
	}()
	end := func(name string) {
		t.Helper()
		if err := w.root().Resource(tenants.Resource).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually(func() error {
			_, err := w.root().Resource(tenants.Resource).Get(t.Context(), name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("%s is there: %w", name, err)
		})
	}
	end("one")
	select {
	case got := <-deleted:
		if got != "one/a" {
			t.Error(got)
		}
	case <-time.After(10 * time.Second):
		t.Error("the provider was not told of the deletion")
	}
	if left := w.keys(one); len(left) > 0 {
		t.Error("left of the consumer:", left)
	}
	end("provider")
	if left := w.keys(provider); len(left) > 0 {
		t.Error("left of the provider:", left)
	}
	w.reason("two", "webs", "NotFound")
	if err := w.in("two").Resource(bindings.Bindings).Delete(t.Context(), "webs", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() error {
		if left := w.keys(w.uid("two"), "/webs/"); len(left) > 0 {
			return fmt.Errorf("left: %v", left)
		}
		_, err := w.in("two").Resource(bindings.Bindings).Get(t.Context(), "webs", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the binding is there: %w", err)
	})
}

// Quotas, namespaces and the garbage collector of a consumer treat the objects as any other.
func TestControllersOfConsumers(t *testing.T) {
	w := start(t, "provider", "one")
	w.provide("provider", toAll)
	w.bind("one", "provider", everything)
	one := w.in("one")
	w.create(one.Resource(namespaces), object("v1", "Namespace", "shop", map[string]any{}, nil))
	w.create(one.Resource(quotas).Namespace("shop"), object("v1", "ResourceQuota", "webs", map[string]any{"hard": map[string]any{"count/webs.example.com": "1"}}, nil))
	w.eventually(func() error {
		q, err := one.Resource(quotas).Namespace("shop").Get(t.Context(), "webs", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if used, _, _ := unstructured.NestedMap(q.Object, "status", "used"); len(used) == 0 {
			return fmt.Errorf("the quota is not counted: %v", q.Object)
		}
		return nil
	})
	c := one.Resource(webs).Namespace("shop")
	owner := w.create(c, web("owner", "x"))
	if _, err := c.Create(t.Context(), web("more", "x"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Error("a quota was exceeded:", err)
	}
	dependent := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "dependent"}}}
	dependent.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Web", Name: "owner", UID: owner.GetUID()}})
	w.create(one.Resource(maps).Namespace("shop"), dependent)
	foreground := metav1.DeletePropagationForeground
	if err := c.Delete(t.Context(), "owner", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() error {
		_, err := one.Resource(maps).Namespace("shop").Get(t.Context(), "dependent", metav1.GetOptions{})
		_, web := c.Get(t.Context(), "owner", metav1.GetOptions{})
		if apierrors.IsNotFound(err) && apierrors.IsNotFound(web) {
			return nil
		}
		return fmt.Errorf("%w, %w", err, web)
	})
	w.eventually(func() error {
		_, err := c.Create(t.Context(), web("last", "x"), metav1.CreateOptions{})
		return err
	})
	if err := one.Resource(namespaces).Delete(t.Context(), "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() error {
		_, err := one.Resource(namespaces).Get(t.Context(), "shop", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the namespace is there: %w", err)
		}
		if left := w.keys(w.uid("one"), "/webs/", "/shop/"); len(left) > 0 {
			t.Error("left of the namespace:", left)
		}
		return nil
	})
}
