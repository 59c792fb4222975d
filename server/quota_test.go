package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/admission/quota"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

const (
	countWebs = "count/webs.example.com"
	exceeded  = "exceeded quota: q, requested: "
)

// limited is a namespace with a quota, as several replicas serve it.
type limited struct {
	replicas []*running
	typed    []kubernetes.Interface
	dynamic  []dynamic.Interface
}

// startLimited runs replicas on one etcd and waits until all know the quota: they
// refuse what it allows none of.
func startLimited(t *testing.T, replicas int, hard corev1.ResourceList, change ...func(*server.Options)) *limited {
	t.Helper()
	return startLimitedAt(t, etcdtest.Prefix(t), replicas, hard, change...)
}

func startLimitedAt(t *testing.T, prefix string, replicas int, hard corev1.ResourceList, change ...func(*server.Options)) *limited {
	t.Helper()
	l, keys := &limited{}, t.TempDir() // where the key of tokens is, which replicas must share
	for range replicas {
		r := start(t, append(change, func(o *server.Options) {
			o.Etcd.StorageConfig.Prefix, o.Serving.ServerCert.CertDirectory = prefix, keys
		})...)
		l.replicas, l.typed, l.dynamic = append(l.replicas, r), append(l.typed, r.typed(t)), append(l.dynamic, r.dynamic(t))
	}
	define(t, l.dynamic[0])
	hard["count/leases.coordination.k8s.io"] = resource.MustParse("0")
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	if _, err := l.typed[0].CoreV1().ResourceQuotas("default").Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, r := range l.replicas {
		eventually(t, func() bool {
			_, text := send(t, r.member(t, "system:masters"), "POST", r.url+"/apis/coordination.k8s.io/v1/namespaces/default/leases?dryRun=All", "application/json",
				`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"generateName":"l"}}`)
			return strings.Contains(text, exceeded)
		})
		eventually(t, func() bool {
			_, err := l.dynamic[i].Resource(webs).Namespace("default").List(t.Context(), metav1.ListOptions{})
			return err == nil
		})
	}
	return l
}

