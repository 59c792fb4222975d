package namespace

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"

	"github.com/espalier-dev/espalier/server/catalog/restmapping"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/restmappingtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

const group = "example.com/v1"

// site is a server whose namespaces are emptied.
type site struct{ *restmappingtest.Server }

func start(t *testing.T, grace time.Duration, change ...func(*Config)) *site {
	t.Helper()
	s := &site{restmappingtest.Start(t, restmappingtest.Options{})}
	s.Define(t, restmappingtest.CRD("widgets", "example.com", true))
	s.runController(t, grace, change...)
	return s
}

// runController empties namespaces until the test ends.
func (s *site) runController(t *testing.T, grace time.Duration, change ...func(*Config)) {
	t.Helper()
	factory := informers.NewSharedInformerFactory(s.Client, 0)
	config := Config{
		Etcd: s.Backend.Client(), Prefix: s.Prefix, Kinds: s.Kinds, Client: s.Client, Metadata: s.Metadata,
		Namespaces: factory.Core().V1().Namespaces(), Grace: grace,
	}
	for _, f := range change {
		f(&config)
	}
	v := New(config)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = v.Run(ctx) }()
	synced := factory.Core().V1().Namespaces().Informer().HasSynced
	factory.Start(ctx.Done())
	t.Cleanup(func() { cancel(); <-done; factory.Shutdown() })
	restmappingtest.Eventually(t, "the informer has synced", synced)
}

func (s *site) namespace(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	return s.Object(t, "v1", "Namespace", "", name)
}

func (s *site) delete(t *testing.T, ns *unstructured.Unstructured) {
	t.Helper()
	s.Delete(t, ns, metav1.DeletePropagationBackground)
}

