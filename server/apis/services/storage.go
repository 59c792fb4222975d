package services

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/crd/offline"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// settleTime is how long releases may take after the request was answered or cancelled.
const settleTime = 20 * time.Second

// attempts is how often a request is tried that repair came in between of.
const attempts = 5

// holdings are addresses and ports that a Service held, as they were when the Service
// held them: only these are released.
type holdings struct {
	ips   map[netip.Addr]types.UID
	ports []int
	epoch int64
	done  atomic.Bool // by AfterDelete
}

// A transaction is one request that may allocate and release.
type transaction struct {
	ctx   context.Context // without the conditions of the Service's own write
	epoch int64
	// requirement is that the repair key is still at epoch when the Service is written.
	requirement *store.Requirement
	got         holdings  // allocated for the object that is being written
	lost        *holdings // of the old object, not of the new one; nil if there are none
	deleted     *holdings // of an object whose last finalizer is removed
	writing     bool      // the object may have been sent to etcd
	repaired    bool      // repair came in between
}

type transactionKey struct{}

func transactionOf(ctx context.Context) *transaction {
	t, _ := ctx.Value(transactionKey{}).(*transaction)
	return t
}

// serviceStorage is the store of Services with allocation.
type serviceStorage struct {
	*genericregistry.Store
	allocator *Allocator
}

// Wrap adds the allocation to the store of Services: a value for builtin.Resource.Wrap.
// Before validation the Service is complete: cluster IPs, families, node ports. An
// update that leaves them out keeps them, and one that changes the type drops those of
// the old type.
func (a *Allocator) Wrap(s *genericregistry.Store) rest.Storage {
	s.BeginCreate = func(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (genericregistry.FinishFunc, error) {
		return a.begin(ctx, obj.(*corev1.Service), nil, dryrun.IsDryRun(options.DryRun))
	}
	s.BeginUpdate = func(ctx context.Context, obj, old runtime.Object, options *metav1.UpdateOptions) (genericregistry.FinishFunc, error) {
		if transactionOf(ctx) == nil {
			return func(context.Context, bool) {}, nil // the subresource status, which restores the spec
		}
		return a.begin(ctx, obj.(*corev1.Service), old.(*corev1.Service), dryrun.IsDryRun(options.DryRun))
	}
	s.AfterDelete = func(obj runtime.Object, options *metav1.DeleteOptions) {
		if options == nil || !dryrun.IsDryRun(options.DryRun) {
			a.afterDelete(obj.(*corev1.Service))
		}
	}
	return &serviceStorage{s, a}
}

// Create implements rest.Creater.
func (s *serviceStorage) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	var out runtime.Object
	err := s.allocator.transact(ctx, func(ctx context.Context, t *transaction) (runtime.Object, error) {
		var err error
		out, err = s.Store.Create(ctx, obj.DeepCopyObject(), func(ctx context.Context, obj runtime.Object) error {
			if validate != nil {
				if err := validate(ctx, obj); err != nil {
					return err
				}
			}
			t.writing = true
			return nil
		}, options)
		return out, err
	})
	return out, err
}

// Update implements rest.Updater. Apply creates through it.
func (s *serviceStorage) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, force bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	var out runtime.Object
	var created bool
	err := s.allocator.transact(ctx, func(ctx context.Context, _ *transaction) (runtime.Object, error) {
		var err error
		out, created, err = s.Store.Update(ctx, name, info, create, update, force, options)
		return out, err
	})
	return out, created, err
}

// Delete implements rest.GracefulDeleter.
func (s *serviceStorage) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	noted, done := s.allocator.noting(validate)
	defer done()
	return s.Store.Delete(ctx, name, noted, options)
}

// DeleteCollection implements rest.CollectionDeleter.
func (s *serviceStorage) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, which *metainternalversion.ListOptions) (runtime.Object, error) {
	noted, done := s.allocator.noting(validate)
	defer done()
	return s.Store.DeleteCollection(ctx, noted, options, which)
}

// transact runs a write, and releases afterwards what is no longer held. A write that
// repair came in between of is tried again: nothing was written.
func (a *Allocator) transact(ctx context.Context, write func(context.Context, *transaction) (runtime.Object, error)) error {
	for i := 1; ; i++ {
		epoch, err := a.knownEpoch(ctx)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		t := &transaction{ctx: store.Conditional(ctx), epoch: epoch}
		t.requirement = a.requirement(t)
		inner := context.WithValue(ctx, transactionKey{}, t)
		obj, err := write(store.Require(inner, t.requirement), t)
		a.settle(t, obj, err)
		if err == nil || !t.repaired || i == attempts {
			return err
		}
	}
}

