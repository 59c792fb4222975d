package espaliertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// fewer is how many schedules the tests of a promise of the API look at.
const fewer = 24

var everyFault = []Fault{LateEvents, ClosedWatch, Expired, Conflict, LostAnswer, Refused, StaleRead, Disconnect, NoBookmarks, NoWatchLists}

// only has no faults but these, and many of them.
func only(kinds ...Fault) Option {
	return func(s *settings) {
		var options []FaultOption
		for _, k := range everyFault {
			options = append(options, Weight(k, 0))
		}
		for _, k := range kinds {
			options = append(options, Weight(k, 5))
		}
		Faults(options...)(s)
	}
}

func configMaps(t *testing.T, c *rest.Config) typedcorev1.ConfigMapInterface {
	t.Helper()
	return typed(t, c).CoreV1().ConfigMaps("default")
}

func version(t *testing.T, object any) uint64 {
	t.Helper()
	m, err := meta.CommonAccessor(object)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseUint(m.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Without the option nothing stands between a client and the server.
func TestNoFaultsCostNothing(t *testing.T) {
	t.Parallel()
	w := New(t)
	if w.faults != nil || w.Config().WrapTransport != nil {
		t.Error("a test server without faults has an interposer")
	}
	if c := w.Config(); WithoutFaults(c) != c {
		t.Error("a configuration without faults is not returned as it is")
	}
	Calm(w.Config()) // does nothing
}

// watcher watches config maps as a careful client does, and checks what it sees.
type watcher struct {
	mu     sync.Mutex
	seen   map[uint64]string // versions of events, with their names
	lists  []uint64          // versions of lists: events up to the last one may be missing
	faults int               // ends and errors
}

func (w *watcher) run(ctx context.Context, t *testing.T, maps typedcorev1.ConfigMapInterface) {
	at := uint64(0)
	for ctx.Err() == nil {
		if at == 0 {
			list, err := maps.List(ctx, metav1.ListOptions{})
			if err != nil {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			at = version(t, list)
			w.mu.Lock()
			w.lists = append(w.lists, at)
			w.mu.Unlock()
		}
		events, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: fmt.Sprint(at), AllowWatchBookmarks: true})
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		for e := range events.ResultChan() {
			if ctx.Err() != nil {
				break
			}
			if e.Type == watch.Error {
				if err := apierrors.FromObject(e.Object); !apierrors.IsResourceExpired(err) {
					t.Errorf("a watch ends with %v", err)
				}
				at = 0
				break
			}
			at = w.see(t, e, at)
		}
		events.Stop()
		w.mu.Lock()
		w.faults++
		w.mu.Unlock()
	}
}

// see checks that versions of events grow, those of bookmarks do not shrink, and
// none comes twice.
func (w *watcher) see(t *testing.T, e watch.Event, at uint64) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := version(t, e.Object)
	if e.Type == watch.Bookmark {
		if v < at {
			t.Errorf("a bookmark of %d after %d", v, at)
		}
		return v
	}
	if v <= at {
		t.Errorf("%s at %d after %d", e.Type, v, at)
	}
	m, _ := meta.Accessor(e.Object)
	w.seen[v] = m.GetName()
	return v
}

// Watches have every event once, in order, also across reconnections; only after
// 410 is there a gap, which a list closes.
func TestWatchesKeepTheirOrder(t *testing.T) {
	var faults, gaps atomic.Int64
	Explore(t, fewer, func(t *testing.T, config *rest.Config) {
		w := &watcher{seen: map[uint64]string{}}
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() { w.run(ctx, t, configMaps(t, config)) })
		defer watching.Wait()
		defer cancel()
		written := map[uint64]string{}
		steady := configMaps(t, WithoutFaults(config))
		for i := range 12 {
			time.Sleep(20 * time.Millisecond)
			name := fmt.Sprint("map-", i%3)
			got, err := steady.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				if got, err = steady.Get(ctx, name, metav1.GetOptions{}); err == nil {
					got.Data = map[string]string{"n": fmt.Sprint(i)}
					got, err = steady.Update(ctx, got, metav1.UpdateOptions{})
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			written[version(t, got)] = name
		}
		Calm(config)
		time.Sleep(time.Minute)
		cancel()
		watching.Wait()
		last := w.lists[len(w.lists)-1]
		for v, name := range written {
			if v > last && w.seen[v] != name {
				t.Errorf("the event of %s at %d was lost", name, v)
			}
		}
		for v, name := range w.seen {
			if written[v] != name && name != "kube-root-ca.crt" {
				t.Errorf("there is no write of %s at %d", name, v)
			}
		}
		faults.Add(int64(w.faults))
		gaps.Add(int64(len(w.lists) - 1))
	}, Faults(Weight(ClosedWatch, 4), Weight(Expired, 4)))
	if faults.Load() < fewer/2 || gaps.Load() == 0 {
		t.Errorf("only %d ends of watches and %d gaps: this tests nothing", faults.Load(), gaps.Load())
	}
	t.Logf("%d ends of watches, %d of them with a gap", faults.Load(), gaps.Load())
}

