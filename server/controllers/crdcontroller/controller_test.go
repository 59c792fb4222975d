package crdcontroller

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/catalog/catalogtest"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// testEnv is CRDs and instances in etcd, and processes that work on them.
type testEnv struct {
	*catalogtest.CRDStorage
	writes atomic.Int64
}

func newWorld(t *testing.T) *testEnv { return &testEnv{CRDStorage: catalogtest.Open(t)} }

// UpdateStatus is the least that a registry does: compare and swap, and the
// end of a CRD that has lost its last finalizer.
func (w *testEnv) UpdateStatus(ctx context.Context, name string, mutate func(o *object.Object) error) error {
	key, out := catalog.Key+"/"+name, &object.Object{}
	err := w.Storage.GuaranteedUpdate(ctx, key, out, false, nil, storage.SimpleUpdate(func(o runtime.Object) (runtime.Object, error) {
		return o, mutate(o.(*object.Object))
	}), nil)
	if err != nil {
		return err
	}
	w.writes.Add(1)
	if out.GetDeletionTimestamp() == nil || len(out.GetFinalizers()) > 0 {
		return nil
	}
	version := out.GetResourceVersion()
	return w.Storage.Delete(ctx, key, &object.Object{}, &storage.Preconditions{ResourceVersion: &version}, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
}

// wrote waits until there were want writes: a write is in the catalog before its writer knows that it is done.
func (w *testEnv) wrote(t *testing.T, want int64) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); w.writes.Load() < want && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	if n := w.writes.Load(); n != want {
		t.Errorf("%d writes, want %d", n, want)
	}
}

func (w *testEnv) instances(e *catalog.Entry) string {
	return path.Join(w.Prefix, "instances", e.Group, e.Names.Plural) + "/"
}

// DeleteInstances deletes the keys of instances page by page, but for those
// that hold a finalizer.
func (w *testEnv) DeleteInstances(ctx context.Context, e *catalog.Entry) (remaining int, err error) {
	prefix := w.instances(e)
	for from := prefix; ; {
		page, err := w.Client.Get(ctx, from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)), clientv3.WithLimit(10))
		if err != nil {
			return 0, &ListError{err}
		}
		for _, kv := range page.Kvs {
			if string(kv.Value) == "finalizer" {
				remaining++
			} else if _, err := w.Client.Delete(ctx, string(kv.Key)); err != nil {
				return 0, err
			}
			from = string(kv.Key) + "\x00"
		}
		if !page.More {
			return remaining, nil
		}
	}
}

// process is one catalog and one controller, as one server has them.
type process struct {
	*testEnv
	catalog    *catalog.Catalog
	controller *Controller
	stop       func()
}

func (w *testEnv) start(t *testing.T, instances Instances, o Options) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &process{testEnv: w, catalog: catalog.New(w.Storage)}
	p.controller = New(p.catalog, w, instances, o)
	var running sync.WaitGroup
	running.Go(func() { _ = p.catalog.Run(ctx) })
	running.Go(func() {
		if err := p.controller.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
	p.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(p.stop)
	return p
}

// until waits for what an entry is to be.
func (p *process) until(t *testing.T, name, what string, is func(e *catalog.Entry) bool) *catalog.Entry {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		seen := p.catalog.Revision()
		e := p.catalog.Get(name)
		if is(e) {
			return e
		}
		if err := p.catalog.WaitFor(ctx, seen+1); err != nil {
			status := "none"
			if e != nil {
				data, _ := e.JSON()
				status = string(data)
			}
			t.Fatalf("%s is not %s: %s", name, what, status)
		}
	}
}

func (p *process) untilEstablished(t *testing.T, name string) *catalog.Entry {
	t.Helper()
	return p.until(t, name, "established", func(e *catalog.Entry) bool { return e != nil && e.Established })
}

func (p *process) untilGone(t *testing.T, name string) {
	t.Helper()
	p.until(t, name, "gone", func(e *catalog.Entry) bool { return e == nil })
}

