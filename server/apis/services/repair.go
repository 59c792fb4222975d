package services

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"
)

// leaks are addresses and ports that are allocated and that no Service holds.
type leaks struct {
	ips   map[types.UID]netip.Addr // by the UID of the IPAddress
	ports map[int]bool
}

// Repair looks for leaked and for missing allocations, at once and then at intervals,
// until the context ends. Only the leader runs it.
func (a *Allocator) Repair(ctx context.Context) error {
	var seen leaks
	for {
		var err error
		if seen, err = a.repair(ctx, seen); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Failed to repair the allocation of cluster IPs and node ports, retrying")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(a.options.RepairInterval):
		}
	}
}

// repair does one pass. Leaks are released that the pass before has seen: most others
// belong to requests that have not ended. It returns the leaks to look at next time.
func (a *Allocator) repair(ctx context.Context, before leaks) (leaks, error) {
	state, err := a.readState(ctx)
	if err != nil {
		return before, err
	}
	found := state.leaks(a)
	old := found.both(before)
	if len(old.ips) > 0 || len(old.ports) > 0 {
		err = a.free(ctx, state, old)
	}
	return found, errors.Join(err, a.allocateMissing(ctx, state))
}

// state is what etcd has: first the allocations, then the Services, so that a Service
// that was written in between does not make its allocations look leaked.
type state struct {
	bits     *bitmap
	revision string // of the bitmap
	ips      []networkingv1.IPAddress
	services []corev1.Service
}

func (a *Allocator) readState(ctx context.Context) (*state, error) {
	s := &state{}
	var err error
	if s.bits, s.revision, err = a.ports.current(ctx); err != nil {
		return nil, fmt.Errorf("reading the node ports failed: %w", err)
	}
	if s.ips, err = a.addresses[0].list(ctx); err != nil {
		return nil, fmt.Errorf("listing IPAddresses failed: %w", err)
	}
	s.services, err = a.listServices(ctx)
	return s, err
}

func (a *Allocator) listServices(ctx context.Context) ([]corev1.Service, error) {
	list := &corev1.ServiceList{}
	if err := a.services.GetList(ctx, servicesFolder+"/", everything, list); err != nil {
		return nil, fmt.Errorf("listing Services failed: %w", err)
	}
	return list.Items, nil
}

// leaks are the allocations that no Service holds. An IPAddress that is not for a
// Service is the business of the program that made it.
func (s *state) leaks(a *Allocator) leaks {
	held, ports := map[netip.Addr]types.NamespacedName{}, map[int]bool{}
	for i := range s.services {
		one := &s.services[i]
		for ip := range ipsOf(one) {
			held[ip] = types.NamespacedName{Namespace: one.Namespace, Name: one.Name}
		}
		for port := range portsOf(one) {
			ports[port] = true
		}
	}
	found := leaks{ips: map[types.UID]netip.Addr{}, ports: map[int]bool{}}
	for i := range s.ips {
		obj := &s.ips[i]
		ip, err := netip.ParseAddr(obj.Name)
		if err != nil || obj.Labels[networkingv1.LabelManagedBy] != managedBy || obj.Spec.ParentRef == nil {
			continue
		}
		if owner, ok := held[ip]; !ok || !owned(obj, owner.Namespace, owner.Name) {
			found.ips[obj.UID] = ip
		}
	}
	for port := a.ports.ports.First; port <= a.ports.ports.Last; port++ {
		if s.bits.has(port) && !ports[port] {
			found.ports[port] = true
		}
	}
	return found
}

// both are the leaks that two passes have found.
func (l leaks) both(other leaks) leaks {
	both := leaks{ips: map[types.UID]netip.Addr{}, ports: map[int]bool{}}
	for uid, ip := range l.ips {
		if _, ok := other.ips[uid]; ok {
			both.ips[uid] = ip
		}
	}
	for port := range l.ports {
		if other.ports[port] {
			both.ports[port] = true
		}
	}
	return both
}

var errPortsChanged = errors.New("a request has allocated or released a node port")

// freeAttempts is how often releasing leaked ports is attempted: a request that allocates
// a port in between makes an attempt fail. The next pass is minutes away.
const freeAttempts = 4

