package informer

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/server/etcdtest"
)

// harness is a feed of config maps and namespaces on an etcd.
type harness struct {
	*testing.T
	etcd    *clientv3.Client
	prefix  string
	feed    *Feed
	factory informers.SharedInformerFactory
}

func TestMain(m *testing.M) { etcdtest.Main(m) }

func start(t *testing.T, complete bool) *harness {
	t.Helper()
	etcd, prefix := etcdtest.Client(t)
	codec := scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion)
	h := &harness{T: t, etcd: etcd, prefix: prefix, factory: informers.NewSharedInformerFactory(nil, 0)}
	h.feed = New(Options{Etcd: etcd, Prefix: prefix, Stream: "test"}, []Kind{
		{Resource: schema.GroupResource{Resource: "configmaps"}, Folder: "/configmaps", New: func() runtime.Object { return &corev1.ConfigMap{} }, Codec: codec, Complete: complete},
		{Resource: schema.GroupResource{Resource: "namespaces"}, Folder: "/namespaces", New: func() runtime.Object { return &corev1.Namespace{} }, Codec: codec},
	})
	h.feed.Register(h.factory)
	return h
}

func (h *harness) run() {
	h.Helper()
	var running sync.WaitGroup
	running.Go(func() { _ = h.feed.Run(h.Context()) })
	h.Cleanup(running.Wait)
}

func (h *harness) put(namespace, name, value string) {
	h.Helper()
	data, err := runtime.Encode(scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"v": value}})
	if err != nil {
		h.Fatal(err)
	}
	h.raw("/configmaps/"+namespace+"/"+name, string(data))
}

func (h *harness) raw(key, value string) {
	h.Helper()
	if _, err := h.etcd.Put(h.Context(), h.prefix+key, value); err != nil {
		h.Fatal(err)
	}
}

// events are what a handler was told.
type events struct {
	mu   sync.Mutex
	list []string
}

func (e *events) add(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, fmt.Sprintf(format, args...))
}

func (e *events) OnAdd(o any, first bool) {
	e.add("add %s %s %v", o.(*corev1.ConfigMap).Name, o.(*corev1.ConfigMap).Data["v"], first)
}
func (e *events) OnUpdate(old, o any) {
	e.add("update %s %s to %s", o.(*corev1.ConfigMap).Name, old.(*corev1.ConfigMap).Data["v"], o.(*corev1.ConfigMap).Data["v"])
}
func (e *events) OnDelete(o any) { e.add("delete %s", o.(*corev1.ConfigMap).Name) }

// await waits until a handler was told exactly this.
func (h *harness) await(e *events, want ...string) {
	h.Helper()
	var got string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		e.mu.Lock()
		got = fmt.Sprintf("%q", e.list)
		e.mu.Unlock()
		if got == fmt.Sprintf("%q", want) {
			return
		}
	}
	h.Fatalf("told %s, want %q", got, want)
}

// Handlers are told what there is, and what changes, in the order of etcd; lists see the same.
func TestFeed(t *testing.T) {
	h := start(t, false)
	for i := range 2*small + 1 { // more than one read
		h.put("many", fmt.Sprintf("m%03d", i), "1")
	}
	maps := h.factory.Core().V1().ConfigMaps()
	told := &events{}
	registration, err := maps.Informer().AddEventHandler(cache.FilteringResourceEventHandler{
		FilterFunc: func(o any) bool { return o.(*corev1.ConfigMap).Namespace == "few" }, Handler: told,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.put("few", "a", "1")
	h.run()
	h.await(told, "add a 1 true")
	// Handlers are told of the last object a moment before the list is complete.
	if !cache.WaitForCacheSync(t.Context().Done(), registration.HasSynced, maps.Informer().HasSynced) {
		t.Error("not synchronized after the first list")
	}
	h.put("few", "b", "1")
	h.put("few", "a", "2")
	if _, err := h.etcd.Delete(t.Context(), h.prefix+"/configmaps/few/b"); err != nil {
		t.Fatal(err)
	}
	h.await(told, "add a 1 true", "add b 1 false", "update a 1 to 2", "delete b")
	all, err := maps.Lister().ConfigMaps("many").List(labels.Everything())
	if err != nil || len(all) != 2*small+1 {
		t.Errorf("%d objects, %v", len(all), err)
	}
	one, err := maps.Lister().ConfigMaps("few").Get("a")
	if err != nil || one.Data["v"] != "2" || one.ResourceVersion == "" {
		t.Errorf("%+v, %v", one, err)
	}
}

// A kind that is asked for later is read then.
func TestLateKind(t *testing.T) {
	h := start(t, false)
	h.run()
	h.raw("/namespaces/n", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`)
	h.put("few", "a", "1")
	told := &events{}
	if _, err := h.factory.Core().V1().ConfigMaps().Informer().AddEventHandler(told); err != nil {
		t.Fatal(err)
	}
	h.await(told, "add a 1 true")
	h.put("few", "a", "2")
	h.await(told, "add a 1 true", "update a 1 to 2")
	late := &events{}
	if _, err := h.factory.Core().V1().ConfigMaps().Informer().AddEventHandler(late); err != nil {
		t.Fatal(err)
	}
	h.await(late, "add a 2 true")
}

// After a gap in the history of etcd, handlers are told the differences.
func TestGap(t *testing.T) {
	h := start(t, false)
	told := &events{}
	if _, err := h.factory.Core().V1().ConfigMaps().Informer().AddEventHandler(told); err != nil {
		t.Fatal(err)
	}
	h.put("few", "a", "1")
	h.put("few", "b", "1")
	informer := h.feed.informers[0]
	if _, err := h.feed.load(t.Context(), h.feed.wanted(false)); err != nil {
		t.Fatal(err)
	}
	h.put("few", "a", "2")
	h.put("few", "c", "1")
	if _, err := h.etcd.Delete(t.Context(), h.prefix+"/configmaps/few/b"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.feed.load(t.Context(), h.feed.wanted(false)); err != nil {
		t.Fatal(err)
	}
	h.await(told, "add a 1 true", "add b 1 true", "delete b", "update a 1 to 2", "add c 1 false")
	if informer.LastSyncResourceVersion() == "0" {
		t.Error("no revision")
	}
}

// An object that cannot be read is left out, or keeps the informer from being synchronized.
func TestUnreadable(t *testing.T) {
	for _, complete := range []bool{false, true} {
		h := start(t, complete)
		h.raw("/configmaps/few/bad", "no object")
		h.put("few", "good", "1")
		told := &events{}
		if _, err := h.factory.Core().V1().ConfigMaps().Informer().AddEventHandler(told); err != nil {
			t.Fatal(err)
		}
		h.run()
		if !complete {
			h.await(told, "add good 1 true")
			continue
		}
		time.Sleep(3 * pause)
		h.await(told)
		if h.factory.Core().V1().ConfigMaps().Informer().HasSynced() {
			t.Error("synchronized without an object that must not be left out")
		}
		h.put("few", "bad", "2")
		h.await(told, "add bad 2 true", "add good 1 true")
	}
}