// Reads without a version are never older than what was acknowledged before. Those
// of version 0 may be, and are.
func TestConsistentReadsAreFresh(t *testing.T) {
	var reads, old atomic.Int64
	Explore(t, fewer, func(t *testing.T, config *rest.Config) {
		steady, faulty := configMaps(t, WithoutFaults(config)), configMaps(t, config)
		got, err := steady.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "note"}}, metav1.CreateOptions{})
		for i := 0; err == nil && i < 6; i++ {
			got.Data = map[string]string{"n": fmt.Sprint(i)}
			if got, err = steady.Update(t.Context(), got, metav1.UpdateOptions{}); err != nil {
				break
			}
			for _, any := range []string{"", "0"} {
				one, err := faulty.Get(t.Context(), "note", metav1.GetOptions{ResourceVersion: any})
				check := func(object *corev1.ConfigMap, err error) {
					reads.Add(1)
					switch {
					case apierrors.IsNotFound(err) && any == "0":
						old.Add(1) // of a time at which there was none
					case apierrors.IsServiceUnavailable(err):
					case err != nil:
						t.Errorf("got %v", err)
					case version(t, object) < version(t, got) && any == "":
						t.Errorf("a consistent read is at %s after %s was acknowledged", object.ResourceVersion, got.ResourceVersion)
					case version(t, object) < version(t, got):
						old.Add(1)
					}
				}
				check(one, err)
				list, err := faulty.List(t.Context(), metav1.ListOptions{ResourceVersion: any, FieldSelector: "metadata.name=note"})
				if err == nil && len(list.Items) == 0 {
					err = apierrors.NewNotFound(corev1.Resource("configmaps"), "note")
				} else if err == nil {
					one = &list.Items[0]
				}
				check(one, err)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}, Faults(Weight(Refused, 0.5)))
	if old.Load() == 0 {
		t.Error("no read of version 0 was old: this tests nothing")
	}
	t.Logf("%d reads, %d of them old", reads.Load(), old.Load())
}

// When the faults end, the caches of informers become what the server has.
func TestInformersCatchUp(t *testing.T) {
	for name, option := range map[string]Option{"lists": Faults(), "watch-lists": Faults(Weight(NoWatchLists, 0))} {
		t.Run(name, func(t *testing.T) {
			Explore(t, fewer, func(t *testing.T, config *rest.Config) {
				factory := informers.NewSharedInformerFactory(typed(t, config), 0)
				full := factory.Core().V1().ConfigMaps().Informer()
				client, err := metadata.NewForConfig(config)
				if err != nil {
					t.Fatal(err)
				}
				partial := metadatainformer.NewFilteredMetadataInformer(client, corev1.SchemeGroupVersion.WithResource("configmaps"), "default", 0, nil, func(o *metav1.ListOptions) { o.LabelSelector = "odd" }).Informer()
				factory.Start(t.Context().Done())
				go partial.Run(t.Context().Done())
				steady := configMaps(t, WithoutFaults(config))
				for i := range 10 {
					time.Sleep(100 * time.Millisecond)
					change(t, steady, i)
				}
				Calm(config)
				same(t, full, steady, "")
				same(t, partial, steady, "odd")
			}, option)
		})
	}
}

// change creates, changes or deletes a config map. Some lose the label odd.
func change(t *testing.T, maps typedcorev1.ConfigMapInterface, i int) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("map-", i%4), Labels: map[string]string{}}, Data: map[string]string{"n": fmt.Sprint(i)}}
	if i%3 != 0 {
		object.Labels["odd"] = ""
	}
	_, err := maps.Create(t.Context(), object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) && i%5 == 4 {
		err = maps.Delete(t.Context(), object.Name, metav1.DeleteOptions{})
	} else if apierrors.IsAlreadyExists(err) {
		_, err = maps.Update(t.Context(), object, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// same waits until an informer has what the server has.
func same(t *testing.T, informer cache.SharedIndexInformer, client typedcorev1.ConfigMapInterface, selector string) {
	t.Helper()
	var want, have map[string]string
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
		list, err := client.List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return false, err
		}
		want, have = map[string]string{}, map[string]string{}
		for i := range list.Items {
			want[list.Items[i].Name] = list.Items[i].ResourceVersion
		}
		for _, object := range informer.GetStore().List() {
			if m, err := meta.Accessor(object); err == nil && m.GetNamespace() == "default" {
				have[m.GetName()] = m.GetResourceVersion()
			}
		}
		return informer.HasSynced() && maps.Equal(want, have), nil
	})
	if err != nil {
		t.Fatalf("the informer has %v, and the server has %v: %v", have, want, err)
	}
}

