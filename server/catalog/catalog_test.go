package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/catalog/catalogtest"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

func start(t *testing.T, s storage.Interface) *catalog.Catalog {
	t.Helper()
	c := catalog.New(s)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
	select {
	case <-c.Synced():
	case <-time.After(time.Minute):
		t.Fatal("no list after a minute")
	}
	return c
}

// see waits until the catalog shows what was written.
func see(t *testing.T, c *catalog.Catalog, o *object.Object) {
	t.Helper()
	revision, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	seeRevision(t, c, revision)
}

func seeRevision(t *testing.T, c *catalog.Catalog, revision uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.WaitFor(ctx, revision); err != nil {
		t.Fatalf("revision %d: %v; catalog is at %d", revision, err, c.Revision())
	}
}

// journal replays changes and notices those that do not fit the one before.
type journal struct {
	mu      sync.Mutex
	entries map[string]*catalog.Entry
	faults  []string
	calls   int
}

func (j *journal) tell(old, updated *catalog.Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls++
	name := ""
	if old != nil {
		name = old.Name
	} else {
		name = updated.Name
	}
	if j.entries[name] != old {
		j.faults = append(j.faults, fmt.Sprintf("%s: told of a change from %v, had %v", name, old, j.entries[name]))
	}
	if updated == nil {
		delete(j.entries, name)
		return
	}
	if old != nil && old.Revision >= updated.Revision {
		j.faults = append(j.faults, name+": went back")
	}
	j.entries[name] = updated
}

func (j *journal) check(t *testing.T, c *catalog.Catalog) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, f := range j.faults {
		t.Error(f)
	}
	if len(j.entries) != c.Len() {
		t.Errorf("the subscriber knows of %d CRDs, the catalog of %d", len(j.entries), c.Len())
	}
	for e := range c.All() {
		if j.entries[e.Name] != e {
			t.Errorf("the subscriber has another %s", e.Name)
		}
	}
}

func newJournal() *journal { return &journal{entries: map[string]*catalog.Entry{}} }

func TestListAndWatch(t *testing.T) {
	d := catalogtest.Open(t)
	const listed, watched = 250, 60 // more than two pages
	for i := range listed {
		d.Create(t, catalogtest.CRD(fmt.Sprintf("listed%03d", i), fmt.Sprintf("g%d.example.com", i%3)))
	}
	c := start(t, d.Storage)
	if c.Len() != listed {
		t.Fatalf("%d of %d CRDs after the list", c.Len(), listed)
	}
	early := newJournal()
	c.Subscribe(early.tell)
	if early.calls != listed {
		t.Errorf("a new subscriber was told of %d CRDs", early.calls)
	}
	var last *object.Object
	for i := range watched {
		last = d.Create(t, catalogtest.CRD(fmt.Sprintf("watched%03d", i), "g9.example.com"))
	}
	see(t, c, last)
	if c.Len() != listed+watched || len(c.Group("g9.example.com")) != watched {
		t.Fatalf("%d CRDs, %d in the group", c.Len(), len(c.Group("g9.example.com")))
	}
	if got, want := c.Groups(), []string{"g0.example.com", "g1.example.com", "g2.example.com", "g9.example.com"}; !slices.Equal(got, want) {
		t.Errorf("groups %v", got)
	}
	changed := d.Update(t, "watched000.g9.example.com", func(o *object.Object) { o.SetLabels(map[string]string{"a": "b"}) })
	see(t, c, changed)
	if e := c.Get("watched000.g9.example.com"); e.ResourceVersion != changed.GetResourceVersion() {
		t.Errorf("revision %s after a change at %s", e.ResourceVersion, changed.GetResourceVersion())
	}
	for i := range watched {
		d.Delete(t, fmt.Sprintf("watched%03d.g9.example.com", i))
	}
	see(t, c, d.Update(t, "listed000.g0.example.com", func(o *object.Object) { o.SetLabels(map[string]string{"a": "b"}) }))
	if c.Len() != listed || c.Get("watched000.g9.example.com") != nil || c.Group("g9.example.com") != nil || len(c.Groups()) != 3 {
		t.Errorf("after deletion: %d CRDs, groups %v", c.Len(), c.Groups())
	}
	if !slices.IsSortedFunc(c.Group("g1.example.com"), func(a, b *catalog.Entry) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	}) {
		t.Error("a group is not sorted")
	}
	early.check(t, c)
}

// WaitFor also waits for revisions of other keys: it requests progress from etcd.
func TestWaitForForeignRevision(t *testing.T) {
	d := catalogtest.Open(t)
	d.Create(t, catalogtest.CRD("things", "example.com"))
	c := start(t, d.Storage)
	put, err := d.Client.Put(t.Context(), d.Prefix+"/elsewhere", "x")
	if err != nil {
		t.Fatal(err)
	}
	seeRevision(t, c, uint64(put.Header.Revision))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := c.WaitFor(ctx, uint64(put.Header.Revision)+1000); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a revision that has not been: %v", err)
	}
}

// cut is a storage whose watches can be ended, and kept from beginning.
type cut struct {
	storage.Interface
	mu      sync.Mutex
	watches []watch.Interface
	barred  atomic.Bool
	lists   atomic.Int64
}

