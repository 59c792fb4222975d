package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/warning"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// unreadable values of the key of the object "b".
var unreadable = map[string]string{
	"no JSON":           "garbage",
	"nothing":           "",
	"half":              `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"b","name`,
	"another kind":      `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"b","namespace":"ns"}}`,
	"another name":      `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"c","namespace":"ns"}}`,
	"another namespace": `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"b","namespace":"other"}}`,
	"no name":           `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{}}`,
	"deep":              strings.Repeat("[", 1<<20),
}

// put writes a value into etcd.
func put(t testing.TB, b *store.Backend, name, value string) {
	t.Helper()
	if _, err := b.Client().KV.Put(t.Context(), b.Key(key(name)), value); err != nil {
		t.Fatal(err)
	}
}

// recorded are warnings.
type recorded struct {
	mu    sync.Mutex
	texts []string
}

func (r *recorded) AddWarning(_, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = append(r.texts, text)
}

// names lists with options, in pages if there is a limit, and returns the names and warnings.
func names(t testing.TB, st storage.Interface, opts storage.ListOptions) (got, warnings []string) {
	t.Helper()
	r := &recorded{}
	ctx := warning.WithWarningRecorder(t.Context(), r)
	opts.Recursive = true
	for {
		l := &object.List{}
		if err := st.GetList(ctx, prefix, opts, l); err != nil {
			t.Fatal(err)
		}
		if l.ResourceVersion == "" {
			t.Error("a list without a resource version")
		}
		for i := range l.Items {
			got = append(got, l.Items[i].GetName())
		}
		if l.Continue == "" {
			return got, r.texts
		}
		opts.Predicate.Continue, opts.ResourceVersion, opts.ResourceVersionMatch = l.Continue, "", ""
	}
}

// One object that cannot be read is missing from lists, in whatever way they are
// read, and can be deleted on demand only.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for what, value := range unreadable {
		for _, cached := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s,cached=%v", what, cached), func(t *testing.T) {
				t.Parallel()
				b := open(t)
				s := spec("v1")
				s.Cached = cached
				st := open1(t, b, s)
				for i, name := range []string{"a", "b", "c", "d"} {
					create(t, st, gadget("v1", name, 2*i))
				}
				put(t, b, "b", value)
				now, err := st.GetCurrentResourceVersion(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				rv := fmt.Sprint(now)
				paged := predicate()
				paged.Limit = 1
				for how, opts := range map[string]storage.ListOptions{
					"consistent":   {Predicate: predicate()},
					"once more":    {Predicate: predicate()},
					"not older":    {Predicate: predicate(), ResourceVersion: rv, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
					"exact":        {Predicate: predicate(), ResourceVersion: rv, ResourceVersionMatch: metav1.ResourceVersionMatchExact},
					"any":          {Predicate: predicate(), ResourceVersion: "0"},
					"pages":        {Predicate: paged},
					"label":        {Predicate: predicate("parity=0")},
					"any by label": {Predicate: predicate("parity=0"), ResourceVersion: "0"},
				} {
					got, warnings := names(t, st, opts)
					if !slices.Equal(got, []string{"a", "c", "d"}) {
						t.Errorf("%s: %v", how, got)
					}
					if !strings.Contains(strings.Join(warnings, "\n"), "1 of gadgets.example.com cannot be read from etcd and are left out: ns/b (") {
						t.Errorf("%s: warnings %q", how, warnings)
					}
				}
				left, err := b.Unreadable(t.Context(), s.Resource, prefix)
				if err != nil || len(left) != 1 || left[0].Key != b.Key(key("b")) || left[0].Name != "b" || left[0].Namespace != "ns" {
					t.Errorf("known: %v %v", left, err)
				}
				requests(t, b, st)
			})
		}
	}
}

