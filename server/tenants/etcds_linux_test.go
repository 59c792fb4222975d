package tenants_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/espaliertest"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/tenants"
)

func etcds(t testing.TB, config *rest.Config) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(tenants.EtcdResource)
}

// addEtcd starts an etcd, and makes it known under a name.
func addEtcd(t testing.TB, config *rest.Config, name string) *etcdtest.Single {
	t.Helper()
	e := etcdtest.NewSingle(t)
	_, err := etcds(t, config).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "espalier.dev/v1alpha1", "kind": "Etcd", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"servers": []any{e.Endpoint}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// createIn creates a tenant that is to be in an etcd.
func createIn(t testing.TB, config *rest.Config, name, etcd string) {
	t.Helper()
	_, err := objects(t, config).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "espalier.dev/v1alpha1", "kind": "Tenant", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"etcd": etcd},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// keysOf is how many keys of a tenant are in an etcd.
func keysOf(t testing.TB, etcd *clientv3.Client, o *unstructured.Unstructured) int64 {
	t.Helper()
	all, err := etcd.Get(t.Context(), "/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for _, kv := range all.Kvs {
		if strings.Contains(string(kv.Key), "-tenants/"+string(o.GetUID())) {
			n++
		}
	}
	return n
}

// answer is what a request gets, without the retries of clients.
func answer(t testing.TB, config *rest.Config, path string) (int, string) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Get(config.Host + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

const mapsOf = "/clusters/%s/api/v1/namespaces/default/configmaps"

// One etcd that is down takes down its tenants and nothing else, and they return with it.
func TestOneEtcdIsDown(t *testing.T) {
	config := espaliertest.New(t, espaliertest.Configure(func(o *server.Options) {
		o.Tenants, o.TenantIdleTimeout, o.Controllers = true, 2*time.Second, []string{"*"}
	})).Config()
	east, west := addEtcd(t, config, "east"), addEtcd(t, config, "west")
	create(t, config, "any")
	createIn(t, config, "root", "root")
	for i := range 6 {
		createIn(t, config, fmt.Sprintf("east%d", i), "east")
	}
	createIn(t, config, "west", "west")
	for _, name := range []string{"any", "root", "east0", "east1", "east5", "west"} {
		if _, err := client(t, within(config, name)).CoreV1().ConfigMaps("default").Create(t.Context(), settings(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(name, err)
		}
		o, err := objects(t, config).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		at, _, _ := unstructured.NestedString(o.Object, "status", "etcd")
		if name == "any" && at != "east" && at != "west" || name != "any" && at != strings.TrimRight(name, "0123456789") {
			t.Errorf("%s is in the etcd %q", name, at)
		}
		if inEast, inWest := keysOf(t, east.Client, o), keysOf(t, west.Client, o); (inEast > 0) != (at == "east") || (inWest > 0) != (at == "west") {
			t.Errorf("%s is in the etcd %s, and has %d keys in east and %d in west", name, at, inEast, inWest)
		}
	}
	east.Kill(t)
	// Many requests to tenants without their etcd, in use or not, hold up no others.
	var waiting sync.WaitGroup
	defer waiting.Wait()
	for i := range 60 {
		waiting.Go(func() {
			began := time.Now()
			code, text := answer(t, config, fmt.Sprintf(mapsOf, fmt.Sprintf("east%d", i%6)))
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("a request that began before it was known waited for %v: %d %s", took, code, text)
			}
			if code < 500 && code != http.StatusTooManyRequests {
				t.Errorf("without its etcd: %d %s", code, text)
			}
		})
	}
	for range 20 {
		for _, path := range []string{"/api/v1/namespaces/default/configmaps", fmt.Sprintf(mapsOf, "root"), fmt.Sprintf(mapsOf, "west")} {
			began := time.Now()
			if code, text := answer(t, config, path); code != http.StatusOK || time.Since(began) > 3*time.Second {
				t.Errorf("%s while another etcd is down: %d after %v: %s", path, code, time.Since(began), text)
			}
		}
		time.Sleep(300 * time.Millisecond) // it is known after some seconds that an etcd is away
	}
	succeeds(t, func() error {
		for _, name := range []string{"east0", "east4"} {
			began := time.Now()
			if code, text := answer(t, config, fmt.Sprintf(mapsOf, name)); code != http.StatusServiceUnavailable || !strings.Contains(text, `etcd \"east\"`) || time.Since(began) > time.Second {
				return fmt.Errorf("%s: %d after %v: %s", name, code, time.Since(began), text)
			}
		}
		return nil
	})
	create(t, config, "late")
	if code, text := answer(t, config, fmt.Sprintf(mapsOf, "late")); code != http.StatusOK {
		t.Errorf("a new tenant: %d %s", code, text)
	}
	east.Start(t)
	for _, name := range []string{"east0", "east1", "east5"} {
		succeeds(t, func() error {
			if code, text := answer(t, config, fmt.Sprintf(mapsOf, name)); code != http.StatusOK || !strings.Contains(text, `"of":"`+name+`"`) {
				return fmt.Errorf("%s after its etcd is back: %d %s", name, code, text)
			}
			return nil
		})
	}
}

// A tenant that is deleted leaves nothing in its etcd but a fence that expires, and an etcd is kept
// while tenants are in it.
func TestRemovedEtcd(t *testing.T) {
	config := start(t)
	east := addEtcd(t, config, "east")
	create(t, config, "one")
	if code, text := answer(t, config, fmt.Sprintf(mapsOf, "one")); code != http.StatusOK {
		t.Fatal(code, text)
	}
	one, err := objects(t, config).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := etcds(t, config).Delete(t.Context(), "east", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	create(t, config, "two")
	if code, text := answer(t, config, fmt.Sprintf(mapsOf, "two")); code != http.StatusServiceUnavailable || !strings.Contains(text, "no etcd takes new tenants") {
		t.Errorf("a new tenant without an etcd: %d %s", code, text)
	}
	time.Sleep(time.Second)
	if _, err := etcds(t, config).Get(t.Context(), "east", metav1.GetOptions{}); err != nil {
		t.Errorf("the object of an etcd with tenants: %v", err)
	}
	if code, text := answer(t, config, fmt.Sprintf(mapsOf, "one")); code != http.StatusOK {
		t.Errorf("a tenant whose etcd is to be removed: %d %s", code, text)
	}
	if err := objects(t, config).Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	gone := func(of dynamic.ResourceInterface, name string) func() error {
		return func() error {
			if _, err := of.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s is there: %w", name, err)
			}
			return nil
		}
	}
	succeeds(t, gone(objects(t, config), "one"))
	succeeds(t, gone(etcds(t, config), "east"))
	if n := keysOf(t, east.Client, one); n != 0 {
		t.Errorf("%d keys of a deleted tenant", n)
	}
	fence, err := east.Client.Get(t.Context(), "/", clientv3.WithPrefix())
	if err != nil || len(fence.Kvs) != 1 || fence.Kvs[0].Lease == 0 || !strings.Contains(string(fence.Kvs[0].Key), "-tenants/-fences/"+string(one.GetUID())) {
		t.Errorf("what is left is %v, %v", fence, err)
	}
	// There is no etcd but the server's now.
	if code, text := answer(t, config, fmt.Sprintf(mapsOf, "two")); code != http.StatusOK {
		t.Errorf("a new tenant in the etcd of the server: %d %s", code, text)
	}
}
