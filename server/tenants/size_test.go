package tenants_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/espaliertest"
)

// Tenants without requests have no goroutines. Those that were used once are closed.
func TestIdleTenantsAreNotThere(t *testing.T) {
	const n = 12
	config := espaliertest.Start(t, espaliertest.Configure(func(o *server.Options) {
		o.Tenants, o.TenantIdleTimeout, o.Controllers = true, 200*time.Millisecond, []string{"*"}
	}))
	use := func(name string) {
		if _, err := client(t, within(config, name)).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create(t, config, "first")
	use("first")
	before := settled(t, 0)
	for i := range n {
		create(t, config, fmt.Sprintf("t%d", i))
	}
	for i := range n {
		use(fmt.Sprintf("t%d", i))
	}
	if inUse := runtime.NumGoroutine(); inUse < before+n {
		t.Fatalf("%d goroutines with %d tenants in use, %d without: nothing was measured", inUse, n, before)
	}
	settled(t, before+n-1) // those of connections come and go
}

// settled waits until the number of goroutines does not change, and is at most a limit, if
// there is one.
func settled(t testing.TB, limit int) int {
	t.Helper()
	last, since := 0, time.Now()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		n := runtime.NumGoroutine()
		if n != last {
			last, since = n, time.Now()
		}
		if (limit == 0 || n <= limit) && time.Since(since) > 2*time.Second {
			return n
		}
	}
	t.Fatalf("there are %d goroutines, want at most %d", last, limit)
	return 0
}
