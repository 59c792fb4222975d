package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/store"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// codec stores objects as they are, and reads them so.
type codec struct{}

func (codec) Identifier() kruntime.Identifier { return "test" }

func (codec) Encode(obj kruntime.Object, w io.Writer) error {
	_, err := w.Write(obj.(*object.Object).JSON())
	return err
}

func (codec) Decode(data []byte, _ *schema.GroupVersionKind, into kruntime.Object) (kruntime.Object, *schema.GroupVersionKind, error) {
	o, err := object.FromJSON(slices.Clone(data))
	if err != nil {
		return nil, nil, err
	}
	gvk := o.GroupVersionKind()
	if p, ok := into.(*object.Object); ok {
		*p = *o
		return p, &gvk, nil
	}
	return o, &gvk, nil
}

func attributes(obj kruntime.Object) (labels.Set, fields.Set, error) {
	o := obj.(*object.Object)
	return o.GetLabels(), fields.Set{
		"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace(),
		"apiVersion": o.APIVersion(), // no resource has this: it shows which version a selector sees
	}, nil
}

const prefix = "/example.com/gadgets"

func spec(version string) store.Spec {
	gvk := schema.GroupVersionKind{Group: "example.com", Version: version, Kind: "Gadget"}
	return store.Spec{
		Resource:       schema.GroupResource{Group: "example.com", Resource: "gadgets"},
		ResourcePrefix: prefix,
		Codec:          codec{},
		NewFunc:        func() kruntime.Object { return object.New(gvk) },
		NewListFunc:    func() kruntime.Object { return &object.List{} },
		KeyFunc: func(o kruntime.Object) (string, error) {
			ctx := genericapirequest.WithNamespace(context.Background(), o.(*object.Object).GetNamespace())
			return registry.NamespaceKeyFunc(ctx, prefix, o.(*object.Object).GetName())
		},
		AttrFunc: attributes,
		Version:  version, StorageVersion: version,
		Cached: true,
	}
}

