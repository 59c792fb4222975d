package quota

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-dev/espalier/server/storage/store"
)

// pluginOf has a plugin whose informer knows quotas.
func pluginOf(t *testing.T, client kubernetes.Interface, known ...*corev1.ResourceQuota) *Plugin {
	t.Helper()
	made, err := NewPlugin(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := made.(*Plugin)
	p.SetDrainedNotification(t.Context().Done())
	p.SetExternalKubeClientSet(client)
	p.quotas.synced = func() bool { return true }
	p.quotas.known = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, q := range known {
		if err := p.quotas.known.Add(q); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	return p
}

// creation is a request to create a ConfigMap.
func creation(namespace string) admission.Attributes {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: namespace}}
	return admission.NewAttributesRecord(m, nil, corev1.SchemeGroupVersion.WithKind("ConfigMap"), namespace, "m", corev1.SchemeGroupVersion.WithResource("configmaps"), "",
		admission.Create, &metav1.CreateOptions{}, false, nil)
}

// limiting is a quota with limits. Some of them are counted.
func limiting(namespace string, names []corev1.ResourceName, counted ...corev1.ResourceName) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: namespace, UID: "u", ResourceVersion: "1"}}
	q.Status = corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{}, Used: corev1.ResourceList{}}
	for _, name := range names {
		q.Status.Hard[name] = resource.MustParse("3")
	}
	for _, name := range counted {
		q.Status.Used[name] = resource.MustParse("0")
	}
	return q
}

// TestUncountedLimits has limits that no controller counts: requests that they are about
// may be sent again, and no others wait.
func TestUncountedLimits(t *testing.T) { synctest.Test(t, testUncountedLimits) }

func testUncountedLimits(t *testing.T) {
	const mine, other = corev1.ResourceConfigMaps, corev1.ResourceSecrets
	client, _ := writes(func(_ int, q *corev1.ResourceQuota) (*corev1.ResourceQuota, error) { return q, nil })
	known := []*corev1.ResourceQuota{
		limiting("counted", []corev1.ResourceName{mine}, mine),
		limiting("other", []corev1.ResourceName{mine, other}, mine),
		limiting("soon", []corev1.ResourceName{mine}),
	}
	for i := range 2 * evaluators {
		known = append(known, limiting(fmt.Sprint("uncounted-", i), []corev1.ResourceName{mine, other}, other))
	}
	p := pluginOf(t, client, known...)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	for i := range 2 * evaluators {
		waiting.Go(func() {
			began := time.Now()
			err := p.Validate(store.Conditional(t.Context()), creation(fmt.Sprint("uncounted-", i)), nil)
			if _, again := apierrors.SuggestsClientDelay(err); !apierrors.IsServiceUnavailable(err) || !again || !apierrors.HasStatusCause(err, store.CauseNothingWritten) ||
				!strings.Contains(err.Error(), "ResourceQuota q in the namespace uncounted-") {
				t.Errorf("%v", err)
			}
			if took := time.Since(began); took < hearTime || took > 2*hearTime {
				t.Errorf("it took %s", took)
			}
		})
	}
	time.Sleep(hearTime / 20) // all of them wait
	for _, namespace := range []string{"counted", "other"} {
		began := time.Now()
		if err := p.Validate(store.Conditional(t.Context()), creation(namespace), nil); err != nil || time.Since(began) > hearTime/2 {
			t.Errorf("%s: %v after %s", namespace, err, time.Since(began))
		}
	}
	waiting.Go(func() {
		time.Sleep(hearTime / 10)
		if err := p.quotas.known.Update(limiting("soon", []corev1.ResourceName{mine}, mine)); err != nil {
			t.Error(err)
		}
	})
	if err := p.Validate(store.Conditional(t.Context()), creation("soon"), nil); err != nil {
		t.Errorf("counted while it waits: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), hearTime/10)
	defer cancel()
	began := time.Now()
	if err := p.Validate(store.Conditional(ctx), creation("uncounted-0"), nil); err == nil || time.Since(began) > hearTime/2 {
		t.Errorf("the client has gone: %v after %s", err, time.Since(began))
	}
}

// TestLimitsThatWereMarkedSince has a request that has reserved, and finds that a quota
// was marked before its write.
func TestLimitsThatWereMarkedSince(t *testing.T) {
	const name = corev1.ResourceConfigMaps
	for _, c := range []struct {
		what      string
		marked    []string
		known     bool
		reserving int64
	}{
		{"another quota has other limits", []string{"other"}, true, 0},
		{"the limit is new", []string{"q"}, false, 1},
		{"the limit was removed and added again", []string{"q"}, true, 1},
	} {
		q := limiting("n", []corev1.ResourceName{name}, name)
		client, written := writes(func(_ int, q *corev1.ResourceQuota) (*corev1.ResourceQuota, error) { return q, nil })
		client.(*fake.Clientset).PrependReactor("list", "resourcequotas", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, &corev1.ResourceQuotaList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []corev1.ResourceQuota{*q}}, nil
		})
		p, a := pluginOf(t, client, q), creation("n")
		folder, err := p.again(t.Context(), a, map[limit]bool{{q.UID, name}: c.known}, c.marked)
		if err != nil || folder.Revision != 7 || written.Load() != c.reserving {
			t.Errorf("%s: %d reservations, %+v, %v", c.what, written.Load(), folder, err)
		}
		// What the next mark is compared to is what was evaluated last.
		if folder, err = folder.Newer(t.Context(), []string{"other"}); err != nil || written.Load() != c.reserving {
			t.Errorf("%s, and another mark: %d reservations, %+v, %v", c.what, written.Load(), folder, err)
		}
	}
}

// TestReserve has another replica, or the controller, write in between.
func TestReserve(t *testing.T) {
	was := quotaOf(1, 990)
	for _, c := range []struct {
		name         string
		more, stored int64
		want         int64 // -1 if there is no room
	}{
		{"the controller has lowered it", 3, 10, 13},
		{"another replica has raised it", 3, 995, 998},
		{"the last place", 3, 997, 1000},
		{"no room is left", 3, 998, -1},
		{"nothing is reserved", 0, 1000, 1000},
	} {
		got := reserve(was, quotaOf(1, 990+c.more), quotaOf(2, c.stored))
		switch {
		case got == nil && c.want >= 0:
			t.Errorf("%s: refused", c.name)
		case got == nil:
		case got.ResourceVersion != "2":
			t.Errorf("%s: written on the condition of revision %s", c.name, got.ResourceVersion)
		default:
			if used := got.Status.Used["count/a"]; used.Value() != c.want {
				t.Errorf("%s: %d is used, not %d", c.name, used.Value(), c.want)
			}
		}
	}
	other := quotaOf(2, 0)
	other.UID = "v"
	if reserve(was, quotaOf(1, 991), other) != nil {
		t.Error("a quota that was made anew gets the reservations of the former")
	}
	other = quotaOf(2, 0)
	other.Status.Hard = corev1.ResourceList{"count/a": resource.MustParse("1")}
	if reserve(was, quotaOf(1, 991), other) != nil {
		t.Error("other limits are not looked at")
	}
}