func (s *cut) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	if s.barred.Load() {
		return nil, errors.New("etcd is not reachable")
	}
	w, err := s.Interface.Watch(ctx, key, opts)
	if err == nil {
		s.mu.Lock()
		s.watches = append(s.watches, w)
		s.mu.Unlock()
	}
	return w, err
}

func (s *cut) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	s.lists.Add(1)
	return s.Interface.GetList(ctx, key, opts, list)
}

// watched returns when there is a watch to end.
func (s *cut) watched(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		n := len(s.watches)
		s.mu.Unlock()
		if n > 0 {
			return
		}
	}
	t.Fatal("there is no watch")
}

func (s *cut) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		w.Stop()
	}
	s.watches = nil
}

// If the watch fails, no change is lost, repeated or out of order.
func TestInterruptions(t *testing.T) {
	d := catalogtest.Open(t)
	s := &cut{Interface: d.Storage}
	for i := range 20 {
		d.Create(t, catalogtest.CRD(fmt.Sprintf("things%02d", i), "example.com"))
	}
	c := start(t, s)
	j := newJournal()
	c.Subscribe(j.tell)
	var last *object.Object
	for round := range 40 {
		name := fmt.Sprintf("things%02d", round%20)
		if round%3 == 0 {
			s.end()
		}
		if round%4 == 0 {
			d.Delete(t, name+".example.com")
			last = d.Create(t, catalogtest.CRD(name, "example.com"))
		} else {
			last = d.Update(t, name+".example.com", func(o *object.Object) { o.SetLabels(map[string]string{"round": strconv.Itoa(round)}) })
		}
	}
	see(t, c, last)
	j.check(t, c)
	if n := s.lists.Load(); n != 1 {
		t.Errorf("%d lists: watches that ended were not continued", n)
	}
}

// What etcd has forgotten is found by a new list.
func TestCompaction(t *testing.T) {
	d := catalogtest.Open(t)
	s := &cut{Interface: d.Storage}
	for _, name := range []string{"kept", "changed", "deleted", "replaced"} {
		d.Create(t, catalogtest.CRD(name, "example.com"))
	}
	c := start(t, s)
	j := newJournal()
	c.Subscribe(j.tell)
	before := j.calls

	s.watched(t)
	s.barred.Store(true)
	s.end()
	d.Update(t, "changed.example.com", func(o *object.Object) { o.SetLabels(map[string]string{"a": "b"}) })
	d.Delete(t, "deleted.example.com")
	d.Delete(t, "replaced.example.com")
	o, err := object.FromJSON([]byte(catalogtest.CRD("replaced", "example.com")))
	if err != nil {
		t.Fatal(err)
	}
	o.SetUID("another")
	last := d.Create(t, string(o.JSON()))
	put, err := d.Client.Put(t.Context(), d.Prefix+"/elsewhere", "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Client.Compact(t.Context(), put.Header.Revision); err != nil {
		t.Fatal(err)
	}
	s.barred.Store(false)
	see(t, c, last)
	j.check(t, c)
	if s.lists.Load() < 2 {
		t.Error("there was no new list")
	}
	// changed, deleted, and a removal and an addition for the one that was replaced.
	if n := j.calls - before; n != 4 {
		t.Errorf("%d changes were told", n)
	}
	if c.Get("replaced.example.com").UID != "another" || c.Get("deleted.example.com") != nil || c.Get("kept.example.com") == nil {
		t.Error("the catalog is not what storage holds")
	}
}

func TestClaims(t *testing.T) {
	d := catalogtest.Open(t)
	d.Create(t, catalogtest.CRD("apples", "example.com"))
	d.Create(t, catalogtest.CRD("pears", "example.com"))
	c := start(t, d.Storage)
	owners := func(s catalog.Space, name string) (names []string) {
		c.View("example.com", func(v catalog.Claims) {
			for _, e := range v.On(s, name) {
				names = append(names, e.Names.Plural)
			}
		})
		slices.Sort(names)
		return names
	}
	for _, test := range []struct {
		space catalog.Space
		name  string
		want  []string
	}{
		{catalog.Resources, "apples", []string{"apples"}}, {catalog.Resources, "apple", []string{"apples"}},
		{catalog.Resources, "Apple", nil}, {catalog.Kinds, "Apple", []string{"apples"}}, {catalog.Kinds, "PearList", []string{"pears"}}, {catalog.Kinds, "", nil},
	} {
		if got := owners(test.space, test.name); !slices.Equal(got, test.want) {
			t.Errorf("%q: %v, want %v", test.name, got, test.want)
		}
	}
	// A name that a CRD is known by and one that it asks for are both claims.
	see(t, c, d.Update(t, "pears.example.com", func(o *object.Object) {
		o.SetMember("status", []byte(`{"acceptedNames":{"kind":"","plural":"pears","shortNames":["apple"]}}`))
	}))
	if got := owners(catalog.Resources, "apple"); !slices.Equal(got, []string{"apples", "pears"}) {
		t.Errorf("apple: %v", got)
	}
	d.Delete(t, "apples.example.com")
	see(t, c, d.Update(t, "pears.example.com", func(o *object.Object) { o.SetMember("status", nil) }))
	if got := owners(catalog.Resources, "apple"); got != nil {
		t.Errorf("apple: %v", got)
	}
	c.View("example.org", func(v catalog.Claims) {
		if v.On(catalog.Resources, "apple") != nil {
			t.Error("a group without CRDs has names")
		}
	})
}
