package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// shelves are namespaces; the key of one begins with that of another.
var shelves = []string{"ns", "ns-b", "ns.c", "nt"}

func shelved(namespace, name string, value int) *object.Object {
	o := gadget("v1", name, value)
	o.SetNamespace(namespace)
	o.Settle()
	return o
}

// A historian writes objects and remembers what there was at each revision.
type historian struct {
	mu     sync.Mutex
	events []written
}

type written struct {
	revision  int64
	key, text string // the namespace and name, and the name with the value; no text if it was deleted
	value     int
}

// at returns what there was at a revision: the texts by key.
func (h *historian) at(revision int64) map[string]written {
	h.mu.Lock()
	defer h.mu.Unlock()
	state := map[string]written{}
	for _, w := range h.events {
		switch {
		case w.revision > revision:
			return state
		case w.text == "":
			delete(state, w.key)
		default:
			state[w.key] = w
		}
	}
	return state
}

// write creates, changes or deletes an object at random.
func (h *historian) write(ctx context.Context, st storage.Interface, random *rand.Rand) error {
	namespace, name, value := shelves[random.IntN(len(shelves))], fmt.Sprintf("n%02d", random.IntN(60)), random.IntN(1000)
	if random.IntN(3) != 0 {
		return h.put(ctx, st, namespace, name, value)
	}
	out := &object.Object{}
	err := st.Delete(ctx, prefix+"/"+namespace+"/"+name, out, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
	if storage.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	return h.note(st, out, written{key: namespace + "/" + name, value: value})
}

// put creates or changes an object.
func (h *historian) put(ctx context.Context, st storage.Interface, namespace, name string, value int) error {
	out := &object.Object{}
	err := st.GuaranteedUpdate(ctx, prefix+"/"+namespace+"/"+name, out, true, nil, func(kruntime.Object, storage.ResponseMeta) (kruntime.Object, *uint64, error) {
		return shelved(namespace, name, value), nil, nil
	}, nil)
	if err != nil {
		return err
	}
	return h.note(st, out, written{key: namespace + "/" + name, text: fmt.Sprint(namespace, "/", name, "=", value), value: value})
}

func (h *historian) note(st storage.Interface, out *object.Object, w written) error {
	revision, err := st.Versioner().ObjectResourceVersion(out)
	if err != nil {
		return err
	}
	w.revision = int64(revision)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, w)
	return nil
}

// A query is a list in pages, and what it gave.
type query struct {
	namespace, selector string
	match               metav1.ResourceVersionMatch
	resourceVersion     string
	limit               int64
	counts              bool // remainingItemCount must be given

	revision int64
	texts    []string
	problems []string
}

func (q *query) String() string {
	return fmt.Sprintf("namespace %q selector %q %s at %q limit %d: revision %d", q.namespace, q.selector, q.match, q.resourceVersion, q.limit, q.revision)
}

// run reads all pages.
func (q *query) run(ctx context.Context, st storage.Interface, pause func()) error {
	var selectors []string
	if q.selector != "" {
		selectors = append(selectors, q.selector)
	}
	opts := storage.ListOptions{ResourceVersion: q.resourceVersion, ResourceVersionMatch: q.match, Recursive: true, Predicate: predicate(selectors...)}
	opts.Predicate.Limit = q.limit
	key := prefix
	if q.namespace != "" {
		key += "/" + q.namespace
	}
	var left []int64
	for {
		l := &object.List{}
		if err := st.GetList(ctx, key, opts, l); err != nil {
			return fmt.Errorf("%s, after %d objects: %w", q, len(q.texts), err)
		}
		revision, err := st.Versioner().ParseResourceVersion(l.ResourceVersion)
		if err != nil {
			return err
		}
		if q.revision == 0 {
			q.revision = int64(revision)
		}
		if int64(revision) != q.revision {
			q.problems = append(q.problems, fmt.Sprintf("a page has revision %d", revision))
		}
		if l.Items == nil || q.limit > 0 && int64(len(l.Items)) > q.limit && q.resourceVersion != "0" {
			q.problems = append(q.problems, fmt.Sprintf("a page of %d objects", len(l.Items)))
		}
		for i := range l.Items {
			o := &l.Items[i]
			value := strings.TrimSuffix(strings.TrimPrefix(string(o.Member("spec")), `{"value":`), "}")
			q.texts = append(q.texts, o.GetNamespace()+"/"+o.GetName()+"="+value)
		}
		given := l.RemainingItemCount != nil
		if given {
			left = append(left, *l.RemainingItemCount+int64(len(q.texts)))
		}
		if wanted := l.Continue != "" && q.selector == "" && q.counts; given != wanted && (given || wanted) {
			q.problems = append(q.problems, fmt.Sprintf("the number of remaining objects is given: %v", given))
		}
		if l.Continue == "" {
			break
		}
		opts.Predicate.Continue, opts.ResourceVersion, opts.ResourceVersionMatch = l.Continue, "", ""
		pause()
	}
	for _, all := range left {
		if all != int64(len(q.texts)) {
			q.problems = append(q.problems, fmt.Sprintf("a page says that there are %d objects", all))
		}
	}
	return nil
}