// requests are those about a single object that cannot be read.
func requests(t *testing.T, b *store.Backend, st storage.Interface) {
	t.Helper()
	refused := func(what string, err error) {
		t.Helper()
		if apierrors.ReasonForError(err) != metav1.StatusReasonStoreReadError || !strings.Contains(err.Error(), b.Key(key("b"))+" in etcd, of revision") ||
			!strings.Contains(err.Error(), `"ignoreStoreReadErrorWithClusterBreakingPotential":true}' | kubectl delete -f - --raw '/apis/example.com/v1/namespaces/ns/gadgets/b'`) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, rv := range []string{"", "0"} {
		refused("get at "+rv, st.Get(t.Context(), key("b"), storage.GetOptions{ResourceVersion: rv}, &object.Object{}))
	}
	refused("update", st.GuaranteedUpdate(t.Context(), key("b"), &object.Object{}, true, nil, func(kruntime.Object, storage.ResponseMeta) (kruntime.Object, *uint64, error) {
		return nil, nil, errors.New("called")
	}, nil))
	remove := func(name string, demand bool) error {
		return st.Delete(t.Context(), key(name), &object.Object{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{ExpectTransformOrDecodeError: demand})
	}
	refused("delete", remove("b", false))
	if err := st.Create(t.Context(), key("b"), gadget("v1", "b", 1), &object.Object{}, 0); !storage.IsExist(err) {
		t.Errorf("create: %v", err)
	}
	if err := remove("a", true); !storage.IsInvalidObj(err) {
		t.Errorf("unsafe deletion of an object that can be read: %v", err)
	}
	if err := remove("b", true); err != nil {
		t.Errorf("unsafe deletion: %v", err)
	}
	if err := remove("b", true); !storage.IsNotFound(err) {
		t.Errorf("unsafe deletion of nothing: %v", err)
	}
	if got, warnings := names(t, st, storage.ListOptions{Predicate: predicate()}); len(got) != 3 || len(warnings) > 0 {
		t.Errorf("after deletion: %v, %q", got, warnings)
	}
	create(t, st, gadget("v1", "b", 1))
}

// Watches see an object that becomes unreadable as deleted, and as added when it can
// be read again: what a client knows is what a list would give it.
func TestUnreadableWatched(t *testing.T) {
	t.Parallel()
	for what, value := range unreadable {
		for _, from := range []string{"cache", "etcd", "etcd with selector", "initial events"} {
			t.Run(what+","+from, func(t *testing.T) {
				t.Parallel()
				b := open(t)
				s := spec("v1")
				s.Cached = from == "cache"
				st := open1(t, b, s)
				was := create(t, st, gadget("v1", "b", 2))
				opts := storage.ListOptions{ResourceVersion: was.GetResourceVersion(), Recursive: true, Predicate: predicate()}
				switch from {
				case "cache":
					list(t, st, "0") // fills it
				case "etcd with selector":
					opts.Predicate = predicate("parity=0")
				case "initial events":
					opts.ResourceVersion = "0"
				}
				w, err := st.Watch(t.Context(), prefix, opts)
				if err != nil {
					t.Fatal(err)
				}
				defer w.Stop()
				if from == "initial events" {
					is(t, next(t, w), watch.Added, "b")
				}
				put(t, b, "b", value)
				e := next(t, w)
				is(t, e, watch.Deleted, "b")
				if o := e.Object.(*object.Object); o.GetUID() != was.GetUID() || revision(t, o) <= revision(t, was) {
					t.Errorf("deleted: %s", o.JSON())
				}
				put(t, b, "b", value+" ") // still unreadable: no event
				put(t, b, "b", string(gadget("v1", "b", 4).JSON()))
				is(t, next(t, w), watch.Added, "b")
				put(t, b, "b", value)
				is(t, next(t, w), watch.Deleted, "b")
				if _, err := b.Client().KV.Delete(t.Context(), b.Key(key("b"))); err != nil { // no event
					t.Fatal(err)
				}
				create(t, st, gadget("v1", "x", 2))
				is(t, next(t, w), watch.Added, "x")
				// The event of an empty value does not say which object is gone: etcd is read again, beside.
				for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
					_, warnings := names(t, st, storage.ListOptions{Predicate: predicate()})
					if len(warnings) == 0 {
						break
					}
					if time.Now().After(deadline) {
						t.Fatalf("after deletion: %q", warnings)
					}
				}
			})
		}
	}
}

// revision is the resource version of an object as a number.
func revision(t *testing.T, o *object.Object) uint64 {
	t.Helper()
	n, err := (storage.APIObjectVersioner{}).ObjectResourceVersion(o)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func is(t *testing.T, e watch.Event, wanted watch.EventType, name string) {
	t.Helper()
	o, ok := e.Object.(*object.Object)
	if !ok || e.Type != wanted || o.GetName() != name {
		t.Fatalf("event: %v %v, not %v of %s", e.Type, e.Object, wanted, name)
	}
}

// A watch that begins while an object is unreadable sees its repair as an addition.
func TestUnreadableBefore(t *testing.T) {
	t.Parallel()
	for _, cached := range []bool{true, false} {
		b := open(t)
		s := spec("v1")
		s.Cached = cached
		st := open1(t, b, s)
		create(t, st, gadget("v1", "b", 2))
		put(t, b, "b", "garbage")
		w, err := st.Watch(t.Context(), prefix, storage.ListOptions{ResourceVersion: "0", Recursive: true, Predicate: predicate()})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		put(t, b, "b", string(gadget("v1", "b", 4).JSON()))
		is(t, next(t, w), watch.Added, "b")
	}
}
