package store

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	cacher "k8s.io/apiserver/pkg/storage/cacher/metrics"
	etcd3 "k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/espalier-dev/espalier/server/etcdtest"
)

// seriesOf returns how many metric series a resource has.
func seriesOf(t *testing.T, resource string) (n int) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "resource" && strings.HasPrefix(l.GetValue(), resource) {
					n++
				}
			}
		}
	}
	return n
}

// TestSeriesOfGoneResources: what the metrics hold does not grow with the names that were used.
func TestSeriesOfGoneResources(t *testing.T) {
	etcd3.Register()
	cacher.Register()
	b := openAt(t, etcdtest.Endpoint(t))
	s := Spec{
		Cached: true, Version: "v1", StorageVersion: "v1", Codec: unstructured.UnstructuredJSONScheme,
		NewFunc:     func() runtime.Object { return &unstructured.Unstructured{} },
		NewListFunc: func() runtime.Object { return &unstructured.UnstructuredList{} },
		AttrFunc:    storage.DefaultClusterScopedAttr,
	}
	use := func(name string) func() {
		s := s
		s.Resource.Group, s.Resource.Resource = "dropping.example.com", name
		s.ResourcePrefix = "/dropping.example.com/" + name
		s.KeyFunc = func(obj runtime.Object) (string, error) {
			return s.ResourcePrefix + "/" + obj.(*unstructured.Unstructured).GetName(), nil
		}
		st, destroy, err := b.Storage(s)
		if err != nil {
			t.Fatal(err)
		}
		thing := thing("a")
		if err := st.Create(t.Context(), s.ResourcePrefix+"/a", thing, &unstructured.Unstructured{}, 0); err != nil && !storage.IsExist(err) {
			t.Fatal(err)
		}
		for range 3 {
			opts := storage.ListOptions{Recursive: true, Predicate: storage.Everything}
			if err := st.GetList(t.Context(), s.ResourcePrefix, opts, &unstructured.UnstructuredList{}); err != nil {
				t.Fatal(err)
			}
		}
		return destroy
	}
	kept := use("keepers")
	defer kept()
	each := seriesOf(t, "keepers")
	if each < 5 {
		t.Fatalf("a resource in use has %d series", each)
	}
	again := use("again")
	for range 10 {
		use("gonners")()
	}
	again()
	defer use("again")()
	dropSeries()
	if n := seriesOf(t, "gonners"); n > 0 {
		t.Errorf("%d series of resources that are gone", n)
	}
	if n := seriesOf(t, "keepers"); n < each {
		t.Errorf("%d series of a resource in use, %d before", n, each)
	}
	if n := seriesOf(t, "again"); n == 0 {
		t.Error("no series of a resource that is in use again")
	}
}

// The series of what a part of etcd has do not outlive the part.
func TestSeriesOfClosedParts(t *testing.T) {
	b := &Backend{parent: &Backend{}, storages: map[*Spec]destroyFunc{}, stopping: map[*Spec]<-chan struct{}{}}
	resource := schema.GroupResource{Group: "parts.example.com", Resource: "things"}
	stopped := make(chan struct{})
	close(stopped)
	b.keep(&Spec{Resource: resource}, func() <-chan struct{} { return stopped })
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	goneResources.Lock()
	defer goneResources.Unlock()
	if !goneResources.names[resource] {
		t.Error("the series of a resource of a closed part stay")
	}
}
