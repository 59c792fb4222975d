package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// refusals are the two reasons for lists and watches to fail because of one object: no
// key decrypts it, and no object of the resource may be left out.
var refusals = map[string]struct {
	value  string // of the object that cannot be read
	text   string
	config func(*store.Config)
	spec   func(*store.Spec)
}{
	"undecrypted": {"y:{}", "decryption failed: not encrypted. Check the keys in --encryption-provider-config of this replica.",
		func(c *store.Config) { c.Transformers = prefixer{} }, func(*store.Spec) {}},
	"complete": {"garbage", "cannot be read: ",
		func(*store.Config) {}, func(s *store.Spec) { s.Complete = true }},
}

// refusing calls f with a storage, with and without a cache.
func refusing(t *testing.T, f func(t *testing.T, b *store.Backend, st storage.Interface, value, text string)) {
	t.Parallel()
	for why, r := range refusals {
		for _, cached := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s,cached=%v", why, cached), func(t *testing.T) {
				t.Parallel()
				b := open(t, r.config)
				s := spec("v1")
				s.Cached = cached
				r.spec(&s)
				f(t, b, open1(t, b, s), r.value, r.text)
			})
		}
	}
}

// isRefusal checks an error of a list.
func isRefusal(t *testing.T, b *store.Backend, what string, err error, text string) {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Errorf("%s: %v", what, err)
		return
	}
	s := status.Status()
	if s.Code != 500 || s.Reason != metav1.StatusReasonStoreReadError ||
		!strings.HasPrefix(s.Message, "failed to read one or more gadgets.example.com from the storage: "+b.Key(key("bad"))+" in etcd, of revision ") ||
		!strings.Contains(s.Message, text) || !strings.Contains(s.Message, "kubectl delete -f - --raw '/apis/example.com/v1/namespaces/ns/gadgets/bad'") {
		t.Errorf("%s: %d %s %s", what, s.Code, s.Reason, s.Message)
	}
	if s.Details == nil || s.Details.Name != "list" || len(s.Details.Causes) != 1 || s.Details.Causes[0].Field != b.Key(key("bad")) {
		t.Errorf("%s: %+v", what, s.Details)
	}
}

