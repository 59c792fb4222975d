package flowcontrol

import (
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
	flowrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
)

const (
	// countAge is how long a count is valid.
	countAge = time.Minute
	// countShare limits counting to a hundredth of the time: slow counts run less often.
	countShare = 100
	// countWait is how long a list waits for the first count.
	countWait = 250 * time.Millisecond
	// countTime is the timeout of a count.
	countTime = 5 * time.Second
	// maxCounting is how many counts run at a time. Flow control comes before
	// authorization: users without any rights can cause counts too.
	maxCounting = 8
	// maxNamespace is how long the name of a namespace can be.
	maxNamespace = 63
	// maxCounts is how many counts are kept, of about 200 bytes each.
	maxCounts = 10_000
)

// unknownStats are used if a count fails: ten seats for a list, between one, for nearly
// empty lists, and the maximum.
var unknownStats = storage.Stats{ObjectCount: 1000, EstimatedAverageObjectSizeBytes: 1000}

// Counts counts the objects of lists, so that flow control gives a list seats according
// to its size. k8s.io/apiserver counts every resource once a minute, in a goroutine per
// resource. Counts counts a resource when it is listed, at most once a minute, so that
// idle resources cost nothing. It counts each namespace separately.
type Counts struct {
	// Resource returns the key of a resource in storage, if there is such a
	// resource: names that clients make up are not counted.
	Resource func(schema.GroupResource) (key string, ok bool)
	// Count counts the objects below a key.
	Count func(ctx context.Context, key string) (storage.Stats, error)

	mu      sync.Mutex
	counts  map[string]*count
	running int
}

var _ flowrequest.StorageObjectCountTracker = (*Counts)(nil)

// count is what is known of one list.
type count struct {
	stats    storage.Stats
	known    bool
	next     time.Time     // when it is counted again
	counting chan struct{} // closed when a count is over; nil if there is none
}

// Before counts the objects that a request lists, unless the count is known. Flow
// control itself must not wait: it holds a lock.
func (c *Counts) Before(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if info, ok := request.RequestInfoFrom(req.Context()); ok && lists(info) {
			c.prepare(req.Context(), info)
		}
		handler.ServeHTTP(w, req)
	})
}

// lists reports whether a request is for many objects.
func lists(info *request.RequestInfo) bool {
	return info.IsResourceRequest && info.Name == "" && (info.Verb == "list" || info.Verb == "watch")
}

// prepare waits for the first count. Later counts run in the background.
func (c *Counts) prepare(ctx context.Context, info *request.RequestInfo) {
	resource := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	key, ok := c.Resource(resource)
	if !ok || len(info.Namespace) > maxNamespace {
		return
	}
	if info.Namespace != "" {
		key += "/" + info.Namespace
	}
	known, counting := c.begin(scoped(resource, info.Namespace).String(), key)
	if known || counting == nil {
		return
	}
	wait := time.NewTimer(countWait)
	defer wait.Stop()
	select {
	case <-counting:
	case <-wait.C:
	case <-ctx.Done():
	}
}

// begin starts a count if it is time for one.
func (c *Counts) begin(name, key string) (known bool, counting <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.counts[name]
	if one == nil {
		one = &count{}
		c.makeRoom()
		c.counts[name] = one
	}
	if one.counting == nil && c.running < maxCounting && !time.Now().Before(one.next) {
		c.running++
		one.counting = make(chan struct{})
		go c.count(one, key)
	}
	return one.known, one.counting
}

// makeRoom drops the count that was not used for the longest time, approximately.
func (c *Counts) makeRoom() {
	if c.counts == nil {
		c.counts = map[string]*count{}
	}
	if len(c.counts) < maxCounts {
		return
	}
	now := time.Now()
	for name, one := range c.counts {
		if one.counting == nil && now.After(one.next) {
			delete(c.counts, name)
		}
	}
	for name, one := range c.counts {
		if len(c.counts) < maxCounts {
			return
		}
		if one.counting == nil {
			delete(c.counts, name)
		}
	}
}

// count counts once. If it fails, the former count stays.
func (c *Counts) count(one *count, key string) {
	ctx, cancel := context.WithTimeout(context.Background(), countTime)
	defer cancel()
	begun := time.Now()
	stats, err := c.Count(ctx, key)
	took := time.Since(begun)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		one.stats, one.known, one.next = stats, true, time.Now().Add(countAge+countShare*took)
	} else {
		one.next = time.Now().Add(countTime)
	}
	c.running--
	close(one.counting)
	one.counting = nil
}

// scoped is the name under which the list of a namespace is known.
func scoped(r schema.GroupResource, namespace string) schema.GroupResource {
	if namespace != "" {
		r.Resource += "/" + namespace
	}
	return r
}

// Estimator returns the estimator of the work of requests.
func (c *Counts) Estimator(watches func(*request.RequestInfo) int, maxSeats func(string) uint64) flowrequest.WorkEstimatorFunc {
	estimate := flowrequest.NewWorkEstimator(c.Get, watches, flowrequest.DefaultWorkEstimatorConfig(), maxSeats)
	return func(req *http.Request, schemaName, level string) flowrequest.WorkEstimate {
		if info, ok := request.RequestInfoFrom(req.Context()); ok && lists(info) && info.Namespace != "" {
			// k8s.io/apiserver requests counts by group and resource.
			own := *info
			own.Resource += "/" + info.Namespace
			req = req.WithContext(request.WithRequestInfo(req.Context(), &own))
		}
		return estimate(req, schemaName, level)
	}
}

// Get implements flowrequest.StorageObjectCountTracker. It returns
// ObjectCountNotFoundErr, which means one seat, only for unknown resources.
func (c *Counts) Get(name string) (storage.Stats, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.counts[name]
	switch {
	case one == nil:
		return storage.Stats{}, flowrequest.ObjectCountNotFoundErr
	case !one.known:
		return unknownStats, nil
	}
	return one.stats, nil
}

// Set implements flowrequest.StorageObjectCountTracker. It does nothing: only this
// tracker counts.
func (c *Counts) Set(string, storage.Stats) {}

// RunUntil implements flowrequest.StorageObjectCountTracker. There is nothing to
// maintain.
func (c *Counts) RunUntil(<-chan struct{}) {}
