package series

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	endpoints "k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/apiserver/pkg/endpoints/request"
	cacher "k8s.io/apiserver/pkg/storage/cacher/metrics"
	etcd3 "k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// count returns how many series have a label of that value.
func count(t *testing.T, value string) (n int) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if strings.Contains(l.GetValue(), value) {
					n++
				}
			}
		}
	}
	return n
}

func use(resource schema.GroupResource) {
	etcd3.RecordEtcdRequest("get", resource, nil, time.Now())
	etcd3.RecordStorageListMetrics(resource, "", 1, 1, 1)
	cacher.RecordResourceVersion(resource, 7)
	cacher.EventsCounter.WithLabelValues(resource.Group, resource.Resource).Inc()
	cacher.WatchCacheReadWait.WithLabelValues(resource.Group, resource.Resource).Observe(1)
	info := &request.RequestInfo{Verb: "list", APIGroup: resource.Group, APIVersion: "v1", Resource: resource.Resource, IsResourceRequest: true}
	endpoints.RecordDroppedRequest(httptest.NewRequest("GET", "/apis/"+resource.Group, nil), info, "apiserver", false)
}

func TestDrop(t *testing.T) {
	endpoints.Register()
	cacher.Register()
	etcd3.Register()
	gone, kept := schema.GroupResource{Group: "series.example.com", Resource: "gonners"}, schema.GroupResource{Group: "series.example.com", Resource: "keepers"}
	use(kept)
	each := count(t, "keepers")
	if each < 6 {
		t.Fatalf("a resource has %d series", each)
	}
	for round := range 3 {
		use(gone)
		if n := count(t, "gonners"); n != each {
			t.Fatalf("round %d: %d series, want %d", round, n, each)
		}
		n, err := Drop(func(r schema.GroupResource) bool { return r == gone })
		if err != nil || n != each {
			t.Fatalf("round %d: dropped %d of %d: %v", round, n, each, err)
		}
		if n := count(t, "gonners"); n != 0 {
			t.Errorf("round %d: %d series are left", round, n)
		}
		if n := count(t, "keepers"); n != each {
			t.Errorf("round %d: the other resource has %d series, had %d", round, n, each)
		}
	}
}