func (s *site) merge(t *testing.T, o *unstructured.Unstructured, body string) {
	t.Helper()
	if _, err := s.Of(t, o).Patch(t.Context(), o.GetName(), types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (s *site) gone(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		restmappingtest.Eventually(t, o.GetKind()+" "+o.GetName()+" is gone", func() bool { return s.Get(t, o) == nil })
	}
}

// condition returns what a condition of a namespace says, with its status and reason.
func (s *site) condition(t *testing.T, name string, kind corev1.NamespaceConditionType) string {
	t.Helper()
	ns, err := s.Client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range ns.Status.Conditions {
		if c.Type == kind {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

func TestEmptied(t *testing.T) {
	s := start(t, time.Millisecond)
	shop, other := s.namespace(t, "shop"), s.namespace(t, "shop-2")
	var inside []*unstructured.Unstructured
	for i := range 20 {
		inside = append(inside,
			s.Object(t, group, "Widget", "shop", fmt.Sprint("w", i)),
			s.Object(t, "v1", "ConfigMap", "shop", fmt.Sprint("c", i)))
	}
	outside := []*unstructured.Unstructured{s.Object(t, group, "Widget", "shop-2", "w"), s.Object(t, "v1", "Secret", "shop-2", "c"), other}
	s.delete(t, shop)
	s.gone(t, append(inside, shop)...)
	for _, o := range outside {
		if s.Get(t, o) == nil {
			t.Errorf("%s %s is gone", o.GetKind(), o.GetName())
		}
	}
	s.namespace(t, "shop") // its name can be had again
}

func TestGrace(t *testing.T) {
	s := start(t, 3*time.Second)
	ns := s.namespace(t, "shop")
	early := s.Object(t, group, "Widget", "shop", "early")
	began := time.Now()
	s.delete(t, ns)
	s.gone(t, early)
	late := s.Object(t, group, "Widget", "shop", "late") // by a server that has not heard of it
	s.gone(t, ns, late)
	if took := time.Since(began); took < 2*time.Second { // timestamps are of whole seconds
		t.Errorf("gone after %s", took)
	}
}

// A client that finalizes an empty namespace itself meets no conflict.
func TestEmptyNamespaceIsNotChanged(t *testing.T) {
	s := start(t, 2*time.Second)
	ns := s.namespace(t, "shop")
	s.delete(t, ns)
	before := s.Get(t, ns)
	time.Sleep(500 * time.Millisecond)
	if after := s.Get(t, ns); after == nil || before == nil || after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("%v has become %v", before, after)
	}
	s.gone(t, ns)
}

// A namespace stays while it has objects of a kind that the server does not serve: they
// would belong to the next namespace of this name.
func TestKindsThatAreOff(t *testing.T) {
	pods := restmapping.Kind{Resource: schema.GroupVersionResource{Resource: "pods"}, Kind: "Pod", Namespaced: true, Prefix: "/pods"}
	s := start(t, time.Millisecond, func(c *Config) { c.Off = func() []restmapping.Kind { return []restmapping.Kind{pods} } })
	ns, etcd, key := s.namespace(t, "shop"), s.Backend.Client(), path.Join("/", s.Prefix, "pods/shop/p")
	if _, err := etcd.Put(t.Context(), key, "x"); err != nil {
		t.Fatal(err)
	}
	s.delete(t, ns)
	restmappingtest.Eventually(t, "the condition says what to do", func() bool {
		return strings.Contains(s.condition(t, "shop", corev1.NamespaceDeletionContentFailure), "pods: this server does not serve the kind, so that its objects cannot be deleted: start it with --kinds=all")
	})
	if answer, err := etcd.Get(t.Context(), key); err != nil || answer.Count != 1 || s.Get(t, ns) == nil {
		t.Fatalf("%v, %v", answer, err)
	}
	if _, err := etcd.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	s.gone(t, ns)
}

func TestFinalizers(t *testing.T) {
	s := start(t, time.Millisecond)
	ns := s.namespace(t, "shop")
	widget := s.Object(t, group, "Widget", "shop", "a")
	s.merge(t, widget, `{"metadata":{"finalizers":["x/y"]}}`)
	cm := s.Object(t, "v1", "ConfigMap", "shop", "b")
	s.merge(t, cm, `{"metadata":{"finalizers":["x/y","x/z"]}}`)
	plain := s.Object(t, "v1", "ConfigMap", "shop", "plain")
	s.delete(t, ns)
	s.gone(t, plain)
	for kind, want := range map[corev1.NamespaceConditionType]string{
		"NamespaceDeletionDiscoveryFailure":           "False ResourcesDiscovered: All resources successfully discovered",
		"NamespaceDeletionGroupVersionParsingFailure": "False ParsedGroupVersions: All legacy kube types successfully parsed",
		"NamespaceDeletionContentFailure":             "False ContentDeleted: All content successfully deleted, may be waiting on finalization",
		"NamespaceContentRemaining":                   "True SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances, widgets.example.com has 1 resource instances",
		"NamespaceFinalizersRemaining":                "True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: x/y in 2 resource instances, x/z in 1 resource instances",
	} {
		restmappingtest.Eventually(t, want, func() bool { return s.condition(t, "shop", kind) == want })
	}
	s.merge(t, cm, `{"metadata":{"finalizers":null}}`)
	restmappingtest.Eventually(t, "one is left", func() bool {
		return strings.HasSuffix(s.condition(t, "shop", corev1.NamespaceContentRemaining), ": widgets.example.com has 1 resource instances")
	})
	s.merge(t, widget, `{"metadata":{"finalizers":null}}`)
	s.gone(t, widget, cm, ns)
}

// TestBrokenKinds has one whose conversion fails and one that no version is served of.
func TestBrokenKinds(t *testing.T) {
	s := start(t, time.Millisecond)
	things, ghosts := restmappingtest.CRD("things", "example.com", true), restmappingtest.CRD("ghosts", "example.com", true)
	s.Define(t, things)
	s.Define(t, ghosts)
	ns := s.namespace(t, "shop")
	s.Object(t, group, "Thing", "shop", "a")
	s.Object(t, group, "Ghost", "shop", "a")
	widget := s.Object(t, group, "Widget", "shop", "a")
	s.merge(t, things, `{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1/"}}},
		"versions":[{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}},{"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
	s.merge(t, ghosts, `{"spec":{"versions":[{"name":"v1","served":false,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
	restmappingtest.Eventually(t, "the definitions are broken", func() bool {
		return s.Catalog.Get("things.example.com").StorageVersion == "v2" && !s.Catalog.Get("ghosts.example.com").Versions[0].Served
	})
	s.delete(t, ns)
	s.gone(t, widget)
	restmappingtest.Eventually(t, "the condition names them", func() bool {
		says := s.condition(t, "shop", corev1.NamespaceDeletionContentFailure)
		return strings.HasPrefix(says, "True ContentDeletionFailed: Failed to delete all resource types, 2 remaining: ghosts.example.com: no version is served") &&
			strings.Contains(says, ", things.example.com: ")
	})
	s.merge(t, things, `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
	s.merge(t, ghosts, `{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
	s.gone(t, ns)
}

// TestUnknownKind has a server that starts while a CRD cannot be read: the objects of that
// kind cannot be deleted, and so no namespace is removed.
func TestUnknownKind(t *testing.T) {
	before := restmappingtest.Start(t, restmappingtest.Options{})
	before.Define(t, restmappingtest.CRD("widgets", "example.com", true))
	before.Object(t, "v1", "Namespace", "", "shop")
	before.Object(t, "v1", "Namespace", "", "empty")
	before.Object(t, group, "Widget", "shop", "a")
	etcd, key := before.Backend.Client(), before.Prefix+"/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com"
	good, err := etcd.Get(t.Context(), key)
	if err != nil || len(good.Kvs) != 1 {
		t.Fatalf("the CRD: %v %v", good, err)
	}
	if _, err := etcd.Put(t.Context(), key, "garbage"); err != nil {
		t.Fatal(err)
	}

	s := &site{restmappingtest.Start(t, restmappingtest.Options{Prefix: before.Prefix})}
	s.runController(t, time.Millisecond)
	var namespaces []*unstructured.Unstructured
	for _, name := range []string{"shop", "empty"} {
		ns := s.Object(t, "v1", "ConfigMap", name, "plain")
		namespaces = append(namespaces, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}})
		s.delete(t, namespaces[len(namespaces)-1])
		s.gone(t, ns) // what is known is deleted
		restmappingtest.Eventually(t, "the condition names the CRD", func() bool {
			says := s.condition(t, name, corev1.NamespaceDeletionDiscoveryFailure)
			return strings.HasPrefix(says, "True DiscoveryFailed: Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: example.com: ") &&
				strings.Contains(says, "the CustomResourceDefinition widgets.example.com is in etcd and cannot be read")
		})
	}
	restmappingtest.Eventually(t, "the condition counts its objects", func() bool {
		return s.condition(t, "shop", corev1.NamespaceContentRemaining) == "True SomeResourcesRemain: Some resources are remaining: widgets.example.com has 1 resource instances"
	})
	time.Sleep(300 * time.Millisecond) // a few more looks
	for _, ns := range namespaces {
		if _, err := s.Client.CoreV1().Namespaces().Get(t.Context(), ns.GetName(), metav1.GetOptions{}); err != nil {
			t.Errorf("namespace %s: %v", ns.GetName(), err)
		}
	}
	if _, err := etcd.Put(t.Context(), key, string(good.Kvs[0].Value)); err != nil {
		t.Fatal(err)
	}
	for _, ns := range namespaces {
		restmappingtest.Eventually(t, ns.GetName()+" is gone", func() bool {
			_, err := s.Client.CoreV1().Namespaces().Get(t.Context(), ns.GetName(), metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
}

// TestCountIsCheap has as many kinds as a large server.
func TestCountIsCheap(t *testing.T) {
	s := restmappingtest.Start(t, restmappingtest.Options{})
	v := New(Config{Etcd: s.Backend.Client(), Prefix: s.Prefix})
	all := make([]restmapping.Kind, 10_000)
	for i := range all {
		all[i].Prefix = fmt.Sprintf("/example.com/k%d", i)
	}
	for _, key := range []string{"/example.com/k5000/shop/a", "/example.com/k5000/shop/b", "/example.com/k7/shop-2/a", "/example.com/k7/a"} {
		if _, err := s.Backend.Client().Put(t.Context(), s.Prefix+key, "x"); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	some, err := v.count(t.Context(), "shop", all)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("10,000 kinds counted in %s", time.Since(began))
	if len(some) != 1 || some[0].Prefix != "/example.com/k5000" || some[0].count != 2 {
		t.Errorf("found %v", some)
	}
}
