package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

// keysBelow are the keys of an etcd below a prefix, without what servers keep for themselves.
func keysBelow(t *testing.T, etcd *clientv3.Client, prefix string) (keys []string) {
	t.Helper()
	found, err := etcd.Get(t.Context(), prefix+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range found.Kvs {
		if key := strings.TrimPrefix(string(kv.Key), prefix); !strings.HasPrefix(key, "/-espalier/") {
			keys = append(keys, key)
		}
	}
	return keys
}

func event(name string) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name}, InvolvedObject: corev1.ObjectReference{Namespace: "shop"}}
}

// Events can be in an etcd of their own. When that is down, everything else goes on.
func TestEventsInAnotherEtcd(t *testing.T) {
	t.Parallel()
	other := etcdtest.NewSingle(t)
	prefix := ""
	r := start(t, func(o *server.Options) {
		prefix = o.Etcd.StorageConfig.Prefix
		o.Etcd.EtcdServersOverrides = []string{"/events#" + other.Endpoint}
	})
	client := typed(t, r.config(t))
	core := client.CoreV1()
	if _, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := core.Events("shop").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	// A quota that counts events finds those of the other etcd.
	hard := corev1.ResourceList{"count/events": resource.MustParse("100"), "count/configmaps": resource.MustParse("100")}
	if _, err := core.ResourceQuotas("shop").Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	succeeds(t, "an event", func() error {
		_, err := core.Events("shop").Create(t.Context(), event("e"), metav1.CreateOptions{})
		return err
	})
	if _, err := core.ConfigMaps("shop").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-w.ResultChan():
		if o, ok := e.Object.(*corev1.Event); !ok || o.Name != "e" {
			t.Errorf("%v", e)
		}
	case <-time.After(patience):
		t.Error("the watch has no event")
	}
	if list, err := client.EventsV1().Events("shop").List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Error(err, list)
	}
	second, err := clientv3.New(clientv3.Config{Endpoints: []string{other.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	first, _ := etcdtest.Client(t)
	if got := fmt.Sprint(keysBelow(t, second, prefix)); got != "[/events/shop/e]" {
		t.Errorf("the other etcd has %s", got)
	}
	for _, key := range keysBelow(t, first, prefix) {
		if strings.HasPrefix(key, "/events/") {
			t.Errorf("the first etcd has %s", key)
		}
	}
	if found, err := second.Get(t.Context(), prefix+"/events/shop/e"); err != nil || len(found.Kvs) != 1 || found.Kvs[0].Lease == 0 {
		t.Error(err, "the event does not expire")
	}
	for _, name := range []string{"etcd-override-0", "etcd-override-readiness-0"} {
		if code, text := get(t, r.member(t, "system:masters"), r.url+"/readyz/"+name); code != http.StatusOK {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}

	other.Kill(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := core.Events("shop").Create(ctx, event("down"), metav1.CreateOptions{}); err == nil {
		t.Error("an event was written")
	}
	if _, err := core.ConfigMaps("shop").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	succeeds(t, "the health check fails", func() error {
		if code, _ := get(t, r.stranger(t), r.url+"/readyz"); code != http.StatusInternalServerError {
			return fmt.Errorf("/readyz answers %d", code)
		}
		return nil
	})
	if code, text := get(t, r.stranger(t), r.url+"/livez"); code != http.StatusOK {
		t.Errorf("/livez: %d %s", code, text)
	}
	other.Start(t)
	r.await(t, "/readyz")
	succeeds(t, "events again", func() error {
		_, err := core.Events("shop").Create(t.Context(), event("again"), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	// The namespace is gone when its events are.
	if err := core.Namespaces().Delete(t.Context(), "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	succeeds(t, "the namespace is gone", func() error {
		_, err := core.Namespaces().Get(t.Context(), "shop", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
	if left := keysBelow(t, second, prefix); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// Leases can be in another etcd too, and controllers elect their leader there.
func TestLeasesInAnotherEtcd(t *testing.T) {
	t.Parallel()
	other := etcdtest.NewSingle(t)
	prefix := ""
	r := start(t, withTenants, func(o *server.Options) {
		prefix = o.Etcd.StorageConfig.Prefix
		o.Etcd.EtcdServersOverrides = []string{"coordination.k8s.io/leases#" + other.Endpoint}
	})
	second, err := clientv3.New(clientv3.Config{Endpoints: []string{other.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	succeeds(t, "the controllers have a leader", func() error {
		if keys := fmt.Sprint(keysBelow(t, second, prefix)); !strings.Contains(keys, "/leases/kube-system/espalier-controllers") {
			return fmt.Errorf("the other etcd has %s", keys)
		}
		return nil
	})
	// Tenants have theirs where they are.
	client := typed(t, r.tenant(t, "one"))
	if _, err := client.CoordinationV1().Leases("default").Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if keys := keysBelow(t, second, prefix+"-tenants"); len(keys) > 0 {
		t.Errorf("the other etcd has %v", keys)
	}
}