// free releases leaks. From the change of the repair key on, no request can write a
// Service that holds what it allocated before. So the Services that are listed then have
// all that was allocated when the state was read. Whatever was allocated since then has
// another UID, or has changed the revision of the bitmap.
func (a *Allocator) free(ctx context.Context, s *state, candidates leaks) error {
	for i := 1; ; i++ {
		err := a.attemptFree(ctx, s, candidates)
		if i == freeAttempts || !errors.Is(err, errPortsChanged) {
			return err
		}
		if s.bits, s.revision, err = a.ports.current(ctx); err != nil {
			return fmt.Errorf("reading the node ports failed: %w", err)
		}
	}
}

func (a *Allocator) attemptFree(ctx context.Context, s *state, candidates leaks) error {
	if _, err := a.options.Backend.Client().Put(ctx, a.epochKey, time.Now().UTC().Format(time.RFC3339)); err != nil {
		return fmt.Errorf("changing the repair key failed: %w", err)
	}
	services, err := a.listServices(ctx)
	if err != nil {
		return err
	}
	s.services = services
	leaked := s.leaks(a).both(candidates)
	for uid, ip := range leaked.ips {
		if from := a.withAddress(ip); from != nil {
			klog.InfoS("Releasing a leaked cluster IP", "ip", ip)
			if err := from.release(ctx, ip, uid); err != nil {
				return err
			}
			delete(candidates.ips, uid)
		}
	}
	if len(leaked.ports) == 0 {
		return nil
	}
	klog.InfoS("Releasing leaked node ports", "ports", sortedPorts(leaked.ports))
	err = a.ports.storage.GuaranteedUpdate(ctx, portsKey, &corev1.RangeAllocation{}, false, &storage.Preconditions{ResourceVersion: &s.revision}, storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		b, err := a.ports.read(obj)
		if err != nil {
			return nil, err
		}
		for port := range leaked.ports {
			b.set(port, 0)
		}
		out := obj.(*corev1.RangeAllocation).DeepCopy()
		out.Range, out.Data = a.ports.ports.String(), b.Bytes()
		return out, nil
	}), nil)
	if storage.IsInvalidObj(err) {
		err = errPortsChanged
	}
	if err != nil {
		return fmt.Errorf("releasing leaked node ports failed: %w", err)
	}
	return nil
}

// allocateMissing allocates what Services hold and what is not allocated: after an older
// version of the server, a restored backup or a change of the ranges.
func (a *Allocator) allocateMissing(ctx context.Context, s *state) error {
	owners := map[string]*networkingv1.IPAddress{}
	for i := range s.ips {
		owners[s.ips[i].Name] = &s.ips[i]
	}
	missing := map[int]bool{}
	holders := map[int]string{}
	for i := range s.services {
		one := &s.services[i]
		for ip := range ipsOf(one) {
			if err := a.allocateMissingIP(ctx, ip, one, owners[ip.String()]); err != nil {
				return err
			}
		}
		name := one.Namespace + "/" + one.Name
		for port := range portsOf(one) {
			if other, ok := holders[port]; ok {
				klog.ErrorS(nil, "Two Services have the same node port: recreate one of them", "port", port, "service", name, "other", other)
			}
			holders[port] = name
			if port >= a.ports.ports.First && port <= a.ports.ports.Last && !s.bits.has(port) {
				missing[port] = true
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	klog.InfoS("Allocating node ports that Services have", "ports", sortedPorts(missing))
	return a.ports.change(ctx, func(b *bitmap) (bool, error) {
		for port := range missing {
			b.set(port, 1)
		}
		return true, nil
	})
}

func (a *Allocator) allocateMissingIP(ctx context.Context, ip netip.Addr, s *corev1.Service, obj *networkingv1.IPAddress) error {
	from := a.withAddress(ip)
	switch {
	case from == nil || !from.usable(ip):
		klog.V(2).InfoS("A Service has a cluster IP that no configured range has", "ip", ip, "service", klog.KObj(s))
		return nil
	case obj == nil:
		klog.InfoS("Allocating a cluster IP that a Service has", "ip", ip, "service", klog.KObj(s))
		if _, err := from.allocate(ctx, ip, s); err != nil && err != errAddressTaken {
			return fmt.Errorf("allocating cluster IP %s failed: %w", ip, err)
		}
	case !owned(obj, s.Namespace, s.Name):
		klog.ErrorS(nil, "A Service has a cluster IP that is allocated for another object: recreate the Service", "ip", ip, "service", klog.KObj(s), "parent", obj.Spec.ParentRef)
	}
	return nil
}