// delete marks a CRD for deletion as a registry does.
func (w *testEnv) delete(t *testing.T, name string, finalizers ...string) {
	t.Helper()
	w.Update(t, name, func(o *object.Object) {
		now := metav1.Now()
		o.SetDeletionTimestamp(&now)
		o.SetFinalizers(append(finalizers, v1.CustomResourceCleanupFinalizer))
		status, err := StatusOf(o)
		if err != nil {
			t.Fatal(err)
		}
		SetCondition(status, v1.CustomResourceDefinitionCondition{Type: v1.Terminating, Status: v1.ConditionTrue, Reason: "InstanceDeletionPending"}, 0, time.Now())
		SetStatus(o, status)
	})
}

func conditions(t *testing.T, e *catalog.Entry) string {
	t.Helper()
	d, err := unpack(e)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, c := range d.status.Conditions {
		list = append(list, fmt.Sprintf("%s=%s %s %d", c.Type, c.Status, c.Reason, c.ObservedGeneration))
	}
	return strings.Join(list, "; ")
}

func withShortNames(definition string, names ...string) string {
	return strings.Replace(definition, `,"singular"`, `,"shortNames":["`+strings.Join(names, `","`)+`"],"singular"`, 1)
}

func TestEstablish(t *testing.T) {
	w := newWorld(t)
	var passed atomic.Int64
	p := w.start(t, w, Options{Barrier: func(_ context.Context, e *catalog.Entry) error {
		if e.ObservedGeneration == e.Generation {
			t.Errorf("%s was settled before the barrier", e.Name)
		}
		if passed.Add(1) == 1 {
			return errors.New("not yet") // it is tried again
		}
		return nil
	}})
	start := time.Now()
	w.Create(t, catalogtest.CRD("apples", "example.com"))
	e := p.untilEstablished(t, "apples.example.com")
	t.Logf("established after %v", time.Since(start))
	if got, want := conditions(t, e), "NamesAccepted=True NoConflicts 1; Established=True InitialNamesAccepted 1"; got != want {
		t.Errorf("conditions %s, want %s", got, want)
	}
	if !e.Accepted.Equal(&e.Names) || e.ObservedGeneration != 1 || !slices.Equal(e.StoredVersions, []string{"v1"}) || passed.Load() < 2 {
		t.Errorf("%+v", e)
	}
	// A new generation is observed, and so is what is no generation of its own: nothing.
	w.Update(t, e.Name, func(o *object.Object) { o.SetLabels(map[string]string{"a": "b"}) })
	w.Update(t, e.Name, func(o *object.Object) { o.SetGeneration(2) })
	p.until(t, e.Name, "observed", func(e *catalog.Entry) bool { return e.ObservedGeneration == 2 })
	w.wrote(t, 2) // for two generations
}