// verify compares the pages with what there was.
func (q *query) verify(t *testing.T, h *historian, who string) {
	t.Helper()
	state := h.at(q.revision)
	var keys []string
	for key, w := range state {
		if q.namespace != "" && !strings.HasPrefix(key, q.namespace+"/") ||
			q.selector == "parity=1" && w.value%2 != 1 || q.selector == "parity!=1" && w.value%2 == 1 ||
			strings.HasPrefix(q.selector, "field:") && !strings.HasSuffix(key, "/n07") {
			continue
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var want []string
	for _, key := range keys {
		want = append(want, state[key].text)
	}
	if !slices.Equal(q.texts, want) {
		t.Errorf("%s: %s: got %d objects %v, want %d %v", who, q, len(q.texts), q.texts, len(want), want)
	}
	for _, p := range q.problems {
		t.Errorf("%s: %s: %s", who, q, p)
	}
}

// random makes up a query.
func (h *historian) query(random *rand.Rand, counts bool) *query {
	q := &query{counts: counts, limit: []int64{0, 1, 7, 50, 1000}[random.IntN(5)]}
	if random.IntN(2) == 0 {
		q.namespace = shelves[random.IntN(len(shelves))]
	}
	q.selector = []string{"", "", "parity=1", "parity!=1", "field:metadata.name=n07"}[random.IntN(5)]
	h.mu.Lock()
	defer h.mu.Unlock()
	at := fmt.Sprint(h.events[len(h.events)-1-random.IntN(min(20, len(h.events)))].revision)
	switch random.IntN(6) {
	case 0:
		q.match, q.resourceVersion = metav1.ResourceVersionMatchExact, at
	case 1:
		q.match, q.resourceVersion = metav1.ResourceVersionMatchNotOlderThan, at
	case 2:
		q.resourceVersion = "0"
	case 3:
		q.resourceVersion = at
	}
	return q
}

// TestPages reads lists in pages while objects are created, changed so that selectors no longer
// select them, and deleted. All pages of a list must be of one revision, whatever serves them,
// and caches that come and go must not matter.
func TestPages(t *testing.T) {
	t.Parallel()
	b := open(t, func(c *store.Config) { c.Idle = 150 * time.Millisecond })
	bare := spec("v1")
	bare.Cached = false
	indexed := spec("v1")
	indexed.Indexes = []store.Index{{Label: "parity"}, {Field: "metadata.name"}}
	storages := []storage.Interface{open1(t, b, bare), open1(t, b, spec("v1")), open1(t, b, indexed)}
	cached := storages[1]
	h := &historian{}
	random := rand.New(rand.NewPCG(1, 7))
	for range 100 {
		if err := h.write(t.Context(), cached, random); err != nil {
			t.Fatal(err)
		}
	}
	var done atomic.Bool
	var writer, readers sync.WaitGroup
	writer.Go(func() {
		for !done.Load() {
			if err := h.write(t.Context(), cached, random); err != nil {
				t.Error(err)
				return
			}
		}
	})
	type result struct {
		who     string
		queries []*query
	}
	results := make([]result, 6)
	for i := range results {
		readers.Go(func() {
			st, who := storages[i%3], []string{"uncached", "cached", "indexed"}[i%3]
			random := rand.New(rand.NewPCG(2, uint64(i)))
			for range 150 {
				q := h.query(random, true)
				if err := q.run(t.Context(), st, func() {}); err != nil {
					t.Error(who, err)
					return
				}
				results[i] = result{who, append(results[i].queries, q)}
				if random.IntN(40) == 0 {
					time.Sleep(300 * time.Millisecond) // caches go
				}
			}
		})
	}
	readers.Wait()
	done.Store(true)
	writer.Wait()
	for _, r := range results {
		for _, q := range r.queries {
			q.verify(t, h, r.who)
		}
	}
}

// TestConsistentListsHaveWhatWasWritten: a list without a resource version has all writes that were
// acknowledged before it began, many at a time and while other resources are written.
func TestConsistentListsHaveWhatWasWritten(t *testing.T) {
	t.Parallel()
	b := open(t)
	st := open1(t, b, spec("v1"))
	other := spec("v1")
	other.ResourcePrefix, other.Resource.Resource, other.Cached = "/example.com/others", "others", false
	noise := open1(t, b, other)
	create(t, st, shelved("ns", "first", 1))
	list(t, st, "")
	list(t, st, "")
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 25 {
				name := fmt.Sprintf("n%d-%d", worker, i)
				if err := st.Create(t.Context(), key(name), shelved("ns", name, i), &object.Object{}, 0); err != nil {
					t.Error(err)
					return
				}
				if err := noise.Create(t.Context(), "/example.com/others/ns/"+name, shelved("ns", name, i), &object.Object{}, 0); err != nil {
					t.Error(err)
					return
				}
				opts := storage.ListOptions{Recursive: true, Predicate: predicate("field:metadata.name=" + name)}
				if i%2 == 0 {
					opts.Predicate = predicate()
				}
				l := &object.List{}
				if err := st.GetList(t.Context(), prefix+"/ns", opts, l); err != nil {
					t.Error(err)
					return
				}
				if !slices.ContainsFunc(l.Items, func(o object.Object) bool { return o.GetName() == name }) {
					t.Errorf("a list of %d objects lacks %s", len(l.Items), name)
				}
			}
		})
	}
	wg.Wait()
}

