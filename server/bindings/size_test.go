package bindings_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/bindings"
)

const (
	sizeConsumers = 10
	sizeResources = 5
	// perBinding and perEtcd are the most bytes that a binding of one resource may take: in the
	// memory of a server whose consumers are idle, and in etcd.
	perBinding, perEtcd = 1 << 10, 1 << 10
)

// A binding takes nothing of a server while the consumer has no requests, and little of etcd.
func TestBindingsOfIdleTenants(t *testing.T) {
	w := startWith(t, func(o *server.Options) { o.TenantIdleTimeout = 500 * time.Millisecond })
	w.tenant("provider", nil)
	var resources []any
	for i := range sizeResources {
		name := fmt.Sprintf("webs%d", i)
		w.create(w.in("provider").Resource(crds), crd(name, fmt.Sprintf("Web%d", i)))
		resources = append(resources, name+".example.com")
	}
	w.create(w.in("provider").Resource(bindings.Exports), export("webs", toAll, resources...))
	names := make([]string, sizeConsumers)
	for i := range names { // all that does not belong to the bindings is there before
		names[i] = fmt.Sprintf("consumer%d", i)
		w.tenant(names[i], nil)
		if _, err := w.in(names[i]).Resource(maps).List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.bind(names[0], "provider", everything)
	heap, goroutines := w.idle()
	for _, name := range names[1:] {
		w.create(w.in(name).Resource(bindings.Bindings), binding("webs", "provider", "webs", everything))
	}
	for _, name := range names[1:] {
		w.reason(name, "webs", "Bound")
	}
	n := int64(sizeResources * (sizeConsumers - 1))
	more, now := w.idle()
	for end := time.Now().Add(2 * time.Minute); (more-heap)/n > perBinding && time.Now().Before(end); {
		more, now = w.idle() // buffers of connections and of the log shrink later
	}
	var bytes int64
	for _, key := range append(w.keys("-espalier/bound/"), w.keys("/grants/")...) {
		found, err := w.etcd.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		bytes += int64(len(key) + len(found.Kvs[0].Value))
	}
	inEtcd := bytes / int64(sizeResources*sizeConsumers)
	t.Logf("bindings: %d bytes of memory and %d bytes of etcd for each bound resource of an idle tenant; %d goroutines before, %d after", (more-heap)/n, inEtcd, goroutines, now)
	if (more-heap)/n > perBinding {
		t.Errorf("%d bytes of memory for a binding, at most %d", (more-heap)/n, perBinding)
	}
	if inEtcd > perEtcd {
		t.Errorf("%d bytes of etcd for a binding, at most %d", inEtcd, perEtcd)
	}
	if now >= goroutines+sizeConsumers-1 {
		t.Errorf("%d goroutines before, %d after", goroutines, now)
	}
}

// idle returns what the heap has, and how many goroutines there are, when all tenants are closed.
func (w *shop) idle() (heap int64, goroutines int) {
	w.Helper()
	last, since := 0, time.Now()
	for end := time.Now().Add(time.Minute); time.Since(since) < 5*time.Second && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if n := runtime.NumGoroutine(); n < last-2 || n > last+2 {
			last, since = n, time.Now()
		}
	}
	var stats runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc), runtime.NumGoroutine()
}
