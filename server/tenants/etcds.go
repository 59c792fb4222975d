package tenants

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/storage/store"
)

// EtcdCRD is the CustomResourceDefinition of etcds, as YAML.
//
//go:embed etcd_crd.yaml
var EtcdCRD []byte

// EtcdResource is where the etcds are that tenants can be in.
var EtcdResource = schema.GroupVersionResource{Group: "espalier.dev", Version: "v1alpha1", Resource: "etcds"}

// RootEtcd is the name of the etcd of the server itself. There is no object of this name.
const RootEtcd = "root"

// EtcdFinalizer keeps the object of an etcd while tenants are in it.
const EtcdFinalizer = "espalier.dev/etcd"

// Etcd says how to connect to an etcd.
type Etcd struct {
	Name string
	UID  types.UID
	// Generation is that of the object: a change needs another connection.
	Generation int64
	Servers    []string
	// Secret has the certificates for TLS: tls.crt and tls.key of the server as a client, and
	// ca.crt, which signs those of etcd. All are optional; without a name there is none.
	Secret types.NamespacedName
}

// etcdOf reads an object.
func etcdOf(o *unstructured.Unstructured) Etcd {
	servers, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "servers") // the schema requires it
	secret, _, _ := unstructured.NestedStringMap(o.Object, "spec", "tlsSecret")
	return Etcd{
		Name: o.GetName(), UID: o.GetUID(), Generation: o.GetGeneration(), Servers: servers,
		Secret: types.NamespacedName{Namespace: secret["namespace"], Name: secret["name"]},
	}
}

// takes reports whether an etcd takes tenants that are in none yet.
func takes(o *unstructured.Unstructured) bool {
	full, _, _ := unstructured.NestedBool(o.Object, "spec", "full")
	return !full && o.GetDeletionTimestamp() == nil
}

const (
	// connectTime bounds the time until a connection is there: requests wait for it.
	connectTime = 5 * time.Second
	// silence is how long an etcd may be silent before requests are refused without asking it.
	silence = 3 * time.Second
)

// AwayError is that an etcd does not answer.
type AwayError struct {
	Etcd  string
	Cause error
}

// Error implements error.
func (e *AwayError) Error() string {
	return fmt.Sprintf("the etcd %q does not answer: %v", e.Etcd, e.Cause)
}

// Unwrap returns the cause.
func (e *AwayError) Unwrap() error { return e.Cause }

// Pool has the connections to the etcds that are in use. Each is opened on first use, and closed
// when it was not used for a while. It is safe for concurrent use.
type Pool struct {
	etcds dynamic.ResourceInterface
	root  *store.Backend
	open  func(context.Context, Etcd) (*store.Backend, error)
	idle  time.Duration

	leasing sync.Mutex
	leases  map[string]fenceLease // by the name of the etcd

	mu      sync.Mutex
	links   map[linkKey]*link
	closed  bool
	running sync.WaitGroup
}

// linkKey is what a connection is for.
type linkKey struct {
	uid        types.UID
	generation int64
}

// link is the connection to one etcd. All of it is guarded by Pool.mu, but ready.
type link struct {
	of      Etcd
	users   int
	ready   chan struct{} // closed when backend or err is set
	backend *store.Backend
	err     error
	pause   time.Duration
	retry   time.Time // not before
	timer   *time.Timer
	places  *places // for planes that start: those of another etcd do not wait for these
}

// NewPool returns a pool without connections but that of the server. It closes connections that
// were not used for the idle time.
func NewPool(client dynamic.Interface, root *store.Backend, idle time.Duration, open func(context.Context, Etcd) (*store.Backend, error)) *Pool {
	return &Pool{etcds: client.Resource(EtcdResource), root: root, open: open, idle: idle, leases: map[string]fenceLease{}, links: map[linkKey]*link{}}
}

// Use is the use of an etcd until it is released.
type Use struct {
	*store.Backend
	// Name and Of are the etcd's; Of is empty for that of the server itself.
	Name   string
	Of     Etcd
	places *places // nil for that of the server
	once   func()
}

// Release ends the use.
func (u *Use) Release() {
	if u != nil && u.once != nil {
		u.once()
	}
}

// away returns an error if the etcd was silent for a while.
func (u *Use) away() error {
	if u == nil || u.places == nil {
		return nil
	}
	if since := u.SilentSince(); !since.IsZero() && time.Since(since) > silence {
		return &AwayError{u.Name, fmt.Errorf("no answer since %s", since.UTC().Format(time.RFC3339))}
	}
	return nil
}

