package migration

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	svmv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	listers "k8s.io/client-go/listers/storagemigration/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/internal/object"
)

// The annotations of a StorageVersionMigration that this controller reads and writes.
const (
	// PausedAnnotation, if "true", has the migration rest.
	PausedAnnotation = "migration.espalier.dev/paused"
	// KeepAnnotation is how long pre-images are kept after the end, such as 24h.
	KeepAnnotation = "migration.espalier.dev/keep-preimages"
	// UndoAnnotation, if "true", has objects get their pre-images back.
	UndoAnnotation = "migration.espalier.dev/undo"
	// ProgressAnnotation has the progress as JSON.
	ProgressAnnotation = "migration.espalier.dev/progress"
	// QuarantinedAnnotation lists objects that were left as they are, as JSON.
	QuarantinedAnnotation = "migration.espalier.dev/quarantined"
)

// component is the name of the controller, which kube-controller-manager has for it.
const component = "storage-version-migrator-controller"

// Config is what a Controller works with. All of it must be set except where noted.
type Config struct {
	// Etcd and Prefix are where objects are stored; Transformers, which may be nil,
	// decrypt and encrypt them.
	Etcd         *clientv3.Client
	Prefix       string
	Transformers value.ResourceTransformers
	// Informers, if not nil, has an informer of StorageVersionMigrations that runs.
	Informers informers.SharedInformerFactory
	// Endpoints are the members of etcd, which are asked how full they are.
	Endpoints []string
	// Client reads and writes StorageVersionMigrations.
	Client kubernetes.Interface
	// Events, if not nil, records events.
	Events kubernetes.Interface
	// Lookup returns a resource as it is now; nil if it does not exist.
	Lookup func(ctx context.Context, resource schema.GroupResource) (*Resource, error)
	// UpdateCRD changes the status of a CRD.
	UpdateCRD func(ctx context.Context, name string, change func(*object.Object) error) error
	// Begun is how many requests of users this server has had so far. May be nil.
	Begun func() int64

	clock func() time.Time // of tests; nil otherwise
}

func (c *Config) now() time.Time {
	if c.clock != nil {
		return c.clock()
	}
	return time.Now()
}

// Controller carries out StorageVersionMigrations. Several servers have one; only one of
// them runs at a time.
type Controller struct{ config Config }

// New returns a controller that does nothing until it is run.
func New(c Config) *Controller {
	register()
	return &Controller{c}
}

// run is the work of a controller from when it starts to when it ends.
type run struct {
	*Config
	migrations listers.StorageVersionMigrationLister
	events     record.EventRecorder // may be nil
	wake       chan struct{}        // migrations have changed
	sweeping   chan struct{}        // one was deleted
	later      map[types.UID]retry
}

// retry is when a migration is tried again.
type retry struct {
	at       time.Time
	failures int
}

const (
	// patience is how long a migration waits for its resource to exist. Upstream's is the same.
	patience = time.Minute
	// lookEvery is how often it looks.
	lookEvery = time.Second
	// sweepEvery is how often expired pre-images are looked for.
	sweepEvery = time.Minute
	// firstRetry and lastRetry are when a migration is tried again that has failed for a
	// reason that may pass.
	firstRetry, lastRetry = 200 * time.Millisecond, 30 * time.Second
	// hinderedRetry is when a migration is tried again that waits for a user.
	hinderedRetry = 5 * time.Second
)

// Run carries out migrations until the context ends, whose error it returns. Nothing of
// it is left then. It may be run again later.
func (c *Controller) Run(ctx context.Context) error {
	factory := c.config.Informers
	if factory == nil {
		factory = informers.NewSharedInformerFactory(c.config.Client, 0)
		defer factory.Shutdown()
	}
	informer := factory.Storagemigration().V1().StorageVersionMigrations()
	r := &run{
		Config: &c.config, migrations: informer.Lister(), wake: make(chan struct{}, 1), sweeping: make(chan struct{}, 1), later: map[types.UID]retry{},
	}
	registration, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { poke(r.wake) },
		UpdateFunc: func(any, any) { poke(r.wake) },
		DeleteFunc: func(any) { poke(r.wake); poke(r.sweeping) },
	})
	if err != nil {
		return err
	}
	defer func() { _ = informer.Informer().RemoveEventHandler(registration) }() // fails only for one that it did not give
	if c.config.Events != nil {
		broadcaster := record.NewBroadcaster(record.WithContext(ctx))
		defer broadcaster.Shutdown()
		broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.config.Events.CoreV1().Events("")})
		r.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component})
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
		return ctx.Err()
	}
	var running sync.WaitGroup
	running.Go(func() { r.sweep(ctx) })
	defer running.Wait()
	for ctx.Err() == nil {
		next, wait := r.pick(ctx, time.Now())
		if next != nil {
			r.work(ctx, next)
			continue
		}
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-time.After(wait):
		}
	}
	return ctx.Err()
}

