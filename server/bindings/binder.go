package bindings

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/storage/store"
	"github.com/espalier-dev/espalier/server/tenants"
)

// Finalizer keeps an APIBinding until the objects of its resources are deleted.
const Finalizer = "apis.espalier.dev/binding"

const (
	// again is how soon to look again after an error, or while objects wait for their finalizers;
	// it doubles up to lastAgain. period is how often to look in any case: labels of tenants are
	// followed by nothing else.
	again, lastAgain = 200 * time.Millisecond, 10 * time.Second
	period           = time.Minute
	// firstTime is how long the start of a tenant waits for its bindings.
	firstTime = 5 * time.Second
	// awaitTime is how long a request waits for a resource that another replica has bound.
	awaitTime = time.Second
	// listed is how many bindings a page of a list has.
	listed = 500
)

// Instances deletes all objects of a resource, and returns how many are left.
type Instances interface {
	DeleteInstances(ctx context.Context, e *catalog.Entry) (remaining int, err error)
}

// Where finds tenants.
type Where interface {
	// Locate returns the tenant with a name, and its labels; an error for which IsNotFound is true
	// if there is none.
	Locate(ctx context.Context, name string) (tenants.Tenant, map[string]string, error)
	// Peek calls f with the etcd that a tenant is in.
	Peek(ctx context.Context, t tenants.Tenant, f func(*store.Backend) error) error
}

// Options are what a Binder needs. All of them must be set.
type Options struct {
	Tenant  tenants.Tenant
	Prefix  string         // of the server
	Etcd    *store.Backend // that the tenant is in
	Backend *store.Backend // of the tenant
	Writes  *Writes        // of the tenant
	Catalog *catalog.Catalog
	Client  dynamic.Interface // for the tenant
	Objects Instances
	Lenders *Lenders
	Where   Where
	// BuiltIn reports whether the server itself has resources in a group.
	BuiltIn func(group string) bool
}

// Binder binds what the APIBindings of a tenant ask for, while the tenant is in use.
type Binder struct {
	Options
	etcd  *clientv3.Client
	wake  chan struct{}
	first chan struct{} // closed when the bindings were looked at once

	lenders map[types.UID]*lender // in use
	lent    map[string]types.UID  // what the catalog was lent, and by which provider
	looked  atomic.Int64          // how often
	ended   sync.Once
}

// New returns a binder. Run runs it.
func New(o Options) *Binder {
	b := &Binder{
		Options: o, etcd: o.Backend.Client(), wake: make(chan struct{}, 1), first: make(chan struct{}),
		lenders: map[types.UID]*lender{}, lent: map[string]types.UID{},
	}
	o.Catalog.Subscribe(func(old, updated *catalog.Entry) {
		if old != nil && old.Loan == nil && updated == nil { // a name is free that a binding may wait for
			b.nudge()
		}
	})
	return b
}

// Ready reports whether the bindings were looked at once, or could not be for some seconds.
func (b *Binder) Ready() bool {
	select {
	case <-b.first:
		return true
	default:
		return false
	}
}

