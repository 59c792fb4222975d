package scenarios

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	toolswatch "k8s.io/client-go/tools/watch"
)

// A follower watches a resource in the two ways that there are: an informer, which may read everything anew if it has to, and a watch
// that goes on where it was interrupted, and so sees every single change.
type follower struct {
	resource string
	informer cache.SharedIndexInformer

	mu    sync.Mutex
	seen  map[string][]int64 // as the book
	last  time.Time
	gap   time.Duration // the longest time without an event
	count int
	over  string // why the watch has come to an end, if it has
}

// follow starts followers of all that the load writes.
func (l *load) follow() {
	l.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l.Cleanup(cancel)
	typed := typedClient(l.T, l.worker("informer"))
	loosely := must[*dynamic.DynamicClient](l.T)(dynamic.NewForConfig(l.worker("dynamic-informer")))
	factory := informers.NewSharedInformerFactoryWithOptions(typed, 0, informers.WithNamespace("default"))
	dynamics := dynamicinformer.NewFilteredDynamicSharedInformerFactory(loosely, 0, "default", nil)
	watching := typedClient(l.T, l.worker("watcher")).CoreV1()
	boats := must[*dynamic.DynamicClient](l.T)(dynamic.NewForConfig(l.worker("dynamic-watcher")))
	watchAll(ctx, l, "configmaps", factory.Core().V1().ConfigMaps().Informer(), watching.ConfigMaps("default"))
	watchAll(ctx, l, "secrets", factory.Core().V1().Secrets().Informer(), watching.Secrets("default"))
	watchAll(ctx, l, "boats", dynamics.ForResource(boatResource).Informer(), loose{boats.Resource(boatResource).Namespace("default")})
	factory.Start(ctx.Done())
	dynamics.Start(ctx.Done())
	for _, f := range l.watchers {
		if !cache.WaitForCacheSync(l.Context().Done(), f.informer.HasSynced) {
			l.Fatalf("the informer of %s did not sync", f.resource)
		}
	}
}

// watchAll starts a follower from what there is now.
func watchAll[T, L runtime.Object](ctx context.Context, l *load, resource string, informer cache.SharedIndexInformer, client clientOf[T, L]) {
	l.Helper()
	f := &follower{resource: resource, informer: informer, seen: map[string][]int64{}}
	l.watchers = append(l.watchers, f)
	list := must[L](l.T)(client.List(ctx, metav1.ListOptions{}))
	from := must[metav1.ListInterface](l.T)(meta.ListAccessor(list)).GetResourceVersion()
	again := must[*toolswatch.RetryWatcher](l.T)(toolswatch.NewRetryWatcherWithContext(ctx, from, watchOf[T, L]{client}))
	l.Cleanup(func() { again.Stop(); <-again.Done() })
	go f.read(again)
}

// watchOf is the part of a client that watches are made with.
type watchOf[T, L runtime.Object] struct{ client clientOf[T, L] }

func (w watchOf[T, L]) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return w.client.Watch(ctx, options)
}

func (f *follower) read(w *toolswatch.RetryWatcher) {
	for event := range w.ResultChan() {
		f.mu.Lock()
		now := time.Now()
		if event.Type == watch.Error {
			f.over = apierrors.FromObject(event.Object).Error()
		} else if m, err := meta.Accessor(event.Object); err == nil && strings.HasPrefix(m.GetName(), "load-") {
			key, version := loadKeys[f.resource]+m.GetName(), versionOf(event.Object)
			if event.Type == watch.Deleted {
				version = 0
			}
			f.seen[key] = append(f.seen[key], version)
			if f.count > 0 {
				f.gap = max(f.gap, now.Sub(f.last))
			}
			f.count++
			f.last = now
		}
		f.mu.Unlock()
	}
}