// WaitFor returns when the status has been decided, whatever the decision is.
func TestWaitFor(t *testing.T) {
	w := newWorld(t)
	p := w.start(t, w, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i, plural := range []string{"apples", "pears"} {
		// Both want to be of the same kind.
		o := w.Create(t, strings.ReplaceAll(catalogtest.CRD(plural, "example.com"), `"Pear`, `"Apple`))
		if err := p.controller.WaitFor(ctx, o); err != nil {
			t.Fatal(err)
		}
		e := p.catalog.Get(plural + ".example.com")
		if e == nil || e.ObservedGeneration != e.Generation || e.Established != (i == 0) {
			t.Errorf("%s: %+v", plural, e)
		}
	}
}

func TestEstablishMany(t *testing.T) {
	w := newWorld(t)
	// Two processes work on the same CRDs, as replicas do.
	p, q := w.start(t, w, Options{}), w.start(t, w, Options{})
	const n = 200
	start := time.Now()
	var creating sync.WaitGroup
	for i := range 4 {
		creating.Go(func() {
			for j := range n / 4 {
				w.Create(t, catalogtest.CRD(fmt.Sprintf("apples%03d", i*n/4+j), fmt.Sprintf("g%d.example.com", j%2)))
			}
		})
	}
	creating.Wait()
	created := time.Since(start)
	for i := range n {
		name := fmt.Sprintf("apples%03d.g%d.example.com", i, i%(n/4)%2)
		p.untilEstablished(t, name)
		q.untilEstablished(t, name)
	}
	t.Logf("%d definitions created in %v and established in %v", n, created, time.Since(start))
	w.wrote(t, n)
	// A process that begins when everything is done has nothing to do.
	r := w.start(t, w, Options{})
	r.untilEstablished(t, "apples000.g0.example.com")
	w.Create(t, catalogtest.CRD("last", "example.com"))
	r.untilEstablished(t, "last.example.com")
	w.wrote(t, n+1)
}

func TestConflictAndRelease(t *testing.T) {
	w := newWorld(t)
	p := w.start(t, w, Options{})
	w.Create(t, withShortNames(catalogtest.CRD("apples", "example.com"), "fruit"))
	p.untilEstablished(t, "apples.example.com")
	refused := func(e *catalog.Entry) bool {
		return e != nil && e.ObservedGeneration == e.Generation && !e.NamesAccepted
	}
	for _, name := range []string{"pears", "plums"} {
		w.Create(t, withShortNames(catalogtest.CRD(name, "example.com"), "fruit"))
		e := p.until(t, name+".example.com", "refused", refused)
		if got, want := conditions(t, e), "NamesAccepted=False ShortNamesConflict 1; Established=False NotAccepted 1"; got != want {
			t.Errorf("conditions %s, want %s", got, want)
		}
	}
	w.Create(t, withShortNames(catalogtest.CRD("plums", "example.org"), "fruit"))
	p.untilEstablished(t, "plums.example.org")

	// The one that asked first gets the name when it is given up.
	w.Update(t, "apples.example.com", func(o *object.Object) {
		o.SetMember("spec", []byte(strings.Replace(string(o.Member("spec")), `"shortNames":["fruit"],`, "", 1)))
		o.SetGeneration(2)
	})
	p.untilEstablished(t, "pears.example.com")
	if e := p.catalog.Get("plums.example.com"); e.NamesAccepted || len(e.Accepted.ShortNames) > 0 {
		t.Errorf("plums have %+v", e.Accepted)
	}
	// And the next when that is deleted.
	w.delete(t, "pears.example.com")
	p.untilGone(t, "pears.example.com")
	e := p.untilEstablished(t, "plums.example.com")
	if !slices.Equal(e.Accepted.ShortNames, []string{"fruit"}) {
		t.Errorf("plums have %+v", e.Accepted)
	}
}

// Many CRDs that all ask for one name, in two processes: one gets it,
// and each time it is deleted exactly one other.
func TestConflictCrowd(t *testing.T) {
	w := newWorld(t)
	p, _ := w.start(t, w, Options{}), w.start(t, w, Options{})
	const n = 12
	for i := range n {
		w.Create(t, withShortNames(catalogtest.CRD(fmt.Sprintf("apples%02d", i), "example.com"), "fruit"))
	}
	for left := n; left > 0; left-- {
		var owner *catalog.Entry
		deadline := time.Now().Add(time.Minute)
		for looked := 0; owner == nil || looked < left; {
			if time.Now().After(deadline) {
				t.Fatalf("%d of %d looked at, owner %v", looked, left, owner)
			}
			looked = 0
			owners := 0
			for _, e := range p.catalog.Group("example.com") {
				if e.ObservedGeneration == 1 {
					looked++
				}
				if len(e.Accepted.ShortNames) > 0 {
					owner = e
					owners++
				}
			}
			if owners > 1 {
				t.Fatalf("%d definitions have one name", owners)
			}
			time.Sleep(time.Millisecond)
		}
		w.delete(t, owner.Name)
		p.untilGone(t, owner.Name)
	}
}

func TestDelete(t *testing.T) {
	w := newWorld(t)
	p := w.start(t, w, Options{})
	w.Create(t, catalogtest.CRD("apples", "example.com"))
	e := p.untilEstablished(t, "apples.example.com")
	for i := range 35 {
		value := "free"
		if i == 17 {
			value = "finalizer"
		}
		if _, err := w.Client.Put(t.Context(), w.instances(e)+strconv.Itoa(i), value); err != nil {
			t.Fatal(err)
		}
	}
	w.delete(t, e.Name)
	p.until(t, e.Name, "being cleaned up", func(e *catalog.Entry) bool {
		return strings.Contains(conditions(t, e), "Terminating=True InstanceDeletionInProgress 1")
	})
	held := func() int64 {
		list, err := w.Client.Get(t.Context(), w.instances(e), clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		return list.Count
	}
	for held() > 1 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(3 * firstPoll) // it has looked again, and waits
	if p.catalog.Get(e.Name) == nil || held() != 1 {
		t.Fatal("an instance that has a finalizer does not keep the definition")
	}
	// Another process takes over in the middle.
	p.stop()
	q := w.start(t, w, Options{})
	q.until(t, e.Name, "there", func(e *catalog.Entry) bool { return e != nil })
	start := time.Now()
	if _, err := w.Client.Delete(t.Context(), w.instances(e)+"17"); err != nil {
		t.Fatal(err)
	}
	q.untilGone(t, e.Name)
	t.Logf("gone %v after the last instance", time.Since(start))
}

func TestDeleteWithoutInstances(t *testing.T) {
	w := newWorld(t)
	p := w.start(t, failing{errors.New("nobody is to be asked")}, Options{})
	// Never established: its name is taken.
	w.Create(t, withShortNames(catalogtest.CRD("apples", "example.com"), "fruit"))
	p.untilEstablished(t, "apples.example.com")
	w.Create(t, withShortNames(catalogtest.CRD("pears", "example.com"), "fruit"))
	p.until(t, "pears.example.com", "refused", func(e *catalog.Entry) bool { return e != nil && e.ObservedGeneration == 1 })
	w.delete(t, "pears.example.com")
	p.untilGone(t, "pears.example.com")
	// The server's own resources, with a finalizer of another controller, so that something remains to be seen.
	const own = "customresourcedefinitions.apiextensions.k8s.io"
	w.Create(t, catalogtest.CRD("customresourcedefinitions", "apiextensions.k8s.io"))
	p.untilEstablished(t, own)
	w.delete(t, own, "example.com/keep")
	e := p.until(t, own, "released", func(e *catalog.Entry) bool { return e.Deleting && len(e.Finalizers) == 1 })
	if got := conditions(t, e); !strings.HasSuffix(got, "Terminating=False OverlappingBuiltInResource 1") {
		t.Errorf("conditions %s", got)
	}
}

type failing struct{ err error }

func (f failing) DeleteInstances(context.Context, *catalog.Entry) (int, error) { return 0, f.err }

func TestDeleteFails(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{errors.New("webhook is dead"), "could not issue all deletes: webhook is dead"},
		{&ListError{errors.New("etcd is slow")}, "could not list instances: etcd is slow"},
	} {
		w := newWorld(t)
		p := w.start(t, failing{test.err}, Options{})
		w.Create(t, catalogtest.CRD("apples", "example.com"))
		p.untilEstablished(t, "apples.example.com")
		w.delete(t, "apples.example.com")
		e := p.until(t, "apples.example.com", "failed", func(e *catalog.Entry) bool {
			return e != nil && strings.HasSuffix(conditions(t, e), "Terminating=True InstanceDeletionFailed 1")
		})
		data, err := e.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), test.want) {
			t.Errorf("%s is not in %s", test.want, data)
		}
		// Others are not held up.
		w.Create(t, catalogtest.CRD("pears", "example.com"))
		p.untilEstablished(t, "pears.example.com")
	}
}
