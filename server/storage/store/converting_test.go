package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// converter rewrites apiVersion and remembers how many objects each call had.
type converter struct {
	mu    sync.Mutex
	calls []int
	err   error
}

func (c *converter) convert(_ context.Context, objs []*object.Object, version string) ([]*object.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, len(objs))
	if c.err != nil {
		return nil, c.err
	}
	var result []*object.Object
	for _, o := range objs {
		converted := o.DeepCopy()
		converted.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: version, Kind: o.Kind()})
		result = append(result, converted)
	}
	return result, nil
}

// took returns the sizes of the calls since it was last asked.
func (c *converter) took() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := fmt.Sprint(c.calls)
	c.calls = nil
	return s
}

func (c *converter) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// converted is the storage of v2 of a resource that is stored in v1.
func converted(c *converter) store.Spec {
	s := spec("v2")
	s.StorageVersion, s.Convert, s.Cached = "v1", c.convert, false
	return s
}

func inVersion(t *testing.T, o *object.Object, version string) {
	t.Helper()
	if o.APIVersion() != "example.com/"+version {
		t.Errorf("%s is not in %s", o.JSON(), version)
	}
	if o.GetResourceVersion() == "" {
		t.Errorf("%s has no resource version", o.JSON())
	}
}

func took(t *testing.T, c *converter, want, what string) {
	t.Helper()
	if got := c.took(); got != want {
		t.Errorf("%s: calls with %s objects, not %s", what, got, want)
	}
}

func TestConversion(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := &converter{}
	st, raw := open1(t, b, converted(c)), open1(t, b, spec("v1"))

	inVersion(t, create(t, st, gadget("v2", "a", 1)), "v2")
	took(t, c, "[1 1]", "create")
	inVersion(t, get(t, raw, "a", ""), "v1")
	inVersion(t, get(t, st, "a", ""), "v2")
	took(t, c, "[1]", "get")

	// Objects in the version asked for need no call.
	same := converted(c)
	same.Version = "v1"
	inVersion(t, get(t, open1(t, b, same), "a", ""), "v1")
	took(t, c, "[]", "get in the stored version")

	for i := range 10 {
		create(t, raw, gadget("v1", fmt.Sprint("o", i), i))
	}
	l := list(t, st, "")
	if len(l.Items) != 11 {
		t.Errorf("%d objects", len(l.Items))
	}
	for i := range l.Items {
		inVersion(t, &l.Items[i], "v2")
	}
	took(t, c, "[11]", "list")
	if l := list(t, st, "", "field:apiVersion=example.com/v2"); len(l.Items) != 11 {
		t.Errorf("a selector sees %d objects as converted", len(l.Items))
	}
	if l := list(t, st, "", "field:apiVersion=example.com/v1"); len(l.Items) != 0 {
		t.Errorf("a selector sees %d objects as stored", len(l.Items))
	}
	took(t, c, "[11 11]", "lists with selectors")

	first := get(t, st, "a", "").GetResourceVersion()
	took(t, c, "[1]", "get")
	o := update(t, st, "a", func(*object.Object) {})
	inVersion(t, o, "v2")
	if o.GetResourceVersion() != first {
		t.Error("an update without a change has been written")
	}
	took(t, c, "[1]", "update without a change")
	o = update(t, st, "a", setValue(5))
	inVersion(t, o, "v2")
	if o.GetResourceVersion() == first || string(o.Member("spec")) != `{"value":5}` {
		t.Errorf("updated: %s", o.JSON())
	}
	took(t, c, "[1 1 1]", "update")
	inVersion(t, get(t, raw, "a", ""), "v1")

	seen := ""
	out := &object.Object{}
	if err := st.Delete(t.Context(), key("a"), out, storage.NewUIDPreconditions("u-a"), func(_ context.Context, obj kruntime.Object) error {
		seen = obj.(*object.Object).APIVersion()
		return nil
	}, nil, storage.DeleteOptions{}); err != nil || seen != "example.com/v2" {
		t.Errorf("deletion saw %q: %v", seen, err)
	}
	inVersion(t, out, "v2")
	took(t, c, "[1]", "delete")
}

