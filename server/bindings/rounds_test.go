package bindings_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/bindings"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/tenants"
)

// behind starts a server behind a proxy of its etcd.
func behind(t *testing.T, delay time.Duration, names ...string) (*shop, *etcdtest.Proxy) {
	t.Helper()
	var proxy *etcdtest.Proxy
	w := startWith(t, func(o *server.Options) {
		o.TenantIdleTimeout = time.Second
		servers := &o.Etcd.StorageConfig.Transport.ServerList
		proxy = etcdtest.NewProxy(t, (*servers)[0], delay)
		*servers = []string{proxy.Endpoint}
	}, names...)
	return w, proxy
}

// five has a provider share five CRDs, and consumers bind them. It returns the resources.
func (w *shop) five(consumers ...string) (all []schema.GroupVersionResource) {
	w.Helper()
	var names []any
	for i := range 5 {
		name := fmt.Sprintf("webs%d", i)
		w.create(w.in("provider").Resource(crds), crd(name, fmt.Sprintf("Web%d", i)))
		names = append(names, name+".example.com")
		all = append(all, schema.GroupVersionResource{Group: webs.Group, Version: webs.Version, Resource: name})
	}
	w.create(w.in("provider").Resource(bindings.Exports), export("webs", toAll, names...))
	for _, consumer := range consumers {
		w.bind(consumer, "provider", everything)
	}
	return all
}

// The first request to a tenant that is not in use costs few requests to etcd one after the other:
// each takes a millisecond and more where etcd is another machine.
func TestRoundsOfColdStart(t *testing.T) {
	w, proxy := behind(t, 20*time.Millisecond, "provider", "one", "two")
	bound := w.five("one")
	list := func(tenant string, r schema.GroupVersionResource) {
		t.Helper()
		if _, err := w.in(tenant).Resource(r).Namespace("default").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	list("two", maps)
	for _, c := range []struct {
		tenant string
		r      schema.GroupVersionResource
		most   int
	}{{"two", maps, 7}, {"one", bound[0], 13}} {
		w.unused()
		proxy.Take()
		began := time.Now()
		list(c.tenant, c.r)
		calls := proxy.Take()
		chain := etcdtest.Chain(calls)
		t.Logf("%s: %d rounds of %d requests in %v", c.tenant, len(chain), len(calls), time.Since(began))
		for _, call := range calls {
			t.Logf("%5.1f - %5.1f %s %s", call.Begin.Sub(began).Seconds()*1000, call.End.Sub(began).Seconds()*1000, call.Method, call.Key)
		}
		if len(chain) > c.most {
			t.Errorf("%s: %d requests to etcd one after the other, want at most %d", c.tenant, len(chain), c.most)
		}
	}
}

// unused waits until no tenant is in use.
func (w *shop) unused() {
	w.Helper()
	w.eventually(func() error {
		if left := w.keys("-tenants/", "/-espalier/replicas/"); len(left) > 0 {
			return fmt.Errorf("in use: %v", left)
		}
		return nil
	})
}

// gone deletes a tenant, and waits until its object is gone.
func (w *shop) gone(name string) {
	w.Helper()
	if err := w.root().Resource(tenants.Resource).Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	w.eventually(func() error {
		_, err := w.root().Resource(tenants.Resource).Get(w.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s is there: %w", name, err)
	})
}

// What a tenant has is deleted in two transactions, whatever becomes of their answers. Others keep what
// they have.
func TestRemovalInTwoTransactions(t *testing.T) {
	w, proxy := behind(t, 0, "provider", "one", "two", "three", "other")
	all := w.five("one", "two", "three", "other")
	for _, tenant := range []string{"one", "two", "three", "other"} {
		for i, r := range all {
			o := web("a", "x")
			o.SetKind(fmt.Sprintf("Web%d", i))
			w.create(w.in(tenant).Resource(r).Namespace("default"), o)
		}
	}
	w.unused()
	other := w.uid("other")
	before := w.keys(other)
	for lost, tenant := range []string{"one", "two", "three"} { // no answer, that of the first, that of the second
		uid := w.uid(tenant)
		writes := 0
		proxy.Lose(func(c etcdtest.Call) bool {
			if !strings.Contains(c.Key, uid) || c.Writes == 0 {
				return false
			}
			writes++
			return writes == lost
		})
		w.gone(tenant)
		proxy.Lose(nil)
		want := 2
		if lost > 0 {
			want += lost // all before it again
		}
		if writes != want {
			t.Errorf("%s: %d transactions, want %d", tenant, writes, want)
		}
		if left := w.keys(uid); len(left) > 0 {
			t.Error("left of", tenant, left)
		}
	}
	if after := w.keys(other); len(after) < len(before) || len(before) < 5*4 {
		t.Errorf("another tenant has %d keys, had %d", len(after), len(before))
	}
	w.gone("provider")
	if left := w.keys("-shared/"); len(left) > 0 {
		t.Error("left of the provider:", left)
	}
}

// What is too much for one transaction is deleted in parts.
func TestRemovalInParts(t *testing.T) {
	w := start(t, "provider", "one")
	w.provide("provider", toAll)
	w.bind("one", "provider", everything)
	uid := w.uid("one")
	mark := w.keys("-shared/", "/grants/", uid)[0]
	prefix := strings.Split(mark, "-shared/")[0]
	marks := tenants.SharedBy(prefix, types.UID(w.uid("provider"))).Mark(webs.GroupResource(), types.UID(uid), "")
	for i := range 2500 {
		for _, folder := range []string{marks, tenants.Prefix(prefix, types.UID(uid)) + "/example.com/webs/"} {
			if _, err := w.etcd.Put(t.Context(), fmt.Sprintf("%sdefault/w%d", folder, i), "{}"); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.gone("one")
	if left := w.keys(uid); len(left) > 0 {
		t.Errorf("%d keys are left: %v", len(left), left[:min(len(left), 5)])
	}
}
