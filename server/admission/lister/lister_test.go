package lister

import (
	"context"
	"testing"
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

type class = schedulingv1.PriorityClass

// asked counts what is read from the client.
type asked struct{ lists, gets int }

func newLister(t *testing.T) (*Lister[*class], *asked) {
	t.Helper()
	n := &asked{}
	client := fake.NewClientset(&class{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	l := &Lister[*class]{Client: client, Stop: t.Context().Done()}
	l.Resource = Resource[*class]{
		Informer: func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Scheduling().V1().PriorityClasses().Informer()
		},
		List: func(ctx context.Context, client kubernetes.Interface) ([]*class, error) {
			n.lists++
			list, err := client.SchedulingV1().PriorityClasses().List(ctx, metav1.ListOptions{})
			return Pointers(list.Items), err
		},
		Get: func(ctx context.Context, client kubernetes.Interface, name string) (*class, error) {
			n.gets++
			return client.SchedulingV1().PriorityClasses().Get(ctx, name, metav1.GetOptions{})
		},
	}
	return l, n
}

// Before the informer has synced and while a write is under way, questions go to etcd.
func TestLister(t *testing.T) {
	l, n := newLister(t)
	ask := func(want int) {
		t.Helper()
		all, err := l.All(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("%v %v", all, err)
		}
		if _, err := l.Get(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if n.lists != want || n.gets != want {
			t.Errorf("%+v, want %d each", *n, want)
		}
	}
	l.Doubt()
	ask(1)
	if !cache.WaitForCacheSync(t.Context().Done(), l.informer.HasSynced) {
		t.Fatal("no informer")
	}
	l.doubt.Store(0)
	ask(1)
	if _, err := l.Get(t.Context(), "b"); !apierrors.IsNotFound(err) || n.gets != 2 {
		t.Errorf("%v after %d reads", err, n.gets)
	}
	if _, err := l.Get(t.Context(), "a/b"); !apierrors.IsNotFound(err) || n.gets != 2 {
		t.Errorf("%v after %d reads", err, n.gets)
	}
	n.gets = 1
	l.Doubt()
	ask(2)
}

func TestNewest(t *testing.T) {
	at := func(name string, second int64) *class {
		return &class{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(second, 0))}}
	}
	wanted := func(c *class) bool { return c.Name != "newest" }
	all := []*class{at("old", 1), at("b", 2), at("newest", 3), at("a", 2), at("c", 2)}
	if got, ok := Newest(all, wanted); !ok || got.Name != "a" {
		t.Errorf("%v %v", got, ok)
	}
	if got, ok := Newest(all[2:3], wanted); ok || got != nil {
		t.Errorf("%v %v", got, ok)
	}
}

func TestIncomplete(t *testing.T) {
	if err := (&Lister[*class]{}).Validate(); err == nil {
		t.Error("no client is needed")
	}
}