// Lists that would have to leave an object out which may be as it should be, or which
// forbids something, fail. The object can be removed, and all is well again.
func TestRefusedLists(t *testing.T) {
	refusing(t, func(t *testing.T, b *store.Backend, st storage.Interface, value, text string) {
		good := create(t, st, gadget("v1", "good", 2))
		put(t, b, "bad", value)
		now, err := st.GetCurrentResourceVersion(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		paged, rv := predicate(), fmt.Sprint(now)
		paged.Limit = 1
		for range 2 { // without a cache, and while it cannot be filled
			for how, opts := range map[string]storage.ListOptions{
				"consistent": {Predicate: predicate()},
				"any":        {Predicate: predicate(), ResourceVersion: "0"},
				"not older":  {Predicate: predicate(), ResourceVersion: rv, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
				"exact":      {Predicate: predicate(), ResourceVersion: rv, ResourceVersionMatch: metav1.ResourceVersionMatchExact},
				"page":       {Predicate: paged},
				"label":      {Predicate: predicate("parity=0")},
				"field":      {Predicate: predicate("field:metadata.name=good"), ResourceVersion: "0"},
			} {
				opts.Recursive = true
				isRefusal(t, b, how, st.GetList(t.Context(), prefix, opts, &object.List{}), text)
			}
		}
		if got := get(t, st, "good", ""); got.GetUID() != good.GetUID() {
			t.Errorf("the other object: %s", got.JSON())
		}
		if err := st.Get(t.Context(), key("bad"), storage.GetOptions{}, &object.Object{}); apierrors.ReasonForError(err) != metav1.StatusReasonStoreReadError {
			t.Errorf("get: %v", err)
		}
		left, err := b.Unreadable(t.Context(), schema.GroupResource{Group: "example.com", Resource: "gadgets"}, prefix)
		if err != nil || len(left) != 1 || !left[0].Fatal {
			t.Errorf("known: %+v %v", left, err)
		}
		err = st.Delete(t.Context(), key("bad"), &object.Object{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{ExpectTransformOrDecodeError: true})
		if err != nil {
			t.Fatalf("unsafe deletion: %v", err)
		}
		if got, warnings := names(t, st, storage.ListOptions{Predicate: predicate()}); fmt.Sprint(got, warnings) != "[good] []" {
			t.Errorf("after deletion: %v %v", got, warnings)
		}
	})
}

// A watch that meets such an object ends, and never says that the object is deleted: its
// client would believe that.
func TestRefusedWatches(t *testing.T) {
	refusing(t, func(t *testing.T, b *store.Backend, st storage.Interface, value, _ string) {
		was := create(t, st, gadget("v1", "bad", 2))
		list(t, st, "0") // fills the cache
		for what, opts := range map[string]storage.ListOptions{
			"all":    {ResourceVersion: was.GetResourceVersion(), Recursive: true, Predicate: predicate()},
			"some":   {ResourceVersion: was.GetResourceVersion(), Recursive: true, Predicate: predicate("parity=0")},
			"others": {ResourceVersion: was.GetResourceVersion(), Recursive: true, Predicate: predicate("parity=1")},
		} {
			w, err := st.Watch(t.Context(), prefix, opts)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			defer func() {
				for timeout := time.After(time.Minute); ; {
					select {
					case e, ok := <-w.ResultChan():
						switch {
						case !ok:
							return
						case e.Type == watch.Error:
							if reason := apierrors.ReasonForError(apierrors.FromObject(e.Object)); reason != metav1.StatusReasonStoreReadError {
								t.Errorf("%s: %v", what, e.Object)
							}
						case e.Type != watch.Bookmark:
							t.Errorf("%s: %s %v", what, e.Type, e.Object)
						}
					case <-timeout:
						t.Errorf("%s: the watch goes on", what)
						return
					}
				}
			}()
		}
		put(t, b, "bad", value)
		// A client that comes back gets the reason.
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			w, err := st.Watch(t.Context(), prefix, storage.ListOptions{ResourceVersion: "0", Recursive: true, Predicate: predicate()})
			if err == nil {
				err = failure(t, w)
				w.Stop()
			}
			if apierrors.ReasonForError(err) == metav1.StatusReasonStoreReadError && strings.Contains(err.Error(), b.Key(key("bad"))) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("a new watch: %v", err)
			}
		}
	})
}

// failure returns the error that a watch ends with within a second; nil if it has none.
func failure(t *testing.T, w watch.Interface) error {
	t.Helper()
	for timeout := time.After(time.Second); ; {
		select {
		case e, ok := <-w.ResultChan():
			switch {
			case !ok:
				return nil
			case e.Type == watch.Error:
				return apierrors.FromObject(e.Object)
			case e.Type == watch.Deleted:
				t.Error("the object is told to be deleted")
			}
		case <-timeout:
			return nil
		}
	}
}

// A list names a hundred objects and reads no more of them.
func TestRefusedMany(t *testing.T) {
	t.Parallel()
	b := open(t, func(c *store.Config) { c.Transformers = prefixer{} })
	s := spec("v1")
	s.Cached = false
	st := open1(t, b, s)
	for i := range 120 {
		put(t, b, fmt.Sprintf("lost-%03d", i), "y:{}")
	}
	err := st.GetList(t.Context(), prefix, storage.ListOptions{Recursive: true, Predicate: predicate()}, &object.List{})
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !strings.HasSuffix(err.Error(), "(and 99 more)") {
		t.Fatalf("list: %v", err)
	}
	causes := status.Status().Details.Causes
	if len(causes) != 101 || causes[100].Type != metav1.CauseTypeTooMany {
		t.Errorf("%d causes, the last is %+v", len(causes), causes[len(causes)-1])
	}
}

// locked is an encryption whose service may be down.
type locked struct {
	prefixer
	down func() error
}

func (l locked) TransformFromStorage(ctx context.Context, data []byte, of value.Context) ([]byte, bool, error) {
	if err := l.down(); err != nil {
		return nil, false, err
	}
	return l.prefixer.TransformFromStorage(ctx, data, of)
}

func (l locked) TransformerForResource(schema.GroupResource) value.Transformer { return l }

// A key service that is down says nothing about an object.
func TestKeyServiceDown(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var down error
	b := open(t, func(c *store.Config) {
		c.Transformers = locked{down: func() error { mu.Lock(); defer mu.Unlock(); return down }}
	})
	s := spec("v1")
	s.Cached = false
	st := open1(t, b, s)
	create(t, st, gadget("v1", "good", 1))
	mu.Lock()
	down = status.Error(codes.Unavailable, "the key service is down")
	mu.Unlock()
	if err := st.GetList(t.Context(), prefix, storage.ListOptions{Recursive: true, Predicate: predicate()}, &object.List{}); err == nil || !strings.Contains(err.Error(), "the key service is down") {
		t.Errorf("a list without the key service: %v", err)
	}
	if left, err := b.Unreadable(t.Context(), s.Resource, prefix); err != nil || len(left) > 0 {
		t.Errorf("known: %v %v", left, err)
	}
}

// A reader with a report gets all that can be read, and learns of the rest.
func TestReport(t *testing.T) {
	t.Parallel()
	b := open(t, func(c *store.Config) { c.Transformers = prefixer{} })
	s := spec("v1")
	s.Cached = false
	st := open1(t, b, s)
	first := create(t, st, gadget("v1", "good", 2))
	put(t, b, "undecoded", "x:garbage")
	put(t, b, "undecrypted", "y:{}")
	put(t, b, "nothing", "x:")
	ctx, report := store.Reporting(t.Context())
	l := &object.List{}
	if err := st.GetList(ctx, prefix, storage.ListOptions{Recursive: true, Predicate: predicate()}, l); err != nil || len(l.Items) != 1 {
		t.Fatalf("%d objects, %v", len(l.Items), err)
	}
	var found []string
	for _, u := range report.Unreadable {
		found = append(found, u.Name)
	}
	if fmt.Sprint(found) != "[nothing undecoded undecrypted]" {
		t.Errorf("report: %v", found)
	}
	w, err := st.Watch(ctx, prefix, storage.ListOptions{ResourceVersion: first.GetResourceVersion(), Recursive: true, Predicate: predicate()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, name := range []string{"undecoded", "undecrypted", "nothing"} {
		e := next(t, w)
		if u, ok := store.UnreadableOf(e); !ok || e.Type != watch.Added || u.Name != name || u.Namespace != "ns" || u.Key != b.Key(key(name)) || u.Revision == 0 || u.Reason == "" {
			t.Errorf("%s: %s %+v", name, e.Type, u)
		}
	}
	put(t, b, "undecrypted", "x:"+string(gadget("v1", "undecrypted", 4).JSON()))
	is(t, next(t, w), watch.Modified, "undecrypted")
	if _, err := b.Client().KV.Delete(t.Context(), b.Key(key("undecoded"))); err != nil {
		t.Fatal(err)
	}
	e := next(t, w)
	if u, ok := store.UnreadableOf(e); !ok || e.Type != watch.Deleted || u.Name != "undecoded" {
		t.Errorf("deleted: %s %+v", e.Type, u)
	}
	left, err := b.Unreadable(t.Context(), s.Resource, prefix)
	if err != nil || len(left) != 1 || left[0].Name != "nothing" {
		t.Errorf("known: %v %v", left, err)
	}
}

// More unreadable objects than are remembered are said to be so, and are left out as the
// others are. The test has the metrics of the process to itself, and does not run beside others.
func TestUnreadableOverflow(t *testing.T) {
	b := open(t, func(c *store.Config) { c.MaxUnreadable = 3 })
	s := spec("v1")
	s.Cached = false
	st := open1(t, b, s)
	create(t, st, gadget("v1", "good", 2))
	for i, overflow := range []float64{0, 0, 0, 1, 1} {
		put(t, b, fmt.Sprint("bad-", i), "garbage")
		if got, _ := names(t, st, storage.ListOptions{Predicate: predicate()}); fmt.Sprint(got) != "[good]" {
			t.Errorf("list: %v", got)
		}
		if got := gauge(t, "espalier_storage_unreadable_objects"); got != float64(min(i+1, 3)) {
			t.Errorf("with %d: %v are counted", i+1, got)
		}
		if got := gauge(t, "espalier_storage_unreadable_overflow"); got != overflow {
			t.Errorf("with %d: overflow is %v", i+1, got)
		}
	}
	for i := range 2 {
		if _, err := b.Client().KV.Delete(t.Context(), b.Key(key(fmt.Sprint("bad-", i)))); err != nil {
			t.Fatal(err)
		}
	}
	list(t, st, "")
	list(t, st, "") // with room, what was not counted is
	if n, full := gauge(t, "espalier_storage_unreadable_objects"), gauge(t, "espalier_storage_unreadable_overflow"); n != 3 || full != 0 {
		t.Errorf("after deletion: %v, overflow %v", n, full)
	}
}

// gauge returns the sum of a metric.
func gauge(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue()
			}
		}
	}
	return sum
}
