package bindings

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/apis/customresourcedefinition"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/storage/store"
	"github.com/espalier-dev/espalier/server/tenants"
)

// Lenders read the CRDs of providers for all consumers that this process serves at the moment. A
// provider that none of them has bound takes nothing.
type Lenders struct {
	prefix string // of the server

	mu     sync.Mutex
	active map[lenderKey]*lender
}

// lenderKey has the connection, too: a consumer uses the one that it has itself.
type lenderKey struct {
	provider types.UID
	etcd     *store.Backend
}

// lender reads one provider.
type lender struct {
	backend *store.Backend
	catalog *catalog.Catalog
	end     func() // returns when all has ended

	users int // guarded by Lenders.mu

	mu      sync.Mutex
	notices map[*Binder]func()
}

// NewLenders returns lenders of the tenants of a server whose keys have a prefix.
func NewLenders(prefix string) *Lenders {
	return &Lenders{prefix: prefix, active: map[lenderKey]*lender{}}
}

// take returns the lender of a provider. notice is called when something of it has changed; it
// must not block.
func (l *Lenders) take(provider types.UID, etcd *store.Backend, by *Binder, notice func()) (*lender, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := lenderKey{provider, etcd}
	x := l.active[key]
	if x == nil {
		var err error
		if x, err = l.open(provider, etcd); err != nil {
			return nil, err
		}
		l.active[key] = x
	}
	x.users++
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notices[by] = notice
	return x, nil
}

// leave ends a use.
func (l *Lenders) leave(provider types.UID, etcd *store.Backend, by *Binder) {
	l.mu.Lock()
	key := lenderKey{provider, etcd}
	x := l.active[key]
	x.mu.Lock()
	delete(x.notices, by)
	x.mu.Unlock()
	x.users--
	last := x.users == 0
	if last {
		delete(l.active, key)
	}
	l.mu.Unlock()
	if last {
		x.end()
	}
}

// Active is how many providers are read.
func (l *Lenders) Active() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.active)
}

func (l *Lenders) open(provider types.UID, etcd *store.Backend) (*lender, error) {
	backend := etcd.Within(store.Part{Prefix: tenants.Prefix(l.prefix, provider), Guard: tenants.Guard(l.prefix, provider)})
	crds, destroy, err := customresourcedefinition.Storage(backend)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(store.OwnStream(context.Background(), string(provider)))
	x := &lender{backend: backend, catalog: catalog.New(crds), notices: map[*Binder]func(){}}
	x.catalog.Subscribe(func(_, _ *catalog.Entry) { x.changed() })
	var running sync.WaitGroup
	running.Go(func() { _ = x.catalog.Run(ctx) }) // it ends with the context
	running.Go(func() { x.followExports(ctx) })
	x.end = func() {
		cancel()
		running.Wait()
		destroy()
		_ = backend.Close() // of a part: it only ends storages
	}
	return x, nil
}

// changed tells all consumers.
func (x *lender) changed() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, notice := range x.notices {
		notice()
	}
}

// exportsFolder has the APIExports of a tenant, bindingsFolder its APIBindings.
var exportsFolder, bindingsFolder = "/" + Group + "/" + Exports.Resource, "/" + Group + "/" + Bindings.Resource

// followExports notices changes of exports.
func (x *lender) followExports(ctx context.Context) {
	follow(ctx, x.backend.Client(), x.backend.Key(exportsFolder)+"/", x.changed)
}

// followPause is how long to wait before etcd is asked again.
const followPause = time.Second

// follow calls notice whenever something may have changed in a folder: at the beginning, too.
func follow(ctx context.Context, etcd *clientv3.Client, folder string, notice func()) {
	for ctx.Err() == nil {
		inner, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		for answer := range etcd.Watch(inner, folder, clientv3.WithPrefix(), clientv3.WithCreatedNotify()) {
			if answer.Err() != nil {
				break
			}
			notice()
		}
		cancel()
		select {
		case <-ctx.Done():
		case <-time.After(followPause):
		}
	}
}

// export reads an export, nil if there is none.
func (x *lender) export(ctx context.Context, name string) (*Export, error) {
	stored, found, err := x.backend.One(ctx, Exports.GroupResource(), exportsFolder, name)
	switch {
	case err != nil || !found:
		return nil, err
	case stored.Err != nil:
		return nil, stored.Err
	}
	return exportOf(stored.Value)
}

// awaitRead returns when the CRDs of the provider have been read. Other bindings do not wait for one
// provider.
func (x *lender) awaitRead(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, firstTime)
	defer cancel()
	select {
	case <-x.catalog.Synced():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("reading the CRDs of a provider: %w", ctx.Err())
	}
}

// report logs an error of something that is tried again.
func report(err error, what, tenant string) {
	klog.ErrorS(err, what, "tenant", tenant)
}