func (l *limited) count(t *testing.T) int {
	t.Helper()
	list, err := l.dynamic[0].Resource(webs).Namespace("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

// used waits until the status of the quota says so.
func (l *limited) used(t *testing.T, name corev1.ResourceName, want int64) {
	t.Helper()
	l.usedExactly(t, name, *resource.NewQuantity(want, resource.DecimalSI))
}

// usedExactly waits until a quota has counted an amount.
func (l *limited) usedExactly(t *testing.T, name corev1.ResourceName, want resource.Quantity) {
	t.Helper()
	var got resource.Quantity
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		q, err := l.typed[0].CoreV1().ResourceQuotas("default").Get(t.Context(), "q", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got = q.Status.Used[name]; got.Cmp(want) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %s is used, not %s", name, got.String(), want.String())
		}
	}
}

// TestQuotaUnderConcurrentWriters has 32 writers at two replicas, and deletions in
// between.
func TestQuotaUnderConcurrentWriters(t *testing.T) {
	const room, writers, each = 20, 32, 6
	l := startLimited(t, 2, corev1.ResourceList{countWebs: resource.MustParse(fmt.Sprint(room))})
	var created, conflicts atomic.Int64
	all := func(work func(i int, c dynamic.ResourceInterface)) {
		var group sync.WaitGroup
		for i := range writers {
			group.Go(func() { work(i, l.dynamic[i%2].Resource(webs).Namespace("default")) })
		}
		group.Wait()
	}
	create := func(c dynamic.ResourceInterface, name string) bool {
		_, err := c.Create(context.Background(), web(name, "a.example.com"), metav1.CreateOptions{})
		switch {
		case err == nil:
			created.Add(1)
			return true
		case apierrors.IsConflict(err):
			conflicts.Add(1)
		case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), exceeded+countWebs+"=1, used: "+countWebs+"=20, limited: "+countWebs+"=20"):
			t.Errorf("%s: %v", name, err)
		}
		return false
	}
	all(func(i int, c dynamic.ResourceInterface) {
		for n := range each {
			create(c, fmt.Sprintf("w-%d-%d", i, n))
		}
	})
	if n := l.count(t); n != room || created.Load() != room {
		t.Fatalf("%d objects are there and %d were created, where %d are allowed; %d conflicts", n, created.Load(), room, conflicts.Load())
	}
	// Objects come and go: what goes makes room, and there is never more than that.
	most, stop := atomic.Int64{}, make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				most.Store(max(most.Load(), int64(l.count(t))))
			}
		}
	})
	list, err := l.dynamic[0].Resource(webs).Namespace("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		if err := l.dynamic[1].Resource(webs).Namespace("default").Delete(t.Context(), item.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	created.Store(0)
	least, deadline := time.Now().Add(8*time.Second), time.Now().Add(patience)
	all(func(i int, c dynamic.ResourceInterface) {
		for n := 0; time.Now().Before(least) || created.Load() < 2*room && time.Now().Before(deadline); n++ {
			if name := fmt.Sprintf("c-%d-%d", i, n); create(c, name) {
				if err := c.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	close(stop)
	watching.Wait()
	if most.Load() > room || created.Load() < 2*room {
		t.Errorf("at most %d objects at a time, %d created in all, %d conflicts", most.Load(), created.Load(), conflicts.Load())
	}
	t.Logf("%d created and deleted, at most %d at a time, %d conflicts", created.Load(), most.Load(), conflicts.Load())
	l.used(t, countWebs, 0)
}

// TestQuotaOfBytes fills a namespace, and makes room by shrinking and deleting.
func TestQuotaOfBytes(t *testing.T) {
	t.Parallel()
	l := startLimited(t, 2, corev1.ResourceList{quota.StorageBytes: resource.MustParse("20k")})
	maps := func(i int) interface {
		Create(context.Context, *corev1.ConfigMap, metav1.CreateOptions) (*corev1.ConfigMap, error)
		Update(context.Context, *corev1.ConfigMap, metav1.UpdateOptions) (*corev1.ConfigMap, error)
		Delete(context.Context, string, metav1.DeleteOptions) error
	} {
		return l.typed[i%2].CoreV1().ConfigMaps("default")
	}
	config := func(name string, size int) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": strings.Repeat("x", size)}}
	}
	refused := func(err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), exceeded+string(quota.StorageBytes)+"=") {
			t.Errorf("it is not refused by the quota: %v", err)
		}
	}
	for i := range 4 {
		if _, err := maps(i).Create(t.Context(), config(fmt.Sprint("m", i), 4000), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := maps(0).Create(t.Context(), config("m9", 4000), metav1.CreateOptions{})
	refused(err)
	_, err = maps(1).Update(t.Context(), config("m0", 9000), metav1.UpdateOptions{})
	refused(err)
	_, err = l.dynamic[1].Resource(webs).Namespace("default").Create(t.Context(), web("w", strings.Repeat("x", 4000)), metav1.CreateOptions{})
	refused(err)
	if _, err := maps(0).Update(t.Context(), config("m0", 10), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		_, err = l.dynamic[1].Resource(webs).Namespace("default").Create(t.Context(), web("w", strings.Repeat("x", 3000)), metav1.CreateOptions{})
		return err == nil
	})
	for i := range 4 {
		if err := maps(i).Delete(t.Context(), fmt.Sprint("m", i), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.dynamic[0].Resource(webs).Namespace("default").Delete(t.Context(), "w", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	account, err := l.typed[0].CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		q, err := l.typed[0].CoreV1().ResourceQuotas("default").Get(t.Context(), "q", metav1.GetOptions{})
		used := q.Status.Used[quota.StorageBytes]
		return err == nil && used.Value() > 0 && used.Value() < int64(account.Size())+200 // that of the default service account
	})
}

// TestQuotaOfFailedRequests gives back what was reserved for objects that never came.
func TestQuotaOfFailedRequests(t *testing.T) {
	t.Parallel()
	l := startLimited(t, 1, corev1.ResourceList{countWebs: resource.MustParse("3"), "configmaps": resource.MustParse("2"), "pods": resource.MustParse("1")})
	all := l.dynamic[0].Resource(webs).Namespace("default")
	for _, name := range []string{"a", "b"} {
		if _, err := all.Create(t.Context(), web(name, "x"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	l.used(t, countWebs, 2)
	l.used(t, "pods", 0)
	if _, err := all.Create(t.Context(), web("a", "x"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	l.used(t, countWebs, 3) // as in Kubernetes: it is reserved, until the time of a request is over
	for i := range 3 {
		_, err := l.typed[0].CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", i)}}, metav1.CreateOptions{})
		if (err == nil) != (i < 2) {
			t.Errorf("config map %d: %v", i, err)
		}
	}
}

// TestQuotaIsForAdministratorsOfNamespaces has the default roles.
func TestQuotaIsForAdministratorsOfNamespaces(t *testing.T) {
	t.Parallel()
	r := start(t)
	client := r.typed(t)
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "admins"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects: []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "admins"}}}
	if _, err := client.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	admin := r.member(t, "admins")
	eventually(t, func() bool {
		code, _ := get(t, admin, r.url+"/api/v1/namespaces/default/resourcequotas")
		return code == 200
	})
	if code, text := send(t, admin, "POST", r.url+"/api/v1/namespaces/default/resourcequotas", "application/json", `{"metadata":{"name":"mine"}}`); code != 403 {
		t.Errorf("an administrator of a namespace writes its quota: %d %s", code, text)
	}
}
