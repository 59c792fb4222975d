package tenants_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/espaliertest"
)

// The controllers of a tenant that is closed give their lease back: those of the next start
// would wait for it, and a tenant that is used for moments would never have any.
func TestControllersReleaseTheirLease(t *testing.T) {
	config := espaliertest.Start(t, espaliertest.Configure(func(o *server.Options) {
		o.Tenants, o.TenantIdleTimeout, o.Controllers = true, time.Second, []string{"*"}
	}))
	create(t, config, "one")
	holder := func() string {
		lease, err := client(t, within(config, "one")).CoordinationV1().Leases("kube-system").Get(t.Context(), "espalier-controllers", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	first := ""
	for end := time.Now().Add(time.Minute); first == "" && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		first = holder()
	}
	if first == "" {
		t.Fatal("the controllers do not start")
	}
	for range 3 {
		time.Sleep(4 * time.Second) // nothing says from outside that it is closed
		if holder() != first {
			return
		}
	}
	t.Error("the lease is still held by the controllers of a tenant that is closed")
}

// Watches of a tenant end when it is deleted.
func TestWatchesEndWithTheTenant(t *testing.T) {
	config := start(t, "one")
	c := client(t, within(config, "one"))
	begin := map[string]func() (watch.Interface, error){
		"config maps": func() (watch.Interface, error) {
			return c.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
		},
		"events": func() (watch.Interface, error) { return c.CoreV1().Events("").Watch(t.Context(), metav1.ListOptions{}) },
		"CRDs": func() (watch.Interface, error) {
			return rawWatch(t, within(config, "one"), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
		},
	}
	open := map[string]watch.Interface{}
	for what, f := range begin {
		w, err := f()
		if err != nil {
			t.Fatal(what, err)
		}
		defer w.Stop()
		open[what] = w
	}
	if err := objects(t, config).Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	late := time.After(30 * time.Second)
	for what, w := range open {
		for ended := false; !ended; {
			select {
			case _, more := <-w.ResultChan():
				ended = !more
			case <-late:
				t.Fatal(what, "the watch does not end")
			}
		}
	}
}

func rawWatch(t *testing.T, config *rest.Config, path string) (watch.Interface, error) {
	t.Helper()
	return client(t, config).CoreV1().RESTClient().Get().AbsPath(path).Param("watch", "true").Watch(t.Context())
}

// Requests do not fail because a tenant expires meanwhile.
func TestRequestsWhileTenantsExpire(t *testing.T) {
	config := espaliertest.Start(t, espaliertest.Configure(func(o *server.Options) {
		o.Tenants, o.TenantIdleTimeout, o.Controllers = true, 100*time.Millisecond, nil
	}))
	create(t, config, "one")
	maps := client(t, within(config, "one")).CoreV1().ConfigMaps("default")
	for i := range 60 {
		if _, err := maps.List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(i, err)
		}
		name := settings("one")
		name.GenerateName, name.Name = "m", ""
		if _, err := maps.Create(t.Context(), name, metav1.CreateOptions{}); err != nil {
			t.Fatal(i, err)
		}
		time.Sleep(time.Duration(i%10) * 25 * time.Millisecond)
	}
	var all *corev1.ConfigMapList
	var err error
	if all, err = maps.List(t.Context(), metav1.ListOptions{}); err != nil || len(all.Items) != 60 {
		t.Errorf("%v, %d objects", err, len(all.Items))
	}
}
