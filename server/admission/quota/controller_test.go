package quota

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// writes has every write of a status answered by a function, which gets its number.
func writes(answer func(n int, q *corev1.ResourceQuota) (*corev1.ResourceQuota, error)) (kubernetes.Interface, *atomic.Int64) {
	client, n := fake.NewClientset(), &atomic.Int64{}
	client.PrependReactor("update", "resourcequotas", func(action clienttesting.Action) (bool, runtime.Object, error) {
		q, err := answer(int(n.Add(1)), action.(clienttesting.UpdateAction).GetObject().(*corev1.ResourceQuota).DeepCopy())
		if err != nil {
			return true, nil, err
		}
		return true, q, nil
	})
	return client, n
}

// quotaOfNothing has a limit that nothing is read from etcd for.
func quotaOfNothing(revision string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "n", UID: "u", ResourceVersion: revision},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"example.com/nothing": resource.MustParse("3")}},
	}
}

func controllerOf(client kubernetes.Interface, q *corev1.ResourceQuota) *Controller {
	c := &Controller{config: Config{Client: client, RequestTimeout: time.Minute}, ledgers: map[string]map[string]*ledger{}, tallies: map[string]*tally{}, queue: newQueue()}
	ledgerOf(c.ledgers, q.Namespace, q.Name).see(q, time.Now())
	return c
}

// TestFailedWritesAreRepeatedLessAndLessOften has etcd refuse the first step of a limit.
func TestFailedWritesAreRepeatedLessAndLessOften(t *testing.T) {
	client, n := writes(func(int, *corev1.ResourceQuota) (*corev1.ResourceQuota, error) {
		return nil, apierrors.NewGenericServerResponse(507, "update", quotas, "q", "etcd is full", 0, false)
	})
	c := controllerOf(client, quotaOfNothing("1"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); c.work(ctx) }()
	c.queue.Add(types.NamespacedName{Namespace: "n", Name: "q"})
	time.Sleep(500 * time.Millisecond)
	cancel()
	c.queue.ShutDown()
	<-ended
	if n := n.Load(); n < 2 || n > 6 { // at 0, 20, 60, 140 and 300 ms
		t.Errorf("%d writes", n)
	}
}

// TestLimitComesIntoForceAtOnce has both steps follow each other, however many quotas
// are waiting.
func TestLimitComesIntoForceAtOnce(t *testing.T) {
	var last *corev1.ResourceQuota
	client, n := writes(func(n int, q *corev1.ResourceQuota) (*corev1.ResourceQuota, error) {
		_, limited := q.Status.Hard["example.com/nothing"]
		_, counted := q.Status.Used["example.com/nothing"]
		if !limited || counted != (n == 2) || q.ResourceVersion != []string{"", "1", "2"}[n] {
			t.Errorf("write %d: %+v", n, q)
		}
		q.ResourceVersion = []string{"", "2", "3"}[n]
		last = q
		return q, nil
	})
	c := controllerOf(client, quotaOfNothing("1"))
	item := types.NamespacedName{Namespace: "n", Name: "q"}
	if err := c.sync(t.Context(), item); err != nil || n.Load() != 2 || c.queue.Len() != 0 {
		t.Fatalf("%v after %d writes, %d to do", err, n.Load(), c.queue.Len())
	}
	// The watch brings both writes, later.
	first := last.DeepCopy()
	first.ResourceVersion, first.Status.Used = "2", nil
	l := c.ledgers["n"]["q"]
	for _, q := range []*corev1.ResourceQuota{first, last} {
		if l.see(q, time.Now()) {
			t.Errorf("the controller's own write at %s gives reason to count", q.ResourceVersion)
		}
	}
	if err := c.sync(t.Context(), item); err != nil || n.Load() != 2 {
		t.Errorf("%v after %d writes", err, n.Load())
	}
}

// TestReservationsOutliveTheirLimit has a limit removed and added again while a request
// that has reserved is on its way.
func TestReservationsOutliveTheirLimit(t *testing.T) {
	var used resource.Quantity
	client, _ := writes(func(_ int, q *corev1.ResourceQuota) (*corev1.ResourceQuota, error) {
		used = q.Status.Used["example.com/nothing"]
		return q, nil
	})
	one, none, again := quotaOfNothing("1"), quotaOfNothing("2"), quotaOfNothing("3")
	one.Status = corev1.ResourceQuotaStatus{Hard: one.Spec.Hard, Used: corev1.ResourceList{"example.com/nothing": resource.MustParse("0")}}
	c := controllerOf(client, one)
	reserved := one.DeepCopy()
	reserved.ResourceVersion, reserved.Status.Used = "1.5", corev1.ResourceList{"example.com/nothing": resource.MustParse("1")}
	none.Spec.Hard = nil
	again.Status.Hard = again.Spec.Hard
	l := c.ledgers["n"]["q"]
	l.complete = true
	for _, q := range []*corev1.ResourceQuota{reserved, none, again} {
		l.see(q, time.Now())
	}
	if err := c.sync(t.Context(), types.NamespacedName{Namespace: "n", Name: "q"}); err != nil || used.Value() != 1 {
		t.Errorf("%s is used, %v", used.String(), err)
	}
}