// Errors of a write are true: 409 means that another client has written, a lost answer
// that the write was done, 503 and 429 that it was not.
func TestErrorsAreTrue(t *testing.T) {
	for kind, check := range map[Fault]func(t *testing.T, sent, now *corev1.ConfigMap, err error) bool{
		Conflict: func(t *testing.T, sent, now *corev1.ConfigMap, err error) bool {
			if apierrors.IsConflict(err) && (now.ResourceVersion == sent.ResourceVersion || now.Data["n"] == sent.Data["n"]) {
				t.Error("a conflict, and nobody has written")
			}
			return apierrors.IsConflict(err)
		},
		LostAnswer: func(t *testing.T, sent, now *corev1.ConfigMap, err error) bool {
			lost := apierrors.IsTimeout(err) || errors.Is(err, syscall.ECONNRESET)
			if lost && now.Data["n"] != sent.Data["n"] {
				t.Error("the answer is lost, and the write, too")
			}
			return lost
		},
		Refused: func(t *testing.T, sent, now *corev1.ConfigMap, err error) bool {
			if apierrors.IsServiceUnavailable(err) && now.Data["n"] == sent.Data["n"] {
				t.Error("a request was refused, and carried out")
			}
			return apierrors.IsServiceUnavailable(err)
		},
		Disconnect: func(t *testing.T, sent, now *corev1.ConfigMap, err error) bool {
			cut := errors.Is(err, syscall.ECONNRESET)
			if cut && now.Data["n"] == sent.Data["n"] {
				t.Error("a request was not sent, and carried out")
			}
			return cut
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			var writes, faults atomic.Int64
			Explore(t, 8, func(t *testing.T, config *rest.Config) {
				steady, faulty := configMaps(t, WithoutFaults(config)), configMaps(t, config)
				got, err := steady.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "note"}}, metav1.CreateOptions{})
				for i := 0; err == nil && i < 10; i++ {
					got.Data = map[string]string{"n": fmt.Sprint(i)}
					_, failed := faulty.Update(t.Context(), got, metav1.UpdateOptions{})
					sent := got
					if got, err = steady.Get(t.Context(), "note", metav1.GetOptions{}); err != nil {
						break
					}
					writes.Add(1)
					switch {
					case check(t, sent, got, failed):
						faults.Add(1)
					case failed != nil:
						t.Errorf("got %v", failed)
					}
				}
				if err != nil {
					t.Fatal(err)
				}
			}, only(kind))
			if faults.Load() == 0 {
				t.Error("there was no fault: this tests nothing")
			}
			t.Logf("%d of %d writes", faults.Load(), writes.Load())
		})
	}
}

// A client that does one thing after the other has the same on the wire each time,
// also by the clock of the machine.
func TestStartRepeats(t *testing.T) {
	t.Parallel()
	times := Repetitions(5)
	w := New(t)
	if err := w.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	keys, err := w.keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var orders []string
	for range times {
		if err := w.misbehave(&plan{3, map[Fault]float64{Refused: 0}}); err != nil {
			t.Fatal(err)
		}
		walk(t, w.Config())
		orders = append(orders, w.faults.Order())
		w.behave()
		if err := w.restore(t.Context(), keys); err != nil {
			t.Fatal(err)
		}
	}
	differ := 0
	for _, order := range orders {
		if order != orders[0] {
			differ++
			t.Errorf("another order:\n%s\ninstead of\n%s", order, orders[0])
		}
	}
	if n := strings.Count(orders[0], "["); n < 5 {
		t.Errorf("only %d faults:\n%s", n, orders[0])
	}
	t.Logf("the same order of %d events %d of %d times", strings.Count(orders[0], "\n"), times-differ, times)
}

// walk does one thing after the other, whatever comes of it.
func walk(t *testing.T, config *rest.Config) {
	t.Helper()
	maps := configMaps(t, config)
	for i := range 5 {
		name := fmt.Sprint("map-", i%2)
		_, _ = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		_, _ = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "some-"}}, metav1.CreateOptions{})
		if got, err := maps.Get(t.Context(), name, metav1.GetOptions{}); err == nil {
			got.Data = map[string]string{"n": fmt.Sprint(i)}
			_, _ = maps.Update(t.Context(), got, metav1.UpdateOptions{})
		}
		_, _ = maps.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	}
	// The events of all that; there is at least one.
	events, err := maps.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=map-0"})
	if err != nil {
		t.Fatal(err)
	}
	<-events.ResultChan()
	events.Stop()
}

// A failed test tells what was on the wire.
func TestFailuresShowTheWire(t *testing.T) {
	t.Parallel()
	w := New(t, Faults(Seed(7)))
	walk(t, w.Config())
	recorder := &failing{TB: t}
	w.report(recorder)
	if !strings.Contains(recorder.log, "seed 7; the last events on the wire:\n") || !strings.Contains(recorder.log, "configmaps default/map-0") {
		t.Errorf("got %s", recorder.log)
	}
}

type failing struct {
	testing.TB
	log string
}

func (*failing) Failed() bool { return true }

func (f *failing) Logf(format string, args ...any) { f.log += fmt.Sprintf(format, args...) }
