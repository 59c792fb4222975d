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
	unused := settled(b, 0)
	for b.Loop() {
		list()
		b.StopTimer()
		// Until it is closed: a tenant in use has more than a hundred goroutines.
		for end := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > unused+20; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				b.Fatal("the tenant is not closed")
			}
		}
		b.StartTimer()
	}
}
