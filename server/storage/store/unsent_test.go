package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/connectivity"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/server/etcdtest"
)

// causeOf returns what an error says of a write: a cause, or "".
func causeOf(err error) metav1.CauseType {
	var known apierrors.APIStatus
	if !errors.As(err, &known) || known.Status().Details == nil || len(known.Status().Details.Causes) == 0 {
		return ""
	}
	return known.Status().Details.Causes[0].Type
}

// plain is a storage of objects of any kind.
func plain(t testing.TB, b *Backend) storage.Interface {
	t.Helper()
	st, destroy, err := b.Storage(Spec{
		Resource: schema.GroupResource{Group: "example.com", Resource: "things"}, ResourcePrefix: "/things",
		Codec:       unstructured.UnstructuredJSONScheme,
		NewFunc:     func() runtime.Object { return &unstructured.Unstructured{} },
		NewListFunc: func() runtime.Object { return &unstructured.UnstructuredList{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(destroy)
	return st
}

func thing(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": name, "uid": name},
	}}
}

// A write that has found no connection is answered so that its client sends it again,
// whichever of its parts was waiting. One that was sent and has no answer is in doubt.
func TestWritesWithoutAConnection(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode  string
		write func(context.Context, storage.Interface) error
		want  metav1.CauseType
	}{
		"create": {"refuse", func(ctx context.Context, st storage.Interface) error {
			return st.Create(ctx, "/things/new", thing("new"), &unstructured.Unstructured{}, 0)
		}, CauseNothingWritten},
		"update": {"refuse", func(ctx context.Context, st storage.Interface) error {
			return st.GuaranteedUpdate(ctx, "/things/old", &unstructured.Unstructured{}, false, nil,
				storage.SimpleUpdate(func(o runtime.Object) (runtime.Object, error) {
					o.(*unstructured.Unstructured).SetLabels(map[string]string{"a": "b"})
					return o, nil
				}), nil)
		}, CauseNothingWritten},
		"delete": {"refuse", func(ctx context.Context, st storage.Interface) error {
			return st.Delete(ctx, "/things/old", &unstructured.Unstructured{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
		}, CauseNothingWritten},
		"create by a connection that is dead": {"swallow", func(ctx context.Context, st storage.Interface) error {
			return st.Create(ctx, "/things/new", thing("new"), &unstructured.Unstructured{}, 0)
		}, CauseOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cable := newCable(t, etcdtest.Endpoint(t))
			b := openAt(t, "http://"+cable.address)
			st := plain(t, b)
			if err := st.Create(t.Context(), "/things/old", thing("old"), &unstructured.Unstructured{}, 0); err != nil {
				t.Fatal(err)
			}
			before, err := b.client.KV.Get(t.Context(), b.Key("/things"), clientv3.WithPrefix())
			if err != nil {
				t.Fatal(err)
			}
			cable.cut(c.mode)
			if c.mode == "refuse" {
				time.Sleep(100 * time.Millisecond) // gRPC has noticed
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err = c.write(ctx, st)
			if got := causeOf(err); got != c.want {
				t.Fatalf("the cause is %q of %v", got, err)
			}
			var known apierrors.APIStatus
			if errors.As(err, &known) && c.want == CauseNothingWritten &&
				(known.Status().Code != http.StatusServiceUnavailable || known.Status().Details.RetryAfterSeconds == 0) {
				t.Errorf("the answer is %+v", known.Status())
			}
			if c.want != CauseNothingWritten {
				return
			}
			cable.heal()
			time.Sleep(2 * time.Second) // it does not come later either
			after, err := b.client.KV.Get(t.Context(), b.Key("/things"), clientv3.WithPrefix())
			if err != nil {
				t.Fatal(err)
			}
			if len(after.Kvs) != len(before.Kvs) || after.Kvs[0].ModRevision != before.Kvs[0].ModRevision {
				t.Errorf("there was written: %v", after.Kvs)
			}
		})
	}
}

// A write waits for a connection, but not as long as its request.
func TestUnsentWriteIsGivenUp(t *testing.T) {
	t.Parallel()
	cable := newCable(t, etcdtest.Endpoint(t))
	b := openAt(t, "http://"+cable.address)
	s := newRetryingKV(b.client.Client, "/x")
	s.KV = clientv3.NewKV(b.client.Client)
	key := b.Key("given-up")
	cable.cut("refuse")
	until(t, time.Minute, "gRPC notices that the connection is gone", func() bool {
		return b.client.ActiveConnection().GetState() != connectivity.Ready
	})
	begin := func(d time.Duration) error {
		w := &write{retryingTxn: &retryingTxn{
			ctx: t.Context(), retryingKV: s,
			conditions: []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", 0)},
			done:       []clientv3.Op{clientv3.OpPut(key, "x")},
		}, end: time.Now().Add(d)}
		_, err := w.commit()
		return err
	}
	began := time.Now()
	err := begin(500 * time.Millisecond)
	var unanswered *unansweredError
	if !errors.As(err, &unanswered) || !unanswered.nothing || !errors.Is(err, errUnsent) {
		t.Errorf("the error is %v", err)
	}
	if took := time.Since(began); took > slowly(2*time.Second) {
		t.Errorf("it took %v", took)
	}
	time.AfterFunc(500*time.Millisecond, cable.heal)
	if err := begin(20 * time.Second); err != nil {
		t.Errorf("a write is not carried over to the next connection: %v", err)
	}
}

// A write whose answer was lost is answered, though its context has no end, and etcd does not come back.
func TestLostWriteIsGivenUp(t *testing.T) {
	t.Parallel()
	cable := newCable(t, etcdtest.Endpoint(t))
	b := openAt(t, "http://"+cable.address)
	s := newRetryingKV(b.client.Client, "/x")
	s.KV = clientv3.NewKV(b.client.Client)
	key := b.Key("lost")
	w := &write{retryingTxn: &retryingTxn{
		ctx: t.Context(), retryingKV: s,
		conditions: []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", 0)},
		done:       []clientv3.Op{clientv3.OpPut(key, "x")},
	}, end: time.Now()}
	fence := s.fences.current()
	cable.cut("refuse")
	lost := errors.New("the answer is lost")
	began := time.Now()
	_, err := w.resolve(fence, lost)
	var unanswered *unansweredError
	if !errors.As(err, &unanswered) || unanswered.nothing || !errors.Is(err, lost) {
		t.Errorf("the error is %v", err)
	}
	if took := time.Since(began); took > slowly(2*resolveTime) {
		t.Errorf("it took %v", took)
	}
}

// What an error says is true while connections come and go under many writes.
func TestErrorsOfWritesAreTrue(t *testing.T) {
	t.Parallel()
	cable := newCable(t, etcdtest.Endpoint(t))
	b := openAt(t, "http://"+cable.address)
	st := plain(t, b)
	ctx, stop := context.WithTimeout(t.Context(), 6*time.Second)
	defer stop()
	var mu sync.Mutex
	said := map[string]metav1.CauseType{} // "" is done
	var all sync.WaitGroup
	for worker := range 16 {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("w%d-%d", worker, i)
				short, cancel := context.WithTimeout(t.Context(), time.Duration(5+(worker*7+i*13)%200)*time.Millisecond)
				err := st.Create(short, "/things/"+name, thing(name), &unstructured.Unstructured{}, 0)
				cancel()
				cause := causeOf(err)
				if err != nil && cause == "" {
					t.Errorf("an error without a cause: %v", err)
				}
				mu.Lock()
				said[name] = cause
				mu.Unlock()
			}
		})
	}
	for ctx.Err() == nil {
		time.Sleep(150 * time.Millisecond)
		cable.cut("refuse")
		time.Sleep(100 * time.Millisecond)
		cable.heal()
	}
	all.Wait()
	time.Sleep(3 * time.Second) // nothing is on its way
	now, err := b.client.KV.Get(t.Context(), b.Key("/things"), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, kv := range now.Kvs {
		there[string(kv.Key)] = true
	}
	count := map[metav1.CauseType]int{}
	for name, cause := range said {
		count[cause]++
		switch written := there[b.Key("/things/"+name)]; {
		case cause == "" && !written:
			t.Errorf("%s was acknowledged, and is not there", name)
		case cause == CauseNothingWritten && written:
			t.Errorf("nothing was written of %s, and it is there", name)
		}
	}
	t.Logf("%v", count)
	if count[""] == 0 || count[CauseNothingWritten] == 0 {
		t.Errorf("of all writes: %v", count)
	}
}
