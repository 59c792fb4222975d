package garbagecollector

import (
	"context"
	"crypto/aes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
	aestransformer "k8s.io/apiserver/pkg/storage/value/encrypt/aes"

	"github.com/espalier-dev/espalier/server/restmappingtest"
)

// transformers encrypt the objects of one resource.
type transformers struct {
	resource schema.GroupResource
	value.Transformer
}

func (t transformers) TransformerForResource(resource schema.GroupResource) value.Transformer {
	if resource == t.resource {
		return t.Transformer
	}
	return nil
}

// TestEncrypted has owners and dependents that are encrypted at rest.
func TestEncrypted(t *testing.T) {
	block, err := aes.NewCipher([]byte("sixteen byte key"))
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := aestransformer.NewGCMTransformer(block)
	if err != nil {
		t.Fatal(err)
	}
	all := transformers{schema.GroupResource{Group: "example.com", Resource: "widgets"}, gcm}
	s := &site{Server: restmappingtest.Start(t, restmappingtest.Options{Transformers: all})}
	s.Define(t, restmappingtest.CRD("widgets", "example.com", true))
	s.config = Config{Etcd: s.Backend.Client(), Prefix: s.Prefix, Kinds: s.Kinds, Client: s.Metadata, Transformers: all}
	s.collect(t)
	a := s.widget(t, "a")
	stored, err := s.Backend.Client().Get(t.Context(), s.Prefix+"/example.com/widgets/default/a")
	if err != nil || len(stored.Kvs) != 1 || stored.Kvs[0].Value[0] == '{' {
		t.Fatalf("it is not encrypted: %v %v", stored, err)
	}
	b := s.widget(t, "b", a)
	c := s.widget(t, "c", b)
	s.Delete(t, a, metav1.DeletePropagationForeground)
	s.gone(t, a, b, c)
}

// unreadableValues decrypts nothing.
type unreadableValues struct{ value.Transformer }

func (unreadableValues) TransformFromStorage(context.Context, []byte, value.Context) ([]byte, bool, error) {
	return nil, false, errors.New("no key for this")
}

// TestUnreadableOwners has owners that the collector cannot decrypt: it does not see
// them, and they are there all the same.
func TestUnreadableOwners(t *testing.T) {
	s := start(t, func(c *Config) {
		c.Transformers = transformers{schema.GroupResource{Resource: "configmaps"}, unreadableValues{}}
	})
	owner := s.Object(t, "v1", "ConfigMap", "default", "owner")
	a := s.widget(t, "a", owner)
	s.collect(t)
	b := s.widget(t, "b", owner)
	s.settled(t)
	s.stays(t, owner, a, b)
}

// TestUnknownKinds has a collector that starts when the CRD of owners, and of dependents,
// cannot be read: that a kind is not known says nothing about its objects.
func TestUnknownKinds(t *testing.T) {
	before := start(t)
	owner := before.widget(t, "owner")
	dependent := before.Object(t, "v1", "ConfigMap", "default", "dependent", restmappingtest.Owner(owner))
	gone := before.Object(t, "v1", "ConfigMap", "default", "gone")
	left := before.widget(t, "left", gone)
	etcd, key := before.Backend.Client(), before.Prefix+"/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com"
	good, err := etcd.Get(t.Context(), key)
	if err != nil || len(good.Kvs) != 1 {
		t.Fatalf("the CRD: %v %v", good, err)
	}
	if _, err := etcd.Put(t.Context(), key, "garbage"); err != nil {
		t.Fatal(err)
	}

	s := &site{Server: restmappingtest.Start(t, restmappingtest.Options{Prefix: before.Prefix})}
	s.config = Config{Etcd: etcd, Prefix: s.Prefix, Kinds: s.Kinds, Client: s.Metadata, Events: s.Client, Workers: 8}
	s.collect(t)
	s.Delete(t, gone, metav1.DeletePropagationOrphan) // which has to wait for left
	for range 2 {
		probe := s.Object(t, "v1", "ConfigMap", "default", "probe", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "nobody", UID: "11111111-2222-3333-4444-555555555555"})
		s.gone(t, probe)
	}
	s.stays(t, dependent)
	if s.Get(t, gone) == nil {
		t.Error("an owner has gone whose dependents have not been orphaned")
	}
	if _, err := etcd.Put(t.Context(), key, string(good.Kvs[0].Value)); err != nil {
		t.Fatal(err)
	}
	s.gone(t, gone)
	s.stays(t, left, dependent)
}

// TestWatchFromTheCompactedPast has the watch end where it cannot be taken up again.
func TestWatchFromTheCompactedPast(t *testing.T) {
	s := start(t)
	a := s.widget(t, "a")
	b := s.widget(t, "b", a)
	r := newRun(&s.config, nil)
	scans := make(chan struct{}, 10)
	f := &feed{config: &s.config, graph: r.graph, folder: s.Prefix + "/", synced: func() { scans <- struct{}{} }}
	revision, err := f.scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Delete(t, a, metav1.DeletePropagationBackground)
	now, err := s.Backend.Client().Get(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Backend.Client().Compact(t.Context(), now.Header.Revision); err != nil {
		t.Fatal(err)
	}
	if ended, err := f.watch(t.Context(), &revision); !ended || err == nil {
		t.Fatalf("the watch goes on: %v", err)
	}
	// All is read again, which shows that the owner may be gone.
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { f.run(ctx) })
	<-scans
	if i, _ := r.checks.Get(); i != idOf(b.GetUID()) {
		t.Errorf("the dependent is not looked at")
	}
	cancel()
	running.Wait()
}

// TestScanInPages has objects of very different sizes, and keys beside the prefix.
func TestScanInPages(t *testing.T) {
	s := start(t)
	etcd := s.Backend.Client()
	inside := namespace.NewKV(etcd, s.Prefix)
	big := make([]byte, 1<<20)
	for i := range big {
		big[i] = 'x'
	}
	const small, large = 3000, 20
	var ops []clientv3.Op
	put := func(n int, padding []byte) {
		value := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"n%[1]d","namespace":"default","ownerReferences":[{"apiVersion":"example.com/v1","kind":"Star","name":"s","uid":"s"}],"uid":"%[2]s"},"spec":"%[3]s"}`, n, uidOf(n), padding)
		ops = append(ops, clientv3.OpPut(s.Prefix+fmt.Sprintf("/example.com/widgets/default/n%d", n), value))
		if len(ops) == 100 || padding != nil {
			if _, err := etcd.Txn(t.Context()).Then(ops...).Commit(); err != nil {
				t.Fatal(err)
			}
			ops = nil
		}
	}
	for n := range small {
		put(n, nil)
	}
	for n := range large {
		put(small+n, big)
	}
	if _, err := inside.Put(t.Context(), "-other/example.com/widgets/default/x", "{}"); err != nil {
		t.Fatal(err)
	}
	r := newRun(&s.config, nil)
	f := &feed{config: &s.config, graph: r.graph, folder: s.Prefix + "/"}
	began := time.Now()
	if _, err := f.scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d objects, %d of them of a megabyte, read in %s", small+large, large, time.Since(began))
	if got := r.graph.len(); got != small+large {
		t.Errorf("%d objects of %d", got, small+large)
	}
}
