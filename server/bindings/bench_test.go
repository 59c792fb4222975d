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

// BenchmarkCold measures a request for an object of a bound API to a tenant that is not in use.
func BenchmarkCold(b *testing.B) {
	w := startWith(b, func(o *server.Options) { o.TenantIdleTimeout = 100 * time.Millisecond }, "provider", "one")
	var resources []any
	for i := range 5 {
		name := fmt.Sprintf("webs%d", i)
		w.create(w.in("provider").Resource(crds), crd(name, fmt.Sprintf("Web%d", i)))
		resources = append(resources, name+".example.com")
	}
	w.create(w.in("provider").Resource(bindings.Exports), export("webs", toAll, resources...))
	w.bind("one", "provider", everything)
	first := webs
	first.Resource = "webs0"
	list := func() {
		if _, err := w.in("one").Resource(first).Namespace("default").List(b.Context(), metav1.ListOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	list()
	time.Sleep(3 * time.Second) // until both are closed
	for b.Loop() {
		list()
		b.StopTimer()
		// Until it is closed: a tenant in use has more than a hundred goroutines.
		most, end := 0, time.Now().Add(30*time.Second)
		for n := runtime.NumGoroutine(); n > most-50; n = runtime.NumGoroutine() {
			if most = max(most, n); time.Now().After(end) {
				b.Fatal("the tenant is not closed")
			}
			time.Sleep(20 * time.Millisecond)
		}
		b.StartTimer()
	}
}
