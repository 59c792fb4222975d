package tenants_test

import (
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
	for b.Loop() {
		if _, err := c.CoreV1().ConfigMaps("default").List(b.Context(), metav1.ListOptions{}); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		time.Sleep(250 * time.Millisecond)
		b.StartTimer()
	}
}