// settle demands that both have seen all that was acknowledged: the watch every single change, in order and once.
func (f *follower) settle(l *load) {
	l.Helper()
	want := map[string][]int64{}
	for key, versions := range l.book {
		if strings.HasPrefix(key, loadKeys[f.resource]) && l.doubts[key] == "" {
			want[key] = versions
		}
	}
	var difference string
	saw := func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		difference = ""
		for key, versions := range want {
			if !slices.Equal(f.seen[key], versions) {
				difference = fmt.Sprintf("%s: written were %v, seen were %v", key, versions, f.seen[key])
				return f.over != "" // nothing more will come
			}
		}
		return true
	}
	defer func() {
		if difference != "" {
			l.Errorf("the watch of %s missed something (%s): %s", f.resource, f.over, difference)
		}
	}()
	eventually(l.T, soon, "the watch of "+f.resource+" has seen everything", saw)
}

// comesToHold waits until the informer holds just this.
func (f *follower) comesToHold(l *load, want map[string]int64) {
	l.Helper()
	defer func() {
		if got := l.known(f.holds()); !maps.Equal(want, got) {
			l.Errorf("the informer of %s: %s", f.resource, differ(want, got))
		}
	}()
	eventually(l.T, soon, "the informer of "+f.resource+" holds what is there", func() bool { return maps.Equal(want, l.known(f.holds())) })
}

// holds are the objects of the load that the informer has.
func (f *follower) holds() map[string]int64 {
	all := map[string]int64{}
	for _, item := range f.informer.GetStore().List() {
		object := item.(runtime.Object)
		if m, err := meta.Accessor(object); err == nil && strings.HasPrefix(m.GetName(), "load-") {
			all[loadKeys[f.resource]+m.GetName()] = versionOf(object)
		}
	}
	return all
}

func (f *follower) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprintf("watch of %s: %d events, longest time without one %v", f.resource, f.count, f.gap.Round(time.Millisecond))
}

// elect has two clients compete for a lease, as controllers do. One of them leads from now to the end of the load.
func (l *load) elect() {
	l.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var leading sync.Map
	l.running.Go(func() { <-l.stop; cancel() })
	for _, who := range []string{"left", "right"} {
		lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "load"}, Client: typedClient(l.T, l.worker(who)).CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: who}}
		elector := must[*leaderelection.LeaderElector](l.T)(leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: time.Second, Name: "load",
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {
					if other, taken := leading.LoadOrStore("leader", who); taken {
						l.complains(fmt.Sprintf("%s leads, and so does %v", who, other))
					}
				},
				OnStoppedLeading: func() {
					if leader, _ := leading.Load("leader"); leader == who && ctx.Err() == nil {
						l.complains(who + " has lost the lease")
					}
				},
			},
		}))
		l.running.Go(func() { elector.Run(ctx) })
	}
	eventually(l.T, soon, "a replica leads", func() bool { _, ok := leading.Load("leader"); return ok })
}

func (l *load) complains(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, what)
}

// under is what etcd has under a prefix, or had at a revision.
func (s *estate) under(prefix string, revision int64) map[string]*mvccpb.KeyValue {
	s.Helper()
	options := []clientv3.OpOption{clientv3.WithPrefix()}
	if revision > 0 {
		options = append(options, clientv3.WithRev(revision))
	}
	got := must[*clientv3.GetResponse](s.T)(s.client.Get(s.Context(), prefix, options...))
	all := map[string]*mvccpb.KeyValue{}
	for _, kv := range got.Kvs {
		all[string(kv.Key)] = kv
	}
	return all
}

// collects demands that the controllers of the servers are at work: what has an owner that is gone goes, too.
func (s *estate) collects(round string) {
	s.Helper()
	maps := s.admin().CoreV1().ConfigMaps("default")
	owner := must[*corev1.ConfigMap](s.T)(maps.Create(s.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner-" + round}}, metav1.CreateOptions{}))
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned-" + round, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}}}
	must[*corev1.ConfigMap](s.T)(maps.Create(s.Context(), owned, metav1.CreateOptions{}))
	if err := maps.Delete(s.Context(), owner.Name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	eventually(s.T, time.Minute, "what is owned goes with its owner", func() bool {
		_, err := maps.Get(s.Context(), owned.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
