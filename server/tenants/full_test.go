package tenants_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/espaliertest"
	"github.com/espalier-dev/espalier/server/tenants"
)

func large(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": strings.Repeat("x", 100_000)}}
}

// A full tenant can read, shrink and delete what it has, and others write as before. With a
// higher limit it goes on.
func TestFullTenant(t *testing.T) {
	config := start(t, "one", "two")
	set := func(storage string) error {
		_, err := objects(t, config).Patch(t.Context(), "one", types.MergePatchType, []byte(`{"spec":{"storage":`+storage+`}}`), metav1.PatchOptions{})
		return err
	}
	for _, wrong := range []string{`"much"`, `"10k"`, `5`, `-1`, `""`, `"-1G"`} {
		if err := set(wrong); !apierrors.IsInvalid(err) {
			t.Errorf("spec.storage %s: %v", wrong, err)
		}
	}
	if err := set(`"2M"`); err != nil {
		t.Fatal(err)
	}
	one := client(t, within(config, "one"))
	maps := one.CoreV1().ConfigMaps("default")
	succeeds(t, func() error { // its controllers have made what a full tenant would have no room for
		_, err := one.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	n := 0
	for ; n < 30; n++ {
		_, err := maps.Create(t.Context(), large(fmt.Sprint("m", n)), metav1.CreateOptions{})
		if err == nil {
			continue
		}
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the tenant is full") {
			t.Fatal(n, err)
		}
		break
	}
	if n < 15 || n > 20 {
		t.Errorf("%d objects of 100 kB in 2 MB", n)
	}
	second := client(t, within(config, "two")).CoreV1().ConfigMaps("default")
	for i := range n + 2 {
		if _, err := second.Create(t.Context(), large(fmt.Sprint("m", i)), metav1.CreateOptions{}); err != nil {
			t.Error("another tenant:", err)
		}
	}
	if _, err := maps.Get(t.Context(), "m1", metav1.GetOptions{}); err != nil {
		t.Error("a read:", err)
	}
	if _, err := one.CoreV1().ServiceAccounts("default").Patch(t.Context(), "default", types.MergePatchType, []byte(`{"secrets":[{"name":"`+strings.Repeat("s", 200_000)+`"}]}`), metav1.PatchOptions{}); !apierrors.IsForbidden(err) {
		t.Error("a change that takes more:", err)
	}
	if _, err := maps.Create(t.Context(), large("dry"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error("a dry run:", err)
	}
	if _, err := maps.Patch(t.Context(), "m1", types.MergePatchType, []byte(`{"data":{"a":"small"}}`), metav1.PatchOptions{}); err != nil {
		t.Error("a change that takes less:", err)
	}
	if err := maps.Delete(t.Context(), "m2", metav1.DeleteOptions{}); err != nil {
		t.Error("a delete:", err)
	}
	if _, err := maps.Create(t.Context(), large("after"), metav1.CreateOptions{}); err != nil {
		t.Error("a create in the space of what was deleted:", err)
	}
	if err := set(`"10Mi"`); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		succeeds(t, func() error {
			_, err := maps.Create(t.Context(), large(fmt.Sprint("more", i)), metav1.CreateOptions{})
			return err
		})
	}
}

// A tenant that has as many objects as it may can do whatever stores none. What it is told does not depend on how early it is
// refused, and users without the right to create objects are told that.
func TestFullOfObjects(t *testing.T) {
	const limit, writers = 1000, 16 // a limit is not less
	config := start(t, "one")
	if _, err := objects(t, config).Patch(t.Context(), "one", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"objects":%d}}`, limit), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	one := client(t, within(config, "one"))
	maps := one.CoreV1().ConfigMaps("default")
	succeeds(t, func() error {
		_, err := one.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	create := func(name string) error {
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	var next atomic.Int64
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for i := next.Add(1); i <= limit; i = next.Add(1) {
				if err := create(fmt.Sprint("m", i)); err != nil {
					if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the tenant is full: it has ") {
						t.Error(i, err)
					}
					return
				}
			}
		})
	}
	group.Wait()
	var refused []string
	for i := range 20 {
		err := create(fmt.Sprint("more", i))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the tenant is full: it has ") {
			t.Fatal(i, err)
		}
		refused = append(refused, err.Error())
	}
	if first := slices.Compact(refused); len(first) > 1 {
		t.Errorf("one refusal, in several ways: %q", first)
	}
	stranger := within(config, "one")
	stranger.Impersonate.UserName = "stranger"
	if _, err := client(t, stranger).CoreV1().ConfigMaps("default").Create(t.Context(), large("m"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "full") {
		t.Error("a user who may not create:", err)
	}
	if _, err := one.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}); err != nil {
		t.Error("a token:", err)
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/", Verb: "get"}}}
	if _, err := one.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{}); err != nil {
		t.Error("a review:", err)
	}
	for i := range writers + 1 { // so many may have been created at once when there was one place left
		if err := maps.Delete(t.Context(), fmt.Sprint("m", i+1), metav1.DeleteOptions{}); err != nil {
			t.Error("a delete:", err)
		}
	}
	if err := create("after"); err != nil {
		t.Error("a create in the place of what was deleted:", err)
	}
}

// A full tenant is opened although it may lack default objects, as after an upgrade: otherwise no client could delete anything in it.
func TestFullTenantIsOpened(t *testing.T) {
	var options *server.Options
	config := espaliertest.New(t, espaliertest.Configure(func(o *server.Options) {
		o.Tenants, o.TenantIdleTimeout, o.Controllers, options = true, time.Second, []string{"*"}, o
	})).Config()
	etcd, err := clientv3.New(clientv3.Config{Endpoints: options.Etcd.StorageConfig.Transport.ServerList})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = etcd.Close() }) // the test is over
	create(t, config, "one")
	if _, err := objects(t, config).Patch(t.Context(), "one", types.MergePatchType, []byte(`{"spec":{"storage":"2M"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	o, err := objects(t, config).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	one := client(t, within(config, "one"))
	maps := one.CoreV1().ConfigMaps("default")
	note := tenants.Prefix(options.Etcd.StorageConfig.Prefix, o.GetUID()) + "/-espalier/defaults"
	noted := func() error {
		found, err := etcd.Get(t.Context(), note)
		if err == nil && len(found.Kvs) == 0 {
			err = errors.New("it is not noted that the tenant has default objects")
		}
		return err
	}
	succeeds(t, func() error {
		_, err := one.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return errors.Join(err, noted())
	})
	for _, size := range []int{100_000, 10_000, 1000, 0} {
		for i := 0; ; i++ {
			_, err := maps.Create(t.Context(), &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%d-%d", size, i)}, Data: map[string]string{"a": strings.Repeat("x", size)},
			}, metav1.CreateOptions{})
			if apierrors.IsForbidden(err) {
				break
			}
			if err != nil || i > 30 {
				t.Fatal(size, i, err)
			}
		}
	}
	if _, err := etcd.Delete(t.Context(), note); err != nil { // as if they were of another version
		t.Fatal(err)
	}
	for range 5 {
		time.Sleep(4 * time.Second) // nothing says from outside that it is closed
		if _, err := maps.List(t.Context(), metav1.ListOptions{Limit: 1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		if noted() != nil {
			continue
		}
		if err := maps.Delete(t.Context(), "m100000-0", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		return
	}
	t.Error("the tenant was not opened again")
}
