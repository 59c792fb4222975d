package movetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-dev/espalier/server/storage/store"
)

const (
	// Namespace is where the load writes.
	Namespace = "default"

	label, field = "movetest", "n"
	// pause is how long a client waits before it tries again what has failed.
	pause = 5 * time.Millisecond
	// requestTime bounds each request.
	requestTime = 5 * time.Second
)

// Load is what clients do to a tenant. It is safe for concurrent use.
type Load struct {
	writers []*writer
	clients []kubernetes.Interface
	stop    context.CancelFunc
	running sync.WaitGroup

	seen                  atomic.Int64 // the highest resource version that any client has seen
	writes, reads, events atomic.Int64

	mu         sync.Mutex
	violations []string
	informed   []cache.Store
}

// Start begins with writers that each have an object of their own, a reader and an informer for each
// configuration. Those are for the tenant at each replica.
func Start(ctx context.Context, writers int, configs ...*rest.Config) (*Load, error) {
	l := &Load{}
	for _, config := range configs {
		own := rest.CopyConfig(config)
		own.QPS, own.Timeout = -1, 0
		c, err := kubernetes.NewForConfig(own)
		if err != nil {
			return nil, err
		}
		l.clients = append(l.clients, c)
	}
	ctx, l.stop = context.WithCancel(ctx)
	for i := range writers {
		w := &writer{Load: l, name: fmt.Sprintf("w%03d", i), client: i % len(l.clients), latest: time.Now(), random: rand.New(rand.NewPCG(uint64(i), 1))} //nolint:gosec // a test
		l.writers = append(l.writers, w)
		l.running.Go(func() { w.run(ctx) })
	}
	for i := range l.clients {
		l.running.Go(func() { l.read(ctx, l.clients[i]) })
		l.inform(ctx, l.clients[i])
	}
	return l, nil
}

func (l *Load) violated(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.violations = append(l.violations, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// saw notes a resource version and returns it.
func (l *Load) saw(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		l.violated("the resource version %q", text)
	}
	for before := l.seen.Load(); n > before && !l.seen.CompareAndSwap(before, n); before = l.seen.Load() {
	}
	return n
}

// Longest is the longest time that a writer had to wait for an acknowledgement since the last call.
func (l *Load) Longest() time.Duration {
	longest := time.Duration(0)
	for _, w := range l.writers {
		w.mu.Lock()
		longest = max(longest, w.longest, time.Since(w.latest))
		w.longest = 0
		w.mu.Unlock()
	}
	return longest
}

// Result is what clients did, and what was wrong.
type Result struct {
	Writes, Reads, Events int64
	Violations            []string
}

// Stop ends the writers, compares what there is with what was acknowledged, and ends the rest.
func (l *Load) Stop(ctx context.Context) Result {
	for _, w := range l.writers {
		w.ended.Store(true)
	}
	for _, w := range l.writers {
		w.working.Lock() // it is between two writes
	}
	l.settle(ctx)
	l.stop()
	for _, w := range l.writers {
		w.working.Unlock()
	}
	l.running.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return Result{l.writes.Load(), l.reads.Load(), l.events.Load(), l.violations}
}

// settle waits until all informers have what the server has.
func (l *Load) settle(ctx context.Context) {
	var cause error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		if cause = l.settled(ctx); cause == nil {
			return
		}
	}
	l.violated("in the end: %v", cause)
}

func (l *Load) settled(ctx context.Context) error {
	list, err := l.clients[0].CoreV1().ConfigMaps(Namespace).List(ctx, metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return err
	}
	there := map[string]*corev1.ConfigMap{}
	for i := range list.Items {
		there[list.Items[i].Name] = &list.Items[i]
	}
	for _, w := range l.writers {
		if err := w.compare(there[w.name]); err != nil {
			return err
		}
	}
	for i, s := range l.informed {
		if n := len(s.ListKeys()); n != len(there) {
			return fmt.Errorf("the informer %d has %d objects, the server has %d", i, n, len(there))
		}
		for _, o := range s.List() {
			m := o.(*corev1.ConfigMap) //nolint:forcetypeassert // of such an informer
			if now := there[m.Name]; now == nil || now.ResourceVersion != m.ResourceVersion || now.Data[field] != m.Data[field] {
				return fmt.Errorf("the informer %d has %s with %s at %s, the server has %+v", i, m.Name, m.Data[field], m.ResourceVersion, now)
			}
		}
	}
	return nil
}

// read lists again and again.
func (l *Load) read(ctx context.Context, c kubernetes.Interface) {
	for ctx.Err() == nil {
		since := l.seen.Load()
		acknowledged := make([]int64, len(l.writers))
		for i, w := range l.writers {
			acknowledged[i] = w.acknowledged.Load()
		}
		list := &corev1.ConfigMapList{}
		short, cancel := context.WithTimeout(ctx, requestTime)
		err := c.CoreV1().RESTClient().Get().Namespace(Namespace).Resource("configmaps").MaxRetries(0).
			VersionedParams(&metav1.ListOptions{LabelSelector: label}, scheme.ParameterCodec).Do(short).Into(list)
		cancel()
		if err != nil {
			time.Sleep(pause)
			continue
		}
		l.reads.Add(1)
		if at := l.saw(list.ResourceVersion); at < since {
			l.violated("a list at %d after %d was seen", at, since)
		}
		there := map[string]int64{}
		for i := range list.Items {
			there[list.Items[i].Name] = valueOf(&list.Items[i])
		}
		for i, w := range l.writers {
			n, ok := there[w.name]
			if ok && n < acknowledged[i] || !ok && w.deleted.Load() < acknowledged[i] {
				l.violated("a list at %s has %s with %d (%t), although %d was acknowledged before it", list.ResourceVersion, w.name, n, ok, acknowledged[i])
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func valueOf(m *corev1.ConfigMap) int64 {
	n, _ := strconv.ParseInt(m.Data[field], 10, 64) // 0 is less than any
	return n
}

// inform runs an informer of client-go.
func (l *Load) inform(ctx context.Context, c kubernetes.Interface) {
	factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithNamespace(Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = label }))
	maps := factory.Core().V1().ConfigMaps().Informer()
	last := map[string]*corev1.ConfigMap{} // of this informer; handlers are called one at a time
	check := func(o any) {
		l.events.Add(1)
		m, ok := o.(*corev1.ConfigMap)
		if !ok {
			return
		}
		l.saw(m.ResourceVersion)
		if before := last[m.Name]; before != nil && (valueOf(m) < valueOf(before) || l.saw(m.ResourceVersion) < l.saw(before.ResourceVersion)) {
			l.violated("an informer was told of %s with %d at %s after %d at %s", m.Name, valueOf(m), m.ResourceVersion, valueOf(before), before.ResourceVersion)
		}
		last[m.Name] = m
	}
	_, err := maps.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: check, UpdateFunc: func(_, o any) { check(o) }, DeleteFunc: func(any) { l.events.Add(1) },
	})
	if err != nil {
		l.violated("an informer: %v", err)
		return
	}
	l.informed = append(l.informed, maps.GetStore())
	l.running.Go(func() { maps.Run(ctx.Done()) })
}

// nothingWritten reports whether the server has said that a write was not done.
func nothingWritten(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.ErrStatus.Details == nil {
		return false
	}
	for _, cause := range status.ErrStatus.Details.Causes {
		if cause.Type == store.CauseNothingWritten {
			return true
		}
	}
	return false
}