func (b *Binder) nudge() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Run binds and unbinds until the context ends.
func (b *Binder) Run(ctx context.Context) error {
	defer b.end()
	late := time.AfterFunc(firstTime, func() { b.ended.Do(func() { close(b.first) }) })
	defer late.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		stream := store.OwnStream(ctx, string(b.Tenant.UID))
		follow(stream, b.etcd, b.Backend.Key(bindingsFolder)+"/", b.nudge)
	})
	pause := again
	for {
		busy, refused, err := b.look(ctx)
		if err == nil {
			b.ended.Do(func() { close(b.first) })
		} else if ctx.Err() == nil {
			report(err, "Binding APIs of other tenants failed, retrying", b.Tenant.Name)
		}
		next := period
		if busy || err != nil {
			next, pause = pause, min(2*pause, lastAgain)
		} else {
			pause = again
		}
		if refused {
			next = min(next, lastAgain)
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-b.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// end gives everything back.
func (b *Binder) end() {
	for provider := range b.lenders {
		b.Lenders.leave(provider, b.Etcd, b)
	}
	clear(b.lenders)
}

// lender returns the lender of a provider, which may not have read its CRDs yet.
func (b *Binder) lender(provider types.UID) (*lender, error) {
	x := b.lenders[provider]
	if x == nil {
		var err error
		if x, err = b.Lenders.take(provider, b.Etcd, b, b.nudge); err != nil {
			return nil, err
		}
		b.lenders[provider] = x
	}
	return x, nil
}

// ahead begins something, and returns a function that waits for its result.
func ahead[T any](f func() (T, error)) func() (T, error) {
	result := sync.OnceValues(f)
	go func() { _, _ = result() }()
	return result
}

// round is what one look at the bindings has found.
type round struct {
	notes  map[schema.GroupResource]tenants.Bound
	labels map[string]string // of the tenant
	busy   bool              // something is not finished
	// refused is that a provider does not allow a binding. Nothing of it is followed.
	refused bool
	serves  map[string]types.UID
	uses    map[types.UID]bool
}

// look makes what is served that of the bindings. busy is that it must look again soon,
// refused that a provider may allow a binding later.
func (b *Binder) look(ctx context.Context) (busy, refused bool, err error) {
	defer b.looked.Add(1)
	r := &round{serves: map[string]types.UID{}, uses: map[types.UID]bool{}}
	var bindings int64
	if bindings, r.notes, err = b.count(ctx); err != nil {
		return false, false, err
	}
	b.Writes.full.Store(bindings >= mostBindings)
	if bindings == 0 && len(r.notes) == 0 && len(b.lent) == 0 && len(b.lenders) == 0 {
		return false, false, nil
	}
	self := ahead(func() (located, error) { return b.locate(ctx, b.Tenant.Name) })
	select {
	case <-b.Catalog.Synced(): // whether a name is taken depends on all CRDs
	case <-ctx.Done():
		return false, false, ctx.Err()
	}
	all, err := b.list(ctx) // after the notes: those without a binding are of one that is gone
	if err != nil {
		return false, false, err
	}
	of, err := self()
	if err != nil || of.UID != b.Tenant.UID {
		return false, false, err
	}
	r.labels = of.labels
	b.prepare(r, all)
	var first error
	for _, x := range all {
		if err := b.settle(ctx, r, x); err != nil && first == nil {
			first = err
		}
	}
	for _, note := range r.notes { // whose binding went without its finalizer
		if !slices.ContainsFunc(all, func(x *Binding) bool { return x.GetUID() == note.UID }) {
			if err := b.release(ctx, r, note); err != nil && first == nil {
				first = err
			}
		}
	}
	if first == nil {
		b.withdraw(r)
	}
	return r.busy, r.refused, first
}

// located is a tenant with its labels.
type located struct {
	tenants.Tenant
	labels map[string]string
}

func (b *Binder) locate(ctx context.Context, name string) (located, error) {
	t, labels, err := b.Where.Locate(ctx, name)
	return located{t, labels}, err
}

// count returns how many bindings the tenant has, and the notes of what they have bound, of the same moment.
func (b *Binder) count(ctx context.Context) (bindings int64, notes map[schema.GroupResource]tenants.Bound, err error) {
	answer, err := b.etcd.Txn(ctx).Then(
		clientv3.OpGet(b.Backend.Key(bindingsFolder)+"/", clientv3.WithPrefix(), clientv3.WithCountOnly()),
		tenants.ReadBound(b.Prefix, b.Tenant.UID),
	).Commit()
	if err != nil {
		return 0, nil, err
	}
	notes, err = tenants.BoundIn(b.Prefix, b.Tenant.UID, answer.Responses[1].GetResponseRange().Kvs)
	return answer.Responses[0].GetResponseRange().Count, notes, err
}

// list reads the bindings, in the order of their names.
func (b *Binder) list(ctx context.Context) (all []*Binding, err error) {
	options := metav1.ListOptions{Limit: listed}
	for {
		page, err := b.Client.Resource(Bindings).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			x, err := bindingOf(&page.Items[i])
			if err != nil {
				return nil, err
			}
			all = append(all, x)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
}

// prepare has objects written as the notes say. It comes before anything is served by them.
func (b *Binder) prepare(r *round, all []*Binding) {
	for resource, note := range r.notes {
		alive := slices.ContainsFunc(all, func(x *Binding) bool { return x.GetUID() == note.UID && x.GetDeletionTimestamp() == nil })
		b.Writes.set(resource, &bound{by: tenants.SharedBy(b.Prefix, note.Provider), ending: !alive})
	}
	for resource := range *b.Writes.bound.Load() {
		if _, ok := r.notes[resource]; !ok {
			b.Writes.set(resource, nil)
		}
	}
}

// withdraw takes back what no binding has any more.
func (b *Binder) withdraw(r *round) {
	for name := range b.lent {
		if _, ok := r.serves[name]; !ok {
			b.Catalog.Withdraw(name)
			delete(b.lent, name)
		}
	}
	for provider := range b.lenders {
		if !r.uses[provider] {
			delete(b.lenders, provider)
			b.Lenders.leave(provider, b.Etcd, b)
		}
	}
}

// Await returns when a resource is served that this tenant has bound, perhaps on another replica;
// at once if it has not bound it.
func (b *Binder) Await(ctx context.Context, r schema.GroupResource) error {
	found, err := b.etcd.Get(ctx, tenants.BoundKey(b.Prefix, b.Tenant.UID, r), clientv3.WithCountOnly())
	if err != nil || found.Count == 0 {
		return err
	}
	before := b.looked.Load()
	b.nudge()
	for end := time.Now().Add(awaitTime); b.looked.Load() < before+2 && b.Catalog.Resource(r.Group, r.Resource) == nil && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}