func open(t testing.TB, change ...func(*store.Config)) *store.Backend {
	t.Helper()
	c := store.Config{Config: storagebackend.Config{Prefix: etcdtest.Prefix(t)}}
	c.Transport.ServerList = []string{etcdtest.Endpoint(t)}
	for _, f := range change {
		f(&c)
	}
	b, err := store.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func open1(t testing.TB, b *store.Backend, s store.Spec) storage.Interface {
	t.Helper()
	st, destroy, err := b.Storage(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(destroy)
	return st
}

func gadget(version, name string, value int) *object.Object {
	o, err := object.FromJSON(fmt.Appendf(nil, `{"apiVersion":"example.com/%s","kind":"Gadget","metadata":{"labels":{"parity":"%d"},"name":%q,"namespace":"ns","uid":"u-%s"},"spec":{"value":%d}}`,
		version, value%2, name, name, value))
	if err != nil {
		panic(err)
	}
	return o
}

func key(name string) string { return prefix + "/ns/" + name }

func create(t testing.TB, st storage.Interface, o *object.Object) *object.Object {
	t.Helper()
	out := &object.Object{}
	if err := st.Create(t.Context(), key(o.GetName()), o, out, 0); err != nil {
		t.Fatal(err)
	}
	return out
}

func get(t testing.TB, st storage.Interface, name, resourceVersion string) *object.Object {
	t.Helper()
	out := &object.Object{}
	if err := st.Get(t.Context(), key(name), storage.GetOptions{ResourceVersion: resourceVersion}, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func list(t testing.TB, st storage.Interface, resourceVersion string, selector ...string) *object.List {
	t.Helper()
	opts := storage.ListOptions{ResourceVersion: resourceVersion, Recursive: true, Predicate: predicate(selector...)}
	l := &object.List{}
	if err := st.GetList(t.Context(), prefix, opts, l); err != nil {
		t.Fatal(err)
	}
	return l
}

func predicate(selector ...string) storage.SelectionPredicate {
	p := storage.SelectionPredicate{Label: labels.Everything(), Field: fields.Everything(), GetAttrs: attributes}
	for _, s := range selector {
		if name, ok := strings.CutPrefix(s, "field:"); ok {
			p.Field = fields.ParseSelectorOrDie(name)
		} else {
			l, err := labels.Parse(s)
			if err != nil {
				panic(err)
			}
			p.Label = l
		}
	}
	return p
}

func update(t testing.TB, st storage.Interface, name string, change func(*object.Object)) *object.Object {
	t.Helper()
	out := &object.Object{}
	err := st.GuaranteedUpdate(t.Context(), key(name), out, false, nil, func(in kruntime.Object, _ storage.ResponseMeta) (kruntime.Object, *uint64, error) {
		o := in.(*object.Object).DeepCopy()
		change(o)
		return o, nil, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func remove(t testing.TB, st storage.Interface, name string) *object.Object {
	t.Helper()
	out := &object.Object{}
	if err := st.Delete(t.Context(), key(name), out, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return out
}

// bare returns an object without what a cache wraps it in when it has several watchers.
func bare(o kruntime.Object) kruntime.Object {
	if cached, ok := o.(kruntime.CacheableObject); ok {
		return cached.GetObject()
	}
	return o
}

// next returns the next event that is not a bookmark.
func next(t testing.TB, w watch.Interface) watch.Event {
	t.Helper()
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				t.Fatal("the watch has ended")
			}
			e.Object = bare(e.Object)
			if e.Type != watch.Bookmark {
				return e
			}
		case <-time.After(time.Minute):
			t.Fatal("no event")
		}
	}
}

func setValue(v int) func(*object.Object) {
	return func(o *object.Object) { o.SetMember("spec", fmt.Appendf(nil, `{"value":%d}`, v)) }
}

func TestVerbs(t *testing.T) {
	t.Parallel()
	for _, cached := range []bool{true, false} {
		t.Run(fmt.Sprintf("cached=%v", cached), func(t *testing.T) {
			t.Parallel()
			s := spec("v1")
			s.Cached = cached
			st := open1(t, open(t), s)
			a := create(t, st, gadget("v1", "a", 1))
			if a.GetResourceVersion() == "" {
				t.Error("an object without a resource version")
			}
			w, err := st.Watch(t.Context(), prefix, storage.ListOptions{ResourceVersion: a.GetResourceVersion(), Recursive: true, Predicate: predicate()})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			if err := st.Create(t.Context(), key("a"), gadget("v1", "a", 1), &object.Object{}, 0); !storage.IsExist(err) {
				t.Errorf("created twice: %v", err)
			}
			b := create(t, st, gadget("v1", "b", 2))
			for _, rv := range []string{"", "0", b.GetResourceVersion()} {
				if l := list(t, st, rv); rv != "0" && len(l.Items) != 2 {
					t.Errorf("list at %q has %d objects", rv, len(l.Items))
				}
			}
			if l := list(t, st, "", "parity=1"); len(l.Items) != 1 || l.Items[0].GetName() != "a" {
				t.Errorf("selected: %v", l.Items)
			}
			changed := update(t, st, "a", setValue(3))
			if again := update(t, st, "a", setValue(3)); again.GetResourceVersion() != changed.GetResourceVersion() {
				t.Error("an update without a change has been written")
			}
			if got := get(t, st, "a", changed.GetResourceVersion()); string(got.Member("spec")) != `{"value":3}` {
				t.Errorf("read %s", got.JSON())
			}
			if got := remove(t, st, "b"); got.GetName() != "b" {
				t.Errorf("deleted %s", got.JSON())
			}
			if err := st.Get(t.Context(), key("b"), storage.GetOptions{}, &object.Object{}); !storage.IsNotFound(err) {
				t.Errorf("read after deletion: %v", err)
			}
			var got []string
			for range 3 {
				e := next(t, w)
				got = append(got, fmt.Sprint(e.Type, " ", e.Object.(*object.Object).GetName()))
			}
			if want := []string{"ADDED b", "MODIFIED a", "DELETED b"}; !slices.Equal(got, want) {
				t.Errorf("events: %v", got)
			}
			if stats, err := st.Stats(t.Context()); err != nil || stats.ObjectCount != 1 {
				t.Errorf("stats: %v %v", stats, err)
			}
			if rv, err := st.GetCurrentResourceVersion(t.Context()); err != nil || rv == 0 {
				t.Errorf("revision: %d %v", rv, err)
			}
		})
	}
}

// prefixer is an encryption without a key.
type prefixer struct{}

func (prefixer) TransformFromStorage(_ context.Context, data []byte, _ value.Context) ([]byte, bool, error) {
	if len(data) < 2 || string(data[:2]) != "x:" {
		return nil, false, errors.New("not encrypted")
	}
	return data[2:], false, nil
}

func (prefixer) TransformToStorage(_ context.Context, data []byte, _ value.Context) ([]byte, error) {
	return append([]byte("x:"), data...), nil
}

func (p prefixer) TransformerForResource(schema.GroupResource) value.Transformer { return p }

func TestKeysAndEncryption(t *testing.T) {
	t.Parallel()
	var etcdPrefix string
	b := open(t, func(c *store.Config) { etcdPrefix, c.Transformers = c.Prefix, prefixer{} })
	st := open1(t, b, spec("v1"))
	create(t, st, gadget("v1", "a", 1))
	r, err := b.Client().KV.Get(t.Context(), etcdPrefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Kvs) != 1 || string(r.Kvs[0].Key) != etcdPrefix+"/example.com/gadgets/ns/a" {
		t.Fatalf("keys: %v", r.Kvs)
	}
	if string(r.Kvs[0].Value) != "x:"+string(gadget("v1", "a", 1).JSON()) {
		t.Errorf("stored: %s", r.Kvs[0].Value)
	}
	if err := b.Healthy(t.Context()); err != nil {
		t.Error(err)
	}

	// What cannot be decrypted cannot be read, and can be deleted on demand only.
	if _, err := b.Client().KV.Put(t.Context(), etcdPrefix+key("a"), "garbage"); err != nil {
		t.Fatal(err)
	}
	err = st.Get(t.Context(), key("a"), storage.GetOptions{}, &object.Object{})
	if apierrors.ReasonForError(err) != metav1.StatusReasonStoreReadError {
		t.Errorf("read of garbage: %v", err)
	}
	if err := st.Delete(t.Context(), key("a"), &object.Object{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}); err == nil {
		t.Error("garbage has been deleted without asking")
	}
	if err := st.Delete(t.Context(), key("a"), &object.Object{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{ExpectTransformOrDecodeError: true}); err != nil {
		t.Error(err)
	}
}

func TestRESTOptions(t *testing.T) {
	t.Parallel()
	b := open(t)
	s := spec("v2")
	full := s
	s.KeyFunc, s.AttrFunc, s.NewFunc, s.NewListFunc = nil, nil, nil, nil
	s.StorageVersion = "v1"
	opts := b.RESTOptions(s)
	if opts.CountMetricPollPeriod != 0 || opts.StorageConfig.Codec != s.Codec || opts.ResourcePrefix != prefix || opts.DeleteCollectionWorkers != 1 || !opts.EnableGarbageCollection {
		t.Errorf("options: %+v", opts)
	}
	if gvk, ok := opts.StorageConfig.EncodeVersioner.KindForGroupVersionKinds([]schema.GroupVersionKind{{Group: "example.com", Version: "v2", Kind: "Gadget"}}); !ok || gvk.Version != "v1" {
		t.Errorf("stored as %v", gvk)
	}
	st, destroy, err := opts.Decorator(opts.StorageConfig, prefix, full.KeyFunc, full.NewFunc, full.NewListFunc, attributes, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer destroy()
	create(t, st, gadget("v2", "a", 1))
	if n := len(list(t, st, "0").Items); n != 1 {
		t.Errorf("%d objects", n)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	c := store.Config{}
	c.Transport.ServerList = []string{"http://127.0.0.1:1"}
	if b, err := store.Open(ctx, c); err == nil {
		t.Error("connected to nothing", b.Close())
	}
}

// TestIdleCosts is not parallel: it counts goroutines.
func TestIdleCosts(t *testing.T) {
	b := open(t)
	const n = 1000
	storages := make([]storage.Interface, n)
	measure := func() (int, uint64) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return runtime.NumGoroutine(), m.HeapAlloc
	}
	open1(t, b, spec("v1"))
	goroutines, heap := measure()
	for i := range storages {
		s := spec("v1")
		s.Resource.Resource = fmt.Sprintf("gadgets%d", i)
		s.ResourcePrefix = "/example.com/" + s.Resource.Resource
		s.Convert = func(_ context.Context, objs []*object.Object, _ string) ([]*object.Object, error) { return objs, nil }
		st, destroy, err := b.Storage(s)
		if err != nil {
			t.Fatal(err)
		}
		defer destroy()
		storages[i] = st
	}
	g, h := measure()
	t.Logf("%d idle storages: %d goroutines, %d bytes each", n, g-goroutines, (int64(h)-int64(heap))/n)
	if g > goroutines+2 { // etcd's client has timers of its own
		t.Errorf("%d goroutines more", g-goroutines)
	}
	if (int64(h)-int64(heap))/n > 8<<10 {
		t.Errorf("%d bytes each", (int64(h)-int64(heap))/n)
	}
	// A single list of each, as something that sweeps over all resources makes, leaves nothing behind.
	for i, st := range storages {
		if err := st.GetList(t.Context(), fmt.Sprintf("/example.com/gadgets%d", i), storage.ListOptions{Recursive: true, Predicate: predicate()}, &object.List{}); err != nil {
			t.Fatal(err)
		}
	}
	if g, _ := measure(); g > goroutines+10 {
		t.Errorf("%d goroutines more after a sweep", g-goroutines)
	}
	runtime.KeepAlive(storages)
}