func TestConversionMigrates(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := &converter{}
	s := spec("v2") // stored in v2 from now on
	s.Convert = c.convert
	st, raw := open1(t, b, s), open1(t, b, spec("v1"))
	first := create(t, raw, gadget("v1", "old", 1)).GetResourceVersion()
	list(t, st, "0") // the cache has it in v2: its hint must not hide that etcd has v1
	o := update(t, st, "old", func(*object.Object) {})
	inVersion(t, o, "v2")
	if o.GetResourceVersion() == first {
		t.Error("an update does not migrate")
	}
	inVersion(t, get(t, raw, "old", ""), "v2")
}

func TestConversionPages(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := &converter{}
	st := open1(t, b, converted(c))
	raw := open1(t, b, spec("v1"))
	for i := range 25 {
		create(t, raw, gadget("v1", fmt.Sprintf("o%02d", i), i))
	}
	var names []string
	p := predicate("parity=1")
	p.Limit = 5
	for pages := 0; ; pages++ {
		l := &object.List{}
		if err := st.GetList(t.Context(), prefix, storage.ListOptions{Recursive: true, Predicate: p}, l); err != nil {
			t.Fatal(err)
		}
		if len(l.Items) > 5 || pages > 3 {
			t.Fatalf("page %d has %d objects", pages, len(l.Items))
		}
		for i := range l.Items {
			names = append(names, l.Items[i].GetName())
		}
		if p.Continue = l.Continue; p.Continue == "" {
			break
		}
	}
	if got := strings.Join(names, " "); got != "o01 o03 o05 o07 o09 o11 o13 o15 o17 o19 o21 o23" {
		t.Error(got)
	}
}

func TestConversionWatch(t *testing.T) {
	t.Parallel()
	for _, cached := range []bool{true, false} {
		for _, selector := range []string{"", "parity=1"} {
			t.Run(fmt.Sprintf("cached=%v,selector=%s", cached, selector), func(t *testing.T) {
				t.Parallel()
				b := open(t)
				c := &converter{}
				s := converted(c)
				s.Cached = cached
				st, raw := open1(t, b, s), open1(t, b, spec("v1"))
				rv := create(t, raw, gadget("v1", "first", 0)).GetResourceVersion()
				w, err := st.Watch(t.Context(), prefix, storage.ListOptions{ResourceVersion: rv, Recursive: true, Predicate: predicate(selector)})
				if err != nil {
					t.Fatal(err)
				}
				defer w.Stop()
				for i := range 101 { // one at a time: a cache gives up on watchers that fall behind
					if i < 100 {
						create(t, raw, gadget("v1", fmt.Sprintf("o%03d", i), 1))
					} else {
						remove(t, raw, "o007")
					}
					e := next(t, w)
					o, ok := e.Object.(*object.Object)
					if !ok {
						t.Fatalf("event %v", e)
					}
					inVersion(t, o, "v2")
					if i < 100 && (e.Type != watch.Added || o.GetName() != fmt.Sprintf("o%03d", i)) || i == 100 && e.Type != watch.Deleted {
						t.Errorf("event %d: %v %s", i, e.Type, o.GetName())
					}
				}
			})
		}
	}
}

