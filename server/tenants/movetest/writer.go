package movetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// A writer changes its object, which no other client writes. Each change has a number, and so has each deletion.
type writer struct {
	*Load
	name   string
	client int
	random *rand.Rand
	ended  atomic.Bool

	working      sync.Mutex   // held during a change
	acknowledged atomic.Int64 // the last number that was acknowledged
	deleted      atomic.Int64 // the number of the last deletion that was sent

	// What the object is known to be; guarded by working.
	there   bool
	number  int64 // the last one that was sent
	version string
	former  []string // resource versions

	mu      sync.Mutex
	latest  time.Time // of an acknowledgement
	longest time.Duration
}

func (w *writer) run(ctx context.Context) {
	for ctx.Err() == nil && !w.ended.Load() {
		w.working.Lock()
		w.change(ctx)
		w.working.Unlock()
		time.Sleep(time.Duration(w.random.IntN(4)) * time.Millisecond)
	}
}

func (w *writer) ack(m *corev1.ConfigMap) {
	w.writes.Add(1)
	w.acknowledged.Store(w.number)
	w.mu.Lock()
	w.longest = max(w.longest, time.Since(w.latest))
	w.latest = time.Now()
	w.mu.Unlock()
	if w.there = m != nil; m == nil {
		return
	}
	before := int64(0)
	if w.version != "" {
		before = w.saw(w.version)
	}
	if now := w.saw(m.ResourceVersion); now <= before {
		w.violated("%s was written at %d after %d", w.name, now, before)
	}
	w.remember(m.ResourceVersion)
}

func (w *writer) remember(version string) {
	if w.version != version && w.version != "" {
		if w.former = append(w.former, w.version); len(w.former) > 50 {
			w.former = w.former[1:]
		}
	}
	w.version = version
}

func (w *writer) request(verb string) *rest.Request {
	c := w.clients[w.client].CoreV1().RESTClient()
	switch verb {
	case "create":
		return c.Post().Namespace(Namespace).Resource("configmaps").MaxRetries(0)
	case "update":
		return c.Put().Namespace(Namespace).Resource("configmaps").Name(w.name).MaxRetries(0)
	case "delete":
		return c.Delete().Namespace(Namespace).Resource("configmaps").Name(w.name).MaxRetries(0)
	}
	return c.Get().Namespace(Namespace).Resource("configmaps").Name(w.name).MaxRetries(0)
}

// change makes one change, and finds out what became of it.
func (w *writer) change(ctx context.Context) {
	before, there := w.acknowledged.Load(), w.there
	if w.there && len(w.former) > 0 && w.random.IntN(20) == 0 {
		w.stale(ctx)
	}
	if w.random.IntN(10) == 0 {
		w.client = w.random.IntN(len(w.clients))
	}
	w.number++
	next := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: w.name, Namespace: Namespace, Labels: map[string]string{label: "true"}},
		Data:       map[string]string{field: strconv.FormatInt(w.number, 10)},
	}
	short, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	got := &corev1.ConfigMap{}
	var err error
	switch {
	case !w.there:
		err = w.request("create").Body(next).Do(short).Into(got)
	case w.random.IntN(8) == 0:
		w.deleted.Store(w.number)
		got = nil
		err = w.request("delete").Do(short).Error()
	default:
		next.ResourceVersion = w.version
		err = w.request("update").Body(next).Do(short).Into(got)
	}
	if err == nil {
		w.ack(got)
		return
	}
	w.find(ctx, err, before, there)
}

// find reads what there is after a write that has failed.
func (w *writer) find(ctx context.Context, cause error, before int64, there bool) {
	for ctx.Err() == nil {
		time.Sleep(pause)
		w.client = w.random.IntN(len(w.clients)) // this one may be stopped
		now := &corev1.ConfigMap{}
		short, cancel := context.WithTimeout(ctx, requestTime)
		err := w.request("get").Do(short).Into(now)
		cancel()
		switch {
		case apierrors.IsNotFound(err):
			done := there && w.deleted.Load() == w.number
			if !done && there {
				w.violated("%s is gone, although %d was acknowledged; the last error was %v", w.name, before, cause)
			}
			w.took(done, cause)
			w.there = false
			return
		case err != nil:
			continue
		}
		if at := w.saw(now.ResourceVersion); w.version != "" && at < w.saw(w.version) {
			w.violated("%s is read at %d after %s", w.name, at, w.version)
		}
		switch n := valueOf(now); {
		case n == w.number && w.deleted.Load() != w.number:
			w.took(true, cause)
		case n == before && there:
			w.took(false, cause)
		default:
			w.violated("%s has %d, although %d was acknowledged (%t) and %d sent; the last error was %v", w.name, n, before, there, w.number, cause)
			w.acknowledged.Store(n)
		}
		w.there = true
		w.remember(now.ResourceVersion)
		return
	}
}

// took notes whether a write that had failed was done.
func (w *writer) took(done bool, cause error) {
	if !done {
		return
	}
	if nothingWritten(cause) || apierrors.IsConflict(cause) {
		w.violated("%s: %d was refused and done: %v", w.name, w.number, cause)
	}
	w.acknowledged.Store(w.number)
	w.mu.Lock()
	w.longest, w.latest = max(w.longest, time.Since(w.latest)), time.Now()
	w.mu.Unlock()
}

// stale sends a change with a former resource version, which must be refused.
func (w *writer) stale(ctx context.Context) {
	next := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: w.name, Namespace: Namespace, Labels: map[string]string{label: "true"}, ResourceVersion: w.former[w.random.IntN(len(w.former))]},
		Data:       map[string]string{field: "-1"},
	}
	short, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	if err := w.request("update").Body(next).Do(short).Into(&corev1.ConfigMap{}); err == nil {
		w.violated("%s was updated with the former resource version %s", w.name, next.ResourceVersion)
	}
}

// compare compares the object with what was acknowledged.
func (w *writer) compare(m *corev1.ConfigMap) error {
	switch {
	case m == nil && w.there:
		return fmt.Errorf("%s is gone, although %d was acknowledged", w.name, w.acknowledged.Load())
	case m != nil && !w.there:
		return fmt.Errorf("%s is there, although it was deleted", w.name)
	case m != nil && valueOf(m) != w.acknowledged.Load():
		return fmt.Errorf("%s has %d, although %d was acknowledged", w.name, valueOf(m), w.acknowledged.Load())
	}
	return nil
}
