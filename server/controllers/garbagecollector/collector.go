package garbagecollector

import (
	"context"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/catalog/restmapping"
	"github.com/espalier-dev/espalier/server/controllers/queue"
)

// DefaultWorkers is how many objects are worked on at a time.
const DefaultWorkers = 20

// Config is what a Collector works with. All of it must be set except where noted.
type Config struct {
	// Etcd and Prefix are where objects are stored; Transformers, which may be nil,
	// decrypt them.
	Etcd         *clientv3.Client
	Prefix       string
	Transformers value.ResourceTransformers

	Kinds *restmapping.Kinds
	// Client makes the requests. Turn its own rate limit off: there are as many requests
	// at a time as Workers, and failures are repeated ever more slowly.
	Client metadata.Interface
	// Events, if not nil, records events about references that cannot be.
	Events kubernetes.Interface
	// Workers is how many objects are worked on at a time; 0 is DefaultWorkers.
	Workers int
}

// ignored are resources that come in great numbers, own nothing and go by
// themselves. Upstream ignores them too.
var ignored = map[schema.GroupResource]bool{
	{Resource: "events"}:                         true,
	{Group: "events.k8s.io", Resource: "events"}: true,
}

// Collector deletes objects whose owners are gone. Several servers have one; only
// one of them runs at a time.
type Collector struct{ config Config }

// New returns a collector that does nothing until it is run.
func New(c Config) *Collector {
	if c.Workers == 0 {
		c.Workers = DefaultWorkers
	}
	register()
	return &Collector{c}
}

// Run collects until the context ends, whose error it returns. Nothing of it is left
// then. It may be run again later.
func (c *Collector) Run(ctx context.Context) error {
	var events record.EventRecorder
	if c.config.Events != nil {
		broadcaster := record.NewBroadcaster(record.WithContext(ctx))
		defer broadcaster.Shutdown()
		broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.config.Events.CoreV1().Events("")})
		events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "garbage-collector-controller"})
	}
	r := newRun(&c.config, events)
	defer objects.Set(0)
	var running sync.WaitGroup
	synced := make(chan struct{})
	f := &feed{config: &c.config, graph: r.graph, folder: path.Join("/", c.config.Prefix) + "/", synced: sync.OnceFunc(func() { close(synced) })}
	running.Go(func() { f.run(ctx) })
	running.Go(func() { r.report(ctx) })
	running.Go(func() {
		<-ctx.Done()
		r.checks.ShutDown()
		r.orphans.ShutDown()
	})
	select {
	case <-synced: // before, owners would be asked for one by one
		for range c.config.Workers {
			r.start(ctx, r.checks, r.check)
		}
		for range max(1, c.config.Workers/4) {
			r.start(ctx, r.orphans, r.orphan)
		}
	case <-ctx.Done():
	}
	running.Wait()
	r.workers.Wait()
	return ctx.Err()
}

// run is the work of a collector from when it starts to when it ends.
type run struct {
	config  *Config
	graph   *graph
	checks  queue.Queue[id]
	orphans queue.Queue[id]
	events  record.EventRecorder // may be nil
	health  health
	workers sync.WaitGroup
	relief  atomic.Int64 // workers that wait for an answer, and have been replaced
}

const (
	firstRetry, lastRetry = 5 * time.Millisecond, 2 * time.Minute
	reportEvery           = 5 * time.Second
)

func newRun(c *Config, events record.EventRecorder) *run {
	r := &run{
		config: c, events: events,
		checks: queue.New[id]("garbage_check", firstRetry, lastRetry), orphans: queue.New[id]("garbage_orphan", firstRetry, lastRetry),
	}
	r.graph = newGraph(r.checks.Add, r.orphans.Add, r.keyOf, r.near)
	return r
}

// near reports whether the object of one key may be owned by that of another. An unknown
// key counts as near.
func (r *run) near(dependent, owner string) bool {
	o, ok := r.config.Kinds.ByKey(owner)
	if !ok || !o.Namespaced {
		return true
	}
	d, ok := r.config.Kinds.ByKey(dependent)
	return !ok || d.Namespaced && d.Namespace == o.Namespace
}

// keyOf returns the key that the owner of an object has to have.
func (r *run) keyOf(ref *metav1.OwnerReference, dependent string) (string, bool) {
	kind, ok := r.config.Kinds.ByOwner(ref.APIVersion, ref.Kind)
	if !ok {
		return "", false
	}
	if !kind.Namespaced {
		return kind.Key("", ref.Name), true
	}
	place, ok := r.config.Kinds.ByKey(dependent)
	if !ok || !place.Namespaced {
		return "", false
	}
	return kind.Key(place.Namespace, ref.Name), true
}

// report keeps the gauge up to date.
func (r *run) report(ctx context.Context) {
	ticks := time.NewTicker(reportEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			objects.Set(float64(r.graph.len()))
		}
	}
}

// task is what is done to an object.
type task func(context.Context, id, view, restmapping.ObjectKey) error

// start starts a worker, which takes objects from a queue, one after the other,
// until it is shut down.
func (r *run) start(ctx context.Context, q queue.Queue[id], do task) {
	r.workers.Go(func() {
		for {
			i, quit := q.Get()
			if quit || r.one(ctx, q, i, do) {
				return
			}
		}
	})
}

// attempt does something to an object of a kind. If that takes long, because a
// webhook does not answer, another worker takes the place of this one, which is
// reported: it is to end.
func (r *run) attempt(ctx context.Context, q queue.Queue[id], do task, kind schema.GroupResource, something func(context.Context) error) (replaced bool, err error) {
	decided := make(chan struct{})
	late := time.AfterFunc(slowness, func() {
		defer close(decided)
		r.health.slow(kind)
		if replaced = r.relief.Add(1) <= maxRelief; replaced {
			r.start(ctx, q, do)
		}
	})
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = something(limited)
	if late.Stop() {
		return false, err
	}
	<-decided
	r.relief.Add(-1)
	return replaced, err
}

// one works on an object, unless it is gone or too many of its kind, which makes
// trouble, are being worked on. It reports whether the worker has been replaced.
func (r *run) one(ctx context.Context, q queue.Queue[id], i id, do task) (replaced bool) {
	defer q.Done(i)
	v, ok := r.graph.view(i)
	if !ok {
		q.Forget(i)
		return false
	}
	place, ok := r.config.Kinds.ByKey(v.key)
	if !ok || !place.Served() {
		q.AddRateLimited(i) // its CRD will be served soon, or again
		return false
	}
	resource := place.Resource.GroupResource()
	if !r.health.enter(resource) {
		q.AddAfter(i, busyDelay)
		return false
	}
	replaced, err := r.attempt(ctx, q, do, resource, func(ctx context.Context) error { return do(ctx, i, v, place) })
	r.health.leave(resource, err)
	if err == nil {
		q.Forget(i)
		return replaced
	}
	if ctx.Err() == nil {
		failures.Inc()
		klog.FromContext(ctx).V(2).Info("Failed to process owner references, retrying", "object", v.key, "attempts", q.NumRequeues(i), "reason", strings.TrimSpace(err.Error()))
	}
	q.AddRateLimited(i)
	return replaced
}