func TestBrokenConversion(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := &converter{}
	st, raw := open1(t, b, converted(c)), open1(t, b, spec("v1"))
	rv := create(t, raw, gadget("v1", "a", 1)).GetResourceVersion()
	c.fail(errors.New("the webhook is gone"))

	// A write fails before anything is written.
	if err := st.Create(t.Context(), key("b"), gadget("v2", "b", 1), &object.Object{}, 0); err == nil {
		t.Error("created")
	}
	if n := len(list(t, raw, "").Items); n != 1 {
		t.Errorf("%d objects are stored", n)
	}
	err := st.Get(t.Context(), key("a"), storage.GetOptions{}, &object.Object{})
	if !storage.IsCorruptObject(err) || err.Error() != "the webhook is gone" {
		t.Errorf("read: %v", err)
	}
	w, err := st.Watch(t.Context(), prefix, storage.ListOptions{ResourceVersion: rv, Recursive: true, Predicate: predicate()})
	if err != nil {
		t.Fatal(err)
	}
	update(t, raw, "a", setValue(2))
	if e := next(t, w); e.Type != watch.Error {
		t.Errorf("event: %v", e)
	}
	for range w.ResultChan() { //nolint:revive // ends, or the test hangs
	}

	// A resource with a cache says so too, and soon.
	s := converted(c)
	s.Cached = true
	if _, err := open1(t, b, s).Watch(t.Context(), prefix, storage.ListOptions{ResourceVersion: "0", Recursive: true, Predicate: predicate()}); err == nil {
		t.Error("a watch of a cache that cannot be filled")
	}

	// The way out: deletion of what cannot be read, and of nothing else.
	unsafe := storage.DeleteOptions{ExpectTransformOrDecodeError: true}
	c.fail(nil)
	if err := st.Delete(t.Context(), key("a"), &object.Object{}, nil, storage.ValidateAllObjectFunc, nil, unsafe); !storage.IsInvalidObj(err) {
		t.Errorf("unsafe deletion of what can be read: %v", err)
	}
	c.fail(errors.New("the webhook is gone"))
	if err := st.Delete(t.Context(), key("a"), &object.Object{}, nil, storage.ValidateAllObjectFunc, nil, unsafe); err != nil {
		t.Errorf("unsafe deletion: %v", err)
	}
	r, err := b.Client().KV.Get(t.Context(), "/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || len(list(t, raw, "").Items) != 0 {
		t.Errorf("still there: %v %v", r, err)
	}
}

// A caller that has run out of time, or is told to come back, learns nothing about the
// object: it is not corrupt, and no operator is led to delete it.
func TestConversionThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	b := open(t)
	create(t, open1(t, b, spec("v1")), gadget("v1", "a", 1))
	read := func(ctx context.Context, convert func() error) error {
		s := converted(&converter{})
		s.Convert = func(context.Context, []*object.Object, string) ([]*object.Object, error) { return nil, convert() }
		return open1(t, b, s).Get(ctx, key("a"), storage.GetOptions{}, &object.Object{})
	}

	ctx, cancel := context.WithCancel(t.Context())
	err := read(ctx, func() error { cancel(); return errors.New("the webhook is slow") })
	var late *storage.StorageError
	if !errors.As(err, &late) || late.Code != storage.ErrCodeTimeout || storage.IsCorruptObject(err) || !strings.Contains(err.Error(), "the webhook is slow") {
		t.Errorf("out of time: %v", err)
	}
	err = read(t.Context(), func() error { return apierrors.NewTooManyRequests("the webhook is busy", 3) })
	if !apierrors.IsTooManyRequests(err) || storage.IsCorruptObject(err) || !strings.Contains(err.Error(), "the webhook is busy") {
		t.Errorf("to come back: %v", err)
	}
}

// A cache whose objects cannot be converted does not call the converter again and
// again.
func TestBrokenConversionPauses(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := &converter{}
	raw := open1(t, b, spec("v1"))
	create(t, raw, gadget("v1", "a", 1))
	c.fail(errors.New("the webhook is gone"))
	s := converted(c)
	s.Cached = true
	st := open1(t, b, s)
	if _, err := st.Watch(t.Context(), prefix, storage.ListOptions{ResourceVersion: "0", Recursive: true, Predicate: predicate()}); err == nil {
		t.Error("a watch of a cache that cannot be filled")
	}
	time.Sleep(5 * time.Second)
	if calls := c.took(); calls != "[1]" && calls != "[1 1]" {
		t.Errorf("in five seconds the converter is called with %s objects", calls)
	}
	c.fail(nil)
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		w, err := st.Watch(t.Context(), prefix, storage.ListOptions{ResourceVersion: "0", Recursive: true, Predicate: predicate()})
		if err == nil {
			w.Stop()
			break
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("the cache is still not filled: %v", err)
		}
	}
}