// TestPageOfAForgottenRevision: when neither a cache nor etcd has the revision of a list any more, the
// next page is 410 with a token that goes on with the newest state. It is not parallel: it has
// etcd forget what others read.
func TestPageOfAForgottenRevision(t *testing.T) {
	for _, cached := range []bool{true, false} {
		b := open(t)
		s := spec("v1")
		s.Cached = cached
		st := open1(t, b, s)
		for i := range 9 {
			create(t, st, gadget("v1", fmt.Sprintf("n%d", i), i))
		}
		list(t, st, "")
		opts := storage.ListOptions{Recursive: true, Predicate: predicate()}
		opts.Predicate.Limit = 4
		first := &object.List{}
		if err := st.GetList(t.Context(), prefix, opts, first); err != nil {
			t.Fatal(err)
		}
		if len(first.Items) != 4 || first.RemainingItemCount == nil || *first.RemainingItemCount != 5 {
			t.Fatalf("the first page has %d objects, and %v remain", len(first.Items), first.RemainingItemCount)
		}
		// Another storage has not pinned what the page was read from.
		opts.Predicate.Continue = first.Continue
		newest := remove(t, st, "n5")
		compact(t, b, newest.GetResourceVersion())
		if cached {
			st = open1(t, b, s)
		}
		err := st.GetList(t.Context(), prefix, opts, &object.List{})
		var status apierrors.APIStatus
		if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
			t.Fatalf("cached=%v: %v", cached, err)
		}
		opts.Predicate.Continue = status.Status().Continue
		rest := &object.List{}
		if err := st.GetList(t.Context(), prefix, opts, rest); err != nil {
			t.Fatal(err)
		}
		names := ""
		for i := range rest.Items {
			names += rest.Items[i].GetName()
		}
		if names != "n4n6n7n8" || rest.Continue != "" {
			t.Errorf("cached=%v: the rest is %s, and continues at %q", cached, names, rest.Continue)
		}
	}
}

// compact has etcd forget the revisions before one.
func compact(t *testing.T, b *store.Backend, before string) {
	t.Helper()
	revision, err := storage.APIObjectVersioner{}.ParseResourceVersion(before)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Client().Compact(t.Context(), int64(revision)); err != nil {
		t.Fatal(err)
	}
}

// TestRemainingObjectsOfALongList: etcd does not count what is far away; the cache does.
func TestRemainingObjectsOfALongList(t *testing.T) {
	t.Parallel()
	b := open(t)
	bare := spec("v1")
	bare.Cached = false
	cached, uncached := open1(t, b, spec("v1")), open1(t, b, bare)
	const all = 800
	for i := range all {
		create(t, cached, gadget("v1", fmt.Sprintf("n%04d", i), i))
	}
	list(t, cached, "")
	pages := func(st storage.Interface) (remaining []int64, names int) {
		opts := storage.ListOptions{Recursive: true, Predicate: predicate()}
		opts.Predicate.Limit = 200
		for {
			l := &object.List{}
			if err := st.GetList(t.Context(), prefix, opts, l); err != nil {
				t.Fatal(err)
			}
			names += len(l.Items)
			n := int64(-1)
			if l.RemainingItemCount != nil {
				n = *l.RemainingItemCount
			}
			remaining = append(remaining, n)
			if opts.Predicate.Continue = l.Continue; l.Continue == "" {
				return remaining, names
			}
		}
	}
	if got, n := pages(cached); n != all || !slices.Equal(got, []int64{600, 400, 200, -1}) {
		t.Errorf("from the cache: %d objects; remaining %v", n, got)
	}
	if got, n := pages(uncached); n != all || !slices.Equal(got, []int64{-1, 400, 200, -1}) {
		t.Errorf("from etcd: %d objects; remaining %v", n, got)
	}
}