// requirement is that the repair key has not changed, if anything was allocated.
func (a *Allocator) requirement(t *transaction) *store.Requirement {
	return &store.Requirement{Key: a.epochKey, Revision: t.epoch, Changed: func(_ context.Context, now int64) (int64, error) {
		a.epoch.Store(now)
		if len(t.got.ips) == 0 && len(t.got.ports) == 0 {
			return now, nil
		}
		t.repaired = true
		return 0, store.NothingWritten("cluster IPs and node ports were repaired while this request allocated some")
	}}
}

// knownEpoch is a revision that the repair key has had. An old one is safe: it fails.
func (a *Allocator) knownEpoch(ctx context.Context) (int64, error) {
	if epoch := a.epoch.Load(); epoch >= 0 {
		return epoch, nil
	}
	return a.currentEpoch(ctx)
}

// currentEpoch reads the repair key.
func (a *Allocator) currentEpoch(ctx context.Context) (int64, error) {
	resp, err := a.options.Backend.Client().Get(ctx, a.epochKey)
	if err != nil {
		return 0, err
	}
	epoch := int64(0)
	if len(resp.Kvs) > 0 {
		epoch = resp.Kvs[0].ModRevision
	}
	a.epoch.Store(epoch)
	return epoch, nil
}

// begin completes a Service, and allocates what it needs. It is called again if the write
// found that another one came first; then nothing of the earlier attempt was written. What
// is allocated when it fails, settle releases.
func (a *Allocator) begin(ctx context.Context, s, old *corev1.Service, dryRun bool) (genericregistry.FinishFunc, error) {
	t := transactionOf(ctx)
	if t == nil {
		return nil, apierrors.NewInternalError(errors.New("services are created through their endpoint"))
	}
	a.release(t.ctx, &t.got)
	t.got, t.lost, t.deleted, t.writing = holdings{ips: map[netip.Addr]types.UID{}}, nil, nil, false
	if err := a.complete(t, s, old, dryRun); err != nil {
		return nil, err
	}
	if old != nil && !dryRun {
		if err := a.noteOld(t, s, old); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
	}
	return func(_ context.Context, ok bool) { t.writing = t.writing || ok }, nil
}

// complete fills in the fields, and allocates.
func (a *Allocator) complete(t *transaction, s, old *corev1.Service, dryRun bool) error {
	if old != nil {
		keepIPs(s, old)
		keepPorts(s, old)
	}
	syncIPs(s, old)
	if old != nil {
		dropByType(s, old)
	}
	if external(s) {
		return invalid(s, offline.ServiceAddressErrors(s)...)
	}
	a.setFamilies(s, old)
	if err := a.validate(s, old); err != nil {
		return err
	}
	if !dryRun && (old == nil || !equality.Semantic.DeepEqual(s.Spec, old.Spec)) {
		epoch, err := a.currentEpoch(t.ctx)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		t.epoch, t.requirement.Revision = epoch, epoch
	}
	t.got.epoch = t.epoch
	if err := a.allocateIPs(t.ctx, s, old, dryRun, t.got.ips); err != nil {
		return err
	}
	ports, err := a.allocatePorts(t.ctx, s, old, dryRun)
	t.got.ports = ports
	return err
}

// noteOld notes what the old Service holds and the new one does not.
func (a *Allocator) noteOld(t *transaction, s, old *corev1.Service) error {
	if old.DeletionTimestamp != nil && len(s.Finalizers) == 0 {
		held, err := a.held(t.ctx, old)
		if err != nil {
			return err
		}
		t.deleted = held
		a.deleting.Store(old.UID, held)
		return nil
	}
	lost := &holdings{epoch: t.epoch, ips: map[netip.Addr]types.UID{}}
	kept, keptPorts := ipsOf(s), portsOf(s)
	for ip := range ipsOf(old) {
		if kept[ip] {
			continue
		}
		if err := a.noteIP(t.ctx, lost, ip, old); err != nil {
			return err
		}
	}
	for port := range portsOf(old) {
		if !keptPorts[port] {
			lost.ports = append(lost.ports, port)
		}
	}
	t.lost = lost
	return nil
}