// patient returns a context that ends when the etcd has been silent for a while. A request that began before
// that was known would wait for all of its time.
func (u *Use) patient(ctx context.Context) (context.Context, func()) {
	if u == nil || u.places == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var mu sync.Mutex
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(silence, func() {
		mu.Lock()
		defer mu.Unlock()
		if err := u.away(); err != nil {
			cancel(err)
		} else if ctx.Err() == nil {
			timer.Reset(silence / 3)
		}
	})
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// ended is the error of something that a context of patient has ended.
func ended(ctx context.Context, err error) error {
	if away, ok := errors.AsType[*AwayError](context.Cause(ctx)); ok && err != nil {
		return away
	}
	return err
}

// Use connects to an etcd, if there is no connection yet. Callers wait for an etcd
// that does not answer for connectTime once; further callers get the error at once, until the
// connection is tried again.
func (p *Pool) Use(ctx context.Context, name string) (*Use, error) {
	if name == "" || name == RootEtcd {
		return &Use{Backend: p.root, Name: RootEtcd}, nil
	}
	o, err := p.etcds.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err): // which must not pass for a tenant that is missing
		return nil, unavailable(fmt.Sprintf("there is no etcd %q; 'espalier etcd list' shows which there are", name))
	case err != nil:
		return nil, err
	}
	return p.use(ctx, etcdOf(o))
}

func (p *Pool) use(ctx context.Context, of Etcd) (*Use, error) {
	key := linkKey{of.UID, of.Generation}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, context.Canceled
	}
	l := p.links[key]
	if l == nil {
		l = &link{of: of, places: newPlaces()}
		p.links[key] = l
	}
	if l.err != nil && time.Now().After(l.retry) {
		l.err, l.ready = nil, nil
	}
	if l.ready == nil {
		l.ready = make(chan struct{})
		p.running.Go(func() { p.connect(l) })
	}
	ready := l.ready
	l.users++
	p.mu.Unlock()
	use := &Use{Name: of.Name, Of: of, places: l.places, once: sync.OnceFunc(func() { p.release(key, l) })}
	select {
	case <-ready:
	case <-ctx.Done():
		use.Release()
		return nil, &AwayError{of.Name, ctx.Err()}
	}
	p.mu.Lock()
	backend, err := l.backend, l.err
	p.mu.Unlock()
	if backend == nil {
		use.Release()
		return nil, &AwayError{of.Name, err}
	}
	use.Backend = backend
	if err := use.away(); err != nil {
		use.Release()
		return nil, err
	}
	return use, nil
}

// connect opens a connection.
func (p *Pool) connect(l *link) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	defer cancel()
	backend, err := p.open(ctx, l.of)
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(l.ready)
	if err == nil && p.closed {
		err = errors.Join(context.Canceled, backend.Close())
	}
	if err != nil {
		l.pause = min(max(2*l.pause, firstPause), lastPause)
		l.err, l.retry = err, time.Now().Add(l.pause)
		klog.ErrorS(err, "Connecting to an etcd failed. Its tenants are answered with 503", "etcd", l.of.Name, "next attempt after", l.pause)
		return
	}
	l.backend, l.pause = backend, 0
}

// release ends a use. The last one has the connection closed after the idle time.
func (p *Pool) release(key linkKey, l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.users--; l.users > 0 || p.closed {
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer = time.AfterFunc(p.idle, func() {
		p.mu.Lock()
		if l.users > 0 || p.links[key] != l {
			p.mu.Unlock()
			return
		}
		delete(p.links, key)
		backend := l.backend
		p.mu.Unlock()
		if backend != nil {
			p.close(backend)
		}
	})
}

func (p *Pool) close(b *store.Backend) {
	if err := b.Close(); err != nil {
		klog.ErrorS(err, "Closing the connection to an etcd failed")
	}
}

// Close closes all connections but that of the server. What uses them must have ended.
func (p *Pool) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.running.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, l := range p.links {
		delete(p.links, key)
		if l.backend != nil {
			p.close(l.backend)
		}
	}
}

// candidates are the names of the etcds that take a new tenant, in the order of preference,
// which is another for each tenant. It has no names if there are no etcds but the server's.
func (p *Pool) candidates(ctx context.Context, uid types.UID) ([]string, error) {
	list, err := p.etcds.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing etcds: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	names := []string{}
	for i := range list.Items {
		if takes(&list.Items[i]) {
			names = append(names, list.Items[i].GetName())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(preference(uid, a), preference(uid, b)) })
	return names, nil
}

// preference is different for each tenant, so that tenants are spread evenly without counting
// them.
func preference(uid types.UID, etcd string) uint64 {
	sum := sha256.Sum256([]byte(string(uid) + "/" + etcd))
	return binary.BigEndian.Uint64(sum[:])
}

// fenceLease is a lease that fences expire by.
type fenceLease struct {
	id      clientv3.LeaseID
	granted time.Time
}

// fenceLease returns a lease for fences in an etcd. Those of an hour have the same.
func (p *Pool) fenceLease(ctx context.Context, use *Use) (clientv3.LeaseID, error) {
	p.leasing.Lock()
	defer p.leasing.Unlock()
	if l := p.leases[use.Name]; time.Since(l.granted) < time.Hour {
		return l.id, nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime) // others wait, for other etcds too
	defer cancel()
	answer, err := use.Client().Grant(ctx, fenceTTL)
	if err != nil {
		return 0, err
	}
	p.leases[use.Name] = fenceLease{answer.ID, time.Now()}
	return answer.ID, nil
}

// forgetLease has the next fence in an etcd take another lease: it may have been restored from a
// backup, or replaced by another one of the same name.
func (p *Pool) forgetLease(use *Use) {
	p.leasing.Lock()
	defer p.leasing.Unlock()
	delete(p.leases, use.Name)
}
