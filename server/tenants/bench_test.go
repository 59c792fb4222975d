package tenants_test

import (
	"runtime"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/espaliertest"
)

// BenchmarkCold measures a request to a tenant that is not in use.
func BenchmarkCold(b *testing.B) {
	ts := espaliertest.New(b, espaliertest.Configure(func(o *server.Options) {
		o.Tenants, o.TenantIdleTimeout, o.Controllers = true, 100*time.Millisecond, []string{"*"}
	}))
	create(b, ts.Config(), "one")
	c := client(b, within(ts.Config(), "one"))
	list := func() {
		if _, err := c.CoreV1().ConfigMaps("default").List(b.Context(), metav1.ListOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	list()
	settled(b, 0)
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