func (a *Allocator) noteIP(ctx context.Context, h *holdings, ip netip.Addr, s *corev1.Service) error {
	from := a.withAddress(ip)
	if from == nil {
		return nil
	}
	uid, err := from.uid(ctx, ip, s)
	if uid != "" {
		h.ips[ip] = uid
	}
	return err
}

// held is all that a Service holds. The Service must hold it now.
func (a *Allocator) held(ctx context.Context, s *corev1.Service) (*holdings, error) {
	epoch, err := a.currentEpoch(ctx)
	if err != nil {
		return nil, err
	}
	h := &holdings{epoch: epoch, ips: map[netip.Addr]types.UID{}, ports: sortedPorts(portsOf(s))}
	for ip := range ipsOf(s) {
		if err := a.noteIP(ctx, h, ip, s); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// settle releases what is held no more, now that the outcome of the write is known.
func (a *Allocator) settle(t *transaction, obj runtime.Object, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), settleTime)
	defer cancel()
	if t.deleted != nil {
		a.deleting.Range(func(key, value any) bool {
			if value == t.deleted {
				a.deleting.Delete(key)
			}
			return true
		})
	}
	switch {
	case err != nil && t.writing && !certain(err):
		klog.InfoS("The outcome of a write of a Service is not known: repair releases what it does not hold", "err", err)
	case err != nil:
		a.release(ctx, &t.got)
	case t.deleted != nil && t.deleted.done.Load():
		a.release(ctx, &t.got)
	default:
		s, _ := obj.(*corev1.Service)
		a.release(ctx, t.got.without(s))
		if t.lost != nil {
			a.release(ctx, t.lost.without(s))
		}
	}
}

// certain reports whether an error says that nothing was written.
func certain(err error) bool {
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		return true
	}
	return apierrors.HasStatusCause(err, store.CauseNothingWritten)
}

// without are the holdings that a Service does not have.
func (h *holdings) without(s *corev1.Service) *holdings {
	ips, ports := ipsOf(s), portsOf(s)
	rest := &holdings{epoch: h.epoch, ips: map[netip.Addr]types.UID{}}
	for ip, uid := range h.ips {
		if !ips[ip] {
			rest.ips[ip] = uid
		}
	}
	rest.ports = slices.DeleteFunc(slices.Clone(h.ports), func(port int) bool { return ports[port] })
	return rest
}

// errEpoch stops the release of ports that repair may have released.
var errEpoch = errors.New("repair came in between")

// release releases addresses and ports. What fails is left to repair.
func (a *Allocator) release(ctx context.Context, h *holdings) {
	for ip, uid := range h.ips {
		from := a.withAddress(ip)
		if from == nil {
			continue
		}
		if err := from.release(ctx, ip, uid); err != nil {
			klog.ErrorS(err, "Failed to release a cluster IP: repair tries again", "ip", ip)
		}
	}
	if len(h.ports) == 0 {
		return
	}
	err := a.ports.release(ctx, h.ports, func() error {
		if now, err := a.currentEpoch(ctx); err != nil || now != h.epoch {
			return errors.Join(errEpoch, err)
		}
		return nil
	})
	if err != nil {
		klog.InfoS("Failed to release node ports: repair tries again", "ports", h.ports, "err", err)
	}
}

// noting returns a validation of deletions that notes what the Service holds, and a
// function that forgets what is left of that.
func (a *Allocator) noting(validate rest.ValidateObjectFunc) (noted rest.ValidateObjectFunc, done func()) {
	var mu sync.Mutex // a collection is deleted by several goroutines
	own := map[types.UID]*holdings{}
	noted = func(ctx context.Context, obj runtime.Object) error {
		if validate != nil {
			if err := validate(ctx, obj); err != nil {
				return err
			}
		}
		s, ok := obj.(*corev1.Service)
		if !ok {
			return nil
		}
		held, err := a.held(ctx, s)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		mu.Lock()
		defer mu.Unlock()
		own[s.UID] = held
		a.deleting.Store(s.UID, held)
		return nil
	}
	return noted, func() {
		mu.Lock()
		defer mu.Unlock()
		for uid, held := range own {
			a.deleting.CompareAndDelete(uid, held)
		}
	}
}

// afterDelete releases what a deleted Service held. If that was not noted, repair does it.
func (a *Allocator) afterDelete(s *corev1.Service) {
	value, ok := a.deleting.LoadAndDelete(s.UID)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	held := value.(*holdings)
	held.done.Store(true)
	a.release(ctx, held)
}