func poke(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

// pick returns the oldest migration with something to do now, or how long to wait.
func (r *run) pick(ctx context.Context, now time.Time) (next *svmv1.StorageVersionMigration, wait time.Duration) {
	all, err := r.migrations.List(labels.Everything())
	if err != nil {
		return nil, lookEvery
	}
	all = slices.DeleteFunc(all, func(m *svmv1.StorageVersionMigration) bool { return !pending(m) })
	slices.SortFunc(all, func(a, b *svmv1.StorageVersionMigration) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	wait = sweepEvery
	for _, m := range all {
		if delay := r.later[m.UID].at.Sub(now); delay > 0 {
			wait = min(wait, delay)
			continue
		}
		if m.Status.ResourceVersion == "" && now.Sub(m.CreationTimestamp.Time) < patience {
			if resource, err := r.Lookup(ctx, groupResource(m)); err != nil || resource == nil {
				wait = min(wait, lookEvery)
				continue
			}
		}
		return m, 0
	}
	return nil, wait
}

// pending reports whether a migration has something to do.
func pending(m *svmv1.StorageVersionMigration) bool {
	if wantsUndo(m) || undoes(m) {
		return !isTrue(m, undoneCondition)
	}
	return !ended(m) && !paused(m)
}

func groupResource(m *svmv1.StorageVersionMigration) schema.GroupResource {
	return schema.GroupResource{Group: m.Spec.Resource.Group, Resource: m.Spec.Resource.Resource}
}

func wantsUndo(m *svmv1.StorageVersionMigration) bool { return m.Annotations[UndoAnnotation] == "true" }

// undoes reports whether an undo has begun: it comes to its end, whatever becomes of its annotation.
func undoes(m *svmv1.StorageVersionMigration) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, undoneCondition)
	return c != nil && (c.Reason == reasonUndoing || c.Reason == reasonSpace)
}

func paused(m *svmv1.StorageVersionMigration) bool { return m.Annotations[PausedAnnotation] == "true" }

func ended(m *svmv1.StorageVersionMigration) bool {
	return isTrue(m, string(svmv1.MigrationSucceeded)) || isTrue(m, string(svmv1.MigrationFailed))
}

func isTrue(m *svmv1.StorageVersionMigration, condition string) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, condition)
}

// work carries out a migration until it ends, is interrupted, or fails for a reason that
// may pass.
func (r *run) work(ctx context.Context, m *svmv1.StorageVersionMigration) {
	defer func() { remaining.Set(0); rate.Set(0) }()
	j := &job{Config: r.Config, run: r, migration: m, name: m.Name, uid: m.UID, throttle: throttle{begun: r.Begun}}
	err := j.do(ctx)
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errPaused), err == nil:
		// The informer may not show yet what was written.
		r.later[m.UID] = retry{at: time.Now().Add(firstRetry)}
	case errors.Is(err, errGone):
		delete(r.later, m.UID)
		poke(r.sweeping)
	case errors.Is(err, errHindered):
		r.later[m.UID] = retry{at: time.Now().Add(hinderedRetry)}
	case errors.Is(err, errSpace):
		failures.Inc()
		r.later[m.UID] = retry{at: time.Now().Add(hinderedRetry)}
		klog.FromContext(ctx).Error(err, "A storage version migration waits for space in etcd", "migration", m.Name, "resource", groupResource(m).String())
	default:
		failures.Inc()
		failed := r.later[m.UID].failures
		if j.advanced {
			failed = 0
		}
		r.later[m.UID] = retry{at: time.Now().Add(min(firstRetry<<min(failed, 16), lastRetry)), failures: failed + 1}
		klog.FromContext(ctx).Error(err, "A storage version migration failed and is tried again", "migration", m.Name, "resource", groupResource(m).String())
		j.trouble(ctx, err)
	}
}
